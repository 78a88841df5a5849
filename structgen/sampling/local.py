"""Local masking, with importance weights.

Enters: a walker, seeds, how many draws. Leaves: an `Outcome`. Cost: a forward for each unknown prefix. The
draws are independent, so `batch` of them share each step.

Every token follows the model over the tokens allowed there ("grammar-constrained decoding"). A text s then
has probability Q(s), not P(s | L). The weight w = P(s) / Q(s), which is the product of the local normalisers,
corrects the difference: E[w 1{s}] = P(s) 1[s in L]. The normalisers are exact, so the weights have no noise
of their own.
"""

from __future__ import annotations

import math

from .chance import Seeds
from .evidence import Evidence
from .logspace import logsumexp
from .outcome import STOPPED_BY_TEXTS, Outcome, Purpose
from .walk import Mode, Walker

_LOOK = 16  # the bracket is checked after so many draws


def draw(
    walker: Walker,
    seeds: Seeds,
    n: int,
    *,
    weighted: bool,
    extra: int | None = None,
    until_tv: float | None = None,
) -> Outcome:
    """Makes n independent draws. `weighted` says whether the caller means to use the weights.

    Args:
        extra: K of AWRS for a condition; None asks about drawn tokens only.
        until_tv: stop with the first _LOOK draws that begin with a certified bracket this tight. The evidence
            stays unbiased (`evidence.py`); weighted sums over the texts do not stay unbiased, so the law is
            "approximate".
    """
    mode = Mode(learns=walker.target.bounded, extra=extra)
    out = Outcome(law="weighted" if weighted else "local")
    evidence = Evidence()
    while not out.stopped and out.draws < n:
        tight = until_tv is not None and mode.learns and walker.trie.tv_bound <= until_tv
        count = n if until_tv is None else min(_LOOK, n - out.draws)
        evidence.plan(1.0 if tight else (n - out.draws) / count)
        weights: list[float] = []
        for first in range(out.draws, out.draws + count, walker.batch):
            block = range(first, min(out.draws + count, first + walker.batch))
            walks = [walker.start(seeds.stream(Purpose.DRAW, i)) for i in block]
            walker.run(walks, mode)
            out.walks += [walk for walk in walks if walk.alive]
            weights += [walk.log_weight for walk in walks]
            out.note_bracket(block.stop, walker.trie.bracket)
        out.draws += count
        evidence.add(logsumexp(weights) - math.log(count))
        if tight:
            out.stopped = f"the bracket is tighter than {until_tv:g}"
    out.weigh(evidence.log_mean)
    if until_tv is not None:
        out.law = "approximate" if weighted else out.law
        out.notes.append(STOPPED_BY_TEXTS)
    return out
