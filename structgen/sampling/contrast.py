"""Two kinds of potentials: contrast, which is a second model to a negative power, and rewards.

Enters: a second model over the same vocabulary, a power; or a reward of texts. Leaves: potentials for
`sg.sample` and the searches. Cost: a row of the second model a prefix; a call of the reward a text.

Contrast. For a prefix u and a token x let q(x|u) be the second model's probability, clipped from below by
`floor`. The law is

    P(s) 1[s in L] product over t of w(x_t | u_t) / Z,    w(x|u) = (floor / q(x|u)) ** power    if u is
    selected
                                                           w(x|u) = 1                              else

A prefix is selected if the entropy of the second model, with all ends as one token, lies in `entropy`. So
contrast can act only where the second model is sure, or only where it is unsure. Because of the floor, w lies
between floor ** power and 1. So the normaliser of a step lies between floor ** power and 1 times the
normaliser of plain masking. CARS and the certified bracket work, and a text that is impossible under the
second model weighs 1. The price is that each selected token which the second model expects costs its whole
factor, so the law prefers shorter texts. `bounded=False` leaves `floor` out of the numerator: then w lies
between 1 and floor ** -power, longer texts gain, and only methods without an upper bound take the potential.

This is the anti-language-model of Li et al. 2016 and of Sia et al. 2024, and the amateur of contrastive
decoding (Li et al. 2022), as a law of whole texts. Contrastive decoding itself normalises at each token and
is a law of steps: `structgen.lm.mixing.Contrasted`.

Reward. The law of `Reward(r, weight)` is P(s) exp(weight * r(s)) 1[s in L] / Z. ARGS (Khanov et al. 2024)
adds the reward of every beginning to the logits and normalises, so its law is no function of the text's
reward. Here rewards of beginnings guide particles (method "smc") and are divided out again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._checks import above_zero, function, number, truth
from ..lm.mixing import entropies
from .logspace import Doubles
from .potential import LanguageModelPotential, Potential, Prefix

if TYPE_CHECKING:
    from ..lm.base import LanguageModel


class Contrast(LanguageModelPotential):
    """A second model to a negative power. The law stands at the head of this file.

    Args:
        power: the power of the second model, without the sign.
        floor: the second model's smaller probabilities are raised to this.
        entropy: (least, most) in nats: prefixes at which the second model's entropy lies between them are
            selected; by default all.
        bounded: whether factors are at most 1.
    """

    def __init__(
        self,
        lm: LanguageModel,
        prompt: str | Sequence[int],
        power: float = 0.5,
        *,
        floor: float = 1e-3,
        entropy: tuple[float, float] = (0.0, math.inf),
        bounded: bool = True,
    ) -> None:
        super().__init__(lm, prompt, power)
        number("floor", floor, "a probability between 0 and 1", lambda x: 0 < x < 1)
        if not isinstance(entropy, (tuple, list)) or len(entropy) != 2:
            raise TypeError(f"entropy is (least, most) in nats, not {entropy!r:.60}")
        for bound in entropy:
            number("a bound of entropy", bound, "0 or more nats", lambda x: x >= 0)
        if entropy[0] > entropy[1]:
            raise ValueError(f"entropy is (least, most) in nats, and {entropy} is empty")
        truth("bounded", bounded)
        self.floor: float = math.log(floor)
        self.entropy: tuple[float, float] = (float(entropy[0]), float(entropy[1]))
        self.bounded = bounded

    def weigh(self, rows: Doubles) -> Doubles:
        factors = -self.power * (np.maximum(rows, self.floor) - (self.floor if self.bounded else 0.0))
        if self.entropy != (0.0, math.inf):
            once = rows.copy()
            # Each end has the summed probability of all ends, so only one end counts.
            once[:, self._ends[1:]] = -np.inf
            nats = entropies(once)
            factors[(nats < self.entropy[0]) | (nats > self.entropy[1])] = 0.0
        return factors


class Reward(Potential):
    """exp(weight * reward of the text): the law P(s) exp(weight * r(s)) 1[s in L] / Z.

    Args:
        fn: the reward of a text; larger rewards are better.
        most: an upper bound of all rewards. With a bound, weights are at most 1, and every method takes the
            potential.
        guides: whether the rewards of beginnings guide particles. These values are divided out again.
    """

    def __init__(
        self,
        fn: Callable[[str], float],
        weight: float = 1.0,
        *,
        most: float | None = None,
        guides: bool = True,
    ) -> None:
        function("fn", fn, "a text")
        above_zero("weight", weight)
        if most is not None:
            number("most", most, "a finite number", math.isfinite)
        truth("guides", guides)
        self.fn = fn
        self.weight = weight
        self.most = most
        self.bounded: bool = most is not None
        self.guides = guides

    def complete(self, text: Prefix) -> float:
        return self.weight * (float(self.fn(text.text)) - (self.most or 0.0))

    def prefix(self, text: Prefix) -> float:
        return self.complete(text) if self.guides else 0.0
