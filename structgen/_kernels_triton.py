"""`apply_bitmask` on a GPU.

Enters: CUDA tensors: logits (rows, V), a mask (rows, W) int32, and row indices or None. Leaves: the logits
with -inf where the mask has no 1. Cost: one pass. In place, a block whose tokens are all allowed is not read.
Without Triton (a build of torch that lacks it) torch's own operations do the same.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

_BLOCK = 4096  # A Triton program handles so many tokens: 128 words of the mask.


@functools.cache
def _kernel() -> Any:
    """Returns the compiled kernel, or None where Triton is missing."""
    try:
        import triton
        import triton.language as tl
    except ImportError:
        return None

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def mask_block(  # type: ignore[no-untyped-def]
        out, logits, mask, indices, width, words, out_stride, stride, mask_stride,
        HAS_INDICES: tl.constexpr, IN_PLACE: tl.constexpr, BLOCK: tl.constexpr,
    ):  # fmt: skip
        row = tl.program_id(0)
        target = tl.load(indices + row) if HAS_INDICES else row
        target = target.to(tl.int64)
        at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        exists = at < width
        word = tl.load(mask + row.to(tl.int64) * mask_stride + at // 32, mask=at // 32 < words, other=0)
        allowed = ((word >> (at % 32)) & 1) != 0
        if IN_PLACE:
            nothing = tl.full([BLOCK], float("-inf"), out.dtype.element_ty)
            tl.store(out + target * out_stride + at, nothing, mask=exists & ~allowed)
        else:
            value = tl.load(logits + target * stride + at, mask=exists & allowed, other=float("-inf"))
            tl.store(out + target * out_stride + at, value, mask=exists)

    return mask_block


def apply(
    logits: torch.Tensor, mask: torch.Tensor, rows: torch.Tensor | None, inplace: bool
) -> torch.Tensor | None:
    """Returns masked logits; None if Triton is missing or a row's elements are not neighbours in memory.

    The caller checks the shapes.
    """
    kernel = _kernel()
    if kernel is None or logits.numel() == 0:
        return None
    result = logits if inplace else logits.clone() if rows is not None else torch.empty_like(logits)
    flat, source = (t if t.dim() == 2 else t.unsqueeze(0) for t in (result, logits))
    if source.stride(1) != 1 or flat.stride(1) != 1:
        return None
    words = mask.contiguous()
    count = flat.shape[0] if rows is None else rows.shape[0]
    width = flat.shape[1]
    if count:
        with torch.cuda.device(logits.device) if logits.is_cuda else torch.no_grad():
            kernel[(count, (width + _BLOCK - 1) // _BLOCK)](
                flat, source, words, words if rows is None else rows, width, words.shape[-1],
                flat.stride(0), source.stride(0), words.shape[-1] if words.dim() == 2 else 0,
                HAS_INDICES=rows is not None, IN_PLACE=inplace or rows is not None, BLOCK=_BLOCK,
            )  # fmt: skip
    return result
