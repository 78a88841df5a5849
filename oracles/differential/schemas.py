"""Random schemas over every keyword of a draft.

Input: a `Source` and a draft. Output: a schema whose references all resolve. Every cycle of references passes
through a member or an item. Keys, strings and numbers come from small pools, so keywords often concern the
same values. Some keywords of other drafts are added, because the engine must ignore them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from oracles.strategies import FORMAT_TEXTS, NUMBERS, PATTERNS, SCALARS, STEPS, TYPES, Source

KEYS = ("a", "b", "ab", "ba", "c", "é", "x-1", "aa", "")
FINITE = ("^a$", "^(a|b)$", "^[ab]{1,2}$", "^(ab|c|zz)$", "^$", "^x-[01]$", "^[a-c]?$")
KEY_PATTERNS = (*FINITE, *PATTERNS)
BASE = "http://schemas.test/"

# Keywords of other drafts, with values that would change the verdict.
FOREIGN: dict[int, tuple[tuple[str, Any], ...]] = {
    4: (("const", 1), ("contains", {"type": "string"}), ("propertyNames", {"maxLength": 0}),
        ("exclusiveMinimum", True), ("if", {}), ("$anchor", "here")),
    6: (("if", {}), ("then", False), ("else", False), ("minContains", 3), ("unevaluatedItems", False)),
    7: (("minContains", 3), ("maxContains", 0), ("unevaluatedProperties", False), ("prefixItems", [False]),
        ("dependentRequired", {"a": ["zz"]}), ("dependentSchemas", {"a": {"not": {}}})),
    2019: (("prefixItems", [False]), ("$dynamicAnchor", "here"), ("$dynamicRef", "#nowhere")),
    2020: (("additionalItems", False), ("$recursiveAnchor", True), ("id", "urn:nothing")),
}  # fmt: skip


@dataclass(slots=True)
class Builder:
    """Builds one schema. `links` names the kind of references to definitions."""

    source: Source
    draft: int
    definitions: int = 0
    links: str = "pointer"  # pointer, anchor or resource
    dynamic: bool = False
    fuel: int = 60
    building: int = -1  # the definition in construction: in-place references lead only to later ones
    kinds: tuple[str, ...] = field(default=("object", "object", "array", "string", "number"))

    # ---- references ----

    @property
    def container(self) -> str:
        return "$defs" if self.draft >= 2019 else "definitions"

    def reference(self, index: int) -> str:
        if self.links == "anchor":
            return f"#A{index}"
        if self.links == "resource":
            return self.source.pick((f"d{index}", f"{BASE}d{index}"))
        return f"#/{self.container}/d{index}"

    def ref(self, guarded: bool) -> dict | None:
        s = self.source
        if guarded and self.dynamic and s.chance(50):
            return {"$recursiveRef": "#"} if self.draft == 2019 else {"$dynamicRef": "#T"}
        first = 0 if guarded else self.building + 1
        if first < self.definitions and s.chance(85):
            return {"$ref": self.reference(s.integer(first, self.definitions - 1))}
        if guarded:
            return {"$ref": "#" if self.links != "resource" else s.pick(("#", "root", BASE + "root"))}
        return None

    def name_it(self, schema: Any, index: int) -> Any:
        """Gives a definition the name that references use."""
        if self.links == "pointer":
            return schema
        if not isinstance(schema, dict):
            schema = {} if schema else {"not": {}}
        if self.draft <= 7 and "$ref" in schema:  # a `$ref` would hide the name
            schema = {"allOf": [schema]}
        key = "id" if self.draft == 4 else "$id"
        if self.links == "resource":
            out = {key: f"d{index}", **schema}
            if self.dynamic and self.source.chance(75):
                out |= {"$recursiveAnchor": True} if self.draft == 2019 else {"$dynamicAnchor": "T"}
            elif self.dynamic and self.draft == 2020:
                out |= {"$anchor": "T"}
            return out
        return {"$anchor": f"A{index}", **schema} if self.draft >= 2019 else {key: f"#A{index}", **schema}

    def document(self, depth: int) -> Any:
        s = self.source
        if s.chance(50):
            self.definitions = s.integer(1, 3)
            self.links = s.pick(("pointer", "pointer", "anchor", "resource"))
            self.dynamic = self.draft >= 2019 and self.links == "resource" and s.chance(60)
        out = self.schema(depth, False)
        if not self.definitions:
            return out
        definitions = {}
        for i in range(self.definitions):
            self.building = i
            self.fuel = max(self.fuel, 15)
            definitions[f"d{i}"] = self.name_it(self.schema(2, False), i)
        if not isinstance(out, dict):
            out = {} if out else {"not": {}}
        if self.draft <= 7 and "$ref" in out:
            out = {"allOf": [out]}
        out = {**out, self.container: definitions}
        if s.chance(50):
            self.building = -1
            member = self.ref(True)
            if self.draft >= 2019 or "$ref" not in out:
                out["properties"] = {**out.get("properties", {}), "a": member}
        if self.links == "resource":
            out = {"id" if self.draft == 4 else "$id": BASE + "root", **out}
            if self.dynamic:
                out |= {"$recursiveAnchor": s.chance(80)} if self.draft == 2019 else {"$dynamicAnchor": "T"}
        return out

    # ---- schemas ----

    def boolean(self, value: bool) -> Any:
        if self.draft == 4:
            return {} if value else {"not": {}}
        return value

    def schema(self, depth: int, guarded: bool) -> Any:
        s = self.source
        self.fuel -= 1
        if depth <= 0 or self.fuel <= 0:
            return self.leaf()
        roll = s.integer(0, 99)
        if roll < 12 and (self.definitions or guarded):
            found = self.ref(guarded)
            if found is not None:
                if self.draft >= 2019 and s.chance(30):
                    found |= self.typed(depth - 1, guarded)
                elif self.draft <= 7 and s.chance(30):
                    # the draft ignores these keywords
                    found |= {"type": s.pick(TYPES), "maximum": 0, "enum": ["never"]}
                return found
        if roll < 24:
            return self.leaf()
        out: dict = {}
        if roll < 62:
            out = self.typed(depth, guarded)
        elif roll < 80:
            for kind in s.some(("object", "array", "string", "number"), 1, 3):
                self.add(kind, out, depth, guarded)
            if s.chance(25):
                out["type"] = s.some(TYPES, 2, 5)
        elif s.chance(35):
            out = self.typed(depth - 1, guarded)
        if roll >= 80 or s.chance(18):
            self.logic(out, depth, guarded)
        if s.chance(3):
            keyword, value = s.pick(FOREIGN[self.draft])
            out.setdefault(keyword, value)
        return out

    def typed(self, depth: int, guarded: bool) -> dict:
        s = self.source
        kind = s.pick(self.kinds)
        out: dict = {"type": kind if kind != "number" else s.pick(("number", "integer", ["integer", "null"]))}
        self.add(kind, out, depth, guarded)
        return out

    def add(self, kind: str, out: dict, depth: int, guarded: bool) -> None:
        if kind == "object":
            self.objects(out, depth, guarded)
        elif kind == "array":
            self.arrays(out, depth, guarded)
        elif kind == "string":
            self.strings(out)
        else:
            self.numbers(out)

    def leaf(self) -> Any:
        s = self.source
        choice = s.integer(0, 11)
        if choice == 0:
            return self.boolean(True)
        if choice == 1:
            return self.boolean(s.chance(40))
        if choice == 2:
            return {"type": s.some(TYPES, 1, 3)}
        if choice <= 4 and self.draft >= 6:
            return {"const": self.value(2)}
        if choice <= 6:
            return {"enum": [self.value(1) for _ in range(s.integer(1, 4))]}
        out: dict = {}
        if choice <= 8:
            self.numbers(out)
        elif choice <= 10:
            self.strings(out)
        if choice % 2 or not out:
            out.setdefault("type", s.pick(TYPES))
        return out

    def value(self, depth: int) -> Any:
        s = self.source
        if depth <= 0 or s.chance(70):
            return s.pick(SCALARS)
        if s.chance(50):
            return [self.value(depth - 1) for _ in range(s.integer(0, 3))]
        return {key: self.value(depth - 1) for key in s.some(KEYS, 0, 3)}

    def count(self, high: int) -> Any:
        found = self.source.integer(0, high)
        return float(found) if self.source.chance(4) and self.draft >= 6 else found

    def numbers(self, out: dict) -> None:
        s = self.source
        for low, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if not s.chance(40):
                continue
            if self.draft == 4:
                out[low] = s.pick(NUMBERS)
                if s.chance(40):
                    out[exclusive] = s.chance(70)
            else:
                out[s.pick((low, exclusive))] = s.pick(NUMBERS)
        if s.chance(30):
            out["multipleOf"] = s.pick(STEPS)

    def strings(self, out: dict) -> None:
        s = self.source
        if s.chance(30):
            out["minLength"] = self.count(4)
        if s.chance(30):
            out["maxLength"] = self.count(6)
        if s.chance(40):
            out["pattern"] = s.pick(KEY_PATTERNS)
        if s.chance(10):
            out["format"] = s.pick(sorted(FORMAT_TEXTS))

    def arrays(self, out: dict, depth: int, guarded: bool) -> None:
        s, draft = self.source, self.draft
        if s.chance(35):
            tuple_keyword = "prefixItems" if draft == 2020 else "items"
            out[tuple_keyword] = [self.schema(depth - 1, True) for _ in range(s.integer(1, 3))]
            if draft < 2020 and s.chance(60):
                out["additionalItems"] = self.boolean_or(depth - 1)
        if s.chance(45) and not isinstance(out.get("items"), list):
            out["items"] = self.schema(depth - 1, True) if draft == 4 else self.schema_or(depth - 1)
        if s.chance(25):
            out["minItems"] = self.count(3)
        if s.chance(25):
            out["maxItems"] = self.count(4)
        if draft >= 6 and s.chance(25):
            out["contains"] = self.schema_or(depth - 1)
            if draft >= 2019 and s.chance(40):
                out["minContains"] = self.count(2)
            if draft >= 2019 and s.chance(40):
                out["maxContains"] = self.count(3)
        if s.chance(15):
            out["uniqueItems"] = s.chance(90)
        if draft >= 2019 and s.chance(15):
            out["unevaluatedItems"] = self.schema_or(depth - 1)

    def objects(self, out: dict, depth: int, guarded: bool) -> None:
        s, draft = self.source, self.draft
        if s.chance(70):
            names = s.shuffled(s.some(KEYS, 1, 4))
            out["properties"] = {name: self.schema(depth - 1, True) for name in names}
        if s.chance(45):
            named = list(out.get("properties", KEYS))
            out["required"] = s.some(KEYS if s.chance(30) else named, 1, 3)
        if s.chance(25):
            out["patternProperties"] = {p: self.schema(depth - 1, True) for p in s.some(KEY_PATTERNS, 1, 2)}
        if s.chance(45):
            out["additionalProperties"] = self.boolean_or(depth - 1)
        if draft >= 6 and s.chance(12):
            out["propertyNames"] = self.names(depth)
        if s.chance(15):
            out["minProperties"] = self.count(3)
        if s.chance(15):
            out["maxProperties"] = self.count(4)
        if draft >= 2019:
            if s.chance(12):
                out["dependentRequired"] = {n: s.some(KEYS, 0, 2) for n in s.some(KEYS, 1, 2)}
            if s.chance(12):
                out["dependentSchemas"] = {n: self.schema(depth - 1, guarded) for n in s.some(KEYS, 1, 2)}
            if s.chance(20):
                out["unevaluatedProperties"] = self.schema_or(depth - 1)
        elif s.chance(20):
            out["dependencies"] = {
                n: s.some(KEYS, 1, 2) if s.chance(50) else self.schema(depth - 1, guarded)
                for n in s.some(KEYS, 1, 2)
            }

    def names(self, depth: int) -> Any:
        s = self.source
        if s.chance(20):
            return self.schema(min(depth - 1, 1), True)
        return s.pick(
            ({"pattern": s.pick(KEY_PATTERNS)}, {"maxLength": 2}, {"enum": list(KEYS[:4])}, {"minLength": 1},
             {"not": {"pattern": s.pick(KEY_PATTERNS)}}, {"enum": ["a", "zz"]}, self.boolean(False))
        )  # fmt: skip

    def boolean_or(self, depth: int) -> Any:
        """Returns a boolean or a schema for additionalProperties and additionalItems. In draft 4 both may be
        booleans, too."""
        choice = self.source.integer(0, 4)
        return choice == 1 if choice <= 2 else self.schema(depth, True)

    def schema_or(self, depth: int) -> Any:
        choice = self.source.integer(0, 4)
        return self.boolean(choice == 1) if choice <= 2 else self.schema(depth, True)

    def logic(self, out: dict, depth: int, guarded: bool) -> None:
        s, draft = self.source, self.draft
        words = ["allOf", "anyOf", "oneOf", "not"] + ["if"] * (draft >= 7)
        for keyword in s.some(words, 1, 2):
            if keyword == "not":
                out["not"] = self.schema(depth - 1, guarded)
            elif keyword == "if":
                out["if"] = self.schema(depth - 1, guarded)
                if s.chance(75):
                    out["then"] = self.schema(depth - 1, guarded)
                if s.chance(60):
                    out["else"] = self.schema(depth - 1, guarded)
            else:
                out[keyword] = [self.schema(depth - 1, guarded) for _ in range(s.integer(1, 3))]
        if draft >= 2019 and s.chance(20):
            out[s.pick(("unevaluatedProperties", "unevaluatedItems"))] = self.schema_or(depth - 1)


def general(source: Source, draft: int) -> Any:
    """Returns a schema of any keywords, nested and combined, with references of every kind."""
    return Builder(source, draft).document(source.pick((1, 2, 2, 3, 3)))
