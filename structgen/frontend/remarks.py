"""Keywords in a Python type's schema for conditions that only parsing checks, and their text in reports."""

from __future__ import annotations

VALIDATOR, CLOCK, FILE = "x-validator", "x-clock", "x-file"
REMARKS = {
    VALIDATOR: "a validator written in Python: only parsing tells",
    CLOCK: "the bound moves with the clock; the one of the time of compiling is enforced",
    FILE: "whether there is such a file is not known to a grammar",
}
