"""Beam search for probable texts of the language. The texts follow no distribution.

Enters: a walker, a width. Leaves: `Found` texts, best first. Cost: a batch of forwards for each position;
prefixes that the trie knows need no forward.

- Plain: beam search over the tokens that the mask allows. With groups it is diverse beam search (Vijayakumar
  et al. 2018): a token costs `diversity` for each earlier group that took the same token at the same step.
- goals: clauses of phrases that a text should have or not have, with grouping, pruning and looks ahead
  (`lexical.py`: NeuroLogic, Lu et al. 2021, and its A*esque form, 2022).
- value: candidates are ranked by log-probability plus `value_weight` times a function of the text so far.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from .._checks import function, not_negative, number, truth, whole
from .chance import Seeds
from .lexical import Clause, Clauses, Look, kept_apart, rest
from .logspace import NEVER
from .outcome import Found, Purpose
from .potential import Prefix
from .walk import LOCAL, Walk, Walker


@dataclass(frozen=True, slots=True)
class Guide:
    """Ranks candidates by goals and values beside their log-probability.

    Attributes:
        goals: clauses. A clause is a phrase that the text should have, a `Without`, or a list of these
            (inflections); the text needs to meet one of a list. A text that can no longer meet a clause is
            dropped.
        words: phrases count only as whole words.
        goal_weight: the weight of the look ahead, for each missing clause. look: how far and where to look
            ahead.
        begun: nats for the beginning of a phrase at the end of the text, in proportion to the part that is
            there.
        tolerance: a candidate may keep this many clauses fewer than the best candidate; None: any number.
        value: a function of the text so far; larger values are better. value_weight: the weight of the value.
        seed: the seed of drawn continuations.
    """

    goals: Sequence[Clause] = ()
    words: bool = False
    goal_weight: float = 1.0
    look: Look = field(default_factory=Look)
    begun: float = 1.0
    tolerance: int | None = None
    value: Callable[[str], float] | None = None
    value_weight: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        Clauses(self.goals, self.words)  # The constructor checks the goals.
        truth("words", self.words)
        for name in ("goal_weight", "begun", "value_weight"):
            number(name, getattr(self, name), "a finite number", math.isfinite)
        if not isinstance(self.look, Look):
            raise TypeError(f"look is a Look, not {self.look!r:.60}")
        if self.tolerance is not None:
            whole("tolerance", self.tolerance, 0)
        if self.value is not None:
            function("value", self.value, "the text so far")
        whole("seed", self.seed, 0)


@dataclass(slots=True)
class _Beam:
    walk: Walk
    score: float  # the rank among live beams
    extra: float = 0.0  # the part of the score that goals and values add
    kept: frozenset[int] = frozenset()  # the clauses that the text keeps


def beam_search(
    walker: Walker,
    width: int,
    *,
    groups: int = 1,
    diversity: float = 0.5,
    length_power: float = 0.0,
    guide: Guide | None = None,
) -> list[Found]:
    """Returns up to `width` texts, most probable first.

    Args:
        groups: the number of groups of diverse beam search; it divides `width`.
        diversity: the penalty in nats.
        length_power: scores are log-probability / length ** length_power; 0 ranks by probability.
        guide: goals and values. Texts that meet more clauses come first.
    """
    whole("width", width, 1)
    whole("groups", groups, 1)
    if width % groups:
        raise ValueError(f"groups divides width, and {groups} does not divide {width}")
    not_negative("diversity", diversity)
    number("length_power", length_power, "a finite number", math.isfinite)
    if guide is not None and not isinstance(guide, Guide):
        raise TypeError(f"guide is a Guide, not {guide!r:.60}")
    start = walker.start(Seeds(0).stream(Purpose.SEARCH, 0), LOCAL)
    live = [[_Beam(start.fork(start.chance), 0.0)] for _ in range(groups)]
    done: list[list[Found]] = [[] for _ in range(groups)]
    size = width // groups
    clauses = Clauses(guide.goals, guide.words) if guide is not None and guide.goals else None
    while any(live):
        walker.fetch([beam.walk for group in live for beam in group])
        taken: Counter[int] = Counter()
        for g, group in enumerate(live):
            kept = _extend(walker, group, size, taken, diversity if groups > 1 else 0.0, guide, clauses)
            live[g] = [beam for beam in kept if not beam.walk.ended]
            for beam in kept:
                if beam.walk.ended and beam.walk.alive:
                    done[g].append(_found(beam, length_power, clauses))
            done[g] = sorted(done[g], key=_worth)[:size]
            if groups > 1:
                taken.update(beam.walk.tokens[-1] for beam in kept)
            # Probabilities only fall, so with plain scores a full list of texts may be final.
            best = max((beam.walk.logp for beam in live[g]), default=NEVER)
            plain = length_power == 0 and guide is None
            if plain and len(done[g]) == size and best <= done[g][-1].score:
                live[g] = []
    return sorted((f for group in done for f in group), key=_worth)


def _worth(found: Found) -> tuple[int, float]:
    return -sum(found.met), -found.score


def _extend(
    walker: Walker,
    group: list[_Beam],
    size: int,
    taken: Counter[int],
    penalty: float,
    guide: Guide | None,
    clauses: Clauses | None,
) -> list[_Beam]:
    """Returns the best `size` one-token extensions of a group that the condition allows."""
    pool: dict[tuple[int, int], float] = {}  # (beam, slot) -> its rank
    # A guide may prefer tokens that are not among the most probable, so it gets four times as many.
    wanted = size if guide is None else 4 * size
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
        count = min(len(ranks), wanted)
        for slot in np.argpartition(-ranks, count - 1)[:count]:
            pool[at, int(slot)] = float(ranks[slot])
        for slot in _towards(walker, beam, clauses):
            pool.setdefault((at, slot), float(ranks[slot]))
    beams: list[_Beam] = []
    for (at, slot), rank in sorted(pool.items(), key=lambda item: (-item[1], item[0])):
        if len(beams) == wanted and clauses is None:
            break
        walk = group[at].walk.fork(group[at].walk.chance)
        walker.follow(walk, slot)
        if walk.alive:
            beams.append(_Beam(walk, rank))
    if guide is None:
        return beams[:size]
    return _guided(walker, beams, size, guide, clauses)


def _towards(walker: Walker, beam: _Beam, clauses: Clauses | None) -> list[int]:
    """Returns the slots of the tokens that begin or continue a missing phrase."""
    found: list[int] = []
    if clauses is not None:
        for phrases in clauses.missing(beam.kept):
            for phrase in phrases:
                left = rest(phrase, beam.walk.data)
                spelled = walker.target.vocabulary.encode(left) if left else []
                slot = beam.walk.node.row.slot(spelled[0]) if spelled else None
                if slot is not None:
                    found.append(slot)
    return found


def _guided(
    walker: Walker, beams: list[_Beam], size: int, guide: Guide, clauses: Clauses | None
) -> list[_Beam]:
    """Returns the candidates that the guide keeps."""
    if clauses is not None:
        states = [clauses.state(beam.walk.data, beam.walk.ended) for beam in beams]
        alive = []
        for beam, state in zip(beams, states, strict=True):
            beam.kept = state.kept
            beam.extra += guide.begun * state.progress
            if not state.lost or beam.walk.ended:
                alive.append(beam)
        most = max((len(beam.kept) for beam in alive), default=0)
        if guide.tolerance is not None:
            alive = [beam for beam in alive if len(beam.kept) >= most - guide.tolerance]
        beams = alive
        missing = [clauses.missing(beam.kept) for beam in beams]
        looked = guide.look.values(walker, [beam.walk for beam in beams], missing, Seeds(guide.seed))
        for beam, value in zip(beams, looked, strict=True):
            beam.extra += guide.goal_weight * value
    for beam in beams:
        if guide.value is not None:
            beam.extra += guide.value_weight * _valued(guide.value, beam.walk.prefix().text)
        beam.score += beam.extra
    beams.sort(key=lambda beam: -beam.score)
    if clauses is None:
        return beams[:size]
    # An ended text that misses goals must not displace a live text.
    live = [beam for beam in beams if not beam.walk.ended]
    return [beam for beam in beams if beam.walk.ended] + kept_apart(live, size, lambda beam: beam.kept)


def _valued(value: Callable[[str], float], text: str) -> float:
    found = value(text)
    number(f"the value of {text[-60:]!r}", found, "a number below infinity", lambda x: x < math.inf)
    return float(found)


def _found(beam: _Beam, length_power: float, clauses: Clauses | None) -> Found:
    walk = beam.walk
    score = walk.logp / len(walk.tokens) ** length_power + beam.extra
    met = () if clauses is None else clauses.met(walk.data)
    return Found(Prefix((), walk.data).text, list(walk.tokens), walk.logp, score, met)
