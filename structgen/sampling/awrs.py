"""AWRS: draws a token that a condition allows, and estimates the allowed mass without bias.

Enters: a walk on a node that has a vector. The node's tokens have weights, and the condition is not in the
weights. Leaves: the slot of the drawn token, and the log of an estimate of the normaliser whose expectation
is exact. Cost: one evaluation of the condition for each refused token, one for the accepted token, and at
most K for the normaliser. A verdict is kept at its edge, so each token is asked about once.

This is adaptive weighted rejection sampling (Lipkin et al. 2025), in the form that needs no second draw of
the token itself. Tokens are drawn without replacement in proportion to their weight p. The first accepted
token, x, is an exact draw from p given the condition. Let V be the mass known to be valid and M the mass
known to be refused. K tokens more are drawn without replacement. All but the last of these are tested, and
their mass is added to V or M. With the last token, y, the estimate is  w = V + (1 - V - M) * 1[y valid].
Given x and all tests so far, y is drawn from the untested tokens in proportion to p, so E[w] is the true
mass; if no token is left untested, w is exact. Which tokens are tested must not depend on the result of the
last test, so K is fixed beforehand. Verdicts from earlier visits count as tests that were made first.

On top of a mask only the *residual* condition is tested; the grammar itself costs no evaluation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .logspace import NEVER
from .vector import Urn, Vector

if TYPE_CHECKING:
    from .walk import Walk, Walker


def estimate(
    walker: Walker, walk: Walk, total: float, lot: Vector | Urn, extra: int
) -> tuple[int, float] | None:
    """Returns the drawn slot and the log normaliser; None if the condition refuses every token.

    Args:
        total: the log of the normaliser without the condition.
        lot: the tokens with their weights.
        extra: K, at least 1.
    """
    node = walk.node
    urn = Urn(lot) if isinstance(lot, Vector) else lot.copy()
    scale = urn.total()
    if scale <= 0.0:
        return None
    valid, known = 0.0, set[int]()
    for edge in node.edges.values():
        if edge.verdict:
            known.add(edge.slot)
            valid += urn.weight(edge.slot)
        elif edge.verdict is not None:
            urn.set(edge.slot, NEVER)
    # 1. Chooses the token: draws without replacement among all tokens that are not refused.
    while True:
        if urn.total() <= 0.0:
            return None
        taken = urn.choose(walk.chance)
        if taken in known:
            break
        if _ask(walker, walk, taken):
            known.add(taken)
            valid += urn.weight(taken)
            break
        urn.set(taken, NEVER)
    # 2. Estimates the normaliser: K draws among the tokens that are not tested yet.
    for slot in known:
        urn.set(slot, NEVER)
    for left in range(extra, 0, -1):
        open_mass = urn.total()
        if open_mass <= 0.0:
            break
        slot = urn.choose(walk.chance)
        weight = urn.weight(slot)
        accepted = _ask(walker, walk, slot)
        if left == 1:
            valid += open_mass if accepted else 0.0
        elif accepted:
            valid += weight
        urn.set(slot, NEVER)
    return taken, total + math.log(min(valid, scale)) - math.log(scale)


def _ask(walker: Walker, walk: Walk, slot: int) -> bool:
    """Returns the condition's verdict on one token, kept at its edge."""
    node = walk.node
    token = int(node.row.ids[slot])
    edge = node.edge(token, slot)
    tokens, data, ended = walk.tokens, walk.data, walk.ended
    walk.tokens = [*tokens, token]
    if token == walker.target.end:
        walk.ended = True
    else:
        walk.data = data + walker.target.vocabulary.token_bytes(token)
    accepted = walker.allowed(walk, node, edge)
    walk.tokens, walk.data, walk.ended = tokens, data, ended
    return accepted
