"""What a benchmark needs of an engine: compile a schema, start a sequence, fill a mask, accept a token.

The timed calls are plain bound callables (`Sequence.fill`, `Sequence.accept`), prepared outside the
clock, so that no engine pays for the adapter's own Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Refused(Exception):
    """The engine does not take this schema; the text says why."""


@dataclass(slots=True)
class Sequence:
    """One sequence being matched. `fill()` writes the mask row; `accept(token)` is false on refusal."""

    fill: Callable[[], object]
    accept: Callable[[int], bool]
    row: np.ndarray  # int32, bit t of word t // 32 is 1 where token t is allowed
    failure: Callable[[], str]  # a message when the engine broke in mid-sequence, else ""

    def allows(self, token: int) -> bool:
        return bool((int(self.row[token >> 5]) >> (token & 31)) & 1)


class Grammar(Protocol):
    def sequence(self) -> Sequence:
        """A fresh sequence."""


class Engine(Protocol):
    name: str
    version: str

    def compile(self, schema: str) -> Grammar:
        """Compile JSON text; raises `Refused`."""
