"""Helpers of all text front ends: errors with a place, suggestions, and common expressions.

In: a grammar's text, places in it as character offsets. Out: nodes of a ``_core.GrammarBuilder``.
Cost: one call into the core for each node.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, AnyStr, NoReturn

from .. import _core
from .._checks import one_of
from ..errors import GrammarError

if TYPE_CHECKING:
    from ..json_options import JsonStyle
    from ..vocabulary import Vocabulary

DEPTH = 200  # the most nested parentheses, and the most nested grammars
MOST = 1 << 30  # the largest bound of a repetition
NO_NAME = "\0"  # the name of a capture that the user has not named
NO_LIMIT = (1 << 28) - 1  # tokens or characters; no text has more
TOO_MANY = f"the bound of a repetition is at most {MOST}"
_TOKEN_RANGE = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?\Z")


def json_node(
    b: _core.GrammarBuilder, style: JsonStyle, schema: str, excludes: Sequence[str] = (), python: bool = False
) -> int:
    """Returns the node of a schema's JSON. No string contains one of `excludes`. `python` writes True, False
    and None."""
    return b.json(schema, [], *style.core(), 0, list(excludes), python)


def fail(message: str, text: str, at: int) -> NoReturn:
    """Raises a GrammarError at a character offset."""
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    raise GrammarError(message, text=text, line=line, column=column)


def sound(text: str) -> str:
    """Returns the text itself. Raises a GrammarError if the text has half a surrogate pair, which UTF-8
    cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        column = error.start - text.rfind("\n", 0, error.start)
        found = f"\\u{ord(text[error.start]):04x}"
        message = f"{found} is half a surrogate pair and no character"
        raise GrammarError(message, line=line, column=column) from None
    return text


def text_of(given: object, what: str) -> str:
    """Returns the value itself if it is a text. TypeError or GrammarError: it is no text, or not `sound`."""
    if not isinstance(given, str):
        hint = "; decode them: .decode()" if isinstance(given, (bytes, bytearray)) else ""
        hint = "; read the file: path.read_text()" if hasattr(given, "__fspath__") else hint
        raise TypeError(f"{what} is a str, not {type(given).__name__}{hint}")
    return sound(given)


def meant(name: str, known: Iterable[str]) -> str:
    """Returns ``; did you mean 'value'?`` if a known name is close, otherwise an empty text."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""


def any_char(b: _core.GrammarBuilder) -> int:
    return b.chars([], True)


def any_text(b: _core.GrammarBuilder) -> int:
    return b.repeat(any_char(b), 0, -1)


def at_most(b: _core.GrammarBuilder, node: int, characters: int) -> int:
    """Returns the texts of a regular node with at most so many characters."""
    if characters >= NO_LIMIT:
        return node
    return b.both([node, b.repeat(any_char(b), 0, characters)])


def ignoring_case(b: _core.GrammarBuilder, text: str) -> int:
    return b.pattern(f"(?i:{re.escape(text)})") if text else b.literal(b"")


Spell = Callable[[str], int]  # a mark -> its node


def literal(b: _core.GrammarBuilder) -> Spell:
    return lambda text: b.literal(text.encode("utf-8", "surrogatepass"))


def spelled(b: _core.GrammarBuilder, vocabulary: Vocabulary) -> Spell:
    """Returns a function that makes the nodes of chat marks. A special token's name in a mark also matches
    the token itself."""
    names = [n for n, i in vocabulary.special_tokens.items() if n and i not in vocabulary.eos_token_ids]
    pattern = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))) or r"(?!)")

    def spell(text: str) -> int:
        parts, at = [], 0
        for match in pattern.finditer(text):
            parts.append(b.literal(text[at : match.start()].encode()))
            token = b.tokens([vocabulary.special_tokens[match[0]]])
            parts.append(b.choice([token, b.literal(match[0].encode())]))
            at = match.end()
        parts.append(b.literal(text[at:].encode()))
        return b.sequence(parts)

    return spell


def without(b: _core.GrammarBuilder, texts: Sequence[str]) -> int:
    """Returns the node of all texts that contain none of the given texts."""
    if not texts:
        return any_text(b)
    found = b.choice([b.literal(t.encode()) for t in texts])
    return b.negate(b.sequence([any_text(b), found, any_text(b)]))


class Marks:
    """Makes nodes of "any text up to and including the first of some marks". If several marks end at one
    place, the longest mark counts. Cost: linear in the marks, for any number of questions.
    """

    def __init__(self, b: _core.GrammarBuilder, marks: Sequence[str], spell: Spell | None = None) -> None:
        self.b = b
        self.spell: Spell = spell or literal(b)
        self.marks = marks
        self._first = b.shortest(b.sequence([any_text(b), b.choice([self.spell(m) for m in marks])]))
        known = set(marks)
        self._longer: dict[str, list[str]] = {}  # mark -> those that end with it
        for mark in marks:
            for k in range(1, len(mark)):
                if mark[k:] in known:
                    self._longer.setdefault(mark[k:], []).append(mark)

    def up_to(self, mark: str) -> int:
        b = self.b
        if len(self.marks) == 1:
            return self._first
        parts = [self._first, b.sequence([any_text(b), self.spell(mark)])]
        if longer := self._longer.get(mark):
            parts.append(b.negate(b.sequence([any_text(b), b.choice([self.spell(m) for m in longer])])))
        return b.both(parts)


def not_ending(b: _core.GrammarBuilder, node: int, endings: Iterable[str]) -> int:
    """Returns the texts of a node that end with none of these."""
    texts = [b.literal(ending.encode()) for ending in endings]
    return b.both([node, b.negate(b.sequence([any_text(b), b.choice(texts)]))]) if texts else node


def overlap(text: AnyStr, mark: AnyStr) -> int:
    """Returns the length of the longest end of the text that begins the mark and is not all of it."""
    for length in range(min(len(text), len(mark) - 1), 0, -1):
        if text.endswith(mark[:length]):
            return length
    return 0


def limit_of(text: str) -> int:
    """Returns a limit of tokens or characters as a grammar writes it; -1: the text is no whole number."""
    if not text.isdigit() or not text.isascii():
        return -1
    return min(int(text.lstrip("0")[:20] or "0"), NO_LIMIT)


def bounds(least: str, comma: str, most: str) -> tuple[int, int]:
    """Returns the bounds of a repetition in braces: {m}, {m,} (-1: no upper bound), {,n} or {m,n}.

    Raises:
        ValueError: they are too large, or the lower one is above the upper one.
    """
    if max(len(least), len(most)) > 10:
        raise ValueError(TOO_MANY)
    low = int(least or 0)
    high = int(most) if most else -1 if comma else low
    if 0 <= high < low:
        raise ValueError(f"{{{low},{high}}} asks for at least {low} and at most {high}")
    if max(low, high) > MOST:
        raise ValueError(TOO_MANY)
    return low, high


def across(mark: str, texts: Sequence[str]) -> list[str]:
    """Returns the endings that are forbidden before `mark`: with such an ending, one of the texts would reach
    into the mark."""
    return sorted({t[:k] for t in texts for k in range(1, len(t)) if mark.startswith(t[k:])})


def early(end: str, ends: Sequence[str]) -> list[str]:
    """Returns the endings that are forbidden before `end`: with such an ending, another end would be complete
    before `end`."""
    found = {
        other[:k]
        for other in ends
        for k in range(1, len(other))
        if len(other) - k < len(end) and end.startswith(other[k:])
    }
    return sorted(found)


def all_but(spec: str) -> bool:
    """Returns whether a spec such as ``*`` or ``^3`` means all tokens but the named ones."""
    return spec.strip() == "*" or spec.lstrip().startswith("^")


def token_ids(spec: str, vocabulary: Vocabulary, text: str, at: int) -> list[int]:
    """Returns the ids of a spec such as ``[5,7-9,^3]``, without its brackets. The spec has numbers and
    ranges; ``^`` means all special tokens except the listed ones."""
    found: list[int] = []
    negated = spec.lstrip().startswith("^")
    if spec.strip() == "*":
        spec, negated = "", True
    for part in (spec.strip().lstrip("^").split(",")) if spec.strip() else []:
        match = _TOKEN_RANGE.match(part)
        if match is None:
            fail(f"'{part.strip()}' is no token id; write <[12]>, <[12,15-18]> or <[^12]>", text, at)
        low = int(match[1])
        high = int(match[2] or low)
        if high >= vocabulary.vocab_size:
            fail(f"token {high} is outside the vocabulary of {vocabulary.vocab_size} ids", text, at)
        if low > high:
            fail(f"the range {low}-{high} is empty", text, at)
        found += range(low, high + 1)
    if negated:
        return other_tokens(found, vocabulary)
    return found


NO_TEMPERATURE = (
    "the temperature of rule '{name}' is read and not kept: "
    "a grammar says which texts there are, not how they are drawn"
)


def temperature(b: _core.GrammarBuilder, name: str, value: str, text: str, at: int) -> None:
    """Checks a temperature, and warns that a temperature has no effect."""
    try:
        found = float(value)
    except ValueError:
        found = -1.0
    if not 0 <= found < math.inf:
        fail("'temperature' is a number of at least 0", text, at)
    b.warn(NO_TEMPERATURE.format(name=name))


def other_tokens(ids: Sequence[int], vocabulary: Vocabulary) -> list[int]:
    """Returns the other special tokens, without those that end the text."""
    never = {*ids, *vocabulary.eos_token_ids}
    return [i for i in vocabulary.special_token_ids if i not in never]


def named_token(name: str, vocabulary: Vocabulary, text: str, at: int) -> int:
    """Returns the id of a special token by its name."""
    found = vocabulary.special_tokens.get(name)
    if found is None:
        hint = meant(name, vocabulary.special_tokens)
        fail(f"'{name}' is no special token of the vocabulary{hint}", text, at)
    if found in vocabulary.eos_token_ids:
        fail(f"'{name}' ends the text; a grammar cannot contain it", text, at)
    return found


def units_of(text: str, unit: str) -> list[str]:
    """Returns the text cut into characters, or into words, blanks and marks."""
    one_of("unit", unit, ("words", "chars"))
    return list(text) if unit == "chars" else re.findall(r"\s+|\w+|[^\w\s]", text)


_EBNF = re.compile(r'"(?:\\.|[^"\\\n])*"|\[(?:\\.|[^\]\\\n])*\]|#[^\n]*|//[^\n]*|(::=)')


def is_ebnf(text: str) -> bool:
    """Returns whether ``::=`` stands outside literals, classes and comments."""
    return any(match[1] for match in _EBNF.finditer(text))
