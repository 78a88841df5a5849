"""Drafts the text that a JSON Schema makes likely without forcing it: declared names in order, beginnings of
values, literals.

Enters: the schema and the bytes of the answer. Leaves: pieces of JSON that probably come next, in tokens.
Cost: a few operations for each byte, and an encoding by the tokenizer for each new piece; encodings are
remembered.

The problem. Most schemas allow names that they do not declare, so a grammar forces hardly any text. But
models write the declared names, in the schema's order.

The idea. `read` follows the text with a small reader of JSON: open containers, the mode (in a name, after a
value, ...) and the subschema that applies. `predictions` gives the next pieces of a text that keeps to the
schema. For `{"properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}`:

    text so far               predicted
    (nothing)                 {"name":"    0.85
    {                         "name":"     0.6       "age":    0.2
    {"na                      me":"        0.9
    {"name":"A"               ,"age":      0.6       }         0.1
    {"name":"A","age":7       }            0.16

A piece becomes tokens by the tokenizer; a cursor offers its first token, and behind it the rest of the piece
(`_chains`). Blanks after colons follow the habit of the text so far (`spaced`).

Invariants.
- A prediction says nothing about validity: the grammar prunes, and the target decides. A wrong prediction
  costs only time.
- A schema of any shape is read without an error: a part that this reader does not know gives no prediction.
- The probabilities are guesses, which `Calibration` (goodput.py) corrects.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..._pointers import led
from ...errors import VocabularyError
from ...reasoning import mark_names
from ..base import Cursor, Here, Quiet, Start, Step

_NAMES = 3  # the number of next declared names that are predicted
_CHANCES = (0.6, 0.2, 0.1)  # the probability of each predicted name
_CLOSING = 0.2  # the probability that a string or a number ends here
_DEEP = 3  # the most containers that one prediction opens
_REMEMBERED = 1 << 14  # pieces of text whose tokens are kept
_LOOKED = 1_000  # the most subschemas that are read for one shape


class Shape(NamedTuple):
    """The form of the values of a subschema. `names` are pairs of a name and its subschema."""

    kinds: tuple[str, ...] = ()
    names: tuple[tuple[str, Any], ...] = ()
    items: Any = None
    literals: tuple[str, ...] = ()


class Frame(NamedTuple):
    """An open object or array: its shape, and the index in `names` after the last name that was written."""

    object: bool
    shape: Shape
    next: int = 0


class State(NamedTuple):
    """A place in a JSON text.

    Attributes:
        mode: "value" (a value comes next), "first" (a name or the end of the object), "name", "in name",
            "colon", "string" (inside one), "scalar" (inside a number, true, false or null), "after" (a
            value).
        shape: the shape of the value that comes next or was begun.
        held: the text of the name or value that was begun.
    """

    mode: str
    stack: tuple[Frame, ...]
    shape: Shape
    held: bytes = b""


class SchemaOrder:
    """Drafts names in the order of the schema, with the opening of their values."""

    has_distribution = False
    name = "schema order"

    def __init__(self) -> None:
        self._spelled: OrderedDict[tuple[int, bytes], tuple[int, ...]] = OrderedDict()

    def open(self, start: Start) -> _Session:
        schema = None if start.grammar is None else start.grammar.source
        if isinstance(schema, (str, bytes)):
            try:
                schema = json.loads(schema)
            except (ValueError, RecursionError):  # the source is a pattern or a grammar
                schema = None
        return _Session(self, start, schema if isinstance(schema, dict) else None)

    def spelled(self, start: Start, text: bytes) -> tuple[int, ...]:
        """Returns the tokens of a piece of text."""
        key = id(start.vocabulary), text
        found = self._spelled.get(key)
        if found is None:
            try:
                found = tuple(start.vocabulary.encode(text))
            except VocabularyError:
                found = ()
            self._spelled[key] = found
            if len(self._spelled) > _REMEMBERED:
                self._spelled.popitem(last=False)
        return found


class _Session(Quiet):
    def __init__(self, drafter: SchemaOrder, start: Start, schema: dict[str, Any] | None) -> None:
        self.drafter = drafter
        self.start = start
        self.shapes: Shapes | None = Shapes(schema) if schema is not None else None
        self.spaced: bool = False
        self._tail = b""
        self._state = None if self.shapes is None else State("value", (), self.shapes.of(schema))
        thinks = None if start.grammar is None else start.grammar.reasoning
        self._parts = None if thinks is None else thinks.splitter()
        self._marks = {} if thinks is None else mark_names(thinks, start.vocabulary)

    def accept(self, step: Step) -> None:
        if self._state is None or self.shapes is None:
            return
        decode = self.start.vocabulary.decode
        if self._parts is None:
            text = decode(step.tokens)
        else:  # the schema is that of the answer
            whole = b"".join(self._marks.get(token) or decode([token]) for token in step.tokens)
            text = self._parts.feed(whole)[1]
        # Notes whether a blank followed the last `":`, which is probably the end of a name.
        seen = self._tail + text
        if (colon := seen.rfind(b'":', 0, -1)) >= 0:
            self.spaced = seen[colon + 2 : colon + 3] == b" "
        self._tail = seen[-2:]
        self._state = read(self._state, text, self.shapes)

    def cursor(self) -> Cursor | None:
        thinks = self._parts is not None and not self._parts.answering
        return None if self._state is None or thinks else _Cursor(self, self._state, ())


class _Cursor:
    """A place in the tree.

    `chains` are the rests of pieces that were begun at a node above, each with its probability. `state` is
    the reader's state at a node above. The tokens since that node are `unread`; they are read when a new
    prediction is needed.
    """

    __slots__ = ("_chains", "_session", "_state", "_unread")

    def __init__(
        self,
        session: _Session,
        state: State,
        chains: Sequence[tuple[tuple[int, ...], float]],
        unread: tuple[int, ...] = (),
    ) -> None:
        self._session = session
        self._state = state
        self._chains = chains
        self._unread = unread

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        if not self._chains:
            self._predict()
        best: dict[int, float] = {}
        for tokens, chance in self._chains:
            best[tokens[0]] = max(chance, best.get(tokens[0], 0.0))
        return list(best.items())

    def step(self, token: int) -> _Cursor | None:
        rest = [(tokens[1:], 0.9) for tokens, _ in self._chains if tokens[0] == token and len(tokens) > 1]
        return _Cursor(self._session, self._state, rest, (*self._unread, token))

    def _predict(self) -> None:
        session = self._session
        shapes = session.shapes
        assert shapes is not None
        if self._unread:
            text = session.start.vocabulary.decode(self._unread)
            after = read(self._state, text, shapes)
            if after is None:
                return
            self._state, self._unread = after, ()
        found = []
        for text, chance in predictions(self._state, shapes, session.spaced):
            tokens = session.drafter.spelled(session.start, text)
            if tokens:
                found.append((tokens, chance))
        self._chains = found


class Shapes:
    """Shapes of the subschemas of one schema, each found once."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._known: dict[int, tuple[Any, Shape]] = {}
        self._left = 0

    def of(self, schema: Any) -> Shape:
        """Returns the shape of a subschema. Follows references in the document, and the first branch of a
        union."""
        known = self._known.get(id(schema))
        if known is None:
            self._left = _LOOKED
            known = self._known[id(schema)] = (schema, self._shape(schema, 0))
        return known[1]

    def _shape(self, schema: Any, depth: int) -> Shape:
        self._left -= 1
        if not isinstance(schema, dict) or depth > 8 or self._left < 0:
            return Shape()
        if isinstance(schema.get("$ref"), str):
            found = led(self._root, schema["$ref"])
            return self._shape(None if found is None else found[1], depth + 1)
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(values, list):
            return Shape(literals=tuple(_compact(v) for v in values[:32]))
        kinds = schema.get("type", ())
        if isinstance(kinds, str):
            kinds = (kinds,)
        elif isinstance(kinds, list):
            kinds = tuple(k for k in kinds if isinstance(k, str))
        else:  # the subschema has no type, or one that the grammar refuses
            kinds = ()
        properties = schema.get("properties")
        names = list(properties.items()) if isinstance(properties, dict) else []
        items = schema.get("items")
        for word in ("allOf", "anyOf", "oneOf"):
            parts = schema.get(word)
            if not isinstance(parts, list):
                continue
            for part in parts if word == "allOf" else parts[:1]:
                more = self._shape(part, depth + 1)
                kinds = kinds or more.kinds
                names += [n for n in more.names if n[0] not in {known for known, _ in names}]
                items = items if items is not None else more.items
                if more.literals and not names:
                    return more
        if names and not kinds:
            kinds = ("object",)
        return Shape(kinds, tuple(names), items)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read(state: State | None, text: bytes, shapes: Shapes) -> State | None:
    """Returns the state after some bytes; None if they are not JSON or go on after the end."""
    for byte in text:
        if state is None:
            return None
        state = _byte(state, byte, shapes)
    return state


def _byte(state: State, byte: int, shapes: Shapes) -> State | None:
    mode, stack, shape, held = state
    char = chr(byte)
    if mode in ("in name", "string"):
        if char != '"' or _escaped(held):
            return State(mode, stack, shape, held + bytes((byte,)))
        if mode == "string":
            return State("after", stack, shape)
        frame = stack[-1]
        name = held.decode("utf-8", "replace")
        place = next((i for i, (known, _) in enumerate(frame.shape.names) if known == name), None)
        if place is None:
            return State("colon", stack, Shape())
        frame = frame._replace(next=place + 1)
        return State("colon", (*stack[:-1], frame), shapes.of(frame.shape.names[place][1]))
    if char in " \t\r\n":
        return state if mode != "scalar" else State("after", stack, shape)
    if mode == "scalar" and char not in ",]}":
        return State(mode, stack, shape, held + bytes((byte,)))
    if mode in ("scalar", "after"):
        if char == "," and stack:
            if stack[-1].object:
                return State("name", stack, Shape())
            return State("value", stack, shapes.of(stack[-1].shape.items))
        if char in "]}" and stack:
            return State("after", stack[:-1], Shape())
        return None
    if mode in ("first", "name"):
        if char == '"':
            return State("in name", stack, Shape())
        return State("after", stack[:-1], Shape()) if char == "}" and mode == "first" else None
    if mode == "colon":
        return State("value", stack, shape) if char == ":" else None
    if char == "{":
        return State("first", (*stack, Frame(True, shape)), Shape())
    if char == "[":
        return State("value", (*stack, Frame(False, shape)), shapes.of(shape.items))
    if char == "]" and stack and not stack[-1].object:
        return State("after", stack[:-1], Shape())
    return State("string" if char == '"' else "scalar", stack, shape, b"" if char == '"' else bytes((byte,)))


def _escaped(held: bytes) -> bool:
    return (len(held) - len(held.rstrip(b"\\"))) % 2 == 1


Options = list[tuple[str, float]]  # pieces of text, each with a probability


def predictions(state: State, shapes: Shapes, spaced: bool = False) -> list[tuple[bytes, float]]:
    """Returns pieces of text that probably come next, each with a probability; the best one comes first."""
    found = _OF_MODE[state.mode](_Predictor(state, shapes, spaced))
    return [(text.encode("utf-8", "replace"), p) for text, p in found if text]


class _Predictor:
    """Predicts the text behind a state, with a method for each mode."""

    def __init__(self, state: State, shapes: Shapes, spaced: bool) -> None:
        self.state = state
        self.shapes = shapes
        self.begun: str = state.held.decode("utf-8", "replace")
        self.colon, self.comma = (": ", ", ") if spaced else (":", ",")

    def value(self) -> Options:
        shape = self.state.shape
        if len(shape.literals) > 1:
            return [(text, 1.0 / (len(shape.literals) + 1)) for text in shape.literals[:4]]
        if text := self._value(shape):
            return [(text, 0.85)]
        return [("true", 0.5), ("false", 0.4)] if "boolean" in shape.kinds else []

    def name(self) -> Options:
        return self._chosen("")

    def first(self) -> Options:
        return self.name() or [("}", 0.3)]

    def in_name(self) -> Options:
        frame, begun = self.state.stack[-1], self.begun
        likely = [*frame.shape.names[frame.next :], *frame.shape.names[: frame.next]]
        fitting = [(n, s) for n, s in likely if n.startswith(begun)][:_NAMES]
        found = []
        for (name, below), p in zip(fitting, _CHANCES, strict=False):
            rest = json.dumps(name, ensure_ascii=False)[1:]
            if rest.startswith(begun):
                sure = 0.9 if len(fitting) == 1 and begun else p
                found.append((rest[len(begun) :] + self._below(below), sure))
        return [('"' + self.colon, _CLOSING)] if not fitting and begun else found

    def after_name(self) -> Options:
        return [(self.colon + self._value(self.state.shape), 0.95)]

    def string(self) -> Options:
        return self._literal('"' + self.begun) or self._closing('"')

    def scalar(self) -> Options:
        if found := self._literal(self.begun):
            return found
        found = self._closing("")
        if self.begun in ("t", "f", "n", "tr", "fa", "nu"):
            whole = {"t": "true", "f": "false", "n": "null"}[self.begun[0]]
            found.insert(0, (whole[len(self.begun) :], 0.98))
        return found

    def after(self) -> Options:
        """Returns the text behind a finished value."""
        if not self.state.stack:
            return []
        frame = self.state.stack[-1]
        if not frame.object:
            return [(self.comma + self._value(self.shapes.of(frame.shape.items)), 0.5), ("]", 0.4)]
        chosen = self._chosen(self.comma)
        return [*chosen, ("}", 0.1)] if chosen else [("}", 0.8)]

    def _chosen(self, before: str) -> Options:
        """Returns the next declared names, each with the beginning of its value."""
        frame = self.state.stack[-1]
        rest = frame.shape.names[frame.next : frame.next + _NAMES]
        texts = [before + json.dumps(name, ensure_ascii=False) + self._below(below) for name, below in rest]
        return list(zip(texts, _CHANCES, strict=False))

    def _below(self, schema: Any, depth: int = 0) -> str:
        return self.colon + self._value(self.shapes.of(schema), depth)

    def _value(self, shape: Shape, depth: int = 0) -> str:
        """Returns the beginning of a value that its shape determines."""
        if len(shape.literals) == 1:
            return shape.literals[0]
        if shape.literals:
            return _common([*shape.literals])
        kind = next((k for k in shape.kinds if k != "null"), "")
        if kind == "object":
            if not shape.names or depth >= _DEEP:
                return "{"
            name, below = shape.names[0]
            return "{" + json.dumps(name, ensure_ascii=False) + self._below(below, depth + 1)
        if kind == "array":
            return "[" + (self._value(self.shapes.of(shape.items), depth + 1) if depth < _DEEP else "")
        return '"' if kind == "string" else ""

    def _literal(self, start: str) -> Options:
        """Returns the rests of literals that begin so."""
        fitting = [text for text in self.state.shape.literals if text.startswith(start) and text != start]
        return [(text[len(start) :], 0.9 / len(fitting)) for text in fitting[:4]]

    def _closing(self, end: str) -> Options:
        """Returns the end of a string or a number, and what follows it."""
        if end and _escaped(self.state.held):
            return []
        return [(end + text, _CLOSING * p) for text, p in self.after()[:2]]


_OF_MODE: dict[str, Callable[[_Predictor], Options]] = {
    "value": _Predictor.value,
    "first": _Predictor.first,
    "name": _Predictor.name,
    "in name": _Predictor.in_name,
    "colon": _Predictor.after_name,
    "string": _Predictor.string,
    "scalar": _Predictor.scalar,
    "after": _Predictor.after,
}


def _common(texts: Sequence[str]) -> str:
    """Returns the longest common prefix."""
    low, high = min(texts), max(texts)
    for i, char in enumerate(low):
        if high[i] != char:
            return low[:i]
    return low
