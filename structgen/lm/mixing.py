"""Mixes the next-token distributions of two models into one `LanguageModel`.

Enters: two models over one vocabulary. Leaves: a model. Its rows are normalised over the whole vocabulary,
before any mask, so samplers and searches have an exact P. Cost: a row of each model for each prefix, and a
few passes over V.

Several end-of-sequence ids are mixed as one token, because they end the same text.

- `Contrasted`: contrastive decoding (Li et al. 2022; with the power of O'Brien and Lewis 2023). A token is
  plausible if it is at least `plausible` times as probable as the most probable token. The score of a
  plausible token is (1 + power) log p - power log q, with p the model and q the amateur. An implausible token
  is scored as if the amateur gave it probability 1, so it stays below every plausible token. The papers give
  it probability 0; under a grammar every allowed token might then have probability 0. If the entropy of p is
  below `above`, the row is p itself.
- `Anchored`: anchored decoding (He et al. 2026, arXiv 2602.07120). The row is p^a r^(1-a), normalised, of the
  model p and the reference r, with the largest a in [0, 1] for which KL(row || r) stays within the budget of
  the step. The budget of step t is t * budget / steps, less the divergences of earlier steps; after `steps`
  steps no budget is added. So along every text the sum of the divergences is at most `budget`, and so is KL(P
  || R) between the laws of whole texts. The bound holds for free texts. Under a grammar the bound need not
  hold: a mask renormalises, and a grammar may force a text that the reference would never write. The paper
  also charges the budget for the prompt, which is left out here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from .._checks import not_negative, number, whole
from .base import Context, LanguageModel, LanguageModelError

if TYPE_CHECKING:
    from ..vocabulary import Vocabulary

_Rows = npt.NDArray[np.float32]
_Doubles = npt.NDArray[np.float64]
_LEAST = -60.0  # nats. A token that is impossible under the amateur gets this log-probability.
_HALVINGS = 40  # Halving the interval of a so often gives a precision of 1e-12.


class Pair:
    """A prefix in both models."""

    __slots__ = ("__weakref__", "_children", "left", "parent", "right", "spent", "steps")

    def __init__(self, left: Context, right: Context, parent: Pair | None = None) -> None:
        self.left: Context = left
        self.right: Context = right
        self.parent: Pair | None = parent
        self.steps: int = 0 if parent is None else parent.steps + 1  # tokens after the prompt
        self.spent: float | None = 0.0 if parent is None else None  # nats spent before this place
        self._children: WeakValueDictionary[int, Pair] = WeakValueDictionary()

    @property
    def tokens(self) -> list[int]:
        return self.left.tokens

    def __len__(self) -> int:
        return len(self.left)

    def extend(self, token: int) -> Pair:
        found = self._children.get(token)
        if found is None:
            found = self._children[token] = Pair(self.left.extend(token), self.right.extend(token), self)
        return found


class _Two:
    """The base class of mixed models.

    Raises:
        LanguageModelError: the models have different vocabularies or ends.
    """

    def __init__(self, lm: LanguageModel, other: LanguageModel) -> None:
        same = lm.vocabulary is other.vocabulary or list(lm.vocabulary.tokens) == list(
            other.vocabulary.tokens
        )
        if not same or sorted(lm.eos_token_ids) != sorted(other.eos_token_ids):
            raise LanguageModelError(
                f"two models are mixed token by token, and these have different tokens or ends "
                f"({lm.vocabulary.vocab_size} and {other.vocabulary.vocab_size} ids)"
            )
        self.lm: LanguageModel = lm
        self.other: LanguageModel = other
        limits = [m.max_context for m in (lm, other) if m.max_context is not None]
        self.max_context: int | None = min(limits) if limits else None

    @property
    def vocabulary(self) -> Vocabulary:
        return self.lm.vocabulary

    @property
    def eos_token_ids(self) -> Sequence[int]:
        return self.lm.eos_token_ids

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of the first model, for its chat template."""
        return getattr(self.lm, "tokenizer", None)

    def start(self, prompt: str | Sequence[int]) -> Pair:
        left = self.lm.start(prompt)
        return Pair(left, self.other.start(left.tokens))

    def _both(self, contexts: Sequence[Pair]) -> tuple[_Doubles, _Doubles]:
        left = self.lm.logprobs([context.left for context in contexts]).astype(np.float64)
        right = self.other.logprobs([context.right for context in contexts]).astype(np.float64)
        return _normalised(left), _normalised(right)

    def _as_one(self, rows: _Doubles) -> _Doubles:
        """Returns rows in which the first end has the summed probability of all ends, and the other ends have
        none."""
        ends = list(self.eos_token_ids)
        merged = rows.copy()
        merged[:, ends] = -np.inf
        merged[:, ends[0]] = np.logaddexp.reduce(rows[:, ends], axis=1)
        return merged

    def _apart(self, merged: _Doubles, like: _Doubles) -> _Doubles:
        """Returns the inverse of `_as_one`: rows in which the end is divided among its ids as in the rows
        `like`."""
        ends = list(self.eos_token_ids)
        whole = np.logaddexp.reduce(like[:, ends], axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            shares = np.where(whole > -np.inf, like[:, ends] - whole, -math.log(len(ends)))
        found = merged.copy()
        found[:, ends] = merged[:, ends[:1]] + shares
        return found


class Contrasted(_Two):
    """The law of contrastive decoding; see the head of this file.

    Args:
        lm, amateur: models over one vocabulary.
        power: the strength of the contrast; 0 gives `lm` alone.
        plausible: a token is plausible from this share of the most probable token's probability on.
        above: the contrast acts if the entropy of `lm` is at least this, in nats.
    """

    def __init__(
        self,
        lm: LanguageModel,
        amateur: LanguageModel,
        power: float = 0.5,
        *,
        plausible: float = 0.1,
        above: float = 0.0,
    ) -> None:
        super().__init__(lm, amateur)
        not_negative("power", power)
        number("plausible", plausible, "above 0 and at most 1", lambda x: 0 < x <= 1)
        number("above", above, "0 or more nats", lambda x: x >= 0)
        self.power = power
        self.plausible: float = math.log(plausible)
        self.above = above

    def logprobs(self, contexts: Sequence[Pair]) -> _Rows:
        plain, other = self._both(contexts)
        left, right = self._as_one(plain), self._as_one(other)
        fair = left >= left.max(axis=1, keepdims=True) + self.plausible
        mixed = (1 + self.power) * left - self.power * np.where(fair, np.maximum(right, _LEAST), 0.0)
        mixed = _normalised(mixed)
        if self.above > 0:
            sure = entropies(left) < self.above
            mixed[sure] = left[sure]
        return self._apart(mixed, plain).astype(np.float32)


class Anchored(_Two):
    """A model that stays within a budget of nats of a reference; the docstring of the module explains the
    law.

    Args:
        lm, reference: models over one vocabulary.
        budget: the most nats of a whole text.
        steps: the number of tokens over which the budget becomes available.
    """

    def __init__(self, lm: LanguageModel, reference: LanguageModel, budget: float, steps: int = 256) -> None:
        super().__init__(lm, reference)
        not_negative("budget", budget)
        whole("steps", steps, 1)
        self.budget = budget
        self.steps = steps

    def logprobs(self, contexts: Sequence[Pair]) -> _Rows:
        for context in contexts:
            self._settle(context)
        return self._mixed(contexts)[0].astype(np.float32)

    def allowed(self, context: Pair) -> float:
        """Returns the nats that the step after a prefix may spend."""
        self._settle(context)
        assert context.spent is not None
        share = self.budget * min(1.0, (context.steps + 1) / self.steps)
        return max(0.0, share - context.spent)

    def _settle(self, context: Pair) -> None:
        """Computes the nats that a prefix has spent: the sum of the divergences at the prefixes before it."""
        open_: list[Pair] = []
        at: Pair | None = context
        while at is not None and at.spent is None:
            open_.append(at)
            at = at.parent
        for one in reversed(open_):
            assert one.parent is not None and one.parent.spent is not None
            one.spent = one.parent.spent + float(self._mixed([one.parent])[1][0])

    def _mixed(self, contexts: Sequence[Pair]) -> tuple[_Doubles, _Doubles]:
        """Returns normalised rows, and their divergences from the reference."""
        plain, other = self._both(contexts)
        left, right = self._as_one(plain), self._as_one(other)
        rows, spent = np.empty_like(left), np.empty(len(left))
        for at, context in enumerate(contexts):
            rows[at], spent[at] = mixed_within(left[at], right[at], self.allowed(context))
        return self._apart(rows, other), spent


def mixed_within(p: _Doubles, r: _Doubles, nats: float) -> tuple[_Doubles, float]:
    """Returns the row p^a r^(1-a), normalised, with the largest a for which its divergence from r is at most
    `nats`, and that divergence. The divergence grows with a."""

    def mixed(a: float) -> tuple[_Doubles, float]:
        row = r if a == 0 else p if a == 1 else a * p + (1 - a) * r
        row = _normalised(row[None, :])[0]
        weight = np.exp(row)
        held = weight > 0
        with np.errstate(invalid="ignore"):
            return row, max(0.0, float((weight[held] * (row[held] - r[held])).sum()))

    whole = mixed(1.0)
    if whole[1] <= nats:
        return whole
    low, high, best = 0.0, 1.0, mixed(0.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        found = mixed(middle)
        if found[1] <= nats:
            low, best = middle, found
        else:
            high = middle
    return best


def _normalised(rows: _Doubles) -> _Doubles:
    with np.errstate(invalid="ignore"):  # Rows of only -inf become NaN, and comparisons with NaN are False.
        rows = rows - rows.max(axis=1, keepdims=True)
        rows -= np.log(np.exp(rows).sum(axis=1, keepdims=True))
    return rows


def entropies(rows: _Doubles) -> _Doubles:
    """Returns the entropies of rows of log-probabilities, in nats; float64, shape (n,)."""
    with np.errstate(invalid="ignore"):
        found: _Doubles = np.where(rows > -np.inf, -np.exp(rows) * rows, 0.0).sum(axis=1)
    return found
