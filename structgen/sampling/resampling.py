"""Resampling: chooses the particles that continue, and the number of copies of each.

Enters: normalised weights, shape (N,), and chance. Leaves: N ancestor indices, ascending.
Cost: O(N). Each scheme is unbiased: particle i has N * w_i copies in expectation.

Systematic resampling shifts a grid of N points by one random number. Stratified resampling shifts each point
by a random number of its own. Residual resampling keeps floor(N * w_i) copies and draws the rest (Douc and
Cappe 2005).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from .chance import Chance
from .logspace import Doubles

Scheme = Literal["systematic", "stratified", "residual", "multinomial"]


def resample(weights: Doubles, scheme: Scheme, chance: Chance) -> list[int]:
    """Returns the indices of the particles that continue, one for each copy.

    Raises:
        ValueError: an unknown scheme, or weights that do not sum to 1.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"resampling is one of {', '.join(SCHEMES)}, not {scheme!r}")
    weights = np.asarray(weights, np.float64)
    total = float(weights.sum())
    if not abs(total - 1.0) < 1e-6:
        raise ValueError(f"weights must sum to 1, not {total}")
    return sorted(SCHEMES[scheme](weights / total, chance))


def systematic(weights: Doubles, chance: Chance) -> list[int]:
    """Returns the ancestors at the points (i + u) / N, with one uniform number u."""
    return pick(weights, weights.size, chance)


def pick(weights: Doubles, count: int, chance: Chance) -> list[int]:
    """Returns `count` indices by systematic resampling: index i comes count * w_i times in expectation."""
    sums = _sums(weights)
    u = chance.uniform(lambda: np.unique(np.mod(sums[:-1] * count, 1.0)))
    return _at(sums, (np.arange(count) + u) / count)


def stratified(weights: Doubles, chance: Chance) -> list[int]:
    """Returns the ancestors at the points (i + u_i) / N, with a uniform number for each stratum."""
    count = weights.size
    sums = _sums(weights)
    points = np.empty(count)
    for i in range(count):
        inside = lambda i=i: np.clip(sums[:-1] * count - i, 0.0, 1.0)  # noqa: E731
        points[i] = (i + chance.uniform(inside)) / count
    return _at(sums, points)


def residual(weights: Doubles, chance: Chance) -> list[int]:
    """Returns floor(N w) copies of each particle, and draws the rest multinomially."""
    count = weights.size
    # Rounding may put a weight just below a multiple of 1/N. Such a weight keeps all its copies.
    sure = np.floor(weights * count * (1 + 1e-12)).astype(np.int64)
    found = [int(i) for i in np.repeat(np.arange(count), sure)]
    rest = count - len(found)
    if rest:
        sums = np.cumsum(np.maximum(weights * count - sure, 0.0))
        found += [chance.choose(sums) for _ in range(rest)]
    return found


def multinomial(weights: Doubles, chance: Chance) -> list[int]:
    """Returns N independent draws."""
    sums = np.cumsum(weights)
    return [chance.choose(sums) for _ in range(weights.size)]


def _sums(weights: Doubles) -> Doubles:
    sums = np.cumsum(weights)
    sums[-1] = 1.0  # rounding could leave a gap at the top
    return sums


def _at(sums: Doubles, points: Doubles) -> list[int]:
    return [int(i) for i in np.minimum(np.searchsorted(sums, points, side="right"), sums.size - 1)]


SCHEMES: dict[str, Callable[[Doubles, Chance], list[int]]] = {
    "systematic": systematic,
    "stratified": stratified,
    "residual": residual,
    "multinomial": multinomial,
}
