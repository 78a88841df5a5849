"""Draws one token from masked log-probabilities. The draw depends on the seed and the place in the text.

Enters: a row of log-probabilities with -inf where a token is not allowed. Leaves: a token.
Cost: two logarithms an allowed token, and a sort of the allowed ones with `top_k` or `top_p`.

Draws are Gumbel-max (Gumbel 1954; Maddison, Tarlow and Minka 2014): the token with the largest
`score / temperature + g` follows the softmax when every g is an independent Gumbel number. The g of a token
is a hash of (seed, sample, position, token) and of nothing else. So a draw does not depend on what was drawn
before it, nor on which other tokens were looked at, and two programs that give a place the same distribution
draw the same token there: speculative decoding is checked against plain decoding token by token. A stream
of random numbers (the rejected alternative) would give every place another number once a draft is refused.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .errors import StructgenError

_Floats = npt.NDArray[np.float64]
_Ids = npt.NDArray[np.int64]
NO_TOKEN = "the model gives no allowed token a probability above 0"
_MASK = (1 << 64) - 1
# The odd constants of splitmix64 (Steele, Lea and Flood 2014), a generator that is a bijection of a counter.
STEP = 0x9E3779B97F4A7C15
FIRST, SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


class Shape(Protocol):
    """The part of a `Drawing` that changes the distribution."""

    @property
    def temperature(self) -> float: ...
    @property
    def top_k(self) -> int | None: ...
    @property
    def top_p(self) -> float | None: ...


class Noise:
    """Gumbel numbers by (position, token); one object a sample.

    Args:
        seed: any non-negative integer.
        index: the number of the sample among those of one call.
    """

    __slots__ = ("_keys",)

    def __init__(self, seed: int, index: int = 0) -> None:
        words = np.random.SeedSequence(seed, spawn_key=(index,)).generate_state(2, np.uint64)
        self._keys = int(words[0]), int(words[1])

    def gumbel(self, position: int, ids: _Ids | int) -> _Floats:
        """Returns one number for each of `ids`, or for 0 .. ids - 1; float64."""
        uniform = self.uniform(position, ids)
        np.log(uniform, out=uniform)
        np.negative(uniform, out=uniform)
        np.log(uniform, out=uniform)
        return np.negative(uniform, out=uniform)

    def uniform(self, position: int, ids: _Ids | int) -> _Floats:
        """Returns one float64 in (0, 1) for each of `ids`, on a grid of 2**-53. Neither 0 nor 1 occurs."""
        words = np.arange(ids, dtype=np.uint64) if isinstance(ids, int) else ids.astype(np.uint64)
        start, late = self.words(position)
        words *= np.uint64(STEP)
        words += np.uint64(start)
        _mix(words)
        words ^= np.uint64(late)
        _mix(words)
        words >>= np.uint64(11)
        uniform = words.astype(np.float64)
        uniform += 0.5
        uniform *= 2.0**-53
        return uniform

    def words(self, position: int) -> tuple[int, int]:
        """Returns two 64-bit keys of a position. With two keys the hashes of different positions do not line
        up."""
        start, late = (_mixed((key + (position + 1) * STEP) & _MASK) for key in self._keys)
        return start, late

    def generator(self) -> np.random.Generator:
        """Returns a random generator under the same seed, for numbers that belong to no position."""
        return np.random.Generator(np.random.PCG64(list(self._keys)))


def _mixed(word: int) -> int:
    word = ((word ^ word >> 30) * FIRST) & _MASK
    word = ((word ^ word >> 27) * SECOND) & _MASK
    return word ^ word >> 31


def _mix(words: npt.NDArray[np.uint64]) -> None:
    words ^= words >> np.uint64(30)
    words *= np.uint64(FIRST)
    words ^= words >> np.uint64(27)
    words *= np.uint64(SECOND)
    words ^= words >> np.uint64(31)


def scaled(logprobs: npt.NDArray[np.float32], temperature: float) -> _Floats:
    """Returns log-probabilities divided by the temperature. No maximum is subtracted, because it would depend
    on the mask: a token's score must be the same bits whether or not the mask was ever computed."""
    scores = logprobs.astype(np.float64)
    with np.errstate(over="ignore"):  # A score may overflow to -inf; `draw` handles that case.
        scores /= temperature
    return scores


def shaped(logprobs: npt.NDArray[np.float32], how: Shape) -> tuple[_Ids, _Floats]:
    """Returns the tokens that may be drawn and their scores: temperature, then top-k, then top-p.

    Args:
        logprobs: shape (V,), -inf where not allowed.
    """
    ids = np.flatnonzero(logprobs > -np.inf)
    scores = scaled(logprobs[ids], how.temperature)
    if how.top_k is None and how.top_p is None:
        return ids, scores
    order = np.argsort(-scores, kind="stable")[: how.top_k]
    ids, scores = ids[order], scores[order]
    if how.top_p is not None and len(scores):
        sums = np.cumsum(np.exp(scores - scores[0]))
        count = int(np.searchsorted(sums, how.top_p * sums[-1])) + 1
        ids, scores = ids[:count], scores[:count]
    return ids, scores


def draw(logprobs: npt.NDArray[np.float32], how: Shape, noise: Noise | None, position: int) -> int:
    """Returns the token of one position. Without noise it is the most probable one, and of several the lowest
    id."""
    best = int(np.argmax(logprobs))
    if not np.isfinite(logprobs[best]):
        raise StructgenError(NO_TOKEN)
    if noise is None:
        return best
    ids, scores = shaped(logprobs, how)
    scores += noise.gumbel(position, ids)
    at = int(np.argmax(scores))
    # At a very small temperature every score may overflow. The draw is then that of temperature 0: the most
    # probable token.
    return int(ids[at]) if np.isfinite(scores[at]) else best


def probabilities(logprobs: npt.NDArray[np.float32], how: Shape) -> tuple[_Ids, _Floats]:
    """Returns the tokens that may be drawn and their probabilities; one token where the temperature is 0."""
    if how.temperature == 0:
        return np.array([int(np.argmax(logprobs))]), np.ones(1)
    ids, scores = shaped(logprobs, how)
    weights = np.exp(scores - scores.max())
    return ids, weights / weights.sum()


def top(values: npt.NDArray[np.floating[Any]], count: int) -> _Ids:
    """Returns the indices of the largest values, largest first, lowest index first among equals."""
    if count >= len(values):
        return np.argsort(-values, kind="stable")
    part = np.argpartition(-values, count - 1)[:count]
    part.sort()
    return part[np.argsort(-values[part], kind="stable")]
