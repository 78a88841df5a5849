"""Judges whether a value is an instance: a direct evaluator of drafts 4, 6, 7, 2019-09 and 2020-12.

Input: a schema, a draft, and values from `oracle.loads` (with exact numbers). Output: a verdict. The module
shares no code with the engine or with jsonschema. It collects annotations keyword by keyword, as the
specifications say, and resolves references by a walk over the places of schemas. Time: tens of microseconds.
One decision is the engine's: formats of the newest draft are enforced in every draft. Patterns are Python's,
but `$` matches only at the very end.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from oracles.oracle import FORMATS, Fractional, canonical, loads

DRAFTS = (4, 6, 7, 2019, 2020)
METASCHEMAS = {
    4: "http://json-schema.org/draft-04/schema#",
    6: "http://json-schema.org/draft-06/schema#",
    7: "http://json-schema.org/draft-07/schema#",
    2019: "https://json-schema.org/draft/2019-09/schema",
    2020: "https://json-schema.org/draft/2020-12/schema",
}

# keyword -> (first draft, last draft, the places of its subschemas)
ONE, LIST, MAP, EITHER, MIXED = "one", "list", "map", "either", "mixed"
SUBSCHEMAS = {
    "allOf": (4, 2020, LIST), "anyOf": (4, 2020, LIST), "oneOf": (4, 2020, LIST), "not": (4, 2020, ONE),
    "if": (7, 2020, ONE), "then": (7, 2020, ONE), "else": (7, 2020, ONE),
    "properties": (4, 2020, MAP), "patternProperties": (4, 2020, MAP), "additionalProperties": (4, 2020, ONE),
    "propertyNames": (6, 2020, ONE), "items": (4, 2020, EITHER), "additionalItems": (4, 2019, ONE),
    "prefixItems": (2020, 2020, LIST), "contains": (6, 2020, ONE), "dependencies": (4, 7, MIXED),
    "dependentSchemas": (2019, 2020, MAP), "unevaluatedItems": (2019, 2020, ONE),
    "unevaluatedProperties": (2019, 2020, ONE), "definitions": (4, 2020, MAP), "$defs": (4, 2020, MAP),
}  # fmt: skip


def subschemas(schema: dict, draft: int) -> list[tuple[tuple[str | int, ...], Any]]:
    """Returns (path, subschema) of every place that holds a schema."""
    out: list[tuple[tuple[str | int, ...], Any]] = []
    for keyword, (first, last, where) in SUBSCHEMAS.items():
        if keyword not in schema or not first <= draft <= last:
            continue
        held = schema[keyword]
        if where in (MAP, MIXED) and isinstance(held, dict):
            out += [((keyword, name), s) for name, s in held.items() if not isinstance(s, list)]
        elif isinstance(held, list) and where in (LIST, EITHER):
            out += [((keyword, i), s) for i, s in enumerate(held)]
        elif where in (ONE, EITHER):
            out.append(((keyword,), held))
    return out


def in_python(pattern: str) -> str:
    """Returns a pattern of the random generators, translated for `re`. The generators put no `.` or `$` in
    brackets or behind a backslash."""
    return pattern.replace("$", r"\Z").replace(".", "[^\n\r\u2028\u2029]")


@functools.cache
def _search(pattern: str) -> Callable[[str], Any]:
    return re.compile(in_python(pattern)).search


class Notes:
    """The keys and indices that a valid schema evaluated."""

    __slots__ = ("items", "keys")

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.items: set[int] = set()

    def add(self, other: Notes) -> None:
        self.keys |= other.keys
        self.items |= other.items


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool | str | list | dict) and value is not None


def _is_type(value: Any, name: str, draft: int) -> bool:
    if name == "number":
        return _is_number(value)
    if name == "integer":
        if draft == 4 and isinstance(value, Fractional):  # 1.0 is no integer in draft 4
            return False
        return _is_number(value) and Fraction(value).denominator == 1
    if name == "boolean":
        return isinstance(value, bool)
    if name == "null":
        return value is None
    return isinstance(value, {"string": str, "array": list, "object": dict}[name])


class Judge:
    """Verdicts for one schema.

    Args:
        schema: a JSON value.
        draft: 4, 6, 7, 2019 or 2020.
        formats: name -> check. A name without a check is an annotation.
        registry: URI -> schema, for references to other documents of the draft.
    """

    def __init__(
        self,
        schema: Any,
        draft: int = 2020,
        formats: dict[str, Callable[[str], bool]] = FORMATS,
        registry: dict[str, Any] | None = None,
    ) -> None:
        text = json.dumps(schema)
        self.root = loads(text)  # a copy in which every object occurs once, with exact numbers
        self.draft = draft
        self.formats = formats
        self._notes = "nevaluated" in text
        self._resources: dict[str, Any] = {}
        self._base: dict[int, str] = {}  # id of a schema object -> the URI of its resource
        self._anchors: dict[tuple[str, str], Any] = {}
        self._dynamic: dict[tuple[str, str], Any] = {}
        self._values: dict[int, Any] = {}
        self._documents = [self.root]
        self._resources[""] = self.root
        self._scan(self.root, "")
        for uri, document in (registry or {}).items():
            loaded = loads(json.dumps(document))
            self._documents.append(loaded)
            self._resources[uri] = loaded
            self._scan(loaded, uri)

    def accepts(self, text: str) -> bool:
        try:
            value = loads(text)
        except (ValueError, RecursionError):
            return False
        return self.accepts_value(value)

    def accepts_value(self, value: Any) -> bool:
        return self.check(self.root, value, (self._base.get(id(self.root), ""),)) is not None

    # ---- references ----

    def _scan(self, schema: Any, base: str) -> None:
        if not isinstance(schema, dict):
            return
        hidden = self.draft <= 7 and "$ref" in schema
        name = schema.get("id" if self.draft == 4 else "$id")
        if isinstance(name, str) and not hidden:
            absolute, fragment = urldefrag(urljoin(base, name))
            if fragment and self.draft <= 7:
                self._anchors[base if name.startswith("#") else absolute, fragment] = schema
            if not name.startswith("#"):
                base = absolute
                self._resources[base] = schema
        self._base[id(schema)] = base
        if self.draft >= 2019:
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(schema.get(keyword), str) and (keyword == "$anchor" or self.draft == 2020):
                    self._anchors[base, schema[keyword]] = schema
                    if keyword == "$dynamicAnchor":
                        self._dynamic[base, schema[keyword]] = schema
        for _, inner in subschemas(schema, self.draft):
            self._scan(inner, base)

    def resolve(self, reference: str, base: str) -> tuple[Any, str]:
        """Returns the schema behind a reference, and the URI of its resource. Raises LookupError if the
        reference leads nowhere."""
        target, fragment = urldefrag(urljoin(base, reference) if not reference.startswith("#") else reference)
        resource = target or base
        if resource not in self._resources:
            raise LookupError(reference)
        found = self._resources[resource]
        if fragment and not fragment.startswith("/"):
            return self._anchors[resource, fragment], resource
        for part in unquote(fragment).split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            found = found[int(part)] if isinstance(found, list) else found[part]
            resource = self._base.get(id(found), resource)
        return found, resource

    def _dynamic_target(self, reference: str, base: str, scope: tuple[str, ...]) -> tuple[Any, str]:
        target, resource = self.resolve(reference, base)
        name = urldefrag(reference)[1]
        if (resource, name) in self._dynamic:
            for uri in scope:
                if (uri, name) in self._dynamic:
                    return self._dynamic[uri, name], uri
        return target, resource

    def _recursive_target(self, base: str, scope: tuple[str, ...]) -> tuple[Any, str]:
        def recurses(uri: str) -> bool:
            found = self._resources[uri]
            return isinstance(found, dict) and found.get("$recursiveAnchor") is True

        if recurses(base):
            for uri in scope:
                if recurses(uri):
                    return self._resources[uri], uri
        return self._resources[base], base

    # ---- evaluation ----

    def check(self, schema: Any, value: Any, scope: tuple[str, ...]) -> Notes | None:
        """Returns the evaluated keys and indices, or None if the value is no instance."""
        notes = Notes()
        if isinstance(schema, bool):
            return notes if schema else None
        if not isinstance(schema, dict):
            return notes
        base = self._base.get(id(schema), scope[-1])
        if base != scope[-1]:
            scope = (*scope, base)
        draft = self.draft
        if isinstance(schema.get("$ref"), str):
            target, resource = self.resolve(schema["$ref"], base)
            found = self.check(target, value, self._into(scope, resource))
            if draft <= 7:
                return found  # the draft ignores keywords beside `$ref`
            if found is None:
                return None
            notes.add(found)
        if draft == 2019 and "$recursiveRef" in schema:
            target, resource = self._recursive_target(base, scope)
            found = self.check(target, value, self._into(scope, resource))
            if found is None:
                return None
            notes.add(found)
        if draft == 2020 and "$dynamicRef" in schema:
            target, resource = self._dynamic_target(schema["$dynamicRef"], base, scope)
            found = self.check(target, value, self._into(scope, resource))
            if found is None:
                return None
            notes.add(found)
        if not self._any_type(schema, value):
            return None
        if not self._logic(schema, value, scope, notes):
            return None
        if isinstance(value, str):
            return notes if self._string(schema, value) else None
        if isinstance(value, dict):
            return notes if self._object(schema, value, scope, notes) else None
        if isinstance(value, list):
            return notes if self._array(schema, value, scope, notes) else None
        if _is_number(value):
            return notes if self._number(schema, value) else None
        return notes

    @staticmethod
    def _into(scope: tuple[str, ...], resource: str) -> tuple[str, ...]:
        return scope if resource == scope[-1] else (*scope, resource)

    def _canonical(self, value: Any) -> Any:
        """Returns the canonical form of a value in the schema, computed once."""
        known = self._values.get(id(value))
        if known is None:
            known = self._values[id(value)] = [canonical(v) for v in value]
        return known

    def _any_type(self, schema: dict, value: Any) -> bool:
        if "type" in schema:
            names = schema["type"]
            names = [names] if isinstance(names, str) else names
            if not any(_is_type(value, name, self.draft) for name in names):
                return False
        if "enum" in schema and canonical(value) not in self._canonical(schema["enum"]):
            return False
        return not (self.draft >= 6 and "const" in schema) or canonical(value) == canonical(schema["const"])

    def _logic(self, schema: dict, value: Any, scope: tuple[str, ...], notes: Notes) -> bool:
        for inner in schema.get("allOf", ()):
            found = self.check(inner, value, scope)
            if found is None:
                return False
            notes.add(found)
        if "anyOf" in schema:
            any_holds = False
            for inner in schema["anyOf"]:
                found = self.check(inner, value, scope)
                if found is not None:
                    any_holds = True
                    notes.add(found)
                    if not self._notes:
                        break
            if not any_holds:
                return False
        if "oneOf" in schema:
            holding = [f for f in (self.check(s, value, scope) for s in schema["oneOf"]) if f is not None]
            if len(holding) != 1:
                return False
            notes.add(holding[0])
        if "not" in schema and self.check(schema["not"], value, scope) is not None:
            return False
        if self.draft >= 7 and "if" in schema:
            found = self.check(schema["if"], value, scope)
            if found is not None:
                notes.add(found)
            branch = "then" if found is not None else "else"
            if branch in schema:
                found = self.check(schema[branch], value, scope)
                if found is None:
                    return False
                notes.add(found)
        return True

    def _string(self, schema: dict, value: str) -> bool:
        if "minLength" in schema and len(value) < schema["minLength"]:
            return False
        if "maxLength" in schema and len(value) > schema["maxLength"]:
            return False
        if "pattern" in schema and not _search(schema["pattern"])(value):
            return False
        check = self.formats.get(schema.get("format", ""))
        return check is None or check(value)

    def _number(self, schema: dict, value: Any) -> bool:
        exact = Fraction(value)
        minimum, maximum = schema.get("minimum"), schema.get("maximum")
        above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        if self.draft == 4:  # draft 4: booleans that exclude the bound of the other keyword
            above, minimum = (minimum, None) if above is True else (None, minimum)
            below, maximum = (maximum, None) if below is True else (None, maximum)
        if minimum is not None and exact < Fraction(minimum):
            return False
        if maximum is not None and exact > Fraction(maximum):
            return False
        if above is not None and exact <= Fraction(above):
            return False
        if below is not None and exact >= Fraction(below):
            return False
        return "multipleOf" not in schema or (exact / Fraction(schema["multipleOf"])).denominator == 1

    def _array(self, schema: dict, value: list, scope: tuple[str, ...], notes: Notes) -> bool:
        draft = self.draft
        if "minItems" in schema and len(value) < schema["minItems"]:
            return False
        if "maxItems" in schema and len(value) > schema["maxItems"]:
            return False
        if schema.get("uniqueItems") is True and len({canonical(v) for v in value}) < len(value):
            return False
        tuple_keyword = "prefixItems" if draft == 2020 else "items"
        prefix = schema.get(tuple_keyword)
        prefix = prefix if isinstance(prefix, list) else []
        for inner, item in zip(prefix, value, strict=False):
            if self.check(inner, item, scope) is None:
                return False
        notes.items.update(range(min(len(prefix), len(value))))
        rest: Any = schema.get("items")
        if isinstance(rest, list):
            rest = schema.get("additionalItems") if draft <= 2019 else None
        if rest is not None:
            for item in value[len(prefix) :]:
                if self.check(rest, item, scope) is None:
                    return False
            notes.items.update(range(len(prefix), len(value)))
        if draft >= 6 and "contains" in schema:
            holding = [
                i for i, item in enumerate(value) if self.check(schema["contains"], item, scope) is not None
            ]
            least = schema.get("minContains", 1) if draft >= 2019 else 1
            most = schema.get("maxContains", len(value)) if draft >= 2019 else len(value)
            if not least <= len(holding) <= most:
                return False
            if draft == 2020:
                notes.items.update(holding)
        if draft >= 2019 and "unevaluatedItems" in schema:
            for i, item in enumerate(value):
                if i not in notes.items and self.check(schema["unevaluatedItems"], item, scope) is None:
                    return False
            notes.items.update(range(len(value)))
        return True

    def _object(self, schema: dict, value: dict, scope: tuple[str, ...], notes: Notes) -> bool:
        draft = self.draft
        if any(name not in value for name in schema.get("required", ())):
            return False
        if "minProperties" in schema and len(value) < schema["minProperties"]:
            return False
        if "maxProperties" in schema and len(value) > schema["maxProperties"]:
            return False
        properties = schema.get("properties", {})
        patterns = schema.get("patternProperties", {})
        for name, item in value.items():
            known = False
            if name in properties:
                known = True
                if self.check(properties[name], item, scope) is None:
                    return False
            for pattern, inner in patterns.items():
                if _search(pattern)(name):
                    known = True
                    if self.check(inner, item, scope) is None:
                        return False
            if not known and "additionalProperties" in schema:
                known = True
                if self.check(schema["additionalProperties"], item, scope) is None:
                    return False
            if known:
                notes.keys.add(name)
            if (
                draft >= 6
                and "propertyNames" in schema
                and self.check(schema["propertyNames"], name, scope) is None
            ):
                return False
        if draft >= 2019:
            for name, others in schema.get("dependentRequired", {}).items():
                if name in value and any(other not in value for other in others):
                    return False
        for keyword in ("dependentSchemas",) if draft >= 2019 else ("dependencies",):
            for name, then in schema.get(keyword, {}).items():
                if name not in value:
                    continue
                if isinstance(then, list):
                    if any(other not in value for other in then):
                        return False
                    continue
                found = self.check(then, value, scope)
                if found is None:
                    return False
                notes.add(found)
        if draft >= 2019 and "unevaluatedProperties" in schema:
            for name, item in value.items():
                if (
                    name not in notes.keys
                    and self.check(schema["unevaluatedProperties"], item, scope) is None
                ):
                    return False
            notes.keys.update(value)
        return True
