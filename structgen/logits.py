"""Token bitmasks on logits: set what is not allowed to -inf, and normalise over what is.

Enters: logits (numpy, torch on any device), shape (V,) or (rows, V), and a mask, int32, shape (W,) or
(rows, W): bit t % 32 of word t // 32 is 1 where token t is allowed. Leaves: masked logits, or sums.
Cost: one pass over the row. In place, a CPU row of 131,072 float32 takes 2 us where nearly all tokens are
allowed and 20 us where nearly none is; out of place it costs a copy.

The rules are the same everywhere. Columns that the mask has no bit for (a model head wider than the
vocabulary) are not allowed. A one-dimensional mask serves every row. NaN stays NaN where it is allowed.
On the CPU the core's kernels do the work, on a GPU Triton's, elsewhere torch's own operations.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from . import _core

if TYPE_CHECKING:
    import torch

__all__ = ["allocate_bitmask", "apply_bitmask", "masked_log_softmax", "masked_logsumexp"]

Array = TypeVar("Array", npt.NDArray[Any], "torch.Tensor")

# The core's names for element types. numpy has no bfloat16 of its own: uint16 arrays hold its bits.
_NUMPY_KINDS = {"float32": 0, "float16": 1, "bfloat16": 2, "uint16": 2, "float64": 3}
_TORCH_KINDS = {"torch.float32": 0, "torch.float16": 1, "torch.bfloat16": 2, "torch.float64": 3}
_DOUBLE = 3


def allocate_bitmask(rows: int, vocab_size: int) -> npt.NDArray[np.int32]:
    """A mask that allows everything: int32, shape (rows, ceil(vocab_size / 32)), every word -1."""
    if rows < 0 or vocab_size < 1:
        raise ValueError(f"no bitmask has {rows} rows of {vocab_size} tokens")
    return np.full((rows, (vocab_size + 31) // 32), -1, dtype=np.int32)


def apply_bitmask(
    logits: Array,
    mask: Any,
    *,
    inplace: bool = False,
    indices: Sequence[int] | None = None,
    threads: int = 0,
) -> Array:
    """Logits with -inf where the mask has 0 or no bit.

    Args:
        logits: float32, float16, bfloat16 or float64, shape (V,) or (rows, V); a numpy uint16 array is
            taken for bfloat16. The last axis may be strided, but then a copy is made.
        mask: int32 numpy array or tensor, shape (W,) or (rows, W); any device.
        inplace: write into `logits` and return it, instead of a new array.
        indices: row i of the mask is for row `indices[i]` of the logits; other rows stay as they are.
        threads: CPU threads; 0 chooses by size, and small batches stay on the calling thread.

    Raises:
        TypeError: not an array of one of these types.
        ValueError: shapes or indices that do not fit.
    """
    if _is_tensor(logits):
        return _apply_torch(logits, mask, inplace, indices, threads)
    view = _Logits.of_numpy(logits)
    rows = _rows(indices, view.rows)
    words = _mask_numpy(mask, view.rows if rows is None else len(rows))
    if inplace:
        if not logits.flags.writeable:
            raise ValueError("the logits are read-only: use inplace=False")
        if not view.dense:
            logits[...] = apply_bitmask(np.ascontiguousarray(logits), mask, inplace=True, indices=indices)
            return logits
        _mask_rows(view, view, words, rows, threads)
        return logits
    if not view.dense:
        return apply_bitmask(np.array(logits, order="C"), mask, inplace=True, indices=indices)
    result = np.empty(logits.shape, logits.dtype)
    _mask_rows(_Logits.of_numpy(result), view, words, rows, threads)
    return result


def masked_logsumexp(logits: Array, mask: Any, *, threads: int = 0) -> Array:
    """The log of the summed exponentials of the allowed logits, one value a row.

    With `logits` as for `apply_bitmask`: shape (rows,), or () for one-dimensional logits; float32, and
    float64 for float64 logits. A row without allowed tokens gives -inf. Sums are formed in double.
    """
    if _is_tensor(logits):
        if logits.device.type != "cpu" or _needs_grad(logits):
            torch = sys.modules["torch"]
            return torch.logsumexp(_widened(_where(logits, mask)), dim=-1)
        view = _Logits.of_torch(logits)
        sums = logits.new_empty(logits.shape[:-1], dtype=_wide_torch(logits))
        _core.masked_logsumexp(
            sums.data_ptr(), *view.arguments(), *_mask_any(mask, view.rows).arguments(), threads
        )
        return sums
    view = _Logits.of_numpy(logits)
    found = np.empty(logits.shape[:-1], np.float64 if view.kind == _DOUBLE else np.float32)
    words = _mask_numpy(mask, view.rows)
    _core.masked_logsumexp(_address(found), *view.arguments(), *words.arguments(), threads)
    return found


def masked_log_softmax(logits: Array, mask: Any, *, threads: int = 0) -> Array:
    """Natural-log probabilities over the allowed tokens, -inf elsewhere.

    With `logits` as for `apply_bitmask`: the same shape; float32, and float64 for float64 logits. A row
    without allowed tokens is -inf throughout, never NaN.
    """
    if _is_tensor(logits):
        if logits.device.type != "cpu" or _needs_grad(logits):
            torch = sys.modules["torch"]
            masked = _widened(_where(logits, mask))
            total = torch.logsumexp(masked, dim=-1, keepdim=True)
            return torch.where(torch.isneginf(total), total, masked - total)
        view = _Logits.of_torch(logits)
        result = logits.new_empty(logits.shape, dtype=_wide_torch(logits))
        _core.masked_log_softmax(
            result.data_ptr(), *view.arguments(), *_mask_any(mask, view.rows).arguments(), threads
        )
        return result
    view = _Logits.of_numpy(logits)
    found = np.empty(logits.shape, np.float64 if view.kind == _DOUBLE else np.float32)
    words = _mask_numpy(mask, view.rows)
    _core.masked_log_softmax(_address(found), *view.arguments(), *words.arguments(), threads)
    return found


class _Logits:
    """Where rows of logits lie in memory. `keep` holds the array alive."""

    __slots__ = ("address", "dense", "keep", "kind", "rows", "stride", "width")

    def __init__(
        self, keep: Any, address: int, kind: int, shape: tuple[int, ...], stride: int, dense: bool
    ) -> None:
        if len(shape) not in (1, 2):
            raise ValueError(f"logits have shape (V,) or (rows, V), not {tuple(shape)}")
        self.keep = keep
        self.address = address
        self.kind = kind
        self.width = shape[-1]
        self.rows = shape[0] if len(shape) == 2 else 1
        self.stride = stride  # elements from one row to the next
        self.dense = dense  # elements of a row are neighbours

    @classmethod
    def of_numpy(cls, array: Any) -> _Logits:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"logits must be a numpy array or a tensor, not {type(array).__name__}")
        kind = _NUMPY_KINDS.get(array.dtype.name)
        if kind is None or not array.dtype.isnative:
            raise TypeError(f"logits of dtype {array.dtype} are not supported")
        size = array.itemsize
        strides = array.strides
        dense = array.shape[-1:] < (2,) or strides[-1] == size
        row = strides[0] if array.ndim == 2 and array.shape[0] > 1 else 0
        dense = dense and row % size == 0
        return cls(array, _address(array), kind, array.shape, row // size, dense)

    @classmethod
    def of_torch(cls, tensor: torch.Tensor) -> _Logits:
        kind = _TORCH_KINDS.get(str(tensor.dtype))
        if kind is None:
            raise TypeError(f"logits of dtype {tensor.dtype} are not supported")
        dense = tensor.dim() > 0 and (tensor.shape[-1] < 2 or tensor.stride(-1) == 1)
        row = tensor.stride(0) if tensor.dim() == 2 and tensor.shape[0] > 1 else 0
        return cls(tensor, tensor.data_ptr(), kind, tuple(tensor.shape), row, dense)

    def arguments(self) -> tuple[int, int, int, int, int]:
        """Address, kind, rows, width, stride: of a dense copy where the array is not."""
        if self.dense:
            return self.address, self.kind, self.rows, self.width, self.stride
        if isinstance(self.keep, np.ndarray):
            self.keep = np.ascontiguousarray(self.keep)
            self.address = _address(self.keep)
        else:
            self.keep = self.keep.contiguous()
            self.address = self.keep.data_ptr()
        self.stride, self.dense = self.width, True
        return self.address, self.kind, self.rows, self.width, self.stride


class _Mask:
    """Where the words of a mask lie; `stride` 0 gives every row the same words."""

    __slots__ = ("address", "keep", "stride", "words")

    def __init__(self, keep: Any, address: int, stride: int, words: int) -> None:
        self.keep, self.address, self.stride, self.words = keep, address, stride, words

    def arguments(self) -> tuple[int, int, int]:
        return self.address, self.stride, self.words


def _mask_numpy(mask: Any, rows: int) -> _Mask:
    if _is_tensor(mask):
        mask = mask.detach().cpu().numpy()
    if not isinstance(mask, np.ndarray) or mask.dtype.kind not in "iu" or mask.itemsize != 4:
        found = mask.dtype if isinstance(mask, np.ndarray) else type(mask).__name__
        raise TypeError(f"a bitmask is an int32 array, not {found}")
    _check_mask(mask.shape, rows)
    if not mask.flags.c_contiguous:
        mask = np.ascontiguousarray(mask)
    words = mask.shape[-1]
    return _Mask(mask, _address(mask), words if mask.ndim == 2 else 0, words)


def _mask_any(mask: Any, rows: int) -> _Mask:
    """For logits that are CPU tensors: the mask may be a tensor, without a detour over numpy."""
    if not _is_tensor(mask):
        return _mask_numpy(mask, rows)
    torch = sys.modules["torch"]
    if mask.dtype != torch.int32:
        raise TypeError(f"a bitmask is an int32 tensor, not {mask.dtype}")
    _check_mask(tuple(mask.shape), rows)
    mask = mask.cpu().contiguous()
    words = mask.shape[-1]
    return _Mask(mask, mask.data_ptr(), words if mask.dim() == 2 else 0, words)


def _check_mask(shape: tuple[int, ...], rows: int) -> None:
    if len(shape) == 2 and shape[0] != rows:
        raise ValueError(f"the bitmask has {shape[0]} rows for {rows} rows of logits")
    if len(shape) not in (1, 2):
        raise ValueError(f"a bitmask has shape (W,) or (rows, W), not {tuple(shape)}")


def _rows(indices: Sequence[int] | None, count: int) -> npt.NDArray[np.int64] | None:
    if indices is None:
        return None
    if _is_tensor(indices):
        indices = indices.tolist()
    rows = np.array(indices, dtype=np.int64, ndmin=1)
    if rows.ndim != 1 or (rows.size and (rows.min() < -count or rows.max() >= count)):
        raise ValueError(f"indices must be rows of the logits, which have {count}")
    rows[rows < 0] += count
    if len(set(rows.tolist())) != rows.size:
        raise ValueError("indices name a row twice")
    return rows


def _mask_rows(
    target: _Logits, source: _Logits, mask: _Mask, rows: npt.NDArray[np.int64] | None, threads: int
) -> None:
    _core.mask_logits(
        target.address,
        target.stride,
        *source.arguments(),
        *mask.arguments(),
        0 if rows is None else _address(rows),
        -1 if rows is None else rows.size,
        threads,
    )


def _apply_torch(logits: Any, mask: Any, inplace: bool, indices: Sequence[int] | None, threads: int) -> Any:
    torch = sys.modules["torch"]
    device = logits.device.type
    if device == "cuda" and not _needs_grad(logits):
        from . import _kernels_triton

        if _kernels_triton.available():
            return _kernels_triton.apply(logits, *_for_device(logits, mask, indices), inplace)
    if device != "cpu" or (_needs_grad(logits) and not inplace):
        masked = _where(logits, mask, indices)
        return logits.copy_(masked) if inplace else masked
    view = _Logits.of_torch(logits)
    rows = _rows(indices, view.rows)
    words = _mask_any(mask, view.rows if rows is None else len(rows))
    if not view.dense or (inplace and _needs_grad(logits)):
        dense = apply_bitmask(logits.detach().clone(memory_format=torch.contiguous_format), mask,
                              inplace=True, indices=indices, threads=threads)  # fmt: skip
        return logits.copy_(dense) if inplace else dense
    result = logits if inplace else torch.empty(logits.shape, dtype=logits.dtype)
    _mask_rows(_Logits.of_torch(result), view, words, rows, threads)
    return result


def _for_device(logits: Any, mask: Any, indices: Sequence[int] | None) -> tuple[Any, Any]:
    """The mask and the row indices as tensors on the device of the logits, checked."""
    torch = sys.modules["torch"]
    if logits.dim() not in (1, 2):
        raise ValueError(f"logits have shape (V,) or (rows, V), not {tuple(logits.shape)}")
    count = logits.shape[0] if logits.dim() == 2 else 1
    rows = _rows(indices, count)
    if not _is_tensor(mask):
        mask = torch.from_numpy(_mask_numpy(mask, count if rows is None else rows.size).keep.view(np.int32))
    if mask.dtype != torch.int32:
        raise TypeError(f"a bitmask is an int32 tensor, not {mask.dtype}")
    _check_mask(tuple(mask.shape), count if rows is None else rows.size)
    if rows is not None:
        rows = torch.from_numpy(rows).to(logits.device, non_blocking=True)
    return mask.to(logits.device, non_blocking=True), rows


def _where(logits: Any, mask: Any, indices: Sequence[int] | None = None) -> Any:
    """Masked logits by torch's own operations: any device, and differentiable."""
    torch = sys.modules["torch"]
    words, rows = _for_device(logits, mask, indices)
    width = logits.shape[-1]
    bits = (words.unsqueeze(-1) >> torch.arange(32, device=logits.device, dtype=torch.int32)) & 1
    allowed = bits.flatten(-2)[..., :width].bool()
    if allowed.shape[-1] < width:
        allowed = torch.nn.functional.pad(allowed, (0, width - allowed.shape[-1]))
    if rows is not None:
        every = torch.ones(logits.shape, dtype=torch.bool, device=logits.device)
        every.view(-1, width)[rows] = allowed
        allowed = every
    return torch.where(allowed, logits, float("-inf"))


def _widened(logits: Any) -> Any:
    return logits.to(_wide_torch(logits))


def _wide_torch(logits: Any) -> Any:
    torch = sys.modules["torch"]
    return torch.float64 if logits.dtype == torch.float64 else torch.float32


def _needs_grad(tensor: Any) -> bool:
    return bool(tensor.requires_grad) and bool(sys.modules["torch"].is_grad_enabled())


def _is_tensor(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])
