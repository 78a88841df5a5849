"""CARS: exact independent draws by rejection that learns (Parys et al. 2025).

Enters: a walker whose trie may know something already. Leaves: an `Outcome`. Cost: trials, each a walk that
stops early when it loses; accepted with probability Z / upper(root), which rises with every trial.

The walk starts at log theta = log upper(root). At each prefix it goes on with probability
exp(lZ - lt) <= 1, where lZ is what the present bounds leave there. The product over a whole text s is
P(s) / upper(root): whatever was learned before, an accepted text is a draw from the target, and the trials
are independent given the trie they began with. Trials run one after the other over vectors that are
fetched for a batch of them at once, and results are taken in that order: taking whichever trial finishes
first would favour short texts.
"""

from __future__ import annotations

import math

from .chance import Seeds
from .logspace import logsumexp
from .outcome import Outcome, Purpose
from .walk import Mode, Walk, Walker

__all__ = ["MODE", "draw"]

MODE = Mode(bounds=True, coin=True, learns=True)


def draw(
    walker: Walker,
    seeds: Seeds,
    n: int,
    *,
    max_trials: int,
    until_tv: float | None = None,
    purpose: int = Purpose.DRAW,
) -> Outcome:
    """n accepted texts, or fewer after `max_trials`.

    The evidence is the mean of accepted * upper(root), each unbiased for Z.
    """
    out = Outcome(law="exact")
    evidence: list[float] = []
    theta: dict[int, float] = {}

    def make(index: int) -> Walk:
        theta[index] = walker.trie.theta  # a walk taken ahead is made again in its turn
        return walker.start(seeds.stream(purpose, index), MODE)

    def wanted(walk: Walk, index: int) -> bool:
        out.draws += 1
        bound = theta.pop(index)
        if walk.alive:
            out.walks.append(walk)
            evidence.append(bound)
        out.note_bracket(out.draws, walker.trie.bracket)
        if walker.trie.theta == -math.inf:
            out.stopped = "no text has weight: the bounds prove that Z is 0"
            return False
        if len(out.walks) >= n:
            return False
        if until_tv is not None and walker.trie.tv_bound <= until_tv:
            out.stopped = f"the bracket is tighter than {until_tv:g}"
            return False
        if out.draws >= max_trials:
            out.stopped = f"{max_trials} trials gave {len(out.walks)} of {n} texts"
            return False
        return True

    walker.in_turn(make, MODE, wanted, lambda: min(n - len(out.walks), max_trials - out.draws))
    out.accepted = len(out.walks)
    out.log_weights = [0.0] * len(out.walks)
    out.log_evidence = logsumexp(evidence) - math.log(out.draws)
    return out
