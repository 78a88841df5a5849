"""A suffix automaton over prompt and answer: copies what followed the longest suffix seen before.

Enters: tokens one at a time. Leaves: a cursor at the state of the longest suffix of the text that occurs
earlier in it. Cost: amortised O(1) dictionary operations a token; at most 2 n states and 3 n transitions.

The automaton is that of Blumer et al. (1985), built online; drafting from it is SAM-Decoding (Hu et al.
2024). Prompt lookup and aggressive decoding are special cases: one fixed suffix length, one fixed source.
A text is matched *before* its own last token is inserted, or it would always match itself. Inserting may
split the state at which the match stands, which then is too long for the match; `_fit` repairs that.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base import Cursor, Here, Quiet, Start, Step

_CHOICES = 3


class SuffixAutomaton:
    """All substrings of a growing text. State 0 is the empty one.

    latest[v]: where an occurrence of v's substrings ends, the last one that insertion passed through.
    """

    def __init__(self) -> None:
        self.next: list[dict[int, int]] = [{}]
        self.link: list[int] = [-1]
        self.length: list[int] = [0]
        self.latest: list[int] = [-1]
        self.text: list[int] = []
        self._last = 0

    def extend(self, token: int) -> None:
        """Append one token."""
        nexts, link, length, latest = self.next, self.link, self.length, self.latest
        position = len(self.text)
        self.text.append(token)
        new = len(nexts)
        nexts.append({})
        length.append(length[self._last] + 1)
        link.append(0)
        latest.append(position)
        at = self._last
        while at >= 0 and token not in nexts[at]:
            nexts[at][token] = new
            at = link[at]
        if at >= 0:
            target = nexts[at][token]
            if length[at] + 1 == length[target]:
                link[new] = target
            else:
                clone = len(nexts)
                nexts.append(dict(nexts[target]))
                length.append(length[at] + 1)
                link.append(link[target])
                latest.append(latest[target])
                while at >= 0 and nexts[at].get(token) == target:
                    nexts[at][token] = clone
                    at = link[at]
                link[target] = link[new] = clone
        self._last = new


class SuffixMatch:
    """The longest suffix of what was read that occurs in an automaton: a state and a length."""

    __slots__ = ("automaton", "length", "state")

    def __init__(self, automaton: SuffixAutomaton, state: int = 0, length: int = 0) -> None:
        self.automaton: SuffixAutomaton = automaton
        self.state: int = state
        self.length: int = length

    def read(self, token: int) -> None:
        """One token more; the match shrinks until it can be continued."""
        sam = self.automaton
        state, length = self.state, self.length
        while state and token not in sam.next[state]:
            state = sam.link[state]
            length = sam.length[state]
        if token in sam.next[state]:
            self.state = sam.next[state][token]
            self.length = length + 1
        else:
            self.state = 0
            self.length = 0

    def fit(self) -> None:
        """Climb to the state that holds a match of this length, after states were split."""
        sam = self.automaton
        while self.state and sam.length[sam.link[self.state]] >= self.length:
            self.state = sam.link[self.state]


class SuffixAutomatonDrafter:
    """Copies from the prompt and from the answer itself.

    Args:
        least: tokens that must match before anything is copied.
    """

    has_distribution = False
    name = "suffix automaton"

    def __init__(self, least: int = 1) -> None:
        if least < 1:
            raise ValueError(f"least must be at least 1, not {least}")
        self.least = least

    def open(self, start: Start) -> _Session:
        return _Session(start.prompt, self.least)


class _Session(Quiet):
    def __init__(self, prompt: Sequence[int], least: int) -> None:
        self._automaton = SuffixAutomaton()
        self._match = SuffixMatch(self._automaton)
        self._least = least
        self._read(prompt)

    def _read(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self._match.read(token)
            self._automaton.extend(token)
            self._match.fit()

    def accept(self, step: Step) -> None:
        self._read(step.tokens)

    def cursor(self) -> Cursor | None:
        if self._match.length < self._least:
            return None
        return _Cursor(self._automaton, self._match.state, self._match.length, self._least)


class _Cursor:
    __slots__ = ("_automaton", "_least", "_length", "_state")

    def __init__(self, automaton: SuffixAutomaton, state: int, length: int, least: int) -> None:
        self._automaton = automaton
        self._state = state
        self._length = length
        self._least = least

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        sam = self._automaton
        follows = sam.next[self._state]
        if not follows:
            return ()
        sure = self._length / (self._length + 1.0)
        if len(follows) == 1:
            return [(next(iter(follows)), sure)]
        # Several continuations: that of the occurrence passed last, then the others, newest first.
        end = sam.latest[self._state] + 1
        first = sam.text[end] if end < len(sam.text) else -1
        others = [t for t in list(follows)[: -_CHOICES - 1 : -1] if t != first]
        found = [(first, sure * 0.5)] if first in follows else []
        return found + [(t, sure * 0.5 / (i + 2)) for i, t in enumerate(others)]

    def step(self, token: int) -> _Cursor | None:
        match = SuffixMatch(self._automaton, self._state, self._length)
        match.read(token)
        if match.length < self._least:
            return None
        return _Cursor(self._automaton, match.state, match.length, self._least)
