"""Turns a drafter's own probabilities into offers, with the noise of the target's draws if there is any.

Enters: log-probabilities of some tokens. Leaves: (token, probability that the target draws it), best first.
Cost: a partial sort.

The target draws argmax(log p / T + g). If q is like p, argmax(log q / T + g) is that token more often than a
token that is chosen without g (Gumbel coupling). The noise g is known in advance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ..._draws import Noise, scaled, top
from ..base import Here, Likely, Quiet, Start, Step


class Store(Protocol):
    """A store that all texts share. For an n-gram of up to `longest` tokens it has the tokens that follow."""

    longest: int

    def learn(self, likely: Likely) -> None: ...


S = TypeVar("S", bound=Store)


class RecentCursor(Generic[S]):
    """A drafter's place behind the last tokens. A store has the tokens that follow them."""

    __slots__ = ("_recent", "_start", "_store")

    def __init__(self, store: S, start: Start, recent: tuple[int, ...]) -> None:
        self._store = store
        self._start = start
        self._recent = recent[-store.longest :]

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        raise NotImplementedError

    def step(self, token: int) -> RecentCursor[S]:
        return type(self)(self._store, self._start, (*self._recent, token))


class RecentSession(Quiet):
    """A drafter on one text. The store learns which tokens the target found likely."""

    def __init__(self, cursor: RecentCursor[Any], store: Store) -> None:
        self._cursor, self._store = cursor, store

    def accept(self, step: Step) -> None:
        if (likely := step.likely) is not None:
            self._store.learn(likely)
        for token in step.tokens:
            self._cursor = self._cursor.step(token)

    def cursor(self) -> RecentCursor[Any]:
        return self._cursor


def ranked(
    ids: npt.NDArray[np.int64],
    logprobs: npt.NDArray[np.float32],
    temperature: float,
    noise: Noise | None,
    position: int,
    count: int,
) -> list[tuple[int, float]]:
    """Ranks tokens and returns the `count` best with their probabilities; `ids` and `logprobs` have shape
    (n,)."""
    if noise is None:
        best = top(logprobs, count)
        chances = np.exp(logprobs[best].astype(np.float64))
    else:
        scores = scaled(logprobs, temperature) + noise.gumbel(position, ids)
        best = top(scores, count)
        # The certainty of the first token depends on its lead: a target that differs a little reorders tokens
        # that are close.
        lead = scores[best] - scores[best[0]]
        chances = np.exp(lead)
        chances /= chances.sum() + 0.05
    return [
        (int(ids[i]), min(float(p), 0.99))
        for i, p in zip(best, chances, strict=True)
        if logprobs[i] > -np.inf
    ]
