"""The grammar as a drafter: text that must come next, in its canonical tokens.

Enters: the matcher at a node. Leaves: a token that must come (probability 1), or the tokens of the bytes
that must come. Cost: a walk over the forced bytes; remembered along the chain.

Bytes that are forced do not force the tokens that spell them: before `name` the model may draw `n`, `na` or
`name`. Injecting the longest would change the distribution of the text, so they are *drafts* like any other,
verified by the target, and usually right, because a model was trained on canonical tokens. Only where the
mask has a single token is there nothing to draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import VocabularyError
from ..base import Cursor, Here, Quiet, Start, Step

if TYPE_CHECKING:
    from ...grammar import Matcher

__all__ = ["Forced"]

_CANONICAL = 0.98
# Where the forced text ends in a token that the tokenizer might have continued.
_OPEN = 0.85


class Forced:
    """Drafts what the grammar forces, at every node of the tree."""

    name = "grammar"

    def open(self, start: Start) -> _Session:
        return _Session(start)


class _Session(Quiet):
    def __init__(self, start: Start) -> None:
        self._start = start

    def cursor(self) -> Cursor | None:
        return None if self._start.grammar is None else _Cursor(self._start, ())

    def accept(self, step: Step) -> None:
        pass


class _Cursor:
    """One place. `known`: the tokens of forced text that begins here, if a node above found them."""

    __slots__ = ("_known", "_start")

    def __init__(self, start: Start, known: Sequence[int]) -> None:
        self._start = start
        self._known = known

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        if self._known:
            return ((self._known[0], _CANONICAL),)
        matcher = here.matcher
        if matcher is None or matcher.is_terminated():
            return ()
        self._known = matcher.forced_tokens()
        if self._known:
            return ((self._known[0], _CANONICAL),)
        text = matcher.forced_bytes()
        if text:
            return tuple((token, _OPEN) for token in self._spelled(matcher, text))
        ends = self._start.vocabulary.eos_token_ids
        if len(ends) == 1 and matcher.is_accepting() and not matcher.live_bytes():
            return ((ends[0], 1.0),)
        return ()

    def step(self, token: int) -> _Cursor | None:
        known = self._known
        return _Cursor(self._start, known[1:] if known and known[0] == token else ())

    def _spelled(self, matcher: Matcher, text: bytes) -> list[int]:
        """The first token of forced text whose end is open: as it stands alone."""
        try:
            return self._start.vocabulary.encode(text)[:1]
        except VocabularyError:  # no token for some byte of it: the grammar's text cannot be written
            return []
