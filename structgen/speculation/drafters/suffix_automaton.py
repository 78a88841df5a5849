"""A suffix automaton over prompt and answer: copies the tokens that followed an earlier occurrence of the
longest suffix.

Enters: tokens one at a time. Leaves: a cursor at the state of the longest suffix of the text that occurs
earlier in it. Cost: amortised O(1) dictionary operations a token; at most 2 n states and 3 n transitions.

The automaton is that of Blumer et al. (1985), built online; drafting from it is SAM-Decoding (Hu et al.
2024). Prompt lookup and aggressive decoding are special cases: one fixed suffix length, one fixed source. A
text is matched *before* its last token is inserted; otherwise it would always match itself. An insertion may
split the state of a match. The state's strings are then too long for the match, and `fit` repairs this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from ..base import Cursor, DrafterSettings, Here, Quiet, Start, Step

_CHOICES = 3


class SuffixLinks(ABC):
    """An automaton of substrings, whose state 0 is the empty string. The automaton of corpus.py never grows.

    Attributes:
        link: for each state, the state of the next shorter suffix; -1 for state 0.
        length: for each state, the number of tokens of its longest string.
    """

    link: Sequence[int]
    length: Sequence[int]

    @abstractmethod
    def after(self, state: int, token: int) -> int:
        """Returns the state after one more token; -1 if no text has such a string."""

    def read(self, state: int, length: int, token: int) -> tuple[int, int]:
        """Returns the longest suffix that occurs after one more token: its state and its length in tokens."""
        while (found := self.after(state, token)) < 0:
            if not state:
                return 0, 0
            state = self.link[state]
            length = self.length[state]
        return found, length + 1


class SuffixAutomaton(SuffixLinks):
    """All substrings of texts that grow. Most states have one transition, and only the other states have a
    dictionary.

    Attributes:
        text: the tokens that were read.
        latest: of each state where an occurrence of its strings ends, the last one that insertion passed
            through.
    """

    def __init__(self) -> None:
        self.text: array[int] = array("i")
        self.link: array[int] = array("i", [-1])
        self.length: array[int] = array("i", [0])
        self.latest: array[int] = array("i", [-1])
        self.token: array[int] = array("i", [-1])  # the token of the first transition
        self.target: array[int] = array("i", [-1])
        self.more: dict[int, dict[int, int]] = {}

    def after(self, state: int, token: int) -> int:
        if self.token[state] == token:
            return self.target[state]
        more = self.more.get(state)
        return -1 if more is None else more.get(token, -1)

    def follows(self, state: int) -> list[int]:
        """Returns the tokens of a state's transitions, the oldest first."""
        return [] if self.token[state] < 0 else [self.token[state], *self.more.get(state, ())]

    def extend(self, last: int, token: int) -> int:
        """Returns the state of the text of `last` with one more token."""
        self.text.append(token)
        found = self.after(last, token)
        if found >= 0:  # the string occurs in an earlier text
            return found if self.length[found] == self.length[last] + 1 else self._split(last, token, found)
        new = self._new(self.length[last] + 1)
        at = last
        while at >= 0 and (found := self.after(at, token)) < 0:
            self._put(at, token, new)
            at = self.link[at]
        if at >= 0:
            fits = self.length[found] == self.length[at] + 1
            self.link[new] = found if fits else self._split(at, token, found)
        return new

    def fit(self, state: int, length: int) -> int:
        """Returns the state of a match of this length, after states were split."""
        while state and self.length[self.link[state]] >= length:
            state = self.link[state]
        return state

    def _put(self, state: int, token: int, target: int) -> None:
        if self.token[state] in (-1, token):
            self.token[state], self.target[state] = token, target
        else:
            self.more.setdefault(state, {})[token] = target

    def _new(self, length: int, like: int = -1) -> int:
        state = len(self.link)
        self.length.append(length)
        self.link.append(0 if like < 0 else self.link[like])
        self.latest.append(len(self.text) - 1 if like < 0 else self.latest[like])
        self.token.append(-1 if like < 0 else self.token[like])
        self.target.append(-1 if like < 0 else self.target[like])
        if like in self.more:
            self.more[state] = dict(self.more[like])
        return state

    def _split(self, at: int, token: int, state: int) -> int:
        """Splits a state: the shorter strings get a new state, which is returned."""
        clone = self._new(self.length[at] + 1, state)
        self.link[state] = clone
        while at >= 0 and self.after(at, token) == state:
            self._put(at, token, clone)
            at = self.link[at]
        return clone


S = TypeVar("S", bound=SuffixLinks)


class SuffixCursor(ABC, Generic[S]):
    """A drafter's place: the longest suffix of the text that occurs in an automaton, of `least` tokens or
    more."""

    __slots__ = ("automaton", "least", "length", "state")

    def __init__(self, automaton: S, least: int, state: int, length: int) -> None:
        self.automaton: S = automaton
        self.least: int = least
        self.state: int = state
        self.length: int = length

    @abstractmethod
    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        """See `Cursor.children`."""

    def step(self, token: int) -> Self | None:
        state, length = self.automaton.read(self.state, self.length, token)
        return None if length < self.least else type(self)(self.automaton, self.least, state, length)


class SuffixSession(Quiet, Generic[S]):
    """A text, and the place of its end in an automaton."""

    def __init__(
        self, automaton: S, cursor: type[SuffixCursor[S]], least: int, prompt: Sequence[int]
    ) -> None:
        self._automaton: S = automaton
        self._cursor = cursor
        self._least = least
        self._state = self._length = 0
        self._read(prompt)

    def _read(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self._state, self._length = self._automaton.read(self._state, self._length, token)

    def accept(self, step: Step) -> None:
        self._read(step.tokens)

    def cursor(self) -> Cursor | None:
        if self._length < self._least:
            return None
        return self._cursor(self._automaton, self._least, self._state, self._length)


@dataclass(eq=False)
class SuffixAutomatonDrafter(DrafterSettings):
    """Copies from the prompt and from the answer itself.

    Args:
        least: tokens that must match before anything is copied.
    """

    has_distribution = False
    name = "suffix automaton"

    least: int = 1

    def open(self, start: Start) -> _Session:
        return _Session(start.prompt, self.least)


class _Session(SuffixSession[SuffixAutomaton]):
    def __init__(self, prompt: Sequence[int], least: int) -> None:
        self._last = 0
        super().__init__(SuffixAutomaton(), _Cursor, least, prompt)

    def _read(self, tokens: Sequence[int]) -> None:
        sam = self._automaton
        for token in tokens:
            state, self._length = sam.read(self._state, self._length, token)
            self._last = sam.extend(self._last, token)
            self._state = sam.fit(state, self._length)


class _Cursor(SuffixCursor[SuffixAutomaton]):
    __slots__ = ()

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        sam = self.automaton
        follows = sam.follows(self.state)
        sure = self.length / (self.length + 1.0)
        if len(follows) < 2:
            return [(token, sure) for token in follows]
        # Of several continuations, that of the last occurrence comes first, then the others, newest first.
        end = sam.latest[self.state] + 1
        first = sam.text[end] if end < len(sam.text) else -1
        others = [t for t in follows[: -_CHOICES - 1 : -1] if t != first]
        found = [(first, sure * 0.5)] if first in follows else []
        return found + [(t, sure * 0.5 / (i + 2)) for i, t in enumerate(others)]
