"""The protocol of an engine in a benchmark: compile a schema, start a sequence, fill a mask, accept a token.

An engine that supports a limit gets the number of remaining tokens with each mask.

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
    """The engine does not take this schema. The text of the exception has the reason."""


class LimitTooSmall(Exception):
    """No text of the schema fits into the remaining tokens. The text of the exception says how many tokens
    suffice."""


class Missing(Exception):
    """The engine is not installed. The text of the exception has the command that installs it."""


def no_failure() -> str:
    return ""


@dataclass(slots=True)
class Sequence:
    """One sequence being matched. `fill()` writes the mask row; `accept(token)` is false on refusal.

    `fill_within(k)` is `fill` for an engine that gets the number of remaining tokens, the next one and the
    end-of-sequence token included, and steers towards an end in time; it may raise `LimitTooSmall`. None if
    the engine has no such feature.
    """

    fill: Callable[[], Any]
    accept: Callable[[int], Any]
    row: Row  # bit t of word t // 32 is 1 where token t is allowed
    # the message of an engine that failed inside a sequence, otherwise ""
    failure: Callable[[], str] = no_failure
    fill_within: Callable[[int], Any] | None = None

    def allows(self, token: int) -> bool:
        return bool((int(self.row[token >> 5]) >> (token & 31)) & 1)


class Grammar(Protocol):
    """A compiled schema."""

    @property
    def unenforced(self) -> tuple[str, ...]:
        """The parts of the schema that the engine reports as not enforced; empty if it reports nothing."""
        ...

    def sequence(self) -> Sequence:
        """Returns a new sequence. Sequences of one engine may share a row, so only one is used at a time."""
        ...


class Engine(Protocol):
    """An engine that the benchmark measures. `notes` lists in words what the engine lacks for a fair
    comparison; the report shows it.

    A class may also have `ends_in_time = True`: its sequences have `fill_within`. The attribute is read
    before any engine is built, so that a report can name the engines without it.
    """

    name: str
    version: str
    notes: tuple[str, ...]

    def compile(self, schema: str) -> Grammar:
        """Compiles JSON text; raises `Refused`."""
        ...


def row_of(size: int) -> Row:
    """Returns a mask row for `size` tokens."""
    return np.zeros((size + 31) // 32, dtype=np.int32)
