"""What a record domain is: fields, their names, and how people speak of them.

Enters: nothing. Leaves: the types the domains are written in, and the field
kinds that several of them use.  Cost: none.

Every field has key names for training and others kept for the test; every
domain has templates for training and others kept for the test.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from training import values as v


@dataclass(frozen=True)
class Slot:
    kind: v.Kind
    names: tuple[str, ...]
    test_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class ListSlot:
    """An array: of plain values (one inner slot) or of records (several)."""

    inner: dict[str, Slot]
    names: tuple[str, ...]
    forms: tuple[str, ...]
    test_names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Domain:
    slots: dict[str, Slot | ListSlot]
    train: tuple[str, ...]
    test: tuple[str, ...]
    clauses: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)


def names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def s(kind: v.Kind, keys: str, test_keys: str = "") -> Slot:
    return Slot(kind, names(keys), names(test_keys))


PERSON = v.string(v.person)
CITY = v.string(v.city)
DATE = v.Kind(v.DATE, v.date)
TIME = v.Kind(v.TIME, v.clock)
MONEY = v.Kind(v.NUMBER, v.money)
CURRENCY = v.enum({"EUR": ("euros", "euro"), "USD": ("dollars", "US dollars"), "GBP": ("pounds",)})
