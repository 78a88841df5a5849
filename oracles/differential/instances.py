"""Values to try a schema with.

guided        follows the keywords loosely, conflicts ignored: about half are instances
small_values  every scalar, short array and small object over the schema's own words: the bounded oracle
walk          a random text of the engine's language, finished by its shortest completion
Cost: guided and walk take tens of microseconds; small_values yields up to a few thousand values.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from oracles.differential.judge import Judge
from oracles.differential.schemas import KEYS
from oracles.strategies import FORMAT_TEXTS, NUMBERS, SCALARS, STRINGS, TYPES, Source

MATCHING = {
    "a": ("a", "ba", "xax"),
    "^a": ("a", "ab", "aa"),
    "b$": ("b", "ab", "aab"),
    "^a+$": ("a", "aa"),
    "^(a|b)*$": ("", "ab", "ba"),
    "[^a]": ("b", "ab", "é"),
    "^.$": ("a", "é", "😀"),
    "^[a-c]{1,3}$": ("a", "abc"),
    "ab|ba": ("ab", "ba"),
    "^$": ("",),
    "é": ("é",),
    "^x-": ("x-y", "x-1"),
    "^[0-9]+$": ("12", "0"),
    "^(ab)*$": ("", "ab"),
    "^a?b?$": ("", "a", "ab"),
    "^[^b]*$": ("", "a", "x-1"),
    "a.b": ("aab", "acb"),
    "^(a|ab)(c|bc)$": ("ac", "abc"),
    "^a$": ("a",),
    "^(a|b)$": ("a", "b"),
    "^[ab]{1,2}$": ("a", "bb", "ab"),
    "^(ab|c|zz)$": ("ab", "zz"),
    "^x-[01]$": ("x-0", "x-1"),
    "^[a-c]?$": ("", "c"),
}
FRESH = ("zz", "bb", "x-2", "aaa", "k", "a b")


def plain(value: Any) -> Any:
    """Returns the value with numbers that `json.dumps` can write."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


class Guide:
    """Draws values for the schema of a judge."""

    def __init__(self, source: Source, judge: Judge) -> None:
        self.source = source
        self.judge = judge
        self.fuel = 60

    def draw(self) -> Any:
        self.fuel = 60
        return plain(self.value([(self.judge.root, "")], 4))

    def flatten(self, schema: Any, base: str, out: list[tuple[dict, str]], hops: int = 0) -> None:
        """Collects the schema and the subschemas that apply to the same value; one value is drawn for all of
        them."""
        if not isinstance(schema, dict) or hops > 8:
            return
        s, judge = self.source, self.judge
        base = judge._base.get(id(schema), base)
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(schema.get(keyword), str):
                try:
                    self.flatten(*judge.resolve(schema[keyword], base), out, hops + 1)
                except LookupError:
                    continue
                if judge.draft <= 7:
                    return
        out.append((schema, base))
        for inner in schema.get("allOf", ()):
            self.flatten(inner, base, out, hops + 1)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                self.flatten(s.pick(schema[keyword]), base, out, hops + 1)
        if "if" in schema:
            holds = s.chance(50)
            self.flatten(schema["if"] if holds else True, base, out, hops + 1)
            self.flatten(schema.get("then" if holds else "else", True), base, out, hops + 1)
        if "not" in schema and s.chance(15):
            self.flatten(schema["not"], base, out, hops + 1)
        for keyword in ("dependentSchemas", "dependencies"):
            for inner in schema.get(keyword, {}).values():
                if s.chance(40):
                    self.flatten(inner, base, out, hops + 1)

    def value(self, schemas: list[tuple[Any, str]], depth: int) -> Any:
        s = self.source
        self.fuel -= 1
        if depth <= 0 or self.fuel <= 0:
            return s.pick(SCALARS) if s.chance(70) else s.pick(([], {}))
        parts: list[tuple[dict, str]] = []
        for schema, base in schemas:
            self.flatten(schema, base, parts)
        constants = [p["const"] for p, _ in parts if "const" in p]
        constants += [v for p, _ in parts for v in p.get("enum", ())]
        if constants and s.chance(92):
            return s.pick(constants)
        kinds = [
            k
            for p, _ in parts
            for k in ([p["type"]] if isinstance(p.get("type"), str) else p.get("type", ()))
        ]
        if not kinds:
            kinds = self.implied(parts) if s.chance(75) else []
        kind = s.pick(kinds) if kinds else s.pick(TYPES)
        if kind == "null":
            return None
        if kind == "boolean":
            return s.chance(50)
        if kind in ("number", "integer"):
            return self.number([p for p, _ in parts])
        if kind == "string":
            return self.string([p for p, _ in parts])
        return self.array(parts, depth) if kind == "array" else self.object(parts, depth)

    def implied(self, parts: list[tuple[dict, str]]) -> list[str]:
        words = {k for p, _ in parts for k in p}
        found = []
        for kind, keywords in (
            (
                "object",
                {
                    "properties",
                    "required",
                    "patternProperties",
                    "additionalProperties",
                    "minProperties",
                    "propertyNames",
                    "unevaluatedProperties",
                    "dependencies",
                    "maxProperties",
                },
            ),
            (
                "array",
                {
                    "items",
                    "prefixItems",
                    "contains",
                    "minItems",
                    "uniqueItems",
                    "unevaluatedItems",
                    "maxItems",
                },
            ),
            ("string", {"pattern", "minLength", "format", "maxLength"}),
            ("number", {"minimum", "multipleOf", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
        ):
            if words & keywords:
                found.append(kind)
        return found

    def number(self, parts: list[dict]) -> Any:
        s = self.source
        near = [
            p[k]
            for p in parts
            for k in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
            if isinstance(p.get(k), int | Decimal) and not isinstance(p.get(k), bool)
        ]
        base = plain(s.pick(near)) if near and s.chance(75) else s.pick(NUMBERS)
        return s.pick((base, base, base + 1, base - 1, base * 2, int(base), -base, base + 0.5))

    def string(self, parts: list[dict]) -> str:
        s = self.source
        formats = [p["format"] for p in parts if p.get("format") in FORMAT_TEXTS]
        if formats and s.chance(85):
            return s.pick(FORMAT_TEXTS[s.pick(formats)])
        patterns = [p["pattern"] for p in parts if p.get("pattern") in MATCHING]
        if patterns and s.chance(75):
            out = s.pick(MATCHING[s.pick(patterns)])
        elif s.chance(50):
            out = "".join(s.pick("abcé1-") for _ in range(s.integer(0, 5)))
        else:
            out = s.pick(STRINGS)
        low = max((int(p["minLength"]) for p in parts if "minLength" in p), default=0)
        if len(out) < low and s.chance(70):
            out += s.pick("ab") * (low - len(out))
        return out

    def array(self, parts: list[tuple[dict, str]], depth: int) -> list:
        s = self.source
        low = max((int(p["minItems"]) for p, _ in parts if "minItems" in p), default=0)
        low = max(low, *(int(p.get("minContains", 1)) for p, _ in parts if "contains" in p), 0)
        high = min((int(p["maxItems"]) for p, _ in parts if "maxItems" in p), default=4)
        size = s.integer(min(low, 4), max(min(low, 4), min(high, 4)))
        out: list[Any] = []
        for i in range(size):
            here: list[tuple[Any, str]] = []
            for p, base in parts:
                prefix = p.get("prefixItems", p.get("items"))
                rest = p.get("items") if "prefixItems" in p else p.get("additionalItems")
                if not isinstance(prefix, list):
                    here.append((prefix, base))
                else:
                    here.append((prefix[i] if i < len(prefix) else rest, base))
                if "contains" in p and s.chance(50):
                    here.append((p["contains"], base))
                if "unevaluatedItems" in p and s.chance(30):
                    here.append((p["unevaluatedItems"], base))
            out.append(
                s.pick(out)
                if out and s.chance(12)
                else self.value([h for h in here if h[0] is not None], depth - 1)
            )
        return out

    def object(self, parts: list[tuple[dict, str]], depth: int) -> dict:
        s = self.source
        names: dict[str, None] = {}
        for p, _ in parts:
            names |= dict.fromkeys(n for n in p.get("properties", ()) if s.chance(60))
            names |= dict.fromkeys(n for n in p.get("required", ()) if s.chance(95))
            for pattern in p.get("patternProperties", ()):
                if s.chance(40):
                    names[s.pick(MATCHING.get(pattern, KEYS))] = None
            for keyword in ("dependentSchemas", "dependentRequired", "dependencies"):
                names |= dict.fromkeys(n for n in p.get(keyword, ()) if s.chance(40))
        low = max((int(p["minProperties"]) for p, _ in parts if "minProperties" in p), default=0)
        for _ in range(6):
            if len(names) >= low and not s.chance(20):
                break
            names[s.pick(KEYS) if s.chance(75) else s.pick(FRESH)] = None
        out = {}
        for name in s.shuffled(list(names)):
            here: list[tuple[Any, str]] = []
            for p, base in parts:
                known = False
                if name in p.get("properties", ()):
                    known = True
                    here.append((p["properties"][name], base))
                for pattern, inner in p.get("patternProperties", {}).items():
                    if name in MATCHING.get(pattern, ()):
                        known = True
                        here.append((inner, base))
                if not known:
                    for keyword in ("additionalProperties", "unevaluatedProperties"):
                        if keyword in p:
                            here.append((p[keyword], base))
            out[name] = self.value(here, depth - 1)
        return out


# ---- every small value -------------------------------------------------------------------------


def words_of(schema: Any, strings: dict[str, None], numbers: dict[Any, None], keys: dict[str, None]) -> None:
    """Collects the strings, numbers and keys that a schema mentions."""
    if isinstance(schema, dict):
        for keyword, held in schema.items():
            if keyword in ("properties", "dependentSchemas", "dependentRequired", "dependencies"):
                keys |= dict.fromkeys(held)
            if keyword in ("$ref", "$id", "id", "$schema", "type", "format", "$anchor", "$dynamicRef"):
                continue
            if keyword == "pattern" or keyword == "patternProperties":
                for p in [held] if isinstance(held, str) else held:
                    (strings if keyword == "pattern" else keys).update(dict.fromkeys(MATCHING.get(p, ())[:3]))
            if keyword == "required":
                keys |= dict.fromkeys(held)
            words_of(held, strings, numbers, keys)
    elif isinstance(schema, list):
        for held in schema:
            words_of(held, strings, numbers, keys)
    elif isinstance(schema, str):
        strings[schema] = None
    elif isinstance(schema, int | float | Decimal) and not isinstance(schema, bool):
        value = plain(schema)
        numbers[value] = None
        numbers[value + 1] = None


def small_values(schema: Any, limit: int = 4000) -> Iterator[Any]:
    """Yields scalars, arrays and objects of growing size, two levels deep."""
    strings: dict[str, None] = {}
    numbers: dict[Any, None] = {}
    keys: dict[str, None] = {}
    words_of(schema, strings, numbers, keys)
    scalars: list[Any] = [None, True, False, 0, 1, 2, -1, 0.5, "", "a", "ab", "12"]
    scalars += [n for n in numbers if n not in scalars][:8]
    scalars += [t for t in strings if t not in scalars][:8]
    names = list(dict.fromkeys([*list(keys)[:5], "a", "zz"]))[:6]

    def containers(items: list[Any], few: list[Any]) -> Iterator[Any]:
        yield []
        yield {}
        for item in items:
            yield [item]
        for name in names:
            for item in items:
                yield {name: item}
        for pair in itertools.product(few, repeat=2):
            yield list(pair)
        for one, two in itertools.combinations(names, 2):
            for x, y in itertools.product(few, repeat=2):
                yield {one: x, two: y}
        for three in itertools.product(few[:6], repeat=3):
            yield list(three)
        for trio in itertools.combinations(names, 3):
            for three in itertools.product(few[:4], repeat=3):
                yield dict(zip(trio, three, strict=True))

    few: list[Any] = [1, "a", None, 2, "b", True, "", 0]
    few = list({repr(v): v for v in [*list(numbers)[:3], *list(strings)[:3], *few]}.values())[:8]
    flat = list(itertools.islice(containers(scalars, few), 1500))
    nested = containers([*scalars, *flat[:60]], [*few[:4], [], {}, *flat[2:8]])
    yield from itertools.islice(itertools.chain(scalars, flat, nested), limit)


# ---- walks -------------------------------------------------------------------------------------

_POOL = frozenset(b'{}[]":,0123456789.-eabcxyztrufalsnkid\\\xc3\xa9 ')
HUGE = re.compile(rb"[eE][+-]?[0-9]{4}|[0-9.]{300}")


def walk(source: Source, matcher: Any, steps: int) -> bytes:
    """Returns a random text of the language: `steps` random bytes, then the shortest completion."""
    s = source
    out = bytearray()
    for _ in range(steps):
        live = matcher.live_bytes()
        if not live or (matcher.is_accepting() and s.chance(15)):
            break
        if not s.chance(6):
            live = bytes(b for b in live if b in _POOL and b != 0x20) or live
        byte = live[s.integer(0, len(live) - 1)]
        out.append(byte)
        if not matcher.accept_bytes(bytes([byte])):
            raise AssertionError(f"byte {byte} is live and refused after {bytes(out)!r}")
    return bytes(out) + matcher.shortest_completion()
