"""Finds where a text repeats its own structure, from the trace of its masks.

Enters: for each place a digest of its mask, then the token taken there. Leaves: the tokens that would
continue a repeated structure, and the length of the repetition. Cost: O(t) of numpy a token, where t tokens
are written.

The method follows the "grammar-based repetition penalty" (RPG), which compares traces of parser rules. Here
the trace of a text is the sequence of its masks, because a mask says which choices a parse state offers.
Two places with equal histories of masks have the same structure, even if their words differ. If the last l
masks (l >= `shortest`) equal the l masks before an earlier place, the token taken at that place becomes
less probable by the factor decay ** (l - shortest + 1). Each repetition applies its factor once.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

SHORTEST = 4  # masks that must repeat before anything is penalised
_LEAST = -20.0  # The least sum of penalties of a token, in nats. A forced token stays possible.


def mark(mask: npt.NDArray[np.int32]) -> bytes:
    """Returns the digest of a mask, or of the ids that it allows."""
    return hashlib.blake2b(mask.tobytes(), digest_size=16).digest()


class StructureTrace:
    """Masks seen and tokens taken, with the longest common suffix of every place with the present one."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self._numbers: dict[bytes, int] = {}  # the number of each mask, by its digest
        self._marks = np.zeros(64, np.int64)
        # _common[p + 1] is how many of the last masks equal the masks up to place p. _common[0] is 0.
        self._common = np.zeros(65, np.int64)
        self._size = 0

    def enter(self, mark: bytes) -> None:
        """Adds the mask of the next place to the trace."""
        size = self._size
        if size == len(self._marks):
            self._marks = np.concatenate([self._marks, np.zeros(size, np.int64)])
            self._common = np.concatenate([self._common, np.zeros(size, np.int64)])
        number = self._numbers.setdefault(mark, len(self._numbers))
        same = self._marks[:size] == number
        self._common[1 : size + 1] = (self._common[:size] + 1) * same
        self._marks[size] = number
        self._size = size + 1

    def take(self, token: int) -> None:
        self.tokens.append(token)

    def penalties(self, shortest: int) -> dict[int, int]:
        """Returns the tokens that would repeat a structure of at least `shortest` masks, each with its steps
        of decay."""
        found: dict[int, int] = {}
        common = self._common[1 : len(self.tokens) + 1]
        for at in np.flatnonzero(common >= shortest):
            token = self.tokens[at]
            found[token] = found.get(token, 0) + int(common[at]) - shortest + 1
        return found

    def nats(self, decay: float, shortest: int) -> Iterator[tuple[int, float]]:
        """Returns the tokens that are penalised here, each with the number to add to its log-probability."""
        for token, steps in self.penalties(shortest).items():
            yield token, max(_LEAST, steps * math.log(decay))
