"""Records about things of every kind: books, ships, recipes, machines, and what they have.

Enters: a random generator and the split. Leaves: an example whose field names are English nouns that
belong to no domain, in sentences, forms and lists.  Cost: microseconds.

Beside `keyed`, whose field names are random words: here a name says what kind of value to look for,
and the text may use another form of the name, or only say the value in its place.
"""

# ruff: noqa: E501 - a line of data is one line

from __future__ import annotations

import random
from typing import Any

from training import templates, words
from training import values as v
from training.tasks.distractors import distractor
from training.tasks.example import Example, object_schema
from training.tasks.records import case_style, cased, joined, nullable


def _number(low: int, high: int) -> v.Draw:
    return v.count_number(low, high)


def _decimal(rng: random.Random, split: str) -> v.Drawn:
    value: float = round(
        rng.choice((rng.random() * 10, rng.random() * 100, rng.random() * 1000)), rng.choice((1, 1, 2))
    )
    if rng.random() < 0.25 or value == int(value):
        value = int(value)
    return value, v.grouped(repr(value), rng)


def _title(rng: random.Random, split: str) -> v.Drawn:
    text = " ".join(
        words.made_up_word(rng, split)
        if rng.random() < 0.3
        else v.pick(rng, rng.choice(("word", "good", "topic")), split)
        for _ in range(rng.choice((1, 2, 2, 3)))
    ).title()
    if rng.random() < 0.35:
        text = f"The {text}"
    return text, text


def _list(rng: random.Random, split: str) -> v.Drawn:
    one = rng.choice(
        (
            v.phrase,
            v.person,
            v.city,
            v.product,
            v.from_pool("topic"),
            v.from_pool("material"),
            v.from_pool("good"),
        )
    )
    found = list(dict.fromkeys(one(rng, split)[0] for _ in range(rng.choice((1, 2, 3, 3, 4, 5)))))
    return found, joined(found, rng)


_KINDS: dict[str, tuple[dict[str, Any], v.Draw]] = {
    "person": (v.STRING, v.person), "city": (v.STRING, v.city), "country": (v.STRING, v.country), "company": (v.STRING, v.company),
    "title": (v.STRING, _title), "word": (v.STRING, v.phrase), "colour": (v.STRING, v.from_pool("material")), "code": (v.STRING, v.code(("A", "X", "K"))),
    "thing": (v.STRING, v.product), "count": (v.INTEGER, _number(1, 999)), "small": (v.INTEGER, v.quantity), "year": (v.INTEGER, v.in_split(lambda r, _p: (n := r.randint(1850, 2035), str(n)))),
    "decimal": (v.NUMBER, v.in_split(_decimal)), "money": (v.NUMBER, v.money), "date": (v.DATE, v.date), "vague": (v.STRING, v.vague_date), "time": (v.TIME, v.clock),
    "minutes": (v.INTEGER, v.duration("minute")), "days": (v.INTEGER, v.duration("day")), "hours": (v.INTEGER, v.duration("hour")), "email": (v.EMAIL, v.email), "phone": (v.STRING, v.phone),
    "version": (v.STRING, v.version), "list": ({"type": "array", "items": v.STRING}, _list), "bool": (v.BOOLEAN, lambda r, _p: r.choice(((True, "yes"), (False, "no"), (True, "true"), (False, "false")))),
    "job": (v.STRING, v.from_pool("job")), "percent": (v.INTEGER, lambda r, _p: (n := r.randint(0, 100), f"{n}{r.choice(('%', ' percent', '%'))}")),
}  # fmt: skip
# Each noun: the kind of its values; a bar parts spoken forms of one field, the first gives its name.
_NOUNS: dict[str, str] = {
    "person": "author|written by|author; captain|captain|skipper; director|directed by|director; owner|owned by|owner; editor; driver; teacher; singer|sung by; chef; doctor; winner|won by; pilot; designer|designed by; engineer; coach; president; founder|founded by; inventor; sender; receiver; seller; buyer; artist|painted by; composer; guide; keeper; chairman; inspector; witness; tenant; landlord; translator; narrator; architect|built by; signed_by; contact_person; first_speaker; second_speaker",
    "city": "harbour|home port; birthplace|born in; headquarters|based in; capital; venue_city; start_city|starting in; end_city|ending in; branch; destination; station; hometown",
    "country": "flag|flag of; origin|made in; country_of_origin|from; nation; market",
    "company": "publisher|published by; manufacturer|made by; brand|by; bank; insurer; employer; supplier; label; sponsor|sponsored by; dealer; carrier; studio; operator|operated by",
    "title": "book|the book; film|the film; ship|the ship; song|the song; album; game; recipe; course; play; painting; exhibition; restaurant; hotel; horse; boat; project; product_name; chapter; series; magazine; team|the team; club",
    "word": "genre; style; category; topic|about; language|in; species; breed; habitat; flavour; purpose; note; subject; status; condition; mood; method; theme; cuisine; diagnosis; symptom; treatment; hobby; sport; instrument; field; nickname; reason; label; tag",
    "colour": "color|colour; material|made of; finish; size; shape; texture; paint; fabric", "code": "serial|serial number; model|model; plate|licence plate; tracking|tracking number; isbn|ISBN; part_number; batch; sku|SKU; room; case_number; barcode; reference; member_id; locker; shelf; container",
    "thing": "item; device; object; tool; prize; gift; machine; vehicle; main_course; dessert; equipment", "count": "pages|pages; crew|a crew of; members; seats; rooms; students; employees; players; copies; stock|in stock; visitors; population; floors; votes; points|points; lines; calories; horsepower; rank; episodes; goals; tickets_sold; downloads; mileage",
    "small": "servings|serves; doors; wheels; bedrooms; bathrooms; children; lanes; chapters; levels; wins; losses; players; eggs; stops; attempts; stars; engines; legs", "year": "year|published; founded|founded in; built|built in; released|released in; model_year; vintage; born|born in; opened|opened in; established",
    "decimal": "length|a length of; width|a width of; height|a height of; weight|weighs; depth; distance; area; volume; voltage; current; power; rating|rated; score; speed|a speed of; capacity; thickness; radius; temperature; pressure; ph|pH; dose; efficiency; magnitude; ratio; frequency; consumption; altitude; grade",
    "money": "price|costs; fee; rent; budget|a budget of; cost; value|valued at; fine; revenue; deposit; donation; prize_money; shipping|shipping costs; tip; wage; loss; profit", "date": "deadline|due; opening|opens on; published_on; inspected|inspected on; last_service; expiry|expires; delivery; purchased|bought on; premiere; departure; renewal; closing; ordered_on; received",
    "vague": "meeting_day; next_visit; pickup; available_from", "time": "opens|opens at; closes|closes at; starts_at; alarm; lunch; check_in; check_out; pickup_time", "minutes": "duration_minutes|takes; minutes|ready in; running_time|runs for; cooking_time; delay|delayed by; prep_minutes; length_minutes|lasts; playing_time",
    "days": "days; delivery_days|delivered within; trial_days; warranty_days", "hours": "hours|for; battery_hours; opening_hours; flight_hours", "email": "email; support|support at; contact", "phone": "phone; hotline; fax", "version": "version; firmware; release",
    "list": "ingredients; members_list; colors|colours; languages|speaks; tags; toppings; features; materials; cast|starring; tools; guests; stops_list|stops at; symptoms; hobbies; countries; skills; topics; allergens; winners; keywords; parts",
    "bool": "enabled; active; available; vegan; furnished; insured; waterproof; refundable; archived; verified; signed; electric; in_stock; locked", "job": "role; occupation; rank_name; trade; function", "percent": "battery; progress; discount; alcohol; share; humidity; fat; completion; probability; tax_rate",
}  # fmt: skip
_FIELDS: tuple[tuple[str, str, tuple[str, ...]], ...] = tuple(
    (parts[0].strip(), kind, tuple(p.strip() for p in (parts[1:] or [parts[0].strip().replace("_", " ")])))
    for kind, line in _NOUNS.items()
    for parts in (noun.split("|") for noun in line.split(";"))
)
_HAS = (
    "it has {k} {v}", "{k}: {v}", "the {k} is {v}", "its {k} is {v}", "with {k} {v}", "{k} {v}", "{v} is the {k}", "{k} = {v}", "{k} - {v}",
    "has {v} as {k}", "the {k}: {v}", "and the {k} {v}", "{k} of {v}", "a {k} of {v}", "for {k} it says {v}", "as {k} we have {v}", "{k}, {v}",
)  # fmt: skip
_PLAIN_HAS = (
    "{k} {v}",
    "{k} {v}",
    "it is {k} {v}",
    "and {k} {v}",
    "{k}: {v}",
)  # for spoken forms that are no noun
_UNITS = {
    "decimal": ("", "", " m", " kg", " cm", " km", " V", " A", " C", " l", " mm", " kW", " g", " points"),
    "money": (" euros", " dollars", " EUR", " USD", ""),
}


def _sentence(parts: list[str], rng: random.Random) -> str:
    """Facts in a row, joined as people join them."""
    if len(parts) > 2 and rng.random() < 0.4:
        return ", ".join(parts[:-1]) + " and " + parts[-1]
    return rng.choice((", ", ", ", "; ", " and ", ". ")).join(parts)


def write(rng: random.Random, split: str) -> Example:
    count = rng.choice((1, 2, 3, 3, 4, 4, 5, 6, 7))
    if rng.random() < 0.3:  # several of one kind: the name must tell them apart
        kind = rng.choice(("person", "date", "money", "decimal", "count", "city", "title", "time"))
        chosen = rng.sample(
            [one for one in _FIELDS if one[1] == kind], min(count, 4, sum(one[1] == kind for one in _FIELDS))
        )
        chosen += rng.sample(_FIELDS, max(0, count - len(chosen)))
    else:
        chosen = rng.sample(_FIELDS, count)
    style = case_style(rng)
    fields: dict[str, Any] = {}
    answer: dict[str, Any] = {}
    said: list[str] = []
    form = rng.random() < 0.3
    mark, join = rng.choice((": ", ": ", " = ", "=", ":", " - ")), rng.choice((", ", "; ", ". ", " ", " | "))
    label = (
        rng.choice((str.title, str.capitalize, str.lower))
        if join != " "
        else rng.choice((str.title, str.capitalize))
    )
    for noun, kind, spoken in chosen:
        name = cased(noun, style)
        if name in fields:
            continue
        schema, draw = _KINDS[kind]
        value, surface = draw(rng, split)
        surface = str(surface)
        if kind in _UNITS and rng.random() < 0.7:
            surface += rng.choice(_UNITS[kind])
        if kind == "title" and rng.random() < 0.2:
            surface = f'"{surface}"'
        roll = rng.random()
        if roll < 0.07 and len(chosen) > 1:  # asked for, not said
            fields[name], answer[name] = (
                nullable(schema) if kind != "list" else schema,
                None if kind != "list" else [],
            )
            continue
        shown = noun.replace("_", " ")
        if form:
            said.append(f"{label(shown)}{mark}{surface}")
        else:
            how = rng.choice(spoken)
            if kind == "bool":
                no = "not " if not value else ""
                said.append(
                    rng.choice(
                        (
                            f"it is {no}{shown}",
                            f"{no}{shown}",
                            f"{shown}: {surface}",
                            f"{shown} is {surface}",
                            f"{shown} = {surface}",
                        )
                    )
                )
            elif kind == "count" and rng.random() < 0.4:
                said.append(
                    rng.choice((f"{surface} {shown}", f"it has {surface} {shown}", f"with {surface} {shown}"))
                )
            elif how != shown and rng.random() < 0.6:
                said.append(rng.choice(_PLAIN_HAS).replace("{k}", how).replace("{v}", surface))
            else:
                said.append(rng.choice(_HAS).replace("{k}", shown).replace("{v}", surface))
        if roll < 0.92:
            fields[name], answer[name] = (
                (nullable(schema) if rng.random() < 0.15 and kind != "list" else schema),
                value,
            )
    if not fields or not said:
        return write(rng, split)
    if form:
        text = join.join(said)
    else:
        if rng.random() < 0.3:
            rng.shuffle(said)
        groups: list[str] = []
        while said:
            size = rng.choice((1, 1, 2, 3))
            groups.append(_sentence(said[:size], rng))
            said = said[size:]
        if rng.random() < 0.25:
            groups.insert(rng.randrange(len(groups) + 1), distractor(rng, split))
        up = rng.random() < 0.75
        text = ". ".join(g[:1].upper() + g[1:] if up and g[0] not in '"' else g for g in groups) + rng.choice(
            (".", ".", "")
        )
    if rng.random() < 0.4:
        order = list(fields)
        rng.shuffle(order)
        fields, answer = {k: fields[k] for k in order}, {k: answer[k] for k in order}
    return Example("things", text, object_schema(fields), answer)


_PAIRS = (
    (("old", "new"), ("my {a} address was {x}, the {b} one is {y}", "{a} address: {x}. {b} address: {y}", "I moved from {x} to {y}", "the {b} address is {y}, the {a} one was {x}")),
    (("from", "to"), ("the parcel goes from {x} to {y}", "from: {x}. to: {y}", "pick it up at {x} and bring it to {y}", "moving from {x} to {y}")),
    (("billing", "shipping"), ("billing address: {x}. shipping address: {y}", "bill to {x}, ship to {y}", "ship to {y}. the bill goes to {x}", "billing: {x}; shipping: {y}")),
    (("sender", "recipient"), ("from {x} to {y}", "sender: {x}. recipient: {y}", "{x} sends a parcel to {y}", "sender {x}; recipient {y}")),
    (("home", "work"), ("I live at {x} and work at {y}", "home: {x}; work: {y}", "home address {x}, work address {y}")),
)  # fmt: skip


def pairs(rng: random.Random, split: str) -> Example:
    """Two records of one kind in one text, each in an object of its own."""
    (one, two), forms = rng.choice(_PAIRS)
    keys = rng.choice(
        (
            ("street", "city"),
            ("street", "city", "postcode"),
            ("street", "zip", "city"),
            ("name", "street", "city"),
            ("name", "city"),
        )
    )
    if one == "sender":
        keys = rng.choice((("name", "city"), ("name", "street", "city"), ("name", "email"), ("name", "city")))
    kinds = {
        "street": v.street,
        "city": v.city,
        "postcode": v.postal_code,
        "zip": v.postal_code,
        "name": v.person,
        "email": v.email,
    }
    answers, shown = [], []
    same = rng.random() < 0.6
    for at in range(2):
        mine = keys if same or at else keys[: max(2, len(keys) - 1)]
        drawn = {k: kinds[k](rng, split)[0] for k in mine}
        answers.append(drawn)
        shown.append(
            rng.choice((", ", ", ", " in " if len(mine) == 2 and "street" in mine else ", ")).join(
                drawn.values()
            )
        )
    text = templates.choose(rng.choice(forms), rng)
    text = text.replace("{a}", one).replace("{b}", two).replace("{x}", shown[0]).replace("{y}", shown[1])
    if rng.random() < 0.3:
        text = rng.choice((distractor(rng, split) + ". " + text, text + ". " + distractor(rng, split)))
    end = rng.choice(("", "_address", "_address")) if "street" in keys else ""
    style = case_style(rng)
    names = [cased(one + end, style), cased(two + end, style)]
    fields = {n: object_schema(dict.fromkeys(a, v.STRING)) for n, a in zip(names, answers, strict=True)}
    answer = dict(zip(names, answers, strict=True))
    return Example(
        "pairs", text[:1].upper() + text[1:] + rng.choice((".", ".", "")), object_schema(fields), answer
    )
