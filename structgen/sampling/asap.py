"""ASAp: local masking corrected by what earlier draws learned (Park et al. 2024).

Enters: a walker; earlier calls may have filled its trie. Leaves: an `Outcome`. Cost: one walk for each draw,
and a backup along its path. Known prefixes need no forward.

A token b is drawn after a prefix u in proportion to P(b|u) * upper(ub), where upper bounds the probability
that the model completes the prefix. Local masking draws with 1 in place of upper(ub). Every draw is a text of
the language; its law Q approaches the target as bounds tighten, and TV(Q, P_L) <= 1 - Z/upper(root) <= 1 -
lower/upper, where both bounds are known at any time. Unlike the original, each draw comes with its proper
weight P(s)/Q(s), so the draws with their weights are useful before Q has converged.
"""

from __future__ import annotations

from .chance import Seeds
from .evidence import Evidence
from .outcome import STOPPED_BY_TEXTS, Outcome, Purpose
from .walk import Mode, Walk, Walker

MODE = Mode(bounds=True, learns=True)


def draw(
    walker: Walker, seeds: Seeds, n: int, *, until_tv: float | None = None, extra: int | None = None
) -> Outcome:
    """Makes n draws, one after another. Each draw uses the bounds that earlier draws learned.

    Args:
        until_tv: stop after the first draw made at a certified distance of at most this.

    The evidence is a mean of the weights. A run may stop early, so each draw has a share of the mean
    (`evidence.py`). The last draw gets the rest of the shares; at the end of a run the weight of a draw is
    nearly Z.
    """
    mode = Mode(bounds=True, learns=True, extra=extra)
    out = Outcome(law="approximate")
    evidence = Evidence()
    tight = until_tv is not None and walker.trie.tv_bound <= until_tv

    def make(index: int) -> Walk:
        return walker.start(seeds.stream(Purpose.DRAW, index), mode)

    def wanted(walk: Walk, index: int) -> bool:
        nonlocal tight
        out.draws += 1
        evidence.add(walk.log_weight)
        if walk.alive:
            out.walks.append(walk)
        out.note_bracket(out.draws, walker.trie.bracket)
        if tight:
            out.stopped = f"the last draw is within {until_tv:g} of the target"
            return False
        tight = until_tv is not None and walker.trie.tv_bound <= until_tv
        evidence.plan(1 if tight else n - out.draws)
        return out.draws < n

    evidence.plan(1 if tight else n)
    walker.in_turn(make, mode, wanted, lambda: 1 if tight else n - out.draws)
    out.weigh(evidence.log_mean)
    if until_tv is not None:
        out.notes.append(STOPPED_BY_TEXTS)
    return out
