"""Local masking, with the importance weight that it usually throws away.

Enters: a walker, seeds, how many draws. Leaves: an `Outcome`. Cost: a forward for each unknown prefix; the
draws are independent, so `batch` of them take each step together.

Every token follows the model over the tokens allowed there ("grammar-constrained decoding"). A text s then
has probability Q(s), not P(s | L); its weight P(s) / Q(s), the product of the local normalisers, repairs
that: E[w 1{s}] = P(s) 1[s in L]. The normalisers are exact, so the weights have no noise of their own.
"""

from __future__ import annotations

import math

from .chance import Seeds
from .logspace import logsumexp
from .outcome import Outcome, Purpose
from .walk import Mode, Walker

__all__ = ["draw"]


def draw(
    walker: Walker,
    seeds: Seeds,
    n: int,
    *,
    weighted: bool,
    extra: int | None = None,
    until_tv: float | None = None,
) -> Outcome:
    """n independent draws; `weighted` says whether the caller means to use the weights.

    Args:
        extra: K of AWRS for a condition; None asks about drawn tokens only.
        until_tv: stop once the certified bracket is this tight.
    """
    mode = Mode(learns=walker.target.bounded, extra=extra)
    out = Outcome(law="weighted" if weighted else "local")
    for first in range(0, n, walker.batch):
        walks = [
            walker.start(seeds.stream(Purpose.DRAW, i)) for i in range(first, min(n, first + walker.batch))
        ]
        walker.run(walks, mode)
        out.draws += len(walks)
        out.walks += [walk for walk in walks if walk.alive]
        out.note_bracket(out.draws, walker.trie.bracket)
        if until_tv is not None and mode.learns and walker.trie.tv_bound <= until_tv:
            out.stopped = f"the bracket is tighter than {until_tv:g}"
            break
    out.accepted = len(out.walks)
    out.log_weights = [walk.log_weight for walk in out.walks]
    out.log_evidence = logsumexp(out.log_weights) - math.log(out.draws)
    return out
