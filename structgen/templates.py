r"""Text with gaps that a model fills: `sg.template`, `sg.gen`, `sg.each`, `sg.select`.

Enters: a text with names in braces, and what may stand there. Leaves: one grammar with captures, so that
masks hold across the borders of parts, and the values by name. Cost: one compile; reading the values is
linear in the text.

    order = sg.template("Name: {name}\nAge: {age}\n", name=sg.gen(regex="[A-Z][a-z]+"), age=int)
    sg.generate(model, prompt, order).value     # {"name": "Ada", "age": 36}

A part is a Python type, a `gen`, another template, `each` (a repeated part) or `select` (one of several
parts). The text has the syntax of `str.format`, and no other.

The problem. A text that is filled gap by gap is cut into tokens at each border. A model would write `: A` as
one token, and a mask that ends with the gap forbids this token. And the end of each value has to be found
afterwards.

The idea. The whole text is one grammar, so tokens may cross borders. `_Builder` makes a rule for each part
and captures the part under its path. `_Reader` turns the captures of a finished text into values. The
captures inside a part have longer paths, and lie within its span. With

    sg.template("Name: {name}\nTags: {tags}.", name=sg.gen(regex="[A-Z][a-z]+"),
                tags=sg.each(str, separator=", ", most=3))

    text        Name: Ada\nTags: x, y.
    captures    .name (6, 9)     .tags (16, 20)     .tags.each (16, 17), (19, 20)
    value       {"name": "Ada", "tags": ["x", "y"]}

A gap of `str` is the rest of a line. Its text does not contain the text behind the gap (in an `each`, the
separator), because the end of the gap would then be unknown.

Invariants.
- Each name belongs to one gap. Each path belongs to one part; in a `select` the path has the alternative's
number.
- A template has at most `_MOST_RULES` parts.
- A Python type is plain text if it has an obvious one (`str`, `int`, `float`, `bool`, an enum of texts), else
  JSON.
"""

from __future__ import annotations

import enum
import json
import string
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from . import _core
from .conditions import Condition
from .errors import GrammarError
from .frontend.source import meant, without

if TYPE_CHECKING:
    from .compiler import Compiler
    from .grammar import CompiledGrammar
    from .matcher import Capture

_INTEGER = "0|-?[1-9][0-9]{0,17}"
_NUMBER = r"(?!-0(\.0+)?$)-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?"
_LINE = r"[^\n\r]+"
_MOST_RULES = 2000  # the most parts of a template, at all depths

Spans = Mapping[str, Sequence["Capture"]]


@dataclass(frozen=True)
class Gen:
    """A gap; see `gen`."""

    regex: str | None = None
    choice: tuple[str, ...] = ()
    schema: Any = None
    stop: str | None = None
    max_tokens: int | None = None
    read: Callable[[str], Any] = field(default=str, repr=False)


@dataclass(frozen=True)
class Each:
    """A repeated part; see `each`."""

    part: Any
    least: int
    most: int
    separator: str


@dataclass(frozen=True)
class Select:
    """One of several parts; see `select`."""

    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Template:
    """A text with gaps. `pieces` are texts, and a (name, part) pair for each gap.

    It is a constraint: `sg.generate(model, prompt, template)`. Its value is a dict of the parts by name.
    """

    pieces: tuple[str | tuple[str, Any], ...]

    def __and__(self, condition: Condition) -> NoReturn:
        """Raises a TypeError, because a template is no grammar without a vocabulary. The message has the
        fix."""
        if not isinstance(condition, Condition):
            return NotImplemented
        raise TypeError(
            "a condition is met by grammars, and a template is none before it has a vocabulary: pass "
            "condition= beside it to sg.generate, or write template.compile(compiler) & condition"
        )

    __rand__ = __and__

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the gaps, in order."""
        return tuple(piece[0] for piece in self.pieces if not isinstance(piece, str))

    def compile(self, compiler: Compiler) -> CompiledGrammar:
        """Returns the grammar.

        Raises:
            GrammarError: a part does not compile. The message begins with the part's name.
        """
        build = _Builder()
        rule = build.b.rule("template")
        build.b.define(rule, build.template(self, ""))
        return compiler._built(build.b, rule, self, recipe=("_template", (self,), {}))

    def read(self, grammar: CompiledGrammar, text: str) -> dict[str, Any]:
        """Returns the values of a finished text."""
        matcher = grammar.matcher()
        data = text.encode()
        if not matcher.accept_bytes(data) or not matcher.is_accepting():
            raise ValueError("the text is none of the template's")
        return _Reader(data, matcher.captures()).template(self, "", 0, len(data))

    def document(self) -> dict[str, Any]:
        """Returns a schema for models that read schemas: an object with the parts as properties."""
        return {"type": "object", "properties": {name: _about(part) for name, part in _pairs(self)}}


def template(text: str, /, **parts: Any) -> Template:
    """Returns a text with gaps, to be filled by a model.

    Args:
        text: names in braces are gaps, doubled braces are braces. A name may occur once.
        parts: for each gap a Python type (`str` is the rest of a line, `int`, `float` and `bool` are written
            plainly, an Enum or a Literal of texts is one of its texts, any other type is JSON), a `gen`, a
            `template`, an `each` or a `select`.

    Raises:
        ValueError: a gap has no part, a part has no gap, a name occurs twice, or a gap has a format.
        TypeError: a value is no part.
    """
    if not isinstance(text, str):
        raise TypeError(f"a template is a text with names in braces, not {text!r:.60}")
    pieces: list[str | tuple[str, Any]] = []
    seen: set[str] = set()
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError as error:
        raise ValueError(
            f"the template's braces are wrong: {error}; a brace itself is written twice"
        ) from None
    for literal, name, spec, conversion in fields:
        if literal:
            pieces.append(literal)
        if name is None:
            continue
        if not name.isidentifier():
            raise ValueError(f"a gap is a name in braces, not {{{name}}}; a brace itself is written twice")
        if spec or conversion:
            raise ValueError(f"the gap {{{name}}} takes no format: what it holds says {name}=")
        if name in seen:
            raise ValueError(f"the gap {{{name}}} stands twice: a name is one value")
        if name not in parts:
            close = meant(name, parts)
            raise ValueError(f"the gap {{{name}}} has no part: give {name}={close}")
        seen.add(name)
        pieces.append((name, _part(parts[name], name)))
    for name in parts:
        if name not in seen:
            raise ValueError(f"there is no gap {{{name}}} in the template{meant(name, seen)}")
    return Template(tuple(pieces))


def gen(
    type: Any = None,
    *,
    regex: str | None = None,
    choice: Sequence[str] | None = None,
    schema: Any = None,
    stop: str | None = None,
    max_tokens: int | None = None,
) -> Gen:
    """Returns a gap of a template.

    Args:
        type: a Python type, as `template` takes it. One of `type`, `regex`, `choice`, `schema` and `stop`
            is given.
        regex: a pattern for the gap.
        choice: the texts of which the gap is one.
        schema: a JSON Schema (dict, JSON text). The gap is JSON.
        stop: a text that the gap does not contain. The gap is any other text, also over several lines.
        max_tokens: the most tokens of the gap.
    """
    named = {"type": type, "regex": regex, "choice": choice, "schema": schema}
    given = [name for name, value in named.items() if value is not None]
    if len(given) > 1:
        raise ValueError(f"a gap holds one thing, not {' and '.join(given)}")
    whole = isinstance(max_tokens, int) and not isinstance(max_tokens, bool)
    if max_tokens is not None and not (whole and max_tokens > 0):
        raise ValueError(f"max_tokens of a gap is a whole number of at least 1, not {max_tokens!r}")
    if stop is not None and (not isinstance(stop, str) or not stop):
        raise ValueError(f"stop of a gap is a text that is not empty, not {stop!r}")
    if stop is not None and given:
        raise ValueError(f"stop= is for a gap of any text: leave {given[0]}= out")
    if regex is not None:
        if not isinstance(regex, str):
            raise TypeError(f"regex= takes a pattern, a text: r'[0-9]+', not {regex!r:.60}")
        return Gen(regex=regex, max_tokens=max_tokens)
    if choice is not None:
        texts = () if isinstance(choice, str) else tuple(choice)
        if not texts or not all(isinstance(text, str) for text in texts):
            raise TypeError(f'choice= takes a list of texts: ["yes", "no"], not {choice!r:.60}')
        return Gen(choice=texts, max_tokens=max_tokens)
    if schema is not None:
        document = json.loads(schema) if isinstance(schema, str) else schema
        if not isinstance(document, dict | bool):
            raise TypeError(f"schema= takes a JSON Schema, not {schema!r:.60}; a Python type stands first")
        return Gen(schema=document, max_tokens=max_tokens, read=json.loads)
    if type is None:
        return Gen(stop=stop, max_tokens=max_tokens)
    found = _of_type(type)
    return Gen(found.regex, found.choice, found.schema, found.stop, max_tokens, found.read)


def each(part: Any, *, least: int = 1, most: int = 20, separator: str = "\n") -> Each:
    """Returns a part that is repeated. Its value is a list.

    Args:
        part: as `template` takes it. separator: the text between two repetitions.
        least, most: the bounds on the number of repetitions.
    """
    for name, value in (("least", least), ("most", most)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"{name} is a whole number of at least 0, not {value!r}")
    if least > most or most == 0:
        raise ValueError(f"least={least} and most={most} leave nothing")
    if not isinstance(separator, str):
        raise TypeError(f"separator is a text, not {separator!r:.60}")
    return Each(_part(part, "each"), least, most, separator)


def select(*parts: Any) -> Select:
    """Returns one of several parts. Its value is the value of that part. A text stands for itself."""
    if len(parts) < 2:
        raise ValueError("select takes two parts or more: sg.select('yes', sg.template(...))")
    return Select(tuple(part if isinstance(part, str) else _part(part, "select") for part in parts))


def _part(part: Any, name: str) -> Any:
    if isinstance(part, Gen | Each | Select | Template):
        return part
    if isinstance(part, str | bytes | int | float | list | dict) and not isinstance(part, type):
        hint = "; texts to choose from are sg.gen(choice=[...])" if isinstance(part, list | str) else ""
        hint = "; a JSON Schema is sg.gen(schema=...)" if isinstance(part, dict) else hint
        raise TypeError(f"{name}= is a type, a gen, a template, an each or a select, not {part!r:.60}{hint}")
    return _of_type(part)


def _of_type(kind: Any) -> Gen:
    """Returns the gap of a Python type: plain text if the type has an obvious one, else JSON."""
    if kind is str:
        return Gen()
    if kind is int:
        return Gen(regex=_INTEGER, read=int)
    if kind is float:
        return Gen(regex=_NUMBER, read=float)
    if kind is bool:
        return Gen(choice=("true", "false"), read="true".__eq__)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        members = {member.value: member for member in kind}
        if all(isinstance(value, str) for value in members):
            return Gen(choice=tuple(members), read=members.__getitem__)
    if typing.get_origin(kind) is typing.Literal:
        values = typing.get_args(kind)
        if all(isinstance(value, str) for value in values):
            return Gen(choice=values)
    from .frontend.python_types import schema_of

    document, parse = schema_of(kind)
    return Gen(schema=document, read=_OfType(kind, parse))


class _OfType:
    """Reads a text as a Python type. A validator cannot be pickled, so an unpickled copy makes a new
    validator."""

    def __init__(self, kind: Any, parse: Callable[[str], Any] | None = None) -> None:
        self._kind, self._parse = kind, parse

    def __call__(self, text: str) -> Any:
        if self._parse is None:
            from .frontend.python_types import schema_of

            self._parse = schema_of(self._kind)[1]
        return self._parse(text)

    def __reduce__(self) -> tuple[Any, ...]:
        return _OfType, (self._kind,)


def _pairs(owner: Template) -> list[tuple[str, Any]]:
    return [piece for piece in owner.pieces if not isinstance(piece, str)]


def _about(part: Any) -> dict[str, Any]:
    if isinstance(part, Template):
        return part.document()
    if isinstance(part, Each):
        return {"type": "array", "items": _about(part.part)}
    if isinstance(part, Select):
        return {}
    if part.choice:
        return {"enum": list(part.choice)}
    if isinstance(part.schema, dict):
        return dict(part.schema)
    return {"type": {_INTEGER: "integer", _NUMBER: "number"}.get(part.regex, "string")}


class _Builder:
    """Turns parts into nodes. Each part is captured under its path, such as `.items.each.name`."""

    def __init__(self) -> None:
        self.b = _core.GrammarBuilder()
        self.count = 0

    def template(self, owner: Template, path: str) -> int:
        nodes = []
        for i, piece in enumerate(owner.pieces):
            if isinstance(piece, str):
                nodes.append(self.b.literal(piece.encode()))
                continue
            name, part = piece
            after = next((p for p in owner.pieces[i + 1 : i + 2] if isinstance(p, str)), "")
            nodes.append(self.named(part, f"{path}.{name}", after))
        return self.b.sequence(nodes)

    def named(self, part: Any, path: str, after: str) -> int:
        """Returns the node of a part, captured under its path. `after` is the text that follows the part."""
        self.count += 1
        if self.count > _MOST_RULES:
            raise GrammarError(f"a template has at most {_MOST_RULES} parts")
        node = self.part(part, path, after)
        rule = self.b.rule(f"part {path}")
        self.b.define(rule, node)
        return self.b.capture(path, self.b.call(rule))

    def part(self, part: Any, path: str, after: str) -> int:
        b = self.b
        if isinstance(part, Template):
            return self.template(part, path)
        if isinstance(part, Select):
            kids = [
                b.literal(kid.encode()) if isinstance(kid, str) else self.named(kid, f"{path}.{i}", after)
                for i, kid in enumerate(part.parts)
            ]
            return b.choice(kids)
        if isinstance(part, Each):
            behind = part.separator or after
            one = self.named(part.part, f"{path}.each", behind)
            rest = b.sequence([b.literal(part.separator.encode()), one])
            some = b.sequence([one, b.repeat(rest, max(0, part.least - 1), part.most - 1)])
            return some if part.least else b.choice([some, b.literal(b"")])
        try:
            node = self.gap(part, after)
        except GrammarError as error:
            error.message = f"the gap {path[1:]}: {error.message}"
            raise
        return node if part.max_tokens is None else b.limit(node, part.max_tokens, path[1:])

    def gap(self, part: Gen, after: str) -> int:
        b = self.b
        if part.regex is not None:
            return b.pattern(part.regex, ascii=True)
        if part.choice:
            return b.choice([b.literal(text.encode()) for text in part.choice])
        if part.schema is not None:
            text = json.dumps(part.schema)
            return b.json(text, [], "compact", False, "plain", True, True, 0, [])
        if part.stop is not None:
            return without(b, [part.stop])
        line = b.pattern(_LINE)
        # A line that contained the text behind the gap could be cut in several ways.
        first = after.split("\n")[0]
        return b.both([line, without(b, [first])]) if first else line


class _Reader:
    """Turns captures into values.

    The inner parts of a part are the captures of their paths within its span.
    """

    def __init__(self, data: bytes, spans: Spans) -> None:
        self.data = data
        self.spans = spans

    def template(self, owner: Template, path: str, start: int, end: int) -> dict[str, Any]:
        return {name: self.value(part, f"{path}.{name}", start, end) for name, part in _pairs(owner)}

    def value(self, part: Any, path: str, start: int, end: int) -> Any:
        """Returns the value of the one capture of a path within a span."""
        (span,) = self.within(path, start, end)
        return self.inside(part, path, span.start, span.end)

    def within(self, path: str, start: int, end: int) -> list[Capture]:
        return [c for c in self.spans.get(path, ()) if start <= c.start and c.end <= end]

    def inside(self, part: Any, path: str, start: int, end: int) -> Any:
        if isinstance(part, Template):
            return self.template(part, path, start, end)
        if isinstance(part, Each):
            found = self.within(f"{path}.each", start, end)
            return [self.inside(part.part, f"{path}.each", c.start, c.end) for c in found]
        text = self.data[start:end].decode()
        if isinstance(part, Select):
            for i, kid in enumerate(part.parts):
                if not isinstance(kid, str):
                    spans = self.within(f"{path}.{i}", start, end)
                    if any((c.start, c.end) == (start, end) for c in spans):
                        return self.inside(kid, f"{path}.{i}", start, end)
            return text
        return part.read(text)
