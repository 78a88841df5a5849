"""The cursor of drafters that copy: a chain of tokens with one probability for each token."""

from __future__ import annotations

from collections.abc import Sequence

from ..base import Here


class Chain:
    """The place before `tokens[at]`. `chance` is the probability of each token."""

    __slots__ = ("_at", "_chance", "_tokens")

    def __init__(self, tokens: Sequence[int], chance: float, at: int = 0) -> None:
        self._tokens = tokens
        self._chance = chance
        self._at = at

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        return ((self._tokens[self._at], self._chance),)

    def step(self, token: int) -> Chain | None:
        after = self._at + 1
        if self._tokens[self._at] != token or after >= len(self._tokens):
            return None
        return Chain(self._tokens, self._chance, after)
