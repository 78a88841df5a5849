"""Checks rows of logits and masks, and finds their addresses. logits.py and _kernels_torch.py share it.

Enters: shapes, dtypes, masks, row numbers. Leaves: addresses and strides for the core's kernels, or an error.
Cost: nothing, or a copy of a mask that does not lie as the kernels read it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _core

# The core's numbers for element types. numpy has no bfloat16 of its own: uint16 arrays hold its bits.
KINDS = {"float32": 0, "float16": 1, "bfloat16": 2, "uint16": 2, "float64": 3}


class Span(NamedTuple):
    """Where rows of logits lie: elements of a row are neighbours, rows are `stride` elements apart."""

    address: int
    kind: int
    rows: int
    width: int
    stride: int


class Words(NamedTuple):
    """Where the rows of a mask lie. A `stride` of 0 gives every row the same words. The caller keeps the
    mask."""

    address: int
    stride: int
    words: int


def kind_of(name: str) -> int:
    """Returns the core's number of an element type; TypeError if it has none."""
    kind = KINDS.get(name)
    if kind is None:
        raise TypeError(f"logits of dtype {name} are not supported")
    return kind


def check_logits(shape: Sequence[int]) -> None:
    """ValueError unless the shape is (V,) or (rows, V)."""
    if len(shape) not in (1, 2):
        raise ValueError(f"logits have shape (V,) or (rows, V), not {tuple(shape)}")


def check_mask(shape: Sequence[int], rows: int) -> None:
    """ValueError unless the shape is (W,) or (rows, W)."""
    if len(shape) not in (1, 2):
        raise ValueError(f"a bitmask has shape (W,) or (rows, W), not {tuple(shape)}")
    if len(shape) == 2 and shape[0] != rows:
        raise ValueError(f"the bitmask has {shape[0]} rows for {rows} rows of logits")


def checked_rows(indices: Any, count: int) -> npt.NDArray[np.int64] | None:
    """Returns row indices as an array, counted from 0; ValueError if one is out of range or named twice."""
    if indices is None:
        return None
    rows = np.asarray(indices.tolist() if is_tensor(indices) else indices)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ValueError("indices must be a list of row numbers")
    rows = rows.astype(np.int64)
    if rows.size and (rows.min() < -count or rows.max() >= count):
        raise ValueError(f"indices must be rows of the logits, which have {count}")
    rows[rows < 0] += count
    if np.unique(rows).size != rows.size:
        raise ValueError("indices name a row twice")
    return rows


def mask_array(mask: Any) -> npt.NDArray[np.int32]:
    """Returns a mask that is no tensor as a C-contiguous array of 32-bit words; TypeError for any other
    value."""
    if is_tensor(mask):
        mask = mask.detach().cpu().numpy()
    if not isinstance(mask, np.ndarray) or mask.dtype.kind not in "iu" or mask.itemsize != 4:
        found = mask.dtype if isinstance(mask, np.ndarray) else type(mask).__name__
        raise TypeError(f"a bitmask is an int32 array, not {found}")
    if mask.dtype == np.int32 and mask.flags.c_contiguous:
        return mask
    return np.ascontiguousarray(mask).view(np.int32)


def mask_rows(
    target: Span, source: Span, words: Words, rows: npt.NDArray[np.int64] | None, threads: int
) -> None:
    """Run the core's kernel over rows that lie in memory."""
    where, count = (0, 0) if rows is None else (address(rows), rows.size)
    _core.mask_logits(target.address, target.stride, *source, *words, where, count, threads)


def is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def address(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])
