"""How many drafts are worth a wider forward pass: measured costs, measured acceptance, and a bench for
drafters.

Enters: seconds of forward passes by width, and which offers were accepted. Leaves: the path probability that
a node needs, and the best size of a tree. Cost: a few additions for each node.

The problem. A wider forward takes longer, and how much longer depends on the machine: a processor may read 16
tokens in the time of one, or in the time of 16. A drafter's probabilities need not be those of acceptance.
And a drafter that guesses badly costs time itself.

The idea. With n nodes of path probabilities c_i, a forward brings 1 + sum c_i tokens on average and takes T(1
+ n) seconds. The best size maximises the quotient, which is called goodput (SmartSpec: Liu et al. 2024). With
T = 1.0, 1.1, 1.2, 1.3, 1.4, 1.5 seconds for widths 1 to 6:

    nodes               0      1      2      3      4      5
    c of the last              0.9    0.8    0.6    0.4    0.2
    tokens a second     1.0    1.73   2.25   2.54   2.64   2.60

Four nodes are best, and five are within `_SLACK` of that.

Three classes make the measurements. `CostTable` measures T: a line through the times of all forwards,
corrected by the mean time of each width. `Calibration` measures c: how often offers of a drafter with a given
probability are accepted. `Bench` decides which drafters are asked: a drafter that costs more than it saves
sits out, twice as long each time.

Invariants.
- T never decreases as the width grows, even if the measurements are noisy.
- Costs and acceptance are measured. Before the first measurement a weak prior is used.
- If no size is better than zero, nothing is drafted, and drafting is tried again at growing intervals.
- Forced tokens (probability 1) are kept at any size.

Rejected. A table with one mean for each width: a few slow forwards of one width ruled that width out for
good, because it was not tried again.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect, bisect_left
from collections.abc import Sequence

import numpy as np

from .._fork import hold_over_forks

# The widths that are measured, summed over the rows of a batch. A batch of 32 rows with 16 drafts each is 544
# tokens wide.
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
_NODES = 128  # the most nodes of a row that `plan` looks at
# Borders between offered probabilities. All probabilities between two borders share one count of acceptance.
_EDGES = (0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
# The table of seconds is computed again after so many forward passes.
_REFRESH = 16
_REACH = 8  # nodes that `plan` looks ahead
# After so many measurements, a width's mean counts as much as the line through all widths.
_TRUST = 6.0
# The share of the best rate that a larger tree may cost.
_SLACK = 0.05
# The prior: one more token costs this share of a forward. It counts until widths that differ by `_SPREAD`
# were measured.
_SLOPE, _SPREAD = 0.02, 4.0


class _Line:
    """A least-squares line through decayed observations, with a prior for the slope."""

    def __init__(self) -> None:
        # The sums of 1, x, y, x * x and x * y.
        self._sums = [0.0] * 5

    def observe(self, x: float, y: float) -> None:
        terms = (1.0, x, y, x * x, x * y)
        self._sums = [0.99 * old + new for old, new in zip(self._sums, terms, strict=True)]

    def fitted(self, slope: float) -> tuple[float, float]:
        """Returns the intercept and the slope.

        `slope`, a share of the mean y, is the prior; it counts until x has spread.
        """
        count, x, y, xx, xy = self._sums
        if not count:
            return 0.0, 0.0
        mean_x, mean_y = x / count, y / count
        strength = count * _SPREAD**2 / 8.0
        spread = max(xx - count * mean_x * mean_x, 0.0)
        shared = xy - count * mean_x * mean_y
        found = max((shared + strength * slope * mean_y) / (spread + strength), 0.0)
        return max(mean_y - found * mean_x, 0.0), found


class CostTable:
    """Seconds of a forward by its width in tokens; thread-safe, refined by every forward.

    A cost is between a line through all measurements and the mean of its own width. The more often a width
    was measured, the more its mean counts. The line estimates untried widths from tried ones, so a few slow
    forwards of one width do not rule it out for good.

    Args:
        seconds: {width: seconds} to begin with. Without it a forward of q tokens costs 1 + 0.02 (q - 1).
        learn: whether `observe` changes the table. A fixed table makes tree sizes repeatable.
    """

    def __init__(self, seconds: dict[int, float] | None = None, *, learn: bool = True) -> None:
        self._learn = learn
        self._lock = threading.Lock()
        hold_over_forks(self)
        self._sums: dict[int, float] = {}
        self._weights: dict[int, float] = {}
        self._line = _Line()
        self._drafting = _Line()
        self._table: list[float] | None = None
        self._plans: dict[tuple[int, int], tuple[list[float], list[float]]] = {}
        self._age = 0
        self.extra: float = 0.0
        for width, value in (seconds or {}).items():
            self._sums[_bucket(width)] = value
            self._weights[_bucket(width)] = 1.0
            self._line.observe(width, value)

    def observe(self, width: int, seconds: float) -> None:
        """Notes that a forward of `width` tokens took this long."""
        if not self._learn or width > WIDTHS[-1]:
            return
        with self._lock:
            bucket = _bucket(width)
            known = self._weights.get(bucket, 0.0)
            # A forward pass may have waited for another process, so a long time counts only in part.
            if known:
                seconds = min(seconds, 1.5 * self._sums[bucket] / known)
            elif self._weights:
                seconds = min(seconds, 1.5 * self._interpolated()[width])
            decay = 0.95
            self._sums[bucket] = self._sums.get(bucket, 0.0) * decay + seconds
            self._weights[bucket] = known * decay + 1.0
            self._line.observe(width, seconds)
            self._age += 1
            if not known or self._age >= _REFRESH:
                self._table, self._age = None, 0
                self._plans.clear()

    def observe_drafting(self, nodes: int, seconds: float) -> None:
        """Notes that building a tree of `nodes` nodes took this long.

        `extra` is the time of one more node.
        """
        if self._learn and nodes:
            with self._lock:
                start, slope = self._drafting.fitted(0.0)
                self._drafting.observe(nodes, min(seconds, 2.0 * (start + slope * nodes) or seconds))
                self.extra = self._drafting.fitted(0.0)[1]

    def __call__(self, width: int) -> float:
        """Returns the seconds of a forward pass of `width` tokens. A larger width never gives fewer
        seconds."""
        table = self.table()
        last = len(table) - 1
        return table[width] if width <= last else table[last] * width / last

    def table(self) -> list[float]:
        """Returns the seconds of a forward pass for each width from 0 to 1024."""
        found = self._table
        if found is None:
            with self._lock:
                found = self._table = self._interpolated()
        return found

    def plan(self, rows: int, taken: int) -> tuple[list[float], list[float]]:
        """For n = 0 .. 127 nodes a row: the seconds, and the price of a further node.

        T may have steps, so that the next node is dear and those after it are free. Therefore the price is
        the smallest mean over the next 1, 2, ... `_REACH` nodes.
        """
        found = self._plans.get((rows, taken))
        if found is None:
            costs = [self(rows * (taken + n)) + self.extra * rows * n for n in range(_NODES)]
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
        widths = range(WIDTHS[-1] + 1)
        if not points:
            return [1.0 + _SLOPE * (q - 1) for q in widths]
        if not self._learn:
            return _through(points)
        start, slope = self._line.fitted(_SLOPE)
        pulled = []
        for width, value in points:
            weight = self._weights[_bucket(width)]
            pulled.append((width, (weight * value + _TRUST * (start + slope * width)) / (weight + _TRUST)))
        table = _through(pulled)
        last, top = pulled[-1]
        return [table[q] if q <= last else top + slope * (q - last) for q in widths]


def _through(points: Sequence[tuple[int, float]]) -> list[float]:
    """Seconds for widths 0 .. 1024: straight lines between the points, never decreasing."""
    values = [value for _, value in points]
    # Noise must not make a wider forward pass look cheaper. With a running maximum alone, one slow sample
    # would raise all later points. So each point is first lowered to the next one.
    for i in range(len(values) - 2, -1, -1):
        values[i] = min(values[i], values[i + 1])
    xs = [width for width, _ in points]
    table: list[float] = np.interp(range(WIDTHS[-1] + 1), xs, np.maximum.accumulate(values)).tolist()
    if len(points) > 1:
        (x0, x1), (y0, y1) = xs[-2:], values[-2:]
        slope = max((y1 - y0) / (x1 - x0), 0.0)
    else:
        x1, y1 = xs[0], values[0]
        slope = _SLOPE * y1
    return [table[q] if q <= x1 else y1 + slope * (q - x1) for q in range(WIDTHS[-1] + 1)]


def _bucket(width: int) -> int:
    return min(bisect_left(WIDTHS, width), len(WIDTHS) - 1)


class Calibration:
    """Acceptance by drafter and offered probability.

    Args:
        drafters: how many there are.
        parent: acceptance in earlier texts. This acceptance is the prior of a new text.
    """

    def __init__(self, drafters: int, parent: Calibration | None = None) -> None:
        self._tried = [[0.0] * (len(_EDGES) + 1) for _ in range(drafters)]
        self._accepted = [[0.0] * (len(_EDGES) + 1) for _ in range(drafters)]
        self._parent = parent

    def chance(self, drafter: int, p: float) -> float:
        """Returns the probability that a draft offered with p is accepted if its parent is."""
        if p >= 1.0:
            return 1.0
        bucket = bisect(_EDGES, p)
        tried, accepted = self._tried[drafter][bucket], self._accepted[drafter][bucket]
        prior = p if self._parent is None else self._parent.chance(drafter, p)
        found = (accepted + 3.0 * prior) / (tried + 3.0)
        return found if found < 0.995 else 0.995

    def observe(self, drafter: int, p: float, accepted: bool) -> None:
        """Notes whether a draft was accepted whose parent was."""
        if p >= 1.0:
            return
        bucket = bisect(_EDGES, p)
        self._tried[drafter][bucket] = self._tried[drafter][bucket] * 0.97 + 1.0
        self._accepted[drafter][bucket] = self._accepted[drafter][bucket] * 0.97 + accepted
        if self._parent is not None:
            self._parent.observe(drafter, p, accepted)


class Goodput:
    """The size of one tree. `rows` sequences share the forward and are assumed to be alike.

    The rate is flat around its maximum, and refused drafts still teach drafters what the model finds likely.
    So the largest tree is taken whose rate is at most `_SLACK` below the best one and keeps three quarters of
    the gain over drafting nothing. Without a gain nothing is drafted.
    """

    def __init__(self, cost: CostTable, rows: int, taken: int) -> None:
        self._costs, self._slopes = cost.plan(rows, taken)
        self._expected = 1.0
        self._rates = [1.0 / self._costs[0] if self._costs[0] > 0 else 0.0]
        self._rate = self._rates[0]
        self._certain = 0

    def worth(self, chance: float) -> bool:
        """Returns whether a node of this path probability may still be worth keeping."""
        if chance >= 1.0:
            return True
        n = min(len(self._rates) - 1, len(self._slopes) - 1)
        slack = 1.0 if self._rate <= self._rates[0] else 1.0 - 3.0 * _SLACK
        return chance > slack * self._rate * self._slopes[n]

    def added(self, chance: float) -> None:
        self._expected += chance
        count = len(self._rates)
        rate = self._expected / self._costs[min(count, len(self._costs) - 1)]
        self._rates.append(rate)
        # A certain token is always kept.
        if chance >= 1.0:
            self._certain = count
        self._rate = max(self._rate, rate)

    def best(self) -> int:
        """Returns the number of nodes to keep."""
        least = max((1.0 - _SLACK) * self._rate, 0.25 * self._rates[0] + 0.75 * self._rate)
        count = next(n for n in range(len(self._rates) - 1, -1, -1) if self._rates[n] >= least)
        return max(count, self._certain)


class Bench:
    """Decides which drafters are asked.

    A drafter that costs more than it saves sits out, twice as long each time.

    There is one object for each text. Drafting as a whole is judged as drafter -1. A drafter has a trial of
    `_TRIAL` steps. A drafter that comes back, or that did not pay in earlier texts, has a trial of `_AGAIN`
    steps, because each further trial costs time again.

    Args:
        earlier: the bench whose `remember` was told of earlier texts.
    """

    _FIRST, _LONGEST, _TRIAL, _AGAIN = 2, 64, 8, 2

    def __init__(self, earlier: Bench | None = None) -> None:
        # (cost, gain) of each drafter in this text. A bench that remembers texts sums over all texts, and
        # older ones count less.
        self._totals: dict[int, tuple[float, float]] = {}
        self._typical: dict[int, float] = {}
        self._cost: dict[int, float] = {}
        self._gain: dict[int, float] = {}
        self._steps: dict[int, int] = {}
        self._out: dict[int, int] = {}
        self._length: dict[int, int] = {}
        for drafter, (cost, gain) in () if earlier is None else list(earlier._totals.items()):
            if gain < cost:
                self._length[drafter] = self._FIRST

    def remember(self, text: Bench) -> None:
        """Takes over the costs and gains of a finished text, for later texts."""
        for drafter, (cost, gain) in text._totals.items():
            known = self._totals.get(drafter, (0.0, 0.0))
            self._totals[drafter] = 0.5 * known[0] + cost, 0.5 * known[1] + gain

    def asked(self, drafters: Sequence[int]) -> list[int]:
        """Returns the drafters that do not sit out. Each call counts as one step."""
        found = []
        for d in drafters:
            left = self._out.get(d, 0)
            if left:
                self._out[d] = left - 1
            else:
                found.append(d)
        return found

    def observe(self, drafter: int, cost: float, gain: float, patience: float = math.inf) -> None:
        """Notes the seconds that a step of a drafter took, and the seconds that its accepted tokens saved.

        If the cost exceeds the gain by `patience` seconds, the trial ends at once.
        """
        if drafter in self._typical:
            # The step may have waited for another process, so its cost is bounded.
            cost = min(cost, 3.0 * self._typical[drafter])
        known = self._typical.get(drafter, cost)
        self._typical[drafter] = known + 0.1 * (cost - known)
        self._cost[drafter] = self._cost.get(drafter, 0.0) * 0.9 + cost
        self._gain[drafter] = self._gain.get(drafter, 0.0) * 0.9 + gain
        total = self._totals.get(drafter, (0.0, 0.0))
        self._totals[drafter] = total[0] + cost, total[1] + gain
        steps = self._steps[drafter] = self._steps.get(drafter, 0) + 1
        if self._gain[drafter] >= self._cost[drafter]:
            self._length.pop(drafter, None)
        elif steps >= (self._AGAIN if drafter in self._length else self._TRIAL) or (
            steps > 1 and self._cost[drafter] - self._gain[drafter] > patience
        ):
            length = self._length.get(drafter, self._FIRST)
            self._out[drafter] = length
            self._length[drafter] = min(self._LONGEST, length * 2)
            self._steps[drafter] = 0
            # When a drafter comes back, its earlier steps count little, because the text may have changed.
            self._cost[drafter] *= 0.25
            self._gain[drafter] *= 0.25
