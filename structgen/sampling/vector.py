"""A frozen next-token vector, with draws that read only a small part of it.

Enters: the allowed tokens of a prefix with their scores; factors on some of these tokens, which change as
bounds are learned. Leaves: exact normalisers and draws. Cost: one pass over the k tokens to make a vector. A
draw or a change of a factor takes one pass over k / BLOCK totals and one over a block. Memory is 4 bytes a
token where masks repeat (equal masks share their ids), not the 20 of ids, doubles and cumulated doubles.

A *thin* vector has the TOP most probable tokens and the exact summed weight of all others, its tail: 5 kB
whatever the vocabulary. A draw that falls into the tail gives `TAIL`; the caller then computes the vector
again and draws among the tail's tokens (`walk.py`). Drawn tokens of the tail are kept apart, with slots below
0, so bounds on them are factors like others. The tail's remaining weight is the tail's weight less the
weights of these tokens. The difference is exact to 1e-13 until these tokens have half of the tail's weight.
Then the vector is `crowded`: the whole vector is fetched and kept beside it, and the tail is summed. The
largest rounding error is added to a bound, so that it stays a bound. In all cases tokens stand in the same
order for a draw, so a draw depends only on the weights.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .chance import Chance
from .logspace import NEVER, Doubles

BLOCK = 512
TOP = 512  # the tokens of a thin vector; at most a block
THIN_FROM = 2048  # vectors with fewer tokens stay whole
THIN_TAIL = 0.25  # the tail's largest share; with more, every fourth draw would cost a forward
TAIL = -1  # the result of a draw that falls into the tail
_ROUNDING = 2.0**-50
_TINY = 1e-200  # totals below this, relative to the largest weight, are summed again in log space


class Vector:
    """The tokens that a prefix allows, with their weights.

    Attributes:
        ids: the tokens with weight, ascending, int32, shape (k,). The first end id stands for all ends.
        raw, shift: log P = raw - shift; float32, shape (k,), and a double. raw is float64 if an end is among
            the tokens and stands for several ids.
        factor: log weights of the shaping potentials, float64, shape (k,); None: no such potentials.
        log_mass: log of the summed exp(score): the exact local normaliser.
        lost: the most probable token that is not allowed, (id, log P); empty if nothing is lost.
        reason: why no token is allowed; empty: some token is.
        tail: summed exp(score - top) of the allowed tokens that are not in `ids`; 0: the vector is not thin.
        more: drawn tokens of the tail: token -> raw.
        whole: the whole vector, if it was kept.
    """

    __slots__ = ("_entropy", "_sums", "factor", "ids", "log_mass", "lost", "more", "raw", "reason", "shift",
                 "tail", "top", "totals", "whole")  # fmt: skip

    def __init__(
        self,
        ids: npt.NDArray[np.int32],
        raw: npt.NDArray[np.float32] | Doubles,
        shift: float,
        factor: Doubles | None = None,
        lost: tuple[tuple[int, float], ...] = (),
        reason: str = "",
        tail: float = 0.0,
        entropy: float = -1.0,
    ) -> None:
        self.tail: float = tail
        self.more: dict[int, float] = {}
        self.whole: Vector | None = None
        self.ids: npt.NDArray[np.int32] = ids
        self.raw: npt.NDArray[np.float32] | Doubles = raw
        self.shift: float = shift
        self.factor: Doubles | None = factor
        self.lost: tuple[tuple[int, float], ...] = lost
        self.reason: str = reason
        self._entropy = entropy
        self._sums: Doubles | None = None
        self.top: float = NEVER
        self.log_mass: float = NEVER
        self.totals: Doubles = np.zeros(0, np.float64)
        if not ids.size:
            return
        scores = self.scores()
        self.top = float(scores.max())
        scores -= self.top
        np.exp(scores, out=scores)
        self.totals = np.add.reduceat(scores, np.arange(0, len(scores), BLOCK))
        if len(scores) <= BLOCK and not tail:
            self._sums = np.cumsum(scores)
        self.log_mass = self.top + math.log(float(self.totals.sum()) + tail)
        if factor is None:
            self.log_mass = min(self.log_mass, 0.0)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def thin(self) -> bool:
        return self.tail > 0.0

    def token(self, slot: int) -> int:
        return int(self.ids[slot]) if slot >= 0 else -2 - slot

    def keep(self, token: int, raw: float) -> int:
        """Keeps a token of the tail with its raw score, and returns its slot."""
        self.more.setdefault(token, raw)
        return -2 - token

    def others(self, whole: Vector) -> Doubles:
        """Returns the scores of a whole vector's tokens; -inf for the tokens of this vector.

        If the model's second row differs a little, the scores are shifted so that the tail keeps its weight.
        """
        scores = whole.scores()
        scores += whole.shift - self.shift if whole.shift != self.shift else 0.0
        at = np.searchsorted(whole.ids, self.ids)
        at[at == len(whole.ids)] = 0
        scores[at[whole.ids[at] == self.ids]] = NEVER
        top = float(scores.max())
        change = self.top + math.log(self.tail) - top - math.log(float(np.exp(scores - top).sum()))
        if abs(change) > 1e-9:
            scores += change
        return scores

    def logp(self, slot: int) -> float:
        return (float(self.raw[slot]) if slot >= 0 else self.more[-2 - slot]) - self.shift

    def score(self, slot: int) -> float:
        """Returns log P with the shaping potentials."""
        plain = self.logp(slot)
        return plain if self.factor is None or slot < 0 else plain + float(self.factor[slot])

    def logps(self) -> Doubles:
        """Returns float64, shape (k,); a fresh array."""
        return self.raw.astype(np.float64) - self.shift

    def scores(self, begin: int = 0, stop: int | None = None) -> Doubles:
        """Returns float64; a fresh array."""
        found: Doubles = self.raw[begin:stop].astype(np.float64)
        found -= self.shift
        if self.factor is not None:
            found += self.factor[begin:stop]
        return found

    def weights(self, block: int) -> Doubles:
        """Returns exp(score - top) of a block; a fresh array."""
        found = self.scores(block * BLOCK, (block + 1) * BLOCK)
        found -= self.top
        np.exp(found, out=found)
        return found

    def choose(self, chance: Chance) -> int:
        """Draws a slot, or TAIL, with a probability proportional to exp(score)."""
        if self.tail:
            at = chance.choose(np.cumsum(np.append(self.weights(0), self.tail)))
            return TAIL if at == len(self.ids) else at
        if self._sums is None:
            self._sums = np.cumsum(self.totals)
        at = chance.choose(self._sums)
        if len(self.totals) == 1:
            return at
        return at * BLOCK + chance.choose(np.cumsum(self.weights(at)))

    def slot(self, token: int) -> int | None:
        """Returns the slot of a token, or None if the token is not allowed."""
        at = int(np.searchsorted(self.ids, token))
        if at < len(self.ids) and self.ids[at] == token:
            return at
        return -2 - token if token in self.more else None

    def best(self, count: int) -> list[int]:
        """Returns the `count` slots with the largest scores, or all, best first; of equal scores the lower id
        first.

        A smaller count gives the first slots of a larger count.
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
        """The entropy of the local distribution, in nats."""
        if self._entropy < 0.0:
            logs = self.scores() - self.log_mass
            self._entropy = max(0.0, float(-(np.exp(logs) * logs).sum()))
        return self._entropy

    @property
    def nbytes(self) -> int:
        """The memory of the vector without `ids`, which vectors may share."""
        own = self.raw.nbytes + self.totals.nbytes + (0 if self.factor is None else self.factor.nbytes)
        own += self.ids.nbytes if self.tail else 0  # a thin vector does not share its ids
        own += 0 if self.whole is None else self.whole.nbytes + self.whole.ids.nbytes
        return own + (0 if self._sums is None else self._sums.nbytes) + 100 * len(self.more)


class Urn:
    """The tokens of a vector, some with a factor of at most 1. A log factor of -inf removes a token."""

    __slots__ = ("_blocks", "_others", "_stale", "_summed", "_totals", "exact", "vector")

    def __init__(self, vector: Vector) -> None:
        self.vector: Vector = vector
        self._blocks: dict[int, dict[int, float]] = {}  # block -> slot -> log factor
        self._others: dict[int, float] = {}  # token of the tail -> log factor
        self._summed = -1.0  # the summed weight of the tail; below 0: it must be summed again
        self.exact: bool = False  # whether the tail of a crowded vector is summed; set when a walk visits it
        self._totals = vector.totals
        self._stale: set[int] = set()  # blocks whose totals must be summed again

    def copy(self) -> Urn:
        twin = Urn(self.vector)
        twin._blocks = {block: dict(factors) for block, factors in self._blocks.items()}
        twin._others, twin.exact = dict(self._others), self.exact
        twin._totals = self._totals.copy()
        twin._stale = set(self._stale)
        return twin

    def set(self, slot: int, factor: float) -> None:
        """Gives a slot a log factor; 0 restores its own weight."""
        if slot < 0:
            self._summed = -1.0
            if factor == 0.0:
                self._others.pop(-2 - slot, None)
            else:
                self._others[-2 - slot] = factor
            return
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
        """Returns summed weights, relative to exp(top) of the vector."""
        if self._stale:
            if self._totals is self.vector.totals:
                self._totals = self._totals.copy()
            for block in self._stale:
                plain = block not in self._blocks
                self._totals[block] = self.vector.totals[block] if plain else self._weights(block).sum()
            self._stale.clear()
        return float(self._totals.sum()) + (self._tail() if self.vector.tail else 0.0)

    @property
    def others(self) -> dict[int, float]:
        """The factors on tokens that a thin vector leaves out: token -> log factor."""
        return self._others

    def factored(self, scores: Doubles, whole: Vector) -> Doubles:
        """Multiplies the factors on tokens of the tail into the scores of a whole vector's tokens, in
        place."""
        for token, factor in self._others.items():
            slot = whole.slot(token)
            if slot is not None:
                scores[slot] += factor
        return scores

    def _kept(self) -> float:
        """Returns the sum of the plain weights of the tail's tokens with factors. The order of the sum is
        fixed."""
        vector = self.vector
        return math.fsum(math.exp(vector.more[t] - vector.shift - vector.top) for t in self._others)

    def _tail(self) -> float:
        """Returns an upper bound on the tail's weight under the factors. It exceeds the weight only by
        rounding."""
        vector = self.vector
        if not self._others:
            return vector.tail
        if self.exact and vector.whole is not None:
            if self._summed < 0.0:
                scores = self.factored(vector.others(vector.whole), vector.whole)
                self._summed = float(np.exp(scores - vector.top).sum())
            return self._summed
        below = vector.shift + vector.top
        held = math.fsum(math.exp(vector.more[t] - below + f) for t, f in self._others.items() if f > NEVER)
        rest = max(0.0, vector.tail - self._kept())
        return held + rest + len(self._others) * _ROUNDING * vector.tail

    @property
    def crowded(self) -> bool:
        """Whether tokens with factors have more than half of the tail; the tail must then be summed."""
        return bool(self._others) and not self.exact and self._kept() > 0.5 * self.vector.tail

    def weight(self, slot: int) -> float:
        """Returns the weight of a slot, relative to exp(top) of the vector."""
        if slot < 0:
            factor = self._others.get(-2 - slot, 0.0)
        else:
            factor = self._blocks.get(slot // BLOCK, {}).get(slot, 0.0)
        return math.exp(self.vector.score(slot) - self.vector.top + factor)

    def log_total(self) -> float:
        """Returns the log of the summed exp(score) * factor: at most the vector's log mass."""
        if not self._blocks and not self._others:
            return self.vector.log_mass
        total = self.total()
        if total < _TINY:
            scores = self._all()
            top = float(scores.max())
            return top if top == NEVER else top + math.log(float(np.exp(scores - top).sum()))
        return min(self.vector.log_mass, self.vector.top + math.log(total))

    def choose(self, chance: Chance) -> int:
        """Returns a slot with probability in proportion to its weight, or TAIL; some weight must be left."""
        if not self._blocks and not self._others:
            return self.vector.choose(chance)
        if self.total() < _TINY:
            scores = self._all()
            at = chance.choose(np.cumsum(np.exp(scores - scores.max())))
            return TAIL if at == len(self.vector.ids) else at
        if self.vector.tail:
            weights = np.append(self._weights(0), self._tail())
            at = chance.choose(np.cumsum(weights))
            return TAIL if at == len(self.vector.ids) else at
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
        if self.vector.tail:
            tail = self._tail()
            scores = np.append(scores, self.vector.top + math.log(tail) if tail > 0.0 else NEVER)
        return scores

    @property
    def nbytes(self) -> int:
        own = 0 if self._totals is self.vector.totals else self._totals.nbytes
        return own + 100 * (sum(map(len, self._blocks.values())) + len(self._others))


def _arrays(factors: dict[int, float]) -> tuple[npt.NDArray[np.int64], Doubles]:
    count = len(factors)
    return np.fromiter(factors, np.int64, count), np.fromiter(factors.values(), np.float64, count)
