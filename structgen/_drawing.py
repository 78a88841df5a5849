"""How the tokens of one text are drawn.

Enters: a row of the model's log-probabilities, the tokens written so far, the mask. Leaves: a token.
Cost: a copy of the row where something changes it; a sort of the allowed tokens with top_k or top_p.

The order is: penalties and bias, mask, structure, temperature, min_p, top_k, top_p, draw. The mask comes
before the cuts of the distribution, so a cut chooses among allowed tokens and always leaves one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ._draws import Noise, draw

_Row = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Drawing:
    """How tokens are drawn. Penalties work on log-probabilities: the protocol of a model has no logits.

    Attributes:
        temperature, top_k, top_p, min_p, frequency_penalty, presence_penalty, repetition_penalty,
            structure_penalty, logit_bias: as in `sg.generate`; `logit_bias` by token id.
        seed: the seed of all draws. If the caller gave none, it is a random number, so the draws can be
            repeated. None if the most probable token is always taken.
        law: the distribution: "local" is the model renormalised over the allowed tokens of each step.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    structure_penalty: float = 1.0
    law: str = "local"
    # The ids and values of the bias as arrays. A loop over ten thousand of them took milliseconds a token.
    _bias: tuple[npt.NDArray[np.int64], _Row] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        count = len(self.logit_bias)
        ids = np.fromiter(self.logit_bias.keys(), np.int64, count)
        object.__setattr__(self, "_bias", (ids, np.fromiter(self.logit_bias.values(), np.float32, count)))

    @property
    def order(self) -> tuple[str, ...]:
        """The operations on the log-probabilities, in their order."""
        first = () if not self.counts_tokens and not self.logit_bias else ("penalties",)
        middle = ("min_p",) if self.min_p else ()
        structure = ("structure",) if self.structure_penalty != 1.0 else ()
        return (*first, "mask", *structure, "temperature", *middle, "top_k", "top_p")

    def noise(self, index: int) -> Noise | None:
        """Returns the noise of text `index`. None means that the most probable token is taken."""
        return None if self.seed is None or self.temperature == 0 else Noise(self.seed, index)

    @property
    def counts_tokens(self) -> bool:
        """Whether the law depends on which tokens were written."""
        return (self.frequency_penalty, self.presence_penalty, self.repetition_penalty) != (0.0, 0.0, 1.0)

    @property
    def plain(self) -> bool:
        """Whether no option but temperature, top_k and top_p changes the distribution."""
        return not (self.counts_tokens or self.logit_bias or self.min_p or self.structure_penalty != 1.0)

    def biased(self, raw: _Row, written: Mapping[int, int], prompt: frozenset[int]) -> _Row:
        """Returns the row with penalties and bias; the row itself where there are none.

        Args:
            written: how often each token stands in the text. prompt: the tokens of the prompt.
        """
        if not self.counts_tokens and not self.logit_bias:
            return raw
        row = raw.copy()
        if self.repetition_penalty != 1.0:
            seen = np.fromiter(prompt | written.keys(), np.int64)
            row[seen] *= self.repetition_penalty
        if written and (self.frequency_penalty or self.presence_penalty):
            ids = np.fromiter(written.keys(), np.int64)
            counts = np.fromiter(written.values(), np.float32)
            row[ids] -= self.frequency_penalty * counts + self.presence_penalty
        ids, values = self._bias
        row[ids] += values
        return row

    def draw(self, allowed: _Row, noise: Noise | None, position: int) -> int:
        """Draws a token from a masked row.

        Raises:
            StructgenError: the model gives every allowed token the probability 0.
        """
        if noise is not None and self.min_p > 0:
            best = float(allowed.max())
            if math.isfinite(best):
                least = best + self.temperature * math.log(self.min_p)
                allowed = np.where(allowed >= least, allowed, np.float32(-np.inf))
        return draw(allowed, self, noise, position)
