"""Structural tags: free text, and tags in it whose content is constrained.

In: the JSON that xgrammar and vLLM read, ``{"type": "structural_tag", "format": {...}}``, or the older
``{"structures": [{"begin", "schema", "end"}], "triggers": [...]}``. Out: nodes of a ``_core.GrammarBuilder``.
Cost: linear in the JSON; what a trigger does to free text is a regex per trigger.

If a trigger occurs in free text, one of the tags that begin with the trigger must follow. If a mark contains
the name of a special token of the vocabulary, this token may stand for the name.

The problem. A model talks freely, and from `<tool_call>` on it has to write a call. So free text must not
contain this mark and must not end in the middle of a tag, and the free text inside a tag must not go on past
the end of the tag.

The idea. A format is an object with a ``type``. `KINDS` has a row for each type: the method that returns its
node, and the names of its fields. `_Formats.format` checks the fields and calls the method; formats nest.
With

    {"type": "triggered_tags", "triggers": ["<f"],
     "tags": [{"begin": "<f>", "content": {"type": "regex", "pattern": "[0-9]+"}, "end": "</f>"}]}

    allowed      a < b      see <f>12</f> ok      <f>1</f><f>2</f>
    not allowed  see <fx (no tag begins so)       <f>x</f>

Ends. The content of a tag may be free text, and that text ends at the first end of the tag. `rest_of_tag`
therefore hands the ends to `closed`, which builds a format together with the end behind it. `closed` goes
down through sequences, choices and options to the format that stands last. A format further inside finds the
ends in `self.ends`, and its free text contains none of them.

Invariants.
- A field that a format does not know is an error, because an ignored field would be a constraint that is not
  kept.
- Every error has the path to the part at fault, such as ``#/format/tags/0``.
- Schemas get the caller's `JsonStyle` unless the format says otherwise.

Rejected: a separate reader of JSON Schema for arguments as elements (519 lines). It refused every keyword
that it did not know. The engine writes elements (elements.py).
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, cast

from .. import _core
from .._stack import roomy
from ..errors import GrammarError
from ..json_options import JsonStyle
from . import closing, elements, gbnf, python_calls, source
from .tool_lists import NAMED
from .whole_tokens import WholeTokens

if TYPE_CHECKING:
    from ..vocabulary import Vocabulary

_MOST = source.NO_LIMIT  # a larger bound is no bound
BLANKS = 4  # the most blanks between elements, by default
PLAIN = JsonStyle(numbers="plain", strings="plain")


@roomy
def build(spec: Any, vocabulary: Vocabulary, style: JsonStyle = PLAIN) -> tuple[_core.GrammarBuilder, int]:
    """Returns the grammar's nodes and the number of its first rule.

    Args:
        style: how JSON is written. A format may say otherwise (`any_order`, `max_whitespace_cnt`). Some
            formats forbid texts in strings (`excludes`, styles of elements). Strings then need escapes to
            write such a text, so `strings` is "any" there.

    Raises:
        GrammarError: with the path to the part at fault, as in ``#/format/tags/0``.
    """
    if isinstance(spec, (str, bytes)):
        try:
            spec = json.loads(spec)
        except ValueError as error:
            raise GrammarError(f"the structural tag is not JSON: {error}") from None
        except RecursionError:
            raise GrammarError("the structural tag nests too deeply") from None
    elif hasattr(spec, "model_dump"):
        spec = spec.model_dump(by_alias=True)
    if isinstance(spec, dict) and "structures" in spec:
        spec = _modern(spec)
    if isinstance(spec, dict) and spec.get("type") == "structural_tag":
        spec, path = spec.get("format"), "/format"
    else:
        path = ""
    b = _core.GrammarBuilder()
    rule = b.rule("structural_tag")
    b.define(rule, _Formats(b, vocabulary, style).format(spec, path))
    return b, rule


def _modern(spec: dict[str, Any]) -> dict[str, Any]:
    structures = spec["structures"]
    if not isinstance(structures, list) or not all(isinstance(s, dict) for s in structures):
        raise GrammarError("'structures' must be a list of objects (at #/structures)")
    tags = [
        {
            "begin": s.get("begin"),
            "content": {"type": "json_schema", "json_schema": s.get("schema")},
            "end": s.get("end"),
        }
        for s in structures
    ]
    return {"type": "triggered_tags", "triggers": spec.get("triggers"), "tags": tags}


def name_part(error: GrammarError, spec: Any, compiled: Callable[[Any], object]) -> None:
    """Finds the part whose schema alone causes the error, and puts the part's name in front of the message.
    Parts of tools have such names (`NAMED`)."""
    todo = deque([spec])
    while todo:
        node = todo.popleft()
        if isinstance(node, list):
            todo.extend(node)
        elif isinstance(node, dict):
            todo.extend(held for key, held in node.items() if key != "json_schema")
        if isinstance(node, dict) and isinstance(named := node.get(NAMED), str):
            try:
                compiled({**node, NAMED: None})
            except GrammarError as own:
                if own.message == error.message:
                    error.message = f"{named}: {error.message}"
                    error.args = (error.message,)
                    return


class _Inside:
    """A builder that writes the text of each lexeme as it stands in a JSON string."""

    def __init__(self, b: _core.GrammarBuilder) -> None:
        self._b = b

    def __getattr__(self, name: str) -> Any:
        if name in ("json", "tokens"):
            what = "a JSON Schema" if name == "json" else "a token"
            raise GrammarError(f"a grammar within a string cannot contain {what}")
        return getattr(self._b, name)

    def lexeme(self, *arguments: Any) -> int:
        make: Any = self._b.lexeme
        return int(make(*arguments, inside=True))


class _Formats:
    def __init__(self, b: _core.GrammarBuilder, vocabulary: Vocabulary, style: JsonStyle) -> None:
        self.b = b
        self.style = style
        self.vocabulary = vocabulary
        self.tokens = WholeTokens(b, vocabulary)
        self.spell = source.spelled(b, vocabulary)
        self.depth = 0
        self.ends: list[str] = []  # ends of the tag around: free text in it contains none of them
        self.end_tokens: list[int] = []

    def fail(self, message: str, path: str) -> NoReturn:
        raise GrammarError(f"{message} (at #{path})")

    def format(self, spec: Any, path: str) -> int:
        if not isinstance(spec, dict):
            self.fail("a format is an object with a 'type'", path)
        kind = spec.get("type") or ("tag" if "begin" in spec else None)
        if not isinstance(kind, str) or kind not in KINDS:
            names = ", ".join(KINDS)
            hint = source.meant(str(kind), KINDS) or f"; known: {names}"
            self.fail(f"'{kind}' is no format{hint}", path)
        self.known(spec, kind, path)
        self.depth += 1
        if self.depth > source.DEPTH:
            self.fail("formats nest too deeply", path)
        node = KINDS[kind].build(self, spec, path)
        self.depth -= 1
        return node

    # ---- fields ----

    def known(self, spec: dict[str, Any], kind: str, path: str) -> None:
        """Refuses unknown fields. An ignored field would be a constraint that is not kept."""
        names = (*KINDS[kind].fields, "type", *([NAMED] if kind == "json_schema" else []))
        for name in spec:
            if name not in names and spec[name] is not None:
                hint = source.meant(str(name), names)
                self.fail(f"'{name}' is no field of this format{hint}", path)

    def text(self, spec: dict[str, Any], name: str, path: str) -> str:
        value = spec.get(name)
        if not isinstance(value, str):
            self.fail(f"'{name}' must be a text", path)
        return source.sound(value)

    def texts(self, spec: dict[str, Any], name: str, path: str) -> list[str]:
        value = spec.get(name) or []
        if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
            self.fail(f"'{name}' must be a list of texts", path)
        return list(dict.fromkeys(map(source.sound, value)))

    def items(self, spec: dict[str, Any], name: str, path: str) -> list[Any]:
        value = spec.get(name)
        if not isinstance(value, list) or not value:
            self.fail(f"'{name}' must be a list with at least one entry", path)
        return value

    def token(self, value: Any, path: str) -> int:
        if isinstance(value, dict):
            value = value.get("token")
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            self.fail("a token is an id or a name", path)
        if isinstance(value, str):
            ordinary = (
                None if value in self.vocabulary.special_tokens else self.tokens.ordinary.get(value.encode())
            )
            if ordinary is not None:
                return ordinary
            return source.named_token(value, self.vocabulary, value, 0)
        if not 0 <= value < self.vocabulary.vocab_size:
            self.fail(f"token {value} is outside the vocabulary", path)
        return value

    # ---- formats ----

    def const_string(self, spec: dict[str, Any], path: str) -> int:
        return self.spell(self.text(spec, "value", path))

    def json_schema(self, spec: dict[str, Any], path: str) -> int:
        schema = spec.get("json_schema", spec.get("schema"))
        if isinstance(schema, str):
            try:
                schema = json.loads(schema)
            except (ValueError, RecursionError):
                self.fail("'json_schema' is a text that is not JSON", path)
        if not isinstance(schema, (dict, bool)):
            self.fail("'json_schema' must be a schema", path)
        most = self.count(spec, "max_whitespace_cnt", "blanks", path)
        unlimited = most is None and spec.get("max_whitespace_cnt") is not None
        style = "qwen_xml" if spec.get("type") == "qwen_xml_parameter" else spec.get("style", "json")
        blanks = _MOST if unlimited else BLANKS if most is None else most
        how = self.style
        if most is not None or unlimited:
            how = replace(how, whitespace=r"[ \n\t\r]*" if unlimited else rf"[ \n\t\r]{{0,{most}}}")
        if spec.get("any_order") is not None:
            how = replace(how, property_order="any" if spec["any_order"] else "schema")
        if not isinstance(style, str):
            self.fail("'style' must be a text", path)
        excludes = self.texts(spec, "excludes", path)
        row = elements.row_of(style)
        if style != "json" and row is None:
            known = ", ".join(("json", *elements.ELEMENT_STYLES))
            self.fail(f"style '{style}' is not supported; known: {known}", path)
        if row is not None and row.nested:
            if elements.asks_for_unique_items(schema):
                self.fail(f"'uniqueItems' cannot be written in {style}", path)
            schema = closing.closed_parameters(schema)
        python = row is not None and row.python
        if row is not None or excludes:  # such strings need escapes that plain strings exclude
            how = replace(how, strings="plain" if python else "any")
        part = self.schema(schema, how, excludes, python)
        if row is None:
            return part
        if python:
            return elements.build(self.b, part, row, self.spell, 0, python_calls.key_pattern(schema))
        for text in excludes:
            if text != text.strip():
                self.fail(f"{text!r} begins or ends with a blank and cannot be excluded in {style}", path)
            if row.entities and (
                set(text) & set("&;") or any(text in name for name in ("quot", "amp", "lt", "gt"))
            ):
                self.fail(f"{text!r} occurs in entities and cannot be excluded in {style}", path)
        # the style's keys have no quotes, and some readers take blanks as a part of a key
        blanks = 0 if row.ends[0] else blanks
        return elements.build(self.b, part, row, self.spell, blanks)

    def schema(
        self, schema: Any, how: JsonStyle, excludes: list[str] | None = None, python: bool = False
    ) -> int:
        try:
            text = json.dumps(schema)
        except RecursionError:
            raise GrammarError("the schema nests too deeply") from None
        return source.json_node(self.b, how, text, excludes or [], python)

    def grammar(self, spec: dict[str, Any], path: str) -> int:
        text = self.text(spec, "grammar", path)
        if source.is_ebnf(text):
            return self.b.call(gbnf.Parser(text, self.vocabulary, self.b).rules("root"))
        from . import lark

        front = lark.Frontend(self.b, self.vocabulary, style=self.style)
        return self.b.call(front.grammar(text, "start"))

    def json_string(self, spec: dict[str, Any], path: str) -> int:
        """Returns a string of JSON that holds a text of a Lark grammar."""
        from . import lark

        text = self.text(spec, "grammar", path)
        if source.is_ebnf(text):
            self.fail("a string holds the text of a Lark grammar, not of GBNF", path)
        inside = cast(_core.GrammarBuilder, _Inside(self.b))
        front = lark.Frontend(inside, self.vocabulary, style=self.style)
        quote = self.b.literal(b'"')
        return self.b.sequence([quote, self.b.call(front.grammar(text, "start")), quote])

    def regex(self, spec: dict[str, Any], path: str) -> int:
        node = self.b.pattern(self.text(spec, "pattern", path), ascii=True)
        excludes = self.texts(spec, "excludes", path)
        return self.b.both([node, source.without(self.b, excludes)]) if excludes else node

    def any_text(self, spec: dict[str, Any], path: str) -> int:
        ends = self.ends
        excludes = [e for e in self.texts(spec, "excludes", path) if e not in ends]
        return self.counted(source.without(self.b, [*ends, *excludes]), spec, path)

    def counted(self, node: int, spec: dict[str, Any], path: str) -> int:
        """Returns the texts of a node within `max_chars` and `max_tokens` of a format of free text."""
        most = self.count(spec, "max_chars", "characters", path)
        if most is not None:
            node = source.at_most(self.b, node, most)
        return self.limited(node, spec, path)

    def limited(self, node: int, spec: dict[str, Any], path: str) -> int:
        most = self.count(spec, "max_tokens", "tokens", path)
        if most is None:
            return node
        return self.b.limit(node, most, f"format #{path}") if most > 0 else self.b.literal(b"")

    def count(self, spec: dict[str, Any], name: str, what: str, path: str) -> int | None:
        most: Any = spec.get(name)
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 0):
            self.fail(f"'{name}' is a number of {what}", path)
        return None if most is None or most >= _MOST else most

    def token_format(self, spec: dict[str, Any], path: str) -> int:
        return self.tokens.one_of([self.token(spec, path)], f"token #{path}")

    def any_token(self, spec: dict[str, Any], path: str, single: bool = False) -> int:
        ids = [*(self.token(t, path) for t in spec.get("exclude_tokens") or []), *self.end_tokens]
        name = f"token #{path}"
        node = self.tokens.but(ids, name) if single else self.tokens.any_but(ids, name)
        return self.limited(node, spec, path)

    def entries(self, spec: dict[str, Any], name: str, path: str) -> list[tuple[Any, str]]:
        """Returns the entries of a list, each with its place."""
        return [(one, f"{path}/{name}/{i}") for i, one in enumerate(self.items(spec, name, path))]

    def sequence(self, spec: dict[str, Any], path: str) -> int:
        return self.b.sequence([self.format(*one) for one in self.entries(spec, "elements", path)])

    def either(self, spec: dict[str, Any], path: str) -> int:
        return self.b.choice([self.format(*one) for one in self.entries(spec, "elements", path)])

    def repeat(self, spec: dict[str, Any], path: str) -> int:
        bounds = {"optional": (0, 1), "plus": (1, -1), "star": (0, -1)}
        least, most = bounds.get(spec["type"], (spec.get("min", 0), spec.get("max", -1)))
        numbers = all(isinstance(n, int) and not isinstance(n, bool) for n in (least, most))
        if not numbers or least < 0 or most < -1 or 0 <= most < least:
            self.fail("'min' and 'max' are the bounds of a repetition; a 'max' of -1 is none", path)
        if max(least, most) > source.MOST:
            self.fail(source.TOO_MANY, path)
        return self.b.repeat(self.format(spec.get("content"), f"{path}/content"), least, most)

    def tag(self, spec: dict[str, Any], path: str) -> int:
        begin = spec.get("begin")
        start = (
            self.tokens.one_of([self.token(begin, path)], f"token #{path}")
            if isinstance(begin, dict)
            else self.spell(self.text(spec, "begin", path))
        )
        return self.b.sequence([start, self.rest_of_tag(spec, path)])

    def tag_fields(self, tag: Any, path: str) -> None:
        if not isinstance(tag, dict):
            self.fail("a tag is an object with 'begin', 'content' and 'end'", path)
        self.known(tag, "tag", path)

    def rest_of_tag(self, spec: dict[str, Any], path: str) -> int:
        """Returns the content and the end of a tag. Free text in the content stops at the first end."""
        end, content = spec.get("end", ""), spec.get("content", {"type": "any_text"})
        texts = end if isinstance(end, list) else [end]
        tokens = [self.token(end, path)] if isinstance(end, dict) else []
        if not tokens and not (texts and all(isinstance(e, str) for e in texts)):
            self.fail("'end' must be a text, a list of texts or a token", path)
        if isinstance(end, list) and "" in end:
            self.fail("'end' must be a text, a list of texts or a token", path)
        ends = [] if tokens else list(dict.fromkeys(source.sound(e) for e in texts if e))
        outer, self.ends, self.end_tokens = (self.ends, self.end_tokens), ends, tokens
        at = f"{path}/content"
        if ends:
            node = self.closed(content, at, ends)
        else:
            inner = self.format(content, at)
            node = self.b.sequence([inner, self.tokens.one_of(tokens, f"token #{path}")]) if tokens else inner
        self.ends, self.end_tokens = outer
        return node

    def closed(self, spec: Any, path: str, ends: list[str]) -> int:
        """Returns a format and one of the ends behind it.

        If free text stands before the end, the end is the first of `ends` that occurs in the text.
        """
        b = self.b
        last = b.choice([self.spell(e) for e in ends])
        kind = spec.get("type") if isinstance(spec, dict) else None
        if kind == "any_text":
            self.known(spec, kind, path)
            excludes = [e for e in self.texts(spec, "excludes", path) if e not in ends]
            if spec.get("max_tokens") is not None or spec.get("max_chars") is not None:
                free = source.without(b, [*ends, *excludes])
                ways = []
                for e in ends:
                    if any(other in e[:-1] for other in ends):
                        continue  # another end is complete before this one
                    text = source.not_ending(b, free, source.early(e, ends))
                    ways.append(b.sequence([self.counted(text, spec, path), self.spell(e)]))
                return b.choice(ways)
            return gbnf.dispatch(b, [], stops=ends, excludes=excludes, may_end=False, spell=self.spell)
        if kind in ("triggered_tags", "dispatch"):
            self.known(spec, kind, path)
            build = self.triggered if kind == "triggered_tags" else self.dispatched
            return build(spec, path, ends)
        if kind in ("sequence", "or", "optional"):
            self.known(spec, kind, path)
            self.depth += 1
            if self.depth > source.DEPTH:
                self.fail("formats nest too deeply", path)
            if kind == "optional":
                node = b.choice([last, self.closed(spec.get("content"), f"{path}/content", ends)])
            else:
                elements = self.entries(spec, "elements", path)
                if kind == "or":
                    node = b.choice([self.closed(*one, ends) for one in elements])
                else:
                    first = [self.format(*one) for one in elements[:-1]]
                    node = b.sequence([*first, self.closed(*elements[-1], ends)])
            self.depth -= 1
            return node
        return b.sequence([self.format(spec, path), last])

    def triggered(self, spec: dict[str, Any], path: str, ends: list[str] | None = None) -> int:
        triggers = self.texts(spec, "triggers", path)
        if not triggers:
            self.fail("'triggers' must be a list of texts", path)
        pairs: list[tuple[str, int]] = []
        whole: list[int] = []
        known, lengths = set(triggers), sorted({len(t) for t in triggers})
        for tag, at in self.entries(spec, "tags", path):
            self.tag_fields(tag, at)
            begin = self.text(tag, "begin", at)
            fitting = [begin[:k] for k in lengths if k <= len(begin) and begin[:k] in known]
            if not fitting:
                self.fail(f"the tag begins with {begin!r}, but no trigger does", at)
            if len(fitting) > 1:
                self.fail(f"the tag begins with several triggers: {fitting}", at)
            rest = self.rest_of_tag(tag, at)
            pairs.append((fitting[0], self.b.sequence([self.spell(begin[len(fitting[0]) :]), rest])))
            whole.append(self.b.sequence([self.spell(begin), rest]))
        first, last = bool(spec.get("at_least_one")), bool(spec.get("stop_after_first"))
        if first and last:  # the text is one tag, as in xgrammar
            closing = [self.b.choice([self.spell(e) for e in ends])] if ends else []
            return self.b.sequence([self.b.choice(whole), *closing])
        free = self.dispatch(spec, pairs, not last, path, ends)
        return self.b.sequence([self.b.choice(whole), free]) if first else free

    def dispatch(
        self,
        spec: dict[str, Any],
        pairs: list[tuple[str, int]],
        loop: bool,
        path: str,
        ends: list[str] | None,
    ) -> int:
        """Returns the node of free text with tags in it. With `ends` the node includes the end that closes
        the text."""
        b = self.b
        outer = ends or self.ends
        excludes = [e for e in self.texts(spec, "excludes", path) if e not in outer]
        if ends:
            if not loop:
                last = b.choice([self.spell(e) for e in ends])
                pairs = [(tag, b.sequence([node, last])) for tag, node in pairs]
            return gbnf.dispatch(
                b, pairs, stops=ends, excludes=excludes, loop=loop, may_end=False, spell=self.spell
            )
        return gbnf.dispatch(b, pairs, excludes=[*outer, *excludes], loop=loop, spell=self.spell)

    def dispatched(self, spec: dict[str, Any], path: str, ends: list[str] | None = None) -> int:
        pairs = []
        for rule, at in self.entries(spec, "rules", path):
            first, content = rule if isinstance(rule, (list, tuple)) and len(rule) == 2 else (None, None)
            if not isinstance(first, str) or not first:
                self.fail("a rule is a pair of a text and a format", at)
            pairs.append((source.sound(first), self.format(content, f"{at}/1")))
        return self.dispatch(spec, pairs, bool(spec.get("loop", True)), path, ends)

    def separated(self, spec: dict[str, Any], path: str) -> int:
        one = self.b.choice([self.format(*tag) for tag in self.entries(spec, "tags", path)])
        if spec.get("stop_after_first"):
            some = one
        else:
            more = self.b.sequence([self.spell(self.text(spec, "separator", path)), one])
            some = self.b.sequence([one, self.b.repeat(more, 0, -1)])
        return some if spec.get("at_least_one") else self.b.repeat(some, 0, 1)

    def by_token(self, spec: dict[str, Any], path: str) -> int:
        """Returns the node of any tokens up to one of the triggers, then the content of this trigger."""
        pairs: list[tuple[int, int]] = []
        if spec["type"] == "token_dispatch":
            for rule, at in self.entries(spec, "rules", path):
                if not isinstance(rule, (list, tuple)) or len(rule) != 2:
                    self.fail("a rule is a pair of a token and a format", at)
                pairs.append((self.token(rule[0], at), self.format(rule[1], f"{at}/1")))
        else:
            for tag, at in self.entries(spec, "tags", path):
                self.tag_fields(tag, at)
                pairs.append((self.token(tag.get("begin"), at), self.rest_of_tag(tag, at)))
        triggers = [self.token(t, path) for t in spec.get("trigger_tokens") or [p[0] for p in pairs]]
        excluded = [self.token(t, path) for t in spec.get("exclude_tokens") or []]
        free = self.any_token({"exclude_tokens": [*triggers, *excluded]}, path)
        last = bool(spec.get("stop_after_first")) or spec.get("loop") is False
        at_least_one = bool(spec.get("at_least_one"))
        return self.tokens.dispatch(free, pairs, not last, f"token #{path}", at_least_one)


class FormatKind:
    """A type of format: the method that builds it, and its fields."""

    def __init__(self, build: Callable[[_Formats, dict[str, Any], str], int], *fields: str) -> None:
        self.build = build
        self.fields = fields


KINDS = {
    "const_string": FormatKind(_Formats.const_string, "value"),
    "json_schema": FormatKind(
        _Formats.json_schema, "json_schema", "schema", "style", "any_order", "max_whitespace_cnt", "excludes"
    ),
    "qwen_xml_parameter": FormatKind(_Formats.json_schema, "json_schema", "schema"),
    "grammar": FormatKind(_Formats.grammar, "grammar"),
    "json_string": FormatKind(_Formats.json_string, "grammar"),
    "regex": FormatKind(_Formats.regex, "pattern", "excludes"),
    "any_text": FormatKind(_Formats.any_text, "excludes", "max_tokens", "max_chars"),
    "token": FormatKind(_Formats.token_format, "token"),
    "exclude_token": FormatKind(
        lambda self, spec, path: self.any_token(spec, path, True), "exclude_tokens", "max_tokens"
    ),
    "any_tokens": FormatKind(_Formats.any_token, "exclude_tokens", "max_tokens"),
    "sequence": FormatKind(_Formats.sequence, "elements"),
    "or": FormatKind(_Formats.either, "elements"),
    "optional": FormatKind(_Formats.repeat, "content"),
    "plus": FormatKind(_Formats.repeat, "content"),
    "star": FormatKind(_Formats.repeat, "content"),
    "repeat": FormatKind(_Formats.repeat, "content", "min", "max"),
    "tag": FormatKind(_Formats.tag, "begin", "content", "end"),
    "triggered_tags": FormatKind(
        _Formats.triggered, "triggers", "tags", "at_least_one", "stop_after_first", "excludes"
    ),
    "tags_with_separator": FormatKind(
        _Formats.separated, "tags", "separator", "at_least_one", "stop_after_first"
    ),
    "dispatch": FormatKind(_Formats.dispatched, "rules", "loop", "excludes"),
    "token_dispatch": FormatKind(_Formats.by_token, "rules", "loop", "exclude_tokens"),
    "token_triggered_tags": FormatKind(
        _Formats.by_token, "trigger_tokens", "tags", "exclude_tokens", "at_least_one", "stop_after_first"
    ),
}
