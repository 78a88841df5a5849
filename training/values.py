"""Random values, each with the form in which a person would write it.

Enters: a random generator and the split. Leaves: (JSON value, surface text).
Cost: a few random draws.  Words come from lists split by `words.py`; numbers
from 100 up follow its rule for numbers; days are split by their ordinal.
"""

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


# How often a training value is no listed word but a made-up or other one.  The
# lists are short, and what is to be learnt is copying, not the lists.
_ODD = {
    "word": 0.2, "material": 0.15, "job": 0.3, "event": 0.25, "topic": 0.3, "venue": 0.2, "quantity": 0.4,
    "condition": 0.4, "airline": 0.4, "country": 0.25, "component": 0.4, "symptom": 0.4,
}  # fmt: skip


def pick(rng: random.Random, name: str, split: str) -> str:
    if split == "train" and rng.random() < _ODD.get(name, 0.0):
        return _odd(rng, name)
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


def number_in_split(rng: random.Random, low: int, high: int, split: str) -> int:
    while True:
        value = rng.randint(low, high)
        if of_split(value, split):
            return value


def first_name(rng: random.Random, split: str) -> str:
    return pick(rng, "first", split) if rng.random() < 0.85 else words.made_up_word(rng, split).title()


def last_name(rng: random.Random, split: str) -> str:
    return pick(rng, "last", split) if rng.random() < 0.85 else words.made_up_word(rng, split).title()


def person(rng: random.Random, split: str) -> Drawn:
    name = f"{first_name(rng, split)} {last_name(rng, split)}"
    if rng.random() < 0.12:
        name = first_name(rng, split)
    elif rng.random() < 0.06:
        name = f"Dr. {name}"
    return name, name


def city(rng: random.Random, split: str) -> Drawn:
    name = pick(rng, "city", split) if rng.random() < 0.9 else words.made_up_word(rng, split).title()
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
    name = rng.choice(
        (f"{number} {base} {rng.choice(('Street', 'Road', 'Avenue', 'Lane', 'St', 'Drive', 'Way'))}",) * 3
        + (f"{base} {number}", f"{base} {rng.choice(('Street', 'Road', 'Square'))} {number}")
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
    text = rng.choice((f"{a}-{b}-{c}7", f"+{rng.randint(1, 99)} {a} {b} {c}", f"0{a} {b}{c}", f"{a} {b} {c}"))
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
    name = base if rng.random() < 0.25 else f"{base} {pick(rng, 'company_end', split)}"
    return name, name


def counted(value: int, rng: random.Random) -> str:
    return _SMALL[value] if value < len(_SMALL) and rng.random() < 0.35 else str(value)


def quantity(rng: random.Random, split: str) -> Drawn:
    value = (
        rng.randint(1, 12)
        if rng.random() < 0.6
        else (rng.randint(2, 99) if rng.random() < 0.7 else number_in_split(rng, 100, 900, split))
    )
    return value, counted(value, rng)


def count_number(low: int, high: int) -> Draw:
    def draw(rng: random.Random, split: str) -> Drawn:
        value = number_in_split(rng, low, high, split)
        return value, str(value)

    return draw


def money(rng: random.Random, split: str) -> Drawn:
    roll = rng.random()
    if roll < 0.4:
        value = number_in_split(rng, 2, 2500, split)
        return value, str(value)
    cents = number_in_split(rng, 150, 200000, split)
    value = cents / 100
    if not of_split(value, split):
        return money(rng, split)
    text = f"{value:.2f}"
    # The answer is written as JSON would write the number: 12.5, not 12.50.
    return (
        (int(value), str(int(value)))
        if value == int(value)
        else (value, text if rng.random() < 0.6 else f"{value:g}")
    )


def measured(rng: random.Random, split: str) -> Drawn:
    roll = rng.random()
    if roll < 0.35:
        value: float = number_in_split(rng, 1, 2000, split)
    else:
        value = number_in_split(rng, 11, 9999, split) / rng.choice((10, 10, 100))
    if rng.random() < 0.12:
        value = -value
    if not of_split(value, split):
        return measured(rng, split)
    if value == int(value):
        value = int(value)
    return value, f"{value:g}" if abs(value) < 1000 else str(value)


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
    return day.isoformat(), text


def clock(rng: random.Random, split: str) -> Drawn:
    hour, minute = rng.randrange(24), rng.choice((0, 0, 0, 15, 30, 45, rng.randrange(60)))
    value = f"{hour:02d}:{minute:02d}"
    half = "am" if hour < 12 else "pm"
    hour12 = (hour + 11) % 12 + 1
    spoken = f"{hour12}:{minute:02d}" if minute else str(hour12)
    text = rng.choice((value, value, f"{spoken} {half}", f"{spoken}{half}"))
    if hour == 12 and minute == 0 and rng.random() < 0.5:
        text = "noon"
    return value, text


def code(prefixes: tuple[str, ...]) -> Draw:
    def draw(rng: random.Random, split: str) -> Drawn:
        prefix = rng.choice((*prefixes, letters(rng, 2), letters(rng, 1), letters(rng, 3)))
        joint = rng.choice(("-", "", "-"))
        text = f"{prefix}{joint}{number_in_split(rng, 100, 99999, split)}"
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
    if rng.random() < 0.25:
        name = name.title()
    return name, name


def venue(rng: random.Random, split: str) -> Drawn:
    place = pick(rng, "venue", split).title()
    base = last_name(rng, split) if rng.random() < 0.6 else pick(rng, "word", split).title()
    name = rng.choice(
        (f"{base} {place}", f"{base} {place}", f"Room {rng.randint(1, 99)}", f"the {place.lower()}")
    )
    return name, name


def bug_title(rng: random.Random, split: str) -> Drawn:
    text = f"{pick(rng, 'component', split)} {pick(rng, 'symptom', split)}"
    return text, text


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
