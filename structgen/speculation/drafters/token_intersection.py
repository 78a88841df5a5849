"""A draft model with another vocabulary that drafts only the tokens of both vocabularies: token-level
intersection.

Enters: the text. Leaves: the draft model's distribution over the tokens whose bytes are in both vocabularies,
and over the end of the text. Cost: a forward pass of the draft model for each node, and the pairs of ids once
for each vocabulary.

Timor et al. 2025, *Accelerating LLM inference with lossless speculative decoding algorithms for heterogeneous
vocabularies* (TLI, algorithm 4). The law: q(t) is the draft model's p(t) over the shared tokens that the
grammar allows, normalised. Drafts are drawn from q, every one is offered to the rule of rules.py, and q is 0
elsewhere, so the text follows the target's masked law. Under the rule "coupled" q gets the noise of the
target's draws, and the text is that of plain decoding.

The probability that the draft model gives to tokens outside the target's vocabulary is lost. A draft model of
single bytes drafts single bytes, which a target rarely writes. `StringDraft` joins such bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..base import Vector
from .spelling import Place, SpelledDrafter, Spelling

if TYPE_CHECKING:
    from ...lm.base import LanguageModel
    from ...vocabulary import Vocabulary


class TokenIntersection(SpelledDrafter):
    """Drafts by a language model of another vocabulary, in tokens that it shares with the target.

    Args:
        lm: the draft model.
        width: the number of children offered to each node.
        name: the name of the drafter in statistics.
    """

    def __init__(self, lm: LanguageModel, *, width: int = 2, name: str = "token intersection") -> None:
        super().__init__(lm, width, name, lambda target: _Reader(lm, target))


class _Reader:
    def __init__(self, lm: LanguageModel, target: Vocabulary) -> None:
        self.spelling = Spelling(lm, target)
        self._own, self._theirs = shared_tokens(lm, target)

    def row(self, place: Place) -> Vector | None:
        context = self.spelling.whole(place)
        if context is None:
            return None
        lm, size = self.spelling.lm, self.spelling.target.vocab_size
        p = np.exp(lm.logprobs([context])[0][self._own].astype(np.float64))
        with np.errstate(divide="ignore"):
            found: Vector = np.log(np.bincount(self._theirs, p, size)).astype(np.float32)
        return found

    def after(self, place: Place, token: int) -> Place | None:
        return self.spelling.after(place, token)


def shared_tokens(
    lm: LanguageModel, target: Vocabulary
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Returns the ids of the draft model whose bytes the target has, and the target's ids for these bytes;
    both have shape (n,).

    Several ids of one text go to the target's lowest. The ends of the draft model are the target's first end.
    """
    known: dict[bytes, int] = {}
    ends = set(target.eos_token_ids)
    for token, text in enumerate(target.tokens):
        if text and token not in ends:
            known.setdefault(text, token)
    own, theirs = [], []
    last = set(lm.eos_token_ids)
    for token, text in enumerate(lm.vocabulary.tokens):
        found = min(ends, default=None) if token in last else known.get(text)
        if found is not None:
            own.append(token)
            theirs.append(found)
    return np.array(own, np.int64), np.array(theirs, np.int64)
