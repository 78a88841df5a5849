"""Counts the texts of a grammar, and draws texts uniformly.

Enters: a grammar and a bound in bytes. Leaves: an exact count, or texts. Cost: a step of the parser for each
state and class of bytes that texts within the bound meet, and a sum over these for each byte of the bound.

A parse state and a byte give one parse state (`Matcher.successors` of the core), so a text is exactly one
path. Paths are counted by dynamic programming over the states that a path of so many bytes can reach. For
`[ab]{1,2}c?` within 2 bytes:

    bytes   states (paths that lead there)      texts that end there
    0       start (1)                           0
    1       one letter (2)                      2   a b
    2       two letters (4), after c (2)        6   aa ab ba bb ac bc

Invariants. States with one number have the same continuations, so no text is missed nor counted twice. There
are finitely many states within a bound; past `_STATES` of them the answer is an error and not an estimate.
"""

from __future__ import annotations

import random
from typing import Any

from . import _core
from ._checks import whole
from .errors import BudgetExceeded
from .grammar import CompiledGrammar
from .operands import operand

_STATES = 100_000
_STEPS = 6_000_000  # the most steps of `count`. A sum is one step, and one more for every 64 words.
_CELLS = 2_000_000  # the most cells in the tables of `RankedTexts`
# `RankedTexts` stops after _ENDS + _WIDE * (bytes of a text)^2 bytes of shortest completions. Schemas with
# many keys in any order have thousands of states, and a completion of each.
_ENDS = 300_000
_WIDE = 8


class States:
    """The parse states of a grammar by number, made when they are asked for. State 0 is the start.

    Raises:
        BudgetExceeded: more than `most` states. GrammarError: the grammar limits tokens.
    """

    def __init__(self, grammar: CompiledGrammar, most: int = _STATES) -> None:
        self.most: int = most
        self.matchers: list[_core.Matcher] = [grammar.matcher()._core]
        self._numbers: dict[int, int] = {self.matchers[0].state: 0}
        self._next: dict[int, list[tuple[bytes, int]]] = {}
        self._least: dict[int, int] = {}
        self.ends: int = 0  # the bytes of all shortest ends, which is the cost of `least` so far

    def accepts(self, state: int) -> bool:
        """Returns whether a text may end here."""
        return self.matchers[state].is_accepting()

    def least(self, state: int) -> int:
        """Returns the bytes of a shortest completion of a state; 0 if a limit of work leaves the number
        unknown."""
        found = self._least.get(state)
        if found is None:
            try:
                found = len(self.matchers[state].shortest_completion())
            except BudgetExceeded:
                found = 0
            self._least[state] = found
            self.ends += found
        return found

    def next(self, state: int) -> list[tuple[bytes, int]]:
        """Returns the states one byte behind a state, each with the bytes that lead to it."""
        if state not in self._next:
            matcher, out = self.matchers[state], []
            for letters, number in matcher.successors():
                if number not in self._numbers:
                    if len(self.matchers) >= self.most:
                        raise BudgetExceeded(
                            f"the grammar has more than {self.most} states within the bound: take a smaller "
                            "max_bytes, or close its objects (extra_keys='forbid')"
                        )
                    there = matcher.fork()
                    there.accept_bytes(letters[:1])
                    self._numbers[number] = len(self.matchers)
                    self.matchers.append(there)
                out.append((letters, self._numbers[number]))
            self._next[state] = out
        return self._next[state]


def count(grammar: Any, *, max_bytes: int | None = None, **options: Any) -> int:
    """Returns the number of texts of a grammar that have at most `max_bytes` bytes.

    Args:
        grammar: a `CompiledGrammar`, or what `contains` takes. A schema is written without blanks, with plain
            numbers and strings, as `sg.generate` writes it.
        max_bytes: bytes of UTF-8; None counts all texts of a finite grammar.
        options: `draft`, `registry` and `formats` of a schema.

    Source: the transfer-matrix method (Stanley, Enumerative Combinatorics 1, 4.7), over parse states.

    Raises:
        ValueError: max_bytes is negative, or None for a grammar with infinitely many texts.
        BudgetExceeded: texts within the bound meet more than 100,000 states, or the sums take more than
        6,000,000 steps (some seconds).
        GrammarError: the grammar limits tokens. UnsatisfiableSchema: a schema has no value.
    """
    if max_bytes is not None:
        whole("max_bytes", max_bytes, 0)
    states = States(operand(grammar, **options).grammar())
    level, total, length, left = {0: 1}, 0, 0, _STEPS
    while level:
        total += sum(paths for state, paths in level.items() if states.accepts(state))
        if length == max_bytes:
            break
        if max_bytes is None and length > len(states.matchers):  # Some path visits a state twice: a loop.
            raise ValueError("the grammar has infinitely many texts: give max_bytes")
        behind: dict[int, int] = {}
        for state, paths in level.items():
            further = states.next(state)
            left -= (len(further) + 2) * (1 + paths.bit_length() // 4096)
            if left < 0:
                raise BudgetExceeded(
                    f"counting takes too long and stopped after {length} bytes: take a smaller max_bytes"
                )
            for letters, there in further:
                behind[there] = behind.get(there, 0) + paths * len(letters)
        level, length = behind, length + 1
    return total


class RankedTexts:
    """A table from which texts of at most `max_bytes` bytes of a grammar are drawn.

    `states` are the states that an earlier table of the grammar has found. A smaller bound may need no
    others, so with such states only a fifth of the usual number may be new.

    Raises:
        BudgetExceeded: texts within the bound meet too many states.
    """

    def __init__(self, grammar: CompiledGrammar, max_bytes: int, states: States | None = None) -> None:
        self.states: States = states or States(grammar)
        share = 5 if len(self.states.matchers) > 1 else 1
        self.states.most, known = len(self.states.matchers) + _STATES // share, self.states.ends
        levels: list[set[int]] = [{0}]
        cells = 1
        while len(levels) <= max_bytes and levels[-1]:
            left = max_bytes - len(levels)
            behind = {there for state in levels[-1] for _, there in self.states.next(state)}
            # No text ends within the bound from such a state. So the states behind it are not made.
            kept: set[int] = set()
            for there in behind:
                if self.states.least(there) <= left:
                    kept.add(there)
                ends = _ENDS + _WIDE * max_bytes * len(levels)
                if cells + len(kept) > _CELLS or self.states.ends - known > ends:
                    raise BudgetExceeded("too many states within the bound: take a smaller max_bytes")
            levels.append(kept)
            cells += len(kept)
        # ways[k][s]: the number of completions of state s behind k bytes, within the bound.
        self.ways: list[dict[int, int]] = [{} for _ in levels]
        for k in range(len(levels) - 1, -1, -1):
            for state in levels[k]:
                ways = int(self.states.accepts(state))
                if k + 1 < len(levels):
                    further = self.ways[k + 1]
                    ways += sum(len(b) * further.get(there, 0) for b, there in self.states.next(state))
                self.ways[k][state] = ways

    @property
    def total(self) -> int:
        """The number of texts."""
        return self.ways[0][0]

    def draw(self, chance: random.Random) -> bytes:
        """Draws a text. Every text has the same probability."""
        return self.at(chance.randrange(self.total))

    def at(self, rank: int) -> bytes:
        """Returns the text of a rank from 0. Texts with a common beginning are neighbours, shorter ones
        first."""
        state, text = 0, bytearray()
        for k in range(len(self.ways)):
            if self.states.accepts(state):
                if rank == 0:
                    break
                rank -= 1
            for letters, there in self.states.next(state):
                ways = self.ways[k + 1].get(there, 0)
                if rank < ways * len(letters):
                    text.append(letters[rank // ways])
                    state, rank = there, rank % ways
                    break
                rank -= ways * len(letters)
        return bytes(text)
