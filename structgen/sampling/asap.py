"""ASAp: local masking corrected by what earlier draws learned (Park et al. 2024).

Enters: a walker whose trie may know something already. Leaves: an `Outcome`. Cost: one walk a draw, whose
known prefixes need no forward, and a backup along its path.

Tokens are drawn in proportion to P(b|u) * upper(ub): the probability that a prefix can still be completed
replaces 1. Every draw is a text of the language; its law Q approaches the target as bounds tighten, and
TV(Q, P_L) <= 1 - Z/upper(root) <= 1 - lower/upper, both known at any time. Unlike the original, each draw
comes with its proper weight P(s)/Q(s), so draws can be used before Q has converged.
"""

from __future__ import annotations

import math

from .chance import Seeds
from .logspace import logsumexp
from .outcome import Outcome, Purpose
from .walk import Mode, Walk, Walker

__all__ = ["MODE", "draw"]

MODE = Mode(bounds=True, learns=True)


def draw(
    walker: Walker, seeds: Seeds, n: int, *, until_tv: float | None = None, extra: int | None = None
) -> Outcome:
    """n draws in turn, each from what the ones before it learned.

    Args:
        until_tv: stop after the first draw that leaves a certified distance of at most this; the draws
            that follow would be within it.
    """
    mode = Mode(bounds=True, learns=True, extra=extra)
    out = Outcome(law="approximate")

    def make(index: int) -> Walk:
        return walker.start(seeds.stream(Purpose.DRAW, index))

    def wanted(walk: Walk, index: int) -> bool:
        out.draws += 1
        if walk.alive:
            out.walks.append(walk)
        out.note_bracket(out.draws, walker.trie.bracket)
        if until_tv is not None and walker.trie.tv_bound <= until_tv:
            out.stopped = f"the next draw is within {until_tv:g} of the target"
            return False
        return out.draws < n

    walker.in_turn(make, mode, wanted, lambda: n - out.draws)
    out.accepted = len(out.walks)
    out.log_weights = [walk.log_weight for walk in out.walks]
    out.log_evidence = logsumexp(out.log_weights) - math.log(out.draws)
    return out
