"""CARS: exact independent draws by rejection that learns (Parys et al. 2025).

Enters: a walker; earlier calls may have filled its trie. Leaves: an `Outcome`. Cost: one walk for each trial;
a rejected walk stops early. A trial is accepted with probability Z / upper(root), which rises with every
trial.

The walk starts at lt = log upper(root). At each prefix it continues with probability exp(lZ - lt) <= 1, where
lt is the log bound of the prefix and lZ is the log of the sum of P(b|u) * upper(ub) over the allowed tokens
b. The product over a whole text s is P(s) / upper(root): whatever was learned before, an accepted text is a
draw from the target, and the trials are independent given the trie with which they began. Vectors are fetched
for a batch of trials at once, but trials run one after the other, and their results are taken in this order.
Taking the trial that finishes first would favour short texts.
"""

from __future__ import annotations

import numpy as np

from .chance import Seeds
from .evidence import Evidence
from .logspace import NEVER, logsumexp
from .outcome import STOPPED_BY_TEXTS, Outcome, Purpose
from .walk import Mode, Walk, Walker

_REMEMBERED = 10_000  # the most texts of a given trie whose weights are known without draws

_CUT = "approximate: trials ran out, and how many of them end in a text depends on what earlier texts taught"

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
    """Returns n accepted texts, or fewer after `max_trials`.

    Given the earlier texts, each text is a draw from the target. If a run ends before the n-th text, the
    number of texts depends on the texts, because bounds are learned from them; the law is then named
    approximate. With `until_tv` the law is always named approximate.

    The evidence is a mean with shares (`evidence.py`) of estimates X. Each X is unbiased given what was known
    before its trial. Let l be the summed weight of the distinct texts met so far. Then X = l + upper(root) *
    [accepted, and not met before], because a trial accepts a new text with probability (Z - l) / upper(root).
    """
    out = Outcome(law="exact")
    trie = walker.trie
    evidence = Evidence()
    met = trie.texts(walker.target.end, _REMEMBERED)
    mass = logsumexp(list(met.values()))
    bound = trie.theta
    tight = until_tv is not None and trie.tv_bound <= until_tv

    def plan() -> None:
        """Fixes the bound of the next trial and its share of the evidence."""
        nonlocal bound
        bound = trie.theta
        wanting, trials = n - len(out.walks), max_trials - out.draws
        rate = max(trie.acceptance, (len(out.walks) + 1) / (out.draws + 2))
        last = tight or wanting == 1 or trials == 1
        evidence.plan(1.0 if last else min(float(trials), 1.0 + (wanting - 1) / rate))

    def make(index: int) -> Walk:
        return walker.start(seeds.stream(purpose, index), MODE)

    def wanted(walk: Walk, index: int) -> bool:
        nonlocal tight, mass
        out.draws += 1
        text = tuple(walk.tokens)
        new = walk.value > NEVER and text not in met
        evidence.add(mass, bound if walk.alive and new else NEVER)
        if new:
            met[text] = walk.value
            mass = float(np.logaddexp(mass, walk.value))
        if walk.alive:
            out.walks.append(walk)
        out.note_bracket(out.draws, trie.bracket)
        if trie.theta == NEVER:
            out.stopped = "no text has weight: the bounds prove that Z is 0"
            return False
        if len(out.walks) >= n:
            return False
        if tight:
            out.stopped = f"the bracket is tighter than {until_tv:g}"
            return False
        if out.draws >= max_trials:
            out.stopped = f"{max_trials} trials gave {len(out.walks)} of {n} texts"
            return False
        tight = until_tv is not None and trie.tv_bound <= until_tv
        plan()
        return True

    plan()
    walker.in_turn(
        make, MODE, wanted, lambda: 1 if tight else min(n - len(out.walks), max_trials - out.draws)
    )
    out.accepted = len(out.walks)
    out.log_weights = [0.0] * len(out.walks)
    out.log_uppers = [NEVER] * len(out.walks)
    out.log_evidence = evidence.log_mean
    if trie.theta > NEVER and (until_tv is not None or len(out.walks) < n):
        out.law = "approximate"
        out.notes.append(STOPPED_BY_TEXTS if until_tv is not None else _CUT)
    return out
