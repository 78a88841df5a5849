"""How sure a model is of each leaf of an answer: the probability of its value given what precedes it.

Enters: a model, a grammar, the tokens of a text. Leaves: a `FieldProbability` for each leaf. Cost: the model
reads at most `reads` prefixes for each leaf, `_AT_ONCE` in one forward pass; each prefix costs a pass over
the allowed tokens.

The problem. The tokens of an answer have probabilities, but a value is not its tokens: `"Porto"` may be one
token or three, `12` is not certain before the `,` behind it, and `12.0` is the same value.

The idea. The text breaks off in front of the leaf. From there the model writes a value token by token, by the
law of `sg.generate` at temperature 1: the model's probabilities of the allowed tokens, scaled to sum 1. The
tree of these tokens is read best first. A path is decided as soon as its bytes say which value it is:

    {"city":  ->  "Porto"          0.6    decided: this value
              ->  "Po  ->  rto",   0.1    decided: this value
              ->  "Po  ->  nte"    0.02   another value
              ->  "Li              0.28   open; it cannot become this value

P(value) is the summed probability of its paths. The upper bound adds the paths that are not read yet and may
still spell this value. If none is left, the bounds are equal and the sum is exact. The remaining reads go to
other values, whose bounds are wider.

If a token crosses the border of the leaf (`":"Po`), paths begin in front of that token. Paths that do not
write the text in front of the leaf count neither in the sum nor in its divisor.

Invariants. low <= P(value) <= high. Bounds do not depend on how the text was drawn; penalties, biases,
temperature and `max_tokens` are not part of the law.

Rejected. The product of the drawn tokens' probabilities: it is one spelling of several, and its last token
says what follows the value.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from .._json_scan import Scan
from .._pointers import pointer_of
from ..errors import BudgetExceeded
from ..lm.base import LanguageModelError
from ..sampling.target import Target

if TYPE_CHECKING:
    from ..grammar import CompiledGrammar
    from ..lm.base import Context, LanguageModel
    from ..vocabulary import Vocabulary

_AT_ONCE = 16  # the most prefixes of a forward
_SHOWN = 5  # the most alternatives of a leaf
_FOLLOWED = 16  # the most tokens of a place that are followed towards alternatives
_LEAST = 1e-9  # a path with a smaller probability is not read
# a path of the value comes before a path of another value, unless it is less probable by this factor
_FIRST = 1e-3
_FAR = 1 << 20  # a budget of so many tokens is no limit
_WORD = re.compile(rb"[^\s,\]}:]*")
_BROKEN = re.compile(rb"\\(u[0-9a-fA-F]{0,3})?$|\\u[dD][89abAB][0-9a-fA-F]{2}(\\(u[0-9a-fA-F]{0,3})?)?$")
# what an alternative shows for an object and an array of any content, and for the end of an array
_MARKS = {0x7B: "{", 0x5B: "[", 0x5D: "]"}


@dataclass(frozen=True, slots=True)
class FieldProbability:
    """A leaf of an answer.

    Attributes:
        pointer: its place, a JSON pointer; "" for the whole text.
        text: its value, as JSON; the text itself where the answer is no JSON.
        low, high: certified bounds on the probability of this value, given the text in front of it.
        alternatives: other values, each (text, low, high), the most probable first; "{" and "[" stand for
            all objects and all arrays, "]" for an array that ends there.
    """

    pointer: str
    text: str
    low: float
    high: float
    alternatives: list[tuple[str, float, float]] = field(default_factory=list)

    @property
    def probability(self) -> float:
        """The middle of the bounds."""
        return (self.low + self.high) / 2


class _Json:
    """One JSON value that an answer may have. It tells whether bytes spell the value or may still become
    it."""

    def __init__(self, text: str) -> None:
        self.text: str = _canonical(text)
        self._value: Any = json.loads(text, parse_int=Decimal, strict=False)

    def decided(self, data: bytes, ended: bool) -> str | None:
        """Returns the value that the bytes spell completely; None if the value is still open."""
        data = data.lstrip()
        if not data:
            return None
        if data[0] in _MARKS:
            return _MARKS[data[0]]
        if data[0] == 0x22:
            at = 1
            while (at := data.find(b'"', at)) >= 0:
                if (at - len(data[:at].rstrip(b"\\"))) % 2 == 0:
                    return _canonical(data[: at + 1].decode("utf-8", "replace"))
                at += 1
            return None
        word = _WORD.match(data).group()  # type: ignore[union-attr]
        return _canonical(word.decode()) if ended or len(word) < len(data) else None

    def may(self, data: bytes) -> bool:
        """Returns whether undecided bytes may still become this value."""
        data = data.lstrip()
        if not data:
            return True
        if data[0] == 0x22 or isinstance(self._value, str):
            if data[0] != 0x22 or not isinstance(self._value, str):
                return False
            said = _BROKEN.sub(b"", data[1:]).decode("utf-8", "ignore")
            try:
                return self._value.startswith(json.loads(f'"{said}"', strict=False))
            except ValueError:
                return True
        if isinstance(self._value, bool) or self._value is None:
            return self.text.encode().startswith(data)
        if data[:1].isalpha():
            return False
        return _digits_agree(data.decode("ascii", "replace"), self.text)


class _Plain:
    """Reads bytes as a whole text."""

    def __init__(self, text: str) -> None:
        self.text: str = text

    def decided(self, data: bytes, ended: bool) -> str | None:
        return data.decode("utf-8", "replace") if ended else None

    def may(self, data: bytes) -> bool:
        return self.text.encode().startswith(data)


def _canonical(text: str) -> str:
    """Returns one spelling for each JSON scalar, the same for equal numbers. Other text stays as it is."""
    try:
        value = json.loads(text, parse_float=Decimal, parse_int=Decimal, strict=False)
    except ValueError:
        return text
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        kept = len("".join(map(str, digits)).rstrip("0")) or 1
        # `normalize` would round to the precision of a context, so this code removes the zeros.
        scaled = (sign, digits[:kept], int(exponent) + len(digits) - kept)
        number = Decimal(scaled) if value else Decimal(0)
        plain = abs(number.adjusted()) < 30
        return f"{number:f}" if plain else str(number)
    return json.dumps(value, ensure_ascii=False)


def _digits_agree(begun: str, whole: str) -> bool:
    """Returns whether a number with this beginning may equal `whole`: the digits agree, up to zeros."""
    if begun.startswith("-") != whole.startswith("-"):
        return begun in ("-0", "-") or begun.startswith("-0") and whole == "0"
    if "e" in begun.lower() or "E" in whole:
        return True
    first, second = (text.lstrip("-").replace(".", "").lstrip("0") for text in (begun, whole))
    return first.startswith(second.rstrip("0")) if len(first) > len(second) else second.startswith(first)


@dataclass(slots=True)
class _Path:
    """A prefix: the answer's tokens up to a leaf, then tokens of a value."""

    tokens: list[int]
    data: bytes = b""  # bytes behind the last whole token in front of the leaf
    mass: float = 1.0
    context: Any = None
    matcher: Any = None
    synced: int = 0

    def step(self, token: int, data: bytes, mass: float) -> _Path:
        matcher = None if self.matcher is None else self.matcher.fork()
        return _Path([*self.tokens, token], self.data + data, mass, self.context, matcher, self.synced)


def field_probabilities(
    lm: LanguageModel,
    start: Context,
    grammar: CompiledGrammar | None,
    tokens: Sequence[int],
    said: str,
    is_json: bool,
    ended: bool,
    reads: int,
    go_on: Callable[[], bool] = lambda: True,
) -> list[FieldProbability]:
    """Returns the leaves of a finished answer, in their order.

    Args:
        start: the prompt. tokens: the ids of the whole text. said: the answer, which is the end of the text.
        is_json: whether the answer is JSON; else it is one leaf. ended: whether it is whole.
        reads: the most prefixes read for each leaf. go_on: asked before each forward; after a False nothing
            is read, and bounds are as wide as what was read leaves them.
    """
    target = Target.of(lm, start, grammar, None, max_tokens=_FAR, budget="reject")
    words = _Words(lm.vocabulary, target)
    pieces = [words.bytes_of(token) for token in tokens]
    ends = np.cumsum([0, *map(len, pieces)])
    offset = b"".join(pieces).rfind(said.encode("utf-8", "surrogatepass"))
    if offset < 0:  # a stop string cut the answer, or its bytes are no UTF-8
        return []
    found = []
    here = _Path([])
    for pointer, begin, text in _leaves(said, is_json, ended):
        at = offset + len(said[:begin].encode())
        first = int(np.searchsorted(ends, at, side="right")) - 1
        here = _Path(list(tokens[:first]), b"", 1.0, here.context, here.matcher, here.synced)
        target.sync(here)
        reader = _Json(text) if is_json else _Plain(text)
        lead = b"".join(pieces)[ends[first] : at]
        found.append(_Leaf(target, words, reader, lead).read(here, pointer, reads, go_on))
    return found


def _leaves(said: str, is_json: bool, ended: bool) -> Iterator[tuple[str, int, str]]:
    """Returns the pointer, the beginning in the text, and the text of each scalar. Empty containers have no
    scalar."""
    if not is_json:
        if ended:
            yield "", 0, said
        return
    scan = Scan(said)
    for span in scan:
        if span.kind in ("string", "word"):
            text = said[span.begin : span.end]
            if not (span.whole or ended):
                return
            yield pointer_of(scan.path), span.begin, text


class _Words:
    """The bytes of all tokens, and the first byte of each token as an array."""

    def __init__(self, vocabulary: Vocabulary, target: Target) -> None:
        self._tokens = vocabulary.tokens
        self.end: int = target.end
        self._ends = frozenset(target.ends)
        # 256 stands for tokens without text, and for end tokens.
        self.first: np.ndarray[Any, np.dtype[np.int16]] = np.array(
            [data[0] if data and i not in self._ends else 256 for i, data in enumerate(self._tokens)],
            np.int16,
        )

    def bytes_of(self, token: int) -> bytes:
        return b"" if token in self._ends else self._tokens[token]


class _Leaf:
    """The tree of texts that may stand in the place of one leaf."""

    def __init__(self, target: Target, words: _Words, reader: _Json | _Plain, lead: bytes) -> None:
        self._target, self._words, self._reader, self._lead = target, words, reader, lead
        self._values: dict[str, float] = {}
        self._own: list[tuple[float, int, _Path]] = []  # a heap of the paths that may become the value
        self._others: list[tuple[float, int, _Path]] = []  # a heap of the paths that became another value
        # The summed probabilities of paths that are not read on: paths that cannot become the value, paths
        # that may, and paths that still stand in front of the leaf.
        self._lost = self._dropped = self._before = 0.0
        self._serial = 0

    def read(self, start: _Path, pointer: str, reads: int, go_on: Callable[[], bool]) -> FieldProbability:
        self._push(self._own, start)
        while reads > 0 and (self._own or self._others) and go_on():
            heap = self._own or self._others
            if self._others and self._own and self._own[0][0] > _FIRST * self._others[0][0]:
                heap = self._others
            paths = [heapq.heappop(heap)[2] for _ in range(min(_AT_ONCE, reads, len(heap)))]
            reads -= len(paths)
            try:
                vectors = self._target.expand(paths, thin=False)
            except (
                BudgetExceeded,
                LanguageModelError,
            ):  # a mask or a context beyond a limit: the rest stays open
                for path in paths:
                    self._push(heap, path)
                break
            for path, vector in zip(paths, vectors, strict=True):
                if len(vector):
                    self._children(path, vector.ids, np.exp(vector.scores() - vector.log_mass) * path.mass)
        return self._told(pointer)

    def _push(self, heap: list[tuple[float, int, _Path]], path: _Path) -> None:
        self._serial += 1
        heapq.heappush(heap, (-path.mass, self._serial, path))

    def _children(self, path: _Path, ids: Any, masses: Any) -> None:
        words, lead = self._words, self._lead
        if len(path.data) < len(lead):  # only paths that agree with the text in front of the leaf count
            firsts = [lead[len(path.data)]]
            others = np.zeros(len(ids), bool)
        else:
            value = path.data[len(lead) :]
            mine = self._reader.may(value)
            firsts = [b for b in range(256) if mine and self._near(value + bytes([b]))]
            others = ~np.isin(words.first[ids], firsts) & (words.first[ids] != 256)
        for at in np.flatnonzero(np.isin(words.first[ids], firsts)).tolist():
            self._child(path, int(ids[at]), float(masses[at]))
        ended = np.flatnonzero(ids == words.end)
        if ended.size and len(path.data) >= len(lead):
            text = self._reader.decided(path.data[len(lead) :], True) if self._said(path) else None
            self._note(text, float(masses[ended[0]]))
        rest = np.flatnonzero(others)
        best = rest[np.argsort(-masses[rest], kind="stable")][:_FOLLOWED]
        self._lost += max(0.0, float(masses[rest].sum() - masses[best].sum()))
        for at in best.tolist():
            self._child(path, int(ids[at]), float(masses[at]))

    def _said(self, path: _Path) -> bool:
        """Returns whether the answer has the value if it ends behind this path."""
        return isinstance(self._reader, _Plain) or bool(path.data[len(self._lead) :].strip())

    def _near(self, value: bytes) -> bool:
        """Returns whether a value with this beginning may be the answer's value."""
        decided = self._reader.decided(value, False)
        return self._reader.may(value) if decided is None else decided == self._reader.text

    def _note(self, text: str | None, mass: float) -> None:
        if text is None:
            self._lost += mass
        else:
            self._values[text] = self._values.get(text, 0.0) + mass

    def _child(self, path: _Path, token: int, mass: float) -> None:
        data = self._words.bytes_of(token)
        said, lead = path.data + data, self._lead
        if not (said.startswith(lead) or lead.startswith(said)):
            return  # the path writes another text in front of the leaf
        inside = len(said) >= len(lead)
        decided = self._reader.decided(said[len(lead) :], False) if inside else None
        if decided is not None:
            self._note(decided, mass)
            return
        own = not inside or self._reader.may(said[len(lead) :])
        if mass < _LEAST:
            if not inside:
                self._before += mass
            elif own:
                self._dropped += mass
            else:
                self._lost += mass
            return
        self._push(self._own if own else self._others, path.step(token, data, mass))

    def _told(self, pointer: str) -> FieldProbability:
        before = sum(path.mass for _, _, path in self._own if len(path.data) < len(self._lead))
        mine = sum(path.mass for _, _, path in self._own) - before + self._dropped
        before += self._before
        open_ = sum(path.mass for _, _, path in self._others) + self._lost
        text = self._reader.text
        total = sum(self._values.values()) + mine + open_

        def bounds(low: float, more: float) -> tuple[float, float]:
            if total + before <= 0.0:
                return 0.0, 1.0
            return low / (total + before), min(1.0, (low + more + before) / (total + before))

        others = sorted(((p, v) for v, p in self._values.items() if v != text), reverse=True)[:_SHOWN]
        low, high = bounds(self._values.get(text, 0.0), mine)
        return FieldProbability(pointer, text, low, high, [(v, *bounds(p, open_ + mine)) for p, v in others])
