"""AWRS: a token drawn from what a condition leaves, and an unbiased estimate of how much that is.

Enters: a walk on a known node, whose allowed tokens have weights but whose condition was not asked.
Leaves: a slot and the log of the estimated normaliser, properly weighted. Cost: as many evaluations of the
condition as tokens are refused, one for the token taken, and at most K for the normaliser; a verdict is
remembered at its edge, and no token is asked about twice.

Adaptive weighted rejection sampling (Lipkin et al. 2025), in the form that needs no second draw of the
token itself. Tokens are drawn without replacement in proportion to their weight p. The first that is
accepted, x, is an exact draw from p given the condition. Let V be the mass known to be valid and M the mass
known to be refused. K tokens more are drawn without replacement; all but the last are tested and move into V
or M, and before the last one, y, the estimate is  w = V + (1 - V - M) * 1[y valid].  Given x and everything
seen, y comes from the untested rest in proportion to p, so E[w] is the true mass; where nothing is left
untested, w is exact. Which tokens are tested must not depend on what the last test will say: K is fixed
beforehand. Verdicts known from earlier visits are simply tests made first.

On top of a mask only the *residual* condition is tested; the grammar itself costs no evaluation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .trie import Edge
    from .walk import Walk, Walker

__all__ = ["estimate"]


def estimate(
    walker: Walker, walk: Walk, total: float, sums: np.ndarray, extra: int
) -> tuple[int, float] | None:
    """The slot drawn and the log normaliser; None where the condition refuses every token.

    Args:
        total: log of the normaliser without the condition.
        sums: ascending cumulated weights of the slots.
        extra: K, at least 1.
    """
    weights = np.diff(sums, prepend=0.0)
    scale = float(sums[-1])
    valid, taken, known = 0.0, -1, np.zeros(weights.size, bool)
    node = walk.node
    for edge in node.edges.values():
        if edge.verdict is not None:
            known[edge.slot] = edge.verdict
            if edge.verdict:
                valid += float(weights[edge.slot])
            else:
                weights[edge.slot] = 0.0
    # 1. The token: draws without replacement among everything not refused.
    while taken < 0:
        cumulated = np.cumsum(weights)
        if cumulated[-1] <= 0.0:
            return None
        slot = walk.chance.choose(cumulated)
        if known[slot] or _ask(walker, walk, slot):
            if not known[slot]:
                valid += float(weights[slot])
                known[slot] = True
            taken = slot
        else:
            weights[slot] = 0.0
    # 2. The normaliser: K draws from what is untested.
    rest = np.where(known, 0.0, weights)
    for left in range(extra, 0, -1):
        cumulated = np.cumsum(rest)
        open_mass = float(cumulated[-1])
        if open_mass <= 0.0:
            break
        slot = walk.chance.choose(cumulated)
        accepted = _ask(walker, walk, slot)
        if left == 1:
            valid += open_mass if accepted else 0.0
        elif accepted:
            valid += float(weights[slot])
        rest[slot] = 0.0
    return taken, total + math.log(min(valid, scale)) - math.log(scale)


def _ask(walker: Walker, walk: Walk, slot: int) -> bool:
    """The condition's verdict on one token, kept at its edge."""
    node = walk.node
    assert node.ids is not None
    token = int(node.ids[slot])
    edge: Edge = node.edge(token, slot)
    tokens, data, ended = walk.tokens, walk.data, walk.ended
    walk.tokens = [*tokens, token]
    if token == walker.target.end:
        walk.ended = True
    else:
        walk.data = data + walker.target.vocabulary.token_bytes(token)
    accepted = walker.allowed(walk, edge)
    walk.tokens, walk.data, walk.ended = tokens, data, ended
    return accepted
