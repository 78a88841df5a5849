"""Nodes for whole tokens in a grammar: exactly this token, or any token but some.

In: ids of a vocabulary. Out: nodes of a ``_core.GrammarBuilder``. Cost: linear in the texts of the named
tokens. The texts of the vocabulary are read once for each grammar that names an ordinary token.

A special token is read as itself. An ordinary token is read as its text, and one token must cover exactly
that text (``GrammarBuilder.edge``): ``"ab"`` is neither the tokens ``a``, ``b`` nor a part of ``abc``. Tokens
of the same text are one.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _core
from . import source

if TYPE_CHECKING:
    from ..vocabulary import Vocabulary

_FEW = 1_000  # the most ordinary tokens of a list
_NO_TEXT = 0xFE  # no token has this byte or the next one


class WholeTokens:
    """The whole tokens of one grammar. Errors use `name` for the list whose limit is exceeded."""

    def __init__(self, b: _core.GrammarBuilder, vocabulary: Vocabulary) -> None:
        self.b = b
        self.vocabulary = vocabulary

    @functools.cached_property
    def special(self) -> frozenset[int]:
        return frozenset([*self.vocabulary.special_token_ids, *self.vocabulary.eos_token_ids])

    @functools.cached_property
    def ordinary(self) -> dict[bytes, int]:
        """The tokens that are text, by their text."""
        texts = enumerate(self.vocabulary.tokens)
        return {t: i for i, t in texts if t and max(t) < _NO_TEXT and i not in self.special}

    def is_text(self, token: int) -> bool:
        text = self.vocabulary.token_bytes(token)
        return bool(text) and max(text) < _NO_TEXT and token not in self.special

    def one_of(self, ids: Sequence[int], name: str) -> int:
        """Returns a node for exactly one of these tokens."""
        texts = [self.b.literal(self.vocabulary.token_bytes(i)) for i in ids if self.is_text(i)]
        others = [i for i in ids if not self.is_text(i)]
        parts = [self._alone(self.b.choice(texts), name)] if texts else []
        if others or not parts:
            parts.append(self.b.tokens(others))
        return parts[0] if len(parts) == 1 else self.b.choice(parts)

    def but(self, ids: Sequence[int], name: str) -> int:
        """Returns a node for any other token that does not end the text."""
        return self._or_special(self._alone(self._other_text(self._texts(ids)), name), ids)

    def any_but(self, ids: Sequence[int], name: str) -> int:
        """Returns a node for any number of tokens of `but`. If only special tokens are named, this is any
        text with other special tokens in it."""
        return self.b.repeat(self.but(ids, name) if self._texts(ids) else self.char_but(ids), 0, -1)

    def char_but(self, ids: Sequence[int]) -> int:
        """Returns a node for one character, or for any other special token that does not end the text."""
        return self._or_special(source.any_char(self.b), ids)

    def dispatch(
        self, free: int, pairs: Sequence[tuple[int, int]], loop: bool, name: str, at_least_one: bool = False
    ) -> int:
        """Returns a node for text of `free`. Behind a token that occurs in the text the token's node follows,
        then `free` again.

        Args:
            loop: False ends the text after the first token's node.
            at_least_one: True begins with one of the tokens.
        """
        b = self.b
        calls = b.choice([b.sequence([self.one_of([token], name), node]) for token, node in pairs])
        up_to_call = b.sequence([free, calls])
        if not loop:
            return calls if at_least_one else b.choice([up_to_call, free])
        tail = b.sequence([b.repeat(up_to_call, 0, -1), free])
        return b.sequence([calls, tail]) if at_least_one else tail

    def _texts(self, ids: Sequence[int]) -> list[bytes]:
        found = [self.vocabulary.token_bytes(i) for i in ids if i not in self.special]
        return [text for text in found if text]

    def _or_special(self, node: int, ids: Sequence[int]) -> int:
        others = source.other_tokens(ids, self.vocabulary)
        return self.b.choice([node, self.b.tokens(others)]) if others else node

    def _alone(self, text: int, name: str) -> int:
        b = self.b
        return b.sequence([b.edge(), b.limit(text, 1, name), b.edge()])

    def _other_text(self, texts: list[bytes]) -> int:
        """Returns a node for the text of any token but these, and for further texts that no token has.

        Of the texts of other tokens at least one byte is a token, because the search for a shortest end needs
        a token.
        """
        b = self.b
        if len(self.ordinary) <= _FEW:
            return b.choice([b.literal(text) for text in self.ordinary if text not in texts] or [b.never()])
        every = bytes(range(_NO_TEXT))
        any_byte = b.byte(every)
        rest = b.repeat(any_byte, 0, -1)
        following: dict[bytes, set[int]] = {b"": set()}  # beginning of a text -> the bytes that go on
        for text in texts:
            following.setdefault(text, set())
            for k, byte in enumerate(text):
                following.setdefault(text[:k], set()).add(byte)
        never = set(texts)
        known: dict[bytes, int] = {}
        for begin in sorted(following, key=len, reverse=True):
            ways = [] if begin in never or len(begin) < 2 else [b.literal(b"")]
            next_bytes = bytes(sorted(following[begin]))
            ways += [b.sequence([b.byte(bytes([i])), known[begin + bytes([i])]]) for i in next_bytes]
            others = every.translate(None, next_bytes)
            more = rest if begin else b.sequence([any_byte, rest])
            known[begin] = b.choice([*ways, *([b.sequence([b.byte(others), more])] if others else [])])
        single = bytes(t[0] for t in self.ordinary if len(t) == 1 and t not in never)
        return b.choice([known[b""], *([b.byte(single)] if single else [])])
