"""More of what people say in each domain: further fields, names of fields, sentences and clauses.

Enters: nothing. Leaves: `widened`, which adds these to a domain; training alone reads them, so the
test split keeps its sentences.  Cost: none.

A domain's own file has its core.  `facts_trade.py` and `facts_life.py` have clauses that fit beside
any of its sentences, so that texts are composed rather than chosen.
"""

from __future__ import annotations

from dataclasses import replace

from training.tasks.domain import Domain, ListSlot, Slot, names
from training.tasks.fact_kinds import More
from training.tasks.facts_life import LIFE
from training.tasks.facts_trade import TRADE

MORE: dict[str, More] = {**TRADE, **LIFE}


def widened(name: str, domain: Domain) -> Domain:
    """The domain with everything that `MORE` has for it."""
    more = MORE[name]
    every: list[Slot | ListSlot] = list(domain.slots.values())
    every += [inner for slot in every if isinstance(slot, ListSlot) for inner in slot.inner.values()]
    kept = {key for slot in every for key in slot.test_names}  # for the test
    slots: dict[str, Slot | ListSlot] = {}
    for key, slot in {**domain.slots, **more.slots}.items():
        known = (*slot.names, *names(more.keys.get(key, "")))
        slots[key] = replace(slot, names=tuple(n for n in dict.fromkeys(known) if n not in kept))
        if isinstance(slot, ListSlot) and key in more.forms:
            slots[key] = replace(slots[key], forms=(*slot.forms, *more.forms[key]))  # type: ignore[call-arg]
    clauses = dict(domain.clauses)
    for key, texts in more.clauses.items():
        train, test = clauses.get(key, ((), ()))
        clauses[key] = ((*train, *texts), test)
    return Domain(slots, (*domain.train, *more.train), domain.test, clauses, {**domain.groups, **more.groups})
