"""All record domains by name.

Enters: nothing. Leaves: `DOMAINS`.  Cost: none.
"""

from __future__ import annotations

from training.tasks.domain import Domain, ListSlot, Slot
from training.tasks.domains_life import BUGS, DATES, EVENTS, FLIGHTS, MEASUREMENTS, WEATHER
from training.tasks.domains_trade import ADDRESSES, INVOICES, ORDERS, PEOPLE

__all__ = ["DOMAINS", "Domain", "ListSlot", "Slot"]

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
