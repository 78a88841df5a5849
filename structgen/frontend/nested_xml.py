"""Values as nested elements: how MiniMax M3 and Cohere models write the arguments of a call.

In: an object schema. Out: nodes of a ``_core.GrammarBuilder``. A member of an object is an element with its
name, an item of an array one without; scalars are their JSON text and strings stand as they are, up to the
closing mark. So a schema is walked here, and only numbers, Booleans and null go to the JSON engine. What
cannot be told that way is an error that names the keyword and the place. Cost: linear in the schema; a
definition is a rule, made once.

Members keep the schema's order, and where nothing is said about others there are none, as in the flat styles.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from .. import _core
from ..errors import GrammarError
from . import ecma, schema_parts, source

__all__ = ["STYLES", "build"]


@dataclass(frozen=True, slots=True)
class Style:
    """One way to write elements. ``{name}`` is a member's name, ``{kind}`` one of raw, json, dict, list."""

    member: str
    item: str
    close: str  # after both; ``{name}`` again, "item" for an item
    stop: str  # what no string contains
    padded: bool  # blanks around JSON scalars, and between the marks of an empty object
    between: bool  # blanks between items
    anything: bool  # the kind is written, so that a value of any type can be told
    escapes: tuple[tuple[str, str], ...] = ()  # in names


_M3 = "]<]minimax[>["
STYLES = {
    "minimax_m3_xml": Style(
        _M3 + "<{name}>", _M3 + "<item>", _M3 + "</{name}>", _M3, padded=False, between=True, anything=False
    ),
    "cohere_xml": Style(
        '<cofl:value name="{name}" type="{kind}">',
        '<cofl:value type="{kind}">',
        "</cofl:value>",
        "</cofl:value>",
        padded=True,
        between=False,
        anything=True,
        escapes=(("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")),
    ),
}

# What a keyword constrains, where it is told here. Other assertions are errors, other keywords annotations.
_TOLD = {
    "object": {"properties", "required", "additionalProperties", "minProperties", "maxProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems"},
    "string": {"pattern", "minLength", "maxLength"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}
_UNTOLD = {
    "object": (
        *("patternProperties", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies"),
        "unevaluatedProperties",
    ),
    "array": ("uniqueItems", "contains", "additionalItems", "unevaluatedItems"),
    "string": ("format",),
    "number": (),
}
_HARMLESS: dict[str, tuple[Any, ...]] = {  # values that add nothing to closed objects and arrays
    "patternProperties": ({},),
    "propertyNames": (True, {}),
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
    "dependencies": ({},),
    "unevaluatedProperties": (False,),
    "unevaluatedItems": (False,),
    "additionalItems": (False,),
    "uniqueItems": (False,),
}
_NEVER_TOLD = ("not", "if", "then", "else", "$dynamicRef", "$recursiveRef")
_MOST_TAILS = 20_000  # rules for one object whose members are counted
_MOST = 10**8  # of what is counted; a larger maximum says nothing
_DEPTH = 100  # schemas within schemas; each takes up to seven frames of Python
_COMBINE = ("$ref", "allOf", "anyOf", "oneOf")
Values = list[tuple[str, int]]  # (kind, node) of each way to write a value


def build(
    b: _core.GrammarBuilder,
    schema: Any,
    style: str,
    path: str,
    spell: source.Spell,
    blanks: int,
    json_node: Callable[[Any], int],
) -> int:
    """The members of an object that the schema describes.

    Args:
        path: of the schema in the structural tag, for errors.
        blanks: at most so many stand where blanks may.
        json_node: a scalar's schema -> its JSON text.
    """
    walk = _Walk(b, schema, STYLES[style], style, path, spell, blanks, json_node)
    try:
        found = [node for kind, node in walk.values(schema, "#", 0) if kind == "dict"]
    except RecursionError:
        walk.fail("the schema nests too deeply", "#")
    if not found:
        walk.fail("parameters outside JSON need an object schema", "#")
    return b.choice(found)


class _Walk:
    def __init__(
        self,
        b: _core.GrammarBuilder,
        root: Any,
        style: Style,
        name: str,
        path: str,
        spell: source.Spell,
        blanks: int,
        json_node: Callable[[Any], int],
    ) -> None:
        self.b = b
        self.root = root
        self.style = style
        self.name = name
        self.path = path
        self.spell = spell
        self.json_node = json_node
        self.blank = b.repeat(b.chars([(9, 10), (13, 13), (32, 32)]), 0, blanks)
        self.free = source.without(b, [style.stop])
        self.rules: dict[tuple[str, str], int] = {}  # (place, kind) -> rule
        self.following: list[str] = []  # references that are being resolved, none of them inside an element

    def fail(self, message: str, at: str) -> NoReturn:
        raise GrammarError(f"{message} (at #{self.path}{at[1:]})")

    # ---- schemas ----

    def values(self, schema: Any, at: str, depth: int) -> Values:
        """Every way to write a value of the schema that stands at `at`, a JSON pointer."""
        if depth > _DEPTH:
            self.fail("the schema nests too deeply", at)
        if schema is True or schema == {}:
            return self.anything(at)
        if schema is False:
            return []
        if not isinstance(schema, dict):
            self.fail("a schema is an object, true or false", at)
        for keyword in _NEVER_TOLD:
            if keyword in schema:
                self.fail(f"'{keyword}' cannot be told in {self.name}", f"{at}/{keyword}")
        combined = [keyword for keyword in _COMBINE if keyword in schema]
        if combined:
            return self.combined(schema, combined[0], at, depth)
        if "const" in schema or "enum" in schema:
            return self.literals(schema, at, depth)
        types = self.types(schema, at)
        found: Values = []
        for kind in types:
            found += self.typed(schema, kind, at, depth)
        return found

    def types(self, schema: dict[str, Any], at: str) -> list[str]:
        said = schema.get("type")
        if said is None:
            for kind, keyword in (("object", "properties"), ("array", "items"), ("array", "prefixItems")):
                if keyword in schema:
                    return [kind]
            for names in (*_TOLD.values(), *_UNTOLD.values()):
                for keyword in schema:
                    if keyword in names:
                        self.fail(f"'{keyword}' needs a 'type' beside it", at)
            return ["any"]
        types = said if isinstance(said, list) else [said]
        for name in types:
            if name not in schema_parts.TYPES:
                self.fail(
                    f"{json.dumps(name)} is no type{source.meant(str(name), schema_parts.TYPES)}",
                    f"{at}/type",
                )
        return list(dict.fromkeys("number" if t == "integer" and "number" in types else t for t in types))

    def typed(self, schema: dict[str, Any], kind: str, at: str, depth: int) -> Values:
        if kind == "any":
            return self.anything(at)
        group = "number" if kind == "integer" else kind
        self.only_told(schema, group, at)
        if kind == "object":
            return [("dict", self.rule(at, kind, lambda: self.members(schema, at, depth)))]
        if kind == "array":
            return [("list", self.rule(at, kind, lambda: self.items(schema, at, depth)))]
        if kind == "string":
            return [("raw", self.string(schema, at))]
        told = _TOLD.get(group, set()) & schema.keys()
        return [("json", self.json_node({"type": kind, **{keyword: schema[keyword] for keyword in told}}))]

    def only_told(self, schema: dict[str, Any], group: str, at: str) -> None:
        """GrammarError for a keyword about such values that would not be kept."""
        for keyword in _UNTOLD.get(group, ()):
            if keyword not in schema or (keyword == "format" and not _enforced(schema[keyword])):
                continue
            value = schema[keyword]
            if not any(type(value) is type(v) and value == v for v in _HARMLESS.get(keyword, ())):
                self.fail(f"'{keyword}' cannot be told in {self.name}", f"{at}/{keyword}")

    def rule(self, at: str, kind: str, make: Callable[[], int] | int) -> int:
        """A call of the place's rule, which may contain itself: inside it references are followed anew."""
        key = (at, kind)
        if key not in self.rules:
            self.rules[key] = self.b.rule(f"{self.name} {at} {kind}")
            following, self.following = self.following, []
            self.b.define(self.rules[key], make if isinstance(make, int) else make())
            self.following = following
        return self.b.call(self.rules[key])

    def combined(self, schema: dict[str, Any], keyword: str, at: str, depth: int) -> Values:
        for other in schema:
            told = any(other in names for names in (*_TOLD.values(), *_UNTOLD.values(), _COMBINE))
            if other != keyword and (told or other in ("type", "enum", "const")):
                self.fail(f"'{keyword}' beside '{other}' cannot be told in {self.name}", at)
        if keyword == "$ref":
            return self.referred(schema["$ref"], at, depth)
        parts = schema[keyword]
        if not isinstance(parts, list) or not parts:
            self.fail(f"'{keyword}' must be a list of schemas", f"{at}/{keyword}")
        if keyword == "allOf" and len(parts) > 1:
            self.fail(f"'allOf' of several schemas cannot be told in {self.name}", f"{at}/allOf")
        found = [self.values(part, f"{at}/{keyword}/{i}", depth + 1) for i, part in enumerate(parts)]
        if keyword == "oneOf":
            for i, part in enumerate(parts):
                for other in parts[:i]:
                    if not schema_parts.apart(self.root, part, other):
                        unless = "unless types or a required constant tell its schemas apart; write 'anyOf'"
                        self.fail(f"'oneOf' cannot be told in {self.name} {unless}", f"{at}/oneOf/{i}")
        return [value for values in found for value in values]

    def referred(self, reference: Any, at: str, depth: int) -> Values:
        if not isinstance(reference, str):
            self.fail("'$ref' must be a text", f"{at}/$ref")
        if reference in self.following:
            self.fail(f"'$ref' leads back to itself: {reference}", f"{at}/$ref")
        self.following.append(reference)
        found = self.values(self.target(reference, at), reference, depth + 1)
        self.following.pop()
        return found

    def target(self, reference: str, at: str) -> Any:
        try:
            return schema_parts.target(self.root, reference)
        except LookupError as error:
            self.fail(f"'$ref' {error.args[0]}: {reference}", f"{at}/$ref")

    # ---- values ----

    def literals(self, schema: dict[str, Any], at: str, depth: int) -> Values:
        """The values of `const` or `enum`, of those that the rest of the schema takes."""
        if "const" in schema and "enum" in schema:
            self.fail(f"'const' beside 'enum' cannot be told in {self.name}", at)
        listed = [schema["const"]] if "const" in schema else schema["enum"]
        if not isinstance(listed, list):
            self.fail("'enum' must be a list", f"{at}/enum")
        types = self.types(schema, at) if "type" in schema else list(schema_parts.TYPES)
        values = [(schema_parts.type_of(value), value) for value in listed]
        values = [(k, v) for k, v in values if k in types or (k == "integer" and "number" in types)]
        for kind in dict(values):
            self.only_told(schema, "number" if kind == "integer" else kind, at)
        texts = [value for kind, value in values if kind == "string"]
        parts = [v for k, v in values if k in ("object", "array") and not self.style.anything]
        scalars = [
            v for k, v in values if k != "string" and (self.style.anything or k not in ("object", "array"))
        ]
        found: Values = []
        if texts:
            for text in texts:
                if self.style.stop in text:
                    self.fail(f"a string with {self.style.stop!r} cannot be told in {self.name}", at)
            exact = self.b.choice([self.b.literal(source.sound(text).encode()) for text in texts])
            narrow = _TOLD["string"] & schema.keys()
            found.append(("raw", self.b.both([exact, self.string(schema, at)]) if narrow else exact))
        if scalars:
            more = {keyword: schema[keyword] for told in _TOLD.values() for keyword in told & schema.keys()}
            found.append(("json", self.json_node({"enum": scalars, **more})))
        for i, value in enumerate(parts):
            for keyword in (_TOLD["object"] | _TOLD["array"]) & schema.keys():
                self.fail(f"'{keyword}' beside fixed values cannot be told in {self.name}", at)
            found += self.values(schema_parts.of_value(value), f"{at}/enum/{i}", depth + 1)
        return found

    def string(self, schema: dict[str, Any], at: str) -> int:
        parts = [self.free]
        least, most = self.bounds(schema, "Length", at)
        if least or most is not None:
            parts.append(self.b.repeat(source.any_char(self.b), least, -1 if most is None else most))
        pattern = schema.get("pattern")
        if pattern is not None:
            if not isinstance(pattern, str):
                self.fail("'pattern' must be a text", f"{at}/pattern")
            try:
                parts.append(self.b.pattern(ecma.whole(source.sound(pattern))))
            except GrammarError as error:
                self.fail(error.message, f"{at}/pattern")
        return self.b.both(parts) if len(parts) > 1 else self.free

    def anything(self, at: str) -> Values:
        """Any value at all."""
        if not self.style.anything:
            self.fail(f"a schema without a type cannot be told in {self.name}", at)
        scalar = self.json_node({"type": ["number", "boolean", "null"]})
        return [("raw", self.free), ("json", scalar), ("dict", self.any_object()), ("list", self.any_array())]

    def any_object(self) -> int:
        def make() -> int:
            return self.around(self.b.repeat(self.other([], lambda: self.anything("#")), 0, -1))

        return self.rule("#any", "object", make)

    def any_array(self) -> int:
        return self.rule("#any", "array", lambda: self.b.repeat(self.item(self.anything("#")), 0, -1))

    # ---- elements ----

    def around(self, members: int) -> int:
        """Each member has blanks before it; these are the ones behind the last."""
        return self.b.sequence([members, self.blank])

    def element(self, begin: str, name: str, values: Values) -> int:
        """A member or an item: an element for each kind of value."""
        return self.b.choice(
            [
                self.b.sequence(
                    [self.spell(begin.format(name=name, kind=kind)), self.inside(name, kind, node)]
                )
                for kind, node in values
            ]
        )

    def inside(self, name: str, kind: str, node: int) -> int:
        close = self.spell(self.style.close.format(name=name))
        blank = [self.blank] if self.style.padded and kind in ("json", "list") else []
        return self.b.sequence([*blank, node, *blank, close])

    def item(self, values: Values) -> int:
        element = self.element(self.style.item, "item", values)
        return self.b.sequence([self.blank, element]) if self.style.between else element

    def escaped(self, name: str, at: str) -> str:
        for char, written in self.style.escapes:
            name = name.replace(char, written)
        if not name or "\0" in name or (not self.style.escapes and (">" in name or name.startswith("/"))):
            self.fail(f"the name {name!r} cannot be told in {self.name}", at)
        return source.sound(name)

    def other(self, names: list[str], make: Callable[[], Values]) -> int:
        """A member with any other name."""
        b = self.b
        plain = b.chars([(0, 0), *((ord(char), ord(char)) for char, _ in self.style.escapes)], True)
        name = b.repeat(b.choice([plain, *(b.literal(w.encode()) for _, w in self.style.escapes)]), 1, -1)
        if names:
            name = b.both([name, b.negate(b.choice([b.literal(n.encode()) for n in names]))])
        before, _, after = self.style.member.partition("{name}")
        head = b.sequence([self.blank, self.spell(before), name])
        return b.sequence([head, self.element(after, "", make())])

    def members(self, schema: dict[str, Any], at: str, depth: int) -> int:
        """An object's members, in the schema's order."""
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(properties, dict):
            self.fail("'properties' must be an object", f"{at}/properties")
        if not isinstance(required, list) or not all(isinstance(n, str) for n in required):
            self.fail("'required' must be a list of texts", f"{at}/required")
        others = schema.get("additionalProperties", self.style.anything and "properties" not in schema)
        if others is not False and not self.style.anything:
            self.fail(f"'additionalProperties' cannot be told in {self.name}", f"{at}/additionalProperties")
        unknown = [name for name in required if name not in properties]
        if unknown:
            self.fail(f"the required '{unknown[0]}' is no listed property", f"{at}/required")
        elements: list[tuple[int, bool]] = []  # (node, whether it must be there)
        for name, inner in properties.items():
            place = f"{at}/properties/{name.replace('~', '~0').replace('/', '~1')}"
            written = self.escaped(name, place)
            values = self.values(inner, place, depth + 1)
            if not values and name in required:
                self.fail(f"no value of the required '{name}' can be told in {self.name}", place)
            if values:
                node = self.element(self.style.member, written, values)
                elements.append((self.b.sequence([self.blank, node]), name in required))
        rest = None
        if others is not False:
            place = f"{at}/additionalProperties"
            names = [self.escaped(name, place) for name in properties]
            rest = self.other(names, lambda: self.values(others, place, depth + 1))
        least, most = self.bounds(schema, "Properties", at)
        if self.style.padded:
            return self.around(self.counted(elements, rest, least, most, at))
        return self.unless_empty(
            least == 0 and not any(must for _, must in elements),
            most == 0 or not elements,
            lambda: self.counted(elements, rest, max(1, least), most, at),
        )

    def unless_empty(self, may: bool, always: bool, make: Callable[[], int]) -> int:
        """Blanks stand before and after elements; where there are none, nothing does."""
        nothing = self.b.literal(b"")
        if may and always:
            return nothing
        whole = self.around(make())
        return self.b.choice([nothing, whole]) if may else whole

    def counted(
        self, elements: list[tuple[int, bool]], rest: int | None, least: int, most: int | None, at: str
    ) -> int:
        """The members one after another, as many as may be. Linear, or elements times the bounds."""
        b = self.b
        needed = sum(must for _, must in elements)
        if least <= needed and (most is None or (rest is None and most >= len(elements))):
            parts = [node if must else b.repeat(node, 0, 1) for node, must in elements]
            return b.sequence([*parts, *([b.repeat(rest, 0, -1)] if rest is not None else [])])
        bound = least if most is None else most
        cap = min(len(elements), bound)  # of members counted; without a maximum, none beyond `least` are
        if len(elements) * cap > _MOST_TAILS:
            self.fail(f"{len(elements)} properties and a bound of {bound} cannot be told in {self.name}", at)

        def end(k: int) -> int | None:
            if rest is not None:
                return b.repeat(rest, max(0, least - k), -1 if most is None else most - k)
            return b.literal(b"") if k >= least else None

        reached = [{0}]  # counts before each element: only those get a rule
        for _, must in elements:
            more = {k + 1 if k < cap else k for k in reached[-1] if k < cap or most is None}
            reached.append(more if must else more | reached[-1])
        tails = [end(k) for k in range(cap + 1)]  # what may follow k members
        for i in range(len(elements) - 1, -1, -1):
            node, must = elements[i]
            before: list[int | None] = []
            for k in range(cap + 1):
                if k not in reached[i]:
                    before.append(None)
                    continue
                then = k + 1 if k < cap else (k if most is None else None)
                after = None if then is None else tails[then]
                skipped = None if must else tails[k]
                ways = [] if after is None else [b.sequence([node, after])]
                ways += [] if skipped is None else [skipped]
                # a rule, since two others continue with it
                before.append(
                    self.rule(f"{at} from {i} after {k}", "members", b.choice(ways)) if ways else None
                )
            tails = before
        if tails[0] is None:
            self.fail("no number of members fits 'minProperties', 'maxProperties' and 'required'", at)
        return tails[0]

    def items(self, schema: dict[str, Any], at: str, depth: int) -> int:
        """An array's items. `prefixItems` may end early; without `items` none follow them."""
        first = schema.get("prefixItems", [])
        others = schema.get("items", self.style.anything and not first)
        if isinstance(others, list):  # as older drafts have it
            first, others = others, False
        if not isinstance(first, list):
            self.fail("'prefixItems' must be a list", f"{at}/prefixItems")
        if others is False and not first and "items" not in schema and schema.get("maxItems") != 0:
            self.fail(f"an array without 'items' cannot be told in {self.name}", at)
        low, most = self.bounds(schema, "Items", at)
        if not self.style.between:
            return self.listed(first, others, low, most, at, depth)
        return self.unless_empty(
            low == 0,
            most == 0 or (others is False and not first),
            lambda: self.listed(first, others, max(1, low), most, at, depth),
        )

    def listed(self, first: list[Any], others: Any, least: int, most: int | None, at: str, depth: int) -> int:
        """The items one after another; those of `first`, then any number of `others`."""
        heads = [
            self.item(values) if (values := self.values(inner, f"{at}/prefixItems/{i}", depth + 1)) else None
            for i, inner in enumerate(first[:most])
        ]
        values = [] if others is False else self.values(others, f"{at}/items", depth + 1)
        more = self.item(values) if values else None
        b = self.b
        count = len(heads)
        low, high = max(0, least - count), -1 if most is None else max(0, most - count)
        if more is None and low > 0:
            self.fail("no number of items fits 'minItems'", at)
        whole: int | None = b.literal(b"") if more is None else b.repeat(more, low, high)
        for k in range(count - 1, -1, -1):
            head = heads[k]
            ways = [] if head is None or whole is None else [b.sequence([head, whole])]
            if k >= least:
                ways.append(b.literal(b""))
            whole = b.choice(ways) if ways else None
        if whole is None:
            self.fail("no number of items fits 'minItems'", at)
        return whole

    def bounds(self, schema: dict[str, Any], what: str, at: str) -> tuple[int, int | None]:
        least, most = schema.get(f"min{what}", 0), schema.get(f"max{what}")
        for name, value in ((f"min{what}", least), (f"max{what}", most)):
            if value is not None and not schema_parts.is_count(value):
                self.fail(f"'{name}' must be a whole number", f"{at}/{name}")
        if most is not None and most < least:
            self.fail(f"'min{what}' is above 'max{what}'", at)
        if least > _MOST:
            self.fail(f"'min{what}' is too large", f"{at}/min{what}")
        return int(least), None if most is None or most > _MOST else int(most)


def _enforced(name: Any) -> bool:
    """Whether a format constrains anything; one that nobody knows is an annotation."""
    return str(name) in _core.format_names()
