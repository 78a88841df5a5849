"""Batches for training: examples as token ids, grouped by length.

Enters: the tokenizer, a seed and the number of the first example.
Leaves: padded id tensors with the positions whose next token is answer.
Cost: a few per cent of a training step.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from tokenizers import Tokenizer

from training import data
from training.prompt import END_MARK, PAD_MARK, format_prompt

CHUNK = 768  # examples grouped by length together
# Few shapes only: the CPU kernels are compiled anew, slowly, for every new shape.
LENGTHS = (48, 64, 80, 96, 112, 128, 144, 160, 192, 224, 256, 320, 400)
LONGEST = LENGTHS[-1]  # longer ones are rare and are left out of training


@dataclass(frozen=True)
class Batch:
    ids: torch.Tensor  # (rows, length), padded on the right
    answer: torch.Tensor  # (rows, length - 1), true where the next token is to be learnt
    next_index: int  # the example after this chunk
    examples: list[data.Example]


def encode(tokenizer: Tokenizer, one: data.Example) -> tuple[list[int], int]:
    """Ids of prompt, answer and end; and where the answer starts."""
    prompt = tokenizer.encode(format_prompt(one.text, one.schema), add_special_tokens=False).ids
    answer = tokenizer.encode(one.answer_text(), add_special_tokens=False).ids
    return [*prompt, *answer, tokenizer.token_to_id(END_MARK)], len(prompt)


def pad(rows: list[tuple[list[int], int]], pad_id: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.full((len(rows), length), pad_id)
    answer = torch.zeros((len(rows), length - 1), dtype=torch.bool)
    for row, (tokens, start) in enumerate(rows):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        answer[row, start - 1 : len(tokens) - 1] = True
    return ids, answer


def batches(
    tokenizer: Tokenizer, split: str, seed: int, start: int, batch_tokens: int, copy_share: float
) -> Iterator[Batch]:
    """`copy_share` of the examples are plain copies; the caller lowers it as training goes on."""
    rng = random.Random(f"{split}/{seed}/{start}")
    pad_id = tokenizer.token_to_id(PAD_MARK)
    rest = sum(w for name, w in data.WEIGHTS.items() if name != "copy")
    weights = {**data.WEIGHTS, "copy": max(data.WEIGHTS["copy"], rest * copy_share / (1 - copy_share))}
    chunk = [data.example(split, seed, index, weights) for index in range(start, start + CHUNK)]
    buckets: dict[int, list[tuple[tuple[list[int], int], data.Example]]] = {length: [] for length in LENGTHS}
    for one in chunk:
        row = encode(tokenizer, one)
        if len(row[0]) <= LONGEST:
            buckets[next(length for length in LENGTHS if len(row[0]) <= length)].append((row, one))
    groups = []
    carried: list[tuple[tuple[list[int], int], data.Example]] = []
    for length in LENGTHS:
        # What does not fill a batch joins the next longer ones.
        waiting = carried + buckets[length]
        rows = batch_tokens // length
        full = len(waiting) // rows * rows
        groups += [(length, waiting[at : at + rows]) for at in range(0, full, rows)]
        carried = waiting[full:]
    rng.shuffle(groups)
    for length, group in groups:
        ids, answer = pad([row for row, _ in group], pad_id, length)
        yield Batch(ids, answer, start + CHUNK, [one for _, one in group])
