"""Token recycling: after a token, what the model last found likely after it.

Enters: the target's distributions at every place that was verified. Leaves: up to eight children of any
token. Cost: 32 bytes a token of the vocabulary, and a partial sort of a distribution a verified place.

Luo et al. 2024, *Turning Trash into Treasure*. An empty row offers nothing (the reference drafts token 0),
and rows are written in the order of the text, so the latest wins. The tree that the paper fixes in advance
is grown here by path probability like any other.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from ..._draws import top
from ..base import Cursor, Here, Quiet, Start, Step, Vector

__all__ = ["TokenRecycling"]

_KEPT = 8
# How often the token of each rank came, over many models; running acceptance corrects it.
_RANKS = (0.45, 0.16, 0.09, 0.06, 0.04, 0.03, 0.025, 0.02)


class TokenRecycling:
    """Drafts from a table of successors, shared by all texts.

    Args:
        vocab_size: of the target; None takes the first text's.
        width: children offered.
    """

    name = "token recycling"

    def __init__(self, vocab_size: int | None = None, width: int = 4) -> None:
        if not 1 <= width <= _KEPT:
            raise ValueError(f"width is 1 to {_KEPT}, not {width}")
        self.width = width
        self._rows: dict[int, tuple[tuple[int, float], ...]] = {}
        self._limit = vocab_size
        self._lock = threading.Lock()

    def open(self, start: Start) -> _Session:
        if self._limit is None:
            self._limit = start.vocabulary.vocab_size
        return _Session(self, start.prompt[-1])

    def row(self, token: int) -> tuple[tuple[int, float], ...]:
        """(successor, probability), most probable first; empty where nothing is known."""
        return self._rows.get(token, ())

    def learn(self, token: int, vector: Vector) -> None:
        """The distribution after a token, as log-probabilities."""
        best = top(vector, _KEPT)[: self.width]
        row = tuple((int(t), p) for t, p in zip(best, _RANKS, strict=False) if vector[t] > -np.inf)
        with self._lock:
            self._rows[token] = row


class _Session(Quiet):
    def __init__(self, table: TokenRecycling, last: int) -> None:
        self._table = table
        self._last = last

    def accept(self, step: Step) -> None:
        for context, vector in zip(step.contexts, step.vectors, strict=True):
            if vector is not None:
                self._table.learn(context, vector)
        self._last = step.tokens[-1]

    def cursor(self) -> Cursor | None:
        return _Cursor(self._table, self._last)


class _Cursor:
    __slots__ = ("_table", "_token")

    def __init__(self, table: TokenRecycling, token: int) -> None:
        self._table = table
        self._token = token

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        return self._table.row(self._token)

    def step(self, token: int) -> _Cursor | None:
        return _Cursor(self._table, token)
