"""Decides whether a model's answer shows that the request is outside the model's training.

Enters: a model, the log-probabilities of an answer's tokens. Leaves: a sentence, or None. Cost: a division.

A model with a measured limit has `least_logprob`: a mean natural log-probability per token of the answer,
before the mask, with the end token. Few answers to requests like those of the training lie below the limit,
and most answers to other requests do. `training/outside/calibrate.py` measures the limit on greedy answers
to requests in the form of the training, so the limit does not apply to other forms. The model card has the
figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .base import LanguageModel

MESSAGE = (
    "the request is probably outside what the embedded model knows: its answer is improbable to the model "
    "itself. Check the values, or give a larger model"
)


def doubt(lm: LanguageModel, total: float, tokens: int) -> str | None:
    """Returns the warning about a doubtful answer; None for other answers. `total` is the sum of its tokens'
    log-probabilities."""
    least: float | None = getattr(lm, "least_logprob", None)
    return MESSAGE if least is not None and tokens and total < least * tokens else None
