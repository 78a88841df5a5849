"""All record domains by name.

Enters: nothing. Leaves: `DOMAINS` of the test split, and `WIDENED`, those of training.  Cost: none.
"""

from __future__ import annotations

from training.tasks.domain import Domain, ListSlot, Slot
from training.tasks.domains_life import BUGS, DATES, EVENTS, FLIGHTS, MEASUREMENTS, WEATHER
from training.tasks.domains_trade import ADDRESSES, INVOICES, ORDERS, PEOPLE
from training.tasks.facts import widened

__all__ = ["DOMAINS", "WIDENED", "Domain", "ListSlot", "Slot"]

DOMAINS: dict[str, Domain] = {
    "people": PEOPLE,
    "addresses": ADDRESSES,
    "orders": ORDERS,
    "events": EVENTS,
    "bugs": BUGS,
    "measurements": MEASUREMENTS,
    "invoices": INVOICES,
    "weather": WEATHER,
    "flights": FLIGHTS,
    "dates": DATES,
}
WIDENED: dict[str, Domain] = {name: widened(name, domain) for name, domain in DOMAINS.items()}
