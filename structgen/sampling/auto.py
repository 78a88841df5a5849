"""method="auto": measures, chooses a sampler, and gives the reasons.

Enters: a walker, seeds, n. Leaves: an `Outcome` of the chosen sampler, its notes first. Cost: a pilot of at
most 32 CARS trials. Its vectors and bounds stay in the trie, so no forward is lost.

The first choice is CARS, which gives exact draws; it is taken if trials are accepted often enough, or if the
weights of draws predict that they will be. The second choice is weighted particles, twisted by the learned
bounds; they are taken if weights are even enough. The last choice is ASAp, whose law is named approximate.
The texts of the pilot are thrown away: the choice depends on the texts that the pilot met, so keeping them
would bias the result. CARS itself is exact whatever the trie holds when it starts.
"""

from __future__ import annotations

import math

from . import asap, cars, smc
from .chance import Seeds
from .logspace import NEVER, effective_size, logsumexp, normalised
from .outcome import Outcome, Purpose
from .resampling import pick
from .walk import Walk, Walker

TRIALS = 32
ENOUGH = 8  # the pilot ends after so many accepted texts
ACCEPTED = 0.05  # from this acceptance rate on, exact draws are worth their trials
RISING = 0.02  # the limit for a predicted acceptance rate is lower, because the rate rises with every trial
EVEN = 0.1  # from this share of effective draws on, weights are even enough
PARTICLES = 16  # the smallest population
UNLIKELY = -20.0  # if log Z is below this, no sampler helps much
_PROBES = 16


def draw(
    walker: Walker,
    seeds: Seeds,
    n: int,
    *,
    max_trials: int,
    extra: int | None,
    until_tv: float | None = None,
) -> Outcome:
    """Draws n texts with the sampler that the pilot chooses. Of a population of PARTICLES particles, n are
    drawn by weight."""
    if not walker.target.bounded:
        out = _population(walker, seeds, n, extra)
        out.notes.insert(0, "smc: a potential is not bounded by 1, so texts cannot be accepted or rejected")
        return out
    rate, trials = _pilot(walker, seeds)
    if walker.trie.theta == NEVER:
        out = Outcome(law="exact", draws=trials)
        count = "1 trial" if trials == 1 else f"{trials} trials"
        out.notes.append(f"no text has weight: {count} proved that Z is 0")
        return out
    if rate >= ACCEPTED and rate * max_trials >= n:
        out = cars.draw(walker, seeds, n, max_trials=max_trials, until_tv=until_tv)
        out.notes.insert(0, f"cars: about {rate:.0%} of trials are accepted after a pilot of {trials}")
        return out
    share, rate = _probes(walker, seeds)
    said = f"about {rate:.1%} of CARS trials would be accepted"
    if share >= EVEN and rate >= RISING and rate * max_trials >= n:
        out = cars.draw(walker, seeds, n, max_trials=max_trials, until_tv=until_tv)
        out.notes.insert(0, f"cars: {said} by the weights of {_PROBES} draws after a pilot of {trials}")
        return out
    if share >= EVEN:
        out = _population(walker, seeds, n, extra)
        out.notes.insert(0, f"smc: {said}, but {share:.0%} of weighted draws are effective")
        _warn(out)
        return out
    out = asap.draw(walker, seeds, n, extra=extra, until_tv=until_tv)
    out.notes.insert(
        0,
        f"asap, approximate: {said}, and {share:.0%} of weighted draws are effective; "
        "a prompt or a grammar that fits the model better helps most",
    )
    _warn(out)
    return out


def _population(walker: Walker, seeds: Seeds, n: int, extra: int | None) -> Outcome:
    """n weighted texts. If n is below PARTICLES, the population has PARTICLES texts, and n of them are drawn
    in proportion to their weights. Each then has an equal share of the summed weight."""
    out = smc.draw(walker, seeds, max(n, PARTICLES), smc.SmcOptions(extra=extra))
    if n < PARTICLES and out.walks:
        weights = out.log_weights
        kept = pick(normalised(weights), n, seeds.stream(Purpose.FINAL, 0))
        out.walks = [out.walks[i] for i in kept]
        out.log_weights = [logsumexp(weights) - math.log(n)] * n
        out.notes.append(f"{n} drawn by weight from {len(weights)} particles")
    return out


def _warn(out: Outcome) -> None:
    if NEVER < out.log_evidence < UNLIKELY:
        out.notes.append(
            f"the language has a probability of about e^{out.log_evidence:.0f}: these texts may be far from "
            "the target, whatever their weights say; change the prompt or widen the grammar"
        )


def _pilot(walker: Walker, seeds: Seeds) -> tuple[float, int]:
    """Returns the expected acceptance rate: the rate of the later half of the trials, or the certified bound
    of the bracket."""
    accepted: list[bool] = []

    def make(index: int) -> Walk:
        return walker.start(seeds.stream(Purpose.PILOT, index), cars.MODE)

    def wanted(walk: Walk, index: int) -> bool:
        accepted.append(walk.alive)
        return len(accepted) < TRIALS and sum(accepted) < ENOUGH and walker.trie.theta > NEVER

    walker.in_turn(make, cars.MODE, wanted, lambda: min(ENOUGH - sum(accepted), TRIALS - len(accepted)))
    late = accepted[len(accepted) // 2 :]
    return max(sum(late) / len(late), walker.trie.acceptance), len(accepted)


def _probes(walker: Walker, seeds: Seeds) -> tuple[float, float]:
    """Draws texts whose weights follow the learned bounds. Returns the share of effective draws, and the
    acceptance rate that the weights predict.

    A short pilot may end before CARS has learned enough to accept a trial, or no trial is accepted by chance.
    The mean weight estimates Z without an accepted trial, and the acceptance rate is Z / upper(root).
    """
    weights: list[float] = []

    def make(index: int) -> Walk:
        return walker.start(seeds.stream(Purpose.PILOT, TRIALS + index))

    def wanted(walk: Walk, index: int) -> bool:
        weights.append(walk.log_weight)
        return len(weights) < _PROBES

    walker.in_turn(make, asap.MODE, wanted, lambda: _PROBES - len(weights))
    late = weights[len(weights) // 2 :]
    mean = logsumexp(late) - math.log(len(late))
    rate = 0.0 if mean == NEVER else math.exp(min(0.0, mean - walker.trie.theta))
    return effective_size(late) / len(late), rate
