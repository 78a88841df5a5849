"""Batches for training: examples as token ids, grouped by length.

Enters: the tokenizer, a seed and the number of the first example.
Leaves: padded id tensors with the positions whose next token is answer.
Cost: a few per cent of a training step.
"""

from __future__ import annotations

import random
import re
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


_WORD = re.compile(r"<\|\w+\|>|[^\W\d_]{4,}")
_LITERALS = ("null", "true", "false")
CUT_EXAMPLES = 0.4
CUT_WORDS = 0.3


def encode(
    tokenizer: Tokenizer, one: data.Example, rng: random.Random | None = None
) -> tuple[list[int], int]:
    """Ids of prompt, answer and end; and where the answer starts.

    With `rng`, some examples have some words cut in two, the same way in prompt
    and answer.  A word of the training lists is mostly one token, a new word is
    several; the cuts make training see several too.
    """
    cuts: dict[str, int] = {}
    rate = CUT_WORDS if rng is not None and rng.random() < CUT_EXAMPLES else 0.0

    def ids(text: str) -> list[int]:
        if not rate or rng is None:
            return list(tokenizer.encode(text, add_special_tokens=False).ids)
        places = [0]
        for match in _WORD.finditer(text):
            word = match.group()
            if word not in cuts:
                cut = not word.startswith("<") and word not in _LITERALS and rng.random() < rate
                cuts[word] = rng.randrange(1, len(word)) if cut else 0
            if cuts[word]:
                places.append(match.start() + cuts[word])
        parts = [text[a:b] for a, b in zip(places, [*places[1:], len(text)], strict=True)]
        found = tokenizer.encode_batch(parts, add_special_tokens=False)
        return [i for part in found for i in part.ids]

    prompt = ids(format_prompt(one.text, one.schema))
    answer = ids(one.answer_text())
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
        row = encode(tokenizer, one, rng)
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
