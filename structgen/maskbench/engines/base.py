"""The protocol of an engine in a benchmark: compile a schema, start a sequence, fill a mask, accept a token.

An engine that can use it gets the number of tokens that are left with each mask.

The timed calls are plain bound callables (`Sequence.fill`, `Sequence.accept`). They are prepared outside of
the measured time, so that the adapter's own Python adds little to an engine's figures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Row = npt.NDArray[np.int32]


class Refused(Exception):
    """The engine does not take this schema; the text says why."""


class LimitTooSmall(Exception):
    """No text of the schema fits into the tokens that are left; the text says how many it takes."""


class Missing(Exception):
    """The engine is not installed; the text says how to install it."""


def no_failure() -> str:
    return ""


@dataclass(slots=True)
class Sequence:
    """One sequence being matched. `fill()` writes the mask row; `accept(token)` is false on refusal.

    `fill_within(k)` is `fill` for an engine that is told how many tokens are left, the next one and the
    end-of-sequence token included, and steers towards an end in time; it may raise `LimitTooSmall`. None: the
    engine has no such feature.
    """

    fill: Callable[[], Any]
    accept: Callable[[int], Any]
    row: Row  # bit t of word t // 32 is 1 where token t is allowed
    failure: Callable[[], str] = no_failure  # a message when the engine broke in mid-sequence, else ""
    fill_within: Callable[[int], Any] | None = None

    def allows(self, token: int) -> bool:
        return bool((int(self.row[token >> 5]) >> (token & 31)) & 1)


class Grammar(Protocol):
    """A compiled schema."""

    @property
    def unenforced(self) -> tuple[str, ...]:
        """The parts of the schema that the engine does not enforce, as it says itself; empty if it says
        nothing."""
        ...

    def sequence(self) -> Sequence:
        """A fresh sequence. Sequences of one engine may share a row: one at a time is in use."""
        ...


class Engine(Protocol):
    """`notes` names what the engine lacks for a fair run, in words for the report.

    A class may also say `ends_in_time = True`: its sequences have `fill_within`. It is read before any engine
    is built, so that a report can name those that lack it.
    """

    name: str
    version: str
    notes: tuple[str, ...]

    def compile(self, schema: str) -> Grammar:
        """Compiles JSON text; raises `Refused`."""
        ...


def row_of(size: int) -> Row:
    """A mask row for `size` tokens."""
    return np.zeros((size + 31) // 32, dtype=np.int32)
