"""Keywords in a Python type's schema that name what is left to parsing, and what a report says of it."""

from __future__ import annotations

__all__ = ["CLOCK", "FILE", "REMARKS", "VALIDATOR"]

VALIDATOR, CLOCK, FILE = "x-validator", "x-clock", "x-file"
REMARKS = {
    VALIDATOR: "a validator written in Python: only parsing tells",
    CLOCK: "the bound moves with the clock; the one of the time of compiling is enforced",
    FILE: "whether there is such a file is not known to a grammar",
}
