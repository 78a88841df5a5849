"""Keys and values of a batch of rows under draft trees, as a cache of transformers.

Enters: the keys of a block of new tokens (transformers writes them through `update`). Leaves: views of
everything written so far, without a copy. Cost: see tree_slots.py, which moves the keys of the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from .tree_slots import TreeSlots


class _Layer(CacheLayerMixin):  # type: ignore[misc, no-untyped-call, unused-ignore]
    """One layer's view of the cache, in the interface of transformers."""

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


class TreeCache(TreeSlots):
    """The keys and values of one layer of a transformers model, in slots of `rows` sequences."""

    def __init__(self, layers: int, rows: int = 1) -> None:
        super().__init__(rows)
        self.layers: list[_Layer] = [_Layer(self) for _ in range(layers)]
        self.cache: Cache = Cache(layers=list(self.layers))
        self._buffers: list[torch.Tensor] = []

    def buffers(self) -> list[torch.Tensor]:
        """Returns every buffer once. Layers of one shape share a buffer, so one operation moves the keys and
        values of all of them."""
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

    def replace(self, buffers: Sequence[torch.Tensor]) -> None:
        if buffers:
            self._buffers = list(buffers)
            self._assign()

    @staticmethod
    def zeros(like: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        return like.new_zeros(shape)

    def _assign(self) -> None:
        for members, buffer in zip(self._groups, self._buffers, strict=True):
            for i, (layer, side) in enumerate(members):
                setattr(layer, side, buffer[i])
