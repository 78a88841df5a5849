"""`constrained_logprobs` as a function of torch's autograd. This module is imported only if torch is already
imported.

Enters: checked logits, ids and masks. Leaves: log-probabilities, and the gradient of the logits. Cost: the
forward pass saves the logits themselves and one number for each row. Both passes work on one chunk of rows at
a time.

    forward    x[token] - logsumexp over allowed x          x = logits / temperature
    backward   g * (1 at the token - softmax over allowed x) / temperature
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch

from .. import _kernels_torch
from .masks import Masks


class _AllowedLogprobs(torch.autograd.Function):
    """Turns rows of logits into log-probabilities of the drawn tokens among the allowed ones."""

    @staticmethod
    def forward(
        ctx: Any, logits: torch.Tensor, tokens: torch.Tensor, masks: Masks, temperature: float, chunk: int
    ) -> torch.Tensor:
        wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
        totals = torch.empty(len(masks), dtype=wide, device=logits.device)
        for at in _chunks(len(masks), chunk):
            part = logits[at] if temperature == 1.0 else logits[at].to(wide) / temperature
            totals[at] = _kernels_torch.logsumexp(part, masks.rows[masks.of[at]], 0)
        ctx.save_for_backward(logits, tokens, totals)
        ctx.how = masks, temperature, chunk
        return logits.gather(1, tokens[:, None])[:, 0].to(wide) / temperature - totals

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None, None, None, None]:
        logits, tokens, totals = ctx.saved_tensors
        masks, temperature, chunk = ctx.how
        scale = grads[0] / temperature
        out = torch.empty_like(logits)
        for at in _chunks(len(masks), chunk):
            x = logits[at].to(totals.dtype) / temperature
            part = _kernels_torch.where(x, masks.rows[masks.of[at]]).sub_(totals[at, None]).exp_()
            part.mul_(-scale[at, None])
            part.scatter_add_(1, tokens[at, None], scale[at, None])
            out[at] = part
        return out, None, None, None, None


def allowed_logprobs(
    logits: torch.Tensor, tokens: torch.Tensor, masks: Masks, temperature: float, chunk: int
) -> torch.Tensor:
    """See `structgen.rl.constrained_logprobs`; `tokens` are those of `tokens_of`."""
    return cast(
        torch.Tensor,
        _AllowedLogprobs.apply(logits, tokens, masks, temperature, chunk),  # type: ignore[no-untyped-call]
    )


@torch.no_grad()
def allowed_entropies(logits: torch.Tensor, masks: Masks, temperature: float, chunk: int) -> torch.Tensor:
    """See `structgen.rl.constrained_entropies`."""
    wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
    found = torch.empty(len(masks), dtype=wide, device=logits.device)
    for at in _chunks(len(masks), chunk):
        logs = torch.log_softmax(
            _kernels_torch.where(logits[at].to(wide) / temperature, masks.rows[masks.of[at]]), -1
        )
        found[at] = -(logs.exp() * logs.clamp(min=torch.finfo(wide).min)).sum(-1)
    return found


def tokens_of(token_ids: Any, masks: Masks, device: torch.device) -> torch.Tensor:
    """Returns the ids on the device, int64. ValueError: a mask does not allow its token."""
    ids = np.asarray(token_ids.cpu() if isinstance(token_ids, torch.Tensor) else token_ids)
    if ids.shape != (len(masks),):
        raise ValueError(f"there are {len(masks)} masks for ids of the shape {ids.shape}")
    inside = (ids >= 0) & (ids < masks.vocab_size)
    safe = np.where(inside, ids, 0).astype(np.int64)
    allowed = inside & ((masks.rows[masks.of, safe // 32] >> (safe % 32)) & 1).astype(bool)
    if not allowed.all():
        place = int(np.flatnonzero(~allowed)[0])
        raise ValueError(f"the mask of token {place} does not allow its id {ids[place]}")
    return torch.from_numpy(safe).to(device)


def _chunks(rows: int, chunk: int) -> list[slice]:
    return [slice(first, min(first + chunk, rows)) for first in range(0, rows, chunk)]
