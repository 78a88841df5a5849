"""MCMC: chains of texts whose law approaches the target with every step (Gonzalez et al. 2025).

Enters: a walker, seeds, how many chains and steps. Leaves: the last state of each chain. Cost: a walk for
each step; only its rewritten suffix can need forwards.

From x, choose a position i with probability s_x(i), keep x[:i] and draw the rest by local masking; accept
with the Metropolis-Hastings ratio for the target. Since Q(y[i:]) is the product of p/Z over the suffix,

    log q(y|x) = logsumexp over i <= lcp(x, y) of ( log s_x(i) + log Q(y[i:] | y[:i]) )
    log alpha  = min(0, log P(y) + log q(x|y) - log P(x) - log q(y|x))

The proposal "restart" has s(0) = 1: alpha is then the ratio of importance weights, proposals do not depend on
the state, and all proposals are drawn as one batch beforehand. "uniform" has s = 1/|x|. "priority" has s in
proportion to the perplexity of the masked local distribution, so that positions with many probable tokens are
rewritten more often.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np

from .chance import Chance, Seeds
from .logspace import NEVER, logsumexp
from .outcome import Outcome, Purpose
from .walk import Mode, Walk, Walker

Proposal = Literal["restart", "uniform", "priority"]


def draw(walker: Walker, seeds: Seeds, n: int, *, steps: int = 10, proposal: Proposal = "restart") -> Outcome:
    """Runs n chains and returns their states after `steps` transitions.

    A chain that starts in a text without weight moves to the first proposal with weight. If no proposal has
    weight, the chain gives no text.
    """
    if proposal not in get_args(Proposal):
        raise ValueError(f"proposal is one of {', '.join(get_args(Proposal))}, not {proposal!r}")
    if steps < 0:
        raise ValueError("steps must not be negative")
    mode = Mode(learns=walker.target.bounded, entropies=proposal == "priority")
    out = Outcome(law="approximate")
    moved = 0
    if proposal == "restart":
        chains, moved = _restart(walker, seeds, n, steps, mode)
    else:
        chains, moved = _suffixes(walker, seeds, n, steps, proposal, mode)
    out.draws = n
    out.walks = [walk for walk in chains if walk.alive]
    out.accepted = len(out.walks)
    out.log_weights = [0.0] * len(out.walks)
    out.note_bracket(out.draws, walker.trie.bracket)
    if n * steps:
        out.notes.append(f"{moved} of {n * steps} proposals accepted")
    return out


def _restart(walker: Walker, seeds: Seeds, n: int, steps: int, mode: Mode) -> tuple[list[Walk], int]:
    states: list[Walk] = []
    moved = 0
    total = n * (steps + 1)
    for first in range(0, total, walker.batch):
        block = range(first, min(total, first + walker.batch))
        walks = [walker.start(seeds.stream(Purpose.DRAW, i)) for i in block]
        walker.run(walks, mode)
        for i, rival in zip(block, walks, strict=True):
            if i % (steps + 1) == 0:  # the first draw of a chain is its start
                states.append(rival)
                coin = seeds.stream(Purpose.PROPOSE, len(states))
            elif rival.alive and coin.coin(
                math.exp(min(0.0, _ratio(rival.log_weight, states[-1].log_weight)))
            ):
                states[-1], moved = rival, moved + 1
    return states, moved


def _ratio(new: float, old: float) -> float:
    return 0.0 if old == NEVER else new - old


def _suffixes(
    walker: Walker, seeds: Seeds, n: int, steps: int, proposal: Proposal, mode: Mode
) -> tuple[list[Walk], int]:
    streams = [seeds.stream(Purpose.DRAW, i) for i in range(n)]
    states = [walker.start(stream) for stream in streams]
    walker.run(states, mode)
    moved = 0
    for _ in range(steps):
        rivals = [
            propose(walker, state, stream, proposal) for state, stream in zip(states, streams, strict=True)
        ]
        walker.run(rivals, mode)
        for i, (state, rival) in enumerate(zip(states, rivals, strict=True)):
            if rival.alive and streams[i].coin(math.exp(log_acceptance(state, rival, proposal))):
                states[i], moved = rival, moved + 1
    return states, moved


def propose(walker: Walker, state: Walk, chance: Chance, proposal: Proposal) -> Walk:
    """Returns the kept prefix of a proposal, which the caller runs to its end; empty if the state has no
    weight."""
    if not state.alive:
        return walker.start(chance)
    return state.cut(chance.choose(np.cumsum(np.exp(positions(state, proposal)))), chance, walker.target)


def positions(state: Walk, proposal: Proposal) -> np.ndarray:
    """Returns log s_x(i) for each token of a text, end-of-sequence included; shape (|x|,)."""
    count = len(state.tokens)
    if proposal == "uniform":
        return np.full(count, -math.log(count))
    if proposal == "restart":
        return np.array([0.0] + [NEVER] * (count - 1))
    # The exponential of the entropy is the perplexity, at least 1.
    entropies = np.array(state.entropies)
    return entropies - logsumexp(entropies)


def log_acceptance(x: Walk, y: Walk, proposal: Proposal) -> float:
    """Returns log alpha, the log of the probability that a move from x to y is accepted; x and y are whole
    texts. The result is 0 if x has no weight."""
    if not x.alive or x.tokens == y.tokens:
        return 0.0
    forward, backward = _log_q(x, y, proposal), _log_q(y, x, proposal)
    return min(0.0, _log_target(y) + backward - _log_target(x) - forward)


def _log_target(walk: Walk) -> float:
    """Returns the log of P times the potentials: local normalisers times local draws, the end's weight
    included."""
    return sum(walk.steps) + _log_draw(walk, 0)


def _log_draw(walk: Walk, first: int) -> float:
    """Returns log Q(x[first:] | x[:first]) of local masking."""
    return sum(score - mass for score, mass in zip(walk.scores[first:], walk.masses[first:], strict=True))


def _log_q(x: Walk, y: Walk, proposal: Proposal) -> float:
    """Returns the log of the probability that a step from x proposes y."""
    shared = 0
    for a, b in zip(x.tokens, y.tokens, strict=False):
        if a != b:
            break
        shared += 1
    logs = positions(x, proposal)[: shared + 1]
    return logsumexp([float(log) + _log_draw(y, i) for i, log in enumerate(logs) if log > NEVER])
