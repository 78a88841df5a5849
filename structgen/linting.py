"""Finds probable mistakes in a JSON Schema: `sg.lint`, `structgen lint`.

Enters: a schema. Leaves: `Finding`s, each with its place. Cost: a walk over the schema, and a compile for
each branch of a union and each part whose satisfiability is checked; at most `_PROBES` compiles and
`_SECONDS` seconds.

The problem. A valid schema may mean something else than its author intends. A misspelled keyword constrains
nothing, two keywords exclude each other, or no value reaches a branch of a union. And the error "no value
satisfies the schema" does not name the keywords at fault.

The idea. `_Lint.keywords` and `_Lint.names` find the mistakes that the schema's text shows. The engine
decides the rest. A branch is unreachable if the schema that it makes with its siblings has no value. A
contradiction is a smallest set of keywords that still has no value; `_Lint.smallest` leaves out one keyword
after the other and puts back those without which there is a value:

    {"type": "integer", "minimum": 5, "maximum": 3, "multipleOf": 2}
    without type          has a value (a string): type stays
    without minimum       has a value: minimum stays
    without maximum       has a value: maximum stays
    without multipleOf    has none: multipleOf is left out
    told                  #/minimum: 5 and #/maximum: 3 exclude each other

`type` is left out of the message, because it only makes its neighbours apply.

`_Lint.endless` distinguishes a recursion without an end from a contradiction. It copies the smallest schema;
each copy refers to the next one, and the last copy has no references. If this schema has a value, only the
recursion excluded it.

Invariants.
- A schema without any one keyword of a contradiction has a value, unless time or probes ran out.
- `surely` and `warn` never ask the engine, so every call of `generate` can afford them.
- A probe that is too costly gives no finding.
- The keywords and their properties come from the core (`keywords.py`).

Rejected. A list of keywords in this file: explain, lint and closing each had one, and the lists differed.
"""

from __future__ import annotations

import difflib
import itertools
import json
import re
import time
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import unquote

from . import _core
from ._pointers import pointer_of, steps_of, value_at
from ._stack import roomy
from .errors import GrammarError, StructgenError, UnsatisfiableSchema
from .keywords import ABOUT, KNOWN, schemas_in

if TYPE_CHECKING:
    from .compiler import Compiler
    from .grammar import ReportEntry

Level = Literal["error", "warning", "hint"]
Node = TypeVar("Node", bound=Hashable)
_PROBES = 400
_SECONDS = 2.0
# Limits of the search for close names: searches for one schema, names compared in a search, characters of a
# name.
_SEARCHES, _CANDIDATES, _NAME = 100, 300, 60
_LOOKED = 20_000  # the most inner schemas that `surely` reads
_WARNED = 10  # the most warnings that `surely` gives
_PATTERN = 2000  # A pattern of more characters is not checked.
_LONG = 2000  # A shortest text of more bytes is a finding.
_ROOT = "urn:structgen:lint"

_FORMATS = tuple(_core.format_names())
_NEEDS = {"then": "if", "else": "if", "minContains": "contains", "maxContains": "contains"}
_OPENAPI = {
    "nullable": 'a type of ["...", "null"]',
    "example": "examples",
    "discriminator": "oneOf with const",
}
# Syntax of other pattern dialects. ECMA-262 gives it another meaning.
_DIALECT = (
    (re.compile(r"\[\[:\^?(\w+):\]\]"), "a POSIX class, a set of letters in ECMA: write [A-Za-z] or so"),
    (re.compile(r"\\Z|\\z|\\A"), "an anchor of another dialect, read as what it means there: write ^ or $"),
    (re.compile(r"\(\?P<"), "a named group of Python: write (?<name>...)"),
    (re.compile(r"\(\?[a-z]+\)"), "an inline flag, which few know: write both cases, as in [aA]"),
)
_ANSWERS = ("answer", "result", "label", "decision", "verdict", "score", "category", "classification")
_THOUGHTS = ("reasoning", "reason", "explanation", "rationale", "thoughts", "thought", "analysis", "steps")


# The beginnings of the report's reasons for keywords that have no effect (csrc/schema/read/resolve.cc).
_ODD = (
    "ignored", "below 0", "not a whole number", "reference ", "an empty list", "'any' is",
    "names no known draft",
)  # fmt: skip
_IDLE = ("unknown ", "not a keyword of this draft")  # reasons that a server sends to its clients, too


def not_meant(reason: str) -> bool:
    """Returns whether a report's reason is about a keyword that is surely a mistake."""
    return reason.startswith(_ODD)


class SchemaWarning(UserWarning):
    """A schema probably means something else than its author intends."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A probable mistake in a schema.

    Attributes:
        pointer: the JSON pointer of the inner schema.
        keyword: the keyword in the inner schema; "" for the whole schema.
        level: "error" (the schema cannot be used), "warning" (a sure mistake), "hint" (a possible mistake).
        message: the mistake and a likely fix.
    """

    pointer: str
    keyword: str
    level: Level
    message: str

    def __str__(self) -> str:
        where = f"#{self.pointer}" + (f": `{self.keyword}`" if self.keyword else "")
        return f"{self.level}: {where}: {self.message}"


@roomy
def lint(
    schema: Any, *, draft: str | int | None = None, registry: Any = None, compiler: Compiler | None = None
) -> list[Finding]:
    """Finds probable mistakes in a schema.

    Args:
        schema: a dict, bool or JSON text. draft, registry: as in `Compiler.json_schema`.
        compiler: the compiler of the probes; by default one with a vocabulary of bytes.

    Returns:
        The findings, ordered by place.

    Raises:
        GrammarError: the text is not JSON. TypeError: the schema is something else.
    """
    if isinstance(schema, bytes):
        schema = schema.decode()
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except RecursionError:
            raise GrammarError("the schema is nested too deeply to be looked at") from None
        except ValueError as error:
            raise GrammarError(f"invalid JSON: {error}") from None
    if not isinstance(schema, dict | bool):
        raise TypeError(f"lint takes a JSON Schema (an object, a boolean, JSON text), not {schema!r:.60}")
    found = _Lint(schema, draft, registry, compiler).run()
    return sorted(set(found), key=lambda f: (f.pointer, f.keyword, f.message))


def not_enforced(
    report: Iterable[ReportEntry], told: Sequence[str] = (), whose: str = "", *, unknown: bool = False
) -> list[str]:
    """Returns sentences about the keywords of a report that have no effect. Places that `told` names are left
    out.

    Args:
        report: `CompiledGrammar.report`.
        told: sentences of `surely`, each with its place.
        whose: a prefix for each place, such as the name of a tool.
        unknown: True includes keywords and formats that the draft does not know.
    """
    found: list[str] = []
    for entry in report:
        if len(found) > _WARNED:
            break
        place, reason = f"{whose}#{entry.pointer}: `{entry.keyword}`: ", entry.reason
        idle = unknown and reason.startswith(_IDLE)
        if not (idle or not_meant(reason)) or entry.keyword.startswith("x-"):
            continue
        if not any(place in text for text in told):
            found.append(place + reason + (": it constrains nothing" if idle else ""))
    return found


def warn(schema: Any, name: str = "", *, draft: str | int | None = None) -> list[str]:
    """Gives a Python warning for each sentence of `surely`, and returns the sentences."""
    return warned(surely(schema, draft=draft), name)


def warned(sentences: list[str], name: str = "") -> list[str]:
    """Puts the schema's name before each sentence, gives it as a Python warning, and returns all."""
    told = [f"{name}: {text}" if name else text for text in sentences]
    for text in told:
        warnings.warn(text, SchemaWarning, stacklevel=outside())
    return told


def surely(schema: Any, *, draft: str | int | None = None) -> list[str]:
    """Returns the sure mistakes of a schema, as at most `_WARNED` sentences. No compile is made."""
    if not isinstance(schema, dict):
        try:
            schema = json.loads(schema) if isinstance(schema, str) else None
        except (ValueError, RecursionError):
            return []
    if not isinstance(schema, dict):
        return []
    told: list[str] = []
    try:
        for finding in _Lint(schema, draft, None, None).walk(_LOOKED):
            if finding.level != "warning":
                continue
            told.append(str(finding).removeprefix("warning: "))
            if len(told) == _WARNED:
                told[-1] += "; structgen lint tells the rest, if there is more"
                break
    except RecursionError:
        pass
    return told


def outside() -> int:
    """Returns the `stacklevel` of the first caller outside this package."""
    import sys

    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("structgen"):
        frame, level = frame.f_back, level + 1
    return level


def enlarge(
    error: GrammarError,
    schemas: Iterable[Any],
    *,
    draft: str | int | None = None,
    registry: Any = None,
    seconds: float = _SECONDS,
) -> None:
    """Adds a cause to the message of a compile's error.

    The cause is the keywords that exclude each other, or the known name closest to an unknown name.

    Args:
        schemas: the schemas of the constraint, as dict or JSON text; other values are passed over.
        seconds: the most seconds that the search for a contradiction may take.
    """
    until = time.monotonic() + seconds
    for schema in schemas:
        if isinstance(schema, str):
            try:
                schema = json.loads(schema)
            except (ValueError, RecursionError):
                continue
        if not isinstance(schema, dict):
            continue
        found = _Lint(schema, draft, registry, None)
        found.until = until
        try:
            if isinstance(error, UnsatisfiableSchema):
                more = found.why()
            else:
                near = (f for f in found.walk(_LOOKED) if (f.pointer, f.keyword) == _place(error))
                more = next((f.message.partition("; ")[2] for f in near if f.level == "error"), "")
        except RecursionError:
            continue
        if more:
            error.message += f"{': ' if isinstance(error, UnsatisfiableSchema) else '; '}{more}"
            return


def _type_of(value: Any) -> str:
    """Returns the narrowest JSON Schema type of a value: 1.0 is an integer."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return {int: "integer", str: "string", list: "array"}.get(type(value), "object")


def _place(error: GrammarError) -> tuple[str | None, str | None]:
    return error.pointer, error.keyword


def contradiction(schema: Any, *, draft: str | int | None = None, registry: Any = None) -> str:
    """Returns the reason why a schema has no value, as one clause. It is empty if the schema has a value, or
    if no reason was found in time.

    The clause names a smallest set of keywords, each as `#/pointer: value`. The keywords exclude each
    other, or their references form a recursion without an end. The schema without any one of them has a
    value.
    """
    return _Lint(schema, draft, registry, None).why()


class _Lint:
    def __init__(self, root: Any, draft: str | int | None, registry: Any, compiler: Compiler | None) -> None:
        self.root = root
        self.draft = draft
        self.registry = registry
        self._compiler = compiler
        self.probes = 0
        self.searches = 0
        self.core: Any = None  # the smallest schema without a value
        self.kept: list[list[str | int]] = []  # the places of the keywords of `core`
        self.until = time.monotonic() + _SECONDS

    @property
    def compiler(self) -> Compiler:
        if self._compiler is None:
            from .checking import bytes_compiler

            self._compiler = bytes_compiler()
        return self._compiler

    def run(self) -> Iterator[Finding]:
        seen = list(self.walk())
        wrong = {(f.pointer, f.keyword) for f in seen if f.level == "error"}
        yield from seen
        try:
            grammar = self.compiler.json_schema(self.root, draft=self.draft, registry=self.registry)
        except UnsatisfiableSchema as error:
            why = self.why()
            words = f"no value satisfies the schema{': ' if why else ''}{why}"
            yield Finding(error.pointer, error.keyword, "error", words)
            return
        except GrammarError as error:
            if (error.pointer or "", error.keyword or "") not in wrong:
                yield Finding(error.pointer or "", error.keyword or "", "error", error.message)
            return
        for entry in grammar.report:
            if "unknown keyword" not in entry.reason and "unknown format" not in entry.reason:
                level: Level = "warning" if not_meant(entry.reason) else "hint"
                yield Finding(entry.pointer, entry.keyword, level, entry.reason)
        try:
            shortest = len(grammar.matcher().shortest_completion())
        except StructgenError as error:
            yield Finding("", "", "hint", f"generating may be slow: {error}")
            return
        if shortest > _LONG:
            yield Finding("", "", "hint", f"the shortest text has {shortest} bytes: max_tokens must allow it")
        yield from self.parts()

    # ---- mistakes that the schema's text shows ----

    def close(self, name: str, known: Iterable[str], cutoff: float = 0.75) -> str | None:
        """Returns the known name closest to `name`; None if none is close.

        A search compares `name` with every known name, and a schema may have thousands of both. So only the
        first `_CANDIDATES` are compared, and after `_SEARCHES` searches the answer is None.
        """
        self.searches += 1
        if self.searches > _SEARCHES or len(name) > _NAME:
            return None
        few = [other for other in itertools.islice(known, _CANDIDATES) if len(other) <= _NAME]
        return next(iter(difflib.get_close_matches(name, few, n=1, cutoff=cutoff)), None)

    def walk(self, most: int | None = None) -> Iterator[Finding]:
        for path, node in itertools.islice(schemas_in(self.root), most):
            node = _with_text_keys(node)
            yield from self.keywords(pointer_of(path), node)
            yield from self.names(pointer_of(path), node)

    def keywords(self, pointer: str, node: dict[str, Any]) -> Iterator[Finding]:
        kinds = node.get("type")
        types = {kinds} if isinstance(kinds, str) else _names(kinds)
        for name in node:
            if name not in KNOWN and not name.startswith(("x-", "$")):
                close = self.close(name, KNOWN)
                if name in _OPENAPI:
                    words = f"is OpenAPI's and says nothing here: write {_OPENAPI[name]}"
                    yield Finding(pointer, name, "warning", words)
                elif close:
                    yield Finding(pointer, name, "warning", f"unknown keyword; did you mean `{close}`?")
                else:
                    yield Finding(pointer, name, "hint", "unknown keyword: it constrains nothing")
            about = ABOUT.get(name)
            if about is not None and types is not None and "$ref" not in node:
                fits = {"number", "integer"} if about == "number" else {about}
                if not types & fits:
                    yield Finding(
                        pointer, name, "warning",
                        f"never applies: it is about {about}s, and the type is {json.dumps(kinds)}",
                    )  # fmt: skip
            if name in _NEEDS and _NEEDS[name] not in node:
                yield Finding(
                    pointer, name, "warning", f"never applies: there is no `{_NEEDS[name]}` beside it"
                )
        fixed = node.get("enum") if isinstance(node.get("enum"), list) else None
        if "const" in node:
            fixed = [node["const"]]
        if types is not None and fixed is not None:
            wide = types | ({"integer"} if "number" in types else set())
            lost = [value for value in fixed if _type_of(value) not in wide]
            if lost and len(lost) < len(fixed):
                words = f"{_short(lost[0])} is excluded by the type {json.dumps(kinds)}"
                yield Finding(pointer, "enum", "warning", words)
        if isinstance(node.get("format"), str) and node["format"] not in _FORMATS:
            close = self.close(node["format"], _FORMATS, 0.7)
            hint = f"; did you mean {close!r}?" if close else ": it constrains nothing"
            level: Level = "warning" if close else "hint"
            yield Finding(pointer, "format", level, f"unknown format {node['format']!r}{hint}")
        if isinstance(node.get("pattern"), str) and len(node["pattern"]) <= _PATTERN:
            yield from _dialect(pointer, node["pattern"])
        if isinstance(kinds, str) and kinds not in _TYPES:
            close = self.close(kinds, _TYPES, 0.5)
            hint = f"; did you mean {close!r}?" if close else f"; known: {', '.join(_TYPES)}"
            yield Finding(pointer, "type", "error", f"unknown type {kinds!r}{hint}")

    def names(self, pointer: str, node: dict[str, Any]) -> Iterator[Finding]:
        properties, required = node.get("properties"), node.get("required")
        if not isinstance(properties, dict):
            return
        properties = _with_text_keys(properties)
        for name in sorted(_names(required) or ()):
            if name in properties or any(key in node for key in ("patternProperties", "allOf", "$ref")):
                continue
            close = self.close(name, properties)
            if close:
                words = f"{name!r} is no property; did you mean {close!r}?"
                yield Finding(pointer, "required", "warning", words)
            else:
                yield Finding(
                    pointer, "required", "hint", f"{name!r} is not listed in `properties`: any value will do"
                )
        order = [name.lower() for name in properties]
        late = next((i for i, n in enumerate(order) if n in _THOUGHTS), None)
        early = next((i for i, n in enumerate(order) if n in _ANSWERS), None)
        if late is not None and early is not None and early < late:
            names = list(properties)
            words = f"{names[early]!r} comes before {names[late]!r}, and a model writes keys in this order"
            yield Finding(pointer, "properties", "hint", f"{words}: it reasons better before it answers")

    # ---- mistakes that the engine finds ----

    def parts(self) -> Iterator[Finding]:
        """Finds branches that no value reaches, and properties that no value satisfies."""
        for path, node in schemas_in(self.root):
            for union in ("anyOf", "oneOf"):
                branches = node.get(union)
                if not isinstance(branches, list):
                    continue
                for i, branch in enumerate(branches):
                    place = pointer_of((*path, union, i))
                    first = next((j for j in range(i) if branches[j] == branch), None)
                    if first is not None:
                        never = ": no value is of exactly one" if union == "oneOf" else ""
                        yield Finding(place, "", "warning", f"is branch {first} again{never}")
                    elif branch is not False and self.empty({**node, union: [branch]}):
                        words = "unreachable: no value satisfies this branch here"
                        yield Finding(place, "", "warning", words)
            properties = node.get("properties")
            for name, part in properties.items() if isinstance(properties, dict) else ():
                if isinstance(part, dict) and self.empty(part):
                    place = pointer_of((*path, "properties", name))
                    words = "no value satisfies it, so the key can never be there"
                    yield Finding(place, "", "warning", words)

    def empty(self, node: Any) -> bool:
        """Returns whether no value satisfies a part of the schema. False also if the probe exceeds a
        limit."""
        documents = self.registry if isinstance(self.registry, dict) else {}
        return self.dead(_absolute(node), {**documents, _ROOT: self.root})

    def why(self) -> str:
        """See `contradiction`."""
        causes = self.smallest()
        if not causes:
            return ""
        listed = " and ".join(causes)
        if loop := self.endless():
            return f"with {listed}, every value would hold another value of {loop}, without an end"
        return f"{listed} exclude each other"

    def endless(self) -> str:
        """Returns the reference that makes each value contain another one without an end; empty if there is
        none.

        The smallest schema is copied into `#/definitions/0`, `/1`, ..., two times more than it has
        references. The references of each copy lead into the next one, and the last copy has none. If `/0`
        has a value, only the recursion excluded it: each reference was followed at least once.
        """
        places = [place for place in self.kept if place[-1] == "$ref"]
        found = [value_at(self.core, place) for place in places]
        if len(places) > _COPIES or not all(isinstance(f, str) and f[:2] in ("#", "#/") for f in found):
            return ""
        leads = {
            i: [j for j, place in enumerate(places) if _below(place, target)]
            for i, target in enumerate(found)
        }
        loop = next((i for i in leads if i in reached(leads, i)), None)
        if loop is None:
            return ""
        copies = []
        for copy in range(len(places) + 2):
            document = json.loads(json.dumps(self.core))
            for place, target in zip(places, found, strict=True):
                holder = value_at(document, place[:-1])
                if copy <= len(places):
                    holder["$ref"] = f"#/definitions/{copy + 1}{target[1:]}"
                else:
                    del holder["$ref"]
            copies.append(document)
        definitions = {str(number): document for number, document in enumerate(copies)}
        whole = {"$ref": "#/definitions/0", "definitions": definitions}
        if "$schema" in self.core:
            whole["$schema"] = self.core["$schema"]
        return "" if self.dead(whole) else found[loop]

    def smallest(self) -> list[str]:
        """Returns the keywords of a smallest schema without a value; empty if the whole schema has one."""
        document = json.loads(json.dumps(self.root))
        if not isinstance(document, dict) or not self.dead(document):
            return []
        kept: list[tuple[list[str | int], Any]] = []

        def shrink(place: list[str | int]) -> None:
            """Removes each part below a place without which the schema still has no value.

            An item of a list becomes `true` instead, so that the other items keep their places.
            """
            holder = value_at(document, place)
            steps: list[Any] = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            for step in steps:
                value = holder[step]
                if isinstance(holder, list):
                    holder[step] = True
                else:
                    del holder[step]
                if self.dead(document):
                    continue
                holder[step] = value
                here = [*place, step]
                if isinstance(value, dict | list) and value and step not in _WHOLE:
                    shrink(here)
                elif step not in ("$schema", "$id"):
                    kept.append((here, value))

        shrink([])
        self.core, self.kept = document, [place for place, _ in kept]
        about = {tuple(place[:-1]) for place, _ in kept if place[-1] in ABOUT}
        return [
            f"#{pointer_of(place)}: {_short(value)}"
            for place, value in kept
            if place[-1] != "type" or tuple(place[:-1]) not in about  # `type` only makes others apply.
        ]

    def dead(self, document: Any, registry: Any = None) -> bool:
        """Returns whether no value satisfies a document. False also if the probe exceeds a limit."""
        if self.probes >= _PROBES or time.monotonic() > self.until:
            return False
        self.probes += 1
        try:
            self.compiler.json_schema(document, draft=self.draft, registry=registry or self.registry)
        except UnsatisfiableSchema:
            return True
        except (StructgenError, ValueError):
            pass
        return False


_COPIES = 12  # the most references in a contradiction that `endless` follows
_WHOLE = ("const", "enum", "required", "type")  # `smallest` keeps the values of these keywords whole.
_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")


def _dialect(pointer: str, pattern: str) -> Iterator[Finding]:
    for wrong, words in _DIALECT:
        if found := wrong.search(pattern):
            yield Finding(pointer, "pattern", "warning", f"{found.group()} is {words}")
            return
    plain = re.sub(r"\\.|\[[^\]]*\]", "", pattern)
    if not plain.startswith("^") and not plain.endswith("$") and not plain.startswith(".*"):
        yield Finding(
            pointer, "pattern", "hint",
            "matches anywhere in the string: write ^ and $ around it if it is about the whole",
        )  # fmt: skip


def _with_text_keys(node: dict[Any, Any]) -> dict[str, Any]:
    """Returns the node with text keys. Other keys become the text that `json.dumps` writes for them."""
    if all(isinstance(key, str) for key in node):
        return node
    return {key if isinstance(key, str) else json.dumps(key, default=str): v for key, v in node.items()}


def _absolute(node: Any) -> Any:
    """Returns the node with its references into the same document made absolute, to `_ROOT`."""
    if isinstance(node, list):
        return [_absolute(value) for value in node]
    if not isinstance(node, dict):
        return node
    made = {key: _absolute(value) for key, value in node.items()}
    reference = made.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        made["$ref"] = _ROOT + reference
    return made


def _below(place: list[str | int], reference: str) -> bool:
    """Returns whether a place lies below the target of a reference into this document."""
    steps = steps_of(unquote(reference[1:]))
    return [str(step) for step in place[: len(steps)]] == steps


def reached(leads: Mapping[Node, Iterable[Node]], start: Node) -> set[Node]:
    """Returns the nodes that can be reached from `start` in one step or more."""
    found: set[Node] = set()
    todo = list(leads.get(start, ()))
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += leads.get(node, ())
    return found


def _names(value: Any) -> set[str] | None:
    """Returns the names in a list of names; None if `value` is something else."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return set(value)
    return None


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
