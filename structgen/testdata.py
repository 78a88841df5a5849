"""Test data of a schema: its shortest value, values drawn uniformly, its boundaries, and near misses.

Enters: a schema, or another operand. Leaves: `Example`s, each with its place. Cost: two or
three compiles for each keyword of the schema, at most `_PROBES` of them; a table of states for draws.

The problem. The tests of a validator need documents that are barely valid and documents that are barely
invalid. Documents written by hand miss keywords; documents drawn at random miss boundaries.

The idea. Each example is a shortest value of a schema that is made from the original schema S:

    boundary    S and "at this place stands this value"     maximum: 5   {"n": 5}
    near miss   S without one keyword, and not S            maximum: 5   {"n": 6}

So exactly one keyword refuses a near miss: without this keyword the value is valid. A walk over the schema
(`_sites`) finds the place of each keyword in the values. It follows each reference once on a path.

Invariants. Valid examples are values of S, and near misses are not: the engine proves both. The same
arguments give the same examples. A boundary that no value reaches is left out.
"""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from ._checks import whole
from ._pointers import Path, led, pointer_of, value_at
from ._stack import roomy
from .checking import bytes_compiler
from .comparing import shortest
from .counting import RankedTexts, States
from .errors import BudgetExceeded, GrammarError, StructgenError
from .grammar import CompiledGrammar
from .keywords import ASSERTING, inner_schemas, schemas_in
from .linting import outside
from .operands import ROOT, SPELLING, Operand, operand, together

_PROBES = 600  # the most schemas that one call compiles
_LEAST = 10  # A call compiles at least so many schemas, however large they are.
_WORK = 10_000_000  # the most characters of the schemas that one call compiles
_PART = 200  # Each condition counts as so many characters of _WORK.
_NOT = 8  # A character of a negated schema counts as so many.
_SITES = 200
_ROOMS = (16, 8, 4, 2, 1, 0)  # Bytes beyond a shortest text. Texts are drawn within the first that suffices.
_DRAWN = 100_000  # the most texts that one call draws
_LARGE = 2_000  # the largest length whose boundary is shown
_EXCLUSIVE = ("exclusiveMinimum", "exclusiveMaximum")  # In draft 4 they are booleans.
# Assertions whose meaning depends on no keyword beside them, except for _EXCLUSIVE.
_ALONE = {
    *("type", "enum", "const", "pattern", "format", "multipleOf", "uniqueItems", "minimum", "maximum"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", *_EXCLUSIVE),
}

Kind = Literal["shortest", "typical", "drawn", "boundary", "near miss"]
Wrap = Callable[[Any], Any]  # turns a condition on the value at a place into a condition on the whole value


class ExamplesLeftOut(UserWarning):
    """A limit of work left out examples."""


@dataclass(frozen=True, slots=True)
class Example:
    """A text for tests.

    Attributes:
        text: the text; for a schema it is compact JSON.
        kind: "shortest", "typical" (with all optional parts), "drawn" (uniformly), "boundary", "near miss".
        valid: whether the schema allows the text.
        pointer: the keyword of a boundary or near miss, as a JSON pointer into the schema; else "".
    """

    text: str
    kind: Kind
    valid: bool = True
    pointer: str = ""


@roomy
def examples(
    schema: Any, n: int = 5, *, seed: int = 0, max_bytes: int | None = None, **options: Any
) -> list[Example]:
    """Texts to test with: the shortest, a typical one, `n` drawn uniformly, boundaries, and near misses.

    The typical text has every optional key, an item in each array and a character in each string, as far as
    the schema allows these together.

    Args:
        schema: what `contains` takes. Only a JSON Schema or a Python type has boundaries and near misses.
        n: the number of texts drawn, at most 100,000. All texts of at most `max_bytes` bytes have the same
            probability.
        seed: repeats the draws.
        max_bytes: None means 16 more than the shortest text has. If such texts need too many states (open
            objects), the bound is smaller, and a warning names it.
        options: `draft`, `registry` and `formats` of a schema.

    Returns:
        The examples by kind, without duplicates. Boundaries are each bound, length, member of `enum`,
        branch of a union, and optional key (present and absent), as far as values reach them. There is a
        near miss for each keyword that can be the only one to refuse a value.

    Raises:
        UnsatisfiableSchema: the schema has no value. BudgetExceeded: texts within a given `max_bytes` need
        too many states; close open objects, or take a smaller bound. GrammarError: the schema is malformed.

    Warns:
        ExamplesLeftOut: the schema is too large to be searched whole, or texts were drawn with fewer bytes,
        or none were drawn.
    """
    whole("n", n, 0, _DRAWN)
    side = operand(schema, **options)
    grammar = side.grammar()
    found = [Example(shortest(grammar), "shortest")]
    told: list[str] = []
    if n:
        shortest_bytes = len(found[0].text.encode())
        texts, chance = _ranked(grammar, shortest_bytes, max_bytes, told), random.Random(seed)
        if texts is not None and not texts.total:
            raise BudgetExceeded(f"no text has at most {max_bytes} bytes: the shortest has {shortest_bytes}")
        drawn = () if texts is None else (texts.draw(chance) for _ in range(n))
        found += [Example(text.decode("utf-8", "backslashreplace"), "drawn") for text in drawn]
    if side.is_json:
        try:
            found = _searched(side, found, told)
        except RecursionError:
            raise GrammarError("the schema is nested too deeply to look for its boundaries") from None
    for text in told:
        warnings.warn(text, ExamplesLeftOut, stacklevel=outside())
    return list(dict.fromkeys(found))


def _searched(side: Operand, found: list[Example], told: list[str]) -> list[Example]:
    """Adds boundaries and near misses to the examples. `told` collects sentences about examples that were
    left out."""
    search = _Search(side)
    typical = Example(search.typical(), "typical")
    found = [found[0], typical, *found[1:], *search.boundaries(), *search.near_misses()]
    if search.stopped:
        told.append(
            f"the schema is large, so the search ended after {search.probes} compiles: optional parts, "
            "boundaries and near misses are left out; ask for parts of the schema"
        )
    return found


def _ranked(
    grammar: CompiledGrammar, least: int, max_bytes: int | None, told: list[str]
) -> RankedTexts | None:
    """Returns the texts to draw from. Without `max_bytes` the bound shrinks until the texts do not need too
    many states; None if even the shortest texts need too many."""
    if max_bytes is not None:
        whole("max_bytes", max_bytes, 0)
        return RankedTexts(grammar, max_bytes)
    states = States(grammar)
    for room in _ROOMS if least < _LARGE else _ROOMS[:1]:
        try:
            found = RankedTexts(grammar, least + room, states)
        except BudgetExceeded:
            continue
        if room < _ROOMS[0]:
            told.append(
                f"texts are drawn from those of at most {least + room} bytes: longer ones meet too many "
                "states (open objects: close them, or give max_bytes)"
            )
        return found
    told.append(
        f"no texts are drawn: those of {least} bytes, the shortest, meet too many states (open objects, many "
        "keys: close them, or ask for parts of the schema)"
    )
    return None


class _Search:
    def __init__(self, side: Operand) -> None:
        self.side: Operand = side
        self.taken: CompiledGrammar = self.compiled(side.document, side.registry)
        self.size: int = len(repr(side.document))  # A large schema gets fewer compiles.
        self.work: int = 0
        self.probes: int = 0
        self.third: int = 1  # Typical texts, boundaries and near misses each get a third of the limits.
        self.stopped: bool = False  # whether a limit ended a search

    def first(self, *parts: tuple[Any, bool]) -> str | None:
        """Returns a shortest value that satisfies each schema with the flag True, and none with the flag
        False. None if none was found."""
        spent = max(self.probes / _PROBES, self.work / _WORK if self.probes >= _LEAST else 0)
        if spent * 3 >= self.third:
            self.stopped = True
            return None
        self.probes += 1
        self.work += sum(
            (self.size if part is self.side.document else _PART + len(repr(part))) * (1 if wanted else _NOT)
            for part, wanted in parts
        )
        sides = [(Operand(part, self.side.registry), wanted) for part, wanted in parts]
        try:
            return self.compiled(*together(*sides)).matcher().shortest_completion().decode()
        except (StructgenError, ValueError):
            return None

    def compiled(self, document: Any, registry: dict[str, Any]) -> CompiledGrammar:
        """Returns the grammar of all values of a schema, with keys in any order."""
        formats = self.side.formats
        return bytes_compiler().json_schema(document, registry=registry or None, formats=formats, **SPELLING)

    def typical(self) -> str:
        """Returns a shortest value with all optional parts. An optional part that excludes an earlier one is
        left out."""
        kept: list[tuple[Any, bool]] = [(self.side.document, True)]
        text = self.first(*kept) or ""
        for _, node, wrap in itertools.islice(_sites(self.side.document), _SITES):
            present = node.get("required")
            names = dict.fromkeys(name for name in node.get("properties") or () if isinstance(name, str))
            for name in present if isinstance(present, list) else ():
                names.pop(name, None)
            needed = [{"required": [name]} for name in names]
            for condition in (*needed, {"minItems": 1}, {"minLength": 1}):
                more = self.first(*kept, (wrap(condition), True))
                if more is not None:
                    kept, text = [*kept, (wrap(condition), True)], more
        return text

    # ---- boundaries ----

    def boundaries(self) -> Iterator[Example]:
        self.third = 2
        for count, (path, node, wrap) in enumerate(_sites(self.side.document)):
            if count >= _SITES:
                self.stopped = True
                return
            for step, tries in _edges(path, node):
                for condition in tries:
                    text = self.first((self.side.document, True), (wrap(condition), True))
                    if text is not None:
                        yield Example(text, "boundary", True, pointer_of((*path, *step)))
                        break

    # ---- near misses ----

    def near_misses(self) -> Iterator[Example]:
        self.third = 3
        document = self.side.document
        wraps = {path: wrap for path, _, wrap in _sites(document)}
        for path, node in schemas_in(document):
            for step in _assertions(node):
                without, text = _removed(document, (*path, *step)), None
                local = _failing(node, step) if path in wraps else []
                for condition in local:
                    # Negating one keyword costs less than negating the whole schema.
                    parts = ((without, True), (wraps[path](condition), True))
                    proved = path == () and step[0] == "required" and "$ref" not in node
                    text = text or (self.first(*parts) if proved else self.refused(*parts))
                if text is None and not (local and path == ()):  # At the root both questions are equal.
                    text = self.first((without, True), (document, False))
                if text is not None:
                    yield Example(text, "near miss", False, pointer_of((*path, *step)))

    def refused(self, *parts: tuple[Any, bool]) -> str | None:
        """As `first`. None also if the schema takes the value."""
        text = self.first(*parts)
        if text is None:
            return None
        matcher = self.taken.matcher()
        return None if matcher.accept_bytes(text.encode()) and matcher.is_accepting() else text


def _assertions(node: dict[str, Any]) -> Iterator[Path]:
    """Returns the parts that may be taken out of a schema: keywords that assert something by themselves,
    single names of `required`, and keywords that forbid (`additionalProperties: false`)."""
    holding = {keyword for keyword, _, inner in inner_schemas(node) if isinstance(inner, dict)}
    for keyword, value in node.items():
        if keyword == "required" and isinstance(value, list):
            yield from ((keyword, i) for i in range(len(value)))
        elif keyword in ("not", "oneOf", "anyOf", "contains", "propertyNames") or (
            keyword in ASSERTING and keyword not in holding and not keyword.startswith("$")
        ):
            yield (keyword,)


def _removed(document: Any, path: Path) -> Any:
    """Returns a copy without the value at the path. The unchanged parts are shared."""
    head, *rest = path
    copy: Any = dict(document) if isinstance(document, dict) else list(document)
    if rest:
        copy[head] = _removed(copy[head], tuple(rest))
    else:
        del copy[head]
    return copy


def _failing(node: dict[str, Any], step: Path) -> list[Any]:
    """Conditions for values that one assertion refuses, values near its bound first. The list is empty if the
    assertion depends on keywords beside it, or has references."""
    keyword = str(step[0])
    value = node[keyword]
    if keyword == "required":
        return [{"not": {"required": [value[step[1]]]}}]
    if keyword not in _ALONE or (keyword in _EXCLUSIVE and isinstance(value, bool)):
        return []
    beside = _beside(keyword, value)
    return [*([] if beside is None else [beside]), {"not": {keyword: value}}]


def _beside(keyword: str, value: Any) -> Any:
    """Returns a condition for the values directly beyond a bound; None if the keyword is no bound."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    by = -1 if keyword.startswith("min") else 1
    if keyword in ("minimum", "maximum"):
        return {"const": value + by}
    if keyword in _EXCLUSIVE:
        return {"const": value}
    sizes = {"Length": "string", "Items": "array", "Properties": "object"}
    for size, kind in sizes.items():
        if keyword in (f"min{size}", f"max{size}") and 0 <= value + by <= _LARGE:
            return {"type": kind, f"min{size}": value + by, f"max{size}": value + by}
    return None


def _edges(path: Path, node: dict[str, Any]) -> Iterator[tuple[Path, list[Any]]]:
    """Returns the boundaries of one schema. Each has a path and conditions; the first condition that can be
    met counts."""
    for keyword, value in node.items():
        size = keyword[3:]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if keyword in ("minimum", "maximum") and is_number:
            by = 1 if keyword == "minimum" else -1
            yield (keyword,), [{"const": value}, {"const": value + by}]  # Draft 4 may exclude the bound.
        elif keyword in ("exclusiveMinimum", "exclusiveMaximum") and is_number:
            yield (keyword,), [{"const": value + (1 if keyword == "exclusiveMinimum" else -1)}]
        elif keyword[:3] in ("min", "max") and size in ("Length", "Items", "Properties") and is_number:
            kind = {"Length": "string", "Items": "array", "Properties": "object"}[size]
            if 0 <= value <= _LARGE:
                yield (keyword,), [{"type": kind, f"min{size}": value, f"max{size}": value}]
        elif keyword == "enum" and isinstance(value, list):
            yield from (((keyword, i), [{"const": member}]) for i, member in enumerate(value))
        elif keyword in ("anyOf", "oneOf") and isinstance(value, list):
            yield from (((keyword, i), [_refer((*path, keyword, i))]) for i in range(len(value)))
        elif keyword == "properties" and isinstance(value, dict):
            needed = node.get("required")
            for name in value:
                if not isinstance(needed, list) or name not in needed:
                    yield (keyword, name), [{"type": "object", "required": [name]}]
                    yield (keyword, name), [{"type": "object", "properties": {name: False}}]
        elif keyword == "type":
            kinds = value if isinstance(value, list) else []
            yield from (((keyword, i), [{"type": kind}]) for i, kind in enumerate(kinds))
            if value == "boolean":
                yield from (((keyword,), [{"const": truth}]) for truth in (True, False))


def _sites(document: Any) -> Iterator[tuple[Path, dict[str, Any], Wrap]]:
    """Returns the inner schemas of a document that apply at one place of its values. Each has its path, the
    schema, and a function that turns a condition on the value at that place into a condition on the whole
    value."""
    todo: list[tuple[Path, Wrap, frozenset[Path]]] = [((), lambda inner: inner, frozenset())]
    seen: set[Path] = set()
    while todo:
        path, wrap, passed = todo.pop(0)
        node = value_at(document, path)
        if not isinstance(node, dict) or path in seen:
            continue
        seen.add(path)
        yield path, node, wrap
        target = led(document, node.get("$ref"))
        if target is not None and target[0] not in passed:
            todo.append((target[0], wrap, passed | {target[0]}))
        for keyword, name, _ in inner_schemas(node):
            below = (*path, keyword) if name is None else (*path, keyword, name)
            if keyword == "properties" and isinstance(name, str):
                todo.append((below, _at_key(wrap, name), passed))
            elif keyword == "allOf":
                todo.append((below, wrap, passed))
            elif keyword in ("anyOf", "oneOf", "then", "else"):
                todo.append((below, _in_branch(wrap, below), passed))
            elif keyword in ("items", "prefixItems"):
                todo.append((below, _at_item(wrap, name), passed))
            elif keyword == "patternProperties":
                todo.append((below, _at_matching(wrap, {"pattern": name}, keyword, {}), passed))
            elif keyword == "additionalProperties":
                todo.append((below, _at_other(wrap, node), passed))


def _at_key(wrap: Wrap, key: str) -> Wrap:
    return lambda inner: wrap({"type": "object", "required": [key], "properties": {key: inner}})


def _in_branch(wrap: Wrap, path: Path) -> Wrap:
    return lambda inner: wrap({"allOf": [_refer(path), inner]})


def _refer(path: Path) -> dict[str, Any]:
    """Returns a reference to the schema at a path of the first part of `together`."""
    return {"$ref": f"{ROOT}0#{quote(pointer_of(path))}"}


def _at_matching(wrap: Wrap, names: Any, keyword: str, beside: dict[str, Any]) -> Wrap:
    """Returns a `Wrap`: some key satisfies `names`, and the values of all such keys satisfy the condition."""
    some = {"type": "object", "not": {"propertyNames": {"not": names}}, **beside}
    held = (
        (lambda inner: inner)
        if keyword == "additionalProperties"
        else (lambda inner: {names["pattern"]: inner})
    )
    return lambda inner: wrap({**some, keyword: held(inner)})


def _at_other(wrap: Wrap, node: dict[str, Any]) -> Wrap:
    """Returns a `Wrap` for the values of keys that neither `properties` nor `patternProperties` names."""
    beside = {
        keyword: dict.fromkeys(node[keyword], True)
        for keyword in ("properties", "patternProperties")
        if isinstance(node.get(keyword), dict)
    }
    listed = [{"enum": [*beside["properties"]]}] if beside.get("properties") else []
    told = [*listed, *({"pattern": pattern} for pattern in beside.get("patternProperties", ()))]
    names = {"not": {"anyOf": told}} if told else True
    return _at_matching(wrap, names, "additionalProperties", beside)


def _at_item(wrap: Wrap, step: str | int | None) -> Wrap:
    if isinstance(step, int):
        front = [True] * step
        return lambda inner: wrap({"type": "array", "minItems": step + 1, "prefixItems": [*front, inner]})
    return lambda inner: wrap({"type": "array", "minItems": 1, "items": inner})
