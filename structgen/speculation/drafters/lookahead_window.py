"""Lookahead with the two-dimensional window: each forward pass scores several generations of Jacobi guesses,
and each column of guesses becomes an n-gram.

Enters: the target's most probable token behind each column. Leaves: n-grams that begin with the last token.
Cost: `window` times `ngram` - 1 more nodes in every forward pass, which pays only if additional width is
nearly free.

Fu et al. 2024, *Break the sequential dependency of LLM inference using lookahead decoding*. Row 0 is the
oldest generation, a chain of guesses behind the text. Below each guess hangs its column: one guess of each
later generation, for the place behind the guess above. The window is a tree, so the forward pass that
verifies drafts scores the window, too. The target's tokens behind the columns become the next generation, and
the oldest generation is dropped: the text is one token longer, so row 1 is the chain behind the text now.
`Lookahead` has one generation, and its n-grams join guesses that were made behind different texts. Guesses of
a column were made one behind the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base import Cursor, DrafterSettings, Quiet, Start, Step, bounded
from .lookahead import Pool


@dataclass(eq=False)
class LookaheadWindow(DrafterSettings):
    """Drafts from the n-grams of a window.

    Args:
        window: the number of columns.
        ngram: the number of tokens of an n-gram, which is one more than the number of generations.
        keys: the most first tokens whose n-grams are kept.
    """

    has_distribution = False
    name = "lookahead window"

    window: int = 5
    ngram: int = bounded(4, 2)
    keys: int = 4096

    def open(self, start: Start) -> _Session:
        return _Session(self, start.prompt)


class _Session(Quiet):
    """The window of one text. `_rows[r][c]` is a guess for the place r + c behind the next one."""

    def __init__(self, drafter: LookaheadWindow, prompt: Sequence[int]) -> None:
        self._width = drafter.window
        self._height = drafter.ngram - 1
        self._pool = Pool(drafter.keys)
        self._last = prompt[-1]
        # The paper begins with random tokens. Here the window begins with tokens of the prompt, which are
        # tokens of this text at least.
        self._filler = list(prompt)
        self._used = 0
        self._rows: list[list[int]] = [self._filled([])]

    def probes(self) -> Sequence[int]:
        return [token for row in self._rows for token in row]

    def probe_parents(self) -> Sequence[int]:
        return [i - 1 if i < self._width else i - self._width for i in range(len(self._rows) * self._width)]

    def accept(self, step: Step) -> None:
        rows, gone = self._rows, len(step.tokens)
        if len(step.probes) == len(rows) * self._width:
            fresh = list(step.probes[-self._width :])
            for first, *column in zip(*rows, fresh, strict=True):
                self._pool.learn(first, tuple(column))
            rows = [*rows, fresh]
            if len(rows) > self._height:
                # The text is one token longer, so row 1 is one place nearer to its end.
                rows, gone = rows[1:], gone - 1
        self._rows = [self._filled(row[gone:]) for row in rows]
        self._last = step.tokens[-1]

    def _filled(self, row: list[int]) -> list[int]:
        row = list(row)
        while len(row) < self._width:
            row.append(self._filler[self._used % len(self._filler)])
            self._used += 7
        return row

    def cursor(self) -> Cursor | None:
        return self._pool.cursor(self._last)
