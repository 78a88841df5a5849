"""Explains why a text is refused: the place, the keywords that forbid it, what could stand there.

In: a schema, the options of its compile, and a text. Out: an `Explanation`. Cost: at most `_TRIES` compiles
and `_SECONDS` seconds; a compile of a small schema takes a tenth of a millisecond.

The problem. The engine says where a text stops being an instance. It cannot say why: a mask is made of a
formula that combines all keywords.

The idea. The engine is asked again, about smaller schemas. If the text gets further (`_Search.goes_on`)
without a keyword, this keyword was a cause. A minimal set of causes is found by halving (QuickXplain: Junker,
AAAI 2004) and refined from each schema to its parts, so that huge schemas cost a few compiles a level. For

    {"properties": {"a": {"type": "integer", "maximum": 20}, "b": {"minLength": 1}}}      and  {"a":21}

the text stops at byte 6, the digit 1, and these schemas are compiled:

    properties with open members       goes on: the cause is in `properties`
    both members open                  goes on: it is in a member
    `a` open                           goes on: it is in `a`; members named on the way to the place come first
    `a` without type and maximum       goes on
    `a` without type                   stops
    `a` without maximum                goes on: `maximum` is the cause

A part is taken out in one of three ways: a keyword is dropped, a schema is opened (`{}`, which allows
everything), a map or list is made hollow (all its schemas are opened). Open schemas stay where they are,
because `additionalProperties` and `unevaluatedProperties` depend on the names beside them.

Cheaper reasons are checked first: a repeated key, the order of keys, whitespace, numbers and strings in
another spelling, text that is not JSON.

Invariants.
- Without all the causes the text gets further; if any cause stays, the text stops at the same place. If
  tries or time run out, the explanation names the part that contains the causes.
- Keywords that assert nothing are never taken out (`_SILENT`).
- A reference that leads back into itself is followed once.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack, cast

from ._json_scan import Scan, no_constant
from ._pointers import Path, led, pointer_of, value_at
from ._readable import allowed_here, place, table_html, visible
from ._stack import roomy
from .errors import StructgenError
from .frontend.text_patterns import SAID
from .json_options import JsonArguments, JsonOptions
from .keywords import ASSERTING, HOLDS, KNOWN
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from .compiler import Compiler
    from .conditions import Condition
    from .grammar import CompiledGrammar

_TRIES = 1500  # compilations for one explanation
_SECONDS = 3.0  # After so many seconds the search ends with the causes found so far.
_BRANCHES = 4  # the most branches of an anyOf or oneOf that are explained
_SHOWN = 100  # the most characters of a keyword's value that are shown

_COMMA = re.compile(rb'\s*,\s*"')

# Keywords by the form of the schemas in their value. Each of these inner schemas can be a cause by itself.
_MAPS = tuple(name for name, how in HOLDS.items() if how == "map")
_BRANCHING = ("anyOf", "oneOf")
_LISTS = tuple(name for name, how in HOLDS.items() if how == "list" and name not in _BRANCHING)
_SCHEMAS = tuple(
    name
    for name, how in HOLDS.items()
    if how in ("schema", "either") and name not in ("not", "if", "contains")
)
_NAMES = ("required",)
_SILENT = frozenset(KNOWN) - frozenset(ASSERTING)


@dataclass(frozen=True, slots=True)
class Cause:
    """A keyword that forbids the text.

    `pointer` is the JSON pointer of the keyword in the schema. For a union (`anyOf`, `oneOf`) `branches`
    has the causes inside each branch that was looked at.
    """

    pointer: str
    keyword: str
    message: str
    branches: tuple[tuple[Cause, ...], ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, indent: str = "") -> Iterator[str]:
        yield f"{indent}#{self.pointer}: {self.message}"
        for causes in self.branches:
            for cause in causes:
                yield from cause.lines(indent + "  ")


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a text stops being an instance, and why.

    `offset` counts bytes; `line` and `column` count from 1. `instance` is the JSON pointer of the value that
    was being read; inside a key it is the pointer of the object. `kind` is one of keyword, order, duplicate
    key, not JSON, whitespace, number, string, condition, ends early (the text is the beginning of an
    instance). `problem` is the reason in one line. `allowed` says what may come next at the place.
    """

    offset: int
    line: int
    column: int
    instance: str
    kind: str
    problem: str
    causes: tuple[Cause, ...]
    allowed: str

    def _repr_html_(self) -> str:
        rows = {
            "place": f"line {self.line}, column {self.column} (byte {self.offset}), in #{self.instance}",
            "problem": self.problem,
            "allowed": self.allowed,
        }
        return table_html("Explanation", "\n".join(map(str, self.causes)), rows)

    def __str__(self) -> str:
        out = [
            f"line {self.line}, column {self.column} (byte {self.offset}), "
            f"in #{self.instance}: {self.problem}"
        ]
        for cause in self.causes:
            out += cause.lines("  ")
        return "\n".join([*out, f"  allowed: {self.allowed}"])


@roomy
def explain(
    kind: type[Compiler],
    schema: Any,
    text: str | bytes,
    **options: Unpack[JsonArguments],
) -> Explanation | None:
    """Says why a text is no instance; None if it is one. The options are those of `Compiler.json_schema`.

    `kind` is the class `Compiler`. It is an argument, because an import would be circular: grammars explain
    their texts, and the compiler makes grammars.

    Raises:
        GrammarError and its subclasses: the schema itself does not compile.
    """
    document = _document(schema)
    return _Search(
        kind,
        schema,
        document,
        JsonOptions.of(options).arguments(),
        text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text),
    ).run()


def explain_condition(
    grammar: CompiledGrammar, plain: CompiledGrammar, condition: Condition, text: str | bytes
) -> Explanation | None:
    """Says why a text is not in `grammar`, which is ``plain & condition``; None if it is.

    Returns:
        The place after which no text of the grammar goes on, and the parts of the condition that fail.
    """
    whole = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    matcher = grammar.matcher()
    at = matcher.validate_bytes(whole)
    matcher.accept_bytes(whole[:at])
    if at == len(whole) and matcher.is_accepting():
        return None
    broken = [str(part) for part in condition._all() if not (plain & part)._holds(whole)]
    where = place(whole, at)
    return Explanation(
        at,
        where.line,
        where.column,
        reading_at(whole[:at])[0],
        "condition",
        f"the text does not meet the condition: {' & '.join(broken) or condition}",
        (),
        allowed_here(matcher),
    )


def reading_at(before: bytes) -> tuple[str, bool]:
    """Returns where in a JSON document the text so far ends.

    Returns:
        The pointer of the value that is being read, or of the object if a key is being read or comes next;
        whether the place is inside a key.
    """
    path, _, in_key = _scanned(before)
    return pointer_of(path), in_key


def _document(schema: Any) -> Any:
    if isinstance(schema, (str, bytes)):
        return json.loads(schema)
    if isinstance(schema, (dict, bool)):
        return schema
    from .frontend.python_types import schema_of

    return schema_of(schema)[0]


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


# ---- parts of a schema that can be taken out ----------------------------------------------------

# How a part is taken out: "drop" removes a keyword, "open" replaces a schema by one that allows everything,
# "hollow" opens all schemas of a map or a list.
_DROP, _OPEN, _HOLLOW = "drop", "open", "hollow"


@dataclass(frozen=True, slots=True)
class _Part:
    path: Path
    how: str

    @property
    def keyword(self) -> str:
        return str(self.path[-1]) if self.path else ""


def _without(document: Any, parts: list[_Part]) -> Any:
    """Returns a copy of the document without the parts. Both share the parts that do not change."""
    if any(not part.path for part in parts):
        return {}
    tree: dict[Any, Any] = {}
    for part in parts:
        here = tree
        for step in part.path[:-1]:
            here = here.setdefault(step, {})
            if not isinstance(here, dict):
                break
        else:
            here[part.path[-1]] = part.how
    return _pruned(document, tree)


def _pruned(value: Any, tree: dict[Any, Any]) -> Any:
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    out = []
    for key, held in items:
        change = tree.get(key)
        if change == _DROP:
            continue
        if change == _OPEN:
            held = {}
        elif change == _HOLLOW:
            held = dict.fromkeys(held, {}) if isinstance(held, dict) else [{}] * len(held)
        elif change is not None:
            held = _pruned(held, change)
        out.append((key, held))
    return dict(out) if isinstance(value, dict) else [held for _, held in out]


def _rank(keyword: str, schema: dict[str, Any]) -> int:
    if keyword in ("contains", "if"):
        return 3
    if keyword in ("minimum", "maximum"):  # In draft 4, the boolean that excludes the bound is tried first.
        return 2 if schema.get("exclusive" + keyword.capitalize()) is True else 0
    return 1 if keyword in (*_MAPS, *_LISTS, *_SCHEMAS, *_BRANCHING, "$ref", "$dynamicRef") else 0


_REST_OF_NUMBER = re.compile(rb"[0-9+\-.eE]*")


class _Search:
    """The search for one explanation."""

    def __init__(
        self, kind: type[Compiler], schema: Any, document: Any, options: dict[str, Any], text: bytes
    ) -> None:
        vocabulary = Vocabulary.from_bytes([bytes([b]) for b in range(256)] + [b""], eos_token_ids=256)
        self.compiler = kind(vocabulary, cache_bytes=32 << 20)
        self.schema = schema
        self.document = document
        self.options = options
        self.text = text
        self.at = 0
        self.instance: Path = ()
        self.tries = 0
        self.until = time.thread_time() + _SECONDS

    def run(self) -> Explanation | None:
        grammar = self.compiler.json_schema(self.schema, **self.options)
        matcher = grammar.matcher()
        self.at = matcher.validate_bytes(self.text)
        matcher.accept_bytes(self.text[: self.at])
        if self.at == len(self.text) and matcher.is_accepting():
            return None
        self.instance, keys, in_key = _scanned(self.text[: self.at])
        twice = _key_again(self.text, self.at, keys, in_key)
        if twice is not None:
            problem = f"the key {_shown(twice)} stands twice in one object"
            kind, causes = "duplicate key", cast(tuple[Cause, ...], ())
        else:
            kind, problem, causes = self.reason()
        where = place(self.text, self.at)
        return Explanation(
            self.at,
            where.line,
            where.column,
            pointer_of(self.instance),
            kind,
            problem,
            causes,
            allowed_here(matcher),
        )

    def reason(self) -> tuple[str, str, tuple[Cause, ...]]:
        if self.options["property_order"] == "schema" and self.goes_on(self.schema, property_order="any"):
            return "order", "this key may not come here: keys come in the order of `properties`", ()
        if not self.goes_on({}):
            return self.no_schema()
        rest = _REST_OF_NUMBER.match(self.text, self.at)
        # The text has to get past the number: `1.5` alone could go on as `1.5e1`, which is an integer.
        until = rest.end() + 1 if rest and rest.group() else 0
        if self.options["numbers"] != "any" and self.goes_on(self.schema, until, numbers="any"):
            return self.other_number()
        causes = tuple(self.refined([], _Part((), _DROP), frozenset()))
        if len(causes) == 1:
            return "keyword", f"`{causes[0].keyword}` forbids what stands here", causes
        return "keyword", "several keywords together forbid what stands here", causes

    def other_number(self) -> tuple[str, str, tuple[Cause, ...]]:
        return (
            "number",
            f"numbers={self.options['numbers'] or 'plain'!r} writes this number in another way",
            (),
        )

    def no_schema(self) -> tuple[str, str, tuple[Cause, ...]]:
        """Returns the reason if even the schema that allows everything refuses the text."""
        if self.goes_on({}, whitespace="flexible"):
            return "whitespace", f"no such gap with whitespace={self.options['whitespace']!r}", ()
        if self.goes_on({}, whitespace="flexible", numbers="any"):
            return self.other_number()
        if self.goes_on({}, whitespace="flexible", numbers="any", strings="any"):
            return "string", "strings='plain' writes this string in another way", ()
        if self.at == len(self.text):
            return "ends early", "the text ends too early", ()
        try:
            value = json.loads(self.text, parse_constant=no_constant)
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return "not JSON", "half of a surrogate pair is no character", ()
        except (ValueError, RecursionError) as error:
            return "not JSON", f"invalid JSON: {getattr(error, 'msg', error)}", ()
        if self.text != self.text.strip(b" \t\r\n"):
            return "whitespace", "no whitespace may stand before or after the text", ()
        return "not JSON", "more whitespace in a row than a gap may have", ()

    # ---- the minimal set ----

    def goes_on(self, document: Any, until: int = 0, **options: Any) -> bool:
        """Does this document let the text get further than the schema did, and at least to `until`?

        If the text stopped at its end, or if `until` is past its end, the text also has to be complete.
        """
        self.tries += 1
        try:
            matcher = self.compiler.json_schema(document, **{**self.options, **options}).matcher()
            length = matcher.validate_bytes(self.text)
            if self.at < len(self.text) and until <= len(self.text):
                return length >= max(self.at + 1, until)
            return length == len(self.text) and matcher.accept_bytes(self.text) and matcher.is_accepting()
        except (StructgenError, RecursionError):
            return False

    def spent(self) -> bool:
        return self.tries >= _TRIES or time.thread_time() > self.until

    def without(self, parts: list[_Part]) -> bool:
        if self.spent():
            return False
        try:
            return self.goes_on(_without(self.document, parts))
        except (LookupError, TypeError):  # The part lies inside another part that was taken out.
            return False

    def minimal(self, base: list[_Part], parts: list[_Part]) -> list[_Part]:
        """Returns a smallest sublist of `parts` that has to be taken out, besides `base`, to let the text go
        on."""
        if self.without(base):
            return []
        if len(parts) == 1:
            return parts
        left, right = parts[: len(parts) // 2], parts[len(parts) // 2 :]
        of_right = self.minimal(base + left, right)
        of_left = self.minimal(base + of_right, left)
        return of_left + of_right

    def refined(self, base: list[_Part], part: _Part, passed: frozenset[Path]) -> list[Cause]:
        """Returns the causes inside a part. `base` is taken out as well; `passed` are the references on the
        way."""
        found = value_at(self.document, part.path)
        if part.keyword in _BRANCHING and self.is_keyword(part) and isinstance(found, list):
            return [self.union(base, part, found, passed)]
        target = self.target(found) if part.keyword == "$ref" and self.is_keyword(part) else None
        if target in passed:
            return [self.cause(part, found)]
        passed = passed if target is None else passed | {target}
        inner = list(self.parts_of(part, found))
        if not inner or not self.without(base + inner):
            return [self.cause(part, found)]
        chosen = self.minimal(base, inner)
        if self.spent():  # The search was cut short, so `chosen` may contain more than the causes.
            return [self.cause(part, found)]
        out: list[Cause] = []
        for one in chosen:
            others = [other for other in chosen if other is not one]
            out += self.refined(base + others, one, passed)
        return out

    def union(self, base: list[_Part], part: _Part, branches: list[Any], passed: frozenset[Path]) -> Cause:
        looked: list[tuple[Cause, ...]] = []
        for i in range(len(branches)):
            branch = _Part((*part.path, i), _OPEN)
            if self.without([*base, branch]):
                looked.append(tuple(self.refined(base, branch, passed)))
        # The branch with the fewest causes is probably the one that the author of the text meant.
        looked.sort(key=len)
        if not looked and part.keyword == "oneOf":
            return Cause(pointer_of(part.path), "oneOf", "more than one branch of `oneOf` would hold")
        message = f"none of the {len(branches)} branches of `{part.keyword}` allows it"
        return Cause(pointer_of(part.path), part.keyword, message, tuple(looked[:_BRANCHES]))

    # ---- the schema's shape ----

    def is_keyword(self, part: _Part) -> bool:
        """Does the part's path end with a keyword? It may also end with a name in a map of schemas."""
        return part.how != _OPEN and not (len(part.path) > 1 and part.path[-2] in _MAPS)

    def parts_of(self, part: _Part, found: Any) -> Iterator[_Part]:
        if part.how == _OPEN or not part.path:
            yield from self.keywords(part.path, found)
            return
        keyword = part.keyword
        if keyword in _MAPS or keyword in _LISTS or (keyword == "items" and isinstance(found, list)):
            if isinstance(found, dict):  # The keys on the path to the refused place are tried first.
                near = {name: i for i, name in enumerate(self.instance)}
                names = sorted(found, key=lambda name: -near.get(name, -1))
                yield from (_Part((*part.path, name), _OPEN) for name in names)
            elif isinstance(found, list):
                yield from (_Part((*part.path, i), _OPEN) for i in range(len(found)))
        elif keyword in _SCHEMAS and isinstance(found, dict):
            yield from self.keywords(part.path, found)
        elif keyword in _NAMES and isinstance(found, list):
            yield from (_Part((*part.path, i), _DROP) for i in range(len(found)))
        elif keyword in ("dependentRequired", "dependencies") and isinstance(found, dict):
            for name, then in found.items():
                yield _Part((*part.path, name), _DROP if isinstance(then, list) else _OPEN)
        elif keyword == "$ref" and isinstance(found, str):
            target = self.target(found)
            if target is not None:
                yield from self.keywords(target, value_at(self.document, target))

    def keywords(self, path: Path, schema: Any) -> Iterator[_Part]:
        if not isinstance(schema, dict):
            return
        # If several keywords could each be taken out alone, the first one counts as the cause. So assertions
        # come before keywords that hold schemas, and keywords that others depend on come last.
        for keyword in sorted(schema, key=lambda k: _rank(k, schema)):
            held = schema[keyword]
            if keyword in _SILENT:
                continue
            hollow = (
                keyword in _MAPS
                or keyword == "prefixItems"
                or (keyword == "items" and isinstance(held, list))
            )
            yield _Part((*path, keyword), _HOLLOW if hollow else _DROP)

    def target(self, reference: Any) -> Path | None:
        """Returns the path that a reference inside this document leads to."""
        found = led(self.document, reference)
        return found[0] if found is not None and isinstance(found[1], dict) else None

    # ---- words ----

    def cause(self, part: _Part, found: Any) -> Cause:
        path = part.path
        if not path:
            return Cause("", "", "the schema as a whole forbids it")
        if len(path) > 1 and path[-2] in _NAMES and isinstance(path[-1], int):
            return Cause(pointer_of(path[:-1]), str(path[-2]), f"the key {_shown(found)} is missing")
        if part.how == _OPEN:
            what = "allows no value" if found is False else "does not allow it"
            keyword = next(
                (str(step) for step in reversed(path[:-1]) if isinstance(step, str)), str(path[-1])
            )
            return Cause(pointer_of(path), keyword, f"the schema here {what}")
        keyword = part.keyword
        if len(path) > 1 and path[-2] in ("dependentRequired", "dependencies"):
            message = f"with the key {_shown(keyword)}, {_shown(found)} must be there as well"
            return Cause(pointer_of(path), str(path[-2]), message)
        beside = value_at(self.document, path[:-1])
        said = beside.get("$comment") if isinstance(beside, dict) else None
        if keyword in ("pattern", "not") and isinstance(said, str) and said.startswith(SAID):
            return Cause(pointer_of(path), keyword, f"`{keyword}`: must be {said.removeprefix(SAID)}")
        return Cause(pointer_of(path), keyword, _said(keyword, found))


_WORDS = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be above {}",
    "exclusiveMaximum": "must be below {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "pattern": "must match {}",
    "format": "must have the format {}",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "minProperties": "must have at least {} members",
    "maxProperties": "must have at most {} members",
    "const": "must be {}",
    "enum": "must be one of {}",
    "required": "must have the keys {}",
    "contains": "must have an item that satisfies {}",
    "minContains": "must have at least {} items that satisfy `contains`",
    "maxContains": "must have at most {} items that satisfy `contains`",
    "not": "must not satisfy {}",
    "propertyNames": "must have keys that satisfy {}",
    "x-structgen-content": "must hold the JSON text of {}",
    "if": "must satisfy `then` or `else`, as decided by {}",
}

_KINDS = {
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
    "null": "null",
    "object": "an object",
    "array": "an array",
}


def _said(keyword: str, found: Any) -> str:
    if keyword == "uniqueItems":
        return "`uniqueItems`: must have items that differ from each other"
    if found is False:
        more = {
            "additionalProperties": "must have no keys but the named ones",
            "unevaluatedProperties": "must have no keys but the evaluated ones",
            "items": "must have no items here",
            "additionalItems": "must have no items after the listed ones",
            "unevaluatedItems": "must have no items but the evaluated ones",
            "propertyNames": "must have no keys at all",
            "contains": "must have an item that satisfies `false`, and none does",
        }
        return f"`{keyword}`: {more.get(keyword, 'allows no value')}"
    if keyword == "type":
        kinds = found if isinstance(found, list) else [found]
        return f"`type`: must be {' or '.join(_KINDS.get(str(kind), _shown(kind)) for kind in kinds)}"
    if keyword in _WORDS:
        return f"`{keyword}`: " + _WORDS[keyword].format(_shown(found))
    return f"`{keyword}` does not allow it: {_shown(found)}"


# ---- the instance -------------------------------------------------------------------------------


def _scanned(before: bytes) -> tuple[Path, set[str], bool]:
    """Returns where `before` ends.

    Returns:
        The path of the value that is being read, the keys that its object has so far (none in an array), and
        whether the place is inside a key.
    """
    scan = Scan(before.decode("utf-8", "replace"))
    keys: list[set[str]] = [set()]  # the keys of each open container
    in_key = False
    for part in scan:
        if part.kind == "open":
            keys.append(set())
        elif part.kind == "close":
            keys.pop()
        elif part.kind == "key":
            in_key = not part.whole
            if part.whole:
                keys[-1].add(part.text)
    path = scan.path[:-1] if None in scan.path[-1:] else scan.path  # None stands for a key that comes next.
    return tuple(step for step in path if step is not None), keys[-1], in_key


def _key_again(text: bytes, at: int, keys: set[str], in_key: bool) -> str | None:
    """Returns the key at the place, or after the comma at the place, if its object has it already; else
    None."""
    start = at
    if in_key:
        while start > 0 and text[start - 1 : start] != b'"':
            start -= 1
    else:
        comma = _COMMA.match(text, at)
        if comma is None:
            return None
        start = comma.end()
    end = max(start, at)
    while end < len(text) and text[end : end + 1] != b'"':
        end += 2 if text[end : end + 1] == b"\\" else 1
    key = _decoded(text[start:end])
    return key if end < len(text) and key in keys else None


def _decoded(text: bytes) -> str:
    """Returns the string between two quotes."""
    try:
        return str(json.loads(b'"' + text + b'"'))
    except ValueError:
        return visible(text)
