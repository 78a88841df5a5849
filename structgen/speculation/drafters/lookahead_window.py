"""Lookahead with the two-dimensional window: several generations of Jacobi iterations ride along, and each
column of them is an n-gram.

Enters: the target's most probable token behind each column. Leaves: n-grams that begin with the last token.
Cost: `window` times `ngram` - 1 more nodes in every forward, which pays only where width is nearly free.

Fu et al. 2024, *Break the sequential dependency of LLM inference using lookahead decoding*. Row 0 is the
oldest generation, a chain of guesses behind the text; below each of them hangs its column, one guess of
every later generation, each for the place behind the one above. That is a tree, so the forward that verifies
drafts scores the window too. The tokens found behind the columns are the next generation, and the oldest one
goes: what was row 1 stands one place nearer to the text, as the text is one token longer. `Lookahead` has
one generation, whose n-grams join guesses that were made under different pasts; a column's guesses were made
one from the other.
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
        # The paper begins with random tokens; tokens of the prompt are at least tokens of this text.
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
                # Row 1 is a place nearer to the text now, and so is the text's end.
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
