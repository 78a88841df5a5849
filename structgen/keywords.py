"""The keywords of JSON Schema as the core has them: csrc/schema/read/dialect.cc is the only list.

In: nothing. Out: names. Cost: one call of the core, at import.
"""

from __future__ import annotations

from . import _core

__all__ = ["ABOUT", "ASSERTING", "KNOWN"]

_ROWS = _core.keywords()
KNOWN = tuple(name for name, _, _ in _ROWS)
ASSERTING = tuple(name for name, _, asserts in _ROWS if asserts)  # a value can be invalid because of it
# keyword -> the one type of values that it asserts something about
ABOUT = {name: about for name, about, asserts in _ROWS if asserts and about != "any"}
