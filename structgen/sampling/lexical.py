"""Lexical goals for beam search: clauses about phrases that a text should have or should not have.

Enters: clauses, the bytes of a text. Leaves: the clauses that are met, those that can no longer be met, and
the part of a phrase that is written; from a look ahead, the probability of the missing phrases. Cost: a
search of the text's bytes for each phrase. A look ahead costs a forward for each unknown prefix.

NeuroLogic decoding (Lu et al. 2021): a goal is a conjunction of clauses, a clause is a disjunction of
literals, and a literal says that the text has a phrase or that the text does not have it. Inflections are
literals of one clause: ("run", "runs", "ran"). A text keeps a clause for good once it has one of its phrases,
and loses it for good once it has all phrases of a clause that only forbids. Candidates that lost a clause are
dropped, and so are candidates that keep far fewer clauses than the best candidate. All others are grouped by
the set of clauses that they keep, so that a text is compared with texts that have met as many clauses.
NeuroLogic A*esque (Lu et al. 2022) adds for each missing clause the best log-probability of one of its
phrases along a continuation: one greedy continuation, the continuations of a small beam, or drawn
continuations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .._checks import number, one_of, whole
from .chance import Seeds
from .logspace import NEVER
from .outcome import Purpose
from .walk import LOCAL, Walk, Walker


@dataclass(frozen=True, slots=True)
class Without:
    """A literal: the text does not contain this phrase."""

    phrase: str

    def __post_init__(self) -> None:
        if not isinstance(self.phrase, str):
            raise TypeError(f"Without forbids a phrase, which is a text, not {self.phrase!r:.60}")


Clause = str | Without | Sequence[str | Without]


@dataclass(frozen=True, slots=True)
class _Phrase:
    data: bytes
    found: re.Pattern[bytes]  # finds the phrase, whatever may follow
    ended: re.Pattern[bytes]  # finds the phrase in a whole text

    @staticmethod
    def of(phrase: str, words: bool) -> _Phrase:
        if not phrase:
            raise ValueError("a phrase of goals must not be empty: every text has it")
        spelled = re.escape(phrase.encode())
        if not words:
            return _Phrase(phrase.encode(), re.compile(spelled), re.compile(spelled))
        # Bytes of characters beyond ASCII count as letters: they are far more often letters than not.
        letter = rb"[\w\x80-\xff]"
        begun = b"(?<!" + letter + b")" + spelled
        more = rb"(?=[^\w\x80-\xff])"
        return _Phrase(
            phrase.encode(), re.compile(begun + more), re.compile(begun + rb"(?:" + more + rb"|\Z)")
        )


@dataclass(frozen=True, slots=True)
class State:
    """The state of one text: the clauses that it has met for good, whether it lost one, and the largest part
    of a missing phrase."""

    kept: frozenset[int]
    lost: bool
    progress: float


class Clauses:
    """A conjunction of clauses, read.

    Args:
        clauses: each is a phrase, a `Without`, or a list of these; one of a list is enough.
        words: phrases count only as whole words: "cat" is not in "concatenate".
    """

    def __init__(self, clauses: Sequence[Clause], words: bool = False) -> None:
        if isinstance(clauses, str) or not isinstance(clauses, Sequence):
            raise TypeError(f"goals are a list of clauses, not {clauses!r:.60}")
        self.have: list[list[_Phrase]] = []
        self.avoid: list[list[_Phrase]] = []
        for clause in clauses:
            literals = [clause] if isinstance(clause, (str, Without)) else clause
            if not isinstance(literals, Sequence) or not all(isinstance(x, (str, Without)) for x in literals):
                raise TypeError(
                    f"a clause of goals is a phrase, a Without, or a list of these, not {clause!r:.60}"
                )
            if not literals:
                raise ValueError("a clause of goals needs at least one phrase")
            self.have.append([_Phrase.of(x, words) for x in literals if isinstance(x, str)])
            self.avoid.append([_Phrase.of(x.phrase, words) for x in literals if isinstance(x, Without)])

    def __len__(self) -> int:
        return len(self.have)

    def state(self, data: bytes, ended: bool) -> State:
        kept, lost, progress = set(), False, 0.0
        for at, (have, avoid) in enumerate(zip(self.have, self.avoid, strict=True)):
            if any((p.ended if ended else p.found).search(data) for p in have):
                kept.add(at)
            elif avoid and not all((p.ended if ended else p.found).search(data) for p in avoid):
                if ended:
                    kept.add(at)
            elif not have or ended:
                lost = True
            else:
                progress = max(progress, *(_begun(p.data, data) / len(p.data) for p in have))
        return State(frozenset(kept), lost, progress)

    def met(self, data: bytes) -> tuple[bool, ...]:
        """Returns the clauses that a whole text meets."""
        kept = self.state(data, True).kept
        return tuple(at in kept for at in range(len(self)))

    def missing(self, kept: frozenset[int]) -> list[list[bytes]]:
        """Returns for each clause that is not met yet, the phrases that would meet it."""
        return [[p.data for p in have] for at, have in enumerate(self.have) if have and at not in kept]


def _begun(phrase: bytes, data: bytes) -> int:
    """Returns the length of the longest beginning of a phrase with which the text ends, in bytes."""
    for size in range(min(len(phrase), len(data)), 0, -1):
        if data.endswith(phrase[:size]):
            return size
    return 0


def rest(phrase: bytes, data: bytes) -> bytes:
    """Returns the bytes of a phrase that are missing at the end of a text."""
    return phrase[_begun(phrase, data) :]


@dataclass(frozen=True, slots=True)
class Look:
    """How to look ahead for missing phrases.

    Attributes:
        kind: "greedy" follows the most probable tokens, "beam" the `ways` most probable continuations of a
            beam, "sample" draws `ways` of them.
        depth: the tokens of a continuation; 0: no look ahead.
        ways: the number of continuations; 1 for "greedy".
        floor: the log-probability of a phrase that fits nowhere.
    """

    kind: Literal["greedy", "beam", "sample"] = "greedy"
    depth: int = 4
    ways: int = 4
    floor: float = -20.0

    def __post_init__(self) -> None:
        one_of("kind of looking ahead", self.kind, ("greedy", "beam", "sample"))
        whole("depth", self.depth, 0)
        whole("ways", self.ways, 1)
        number("floor", self.floor, "a log-probability, 0 at most", lambda x: -math.inf < x <= 0)

    def values(
        self,
        walker: Walker,
        walks: Sequence[Walk],
        missing: Sequence[list[list[bytes]]],
        seeds: Seeds,
    ) -> list[float]:
        """Returns for each walk the best log-probabilities of its missing clauses, summed."""
        if not self.depth:
            return [0.0] * len(walks)
        return [
            sum(self._value(walker, walk, ways, phrases) for phrases in clauses)
            for walk, clauses in zip(walks, missing, strict=True)
            for ways in [self._ways(walker, walk, seeds) if clauses and not walk.ended else []]
        ]

    def _value(self, walker: Walker, walk: Walk, ways: list[Walk], phrases: list[bytes]) -> float:
        best = (_best(walker, walk, way, phrase) for way in ways for phrase in phrases)
        return max(self.floor, max(best, default=NEVER))

    def _ways(self, walker: Walker, walk: Walk, seeds: Seeds) -> list[Walk]:
        ways = [walk.fork(walk.chance)]
        if self.kind == "sample":
            start = len(walk.tokens) * 1000
            ways = [walk.fork(seeds.stream(Purpose.LOOKAHEAD, start + i)) for i in range(self.ways)]
        for _ in range(self.depth):
            going = [way for way in ways if not way.ended]
            if not going:
                break
            walker.fetch(going)
            if self.kind == "beam":
                ways = self._beam(walker, ways)
                continue
            for way in going:
                if self.kind == "sample" or not len(way.node.row):
                    walker.step(way, LOCAL)
                else:
                    walker.follow(way, way.node.row.best(1)[0])
        return [way for way in ways if way.alive]

    def _beam(self, walker: Walker, ways: list[Walk]) -> list[Walk]:
        pool: list[tuple[float, int, int]] = [(-way.logp, at, -1) for at, way in enumerate(ways) if way.ended]
        for at, way in enumerate(ways):
            if not way.ended and len(way.node.row):
                row = way.node.row
                pool += [(-way.logp - row.logp(slot), at, slot) for slot in row.best(self.ways)]
        found = []
        for _, at, slot in sorted(pool)[: self.ways]:
            way = ways[at]
            if slot >= 0:
                way = way.fork(way.chance)
                walker.follow(way, slot)
            found.append(way)
        return found


def _best(walker: Walker, walk: Walk, way: Walk, phrase: bytes) -> float:
    """Returns the best log-probability of a phrase after some token of a continuation; 0: the continuation
    contains the phrase."""
    begin = len(walk.tokens)
    # If the text has begun the phrase, only the missing bytes count.
    tail = walk.data[max(0, len(walk.data) - len(phrase) + 1) :]
    if phrase in tail + way.data[len(walk.data) :]:
        return 0.0
    best = NEVER
    for at in range(begin, len(way.path)):
        probe = way.cut(at, way.chance, walker.target)
        best = max(best, _spelled(walker, probe, walker.target.vocabulary.encode(rest(phrase, probe.data))))
    return best


def _spelled(walker: Walker, probe: Walk, tokens: Sequence[int]) -> float:
    """Returns the log-probability of tokens after a walk, if the mask allows them. Moves the walk."""
    total = 0.0
    for token in tokens:
        walker.fetch([probe])
        row = probe.node.row
        slot = row.slot(token)
        if slot is None:
            return NEVER
        total += row.logp(slot)
        walker.take(probe, slot, row.log_mass, False)
    return total


def kept_apart(items: Sequence[Any], size: int, group: Callable[[Any], Any]) -> list[Any]:
    """Returns at most `size` of the items, which are sorted best first: the best of each group, then the
    second best of each, and so on."""
    groups: dict[Any, list[Any]] = {}
    for item in items:
        groups.setdefault(group(item), []).append(item)
    order = {id(item): at for at, item in enumerate(items)}
    found: list[Any] = []
    for rank in range(max(map(len, groups.values()), default=0)):
        row = [members[rank] for members in groups.values() if rank < len(members)]
        found += sorted(row, key=lambda item: order[id(item)])
    return found[:size]
