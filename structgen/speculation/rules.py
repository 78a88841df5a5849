"""Rules that accept sampled drafts by comparing distributions: for one draft, for siblings, and for
independent drafts.

Enters: the target's distribution p and the draft's q at one place, both after the grammar's mask, and drafts
that were sampled from q. Leaves: a token that follows p exactly. Cost: a few passes over both.

    single       u < p(x) / q(x), else the residual (p - q)+     Leviathan et al. 2023; Chen et al. 2023
    recursive    siblings drawn without replacement              RSD: Jeon et al. 2024
    k_seq        independent drafts with a common discount       SpecTr: Sun et al. 2023

q must be the law from which the drafts were drawn, and every draft that was drawn must be offered here.
Dropping an invalid draft first, as if it had not been drawn, is a bias: the law becomes
p(y) + q(invalid) (p(y) - residual(y)). So the mask is applied to q *before* drawing, and never to the drafts
afterwards.

A `Chance` makes every random choice. A test takes the place of the `Chance`, answers in every possible way,
and adds the weights up, so the test checks this code and not a formula about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Chance(Protocol):
    """The source of randomness."""

    def coin(self, p: float) -> bool:
        """Returns True with probability p; never for p <= 0, always for p >= 1."""
        ...

    def draw(self, p: Floats) -> int:
        """Returns an index i with probability p[i]; never one whose p is 0."""
        ...


def single(p: Floats, q: Floats, draft: int, chance: Chance) -> tuple[int, int | None]:
    """Returns a token that follows p, and 0 if it is the draft. Shapes (n,); `draft` was drawn from q."""
    return recursive(p, q, [draft], chance)


def recursive(p: Floats, q: Floats, drafts: Sequence[int], chance: Chance) -> tuple[int, int | None]:
    """Returns a token that follows p, and the number of the draft that it is.

    Args:
        p: the probabilities of the target, shape (n,), summing to 1.
        q: the probabilities of the draft, shape (n,), summing to 1.
        drafts: distinct, drawn one after the other from q without replacement (Gumbel-top-k order).
    """
    p, q = p.copy(), q.copy()
    for i, x in enumerate(drafts):
        # q(x) > 0, or x could not have been drawn; its remaining mass may have been rounded away.
        if p[x] > 0 and chance.coin(min(1.0, float(p[x] / max(q[x], 1e-300)))):
            return x, i
        p = _residual(p, q)
        q[x] = 0.0
        total = q.sum()
        if total <= 0.0:
            break
        q /= total
    return chance.draw(p), None


def _residual(p: Floats, q: Floats) -> Floats:
    """Returns norm((p - q)+). If p equals q, only rounding errors are left, and a refusal has probability
    0."""
    rest: Floats = np.maximum(p - q, 0.0)
    total = rest.sum()
    return rest / total if total > 0.0 else p


def k_seq_discount(p: Floats, q: Floats, count: int) -> tuple[float, float]:
    """Returns (rho, beta): the least rho in [1, count] with 1 - (1 - beta)^count <= rho beta, where beta =
    sum_x min(p(x) / rho, q(x)). Found by bisection; the bound holds for what is returned."""

    def beta(rho: float) -> float:
        return float(np.minimum(p / rho, q).sum())

    def fits(rho: float) -> bool:
        b = beta(rho)
        return 1.0 - (1.0 - b) ** count <= rho * b

    low, high = 1.0, float(count)
    if fits(low):
        return low, beta(low)
    for _ in range(60):
        middle = 0.5 * (low + high)
        if fits(middle):
            high = middle
        else:
            low = middle
    return high, beta(high)


def k_seq(p: Floats, q: Floats, drafts: Sequence[int], chance: Chance) -> tuple[int, int | None]:
    """Returns a token that follows p, and the number of the draft that it is. `drafts` are independent draws
    of q."""
    rho, beta = k_seq_discount(p, q, len(drafts))
    for i, x in enumerate(drafts):
        if p[x] > 0 and chance.coin(min(1.0, float(p[x] / (rho * max(q[x], 1e-300))))):
            return x, i
    if beta <= 0.0:
        return chance.draw(p), None
    taken = (1.0 - (1.0 - beta) ** len(drafts)) / beta
    rest: Floats = np.maximum(p - np.minimum(q, p / rho) * taken, 0.0)
    total = rest.sum()
    return chance.draw(rest / total if total > 0.0 else p), None
