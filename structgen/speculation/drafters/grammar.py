"""The grammar as a drafter: text that must come next, in its canonical tokens.

Enters: the matcher at a node. Leaves: a token that must come (probability 1), or the tokens of the bytes that
must come. Cost: a walk over the forced bytes, whose result is kept for the nodes of the chain.

Forced bytes do not force the tokens that spell them: before `name` the model may draw `n`, `na` or `name`.
Writing the longest token without a draw would change the law of the text. So these tokens are *drafts*, which
the target verifies. Most of them are right, because the model was trained on canonical tokens. If a mask has
a single token, there is nothing to draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...errors import VocabularyError
from ...logits import allocate_bitmask
from ..base import Cursor, Here, Quiet, Start, Step

if TYPE_CHECKING:
    from ...matcher import Matcher

_CANONICAL = 0.98
# The probability of a token at the end of forced text. The tokenizer might have made a longer token there.
_OPEN = 0.85


class Forced:
    """Drafts what the grammar forces, at every node of the tree."""

    has_distribution = False
    name = "grammar"

    def open(self, start: Start) -> _Session:
        return _Session(start)


class _Session(Quiet):
    def __init__(self, start: Start) -> None:
        self.start = start
        self._mask = allocate_bitmask(1, start.vocabulary.vocab_size)

    def cursor(self) -> Cursor | None:
        return None if self.start.grammar is None else _Cursor(self, ())

    def accept(self, step: Step) -> None:
        pass

    def alone(self, matcher: Matcher) -> bool:
        """Returns whether a single token is allowed. The target then surely draws this token."""
        matcher.fill_bitmask(self._mask)
        words = self._mask[0].view(np.uint32)
        words = words[words != 0]
        return len(words) == 1 and int(words[0]) & (int(words[0]) - 1) == 0


class _Cursor:
    """The cursor at one node. `known`: the tokens of forced text that begins here, if a node above found
    them."""

    __slots__ = ("_known", "_session")

    def __init__(self, session: _Session, known: Sequence[int]) -> None:
        self._session = session
        self._known = known

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        session, matcher = self._session, here.matcher
        if matcher is None or matcher.is_terminated():
            return ()
        if not self._known:
            self._known = matcher.forced_tokens()
        if self._known:
            # Inside a chain of forced tokens, shorter tokens are allowed, too; only the last token may be the
            # sole one.
            sure = len(self._known) == 1 and session.alone(matcher)
            return ((self._known[0], 1.0 if sure else _CANONICAL),)
        text = matcher.forced_bytes()
        if text:
            return tuple((token, _OPEN) for token in self._spelled(matcher, text))
        ends = session.start.vocabulary.eos_token_ids
        if len(ends) == 1 and matcher.is_accepting() and not matcher.live_bytes():
            return ((ends[0], 1.0),)
        return ()

    def step(self, token: int) -> _Cursor | None:
        known = self._known
        return _Cursor(self._session, known[1:] if known and known[0] == token else ())

    def _spelled(self, matcher: Matcher, text: bytes) -> list[int]:
        """Returns the first token of forced text whose end is open, from the encoding of that text alone."""
        try:
            return self._session.start.vocabulary.encode(text)[:1]
        except VocabularyError:  # Some byte has no token, so the grammar's text cannot be written.
            return []
