"""What the further facts of all domains are made of: the class `More`, and kinds of values that several use.

Enters: nothing. Leaves: `More`, makers of slots, kinds of values. Cost: none.
"""

# ruff: noqa: E501 - a template is one line of data

from __future__ import annotations

import random
from dataclasses import dataclass, field

from training import values as v
from training.tasks.domain import ListSlot, Slot, names, s


@dataclass(frozen=True)
class More:
    slots: dict[str, Slot | ListSlot] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)  # further key names of slots
    train: tuple[str, ...] = ()
    clauses: dict[str, tuple[str, ...]] = field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    forms: dict[str, tuple[str, ...]] = field(default_factory=dict)  # further forms of a list's rows


def minutes(keys: str) -> Slot:
    return s(v.Kind(v.INTEGER, v.duration("minute")), keys)


def count(low: int, high: int, keys: str) -> Slot:
    return s(v.Kind(v.INTEGER, v.count_number(low, high)), keys)


def measure(low: int, high: int, keys: str) -> Slot:
    """A number with a decimal in two of three cases."""

    def draw(rng: random.Random, _split: str) -> v.Drawn:
        value: float = rng.randint(low, high)
        if rng.random() < 0.65:
            value = (
                round(value + rng.randint(1, 9) / 10, 1)
                if rng.random() < 0.8
                else round(value + rng.randint(1, 99) / 100, 2)
            )
        if value == int(value):
            value = int(value)
        return value, v.grouped(repr(value), rng)

    return s(v.Kind(v.NUMBER, v.in_split(draw)), keys)


JOB = v.string(v.from_pool("job"))
WORD = v.string(v.phrase)
STATES = names(
    "AL AK AZ CA CO CT FL GA ID IL IN KS KY LA MA MD ME MI MN MO MT NC ND NE NH NJ NM NV NY OH OK OR PA SC TN TX UT VA VT WA WI WY"
)
STATE = v.string(lambda r, _p: (n := r.choice(STATES), n))
UNIT = v.string(
    lambda r, _p: (
        n
        := f"{r.choice(('Apt', 'Apt.', 'Unit', 'Suite', 'Flat', 'Floor', 'Apartment'))} {r.choice((str(r.randint(1, 40)), v.letters(r, 1), f'{r.randint(1, 20)}{v.letters(r, 1)}'))}",
        n,
    )
)
BROWSER = v.string(
    lambda r, _p: (n := r.choice(("Chrome", "Firefox", "Safari", "Edge", "Opera", "Brave", "Vivaldi")), n)
)
DIRECTION = v.string(
    lambda r, _p: (
        n := r.choice(("north", "south", "east", "west", "northwest", "southeast", "northeast", "southwest")),
        n,
    )
)
SEAT = v.string(lambda r, _p: (n := f"{r.randint(1, 42)}{v.letters(r, 1)}", n))
GATE = v.string(lambda r, _p: (n := f"{v.letters(r, 1)}{r.randint(1, 60)}", n))
VAGUE = v.string(v.vague_date)
SERVICE = v.string(
    lambda r, p: (
        n := r.choice(
            (
                f"{v.pick(r, 'word', p)} {r.choice(('design', 'repair', 'hosting', 'cleaning', 'consulting', 'training', 'delivery', 'rental', 'support', 'licence', 'printing'))}",
                r.choice(
                    (
                        "labour",
                        "materials",
                        "shipping",
                        "hosting",
                        "consulting",
                        "installation",
                        "maintenance",
                        "travel",
                    )
                ),
                v.goods(r, p, r.random() < 0.5),
            )
        ),
        n,
    )
)
ROWS = (
    "{product} for {price}", "a {product} for {price} euros", "{product} ({price})", "{product}: {price}", "{product} at {price} dollars",
    "{quantity} {product} for {price} dollars each", "{quantity} x {product} at ${price} each", "{quantity} x {product} @ ${price}", "{quantity} {product} at ${price}",
    "{quantity} x {product} at {price} EUR", "{quantity} {product} ({price} euros)", "{quantity}x {product}", "{product}, {quantity} pieces", "{product} {price}",
)  # fmt: skip
