"""N-grams with the target's own probabilities, averaged over their occurrences (STAND).

Enters: the target's most probable tokens at every scored place. Leaves: the most probable successors of the
longest known n-gram. Cost: `longest` dictionary entries for each place, and at most `grams` entries.

Song et al. 2025, *Accelerated test-time scaling with model-free speculative sampling*. If answers are
sampled, stored probabilities predict better than stored tokens. If draws have noise, the noise is added to
the stored log-probabilities. The largest sum is then the token that the target draws, if its distribution is
similar (Gumbel-top-k with the noise of the target's draw).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..._fork import hold_over_forks
from ..base import CONTEXT, DrafterSettings, Here, Likely, Start, bounded
from .ranking import RecentCursor, RecentSession, ranked

_KEPT = 10
_OFFERED = 5


class _Entry:
    __slots__ = ("chances", "visits")

    def __init__(self) -> None:
        self.visits = 0
        self.chances: dict[int, float] = {}


@dataclass(eq=False)
class LogitNgrams(DrafterSettings):
    """Drafts by averaged distributions after n-grams, shared by all texts.

    Args:
        longest: the most tokens of an n-gram.
        grams: the most n-grams that are kept; the oldest go first.
    """

    name = "logit n-grams"

    longest: int = bounded(4, 1, CONTEXT)
    grams: int = 1 << 17

    def __post_init__(self) -> None:
        super().__post_init__()
        self._entries: OrderedDict[tuple[int, ...], _Entry] = OrderedDict()
        self._lock = threading.Lock()
        hold_over_forks(self)

    def open(self, start: Start) -> RecentSession:
        return RecentSession(_Cursor(self, start, tuple(start.prompt[-self.longest :])), self)

    def learn(self, likely: Likely) -> None:
        """Learns the most probable tokens behind some contexts."""
        chances = np.exp(likely.logprobs.astype(np.float64)).tolist()
        for context, ids, row in zip(likely.contexts, likely.ids.tolist(), chances, strict=True):
            self._learn(context, {t: p for t, p in zip(ids, row, strict=True) if p > 0.0})

    def _learn(self, context: tuple[int, ...], seen: dict[int, float]) -> None:
        with self._lock:
            for n in range(1, min(self.longest, len(context)) + 1):
                gram = context[-n:]
                entry = self._entries.get(gram)
                if entry is None:
                    entry = self._entries[gram] = _Entry()
                    if len(self._entries) > self.grams:
                        self._entries.popitem(last=False)
                entry.visits = min(entry.visits + 1, 16)
                rate = 1.0 / entry.visits
                mixed = {t: p * (1.0 - rate) for t, p in entry.chances.items()}
                for token, p in seen.items():
                    mixed[token] = mixed.get(token, 0.0) + rate * p
                if len(mixed) > 2 * _KEPT:
                    mixed = dict(sorted(mixed.items(), key=lambda item: -item[1])[:_KEPT])
                entry.chances = mixed

    def known(self, context: Sequence[int]) -> tuple[int, dict[int, float]]:
        """Returns the length of the longest known n-gram that ends the context, and what follows it."""
        for n in range(min(self.longest, len(context)), 0, -1):
            entry = self._entries.get(tuple(context[-n:]))
            if entry is not None:
                return n, entry.chances
        return 0, {}


class _Cursor(RecentCursor[LogitNgrams]):
    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        n, chances = self._store.known(self._recent)
        if not n:
            return ()
        ids = np.fromiter(chances, np.int64, len(chances))
        p = np.fromiter(chances.values(), np.float64, len(chances))
        start = self._start
        logprobs = np.log(np.maximum(p, 1e-30)).astype(np.float32)
        found = ranked(ids, logprobs, start.temperature, start.noise, here.position, _OFFERED)
        return [(token, chance * n / (n + 0.5)) for token, chance in found]

    def distribution(self, here: Here) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]] | None:
        """Returns known successors that the grammar allows, at the target's temperature, to sample drafts
        from."""
        _, chances = self._store.known(self._recent)
        if here.matcher is not None:
            chances = {t: p for t, p in chances.items() if here.matcher.validate_tokens([t]) == 1}
        if not chances:
            return None
        ids = np.fromiter(chances, np.int64, len(chances))
        p = np.fromiter(chances.values(), np.float64, len(chances))
        scores = np.log(np.maximum(p, 1e-30)) / self._start.temperature
        weights = np.exp(scores - scores.max())
        return ids, weights / weights.sum()
