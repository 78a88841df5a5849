"""Keys and values of a batch of rows whose drafts are accepted to different lengths.

Enters: the keys of a block of new tokens (transformers writes them through `update`), and then which tokens
of the block each row keeps. Leaves: views of everything written so far, without a copy.
Cost: keeping a path copies its own keys; a batch is repacked when the holes outgrow what is live.

All rows write at the same slots, so a row that keeps fewer tokens than another leaves *holes*; a mask of
live slots and explicit positions make them invisible. Moving every row to its own offset each step (EQSPEC)
was the alternative; it copies whole rows. Keys must not depend on the slot they lie in, which holds for
rotary and learned positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers.cache_utils import Cache, CacheLayerMixin

__all__ = ["TreeCache"]

_ROOM = 64
_HOLES = 64


class _Layer(CacheLayerMixin):  # type: ignore[misc, no-untyped-call, unused-ignore]
    """One layer's view of the cache, as transformers wants it."""

    is_sliding = False
    is_croppable = False  # the cache keeps paths; transformers must not cut it

    def __init__(self, owner: TreeCache) -> None:
        super().__init__()  # type: ignore[no-untyped-call, unused-ignore]
        self.owner = owner

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        rows, heads, _, size = key_states.shape
        self.keys = key_states.new_zeros((rows, heads, self.owner.capacity, size))
        self.values = value_states.new_zeros(
            (rows, value_states.shape[1], self.owner.capacity, value_states.shape[-1])
        )
        self.dtype, self.device = key_states.dtype, key_states.device
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        assert self.keys is not None and self.values is not None
        start = self.owner.slots
        stop = start + key_states.shape[-2]
        self.keys[:, :, start:stop] = key_states
        self.values[:, :, start:stop] = value_states
        return self.keys[:, :, :stop], self.values[:, :, :stop]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.owner.slots + query_length, 0

    def get_seq_length(self) -> int:
        return self.owner.slots

    def get_max_length(self) -> int:
        return -1


class TreeCache:
    """The cache of `rows` sequences. `live[r, s]`: slot s holds a token of row r; `lengths[r]`: how many."""

    def __init__(self, layers: int, rows: int = 1) -> None:
        self.capacity = 0
        self.slots = 0
        self.live: npt.NDArray[np.bool_] = np.zeros((rows, 0), np.bool_)
        self.lengths: npt.NDArray[np.int64] = np.zeros(rows, np.int64)
        self.layers = [_Layer(self) for _ in range(layers)]
        self.cache = Cache(layers=list(self.layers))
        self._buffers: list[torch.Tensor] = []

    @property
    def rows(self) -> int:
        return int(self.live.shape[0])

    @property
    def nbytes(self) -> int:
        return sum(t.nbytes for t in self._tensors())

    def reserve(self, count: int) -> None:
        """Room for a block of `count` tokens; the buffers at least double, so growth is amortised."""
        wanted = self.slots + count
        if wanted <= self.capacity:
            return
        self.capacity = max(wanted + _ROOM, self.capacity * 2)
        live = np.zeros((self.rows, self.capacity), np.bool_)
        live[:, : self.slots] = self.live[:, : self.slots]
        self.live = live
        if self._tensors():
            self._replace(lambda t: _padded(t, self.slots, self.capacity))

    def keep(self, kept: list[list[int]]) -> None:
        """Close the block that was just written: row r keeps its tokens kept[r], ascending, in that order.

        What is kept moves to the front of the block; the rest is overwritten by the next one.
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
        """Only these rows, in this order; a row may come twice (a fork)."""
        self.live = self.live[rows]
        self.lengths = self.lengths[rows]
        if self._tensors():
            index = torch.tensor(rows, dtype=torch.long, device=self._tensors()[0].device)
            self._replace(lambda t: t.index_select(t.dim() - 4, index))

    def add_rows(self, count: int) -> None:
        """Empty rows behind the others."""
        self.live = np.concatenate([self.live, np.zeros((count, self.live.shape[1]), np.bool_)])
        self.lengths = np.concatenate([self.lengths, np.zeros(count, np.int64)])
        if self._tensors():

            def grown(t: torch.Tensor) -> torch.Tensor:
                shape = list(t.shape)
                shape[-4] = count
                return torch.cat([t, t.new_zeros(shape)], dim=-4)

            self._replace(grown)

    def truncate(self, length: int) -> None:
        """Forget the tokens of a single row from `length` on."""
        assert self.rows == 1 and self.slots == self.lengths[0]
        self.live[0, length:] = False
        self.lengths[0] = self.slots = min(length, self.slots)

    def _move(self, row: int, start: int, indices: list[int]) -> None:
        moved = next(i for i, index in enumerate(indices) if index != i)
        source = torch.tensor([start + i for i in indices[moved:]], device=self._tensors()[0].device)
        target = slice(start + moved, start + len(indices))
        for tensor in self._tensors():
            part = tensor.select(tensor.dim() - 4, row)
            part[..., target, :] = part.index_select(part.dim() - 2, source)

    def _repack(self) -> None:
        """Every row's live slots to the left; the shorter rows' holes are then at the right."""
        slots = int(self.lengths.max(initial=0))
        order = np.argsort(~self.live[:, : self.slots], axis=1, kind="stable")[:, :slots]
        for tensor in self._tensors():
            axis = tensor.dim() - 4
            for row in range(self.rows):
                part = tensor.select(axis, row)
                source = torch.from_numpy(order[row]).to(tensor.device)
                part[..., :slots, :] = part.index_select(part.dim() - 2, source)
        self.live[:] = np.arange(self.capacity) < self.lengths[:, None]
        self.slots = slots

    def _tensors(self) -> list[torch.Tensor]:
        """Every buffer once. Layers of one shape share one, so that a move is one operation and not twice
        the number of layers."""
        if not self._buffers and all(layer.is_initialized for layer in self.layers):
            groups: dict[Any, list[tuple[_Layer, str]]] = {}
            for layer in self.layers:
                for side in ("keys", "values"):
                    t = getattr(layer, side)
                    groups.setdefault((t.shape, t.dtype, t.device), []).append((layer, side))
            for members in groups.values():
                self._buffers.append(torch.stack([getattr(layer, side) for layer, side in members]))
            self._groups = list(groups.values())
            self._assign()
        return self._buffers

    def _replace(self, change: Any) -> None:
        self._buffers = [change(t) for t in self._buffers]
        self._assign()

    def _assign(self) -> None:
        for members, buffer in zip(self._groups, self._buffers, strict=True):
            for i, (layer, side) in enumerate(members):
                setattr(layer, side, buffer[i])


def _padded(t: torch.Tensor, used: int, capacity: int) -> torch.Tensor:
    shape = list(t.shape)
    shape[-2] = capacity
    made = t.new_zeros(shape)
    made[..., :used, :] = t[..., :used, :]
    return made
