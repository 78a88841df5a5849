"""Search for probable texts of the language. These follow no distribution and are no samplers.

Enters: a walker, a width. Leaves: `Found` texts, best first. Cost: a batch of forwards a position; prefixes
that the trie knows need none.

- beam search, over what the mask allows; with groups, diverse beam search (Vijayakumar et al. 2018): a
  token costs `diversity` for each earlier group that took it at the same step.
- goals: NeuroLogic A*esque (Lu et al. 2022): candidates are ranked by their log-probability plus
  `goal_weight` times the best log-probability, over a greedy continuation, of each phrase still lacking.
- value: candidates are ranked by log-probability plus `value_weight` times a function of the text so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from .chance import Seeds
from .logspace import NEVER
from .outcome import Found, Purpose
from .potential import Prefix
from .walk import LOCAL, Walk, Walker

__all__ = ["Guide", "beam_search"]


@dataclass(frozen=True, slots=True)
class Guide:
    """What ranks candidates beside their log-probability.

    Attributes:
        goals: phrases that the text should contain. goal_weight: their weight. depth: tokens of the greedy
            continuation that is searched for them. floor: log-probability of a phrase that fits nowhere.
        value: a function of the text so far; larger is better. value_weight: its weight.
    """

    goals: Sequence[str] = ()
    goal_weight: float = 1.0
    depth: int = 4
    floor: float = -20.0
    value: Callable[[str], float] | None = None
    value_weight: float = 1.0


@dataclass(slots=True)
class _Beam:
    walk: Walk
    score: float  # what it is ranked by among live beams
    extra: float = 0.0  # what the guide added
    choices: list[tuple[float, int]] = field(default_factory=list)


def beam_search(
    walker: Walker,
    width: int,
    *,
    groups: int = 1,
    diversity: float = 0.5,
    length_power: float = 0.0,
    guide: Guide | None = None,
) -> list[Found]:
    """Up to `width` texts, most probable first.

    Args:
        groups: of diverse beam search; divides `width`.
        diversity: the penalty in nats.
        length_power: scores are log-probability / length ** length_power; 0 ranks by probability.
        guide: goals and values.
    """
    if width < 1 or groups < 1 or width % groups:
        raise ValueError(f"width and groups are positive, and groups divides width: {width}, {groups}")
    start = walker.start(Seeds(0).stream(Purpose.SEARCH, 0), LOCAL)
    live = [[_Beam(start.fork(start.chance), 0.0)] for _ in range(groups)]
    done: list[list[Found]] = [[] for _ in range(groups)]
    size = width // groups
    while any(live):
        walker.tidy([beam.walk for group in live for beam in group])
        walker.expand([beam.walk for group in live for beam in group])
        taken: Counter[int] = Counter()
        for g, group in enumerate(live):
            kept = _extend(walker, group, size, taken, diversity if groups > 1 else 0.0, guide)
            live[g] = [beam for beam in kept if not beam.walk.ended]
            for beam in kept:
                if beam.walk.ended and beam.walk.alive:
                    done[g].append(_found(walker, beam, length_power))
            done[g] = sorted(done[g], key=lambda f: -f.score)[:size]
            if groups > 1:
                taken.update(beam.walk.tokens[-1] for beam in kept)
            # Probabilities only fall, so with plain scores a full list can be final.
            best = max((beam.walk.logp for beam in live[g]), default=NEVER)
            plain = length_power == 0 and guide is None
            if plain and len(done[g]) == size and best <= done[g][-1].score:
                live[g] = []
    return sorted((f for group in done for f in group), key=lambda f: -f.score)


def _extend(
    walker: Walker, group: list[_Beam], size: int, taken: Counter[int], penalty: float, guide: Guide | None
) -> list[_Beam]:
    """The best `size` one-token extensions of a group that the condition allows."""
    pool: list[tuple[float, int, int]] = []  # ranked by, beam, slot
    for at, beam in enumerate(group):
        row = beam.walk.node.row
        if not len(row):
            continue
        ranks = row.logps()
        ranks += beam.walk.logp
        for token, count in taken.items():
            at_token = row.slot(token)
            if at_token is not None:
                ranks[at_token] -= penalty * count
        # A guide may prefer what is not among the most probable: it sees four times as many.
        count = min(len(ranks), size if guide is None else 4 * size)
        for slot in np.argpartition(-ranks, count - 1)[:count]:
            pool.append((float(ranks[slot]), at, int(slot)))
    pool.sort(key=lambda item: (-item[0], item[1], item[2]))
    beams: list[_Beam] = []
    wanted = size if guide is None else 4 * size
    for rank, at, slot in pool:
        if len(beams) == wanted:
            break
        walk = group[at].walk.fork(group[at].walk.chance)
        walker.take(walk, slot, walk.node.row.log_mass, False)
        walker.judge(walk, LOCAL)
        if walk.alive:
            beams.append(_Beam(walk, rank))
    if guide is not None:
        _guide(walker, beams, guide)
        beams.sort(key=lambda beam: -beam.score)
    return beams[:size]


def _guide(walker: Walker, beams: list[_Beam], guide: Guide) -> None:
    for beam in beams:
        if guide.value is not None:
            beam.extra += guide.value_weight * float(guide.value(beam.walk.prefix().text))
    if guide.goals:
        for beam, value in zip(beams, _goals(walker, beams, guide), strict=True):
            beam.extra += guide.goal_weight * value
    for beam in beams:
        beam.score += beam.extra


def _goals(walker: Walker, beams: list[_Beam], guide: Guide) -> list[float]:
    """For each beam, the summed best log-probabilities of its missing phrases in a greedy continuation."""
    ahead = [beam.walk.fork(beam.walk.chance) for beam in beams]
    first = [len(walk.tokens) for walk in ahead]
    for _ in range(guide.depth):
        going = [walk for walk in ahead if not walk.ended]
        walker.expand(going)
        for walk in going:
            row = walk.node.row
            if not len(row):
                walk.kill("dead end")
                continue
            walker.take(walk, int(np.argmax(row.raw)), row.log_mass, False)
    values = [0.0] * len(beams)
    for goal in guide.goals:
        spelled = walker.target.vocabulary.encode(goal)
        for i, (beam, walk, begin) in enumerate(zip(beams, ahead, first, strict=True)):
            if goal.encode() in beam.walk.data:
                continue
            spots = range(begin, len(walk.path)) if not beam.walk.ended else ()
            best = max((_spelled(walker, walk, at, spelled) for at in spots), default=NEVER)
            values[i] += max(guide.floor, best)
    return values


def _spelled(walker: Walker, walk: Walk, at: int, tokens: Sequence[int]) -> float:
    """log-probability of tokens after the first `at` tokens of a walk, where the mask allows them."""
    probe = walk.cut(at, walk.chance, walker.target)
    total = 0.0
    for token in tokens:
        walker.expand([probe])
        row = probe.node.row
        slot = row.slot(token)
        if slot is None:
            return NEVER
        total += row.logp(slot)
        walker.take(probe, slot, row.log_mass, False)
    return total


def _found(walker: Walker, beam: _Beam, length_power: float) -> Found:
    walk = beam.walk
    score = walk.logp / len(walk.tokens) ** length_power + beam.extra
    return Found(_text(walk), list(walk.tokens), walk.logp, score)


def _text(walk: Walk) -> str:
    return Prefix((), walk.data).text
