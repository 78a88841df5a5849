"""A trigram table over answers (and prompts), as in adaptive draft-verification.

Enters: texts. Leaves: the tokens that followed the last two tokens, with counts. Cost: one counter for each
pair that occurred, at most `pairs` of them; the oldest are dropped first.

Liu et al. 2024 (ADED) search such a table with Monte Carlo tree search, rewarding what was accepted. Here
the tree is grown best first with probabilities that running acceptance corrects, which does the same without
playouts.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from ..._fork import hold_over_forks
from ..base import Cursor, DrafterSettings, Here, Quiet, Start, Step

_OFFERED = 4


@dataclass(eq=False)
class Trigram(DrafterSettings):
    """Drafts by trigram counts, shared by all texts.

    Args:
        pairs: contexts kept.
        prompts: learn from prompts too.
    """

    has_distribution = False
    name = "trigram"

    pairs: int = 1 << 17
    _: KW_ONLY
    prompts: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._counts: OrderedDict[tuple[int, int], dict[int, float]] = OrderedDict()
        self._lock = threading.Lock()
        hold_over_forks(self)

    def open(self, start: Start) -> _Session:
        if self.prompts:
            prompt = start.prompt
            for i in range(2, len(prompt)):
                self.learn(prompt[i - 2], prompt[i - 1], prompt[i])
        return _Session(self, start.prompt)

    def learn(self, a: int, b: int, c: int) -> None:
        """Counts that c followed a and b. Old counts fade, so one user's table adapts to the next user."""
        with self._lock:
            row = self._counts.get((a, b))
            if row is None:
                row = self._counts[a, b] = {}
                if len(self._counts) > self.pairs:
                    self._counts.popitem(last=False)
            if len(row) >= 4 * _OFFERED and c not in row:
                del row[min(row, key=row.__getitem__)]
            for token in row:
                row[token] *= 0.95
            row[c] = row.get(c, 0.0) + 1.0

    def offers(self, a: int, b: int) -> Sequence[tuple[int, float]]:
        """Returns (token, share of the counts), best first."""
        with self._lock:
            row = self._counts.get((a, b))
            if row is None:
                return ()
            best = sorted(row.items(), key=lambda item: -item[1])[:_OFFERED]
            total = sum(row.values()) + 0.5
        return [(token, count / total) for token, count in best]


class _Session(Quiet):
    def __init__(self, table: Trigram, prompt: Sequence[int]) -> None:
        self._table = table
        self._pair = (prompt[-2] if len(prompt) > 1 else -1, prompt[-1])

    def accept(self, step: Step) -> None:
        for token in step.tokens:
            self._table.learn(*self._pair, token)
            self._pair = (self._pair[1], token)

    def cursor(self) -> Cursor | None:
        return _Cursor(self._table, *self._pair)


class _Cursor:
    __slots__ = ("_a", "_b", "_table")

    def __init__(self, table: Trigram, a: int, b: int) -> None:
        self._table = table
        self._a = a
        self._b = b

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        return self._table.offers(self._a, self._b)

    def step(self, token: int) -> _Cursor | None:
        return _Cursor(self._table, self._b, token)
