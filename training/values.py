"""Random values, each with the form in which a person would write it.

Enters: a random generator and the split. Leaves: (JSON value, surface text).
Cost: a few random draws.  Words come from lists split by `words.py`; numbers
from 100 up follow its rule for numbers; days are split by their ordinal.
"""

# ruff: noqa: E501 - a list of words is one line

from __future__ import annotations

import datetime
import random
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from training import words

Json = Any
Drawn = tuple[Json, str]
Draw = Callable[[random.Random, str], Drawn]


@dataclass(frozen=True)
class Kind:
    """A schema type together with how its values are drawn."""

    schema: dict[str, Any]
    draw: Draw


_SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_TEENS = ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]


def in_words(value: int) -> str:
    """A whole number from 0 to 99 in words."""
    if value < 20:
        return [*_SMALL, *_TEENS][value]
    tens = _TENS[value // 10 - 2]
    return tens if value % 10 == 0 else f"{tens}-{_SMALL[value % 10]}"


def grouped(text: str, rng: random.Random) -> str:
    """`1250.5` as people write it: often with a comma between thousands."""
    whole, _, rest = text.partition(".")
    if len(whole.lstrip("-")) < 4 or rng.random() < 0.35:
        return text
    return f"{int(whole):,}" + (f".{rest}" if rest else "")


# How often a training value is no listed word but a made-up or other one.  The
# lists are short, and what is to be learnt is copying, not the lists.
_ODD = {
    "word": 0.3, "material": 0.15, "job": 0.35, "event": 0.25, "topic": 0.4, "venue": 0.3, "quantity": 0.4,
    "condition": 0.4, "airline": 0.45, "country": 0.3, "component": 0.4, "symptom": 0.4,
}  # fmt: skip


def pick(rng: random.Random, name: str, split: str) -> str:
    if split == "train" and rng.random() < _ODD.get(name, 0.0):
        return _odd(rng, name)
    if split == "train" and name == "condition" and rng.random() < 0.3:
        return f"{rng.choice(('light', 'heavy', 'partly', 'mostly', 'very', 'scattered'))} {rng.choice((*words.pool(name, split), 'snow', 'rain', 'drizzle', 'fog', 'showers', 'hail'))}"
    if split == "train" and name == "job" and rng.random() < 0.2:
        about = pick(rng, rng.choice(("word", "topic")), split).lower()
        return rng.choice(
            (
                f"head of {about}",
                f"director of {about}",
                f"{about} manager",
                f"{about} engineer",
                f"senior {about} analyst",
                f"vice president of {about}",
                "retired",
                f"{about} chef",
                f"professor of {about}",
                "student",
            )
        )
    return rng.choice(words.pool(name, split))


def _odd(rng: random.Random, name: str) -> str:
    count = rng.choice((2, 2, 3)) if name in ("component", "symptom") else rng.choice((1, 1, 1, 2))
    if name in ("word", "material", "event", "topic", "venue"):
        count = 1
    chosen = (
        words.made_up_word(rng, "train") if rng.random() < 0.5 else rng.choice(words.pool("word", "train"))
        for _ in range(count)
    )
    text = " ".join(chosen)
    return text.title() if name in ("airline", "country") else text


def of_split(value: float, split: str) -> bool:
    """Whether a number may stand in the split; whole ones from 100 up are divided."""
    return abs(value) < 100 or value != int(value) or words.is_test_number(int(value)) == (split == "test")


def in_split(draw: Draw) -> Draw:
    """The same, with only the numbers that may stand in the split."""

    def drawn(rng: random.Random, split: str) -> Drawn:
        while True:
            value, surface = draw(rng, split)
            if of_split(value, split):
                return value, surface

    return drawn


def number_in_split(rng: random.Random, low: int, high: int, split: str) -> int:
    while True:
        value = rng.randint(low, high)
        if of_split(value, split):
            return value


def first_name(rng: random.Random, split: str) -> str:
    return pick(rng, "first", split) if rng.random() < 0.65 else words.made_up_word(rng, split).title()


def last_name(rng: random.Random, split: str) -> str:
    return pick(rng, "last", split) if rng.random() < 0.6 else words.made_up_word(rng, split).title()


def person(rng: random.Random, split: str) -> Drawn:
    name = f"{first_name(rng, split)} {last_name(rng, split)}"
    if rng.random() < 0.12:
        name = first_name(rng, split)
    elif rng.random() < 0.08:
        title = rng.choice(("Dr.", "Dr.", "Mr.", "Mrs.", "Ms.", "Prof."))
        name = f"{title} {name if rng.random() < 0.6 else name.split()[-1]}"
    elif rng.random() < 0.06:
        name = f"{name.split()[0]} {letters(rng, 1)}. {name.split()[-1]}"
    elif rng.random() < 0.05:
        name = f"{name}-{last_name(rng, split)}"
    return name, name


_CITY_STARTS = (
    "New",
    "Port",
    "San",
    "Santa",
    "Saint",
    "St.",
    "North",
    "East",
    "Upper",
    "Bad",
    "Fort",
    "Lake",
    "Mount",
    "El",
    "Le",
    "Great",
    "Old",
)
_CITY_ENDS = (
    "ton", "ville", "ham", "burg", "stad", "haven", "ford", "field", "dorf", "by", "berg", "wick", "mouth", "bury",
    "grad", "polis", "pur", "abad", " City", " Falls", " Springs", " Heights", " Beach", "-sur-Mer", " am See", "borough",
)  # fmt: skip


def city(rng: random.Random, split: str) -> Drawn:
    if split == "test" or rng.random() < 0.5:
        name = pick(rng, "city", split) if rng.random() < 0.9 else words.made_up_word(rng, split).title()
        return name, name
    name = words.made_up_word(rng, split).title()
    roll = rng.random()
    if roll < 0.25:
        name = f"{rng.choice(_CITY_STARTS)} {name}"
    elif roll < 0.5:
        base = name if rng.random() < 0.5 else pick(rng, "word", split).title()
        name = base + rng.choice(_CITY_ENDS)
    return name, name


def country(rng: random.Random, split: str) -> Drawn:
    name = pick(rng, "country", split)
    return name, name


def street(rng: random.Random, split: str) -> Drawn:
    roll = rng.random()
    base = (
        pick(rng, "street", split)
        if roll < 0.3
        else last_name(rng, split)
        if roll < 0.8
        else (pick(rng, "word", split).title())
    )
    number = rng.randint(1, 99) if rng.random() < 0.7 else number_in_split(rng, 100, 2500, split)
    ends = ("Street", "Road", "Avenue", "Lane", "St", "Drive", "Way")
    shown: int | str = number
    if split == "train":
        ends += (
            "Crescent",
            "Close",
            "Court",
            "Boulevard",
            "Ave",
            "Rd",
            "Terrace",
            "Hill",
            "Place",
            "Square",
            "Quay",
        )
        if rng.random() < 0.3:
            base = words.made_up_word(rng, split).title()
            if rng.random() < 0.5:
                base += rng.choice(
                    ("straat", "weg", "gatan", "laan", "allee", "strasse", "vej", "plein", "gasse")
                )
        elif rng.random() < 0.2:
            base = f"{rng.choice(('Rua', 'Via', 'Calle', 'Rue', 'Avenida', 'Plaza', 'Rue de', 'Via della'))} {base}"
        if rng.random() < 0.1:
            shown = f"{number}{rng.choice('abcABC')}"
    name = rng.choice(
        (f"{shown} {base} {rng.choice(ends)}",) * 3
        + (f"{base} {shown}", f"{base} {rng.choice(('Street', 'Road', 'Square'))} {shown}")
    )
    return name, name


def postal_code(rng: random.Random, split: str) -> Drawn:
    code = rng.choice(
        (
            f"{number_in_split(rng, 10000, 99999, split)}",
            f"{number_in_split(rng, 10000, 99999, split)}",
            f"{number_in_split(rng, 1000, 9999, split)}",
            f"{number_in_split(rng, 1000, 9999, split)}-{number_in_split(rng, 100, 999, split)}",
            f"{letters(rng, 2)}{rng.randint(1, 20)} {rng.randint(1, 9)}{letters(rng, 2)}",
            f"{number_in_split(rng, 1000, 9999, split)} {letters(rng, 2)}",
            f"{number_in_split(rng, 100, 999, split)} {rng.randint(10, 99)}",
        )
    )
    return code, code


def letters(rng: random.Random, count: int) -> str:
    return "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(count))


def email(rng: random.Random, split: str) -> Drawn:
    one, two = _ascii(first_name(rng, split)), _ascii(last_name(rng, split))
    local = rng.choice((f"{one}.{two}", one, f"{one[0]}{two}", f"{two}{rng.randint(1, 99)}"))
    host = rng.choice((words.made_up_word(rng, split), pick(rng, "word", split), "mail", "example"))
    text = f"{local}@{host}.{rng.choice(('com', 'org', 'net', 'io', 'de', 'eu'))}"
    return text, text


def _ascii(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return "".join(c for c in plain if c.isalnum()) or "info"


def phone(rng: random.Random, split: str) -> Drawn:
    a, b, c = (number_in_split(rng, 100, 999, split) for _ in range(3))
    text = rng.choice(
        (
            f"{a}-{b}-{c}7", f"+{rng.randint(1, 99)} {a} {b} {c}", f"0{a} {b}{c}", f"{a} {b} {c}",
            f"{a}-0{b}", f"({a}) {b}-{c}{rng.randint(0, 9)}", f"+{rng.randint(1, 99)} {rng.randint(1, 99)} {a}{b}",
            f"0{rng.randint(10, 99)}-{a}{b}", f"+{rng.randint(1, 99)} {a} {b} {rng.randint(10, 99)}",
        )
    )  # fmt: skip
    return text, text


def goods(rng: random.Random, split: str, plural: bool) -> str:
    name = pick(rng, "good", split) if rng.random() < 0.8 else words.made_up_word(rng, split)
    roll = rng.random()
    if roll < 0.45:
        name = f"{pick(rng, 'material', split)} {name}"
    elif roll < 0.52:
        name = f"{pick(rng, 'material', split)} {pick(rng, 'material', split)} {name}"
    elif roll < 0.6:
        name = f"{pick(rng, 'good', split)} {name}"
    if split == "train" and rng.random() < 0.12:
        of = (
            f" of {pick(rng, 'material', split)} {pick(rng, 'good', split)}"
            if rng.random() < 0.4
            else f" of {pick(rng, 'word', split)}"
        )
        unit = rng.choice(
            ("bottle", "box", "pack", "pair", "bag", "set", "can", "roll", "kilo", "crate", "cup", "bar")
        )
        return (pluralised(unit) if plural else unit) + of
    if split == "train" and rng.random() < 0.15:
        name = f"{words.made_up_word(rng, split)} {name}"
    return pluralised(name) if plural else name


def pluralised(name: str) -> str:
    if name.endswith(("s", "sh", "ch", "x")):
        return name + "es"
    if name.endswith("y") and name[-2] not in "aeiou":
        return name[:-1] + "ies"
    return name if name.endswith("fe") else name + "s"


def product(rng: random.Random, split: str) -> Drawn:
    name = goods(rng, split, rng.random() < 0.3)
    return name, name


def company(rng: random.Random, split: str) -> Drawn:
    base = (
        last_name(rng, split)
        if rng.random() < 0.5
        else (
            words.made_up_word(rng, split).title() if rng.random() < 0.6 else pick(rng, "word", split).title()
        )
    )
    if split == "train" and rng.random() < 0.35:
        two = (
            words.made_up_word(rng, split).title() if rng.random() < 0.4 else pick(rng, "word", split).title()
        )
        base = rng.choice(
            (f"{base} & {two}", f"{base} {two}", f"{base} {two}", base.upper(), f"The {base} {two}")
        )
    if split == "train" and rng.random() < 0.5:
        end = rng.choice(_COMPANY_ENDS)
    else:
        end = pick(rng, "company_end", split)
    name = base if rng.random() < 0.2 else f"{base} {end}"
    return name, name


_COMPANY_ENDS = (
    "Ltd", "Ltd.", "GmbH", "Inc.", "LLC", "AG", "BV", "S.A.", "Oy", "AB", "Corp.", "Co.", "Traders", "Logistics", "Roofing",
    "Consulting", "Supplies", "Tooling", "Electric", "Foods", "Design", "Media", "Hospital", "University", "Bank",
    "Motors", "Partners", "Services", "Solutions", "Software", "Studio", "Energy", "Shipping", "Print", "Garden Centre",
    "General Hospital", "Catering", "Plumbing", "Clinic", "Books",
)  # fmt: skip


def counted(value: int, rng: random.Random) -> str:
    if value < len(_SMALL):
        return _SMALL[value] if rng.random() < 0.35 else str(value)
    return in_words(value) if value < 100 and rng.random() < 0.12 else str(value)


def quantity(rng: random.Random, split: str) -> Drawn:
    value = (
        rng.randint(1, 12)
        if rng.random() < 0.6
        else (rng.randint(2, 99) if rng.random() < 0.7 else number_in_split(rng, 100, 900, split))
    )
    if split == "train" and rng.random() < 0.05:
        return rng.choice(((12, "a dozen"), (2, "a couple of"), (24, "two dozen"), (6, "half a dozen")))
    return value, counted(value, rng)


def count_number(low: int, high: int) -> Draw:
    def draw(rng: random.Random, split: str) -> Drawn:
        value = number_in_split(rng, low, high, split)
        if split == "train" and rng.random() < 0.15:
            if 0 <= value < 100:
                return value, in_words(value)
            if -100 < value < 0:
                return value, f"minus {-value}"
            return value, grouped(str(value), rng)
        return value, str(value)

    return draw


def money(rng: random.Random, split: str) -> Drawn:
    roll = rng.random()
    large = split == "train" and rng.random() < 0.25
    if roll < 0.4:
        value = number_in_split(rng, 2, 90000 if large else 2500, split)
        if rng.random() < 0.2:
            return value, grouped(f"{value}.00", rng)
        return value, grouped(str(value), rng)
    cents = number_in_split(rng, 150, 4000000 if large else 200000, split)
    value = cents / 100
    if not of_split(value, split):
        return money(rng, split)
    text = f"{value:.2f}"
    # The answer is written as JSON would write the number: 12.5, not 12.50.
    return (
        (int(value), grouped(str(int(value)), rng))
        if value == int(value)
        else (value, grouped(text if rng.random() < 0.8 else repr(value), rng))
    )


def measured(rng: random.Random, split: str) -> Drawn:
    roll = rng.random()
    if roll < 0.35:
        value: float = number_in_split(rng, 1, 2000, split)
    else:
        value = number_in_split(rng, 11, 9999, split) / rng.choice((10, 10, 10, 100, 100, 1000))
    if rng.random() < 0.12:
        value = -value
    if not of_split(value, split):
        return measured(rng, split)
    if value == int(value):
        value = int(value)
    return value, grouped(str(value), rng) if split == "train" else str(value)


def date(rng: random.Random, split: str) -> Drawn:
    while True:
        day = datetime.date(2015, 1, 1) + datetime.timedelta(days=rng.randrange(365 * 20))
        if words.is_test_number(day.toordinal()) == (split == "test"):
            break
    month = _MONTHS[day.month - 1]
    suffix = "th" if 4 <= day.day <= 20 or 24 <= day.day <= 30 else {1: "st", 2: "nd", 3: "rd"}[day.day % 10]
    text = rng.choice(
        (
            day.isoformat(),
            day.isoformat(),
            f"{day.day} {month} {day.year}",
            f"{day.day} {month} {day.year}",
            f"{month} {day.day}, {day.year}",
            f"{month} {day.day}, {day.year}",
            f"{day.day} {month[:3]} {day.year}",
            f"{month[:3]} {day.day}, {day.year}",
            f"{month} {day.day}{suffix}, {day.year}",
            f"the {day.day}{suffix} of {month} {day.year}",
            f"{day.day:02d}.{day.month:02d}.{day.year}",
        )
    )
    if split == "train" and rng.random() < 0.35:
        text = rng.choice(
            (
                f"{day.day}{suffix} {month} {day.year}",
                f"{day.day}{suffix} of {month} {day.year}",
                f"{day.day:02d} {month} {day.year}",
                f"{day.year}/{day.month:02d}/{day.day:02d}",
                f"{day.day}-{month[:3]}-{day.year}",
                f"{month} {day.day} {day.year}",
                f"{month[:3]} {day.day} {day.year}",
                f"{month[:3]}. {day.day}, {day.year}",
                f"{day.month:02d}/{day.day:02d}/{day.year}" if day.day > 12 else day.isoformat(),
                f"{day.day:02d}/{day.month:02d}/{day.year}" if day.day > 12 else day.isoformat(),
                f"{day.day}.{day.month}.{day.year}",
            )
        )
    if split == "train" and rng.random() < 0.1 and text[0] in "123456789JFMASOND":
        text = f"{day:%A}{rng.choice((', ', ' ', ', '))}{text}"
    return day.isoformat(), text


def vague_date(rng: random.Random, split: str) -> Drawn:
    """A day without a year, or relative to today: no date can be made of it, so it is copied as it is."""
    month, day = rng.choice(_MONTHS), rng.randint(1, 28)
    text = rng.choice(
        (
            f"{month} {day}", f"{day} {month}", f"{month[:3]} {day}", f"{day} {month[:3]}", "tomorrow", "next Tuesday",
            "on Friday"[3:], "next week", "tonight", "Monday", "this weekend", "next month", f"in {rng.randint(2, 9)} days",
            f"the {day}th of {month}" if 4 <= day <= 20 else f"{month} {day}",
        )
    )  # fmt: skip
    return text, text


def duration(unit: str) -> Draw:
    """A length of time in whole units, said in figures or in words; minutes out of hours, too."""

    def draw(rng: random.Random, _split: str) -> Drawn:
        if unit != "minute":
            value = rng.choice((rng.randint(1, 12), rng.randint(1, 60)))
            if unit == "day" and rng.random() < 0.15:
                weeks = rng.randint(1, 4)
                return 7 * weeks, "a week" if weeks == 1 else f"{counted(weeks, rng)} weeks"
            if value == 1:
                return 1, rng.choice(("an" if unit == "hour" else "a", "one", "1")) + f" {unit}"
            return value, f"{in_words(value) if rng.random() < 0.4 else value} {unit}s"
        roll = rng.random()
        if roll < 0.4:
            value = rng.choice((5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 60, 75, 90, 120, rng.randint(2, 99)))
            spoken = in_words(value) if value < 100 and rng.random() < 0.3 else str(value)
            return value, f"{spoken} {rng.choice(('minutes', 'minutes', 'min'))}"
        hours = rng.randint(1, 6)
        spoken = counted(hours, rng)
        if roll < 0.6:
            value, text = rng.choice(
                (
                    (30, "half an hour"), (60, "an hour"), (90, "an hour and a half"), (90, "one and a half hours"),
                    (15, "a quarter of an hour"), (45, "three quarters of an hour"), (90, "1.5 hours"), (150, "2.5 hours"),
                    (150, "two and a half hours"), (210, "three and a half hours"), (75, "an hour and a quarter"),
                )
            )  # fmt: skip
            return value, text
        if roll < 0.8:
            return 60 * hours, f"{spoken} hours" if hours > 1 else "one hour"
        more = rng.choice((5, 10, 15, 20, 30, 40, 45, 50))
        return 60 * hours + more, rng.choice(
            (f"{hours}h {more}m", f"{hours} h {more} min", f"{spoken} hour{'s' * (hours > 1)} and {more} minutes",
             f"{spoken} hour{'s' * (hours > 1)} {more} minutes", f"{hours}h{more:02d}")
        )  # fmt: skip

    return in_split(draw)


def clock(rng: random.Random, split: str) -> Drawn:
    hour, minute = rng.randrange(24), rng.choice((0, 0, 0, 15, 30, 45, rng.randrange(60)))
    value = f"{hour:02d}:{minute:02d}"
    half = "am" if hour < 12 else "pm"
    hour12 = (hour + 11) % 12 + 1
    spoken = f"{hour12}:{minute:02d}" if minute else str(hour12)
    text = rng.choice((value, value, f"{spoken} {half}", f"{spoken}{half}"))
    if hour == 12 and minute == 0 and rng.random() < 0.5:
        text = "noon"
    if split == "train" and rng.random() < 0.15 and 1 <= hour <= 12:
        part = " in the morning" if hour < 12 and rng.random() < 0.4 else ""
        if minute in (15, 30):
            text = f"{'quarter' if minute == 15 else 'half'} past {_SMALL[hour]}{part}"
        elif minute == 45 and hour < 12:
            text = f"quarter to {_SMALL[hour + 1]}{part}"
        elif minute == 0:
            text = f"{_SMALL[hour]} o'clock{part}"
    if split == "train" and minute and rng.random() < 0.06:
        text = f"{hour:02d}.{minute:02d}"
    return value, text


def code(prefixes: tuple[str, ...]) -> Draw:
    def draw(rng: random.Random, split: str) -> Drawn:
        prefix = rng.choice((*prefixes, letters(rng, 2), letters(rng, 1), letters(rng, 3)))
        joint = rng.choice(("-", "", "-"))
        text = f"{prefix}{joint}{number_in_split(rng, 100, 99999, split)}"
        if split == "train" and rng.random() < 0.4:
            number = number_in_split(rng, 1, 99999, split)
            text = rng.choice(
                (
                    f"{prefix}-{rng.randint(2018, 2030)}-{number:04d}", f"{prefix}/{number}", f"{number}", f"{number:05d}",
                    f"{rng.randint(2018, 2030)}-{number:04d}", f"{prefix}{rng.randint(10, 99)}-{number}", f"{prefix}.{number}",
                    f"{prefix}-{number}-{letters(rng, 1)}", f"{prefix}{rng.randint(1, 30)}", f"{prefix} {number}",
                )
            )  # fmt: skip
            return text, f"#{text}" if rng.random() < 0.12 else text
        return text, text

    return draw


def phrase(rng: random.Random, split: str) -> Drawn:
    text = " ".join(pick(rng, "word", split) for _ in range(rng.choice((1, 1, 2, 2, 3))))
    return text, text


def one_of(values: dict[str, tuple[str, ...]]) -> Draw:
    """Enumerated values with the ways people say them; small sets, shared by both splits."""

    def draw(rng: random.Random, _split: str) -> Drawn:
        value = rng.choice(sorted(values))
        return value, rng.choice((value, *values[value]))

    return draw


def from_pool(name: str) -> Draw:
    def draw(rng: random.Random, split: str) -> Drawn:
        word = pick(rng, name, split)
        return word, word

    return draw


def event_name(rng: random.Random, split: str) -> Drawn:
    event = pick(rng, "event", split)
    roll = rng.random()
    about = pick(rng, "topic", split) if roll < 0.75 else words.made_up_word(rng, split).title()
    name = f"{about} {event}"
    if split == "train" and rng.random() < 0.5:
        more = pick(rng, "word", split) if rng.random() < 0.6 else words.made_up_word(rng, split)
        name = rng.choice(
            (
                f"{more} {about} {event}", f"{rng.choice(_OFTEN)} {about} {event}", f"{rng.choice(_OFTEN)} {event}",
                f"{event} on {about} and {more}", f"introduction to {about}", f"{about} for {rng.choice(_AUDIENCE)}",
                f"{about} and {more} {event}", f"{about} {rng.choice(_GATHERINGS)}", f"{rng.choice(_OFTEN)} {rng.choice(_GATHERINGS)}",
                f"{more} {rng.choice(_GATHERINGS)}",
            )
        )  # fmt: skip
    if rng.random() < 0.3:
        name = name.title()
    return name, name


_OFTEN = (
    "quarterly",
    "annual",
    "weekly",
    "monthly",
    "first",
    "international",
    "spring",
    "harvest",
    "open",
    "summer",
)
_AUDIENCE = ("beginners", "experts", "children", "families", "teachers", "everyone")
_GATHERINGS = (
    "meeting", "planning meeting", "festival", "appointment", "conference", "fair", "race", "class", "party", "wedding",
    "review", "training", "tour", "gala", "summit", "auction", "market", "call", "interview", "reunion", "check-up",
)  # fmt: skip


def venue(rng: random.Random, split: str) -> Drawn:
    place = pick(rng, "venue", split).title()
    base = last_name(rng, split) if rng.random() < 0.6 else pick(rng, "word", split).title()
    name = rng.choice(
        (f"{base} {place}", f"{base} {place}", f"Room {rng.randint(1, 99)}", f"the {place.lower()}")
    )
    if split == "train" and rng.random() < 0.4:
        made = words.made_up_word(rng, split).title()
        kind = rng.choice(_SITES)
        name = rng.choice(
            (
                f"{made} {kind}", f"{made} {kind}", f"Conference Room {letters(rng, 1)}", f"Hall {rng.randint(1, 20)}",
                f"{base} {kind}", f"{kind} {made}", f"Building {letters(rng, 1)}", f"Meeting Room {rng.randint(1, 40)}",
                f"{kind.lower()} {rng.randint(1, 30)}", f"{pick(rng, 'material', split)} {kind.lower()}", f"{kind.lower()}",
            )
        )  # fmt: skip
    return name, name


_SITES = (
    "Park", "Garden", "Library", "Theatre", "Hotel", "Centre", "Stadium", "Church", "Cafe", "Campus", "Museum", "Hall",
    "Arena", "Room", "Community Garden", "Town Hall", "Warehouse", "Lab", "Cold Store", "Greenhouse", "Station", "School",
)  # fmt: skip


def bug_title(rng: random.Random, split: str) -> Drawn:
    text = f"{pick(rng, 'component', split)} {pick(rng, 'symptom', split)}"
    if split == "train" and rng.random() < 0.65:
        text = _bug_sentence(rng, split)
    return text, text


_BROKEN = (
    "crashes", "freezes", "hangs", "is empty", "is missing", "does not load", "does not open", "is not saved", "stays blank",
    "shows a blank page", "shows the wrong {n}", "shows an error", "returns error {d}", "ignores the {n}", "loses the {n}",
    "does nothing", "is very slow", "produces blank {n}s", "flickers", "cannot be closed", "cannot be selected", "fails",
    "fails with a timeout", "is cut off", "overlaps the {n}", "resets the {n}", "deletes the {n}", "is displayed twice",
    "does not respond", "sends the {n} twice", "keeps loading", "turns black", "does not accept the {n}", "is not translated",
    "are duplicated", "are not sorted", "do not arrive", "disappears", "logs me out", "forgets the {n}", "uses too much memory",
)  # fmt: skip
_MOMENTS = (
    "when I {a} the {n}", "when {b} the {n}", "after {b} the {n}", "while {b}", "during {n}", "on startup", "after restart",
    "if the {n} is empty", "when offline", "in dark mode", "after the update", "when the {n} contains a {n}", "on large screens",
    "for new users", "when I {a}", "after {d} minutes", "on the second try", "when two users {a} the {n}", "with long {n}s",
    "after login", "when the {n} is closed", "during {b}", "when I press the {n} and {a} the {n}",
)  # fmt: skip
_ACTS = (
    ("open", "opening"), ("rotate", "rotating"), ("save", "saving"), ("delete", "deleting"), ("scroll", "scrolling"),
    ("upload", "uploading"), ("print", "printing"), ("search", "searching"), ("edit", "editing"), ("click", "clicking"),
    ("rename", "renaming"), ("share", "sharing"), ("import", "importing"), ("copy", "copying"), ("select", "selecting"),
    ("drag", "dragging"), ("resize", "resizing"), ("change", "changing"), ("submit", "submitting"), ("close", "closing"),
)  # fmt: skip
_THINGS = (
    "file", "page", "image", "phone", "query", "message", "title", "form", "window", "list", "setting", "button", "menu", "map",
    "password", "name", "filter", "photo", "video", "table", "report", "date", "account", "email", "cart", "language", "checkout",
    "document", "comment", "tab", "column", "invoice", "profile", "link", "screen", "keyboard", "network", "cache", "PDF", "icon",
)  # fmt: skip
_PARTS = (
    "the app", "the application", "the page", "the program", "the website", "app", "PDF export", "search", "search results",
    "dark mode", "the {n}", "the {n} {n}", "{n} {n}", "the {n} button", "notifications", "the game", "sync", "login", "CSV import",
)  # fmt: skip


def _bug_sentence(rng: random.Random, split: str) -> str:
    """What is broken, how, and when: a clause of five to fifteen words, to be copied whole."""

    def thing() -> str:
        roll = rng.random()
        if roll < 0.6:
            return rng.choice(_THINGS)
        return pick(rng, "word", split) if roll < 0.8 else words.made_up_word(rng, split)

    subject = pick(rng, "component", split) if rng.random() < 0.4 else rng.choice(_PARTS)
    if subject[0].islower() and rng.random() < 0.15 and not subject.startswith("the"):
        subject = f"the {subject}"
    text = f"{subject} {rng.choice(_BROKEN)}"
    if rng.random() < 0.6:
        text += f" {rng.choice(_MOMENTS)}"
    one = rng.choice(_ACTS)
    text = text.replace("{a}", one[0]).replace("{b}", one[1]).replace("{d}", str(rng.randint(2, 99)))
    while "{n}" in text:
        text = text.replace("{n}", thing(), 1)
    return text[:1].upper() + text[1:] if rng.random() < 0.5 else text


def version(rng: random.Random, _split: str) -> Drawn:
    text = ".".join(str(rng.randint(0, 19)) for _ in range(rng.choice((2, 3, 3))))
    return text, text


STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}
BOOLEAN: dict[str, Any] = {"type": "boolean"}
DATE: dict[str, Any] = {"type": "string", "format": "date"}
# Not format "time": that one asks for seconds and a zone, which people do not write.
TIME: dict[str, Any] = {"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$"}
EMAIL: dict[str, Any] = {"type": "string", "format": "email"}


def string(draw: Draw) -> Kind:
    return Kind(STRING, draw)


def enum(values: dict[str, tuple[str, ...]]) -> Kind:
    return Kind({"type": "string", "enum": list(values)}, one_of(values))


def bug_step(rng: random.Random, split: str) -> Drawn:
    """One step of a reproduction, such as `open the settings`."""
    verb = rng.choice(_ACTS)[0]
    text = f"{verb} the {rng.choice(_THINGS) if rng.random() < 0.7 else pick(rng, 'word', split)}"
    return text, text
