"""Conditions on whole texts: a pattern, phrases that must or must not occur, bounds on the length.

Enters: patterns, words, bounds. Leaves: a `Condition`, which ``&``, ``|`` and ``~`` combine and
``grammar & condition`` applies (``csrc/engine/holes.h``). Cost: nothing here; see `CompiledGrammar.__and__`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._checks import whole

if TYPE_CHECKING:
    from ._core import GrammarBuilder

_REGEX, _CONTAINS, _BYTES, _AND, _OR, _NOT = range(6)
_ENDLESS = (1 << 64) - 1
_MOST = 1 << 24  # the largest bound, in bytes

Step = tuple[int, list[bytes], int, int]  # an operation in the core's form: kind, texts, least and most bytes


@dataclass(frozen=True)
class Condition:
    """A regular language that a whole text must belong to, beside its grammar.

    A text meets ``a & b`` if it meets both, ``a | b`` if it meets one of them, and ``~a`` if it does not meet
    ``a``.
    """

    _steps: tuple[tuple[int, tuple[bytes, ...], int, int], ...]
    _shown: str
    _parts: tuple[Condition, ...] = ()  # All parts must hold.

    def __and__(self, other: Condition) -> Condition:
        if not isinstance(other, Condition):
            return NotImplemented
        steps = (*self._steps, *other._steps, (_AND, (), 0, 0))
        return Condition(steps, f"{self._shown} & {other._shown}", (*self._all(), *other._all()))

    def __or__(self, other: Condition) -> Condition:
        if not isinstance(other, Condition):
            return NotImplemented
        return Condition((*self._steps, *other._steps, (_OR, (), 0, 0)), f"({self._shown} | {other._shown})")

    def __invert__(self) -> Condition:
        return Condition((*self._steps, (_NOT, (), 0, 0)), f"~({self._shown})")

    def __repr__(self) -> str:
        return self._shown

    def _all(self) -> tuple[Condition, ...]:
        return self._parts or (self,)

    def _core(self) -> list[Step]:
        return [(kind, list(texts), lo, hi) for kind, texts, lo, hi in self._steps]

    def _node(self, b: GrammarBuilder) -> int:
        """Returns the builder's regular node for the texts that meet the condition."""
        byte, stack = b.byte(bytes(range(256))), list[int]()
        any_bytes = b.repeat(byte, 0)
        for kind, texts, lo, hi in self._steps:
            if kind == _REGEX:
                stack.append(b.pattern(texts[0].decode(), True))
            elif kind == _CONTAINS:
                stack.append(b.sequence([any_bytes, b.choice([b.literal(t) for t in texts]), any_bytes]))
            elif kind == _BYTES:
                stack.append(b.repeat(byte, lo, -1 if hi == _ENDLESS else hi))
            elif kind == _NOT:
                stack.append(b.negate(stack.pop()))
            else:
                right, left = stack.pop(), stack.pop()
                stack.append((b.both if kind == _AND else b.choice)([left, right]))
        return stack[0]


def Regex(pattern: str) -> Condition:  # noqa: N802, the name is a kind of value
    """Returns the whole text matches a pattern, as in `Compiler.regex`.

    Raises:
        TypeError: the pattern is not a text. ``&`` raises a `GrammarError` if the pattern cannot be read.
    """
    if not isinstance(pattern, str):
        raise TypeError(f"a pattern is text, not {pattern!r:.60}")
    return Condition(((_REGEX, (pattern.encode(),), 0, 0),), f"Regex({pattern!r})")


def containing(phrases: str | bytes | Iterable[str | bytes] = (), *more: str | bytes) -> Condition:
    """The text contains one of the phrases. The bytes as written count: ``\\u00e9`` in JSON is not ``é``.

    ``containing("a") & containing("b")`` asks for both.

    Raises:
        TypeError: a phrase is not a text. ValueError: there is no phrase, or a phrase is empty.
    """
    texts = _listing(phrases, more, "containing")
    return Condition(((_CONTAINS, texts, 0, 0),), f"containing({_listed(texts)})")


def without(words: str | bytes | Iterable[str | bytes], *more: str | bytes) -> Condition:
    """The text contains none of these words. The bytes as written count.

    Raises:
        TypeError: a word is not a text. ValueError: there is no word, or a word is empty.
    """
    texts = _listing(words, more, "without")
    return Condition(((_CONTAINS, texts, 0, 0), (_NOT, (), 0, 0)), f"without({_listed(texts)})")


def max_bytes(n: int) -> Condition:
    """The text has at most `n` bytes of UTF-8.

    Raises:
        TypeError: `n` is no integer. ValueError: `n` is below 0 or above 2 ** 24.
    """
    return Condition(((_BYTES, (), 0, whole("max_bytes", n, 0, _MOST)),), f"max_bytes({n})")


def min_bytes(n: int) -> Condition:
    """The text has at least `n` bytes of UTF-8.

    Raises:
        TypeError: `n` is no integer. ValueError: `n` is below 0 or above 2 ** 24.
    """
    return Condition(((_BYTES, (), whole("min_bytes", n, 0, _MOST), _ENDLESS),), f"min_bytes({n})")


def _listing(first: Any, more: tuple[Any, ...], name: str) -> tuple[bytes, ...]:
    listed = isinstance(first, Iterable) and not isinstance(first, (str, bytes))
    return _phrases((*first, *more) if listed else (first, *more), name)


def _phrases(phrases: tuple[Any, ...], name: str) -> tuple[bytes, ...]:
    if not phrases:
        raise ValueError(f"{name}: name at least one phrase")
    for p in phrases:
        if not isinstance(p, (str, bytes)):
            raise TypeError(f"{name}: a phrase is text (str or bytes), not {p!r:.60}")
        if not p:
            raise ValueError(f"{name}: a phrase is empty, and the empty text stands everywhere")
    return tuple(p.encode() if isinstance(p, str) else p for p in phrases)


def _listed(texts: tuple[bytes, ...]) -> str:
    return ", ".join(repr(t.decode("utf-8", "backslashreplace")) for t in texts)
