"""Every random decision of the samplers goes through one small object.

Enters: a seed and a key (which draw, which purpose). Leaves: indices, coins, uniform numbers.
Cost: one double of PCG64 a decision.

This has two reasons. First, each draw has a stream of its own, keyed by the draw's number, so results do not
depend on the batch. Second, a test can put an enumerator in the place of this object. The enumerator runs a
sampler once for every outcome, with the outcome's probability, so the test computes expectations as exact
sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from .logspace import Doubles


class Chance(Protocol):
    """The random decisions of samplers."""

    def choose(self, sums: Doubles) -> int:
        """Returns an index with probability in proportion to the steps of `sums`, ascending cumulated
        weights."""
        ...

    def coin(self, probability: float) -> bool:
        """Returns True with this probability; values beyond [0, 1] count as its ends."""
        ...

    def uniform(self, breaks: Callable[[], Doubles]) -> float:
        """Returns a number of [0, 1). The caller's decision changes only at `breaks`, which only tests ask
        for."""
        ...


class Source:
    """A `Chance` that draws from a numpy generator."""

    __slots__ = ("_generator",)

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def choose(self, sums: Doubles) -> int:
        at = int(np.searchsorted(sums, self._generator.random() * sums[-1], side="right"))
        # Rounding can give the total itself, which belongs to the last index with weight.
        return at if at < len(sums) else int(np.searchsorted(sums, sums[-1], side="left"))

    def coin(self, probability: float) -> bool:
        return bool(self._generator.random() < probability)

    def uniform(self, breaks: Callable[[], Doubles]) -> float:
        return float(self._generator.random())


class Seeds:
    """Gives each number a random stream. The same seed, purpose and index give the same stream, in any order
    of calls."""

    __slots__ = ("seed",)

    def __init__(self, seed: int | None = None) -> None:
        self.seed: int = fresh_seed() if seed is None else int(seed)
        if self.seed < 0:
            raise ValueError(f"a seed is not negative, and this one is {seed}")

    def stream(self, purpose: int, index: int) -> Source:
        sequence = np.random.SeedSequence(self.seed, spawn_key=(purpose, index))
        return Source(np.random.Generator(np.random.PCG64(sequence)))


def fresh_seed() -> int:
    """Returns a seed from the system's entropy, small enough to be written down."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(11))
