"""Exact laws of code that asks for randomness: the code runs once for every path through its random choices.

Input: a function of a `Chance`. Output: the probability of each result. Time: one run per path; a few hundred
runs for a handful of tokens.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from structgen.speculation.rules import Chance, Floats

Rule = Callable[[Floats, Floats, list[int], Chance], int]


class Scripted:
    """A `Chance` that follows one path through all choices and records the other possible choices."""

    def __init__(self, script: list[int]) -> None:
        self.script, self.at, self.weight = script, 0, 1.0
        self.branches: list[list[int]] = []

    def _choose(self, weights: list[float]) -> int:
        if self.at < len(self.script):
            choice = self.script[self.at]
        else:
            ways = [i for i, w in enumerate(weights) if w > 0]
            choice = ways[0]
            self.branches += [[*self.script[: self.at], i] for i in ways[1:]]
            self.script = [*self.script, choice]
        self.at += 1
        self.weight *= weights[choice]
        return choice

    def coin(self, p: float) -> bool:
        assert 0.0 <= p <= 1.0
        return self._choose([p, 1.0 - p]) == 0

    def draw(self, p: Floats) -> int:
        assert p.min() >= 0 and abs(p.sum() - 1) < 1e-9
        return self._choose(p.tolist())


def ways(run: Callable[[Chance], int]) -> Iterator[tuple[int, float]]:
    """Yields every result with the probability of its path. Results may repeat."""
    waiting: list[list[int]] = [[]]
    while waiting:
        chance = Scripted(waiting.pop())
        token = run(chance)
        waiting += chance.branches
        yield token, chance.weight


def drafts_of(q: Floats, count: int, replace: bool) -> Iterator[tuple[list[int], float]]:
    """Yields every sequence of `count` drafts from q, with its probability."""
    if replace:
        for xs in itertools.product(np.flatnonzero(q).tolist(), repeat=count):
            yield list(xs), float(np.prod(q[list(xs)]))
        return
    support = np.flatnonzero(q).tolist()
    for xs in itertools.permutations(support, min(count, len(support))):
        weight, left = 1.0, q.copy()
        for x in xs:
            weight *= left[x] / left.sum()
            left[x] = 0.0
        yield list(xs), weight


def law(rule: Rule, p: Floats, q: Floats, count: int, replace: bool) -> Floats:
    """Returns the law of the token that a rule returns, for drafts drawn from q."""
    found = np.zeros(len(p))
    for xs, weight in drafts_of(q, count, replace):
        for token, more in ways(lambda chance, xs=xs: rule(p, q, xs, chance)):
            found[token] += weight * more
    return found


def dropping(rule: Rule) -> Rule:
    """Returns the planted bias: the rule drops drafts that the target refuses, as if they had not been
    drawn."""

    def biased(p: Floats, q: Floats, xs: list[int], chance: Chance) -> int:
        valid = [x for x in xs if p[x] > 0]
        return rule(p, q, valid, chance) if valid else chance.draw(p)

    return biased
