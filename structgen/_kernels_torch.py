"""`structgen.logits` for torch tensors. Imported only once torch is.

Enters: tensors, checked here. Leaves: tensors on the device of the logits.
CPU tensors go to the core by address, CUDA tensors to Triton, and everything else (other devices, logits
that need a gradient) to torch's own operations, which unpack the mask to one byte a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from . import _core
from ._logit_rows import (
    Span,
    Words,
    check_logits,
    check_mask,
    checked_rows,
    kind_of,
    mask_array,
    mask_rows,
)

_NAMES = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float64: "float64",
}


def apply(
    logits: torch.Tensor, mask: Any, inplace: bool, indices: Sequence[int] | None, threads: int
) -> torch.Tensor:
    """See `structgen.apply_bitmask`."""
    check_logits(logits.shape)
    kind = _kind(logits)
    if logits.is_cuda and not _needs_grad(logits):
        from . import _kernels_triton

        done = _kernels_triton.apply(logits, *_on_device(logits, mask, indices), inplace)
        if done is not None:
            return done
    if _needs_grad(logits) or not logits.is_cpu:
        masked = where(logits, mask, indices)
        return logits.copy_(masked) if inplace else masked
    count = _count(logits)
    rows = checked_rows(indices, count)
    bits = _on_cpu(mask)
    words = _words(bits, count if rows is None else rows.size)
    source = logits if _dense(logits) else logits.contiguous()
    at = _span(source, kind)
    if inplace and source is logits:
        mask_rows(at, at, words, rows, threads)
        return logits
    result = torch.empty(logits.shape, dtype=logits.dtype)
    mask_rows(_span(result, kind), at, words, rows, threads)
    return logits.copy_(result) if inplace else result


def logsumexp(logits: torch.Tensor, mask: Any, threads: int) -> torch.Tensor:
    """See `structgen.masked_logsumexp`."""
    check_logits(logits.shape)
    kind = _kind(logits)
    if _needs_grad(logits) or not logits.is_cpu:
        return torch.logsumexp(where(logits, mask).to(_wide(logits)), dim=-1)
    return _summed(_core.masked_logsumexp, logits, kind, mask, logits.shape[:-1], threads)


def log_softmax(logits: torch.Tensor, mask: Any, threads: int) -> torch.Tensor:
    """See `structgen.masked_log_softmax`."""
    check_logits(logits.shape)
    kind = _kind(logits)
    if _needs_grad(logits) or not logits.is_cpu:
        masked = where(logits, mask).to(_wide(logits))
        total = torch.logsumexp(masked, dim=-1, keepdim=True)
        return torch.where(torch.isneginf(total), total, masked - total)
    return _summed(_core.masked_log_softmax, logits, kind, mask, logits.shape, threads)


def _summed(
    kernel: Any, logits: torch.Tensor, kind: Any, mask: Any, shape: Sequence[int], threads: int
) -> torch.Tensor:
    """Runs a kernel of the core on masked logits, and returns its result as a tensor."""
    bits = _on_cpu(mask)
    words = _words(bits, _count(logits))
    source = logits if _dense(logits) else logits.contiguous()
    result = torch.empty(shape, dtype=_wide(logits))
    kernel(result.data_ptr(), *_span(source, kind), *words, threads)
    return result


def where(logits: torch.Tensor, mask: Any, indices: Sequence[int] | None = None) -> torch.Tensor:
    """Returns masked logits by torch's own operations: any device, and differentiable."""
    words, rows = _on_device(logits, mask, indices)
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


def _on_device(
    logits: torch.Tensor, mask: Any, indices: Sequence[int] | None
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Returns the mask and the row indices, checked, on the device of the logits."""
    rows = checked_rows(indices, _count(logits))
    words = _tensor_mask(mask)
    check_mask(words.shape, _count(logits) if rows is None else rows.size)
    at = None if rows is None else torch.from_numpy(rows).to(logits.device, non_blocking=True)
    return words.to(logits.device, non_blocking=True), at


def _tensor_mask(mask: Any) -> torch.Tensor:
    if not isinstance(mask, torch.Tensor):
        return torch.from_numpy(mask_array(mask))
    if mask.dtype != torch.int32:
        raise TypeError(f"a bitmask is an int32 tensor, not {mask.dtype}")
    return mask


def _on_cpu(mask: Any) -> torch.Tensor:
    tensor = _tensor_mask(mask)
    return tensor if tensor.is_cpu and tensor.is_contiguous() else tensor.cpu().contiguous()


def _words(mask: torch.Tensor, rows: int) -> Words:
    shape = mask.shape
    check_mask(shape, rows)
    width = shape[-1]
    return Words(mask.data_ptr(), width if len(shape) == 2 else 0, width)


def _span(tensor: torch.Tensor, kind: int) -> Span:
    shape = tensor.shape
    if len(shape) == 2:
        return Span(tensor.data_ptr(), kind, shape[0], shape[1], tensor.stride(0))
    return Span(tensor.data_ptr(), kind, 1, shape[0], 0)


def _kind(logits: torch.Tensor) -> int:
    return kind_of(_NAMES.get(logits.dtype, "") or str(logits.dtype))


def _count(tensor: torch.Tensor) -> int:
    return tensor.shape[0] if tensor.dim() == 2 else 1


def _dense(tensor: torch.Tensor) -> bool:
    """Returns whether the kernels can read the tensor's memory directly. They cannot read expanded rows,
    which alias."""
    if tensor.is_contiguous():
        return True
    return tensor.dim() == 2 and tensor.stride(1) == 1 and tensor.stride(0) >= tensor.shape[1]


def _wide(logits: torch.Tensor) -> torch.dtype:
    return torch.float64 if logits.dtype == torch.float64 else torch.float32


def _needs_grad(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad and torch.is_grad_enabled()
