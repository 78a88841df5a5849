"""Greedy decoding in batches, free or under a grammar.

Enters: a model, prompts as token ids, and for each prompt a matcher or None.
Leaves: the tokens each prompt is answered with, the end left out.
Cost: one forward pass per token for the whole batch; under a grammar one mask
per token and row besides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


@torch.no_grad()
def greedy(
    model: Any,
    prompts: list[list[int]],
    end: int,
    pad: int,
    limit: int = 220,
    matchers: list[Any] | None = None,
) -> list[list[int]]:
    longest = max(map(len, prompts))
    ids = torch.tensor([[pad] * (longest - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
    places = (mask.cumsum(1) - 1).clamp(min=0)
    answers: list[list[int]] = [[] for _ in prompts]
    done = [False] * len(prompts)
    cache = None
    for _ in range(limit):
        out = model(
            input_ids=ids, attention_mask=mask, position_ids=places, past_key_values=cache, use_cache=True
        )
        cache = out.past_key_values
        logits = out.logits[:, -1].float()
        if matchers is not None:
            _forbid(logits, matchers, done)
        chosen = logits.argmax(-1).tolist()
        for row, token in enumerate(chosen):
            if done[row]:
                continue
            if matchers is not None and not matchers[row].accept_token(token):
                raise RuntimeError(f"the matcher refused token {token}, which its own mask allows")
            if token == end:
                done[row] = True
            else:
                answers[row].append(token)
        if all(done):
            break
        ids = torch.tensor([[token] for token in chosen])
        mask = torch.cat((mask, torch.ones(len(prompts), 1, dtype=mask.dtype)), 1)
        places = places[:, -1:] + 1
    return answers


def _forbid(logits: torch.Tensor, matchers: list[Any], done: list[bool]) -> None:
    """Minus infinity for every token the grammar does not allow next."""
    width = logits.shape[1]
    words = np.zeros((1, (width + 31) // 32), dtype=np.int32)
    for row, matcher in enumerate(matchers):
        if done[row]:
            continue
        matcher.fill_bitmask(words, 0)
        allowed = np.unpackbits(words.view(np.uint8), bitorder="little")[:width].astype(bool)
        logits[row][torch.from_numpy(~allowed)] = float("-inf")
