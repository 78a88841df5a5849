"""Speculative decoding of the sequences of one `sg.generate` call.

Enters: a model, a prompt and the sequences to fill. Leaves: their tokens and log-probabilities, and what it
took. Cost: see engine.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .._draws import Noise, Shape
from .engine import Row, Run
from .options import Speculation
from .sampled import SampledRun
from .score import open_scorer
from .statistics import Statistics

if TYPE_CHECKING:
    from ..grammar import CompiledGrammar, Matcher
    from ..lm.base import LanguageModel

__all__ = ["Sequence_", "decode"]


class Sequence_(Protocol):
    """What `sg.generate` keeps of a sample."""

    matcher: Matcher | None
    noise: Noise | None
    tokens: list[int]
    logprobs: list[float]
    done: bool


def decode(
    lm: LanguageModel,
    prompt: Sequence[int],
    sequences: Sequence[Sequence_],
    how: Shape,
    options: Speculation,
    *,
    room: int,
    budget: int | None,
    grammar: CompiledGrammar | None,
    compile: Callable[[Any], CompiledGrammar] | None = None,
    text: str | None = None,
    logprobs: bool = True,
) -> Statistics:
    """Fill the sequences, all with the same prompt, in one batch.

    Raises:
        LanguageModelError: the model cannot take drafts back.
        UnsatisfiableBudget: the text cannot be completed within the budget.
    """
    kind = Run if options.rule == "coupled" else SampledRun
    run = kind(
        open_scorer(lm), lm.vocabulary, lm.eos_token_ids, how, options, logprobs=logprobs, compile=compile
    )
    rows = [Row(prompt, s.matcher, s.noise, room, budget, grammar, text) for s in sequences]
    run.add_alike(rows)
    run.run()
    for sequence, row in zip(sequences, rows, strict=True):
        sequence.tokens, sequence.logprobs, sequence.done = row.tokens, row.logprobs, row.done
    return run.statistics
