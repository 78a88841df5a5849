"""Token recycling: drafts the tokens that the target found likely behind the last tokens, when it last scored
them.

Enters: the target's most probable tokens at every scored place, also at refused drafts. Leaves: up to eight
children of any token. Cost: 96 bytes and a dictionary entry for each of at most `contexts` contexts;
`longest` dictionary operations for each scored place.

Luo et al. 2024, *Turning Trash into Treasure*. The paper keeps one row for each token. Here the last two and
three tokens also have rows, and these are looked up first. An empty row offers nothing (the reference drafts
token 0). Rows of refused drafts are written first, then the rows of the text, so the text's rows win. The
paper fixes its tree in advance; here the tree grows by path probability like any other.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..._fork import hold_over_forks
from ..base import LIKELY, DrafterSettings, Here, Likely, Start, bounded
from .ranking import RecentCursor, RecentSession, ranked

# Offers below this are hardly ever accepted, and each takes a check against the grammar.
_LEAST = 0.003
_FIRST = 1024  # rows to begin with; they double


@dataclass(eq=False)
class TokenRecycling(DrafterSettings):
    """Drafts from a table of successors, shared by all texts.

    Args:
        longest: the largest number of tokens of a context.
        width: the largest number of children offered.
        contexts: the largest number of contexts to keep. The contexts that were written first are dropped
            first.
    """

    has_distribution = False
    name = "token recycling"

    longest: int = 3
    width: int = bounded(LIKELY, 1, LIKELY)
    contexts: int = 1 << 16

    def __post_init__(self) -> None:
        super().__post_init__()
        self._slots: dict[tuple[int, ...], int] = {}
        self._owners: list[tuple[int, ...]] = []
        self._next = 0
        self._ids = np.empty((_FIRST, LIKELY), np.int64)
        self._logprobs = np.empty((_FIRST, LIKELY), np.float32)
        self._lock = threading.Lock()
        hold_over_forks(self)

    def open(self, start: Start) -> RecentSession:
        return RecentSession(_Cursor(self, start, tuple(start.prompt[-self.longest :])), self)

    def row(self, context: Sequence[int]) -> tuple[int, np.ndarray, np.ndarray] | None:
        """Returns, for the longest known suffix of a context, its length, the tokens behind it and their
        log-probabilities."""
        with self._lock:
            for n in range(min(self.longest, len(context)), 0, -1):
                slot = self._slots.get(tuple(context[-n:]))
                if slot is not None:
                    return n, self._ids[slot].copy(), self._logprobs[slot].copy()
        return None

    def learn(self, likely: Likely) -> None:
        """Takes in the likely tokens of some places. If two places have the same context, the later one
        counts."""
        width = likely.ids.shape[1]
        with self._lock:
            for n in range(1, self.longest + 1):
                slots = [self._slot(c[-n:]) for c in likely.contexts if len(c) >= n]
                long = [i for i, c in enumerate(likely.contexts) if len(c) >= n]
                # numpy writes in order: if a slot occurs twice, the last row stays.
                self._ids[slots, :width] = likely.ids[long]
                self._logprobs[slots, :width] = likely.logprobs[long]
                self._logprobs[slots, width:] = -np.inf

    def _slot(self, context: tuple[int, ...]) -> int:
        slot = self._slots.get(context)
        if slot is not None:
            return slot
        slot = self._next
        if slot < len(self._owners):
            del self._slots[self._owners[slot]]
            self._owners[slot] = context
        else:
            self._owners.append(context)
            if slot == len(self._ids):
                self._ids = np.concatenate([self._ids, np.empty_like(self._ids)])
                self._logprobs = np.concatenate([self._logprobs, np.empty_like(self._logprobs)])
        self._slots[context] = slot
        self._next = (slot + 1) % self.contexts
        return slot


class _Cursor(RecentCursor[TokenRecycling]):
    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        table, start = self._store, self._start
        found = table.row(self._recent)
        if found is None:
            return ()
        n, ids, logprobs = found
        trust = n / (n + 0.25)
        if start.noise is None:  # the order is right already
            chances = np.exp(logprobs[: table.width], dtype=np.float64) * trust
            return [(t, p) for t, p in zip(ids.tolist(), chances.tolist(), strict=False) if p > _LEAST]
        offers = ranked(ids, logprobs, start.temperature, start.noise, here.position, table.width)
        return [(token, p * trust) for token, p in offers if p > _LEAST]
