"""Random schemas, instances, texts, patterns and vocabularies.

Each generator draws from a `Source`. There are two: Hypothesis, which shrinks failures, and a seeded
`random.Random`, which is ten times faster, for long runs. Domains are small on purpose: keys, strings and
numbers repeat, so that keywords concern equal values.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from oracles.oracle import CONTENT


class Source:
    """The source of all choices. `integer` is the one primitive."""

    def integer(self, low: int, high: int) -> int:
        raise NotImplementedError

    def pick(self, options: Sequence) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) >= 100 - percent  # shrinks towards False

    def some(self, options: Sequence, low: int, high: int) -> list:
        """Returns distinct options, in the order of the list."""
        rest = list(range(len(options)))
        kept = [
            rest.pop(self.integer(0, len(rest) - 1)) for _ in range(min(self.integer(low, high), len(rest)))
        ]
        return [options[i] for i in sorted(kept)]

    def shuffled(self, items: Sequence) -> list:
        rest = list(items)
        return [rest.pop(self.integer(0, len(rest) - 1)) for _ in range(len(rest))]


class Seeded(Source):
    def __init__(self, seed: int):
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


class Drawn(Source):
    def __init__(self, draw: Any):
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))


@st.composite
def sources(draw: Any) -> Source:
    return Drawn(draw)


# ---- schemas -----------------------------------------------------------------------------------

KEYS = ("a", "b", "ab", "ba", "c", "é", 'q"', "")
STRINGS = ("", "a", "b", "ab", "aab", "ba", "abc", "é", "😀", '"', "\\", "/", "x-y", "12", "\u0007")
NUMBERS = (0, 1, -1, 2, 3, 7, 10, 0.5, 1.5, -2.5, 0.1, 12, 100, 1000000, 0.001)
SCALARS = (None, True, False, *NUMBERS, *STRINGS)
PATTERNS = (
    "a", "^a", "b$", "^a+$", "^(a|b)*$", "[^a]", "^.$", "^[a-c]{1,3}$", "ab|ba", "^$", "é", "^x-",
    "^[0-9]+$", "^(ab)*$", "^a?b?$", "^[^b]*$", "a.b", "^(a|ab)(c|bc)$",
)  # fmt: skip
FORMAT_TEXTS = {
    "date": ("2024-02-29", "2023-02-29", "1999-12-31", "2024-13-01", "2024-1-01"),
    "time": ("12:34:56Z", "23:59:60Z", "12:34:60Z", "12:34:56.789+01:30", "24:00:00Z", "00:29:60+00:30"),
    "date-time": ("2024-02-29T00:00:00Z", "2023-02-29t10:00:00z", "2024-01-01 00:00:00Z"),
    "ipv4": ("127.0.0.1", "256.1.1.1", "1.2.3", "01.2.3.4", "0.0.0.0"),
    "ipv6": ("::1", "::", "1:2:3:4:5:6:7:8", "1::2::3", "::ffff:1.2.3.4", "12345::", "1:2:3:4:5:6:7::"),
    "uuid": ("123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000"),
    "duration": ("P1D", "PT1H2M", "P1Y2D", "P", "PT", "P2W", "P1WT1H", "P1Y2M3DT4H5M6S"),
    "json-pointer": ("", "/a/b", "/a~0b~1", "a", "/~2"),
}  # fmt: skip
STEPS = (1, 2, 3, 7, 10, 0.5, 0.1, 0.25, 1.5, 0.01)
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


@dataclass(frozen=True, slots=True)
class Features:
    """The keywords that random schemas use."""

    combine: bool = True  # allOf anyOf oneOf
    negate: bool = True  # not, if/then/else
    refs: bool = True  # $defs and recursive $ref
    unevaluated: bool = False
    unique: bool = True
    formats: bool = True
    contains: bool = True
    dependent: bool = True
    content: bool = False  # strings that hold JSON text
    depth: int = 3


PLAIN = Features(combine=False, negate=False, refs=False, unique=False, contains=False, dependent=False)


@dataclass(slots=True)
class _Builder:
    source: Source
    features: Features
    definitions: int = 0

    def schema(self, depth: int, guarded: bool) -> Any:
        """Returns a random schema. `guarded`: the schema stands inside a member or an item, so a recursive
        reference reads at least one of these."""
        s, f = self.source, self.features
        if depth <= 0:
            return self.leaf()
        if guarded and self.definitions and s.chance(15):
            return {"$ref": f"#/$defs/d{s.integer(0, self.definitions - 1)}"}
        kinds = [
            self.object,
            self.object,
            self.array,
            self.string,
            self.number,
            self.leaf,
            self.mixed,
        ]
        if f.combine:
            kinds += [self.combined, self.combined]
        if f.negate:
            kinds += [self.negated, self.conditional]
        if f.content:
            kinds += [self.content, self.content]
        return s.pick(kinds)(depth, guarded)

    def content(self, depth: int, guarded: bool) -> Any:
        held = {CONTENT: self.schema(depth - 1, True)}
        return {"type": "string", **held} if self.source.chance(80) else held

    def leaf(self, depth: int = 0, guarded: bool = False) -> Any:
        s = self.source
        choice = s.integer(0, 9)
        if choice == 0:
            return True
        if choice == 1:
            return {"type": s.some(TYPES, 1, 3)}
        if choice <= 3:
            return {"const": self.value(2)}
        if choice <= 5:
            return {"enum": [self.value(1) for _ in range(s.integer(1, 4))]}
        if choice == 6:
            return self.number(0, False)
        if choice == 7:
            return self.string(0, False)
        return {"type": s.pick(TYPES)}

    def value(self, depth: int) -> Any:
        s = self.source
        if depth <= 0 or s.chance(70):
            return s.pick(SCALARS)
        if s.chance(50):
            return [self.value(depth - 1) for _ in range(s.integer(0, 3))]
        return {key: self.value(depth - 1) for key in s.some(KEYS, 0, 3)}

    def number(self, depth: int, guarded: bool) -> dict:
        s = self.source
        out: dict = {"type": s.pick(("number", "integer", "number", ["integer", "null"]))}
        if s.chance(40):
            out[s.pick(("minimum", "exclusiveMinimum"))] = s.pick(NUMBERS)
        if s.chance(40):
            out[s.pick(("maximum", "exclusiveMaximum"))] = s.pick(NUMBERS)
        if s.chance(30):
            out["multipleOf"] = s.pick(STEPS)
        return out

    def string(self, depth: int, guarded: bool) -> dict:
        s = self.source
        out: dict = {"type": "string"}
        if s.chance(30):
            out["minLength"] = s.integer(0, 4)
        if s.chance(30):
            out["maxLength"] = s.integer(0, 6)
        if s.chance(40):
            out["pattern"] = s.pick(PATTERNS)
        if self.features.formats and s.chance(15):
            out["format"] = s.pick(sorted(FORMAT_TEXTS))
        return out

    def array(self, depth: int, guarded: bool) -> dict:
        s, f = self.source, self.features
        out: dict = {"type": "array"}
        if s.chance(40):
            out["prefixItems"] = [self.schema(depth - 1, True) for _ in range(s.integer(1, 3))]
        if s.chance(60):
            out["items"] = self.boolean_or(depth - 1)
        if s.chance(30):
            out["minItems"] = s.integer(0, 3)
        if s.chance(30):
            out["maxItems"] = s.integer(0, 4)
        if f.contains and s.chance(25):
            out["contains"] = self.schema(depth - 1, True)
            if s.chance(40):
                out["minContains"] = s.integer(0, 2)
            if s.chance(40):
                out["maxContains"] = s.integer(0, 3)
        if f.unique and s.chance(15):
            out["uniqueItems"] = True
        if f.unevaluated and s.chance(15):
            out["unevaluatedItems"] = self.boolean_or(depth - 1)
        return out

    def object(self, depth: int, guarded: bool) -> dict:
        s, f = self.source, self.features
        out: dict = {"type": "object"}
        if s.chance(85):
            names = s.shuffled(s.some(KEYS, 1, 4))
            out["properties"] = {name: self.schema(depth - 1, True) for name in names}
        if s.chance(50):
            out["required"] = s.some(KEYS if s.chance(30) else list(out.get("properties", KEYS)), 0, 3)
        if s.chance(25):
            names = s.some(PATTERNS, 1, 2)
            out["patternProperties"] = {name: self.schema(depth - 1, True) for name in names}
        if s.chance(50):
            out["additionalProperties"] = self.boolean_or(depth - 1)
        if s.chance(12):
            out["propertyNames"] = s.pick(
                (
                    {"pattern": s.pick(PATTERNS)},
                    {"maxLength": 2},
                    {"enum": list(KEYS[:4])},
                    {"minLength": 1},
                )
            )
        if s.chance(15):
            out["minProperties"] = s.integer(0, 3)
        if s.chance(15):
            out["maxProperties"] = s.integer(0, 4)
        if f.dependent and s.chance(12):
            out["dependentRequired"] = {s.pick(KEYS): s.some(KEYS, 1, 2)}
        if f.dependent and s.chance(12):
            out["dependentSchemas"] = {s.pick(KEYS): self.object(depth - 1, False)}
        if f.unevaluated and s.chance(20):
            out["unevaluatedProperties"] = self.boolean_or(depth - 1)
        return out

    def boolean_or(self, depth: int) -> Any:
        choice = self.source.integer(0, 3)
        return (choice == 1) if choice <= 1 else self.schema(depth, True)

    def mixed(self, depth: int, guarded: bool) -> dict:
        """Keywords of several types, with several types in `type` or without `type`."""
        s = self.source
        out: dict = {}
        for part in s.some((self.number, self.string, self.array, self.object), 2, 3):
            found = part(depth - 1, guarded)
            found.pop("type")
            out |= found
        if s.chance(40):
            out["type"] = s.some(TYPES, 2, 5)
        return out

    def combined(self, depth: int, guarded: bool) -> dict:
        s = self.source
        out = self.object(depth - 1, guarded) if s.chance(35) else {}
        for keyword in s.some(("allOf", "anyOf", "oneOf"), 1, 2):
            out[keyword] = [self.schema(depth - 1, guarded) for _ in range(s.integer(1, 3))]
        if self.features.unevaluated and s.chance(40):
            out[s.pick(("unevaluatedProperties", "unevaluatedItems"))] = self.boolean_or(depth - 1)
        return out

    def negated(self, depth: int, guarded: bool) -> dict:
        out = self.schema(depth - 1, guarded) if self.source.chance(60) else {}
        return {"allOf": [out], "not": self.schema(depth - 1, guarded)}

    def conditional(self, depth: int, guarded: bool) -> dict:
        s = self.source
        out: dict = {"if": self.schema(depth - 1, guarded)}
        if s.chance(80):
            out["then"] = self.schema(depth - 1, guarded)
        if s.chance(60):
            out["else"] = self.schema(depth - 1, guarded)
        return out


def schema(source: Source, features: Features = Features()) -> Any:  # noqa: B008 (frozen)
    """Returns a schema of draft 2020-12. Every cycle of references passes through a member or an item."""
    builder = _Builder(source, features)
    if features.refs and source.chance(40):
        builder.definitions = source.integer(1, 3)
    out = builder.schema(features.depth, False)
    if builder.definitions:
        definitions = {f"d{i}": builder.schema(2, False) for i in range(builder.definitions)}
        if out is True:
            out = {}
        out = {**out, "$defs": definitions}
        if source.chance(50):
            out = {"properties": {"a": {"$ref": "#/$defs/d0"}}, **out}
    return out


def any_schema(source: Source) -> Any:
    """Returns one of `schema`, `keyed` and `counted`."""
    kind = source.integer(0, 3)
    if kind <= 1:
        return schema(source, Features(unevaluated=True))
    return keyed(source) if kind == 2 else counted(source)


def keyed(source: Source, depth: int = 2) -> dict:
    """Objects whose free keys matter: the keys are captured, counted, matched by patterns, repeated."""
    s = source

    def inner() -> Any:
        if depth and s.chance(40):
            return keyed(s, depth - 1)
        return s.pick((True, {"const": 1}, {"type": "integer"}, {"type": "string", "maxLength": 3},
                       {"enum": ["a", "b", 1, None]}, {"type": "array", "maxItems": 5, "items": {"const": 1}},
                       {"type": ["object", "integer"]}))  # fmt: skip

    out: dict = {"type": "object"}
    if s.chance(50):
        out["properties"] = {name: inner() for name in s.shuffled(s.some(KEYS, 1, 3))}
    if s.chance(75):
        out["additionalProperties"] = s.pick((True, False)) if s.chance(30) else inner()
    if s.chance(35):
        out["patternProperties"] = {p: inner() for p in s.some(PATTERNS, 1, 2)}
    if s.chance(35):
        out["required"] = s.some(KEYS, 1, 2)
    if s.chance(30):
        out["minProperties"] = s.integer(1, 3)
    if s.chance(30):
        out["maxProperties"] = s.integer(1, 4)
    if s.chance(20):
        out["propertyNames"] = s.pick(
            ({"maxLength": 2}, {"pattern": s.pick(PATTERNS)}, {"enum": list(KEYS[:4])}, {"minLength": 1})
        )
    if s.chance(15):
        out = {s.pick(("anyOf", "oneOf", "allOf")): [out, keyed(s, 0)]}
    return out


def counted(source: Source, depth: int = 2) -> dict:
    """Lengths, items and members under counters, from less than one token to far more."""
    s = source
    low = s.integer(0, s.pick((2, 6, 20, 40)))
    high = low + s.integer(0, s.pick((2, 6, 20, 40)))
    kind = s.integer(0, 7)
    if kind <= 2 or depth == 0:
        out: dict = {"type": "string"}
        if s.chance(60):
            out["minLength"] = low
        if s.chance(80):
            out["maxLength"] = high
        if s.chance(40):
            out["pattern"] = s.pick(
                (f"^[a-c]{{{low},{high}}}$", f"^(ab){{{low % 9},}}", "^(a|b|é)*$", f"^.{{{low}}}$",
                 f"^a{{2,9}}[^a]{{0,{high}}}$", f"^(a{{1,3}}b?){{{low % 7},{low % 7 + 3}}}$")
            )  # fmt: skip
        return out
    if kind <= 4:
        items = counted(s, depth - 1) if s.chance(50) else {"enum": [1, "a", "b", {}, []]}
        return {"type": "array", "items": items, "minItems": low % 12, "maxItems": low % 12 + high % 12}
    if kind == 5:
        out = {"type": "object", "additionalProperties": counted(s, depth - 1)}
        out |= {"minProperties": low % 4, "maxProperties": low % 4 + high % 4}
        if s.chance(40):
            out["propertyNames"] = counted(s, 0)
        return out
    if kind == 6:
        branches = [counted(s, depth - 1) for _ in range(s.integer(2, 4))]
        return {s.pick(("anyOf", "oneOf")): branches}
    names = s.shuffled(s.some(KEYS, 1, 6))
    return {"type": "object", "properties": {name: counted(s, depth - 1) for name in names}}


# Names that one token may close, begin or contain, spelled with and without escapes.
NAMES = (
    *(
        '"',
        "\\",
        "",
        "a",
        "ab",
        "é",
        "😀",
        "\n",
        "/",
        'a"',
        '\\"',
        "name",
        "ame",
        "nam",
        "me",
        '":',
        '","',
        "u0061",
    ),
    *("\u2028", "\x7f", "a" * 17, 'na"me', "x" * 40, "é" * 9, "\\u0061", " ", "1", "}"),
)


def renamed(source: Source, schema: Any) -> Any:
    """Returns the schema with names of `NAMES`. Equal names stay equal."""
    known: dict[str, str] = {}

    def name(old: str) -> str:
        if old not in known:
            known[old] = source.pick(NAMES) if source.chance(70) else old
        return known[old]

    def walk(part: Any, key: str = "") -> Any:
        if isinstance(part, dict):
            named = key in ("properties", "dependentSchemas", "dependentRequired")
            pairs = ((name(k) if named else k, walk(v, "" if named else k)) for k, v in part.items())
            return dict(pairs)
        if isinstance(part, list):
            found = [walk(each, key) for each in part]
            if key in ("required", "enum"):  # the list must have no repeated name
                found = list({repr(each): each for each in found}.values())
            return found
        return name(part) if isinstance(part, str) and key in ("required", "enum", "const") else part

    return walk(schema)


# ---- instances ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Guide:
    """Values that probably satisfy a schema: the guide follows keywords loosely and ignores conflicts."""

    source: Source
    root: Any
    fuel: int = 40
    seen: list = field(default_factory=list)

    def value(self, schema: Any, depth: int = 5) -> Any:
        s = self.source
        self.fuel -= 1
        if not isinstance(schema, dict) or depth <= 0 or self.fuel <= 0:
            return s.pick(SCALARS) if s.chance(70) else s.pick(([], {}))
        if "$ref" in schema:
            target = self.root
            for part in schema["$ref"].split("/")[1:]:
                target = target[part]
            return self.value(target, depth - 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return s.pick(schema["enum"])
        branch = self.branch(schema)
        if branch is not None and s.chance(75):
            inner = self.value(branch, depth - 1)
            if isinstance(inner, dict) and ("properties" in schema or "required" in schema):
                return {**self.object(schema, depth), **inner}
            return inner
        return self.of_type(self.type(schema), schema, depth)

    def branch(self, schema: dict) -> Any:
        s = self.source
        options = [b for k in ("allOf", "anyOf", "oneOf") for b in schema.get(k, ())]
        options += [schema[k] for k in ("if", "then", "else") if k in schema]
        if "not" in schema and s.chance(20):
            options.append(schema["not"])
        return s.pick(options) if options else None

    def type(self, schema: dict) -> str:
        found = schema.get("type")
        if isinstance(found, str):
            return found
        if found:
            return self.source.pick(found)
        for kind, keywords in (
            ("object", ("properties", "required", "patternProperties", "additionalProperties")),
            ("array", ("items", "prefixItems", "contains", "minItems")),
            ("string", ("pattern", "minLength", "format", "maxLength", CONTENT)),
            (
                "number",
                ("minimum", "multipleOf", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
            ),
        ):
            if any(k in schema for k in keywords) and self.source.chance(70):
                return kind
        return self.source.pick(TYPES)

    def of_type(self, kind: str, schema: dict, depth: int) -> Any:
        s = self.source
        if kind == "null":
            return None
        if kind == "boolean":
            return s.chance(50)
        if kind in ("number", "integer"):
            near = [
                schema[k]
                for k in (
                    "minimum",
                    "maximum",
                    "exclusiveMinimum",
                    "exclusiveMaximum",
                    "multipleOf",
                )
                if k in schema
            ]
            base = s.pick(near) if near and s.chance(70) else s.pick(NUMBERS)
            return s.pick((base, base, base + 1, base - 1, base * 2, int(base)))
        if kind == "string":
            if CONTENT in schema and s.chance(90):
                return text(s, self.value(schema[CONTENT], depth - 1))
            if "format" in schema:
                return s.pick(FORMAT_TEXTS[schema["format"]])
            if s.chance(50):
                return "".join(s.pick("abcé1-") for _ in range(s.integer(0, 5)))
            return s.pick(STRINGS)
        return self.array(schema, depth) if kind == "array" else self.object(schema, depth)

    def array(self, schema: dict, depth: int) -> list:
        s = self.source
        prefix = schema.get("prefixItems", [])
        low = schema.get("minItems", 0)
        size = s.integer(low, max(low, min(schema.get("maxItems", 4), 4)))
        out = []
        for i in range(size):
            options = [prefix[i] if i < len(prefix) else schema.get("items", True)]
            if "contains" in schema and s.chance(40):
                options = [schema["contains"]]
            out.append(self.value(options[0], depth - 1))
        return out

    def object(self, schema: dict, depth: int) -> dict:
        s = self.source
        properties = schema.get("properties", {})
        names = [name for name in properties if s.chance(60)]
        names += [name for name in schema.get("required", ()) if name not in names and s.chance(95)]
        if s.chance(30):
            names += [name for name in s.some(KEYS, 0, 2) if name not in names]
        out = {}
        for name in names:
            inner = properties.get(name)
            if inner is None:
                others = [*schema.get("patternProperties", {}).values()]
                inner = (
                    s.pick(others) if others and s.chance(70) else schema.get("additionalProperties", True)
                )
            out[name] = self.value(inner, depth - 1)
        return out


def instance(source: Source, schema: Any) -> Any:
    """Returns a value that is often an instance."""
    return _Guide(source, schema).value(schema)


def mutated(source: Source, value: Any) -> Any:
    """Returns the value with one small change."""
    s = source
    if isinstance(value, list) and value and s.chance(75):
        at = s.integer(0, len(value) - 1)
        change = s.integer(0, 3)
        if change == 0:
            return value[:at] + value[at + 1 :]
        if change == 1:
            return value[: at + 1] + value[at:]
        return value[:at] + [mutated(s, value[at])] + value[at + 1 :]
    if isinstance(value, dict) and value and s.chance(75):
        key = s.pick(list(value))
        change = s.integer(0, 3)
        if change == 0:
            return {k: v for k, v in value.items() if k != key}
        if change == 1:
            return {(s.pick(KEYS) if k == key else k): v for k, v in value.items()}
        if change == 2:
            return {**value, s.pick(KEYS): s.pick(SCALARS)}
        return {k: (mutated(s, v) if k == key else v) for k, v in value.items()}
    if isinstance(value, str) and s.chance(60):
        at = s.integer(0, len(value))
        return value[:at] + s.pick("abcé1") + value[at + s.integer(0, 1) :]
    if isinstance(value, int | float) and not isinstance(value, bool) and s.chance(60):
        return s.pick((value + 1, value - 1, -value, value + 0.5, value * 10))
    return s.pick(SCALARS)


# ---- texts -------------------------------------------------------------------------------------


def _string_text(source: Source, value: str) -> str:
    """Returns the string in quotes, with some needless escapes."""
    out = []
    for c in value:
        plain = json.dumps(c, ensure_ascii=False)[1:-1]
        if not source.chance(10):
            out.append(plain)
        elif ord(c) > 0xFFFF:
            out.append(json.dumps(c)[1:-1])
        else:
            code = f"{ord(c):04x}"
            out.append("\\u" + (code.upper() if source.chance(50) else code))
    return '"' + "".join(out) + '"'


def _number_text(source: Source, value: float) -> str:
    """Returns the number, sometimes as an unusual numeral of equal value. Exponents have the forms that the
    engine accepts under a numeric keyword: one digit and any exponent (csrc/numbers/number.h)."""
    plain = json.dumps(value)
    if not source.chance(15) or "e" in plain:
        return plain
    forms = [plain + "0", plain + "000"] if "." in plain else [plain + ".0", plain + ".00"]
    sign, digits, exponent = Decimal(plain).normalize().as_tuple()
    if len(digits) == 1 and digits[0]:
        one = "-" * sign + str(digits[0])
        forms += [f"{one}e{exponent}", f"{one}.0E{exponent:+03}"]
    return source.pick(forms)


def text(source: Source, value: Any, *, shuffle: bool = True, odd: bool = True) -> str:
    """Returns JSON text of a value with shuffled keys. `odd` adds unusual escapes, numerals and blanks, and
    rarely a repeated key."""
    s = source
    comma, colon = s.pick(((", ", ": "), (",", ":"), (",\n ", ": ")))

    def write(v: Any) -> str:
        if isinstance(v, dict):
            items = list(v.items())
            if shuffle:
                items = s.shuffled(items)
            if odd and items and s.chance(2):
                items.append(s.pick(items))
            return "{" + comma.join(write(k) + colon + write(x) for k, x in items) + "}"
        if isinstance(v, list):
            return "[" + comma.join(map(write, v)) + "]"
        if isinstance(v, str):
            return _string_text(s, v) if odd else json.dumps(v, ensure_ascii=False)
        if odd and isinstance(v, int | float) and not isinstance(v, bool):
            return _number_text(s, v)
        return json.dumps(v)

    return write(value)


# ---- patterns ----------------------------------------------------------------------------------


def pattern(source: Source, depth: int = 3) -> str:
    """Returns a pattern over a small alphabet, in the syntax that Python and ECMA-262 share."""
    s = source
    if depth <= 0 or s.chance(30):
        return s.pick(("a", "b", "c", "é", "😀", ".", "[ab]", "[^a]", "[a-cé]", r"\.", r"[0-9]", r"\-", ""))
    kind = s.integer(0, 4)
    inner = pattern(s, depth - 1)
    if kind == 0:
        return f"(?:{inner}|{pattern(s, depth - 1)})"
    if kind == 1:
        return inner + pattern(s, depth - 1)
    low = s.integer(0, 3)
    times = ("*", "+", "?", f"{{{low}}}", f"{{{low},{low + s.integer(0, 3)}}}", f"{{{low},}}")
    return f"(?:{inner}){s.pick(times)}"


def subject(source: Source) -> str:
    return "".join(source.pick("abcé😀1.-") for _ in range(source.integer(0, 6)))


# ---- vocabularies ------------------------------------------------------------------------------

_PIECES = (
    b'{"', b'":', b'": ', b'",', b'", "', b'"}', b'"]', b"[", b"]", b"{}", b"[]", b"}}", b"]]",
    b"}, {", b"true", b"tr", b"ue", b"false", b"null", b"nul", b'"a"', b'"a', b'a"', b'b"', b'a":',
    b'"ab', b'ab"', b"ab", b"aa", b"ba", b"abc", b"10", b"12", b"00", b"1.5", b".5", b"e+", b"-1",
    b"0.", b"1,", b"1]", b" ", b"  ", b"\n ", b'\\"', b"\\u00", b"\\n", b'\\\\"', b"\\u", b"00e9",
    b"ud83d", b"\xc3", b"\xa9", b'\xa9"', b"a\xc3", b"\xf0\x9f", b"\x98\x80", b'\x80"',
    b"\xf0\x9f\x98", 'é"'.encode(), b'"\xc3', "é".encode(), "😀".encode(), b"-01-", b"2024",
    b"T00:", b":00Z", b"::", b"127.", b"0.1", b'"q\\""',
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Words:
    """A small vocabulary: every byte, merges, partial UTF-8, duplicates, unused ids, special tokens."""

    tokens: list[bytes]
    eos: list[int]
    special: list[int]

    @property
    def size(self) -> int:
        return len(self.tokens)


def words(source: Source, merges: int = 60) -> Words:
    s = source
    tokens = [bytes([b]) for b in range(256)]
    tokens += _PIECES
    for _ in range(merges):
        tokens.append((s.pick(tokens[256:]) + s.pick(tokens[32:]))[:12])
    tokens += [s.pick(tokens) for _ in range(6)]  # duplicates
    tokens += [b""] * 3  # unused ids
    special = list(range(len(tokens), len(tokens) + 4))
    tokens += [b"<s>", b"</s>", b"<|end|>", b"{"]
    return Words(tokens, eos=special[1:3], special=special)


def words_of(source: Source, texts: Sequence[bytes], merges: int) -> Words:
    """Returns every byte, and pieces of the texts: pairs merged as in byte-pair encoding, and pieces cut at
    any place, some with a wrong end. So a token spans several keys, values and blanks."""
    s = source
    tokens = dict.fromkeys(bytes([b]) for b in range(256))
    pieces = [[bytes([b]) for b in text[:200]] for text in texts]
    for _ in range(merges):
        pairs = Counter(pair for each in pieces for pair in zip(each, each[1:], strict=False))
        if not pairs:
            break
        one, two = s.pick(pairs.most_common(12))[0]
        tokens[one + two] = None
        for i, each in enumerate(pieces):
            merged: list[bytes] = []
            for piece in each:
                if merged and (merged[-1], piece) == (one, two):
                    merged[-1] += piece
                else:
                    merged.append(piece)
            pieces[i] = merged
    for text in (s.pick(texts) for _ in range(merges if texts else 0)):
        begin = s.integer(0, len(text))
        tokens[text[begin : begin + s.integer(2, 20)] + (s.pick(list(tokens)) if s.chance(30) else b"")] = (
            None
        )
    found = s.shuffled([t for t in tokens if t])
    return Words([*found, *found[:3], b"", b""], [len(found) + 4], [len(found) + 4])


_NASTY = (
    # several keys, or a key and its repetition, in one token
    b'":1,"a"', b'","', b'{"a":{', b'{"a":1,"a":', b'{"a":1,"b":', b'a":1,"a":1', b'":1,"b":1,"a":1',
    b'"a":1,"b":1}', b'{"":1,"":1', b'"":1,', b'1,"":', b'{"a":{"a":', b'":{"a":{"', b'":{"":',
    b'1},"a":', b'}, "b": ', b'"ab":1,"ab"', b'b":1,"ba":', b'{"b":1,"a":1,"c":1}', b'a":[{"a":1,"a',
    b'":"","', b'":"a","a":"', b'":null,"', b'":[],"', b'":{},"', b'{"c":{"c":{"c":', b'":true,"c":',
    # spelt with escapes
    b'"\\u0061"', b'\\u0061":1,"a"', b'a":1,"\\u0061"', b'\\u00', b'u00', b'0061', b'61":1,"', b'\\u',
    b'\\u00e', b'9":1,"', b'\\ud83d', b'\\ude00', b'\\ud83d\\ude00', b'de00"', b'\\"":1,"', b'q\\""', b'\\',
    # partial UTF-8 about structure
    b'"\xc3', b'\xa9":1,"', b'\xa9":1,"\xc3', b'"\xf0\x9f', b'\x98\x80","', b'\xc3\xa9\xc3', b'\xe2\x82',
    # runs and counters
    b"aa", b"aaaa", b"aaaaaaaa", b"abab", b"cccc", b'aaaa"', b'aa","a', b"1,1", b"1,1,1,1", b",1,1", b"1,1]",
    b'"a","a"', b'"a","b",', b"[[", b"[[[[", b"]]", b"]],[", b"],[", b"[],[]", b"{},{}", b"0000", b"12,12",
    # blanks
    b"  ", b"   ", b"     ", b" " * 8, b" " * 16, b" " * 33, b"\n\n", b"\n  ", b"\t\t\n ",
    b' , "', b' : ', b'": {"',
    # closers
    b'"}', b'"}]', b'"}]}', b'"]}', b"}}", b"}]}", b"}]", b"1}", b"1}}", b"1]}", b'"},{"a":', b'"],"',
    # numbers and constants
    b"-1", b"-0", b"0.", b".0", b".5", b"1.", b"e0", b"e-", b"E+", b"1e1", b"00", b"10", b"100",
    b"true,", b"null}",    b"2024-", b"-02-", b"29T", b"::", b"127.0", b"PT1H",
)  # fmt: skip


def nasty_words() -> Words:
    """Returns tokens that cross several parts of a text: keys and their repetition inside one token, escapes
    and characters cut anywhere, and runs longer than counters."""
    tokens = [bytes([b]) for b in range(256)]
    tokens += dict.fromkeys(_NASTY)
    tokens += [b'"a"', b"1", b""]
    special = list(range(len(tokens), len(tokens) + 3))
    tokens += [b"<s>", b"</s>", b'"']
    return Words(tokens, eos=special[1:2], special=special)


def plain_words() -> Words:
    """Returns a fixed small vocabulary."""
    return words(Seeded(7))
