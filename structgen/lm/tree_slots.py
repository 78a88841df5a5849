"""Tracks which slots of a batch's keys and values hold tokens, because rows accept drafts of different
lengths.

Enters: the size of a block of new tokens, whose keys a forward writes behind the others, and then the tokens
of the block that each row keeps. Leaves: the live slots, with each row's tokens in the order of its text.
Cost: keeping a path copies its own keys; a batch is repacked when it has more holes (slots without a token)
than live slots.

All rows write at the same slots, so a row that keeps fewer tokens than another leaves *holes*. A mask of
live slots and explicit positions make the holes invisible. The rejected alternative (EQSPEC) moves every
row to its own offset in each step, which copies whole rows. Keys must not depend on their slots; this holds
for rotary and learned positions.

Buffers are arrays of numpy or tensors of torch, (n, rows, heads, capacity, size). Only operations with equal
names in both are used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_ROOM = 64
_HOLES = 64


class TreeSlots(ABC):
    """The slots of `rows` sequences. `live[r, s]`: slot s holds a token of row r. `lengths[r]`: the number of
    such slots."""

    def __init__(self, rows: int = 1) -> None:
        self.capacity: int = 0
        self.slots: int = 0
        self.live: npt.NDArray[np.bool_] = np.zeros((rows, 0), np.bool_)
        self.lengths: npt.NDArray[np.int64] = np.zeros(rows, np.int64)

    @abstractmethod
    def buffers(self) -> Sequence[Any]:
        """Returns all buffers of keys and values; empty before the first block is written."""

    @abstractmethod
    def replace(self, buffers: Sequence[Any]) -> None:
        """Puts new buffers in the place of the old ones."""

    @staticmethod
    @abstractmethod
    def zeros(like: Any, shape: tuple[int, ...]) -> Any:
        """Returns a buffer of zeros with this shape."""

    @property
    def rows(self) -> int:
        return int(self.live.shape[0])

    @property
    def nbytes(self) -> int:
        return sum(b.nbytes for b in self.buffers())

    def reserve(self, count: int) -> None:
        """Makes room for a block of `count` tokens. Buffers that grow at least double, so growth is
        amortised."""
        wanted = self.slots + count
        if wanted <= self.capacity:
            return
        self.capacity = max(wanted + _ROOM, self.capacity * 2)
        live = np.zeros((self.rows, self.capacity), np.bool_)
        live[:, : self.slots] = self.live[:, : self.slots]
        self.live = live
        made = []
        for old in self.buffers():
            new = self.zeros(old, (*old.shape[:3], self.capacity, old.shape[4]))
            new[..., : self.slots, :] = old[..., : self.slots, :]
            made.append(new)
        self.replace(made)

    def keep(self, kept: Sequence[Sequence[int]]) -> None:
        """Closes the block that was just written: row r keeps its tokens kept[r], which are ascending.

        The slots that are kept move to the front of the block; the next block overwrites the others.
        """
        start = self.slots
        longest = max((len(k) for k in kept), default=0)
        for row, indices in enumerate(kept):
            count = len(indices)
            if count and indices[-1] != count - 1:
                self._move(row, start, indices)
            self.live[row, start : start + count] = True
            self.live[row, start + count : start + longest] = False
            self.lengths[row] += count
        self.slots = start + longest
        holes = self.slots - int(self.lengths.max(initial=0))
        if holes > _HOLES and holes * 4 > self.slots:
            self._repack()

    def select(self, rows: list[int]) -> None:
        """Keeps only these rows, in this order. A row that is listed twice is forked."""
        self.live = self.live[rows]
        self.lengths = self.lengths[rows]
        self.replace([b[:, rows] for b in self.buffers()])

    def add_rows(self, count: int) -> None:
        """Adds empty rows behind the others."""
        before = self.rows
        self.live = np.concatenate([self.live, np.zeros((count, self.live.shape[1]), np.bool_)])
        self.lengths = np.concatenate([self.lengths, np.zeros(count, np.int64)])
        made = []
        for old in self.buffers():
            new = self.zeros(old, (old.shape[0], before + count, *old.shape[2:]))
            new[:, :before] = old
            made.append(new)
        self.replace(made)

    def truncate(self, length: int) -> None:
        """Forgets the tokens from `length` on. The batch must have a single row."""
        assert self.rows == 1 and self.slots == self.lengths[0]
        self.live[0, length:] = False
        self.lengths[0] = self.slots = min(length, self.slots)

    def _move(self, row: int, start: int, indices: Sequence[int]) -> None:
        moved = next(i for i, index in enumerate(indices) if index != i)
        source = [start + i for i in indices[moved:]]
        for buffer in self.buffers():
            part = buffer[:, row]
            part[:, :, start + moved : start + len(indices)] = part[:, :, source]

    def _repack(self) -> None:
        """Moves the live slots of each row to the left. Shorter rows then have their holes at the right."""
        slots = int(self.lengths.max(initial=0))
        order = np.argsort(~self.live[:, : self.slots], axis=1, kind="stable")[:, :slots]
        for buffer in self.buffers():
            for row in range(self.rows):
                part = buffer[:, row]
                part[:, :, :slots] = part[:, :, order[row].tolist()]
        self.live[:] = np.arange(self.capacity) < self.lengths[:, None]
        self.slots = slots
