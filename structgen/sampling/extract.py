"""Finds the span of a document that is exactly the model's most probable answer.

Enters: a model, a prompt, a document. Leaves: the best span, its place and log-probability. Cost: one vector
for every token of every start's continuation, at most n * longest of them, equal prefixes once.

An answer that must be a piece of the document is one of O(n^2) texts. For every start i the document's tokens
i, i + 1, ... are teacher-forced after the prompt; the score of a span i..j is the sum of the
log-probabilities of its tokens and of end-of-sequence. Every span is scored, so the span with the largest
score is exactly the most probable span.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._checks import whole
from ..lm.load import language_model
from ..lm.prompts import formatted
from .target import Law


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens start..stop of the document (stop exclusive), their text, log P(text, end | prompt)."""

    text: str
    start: int
    stop: int
    logprob: float


def exact_extract(
    model: Any,
    prompt: Any,
    document: str | Sequence[int],
    *,
    longest: int = 32,
    batch: int = 64,
    best: int = 1,
) -> list[Span]:
    """Returns the `best` most probable spans of the document, most probable first; equal texts count once.

    Args:
        model, prompt: as in `sg.generate`, the prompt in plain form.
        document: a text, tokenized by the model's vocabulary, or ids.
        longest: the most tokens of a span.
    """
    for name, value in (("longest", longest), ("batch", batch), ("best", best)):
        whole(name, value, 1)
    lm = language_model(model)
    tokens = lm.vocabulary.encode(document) if isinstance(document, str) else [int(t) for t in document]
    begin = lm.start(formatted(lm, prompt, None, "plain"))
    law, ends = Law(), [int(i) for i in lm.eos_token_ids]
    live = [(start, begin, 0.0) for start in range(len(tokens))]
    spans: list[Span] = []
    for length in range(longest + 1):
        moved = []
        for first in range(0, len(live), batch):
            block = live[first : first + batch]
            rows = law.apply(lm.logprobs([context for _, context, _ in block]))
            for (start, context, score), row in zip(block, rows, strict=True):
                if length:
                    text = lm.vocabulary.decode(tokens[start : start + length]).decode("utf-8", "replace")
                    total = score + float(np.logaddexp.reduce(row[ends]))
                    spans.append(Span(text, start, start + length, total))
                if start + length < len(tokens) and length < longest:
                    token = tokens[start + length]
                    moved.append((start, context.extend(token), score + float(row[token])))
        live = moved
    spans.sort(key=lambda span: (-span.logprob, span.start, span.stop))
    seen: dict[str, Span] = {}
    for span in spans:
        seen.setdefault(span.text, span)
    return list(seen.values())[:best]
