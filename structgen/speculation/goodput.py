"""How many drafts are worth their forward: measured costs, running acceptance, and a bench for drafters.

Enters: seconds of forwards by width, and which offers were accepted. Leaves: a path probability below which
a node is not worth adding, and the best size of a tree. Cost: a few additions a node.

With n nodes of path probabilities c_i, a forward brings 1 + sum c_i tokens on average and takes T(1 + n)
seconds; the size that maximises the quotient is the goodput-optimal one (SmartSpec: Liu et al. 2024). A
processor may read 16 tokens in the time of one or in the time of 16: T is measured, never assumed. Where no
size beats none, nothing is drafted, and looking again gets rarer.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

__all__ = ["Bench", "Calibration", "CostTable", "Goodput"]

WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_BUCKETS = 8
# Forwards between two looks at what was measured.
_REFRESH = 16
_REACH = 8


class CostTable:
    """Seconds of a forward by its width in tokens; thread-safe, refined by every forward.

    Args:
        seconds: {width: seconds} to begin with; without it a forward is taken to cost 1 + 0.02 (q - 1).
        learn: whether `observe` changes it. A fixed table makes tree sizes repeatable.
    """

    def __init__(self, seconds: dict[int, float] | None = None, *, learn: bool = True) -> None:
        self._learn = learn
        self._lock = threading.Lock()
        self._sums: dict[int, float] = {}
        self._weights: dict[int, float] = {}
        self._table: list[float] | None = None
        self._plans: dict[tuple[int, int], tuple[list[float], list[float]]] = {}
        self._age = 0
        self.extra = 0.0
        for width, value in (seconds or {}).items():
            self._sums[_bucket(width)] = value
            self._weights[_bucket(width)] = 1.0

    def observe(self, width: int, seconds: float) -> None:
        """One forward of `width` tokens took this long."""
        if not self._learn or width > WIDTHS[-1]:
            return
        with self._lock:
            bucket = _bucket(width)
            known = self._weights.get(bucket, 0.0)
            mean = self._sums[bucket] / known if known else seconds
            # A forward that waited for another process says nothing about its width.
            seconds = min(seconds, 2.0 * mean)
            decay = 0.95
            self._sums[bucket] = self._sums.get(bucket, 0.0) * decay + seconds
            self._weights[bucket] = known * decay + 1.0
            self._age += 1
            if not known or self._age >= _REFRESH:
                self._table, self._age = None, 0
                self._plans.clear()

    def observe_drafting(self, nodes: int, seconds: float) -> None:
        """Building and verifying a tree of `nodes` nodes took this long outside the model."""
        if self._learn and nodes:
            self.extra += 0.05 * (seconds / nodes - self.extra)

    def __call__(self, width: int) -> float:
        """Seconds of a forward of `width` tokens, never decreasing in it."""
        table = self.table()
        last = len(table) - 1
        return table[width] if width <= last else table[last] * width / last

    def table(self) -> list[float]:
        """Seconds for widths 0 .. 128."""
        found = self._table
        if found is None:
            with self._lock:
                found = self._table = self._interpolated()
        return found

    def plan(self, rows: int, taken: int) -> tuple[list[float], list[float]]:
        """For n = 0 .. 127 nodes a row: seconds, and the least seconds a node of adding some more.

        The second list looks ahead: a step of T is worth crossing only together with what lies behind it.
        """
        found = self._plans.get((rows, taken))
        if found is None:
            costs = [self(rows * (taken + n)) + self.extra * rows * n for n in range(WIDTHS[-1])]
            slopes = [
                min((costs[m] - costs[n]) / (m - n) for m in range(n + 1, min(n + 1 + _REACH, len(costs))))
                for n in range(len(costs) - 1)
            ]
            found = self._plans[rows, taken] = (costs, slopes)
        return found

    @property
    def known(self) -> bool:
        """Whether anything was measured."""
        return bool(self._weights)

    def _interpolated(self) -> list[float]:
        points = [(WIDTHS[b], self._sums[b] / self._weights[b]) for b in sorted(self._weights)]
        if not points:
            return [1.0 + 0.02 * (q - 1) for q in range(WIDTHS[-1] + 1)]
        # Noise must not make a wider forward look cheaper: a running maximum is monotone, but one slow
        # sample would raise all that follow, so each point is first held against the next one.
        for i in range(len(points) - 2, -1, -1):
            points[i] = (points[i][0], min(points[i][1], points[i + 1][1]))
        if len(points) == 1:
            width, value = points[0]
            return [value * (1.0 + 0.02 * (q - width)) if q > width else value for q in range(WIDTHS[-1] + 1)]
        table: list[float] = []
        at = 0
        for q in range(WIDTHS[-1] + 1):
            while at + 2 < len(points) and points[at + 1][0] < q:
                at += 1
            (x0, y0), (x1, y1) = points[at], points[at + 1]
            value = y0 + (y1 - y0) * (q - x0) / (x1 - x0) if q > x0 else y0
            table.append(max(value, table[-1] if table else 0.0))
        return table


def _bucket(width: int) -> int:
    for i, w in enumerate(WIDTHS):
        if width <= w:
            return i
    return len(WIDTHS) - 1


class Calibration:
    """What a drafter's probabilities are worth: acceptance by drafter and offered probability.

    Args:
        drafters: how many.
        parent: acceptance over earlier texts, which is where a new text begins.
    """

    def __init__(self, drafters: int, parent: Calibration | None = None) -> None:
        self._tried = [[0.0] * _BUCKETS for _ in range(drafters)]
        self._accepted = [[0.0] * _BUCKETS for _ in range(drafters)]
        self._parent = parent

    def chance(self, drafter: int, p: float) -> float:
        """The probability that a draft offered with probability p is accepted where its parent was."""
        if p >= 1.0:
            return 1.0
        bucket = int(p * _BUCKETS)
        tried, accepted = self._tried[drafter][bucket], self._accepted[drafter][bucket]
        prior = p if self._parent is None else self._parent.chance(drafter, p)
        found = (accepted + 3.0 * prior) / (tried + 3.0)
        return found if found < 0.995 else 0.995

    def observe(self, drafter: int, p: float, accepted: bool) -> None:
        """A draft whose parent was accepted was accepted or not."""
        if p >= 1.0:
            return
        bucket = int(p * _BUCKETS)
        self._tried[drafter][bucket] = self._tried[drafter][bucket] * 0.97 + 1.0
        self._accepted[drafter][bucket] = self._accepted[drafter][bucket] * 0.97 + accepted
        if self._parent is not None:
            self._parent.observe(drafter, p, accepted)


class Goodput:
    """The size of one tree. `rows` sequences share the forward, and are taken to be alike."""

    def __init__(self, cost: CostTable, rows: int, taken: int) -> None:
        self._costs, self._slopes = cost.plan(rows, taken)
        self._expected = 1.0
        self._count = 0
        self._best = 0
        self._rate = 1.0 / self._costs[0] if self._costs[0] > 0 else 0.0

    def worth(self, chance: float) -> bool:
        """Whether nodes of this path probability may still raise the rate."""
        n = min(self._count, len(self._slopes) - 1)
        return chance >= 1.0 or chance > self._rate * self._slopes[n]

    def added(self, chance: float) -> None:
        self._expected += chance
        self._count += 1
        if self._count < len(self._costs):
            rate = self._expected / self._costs[self._count]
            # A token that is certain is worth its place in any forward.
            if rate > self._rate or chance >= 1.0:
                self._rate, self._best = rate, self._count

    def best(self) -> int:
        """The number of nodes to keep."""
        return self._best


class Bench:
    """Whom to ask: a drafter that costs more than it saves sits out, twice as long each time.

    One object a text. Also used for drafting as a whole, as drafter -1.
    """

    _FIRST, _LONGEST, _TRIAL = 2, 64, 8

    def __init__(self) -> None:
        self._cost: dict[int, float] = {}
        self._gain: dict[int, float] = {}
        self._steps: dict[int, int] = {}
        self._out: dict[int, int] = {}
        self._length: dict[int, int] = {}

    def asked(self, drafters: Sequence[int]) -> list[int]:
        """Those that are not sitting out; one step passes."""
        found = []
        for d in drafters:
            left = self._out.get(d, 0)
            if left:
                self._out[d] = left - 1
            else:
                found.append(d)
        return found

    def observe(self, drafter: int, cost: float, gain: float) -> None:
        """Seconds that a step of it took and seconds that its accepted tokens saved."""
        self._cost[drafter] = self._cost.get(drafter, 0.0) * 0.9 + cost
        self._gain[drafter] = self._gain.get(drafter, 0.0) * 0.9 + gain
        steps = self._steps[drafter] = self._steps.get(drafter, 0) + 1
        if self._gain[drafter] >= self._cost[drafter]:
            self._length[drafter] = self._FIRST
        elif steps >= self._TRIAL:
            length = self._length.get(drafter, self._FIRST)
            self._out[drafter] = length
            self._length[drafter] = min(self._LONGEST, length * 2)
            self._steps[drafter] = 0
