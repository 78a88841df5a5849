"""Keywords in a Python type's schema that name what is left to parsing, and what a report says of it."""

from __future__ import annotations

__all__ = ["CLOCK", "CONTENT", "FILE", "REMARKS", "VALIDATOR"]

VALIDATOR, CLOCK, FILE, CONTENT = "x-validator", "x-clock", "x-file", "x-content"
REMARKS = {
    VALIDATOR: "a validator written in Python: only parsing tells",
    CLOCK: "the bound moves with the clock; the one of the time of compiling is enforced",
    FILE: "whether there is such a file is not known to a grammar",
    CONTENT: "the string holds JSON; what kind of JSON is left to parsing",
}
