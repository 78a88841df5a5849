"""Fields with names never seen: the text labels each value with the field's own name.

Enters: a random generator and the split. Leaves: an example whose field names
are random words, kept apart between train and test.  Cost: microseconds.

This is the general skill behind unseen schemas: find the words of the field's
name in the text and copy what they are attached to.  `copies` is its simplest
form and comes first in training.
"""

from __future__ import annotations

import random
from typing import Any

from training import values as v
from training import words
from training.tasks.example import Example, object_schema
from training.tasks.records import case_style, cased, nullable

_KINDS: tuple[v.Kind, ...] = (
    v.string(v.phrase),
    v.string(v.phrase),
    v.string(v.person),
    v.string(v.city),
    v.string(v.product),
    v.string(v.code(("A", "X", "K"))),
    v.string(v.company),
    v.Kind(v.INTEGER, v.count_number(0, 9999)),
    v.Kind(v.INTEGER, v.quantity),
    v.Kind(v.NUMBER, v.measured),
    v.Kind(v.NUMBER, v.money),
    v.Kind(v.DATE, v.date),
    v.Kind(v.EMAIL, v.email),
    v.string(v.version),
)
_FORMS = {
    "train": (
        "{k}: {v}",
        "{k} {v}",
        "{k} = {v}",
        "the {k} is {v}",
        "{k} is {v}",
        "its {k} is {v}",
        "{v} is the {k}",
        "with {k} {v}",
        "{k} of {v}",
        "has {v} as {k}",
        "the {k} should be {v}",
        "set {k} to {v}",
        "(the {k}: {v})",
        "a {k} of {v}",
        "{v} as the {k}",
        "{k} has to be {v}",
        "{k} equals {v}",
        "{k} was {v}",
        "{k} will be {v}",
        "the {k} must equal {v}",
        "use {v} for {k}",
        "use {v} for the {k}",
        "take {v} as {k}",
        "{v} for {k}",
        "{k} -> {v}",
        "{k} as {v}",
        "my {k} is {v}",
        "this {k} is {v}",
        "your {k} will be {v}",
        "{k} changed to {v}",
        "{k} fixed at {v}",
        "let {k} be {v}",
        "we need {k} to be {v}",
        "put {v} in {k}",
        "{k} was set to the {v}",
        "for {k} we use {v}",
        "{k}, {v}",
        "{k} - {v}",
        "{k} should equal {v}",
        "keep {k} at {v}",
        "our {k} was {v}",
        "{k} can be {v}",
    ),
    "test": ("{k}: {v}", "our {k} is {v}", "use {v} as {k}", "the {k} must be {v}", "{k} set to {v}"),
}
_OPENINGS = {
    "train": (
        "",
        "",
        "",
        "record: ",
        "new entry: ",
        "please note: ",
        "for the file: ",
        "a {w} ",
        "item with ",
        "note: ",
        "we have ",
        "please save ",
        "entry: ",
        "with ",
    ),
    "test": ("", "please record: ", "entry with ", "we know that "),
}
_YES = {"true": ("yes", "true", "on"), "false": ("no", "false", "off")}


def _key(rng: random.Random, split: str, taken: set[str]) -> str:
    while True:
        parts = [
            v.pick(rng, "word", split) if rng.random() < 0.8 else words.made_up_word(rng, split)
            for _ in range(rng.choice((1, 1, 1, 2, 2)))
        ]
        key = "_".join(parts)
        if not taken.intersection(parts):
            taken.update(parts)
            return key


def write(rng: random.Random, split: str) -> Example:
    taken: set[str] = set()
    style = case_style(rng)
    fields: dict[str, dict[str, Any]] = {}
    answer: dict[str, Any] = {}
    parts: list[str] = []
    one_form = rng.random() < 0.35
    form = rng.choice(_FORMS[split])
    for _ in range(rng.choices((1, 2, 3, 4, 5, 6), (0.1, 0.2, 0.25, 0.2, 0.15, 0.1))[0]):
        key = _key(rng, split, taken)
        name = cased(key, style)
        spoken = key.replace("_", " ") if rng.random() < 0.9 else name
        roll = rng.random()
        if roll < 0.1:
            choices = [v.pick(rng, "word", split) for _ in range(rng.randint(2, 5))]
            choices = list(dict.fromkeys(choices))
            value: Any = rng.choice(choices)
            schema: dict[str, Any] = {"type": "string", "enum": choices}
            surface = value
        elif roll < 0.17:
            word = rng.choice(("true", "false"))
            value, surface, schema = word == "true", rng.choice(_YES[word]), v.BOOLEAN
        elif roll < 0.25:
            drawn = [
                rng.choice((v.person, v.city, v.phrase))(rng, split)[0] for _ in range(rng.randint(1, 4))
            ]
            value, schema = drawn, {"type": "array", "items": v.STRING}
            surface = ", ".join(drawn[:-1]) + " and " + drawn[-1] if len(drawn) > 1 else drawn[0]
        else:
            kind = rng.choice(_KINDS)
            (value, surface), schema = kind.draw(rng, split), kind.schema
        asked = rng.random()
        if asked < 0.08:  # asked for, not stated
            fields[name], answer[name] = nullable(schema), None
            continue
        if not one_form:
            form = rng.choice(_FORMS[split])
        parts.append(form.replace("{k}", spoken).replace("{v}", str(surface)))
        if asked < 0.9:
            fields[name], answer[name] = (nullable(schema) if rng.random() < 0.12 else schema), value
    if not fields or not parts:
        return write(rng, split)
    rng.shuffle(parts)
    opening = rng.choice(_OPENINGS[split]).replace("{w}", v.pick(rng, "word", split))
    text = opening + rng.choice((", ", "; ", ". ", ", ")).join(parts) + rng.choice((".", ""))
    if rng.random() < 0.5:
        text = text[:1].upper() + text[1:]
    if rng.random() < 0.3:
        order = list(fields)
        rng.shuffle(order)
        fields, answer = {k: fields[k] for k in order}, {k: answer[k] for k in order}
    return Example("keyed", text, object_schema(fields), answer, split == "test")


def copies(rng: random.Random, split: str) -> Example:
    """A few labelled strings, to be copied out: what lets copying form early."""
    fields: dict[str, dict[str, Any]] = {}
    answer: dict[str, Any] = {}
    parts: list[str] = []
    taken: set[str] = set()
    for _ in range(rng.randint(1, 4)):
        key = _key(rng, split, taken)
        value = " ".join(
            words.made_up_word(rng, split) if rng.random() < 0.6 else v.pick(rng, "word", split)
            for _ in range(rng.randint(1, 4))
        )
        if rng.random() < 0.4:
            value = value.title()
        if rng.random() < 0.25:
            value += f" {v.number_in_split(rng, 0, 9999, split)}"
        parts.append(f"{key.replace('_', ' ')}: {value}")
        fields[key], answer[key] = v.STRING, value
    rng.shuffle(parts)
    return Example("copy", "; ".join(parts), object_schema(fields), answer)
