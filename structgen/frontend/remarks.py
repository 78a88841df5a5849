"""Keywords for the conditions of a Python type that only parsing checks, with the text that reports show."""

from __future__ import annotations

VALIDATOR, CLOCK, FILE = "x-validator", "x-clock", "x-file"
REMARKS = {
    VALIDATOR: "a validator written in Python: only parsing tells",
    CLOCK: "the bound moves with the clock; the one of the time of compiling is enforced",
    FILE: "whether there is such a file is not known to a grammar",
}
