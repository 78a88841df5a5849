"""Random schemas of classes that general random schemas rarely reach.

Input: a `Source` and a draft. Output: a schema. Each function draws one class of bugs that real schemas and
general random schemas missed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oracles.differential.schemas import FINITE, KEY_PATTERNS, KEYS, Builder
from oracles.strategies import NUMBERS, STEPS, TYPES, Source


def recursion(source: Source, draft: int) -> Any:
    """Mutual recursion through members and items, under `not`, `oneOf` and `if`; often no value exists."""
    s = source
    count = s.integer(1, 4)
    container = "$defs" if draft >= 2019 else "definitions"
    b = Builder(s, draft, definitions=count)

    def ref() -> dict:
        return {"$ref": f"#/{container}/d{s.integer(0, count - 1)}"}

    def child(depth: int) -> Any:
        roll = s.integer(0, 9)
        if roll <= 4:
            return ref()
        if roll == 5:
            return {"not": ref()}
        if depth and roll <= 7:
            return node(depth - 1)
        return s.pick(({"type": "null"}, b.boolean(True), {"enum": [1, "a"]}, {"type": ["object", "array"]}))

    def node(depth: int) -> dict:
        roll = s.integer(0, 11)
        if roll <= 2:
            names = s.some(("a", "b", "c"), 1, 2)
            out: dict = {"type": "object", "properties": {n: child(depth) for n in names}}
            if s.chance(70):
                out["required"] = s.some(names, 1, 2)
            if s.chance(40):
                out["additionalProperties"] = False if s.chance(70) else child(0)
            return out
        if roll <= 5:
            out = {"type": "array", "items": child(depth)}
            if s.chance(50):
                out["minItems"] = s.integer(1, 2)
            if s.chance(40):
                out["maxItems"] = s.integer(1, 2)
            if draft >= 6 and s.chance(30):
                out["contains"] = child(0)
            return out
        if not depth:
            return {"type": s.pick(TYPES)}
        if roll == 6:
            return {"type": s.pick(("array", "object")), "not": node(depth - 1)}
        if roll <= 8:
            return {"oneOf": [node(depth - 1) for _ in range(s.integer(2, 3))]}
        if roll == 9:
            return {"anyOf": [node(depth - 1), {"type": "null"}]}
        if roll == 10 and draft >= 7:
            return {"if": node(depth - 1), "then": node(depth - 1), "else": node(depth - 1)}
        return {"allOf": [node(depth - 1), node(depth - 1)]}

    definitions = {f"d{i}": node(2) for i in range(count)}
    return {"allOf": [ref() if s.chance(60) else node(1)], container: definitions}


def emptiness(source: Source, draft: int) -> Any:
    """Small schemas with few values or none, so a wrong answer to "is there a value" shows."""
    s = source
    b = Builder(s, draft)

    def scalar() -> Any:
        return s.pick(
            ({"enum": s.some((None, True, 1, 2, "a", "b"), 1, 3)}, {"type": s.pick(TYPES)},
             {"type": "integer", "minimum": s.integer(0, 2), "maximum": s.integer(0, 2)},
             {"type": "string", "minLength": s.integer(0, 2), "maxLength": s.integer(0, 2)},
             {"type": "string", "pattern": s.pick(FINITE)}, {"not": {"type": s.pick(TYPES)}})
        )  # fmt: skip

    def node(depth: int) -> Any:
        roll = s.integer(0, 9)
        if depth <= 0 or roll <= 1:
            return scalar()
        out: dict = {}
        if roll <= 4:
            out = {"type": "array", "items": node(depth - 1), "minItems": s.integer(0, 3)}
            if s.chance(50):
                out["uniqueItems"] = True
            if s.chance(50):
                out["maxItems"] = s.integer(1, 3)
            if draft >= 6 and s.chance(50):
                out["contains"] = node(depth - 1)
            if draft >= 2019 and s.chance(40):
                out |= {"minContains": s.integer(0, 3), "contains": out.get("contains", scalar())}
            if draft >= 2019 and s.chance(30):
                out |= {"maxContains": s.integer(0, 2), "contains": out.get("contains", scalar())}
        elif roll <= 7:
            out = {"type": "object", "properties": {n: node(depth - 1) for n in s.some(KEYS[:4], 1, 2)}}
            out["required"] = s.some(KEYS[:4], 1, 2)
            if s.chance(60):
                out["additionalProperties"] = False if s.chance(60) else node(0)
            if s.chance(40):
                out["minProperties"] = s.integer(1, 4)
            if s.chance(40):
                out["maxProperties"] = s.integer(0, 2)
            if s.chance(40):
                out["patternProperties"] = {s.pick(KEY_PATTERNS): node(depth - 1)}
            if draft >= 6 and s.chance(30):
                out["propertyNames"] = b.names(1)
        else:
            out = {s.pick(("allOf", "oneOf", "anyOf")): [node(depth - 1) for _ in range(2)]}
        if s.chance(30):
            out["not"] = node(depth - 1)
        return out

    return node(s.integer(1, 3))


def key_classes(source: Source, draft: int) -> Any:
    """Classes of keys: properties, overlapping patterns, other keys, propertyNames; finite or infinite, with
    counts."""
    s = source
    b = Builder(s, draft)

    def value() -> Any:
        return s.pick(
            (
                b.boolean(True),
                b.boolean(False),
                {"type": "integer"},
                {"enum": [1, "a"]},
                {"enum": ["a", None]},
                {"type": ["string", "null"]},
                {"minimum": 1},
                {"not": {"type": "integer"}},
                {"enum": [1]},
            )
        )

    def one() -> dict:
        out: dict = {}
        if s.chance(60):
            out["properties"] = {n: value() for n in s.some(KEYS, 1, 3)}
        if s.chance(75):
            out["patternProperties"] = {p: value() for p in s.some(KEY_PATTERNS, 1, 3)}
        if s.chance(60):
            out["additionalProperties"] = value() if s.chance(60) else False
        if draft >= 6 and s.chance(40):
            out["propertyNames"] = b.names(1)
        if s.chance(40):
            out["minProperties"] = s.integer(1, 4)
        if s.chance(40):
            out["maxProperties"] = s.integer(0, 4)
        if s.chance(40):
            out["required"] = s.some(KEYS, 1, 3)
        if draft >= 2019 and s.chance(25):
            out["unevaluatedProperties"] = value()
        return out

    roll = s.integer(0, 9)
    if roll <= 4:
        return {"type": "object", **one()}
    if roll <= 7:
        return {
            "type": "object",
            s.pick(("allOf", "anyOf", "oneOf")): [one(), one()],
            **(one() if s.chance(30) else {}),
        }
    return {"type": "object", **one(), "not": one()}


def unevaluated(source: Source, draft: int) -> Any:
    """unevaluatedProperties and unevaluatedItems beside keywords whose annotations count, and beside keywords
    whose annotations do not count."""
    s = source
    draft = max(draft, 2019)
    b = Builder(s, draft, definitions=2)
    arrays = s.chance(40)
    word = "unevaluatedItems" if arrays else "unevaluatedProperties"

    def small() -> Any:
        return s.pick(
            (True, False, {"type": "integer"}, {"const": 1}, {"type": "string"}, {"enum": ["a", 1]})
        )

    def local() -> dict:
        out: dict = {}
        if arrays:
            if s.chance(50):
                out["prefixItems" if draft == 2020 else "items"] = [small() for _ in range(s.integer(1, 3))]
            if s.chance(25):
                keyword = "items" if draft == 2020 else "additionalItems"
                if draft == 2020 or "items" in out:
                    out[keyword] = small()
            if s.chance(40):
                out["contains"] = small()
                if s.chance(40):
                    out["minContains"] = s.integer(0, 2)
                if s.chance(30):
                    out["maxContains"] = s.integer(0, 2)
            if s.chance(20):
                out["minItems"] = s.integer(0, 2)
        else:
            if s.chance(60):
                out["properties"] = {n: small() for n in s.some(KEYS[:5], 1, 2)}
            if s.chance(30):
                out["patternProperties"] = {p: small() for p in s.some(KEY_PATTERNS, 1, 2)}
            if s.chance(15):
                out["additionalProperties"] = small()
            if s.chance(30):
                out["required"] = s.some(KEYS[:5], 1, 1)
        return out

    def node(depth: int, building: int) -> dict:
        out = local()
        if depth > 0:
            for keyword in s.some(
                ("allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "$ref", "nested"), 1, 2
            ):
                if keyword in ("allOf", "anyOf", "oneOf"):
                    out[keyword] = [node(depth - 1, building) for _ in range(s.integer(1, 3))]
                elif keyword == "not":
                    out["not"] = node(depth - 1, building)
                elif keyword == "if":
                    out["if"] = node(depth - 1, building)
                    if s.chance(70):
                        out["then"] = node(depth - 1, building)
                    if s.chance(60):
                        out["else"] = node(depth - 1, building)
                elif keyword == "dependentSchemas" and not arrays:
                    out[keyword] = {n: node(depth - 1, building) for n in s.some(KEYS[:5], 1, 2)}
                elif keyword == "$ref" and building + 1 < b.definitions:
                    out["$ref"] = b.reference(s.integer(building + 1, b.definitions - 1))
                elif keyword == "nested":
                    out[word] = small()
        return out

    out = node(2, -1)
    out[word] = small() if s.chance(70) else False
    if s.chance(20):
        out = {"not": out, "type": "array" if arrays else "object"}
    if s.chance(20):
        out = {s.pick(("items", "additionalProperties")): out}
    return {**out, "$defs": {f"d{i}": node(1, i) for i in range(b.definitions)}}


def captures(source: Source, draft: int) -> Any:
    """uniqueItems over values that are often equal: small sets, nested containers, equal numbers, prefixes,
    contains."""
    s = source
    b = Builder(s, draft)

    def item(depth: int) -> Any:
        roll = s.integer(0, 8)
        if roll <= 1:
            return {"enum": s.some((1, 1.0, "1", True, None, "a", [], [1], {}, {"a": 1}, 0, False), 1, 5)}
        if roll == 2:
            return {"type": s.pick(("boolean", "integer", "string", "number"))}
        if roll == 3:
            return {"type": "string", "pattern": s.pick(FINITE)}
        if roll == 4:
            return {"type": "integer", "minimum": 0, "maximum": s.integer(0, 3)}
        if roll == 5 and depth:
            return {"type": "array", "items": item(depth - 1), "maxItems": 2, "uniqueItems": s.chance(50)}
        if roll == 6 and depth:
            return {"type": "object", "properties": {"a": item(depth - 1)}, "additionalProperties": False,
                    "required": s.some(("a",), 0, 1)}  # fmt: skip
        return b.boolean(True) if roll == 7 else {"type": ["boolean", "null"]}

    out: dict = {"type": "array", "uniqueItems": True, "items": item(2)}
    if s.chance(30):
        tuple_keyword = "prefixItems" if draft == 2020 else "items"
        rest = out.pop("items")
        out[tuple_keyword] = [item(1) for _ in range(s.integer(1, 3))]
        out["items" if draft == 2020 else "additionalItems"] = rest
    if s.chance(50):
        out["minItems"] = s.integer(1, 4)
    if s.chance(40):
        out["maxItems"] = s.integer(1, 4)
    if draft >= 6 and s.chance(35):
        out["contains"] = item(1)
        if draft >= 2019:
            if s.chance(50):
                out["minContains"] = s.integer(0, 3)
            if s.chance(40):
                out["maxContains"] = s.integer(0, 3)
    roll = s.integer(0, 9)
    if roll == 0:
        return {"not": out, "type": "array", "items": item(1), "maxItems": 3}
    if roll == 1:
        return {
            s.pick(("oneOf", "anyOf", "allOf")): [
                out,
                {"type": "array", "items": item(1), "uniqueItems": s.chance(50)},
            ]
        }
    if roll == 2:
        return {"type": "object", "properties": {"a": out, "b": out}, "additionalProperties": out}
    return out


def counts(source: Source, draft: int) -> Any:
    """contains with its counts, beside lengths, prefixes and further contains."""
    s = source
    b = Builder(s, max(draft, 6))
    draft = max(draft, 6)

    def value() -> Any:
        return s.pick(
            (b.boolean(True), b.boolean(False), {"type": "integer"}, {"const": 1}, {"enum": [1, 2, "a"]},
             {"minimum": 2}, {"type": ["string", "null"]}, {"not": {"const": 1}}, {"type": "array"})
        )  # fmt: skip

    def one() -> dict:
        out: dict = {}
        if s.chance(80):
            out["contains"] = value()
            if draft >= 2019 and s.chance(60):
                out["minContains"] = s.integer(0, 3)
            if draft >= 2019 and s.chance(60):
                out["maxContains"] = s.integer(0, 3)
        if s.chance(40):
            out["items"] = value()
        if s.chance(30):
            if draft == 2020:
                out["prefixItems"] = [value() for _ in range(s.integer(1, 2))]
            else:
                out["items"] = [value() for _ in range(s.integer(1, 2))]
                if s.chance(50):
                    out["additionalItems"] = value()
        if s.chance(40):
            out["minItems"] = s.integer(0, 4)
        if s.chance(40):
            out["maxItems"] = s.integer(0, 5)
        return out

    out = {"type": "array", **one()}
    roll = s.integer(0, 5)
    if roll <= 2:
        out[("allOf", "anyOf", "oneOf")[roll]] = [one() for _ in range(s.integer(1, 3))]
    elif roll == 3:
        out["not"] = one()
    return out


def numbers(source: Source, draft: int) -> Any:
    """Ranges, multiples, constants and integers, combined and negated."""
    s = source
    b = Builder(s, draft)

    def one() -> dict:
        out: dict = {}
        b.numbers(out)
        if s.chance(20):
            out["enum"] = [s.pick(NUMBERS) for _ in range(s.integer(1, 4))]
        if s.chance(20) and draft >= 6:
            out["const"] = s.pick((*NUMBERS, 1e2, 1.5e3, 2e-3))
        if s.chance(30):
            out["multipleOf"] = s.pick((*STEPS, 4, 6, 25, 100, 0.02))
        if s.chance(30):
            out["type"] = s.pick(("integer", "number"))
        return out

    out = one()
    out.setdefault("type", "number")
    roll = s.integer(0, 5)
    if roll <= 2:
        out[("allOf", "anyOf", "oneOf")[roll]] = [one() for _ in range(s.integer(1, 3))]
    elif roll == 3:
        out["not"] = one()
    return out if s.chance(60) else {"type": "array", "items": out, "uniqueItems": s.chance(30)}


def discriminated(source: Source, draft: int) -> Any:
    """oneOf and anyOf of objects whose members overlap, and whose difference comes late or never."""
    s = source
    b = Builder(s, draft)

    def branch(depth: int) -> dict:
        names = s.some(("kind", "a", "b", "c"), 1, 3)
        out: dict = {"properties": {}}
        for n in names:
            roll = s.integer(0, 4)
            if n == "kind":
                out["properties"][n] = {"enum": s.some(("x", "y", "z"), 1, 2)}
            elif roll == 0 and depth:
                out["properties"][n] = {
                    s.pick(("oneOf", "anyOf", "allOf")): [branch(depth - 1), branch(depth - 1)]
                }
            elif roll <= 2 and depth:
                out["properties"][n] = branch(depth - 1)
            else:
                out["properties"][n] = s.pick(
                    ({"type": "integer"}, {"enum": [1, 2]}, {"type": ["string", "null"]}, b.boolean(True))
                )
        if s.chance(60):
            out["required"] = s.some(names, 1, 2)
        if s.chance(60):
            out["type"] = "object"
        if s.chance(25):
            out["additionalProperties"] = False
        return out

    out: dict = {s.pick(("oneOf", "oneOf", "anyOf")): [branch(2) for _ in range(s.integer(2, 4))]}
    if s.chance(40):
        out |= branch(1)
    if s.chance(20):
        out["not"] = branch(1)
    if draft >= 7 and s.chance(20):
        out |= {"if": branch(1), "then": branch(1), "else": branch(0)}
    return out


def references(source: Source, draft: int) -> Any:
    """References of every kind, with keywords beside them, through resources, anchors and dynamic scopes."""
    s = source
    b = Builder(s, draft, fuel=40)
    b.definitions = s.integer(2, 4)
    b.links = s.pick(("anchor", "resource", "resource", "pointer"))
    b.dynamic = draft >= 2019 and b.links == "resource" and s.chance(80)

    def node(depth: int) -> Any:
        found = b.ref(True)
        assert found is not None
        roll = s.integer(0, 6)
        if roll <= 2:
            return found
        if roll == 3:
            return {**found, "type": s.pick(("object", "array")), "maxProperties": 1}
        if roll == 4 and depth:
            return {"type": "object", "properties": {n: node(depth - 1) for n in s.some(KEYS[:4], 1, 2)},
                    "additionalProperties": s.chance(50)}  # fmt: skip
        if roll == 5 and depth:
            return {"type": ["array", "null"], "items": node(depth - 1)}
        return {"type": s.pick(TYPES)}

    def definition(index: int) -> dict:
        b.building = index
        out: dict = {"type": s.pick(("object", ["object", "null"], ["object", "integer"]))}
        out["properties"] = {n: node(1) for n in s.some(KEYS[:4], 1, 2)}
        if s.chance(30):
            out["required"] = s.some(list(out["properties"]), 1, 1)
        if s.chance(50):
            out["additionalProperties"] = False if s.chance(60) else node(0)
        if draft >= 2019 and s.chance(30):
            out["unevaluatedProperties"] = False
        in_place = b.ref(False)
        if in_place and s.chance(50):
            if draft >= 2019:
                out |= in_place
            else:
                out["allOf"] = [in_place]
        return out

    out = definition(-1)
    out[b.container] = {f"d{i}": b.name_it(definition(i), i) for i in range(b.definitions)}
    if b.links == "resource":
        from oracles.differential.schemas import BASE

        out = {"id" if draft == 4 else "$id": BASE + "root", **out}
        if b.dynamic:
            out |= {"$recursiveAnchor": s.chance(80)} if draft == 2019 else {"$dynamicAnchor": "T"}
    return out


FAMILIES: dict[str, Callable[[Source, int], Any]] = {
    "recursion": recursion,
    "emptiness": emptiness,
    "key classes": key_classes,
    "unevaluated": unevaluated,
    "captures": captures,
    "counts": counts,
    "numbers": numbers,
    "discriminated": discriminated,
    "references": references,
}
