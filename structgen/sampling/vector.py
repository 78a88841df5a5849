"""A frozen next-token vector, and draws from it that do not pass over the vocabulary.

Enters: the allowed tokens of a prefix with their scores; factors on some of them that change as bounds are
learned. Leaves: exact normalisers and draws. Cost: making a vector is a pass over its k tokens; a draw
is one over k / BLOCK totals and one over a block; so is a change of a factor. Memory is 4 bytes a token
where masks repeat (equal masks share their ids), not the 20 of ids, doubles and cumulated doubles.

P(token) = exp(raw - shift): raw are the model's own float32 scores, after temperature and cuts, and shift is
their log-sum-exp in double precision, so nothing is lost by not storing doubles. Every total is summed anew
from its block when a factor in it changes: no differences of large numbers, no drift, and the same state
gives the same bits, whichever way it was reached.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .chance import Chance
from .logspace import NEVER, Doubles

__all__ = ["BLOCK", "Urn", "Vector"]

BLOCK = 512
_TINY = 1e-200  # totals below this, relative to the largest weight, are formed anew in log space


class Vector:
    """What a prefix allows.

    Attributes:
        ids: the tokens with weight, ascending, int32, shape (k,); end-of-sequence as its first id.
        raw, shift: log P = raw - shift; float32, shape (k,), and a double.
        factor: log weights of the shaping potentials, float64, shape (k,); None where there are none.
        log_mass: log of the summed exp(score): the exact local normaliser.
        lost: the most probable token that is not allowed, (id, log P); empty if nothing is lost.
        reason: why nothing is allowed; empty where something is.
    """

    __slots__ = ("_entropy", "_sums", "factor", "ids", "log_mass", "lost", "raw", "reason", "shift", "top",
                 "totals")  # fmt: skip

    def __init__(
        self,
        ids: npt.NDArray[np.int32],
        raw: npt.NDArray[np.float32],
        shift: float,
        factor: Doubles | None = None,
        lost: tuple[tuple[int, float], ...] = (),
        reason: str = "",
    ) -> None:
        self.ids, self.raw, self.shift, self.factor = ids, raw, shift, factor
        self.lost, self.reason = lost, reason
        self._entropy = -1.0
        self._sums: Doubles | None = None
        if not ids.size:
            self.top = self.log_mass = NEVER
            self.totals = np.zeros(0, np.float64)
            return
        scores = self.scores()
        self.top = float(scores.max())
        scores -= self.top
        np.exp(scores, out=scores)
        self.totals = np.add.reduceat(scores, np.arange(0, len(scores), BLOCK))
        if len(scores) <= BLOCK:
            self._sums = np.cumsum(scores)
        self.log_mass = self.top + math.log(float(self.totals.sum()))
        if factor is None:
            self.log_mass = min(self.log_mass, 0.0)

    def __len__(self) -> int:
        return len(self.ids)

    def logp(self, slot: int) -> float:
        return float(self.raw[slot]) - self.shift

    def score(self, slot: int) -> float:
        """log P with the shaping potentials."""
        plain = self.logp(slot)
        return plain if self.factor is None else plain + float(self.factor[slot])

    def logps(self) -> Doubles:
        """float64, shape (k,); a fresh array."""
        return self.raw.astype(np.float64) - self.shift

    def scores(self, begin: int = 0, stop: int | None = None) -> Doubles:
        """float64; a fresh array."""
        found: Doubles = self.raw[begin:stop].astype(np.float64)
        found -= self.shift
        if self.factor is not None:
            found += self.factor[begin:stop]
        return found

    def weights(self, block: int) -> Doubles:
        """exp(score - top) of a block; a fresh array."""
        found = self.scores(block * BLOCK, (block + 1) * BLOCK)
        found -= self.top
        np.exp(found, out=found)
        return found

    def choose(self, chance: Chance) -> int:
        """A slot with probability in proportion to exp(score)."""
        if self._sums is None:
            self._sums = np.cumsum(self.totals)
        at = chance.choose(self._sums)
        if len(self.totals) == 1:
            return at
        return at * BLOCK + chance.choose(np.cumsum(self.weights(at)))

    def slot(self, token: int) -> int | None:
        """Where a token is; None where it is not allowed."""
        at = int(np.searchsorted(self.ids, token))
        return at if at < len(self.ids) and self.ids[at] == token else None

    def best(self, count: int) -> list[int]:
        """The `count` slots with the largest scores, or all, best first; lower ids first where equal.

        Those of a smaller count are the first of those of a larger one.
        """
        scores = self.scores()
        if count < len(scores):
            least = np.partition(scores, len(scores) - count)[len(scores) - count]
            slots = np.flatnonzero(scores >= least)
        else:
            slots = np.arange(len(scores))
        return [int(slot) for slot in slots[np.argsort(-scores[slots], kind="stable")][:count]]

    @property
    def entropy(self) -> float:
        """Of the local distribution, in nats."""
        if self._entropy < 0.0:
            logs = self.scores() - self.log_mass
            self._entropy = max(0.0, float(-(np.exp(logs) * logs).sum()))
        return self._entropy

    @property
    def nbytes(self) -> int:
        """Without `ids`, which vectors may share."""
        own = self.raw.nbytes + self.totals.nbytes + (0 if self.factor is None else self.factor.nbytes)
        return own + (0 if self._sums is None else self._sums.nbytes)


class Urn:
    """The tokens of a vector with factors on some of them, up to 1; -inf takes one out."""

    __slots__ = ("_blocks", "_stale", "_totals", "vector")

    def __init__(self, vector: Vector) -> None:
        self.vector: Vector = vector
        self._blocks: dict[int, dict[int, float]] = {}  # block -> slot -> log factor
        self._totals = vector.totals
        self._stale: set[int] = set()  # blocks whose totals are to be formed anew

    def copy(self) -> Urn:
        twin = Urn(self.vector)
        twin._blocks = {block: dict(factors) for block, factors in self._blocks.items()}
        twin._totals = self._totals.copy()
        twin._stale = set(self._stale)
        return twin

    def set(self, slot: int, factor: float) -> None:
        """Give a slot a log factor; 0 gives it back its own weight."""
        block = slot // BLOCK
        factors = self._blocks.setdefault(block, {})
        if factor == 0.0:
            factors.pop(slot, None)
            if not factors:
                del self._blocks[block]
        else:
            factors[slot] = factor
        self._stale.add(block)

    def total(self) -> float:
        """Summed weights, relative to exp(top) of the vector."""
        if self._stale:
            if self._totals is self.vector.totals:
                self._totals = self._totals.copy()
            for block in self._stale:
                plain = block not in self._blocks
                self._totals[block] = self.vector.totals[block] if plain else self._weights(block).sum()
            self._stale.clear()
        return float(self._totals.sum())

    def weight(self, slot: int) -> float:
        """Of one slot, relative to exp(top) of the vector."""
        factor = self._blocks.get(slot // BLOCK, {}).get(slot, 0.0)
        return math.exp(self.vector.score(slot) - self.vector.top + factor)

    def log_total(self) -> float:
        """log of the summed exp(score) * factor: at most the vector's log mass."""
        if not self._blocks:
            return self.vector.log_mass
        total = self.total()
        if total < _TINY:
            scores = self._all()
            top = float(scores.max())
            return top if top == NEVER else top + math.log(float(np.exp(scores - top).sum()))
        return min(self.vector.log_mass, self.vector.top + math.log(total))

    def choose(self, chance: Chance) -> int:
        """A slot with probability in proportion to its weight; some weight must be left."""
        if not self._blocks:
            return self.vector.choose(chance)
        if self.total() < _TINY:
            scores = self._all()
            return chance.choose(np.cumsum(np.exp(scores - scores.max())))
        if len(self._totals) == 1:
            return chance.choose(np.cumsum(self._weights(0)))
        block = chance.choose(np.cumsum(self._totals))
        return block * BLOCK + chance.choose(np.cumsum(self._weights(block)))

    def _weights(self, block: int) -> Doubles:
        found = self.vector.weights(block)
        factors = self._blocks.get(block)
        if factors:
            slots, values = _arrays(factors)
            found[slots - block * BLOCK] *= np.exp(values)
        return found

    def _all(self) -> Doubles:
        scores = self.vector.scores()
        for factors in self._blocks.values():
            slots, values = _arrays(factors)
            scores[slots] += values
        return scores

    @property
    def nbytes(self) -> int:
        own = 0 if self._totals is self.vector.totals else self._totals.nbytes
        return own + 100 * sum(map(len, self._blocks.values()))


def _arrays(factors: dict[int, float]) -> tuple[npt.NDArray[np.int64], Doubles]:
    count = len(factors)
    return np.fromiter(factors, np.int64, count), np.fromiter(factors.values(), np.float64, count)
