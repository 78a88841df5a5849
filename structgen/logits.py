"""Applies token bitmasks to logits: sets forbidden tokens to -inf, and normalises over the allowed ones.

Enters: logits (numpy, or torch on any device), shape (V,) or (rows, V), and a mask, int32, shape (W,) or
(rows, W): bit t % 32 of word t // 32 is 1 where token t is allowed. Leaves: masked logits, or sums.
Cost: one pass over the row; out of place also a copy.

The rules are the same everywhere. Columns beyond the mask (of a model head wider than the vocabulary) are
forbidden. A one-dimensional mask serves every row. NaN stays NaN where it is allowed. On the CPU the core's
kernels do the work, on a GPU Triton's, elsewhere torch's own operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from . import _core
from ._logit_rows import (
    KINDS,
    Span,
    Words,
    address,
    check_logits,
    check_mask,
    checked_rows,
    is_tensor,
    kind_of,
    mask_array,
    mask_rows,
)

Array = TypeVar("Array")  # a numpy array or a torch tensor


def allocate_bitmask(rows: int, vocab_size: int) -> npt.NDArray[np.int32]:
    """Returns a mask that allows everything: int32, shape (rows, ceil(vocab_size / 32)), every word -1."""
    if rows < 0 or vocab_size < 1:
        raise ValueError(f"no bitmask has {rows} rows of {vocab_size} tokens")
    return np.full((rows, (vocab_size + 31) // 32), -1, dtype=np.int32)


def mask_of(ids: Iterable[int], words: int) -> npt.NDArray[np.int32]:
    """Returns a row of so many words that allows these ids alone."""
    bits = np.zeros(32 * words, np.uint8)
    bits[list(ids)] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def allowed_bits(mask: Any, size: int | None = None) -> npt.NDArray[np.bool_]:
    """Returns the bits of a mask as booleans, shape (..., size). `size` None takes all bits of the mask."""
    words = np.ascontiguousarray(mask)
    return np.unpackbits(words.view(np.uint8), axis=-1, count=size, bitorder="little").view(np.bool_)


def allowed_ids(mask: Any, size: int | None = None) -> npt.NDArray[np.int64]:
    """Returns the ids that a one-dimensional mask allows, ascending."""
    return np.flatnonzero(allowed_bits(np.asarray(mask).reshape(-1), size))


def apply_bitmask(
    logits: Array,
    mask: Any,
    *,
    inplace: bool = False,
    indices: Sequence[int] | None = None,
    threads: int = 0,
) -> Array:
    """Returns logits with -inf where the mask has 0 or no bit.

    Args:
        logits: float32, float16, bfloat16 or float64, shape (V,) or (rows, V); a numpy uint16 array is
            taken for the bits of bfloat16.
        mask: int32 numpy array or tensor, shape (W,) or (rows, W), on any device.
        inplace: write into `logits` and return it, instead of a new array.
        indices: row i of the mask is for row `indices[i]` of the logits; other rows stay as they are.
        threads: CPU threads; 0 chooses by size, and small batches stay on the calling thread.

    Raises:
        TypeError: the logits are not an array of one of these types.
        ValueError: shapes or indices do not fit, or logits to be changed in place are read-only.
    """
    if is_tensor(logits):
        from . import _kernels_torch

        return cast(Array, _kernels_torch.apply(cast(Any, logits), mask, inplace, indices, threads))
    array = _logits(logits)
    if inplace and not array.flags.writeable:
        raise ValueError("the logits are read-only: use inplace=False")
    if inplace and _dense(array):
        result = source = array
    else:
        source = array if _dense(array) else np.ascontiguousarray(array)
        result = np.empty(array.shape, array.dtype)
    rows = checked_rows(indices, _count(array))
    bits = mask_array(mask)
    words = _words(bits, _count(array) if rows is None else rows.size)
    mask_rows(_span(result), _span(source), words, rows, threads)
    if inplace and result is not array:
        array[...] = result
        result = array
    return cast(Array, result)


def masked_logsumexp(logits: Array, mask: Any, *, threads: int = 0) -> Array:
    """Returns the log of the summed exponentials of the allowed logits, one value a row.

    Takes what `apply_bitmask` takes. The result has shape (rows,), or () for one-dimensional logits, in
    float32, or float64 for float64 logits; sums are formed in double. A row without allowed tokens gives
    -inf, one with an allowed NaN gives NaN.
    """
    if is_tensor(logits):
        from . import _kernels_torch

        return cast(Array, _kernels_torch.logsumexp(cast(Any, logits), mask, threads))
    array = _logits(logits)
    return cast(Array, _summed(_core.masked_logsumexp, array, mask, array.shape[:-1], threads))


def masked_log_softmax(logits: Array, mask: Any, *, threads: int = 0) -> Array:
    """Returns natural-log probabilities over the allowed tokens, -inf elsewhere.

    Takes what `apply_bitmask` takes. The result has the shape of the logits, in float32, or float64 for
    float64 logits. A row without allowed tokens is -inf throughout, never NaN.
    """
    if is_tensor(logits):
        from . import _kernels_torch

        return cast(Array, _kernels_torch.log_softmax(cast(Any, logits), mask, threads))
    array = _logits(logits)
    return cast(Array, _summed(_core.masked_log_softmax, array, mask, array.shape, threads))


def _summed(kernel: Any, array: Any, mask: Any, shape: tuple[int, ...], threads: int) -> Any:
    """Runs a kernel of the core on masked logits, and returns its result."""
    source = array if _dense(array) else np.ascontiguousarray(array)
    bits = mask_array(mask)
    words = _words(bits, _count(array))
    result = np.empty(shape, _wide(array))
    kernel(address(result), *_span(source), *words, threads)
    return result


class Brief(NamedTuple):
    """A summary of a masked row of logits; see `csrc/mask/brief.h`.

    Attributes:
        ids, values: the most probable allowed tokens, int32 and float32, by ascending id.
        shift: log-sum-exp of the whole row. best: the largest allowed value.
        tail: summed exp(value - best) of the allowed tokens that are not in `ids`.
        entropy: the entropy of all allowed tokens, in nats.
        lost: the most probable forbidden token and its value; None if no token is forbidden.
    """

    ids: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    shift: float
    best: float
    tail: float
    entropy: float
    lost: tuple[int, float] | None


def brief_row(row: npt.NDArray[np.float32], mask: npt.NDArray[np.int32], most: int) -> Brief | None:
    """Returns the `most` best allowed tokens of a row, and exact sums over the others. None if there are no
    others.

    Args:
        row: contiguous, shape (V,). mask: contiguous, shape (W,).
    """
    ids, values = np.empty(most, np.int32), np.empty(most, np.float32)
    whole, kept, shift, best, tail, entropy, lost, value = _core.brief_row(
        address(row), row.size, address(mask), mask.size, most, address(ids), address(values)
    )
    if whole:
        return None
    return Brief(ids[:kept], values[:kept], shift, best, tail, entropy, None if lost < 0 else (lost, value))


def _logits(logits: object) -> npt.NDArray[Any]:
    if not isinstance(logits, np.ndarray):
        raise TypeError(f"logits must be a numpy array or a tensor, not {type(logits).__name__}")
    check_logits(logits.shape)
    kind_of(logits.dtype.name)
    if not logits.dtype.isnative:
        raise TypeError("logits in foreign byte order are not supported")
    return logits


def _count(array: npt.NDArray[Any]) -> int:
    return int(array.shape[0]) if array.ndim == 2 else 1


def _dense(array: npt.NDArray[Any]) -> bool:
    """Returns whether the kernels can read the array in place. A row stride of 0 or below would alias
    rows."""
    if array.flags.c_contiguous:
        return True
    size = array.itemsize
    return (
        array.strides[-1] == size
        and array.ndim == 2
        and array.strides[0] >= array.shape[1] * size
        and array.strides[0] % size == 0
        and array.flags.aligned
    )


def _span(array: npt.NDArray[Any]) -> Span:
    stride = array.strides[0] // array.itemsize if array.ndim == 2 else 0
    return Span(address(array), KINDS[array.dtype.name], _count(array), array.shape[-1], stride)


def _words(array: npt.NDArray[np.int32], rows: int) -> Words:
    check_mask(array.shape, rows)
    width = array.shape[-1]
    return Words(address(array), width if array.ndim == 2 else 0, width)


def _wide(array: npt.NDArray[Any]) -> type[np.floating[Any]]:
    return np.float64 if array.dtype == np.float64 else np.float32
