"""Inputs that are meant to break an engine: a table, and the run of a child process on one row.

`CASES` has an input for each kind and name: schemas, families of schemas whose cells would explode (a number
makes each larger), patterns, vocabularies. `SMALL` has sizes of the families that a judge can handle.
`tests/test_hostile.py` bounds the work generously, `bench.hostile` tightly. Time: building an input of up to
10 MB, and the engine's work on it.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable
from typing import Any, NamedTuple

MEMORY = 6 << 30
OK = "result"
COMPLEX = "SchemaTooComplex"
EMPTY = "UnsatisfiableSchema"
UNSUPPORTED = "UnsupportedSchema"
BAD = "GrammarError"


class Case(NamedTuple):
    """How to build the input, the accepted outcomes, and the CPU seconds within which an idle machine must
    end."""

    make: Callable[[], Any]
    right: set[str]
    seconds: float = 2.0


def deep_schema(depth: int) -> str:
    return '{"items":' * depth + "{}" + "}" * depth


def deep_properties(depth: int) -> str:
    return '{"properties":{"a":' * depth + "{}" + "}}" * depth


def wide_schema(count: int) -> str:
    members = ",".join(f'"property_{i}":{{"type":"string","maxLength":{i}}}' for i in range(count))
    return f'{{"type":"object","properties":{{{members}}}}}'


def big_enum(count: int) -> str:
    return '{"enum":[' + ",".join(f'"value number {i} of many"' for i in range(count)) + "]}"


def open_object(**properties) -> dict:
    return {"type": "object", "properties": properties}


def branch(i: int, **more) -> dict:
    return open_object(x=open_object(**{f"k{i}": {"minimum": i}}), **more)


def late_kind(n: int) -> dict:
    return {"oneOf": [branch(i, kind={"const": f"v{i}"}) | {"required": ["kind"]} for i in range(n)]}


def optional_kind(n: int) -> dict:
    return {"oneOf": [branch(i, kind={"const": f"v{i}"}) for i in range(n)]}


def no_kind(n: int) -> dict:
    return {"oneOf": [branch(i) for i in range(n)]}


def inner_kind(n: int) -> dict:
    inner = [open_object(y=open_object(**{f"k{i}": {"minimum": i}}), kind={"const": i}) for i in range(n)]
    return {"oneOf": [open_object(x=o | {"required": ["kind"]}) | {"required": ["x"]} for o in inner]}


def two_kinds(n: int) -> dict:
    return {
        "oneOf": [
            branch(i, kind={"enum": [f"v{i}", f"w{i}"]}, y={"type": "array", "items": {"maxLength": i}})
            | {"required": ["kind", "x"]}
            for i in range(n)
        ]
    }


def outer_required(n: int) -> dict:
    one = [
        {"properties": {"x": {"properties": {"k0": {"minimum": i}}}, "kind": {"const": f"v{i}"}}}
        for i in range(n)
    ]
    return {"type": "object", "required": ["kind"], "oneOf": one}


def pattern_kind(n: int) -> dict:
    return {"oneOf": [branch(i, kind={"pattern": f"^v{i}(-|$)"}) | {"required": ["kind"]} for i in range(n)]}


def present_key(n: int) -> dict:
    """Returns a schema in which the presence of the key x decides which branches are left, and these branches
    decide which keys may follow. Each of the 2^n sets of branches allows other keys, so the grammar needs 2^n
    alternatives."""
    return {"oneOf": [branch(i) | {"required": [f"b{i}"]} for i in range(n)]}


def in_arrays(n: int) -> dict:
    items = [{"type": "array", "items": open_object(**{f"k{i}": {"minimum": i}})} for i in range(n)]
    return {
        "oneOf": [
            open_object(x=a, kind={"const": f"v{i}"}) | {"required": ["kind"]} for i, a in enumerate(items)
        ]
    }


def all_of_any_of(n: int) -> dict:
    def choice(i: int, j: int) -> dict:
        key = f"b{(3 * i + j) % 5}"
        return {"properties": {"x": {"minimum": i * j}, key: {"maximum": i + j}}, "required": [key]}

    return {"type": "object", "allOf": [{"anyOf": [choice(i, j) for j in range(n)]} for i in range(n)]}


def all_of_any_of_keys(n: int) -> dict:
    return {
        "type": "object",
        "allOf": [
            {
                "anyOf": [
                    {"properties": {f"p{i}_{j}": {"type": "integer"}}, "required": [f"p{i}_{j}"]}
                    for j in range(4)
                ]
            }
            for i in range(n)
        ],
    }


def under_not(n: int) -> dict:
    schema: dict = open_object(a={"type": "string"}) | {"required": ["a"]}
    for _ in range(n):
        schema = {"not": open_object(a=schema) | {"required": ["a"]}}
    return schema


def recursion_under_not(n: int) -> dict:
    del n
    one = [
        open_object(x={"$ref": "#/$defs/A"}, y={"not": {"$ref": "#/$defs/B"}}) | {"required": ["y"]},
        {"type": "array", "items": {"not": {"$ref": "#/$defs/A"}}},
        {"$ref": "#/$defs/A"},
    ]
    a = open_object(x={"not": {"$ref": "#/$defs/B"}}, y={"$ref": "#/$defs/A"}) | {"required": ["x"]}
    return {"$ref": "#/$defs/A", "$defs": {"A": a, "B": {"oneOf": one}}}


def unique_all(n: int) -> dict:
    return {"type": "array", "minItems": n, "uniqueItems": True, "items": {"enum": list(range(n))}}


def unique_strings(n: int) -> dict:
    return {
        "type": "array",
        "minItems": n,
        "uniqueItems": True,
        "items": {"enum": [f"value {i}" for i in range(n)]},
    }


def unique_too_many(n: int) -> dict:
    return unique_all(n) | {"minItems": n + 1}


def contains_too_many(n: int) -> dict:
    return {"type": "array", "maxItems": n - 1, "allOf": [{"contains": {"const": i}} for i in range(n)]}


def keys_too_many(n: int) -> dict:
    return {"type": "object", "minProperties": n + 1, "propertyNames": {"enum": [f"k{i}" for i in range(n)]}}


def keys_enough(n: int) -> dict:
    return keys_too_many(n) | {"minProperties": n}


def keys_by_pattern(n: int) -> dict:
    digits = len(str(n - 1))
    return {
        "type": "object",
        "minProperties": 10**digits,
        "propertyNames": {"pattern": f"^[0-9]{{{digits}}}$"},
    }


def keys_by_pattern_too_many(n: int) -> dict:
    schema = keys_by_pattern(n)
    return schema | {"minProperties": schema["minProperties"] + 1}


def keys_of_two_kinds(n: int) -> dict:
    """Returns a schema of about ninety keys of one pattern, more than the engine writes out as names, and a
    count over some of them."""
    return {
        "type": "object",
        "patternProperties": {"^[1-9][0-9]?$": {"type": ["string", "integer"]}},
        "additionalProperties": False,
        "minProperties": n,
        "not": {
            "additionalProperties": {"type": "integer"},
            "minProperties": 2,
            "patternProperties": {"1": {"minimum": 2}},
        },
    }


def required_too_many(n: int) -> dict:
    return {"type": "object", "maxProperties": n - 1, "required": [f"k{i}" for i in range(n)]}


def values_too_many(n: int) -> dict:
    holds = [{"not": {"additionalProperties": {"not": {"const": i}}}} for i in range(n)]
    return {"type": "object", "propertyNames": {"enum": [f"k{i}" for i in range(n - 1)]}, "allOf": holds}


def pigeons(n: int) -> dict:
    sits = [
        {"anyOf": [{"properties": {f"h{j}": {"const": i}}, "required": [f"h{j}"]} for j in range(n - 1)]}
        for i in range(n)
    ]
    return {"type": "object", "allOf": sits}


def min_items(n: int) -> dict:
    return {"type": "array", "minItems": n, "items": {"type": "integer"}}


def min_items_unique(n: int) -> dict:
    return min_items(n) | {"uniqueItems": True}


def min_items_contains(n: int) -> dict:
    return {"type": "array", "minItems": n, "contains": {"const": 1}, "prefixItems": [{"type": "string"}]}


def min_contains(n: int) -> dict:
    return {"type": "array", "minContains": n, "contains": {"type": "string"}}


def min_properties(n: int) -> dict:
    return {"type": "object", "minProperties": n}


def min_properties_typed(n: int) -> dict:
    return {
        "type": "object",
        "minProperties": n,
        "properties": {"x": {"type": "integer"}},
        "required": ["x"],
        "patternProperties": {"^a": {"type": "string"}},
        "additionalProperties": {"type": "boolean"},
    }


def wide_either(n: int) -> dict:
    return open_object(**{f"p{i}": {"type": "integer"} for i in range(n)}) | {
        "required": [f"p{i}" for i in range(0, n, 3)],
        "minProperties": 5,
        "anyOf": [{"required": ["p1"]}, {"required": ["p2"]}],
    }


def wide_closed(n: int) -> dict:
    return wide_either(n) | {"additionalProperties": False, "minProperties": n // 2, "maxProperties": n - 1}


def wide_dependent(n: int) -> dict:
    return open_object(**{f"p{i}": {"type": "integer"} for i in range(n)}) | {
        "dependentRequired": {f"p{i}": [f"p{i + 1}"] for i in range(0, n - 1, 2)}
    }


def wide_if(n: int) -> dict:
    return open_object(**{f"p{i}": {"type": "integer"} for i in range(n)}) | {
        "required": [f"p{i}" for i in range(0, n, 7)],
        "if": {"properties": {"p0": {"minimum": 3}}},
        "then": {"required": ["p3"]},
        "else": {"properties": {"p5": {"maximum": 2}}},
    }


Family = Callable[[int], dict]


# family -> its size for tests of verdicts
SMALL: dict[Family, int] = {
    late_kind: 7, optional_kind: 7, no_kind: 6, inner_kind: 6, two_kinds: 6, outer_required: 7,
    pattern_kind: 6, present_key: 5, in_arrays: 6, all_of_any_of: 3, all_of_any_of_keys: 2, under_not: 3,
    recursion_under_not: 0,
    unique_all: 3, unique_strings: 3, keys_enough: 3, keys_of_two_kinds: 3,
    min_properties: 3, min_properties_typed: 3, wide_either: 7, wide_closed: 7, wide_dependent: 6, wide_if: 8,
    min_items_contains: 3, min_contains: 2,
}  # fmt: skip


_SCHEMAS = {
    "100k nested items": (lambda: deep_schema(100_000), {OK}),
    "100k nested properties": (lambda: deep_properties(100_000), {OK}),
    "100k nested allOf": (lambda: '{"allOf":[' * 100_000 + "{}" + "]}" * 100_000, {OK, COMPLEX}),
    "100k nested not": (lambda: '{"not":' * 100_000 + "{}" + "}" * 100_000, {OK, COMPLEX}),
    "100k brackets": (lambda: "[" * 100_000, {BAD}),
    "deep constant": (lambda: '{"const":' + "[" * 50_000 + "]" * 50_000 + "}", {OK, COMPLEX}),
    "10 MB of properties": (lambda: wide_schema(170_000), {OK}),
    "10 MB of enum": (lambda: big_enum(370_000), {OK}),
    "reference to itself": (lambda: '{"$ref":"#"}', {BAD}),
    "reference circle": (
        lambda: '{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}',
        {BAD},
    ),
    "reference under not": (lambda: '{"not":{"$ref":"#"}}', {BAD}),
    "reference to nothing": (lambda: '{"$ref":"#/$defs/none"}', {UNSUPPORTED}),
    "reference to the net": (lambda: '{"$ref":"https://example.com/x"}', {UNSUPPORTED}),
    "endless tree": (lambda: '{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}', {EMPTY}),
    "contradictory types": (lambda: '{"allOf":[{"type":"string"},{"type":"number"}]}', {EMPTY}),
    "contradictory range": (lambda: '{"type":"integer","minimum":2,"exclusiveMaximum":2}', {EMPTY}),
    "contradictory lengths": (lambda: '{"type":"string","minLength":3,"maxLength":2}', {EMPTY}),
    "contradictory pattern": (
        lambda: '{"type":"string","pattern":"^a+$","allOf":[{"pattern":"^b+$"}]}', {EMPTY},
    ),
    "false": (lambda: "false", {EMPTY}),
    "a number": (lambda: "12", {BAD}),
    "invalid JSON": (lambda: '{"type":', {BAD}),
    "invalid UTF-16": (lambda: '{"const":"\\ud800"}', {EMPTY}),
    "empty text": (lambda: "", {BAD}),
    "broken pattern": (lambda: '{"type":"string","pattern":"(a"}', {BAD}),
    "lookahead": (lambda: '{"type":"string","pattern":"^(?=.*a)(?=.*b).*$"}', {OK}),
    "backreference": (lambda: r'{"type":"string","pattern":"(a)\\1"}', {BAD}),
    "huge counter": (lambda: '{"type":"string","pattern":"^(a{1,1000}){1,1000}$"}', {OK}),
    "exponential pattern": (lambda: '{"type":"string","pattern":"^(a|b)*a(a|b){60}$"}', {OK}),
    "huge lengths": (lambda: '{"type":"string","minLength":1000000000}', {OK}),
    "huge arrays": (lambda: '{"type":"array","minItems":1000000000}', {OK}),
    "huge numbers": (lambda: '{"type":"number","minimum":1e400,"multipleOf":1e-400}', {OK, COMPLEX}),
    "wrong keyword types": (
        lambda: '{"type":"object","properties":3,"required":"a","minLength":"x","items":7}',
        {OK},
    ),
    "unique pigeons": (
        lambda: '{"type":"array","minItems":12,"uniqueItems":true,'
        '"items":{"enum":[1,2,3,4,5,6,7,8,9,10,11,12]}}',
        {OK},
    ),
    "too many unique": (
        lambda: '{"type":"array","minItems":6,"uniqueItems":true,"items":{"enum":[1,2,3,4,5]}}',
        {EMPTY},
    ),
    "overlapping oneOf": (
        lambda: '{"oneOf":[' + ",".join(
            f'{{"type":"object","properties":{{"x":{{"type":"object","properties":{{"k{i}":{{"minimum":{i}}}}}}}}}}}'
            for i in range(12)) + "]}",
        {OK},
    ),
    "nested oneOf": (lambda: '{"oneOf":[' * 24 + "{}" + ",{}]}" * 24, {OK}),
    "a thousand allOf": (
        lambda: '{"allOf":[' + ",".join(f'{{"not":{{"const":{i}}}}}' for i in range(1000)) + "]}",
        {OK},
    ),
}  # fmt: skip


_EXPLODING: dict[str, tuple[Family, int, set[str]]] = {
    **{f"{f.__name__} {n}": (f, n, {OK}) for n in (12, 30, 50)
       for f in (late_kind, optional_kind, no_kind, inner_kind, two_kinds, outer_required, pattern_kind)},
    **{f"in_arrays {n}": (in_arrays, n, {OK}) for n in (12, 30, 50)},
    **{f"present_key {n}": (present_key, n, {OK}) for n in (12, 30, 50)},
    "all_of_any_of 8": (all_of_any_of, 8, {OK}),
    "all_of_any_of 20": (all_of_any_of, 20, {OK}),
    "all_of_any_of_keys 40": (all_of_any_of_keys, 40, {OK}),
    "under_not 200": (under_not, 200, {OK}),
    "recursion_under_not": (recursion_under_not, 0, {OK}),
    "unique_all 12": (unique_all, 12, {OK}),
    "unique_all 200": (unique_all, 200, {OK}),
    "unique_all 1000": (unique_all, 1000, {OK}),
    "unique_strings 200": (unique_strings, 200, {OK}),
    "unique_too_many 12": (unique_too_many, 12, {EMPTY}),
    "unique_too_many 500": (unique_too_many, 500, {EMPTY}),
    "contains_too_many 12": (contains_too_many, 12, {EMPTY, COMPLEX}),
    "contains_too_many 30": (contains_too_many, 30, {EMPTY, COMPLEX}),
    "keys_too_many 12": (keys_too_many, 12, {EMPTY}),
    "keys_too_many 60": (keys_too_many, 60, {EMPTY}),
    "keys_too_many 1000": (keys_too_many, 1000, {EMPTY}),
    "keys_enough 1000": (keys_enough, 1000, {OK}),
    "keys_by_pattern 100": (keys_by_pattern, 100, {OK}),
    "keys_by_pattern 1000": (keys_by_pattern, 1000, {OK}),
    "keys_by_pattern_too_many 100": (keys_by_pattern_too_many, 100, {EMPTY}),
    "keys_by_pattern_too_many 1000": (keys_by_pattern_too_many, 1000, {EMPTY}),
    "keys_by_pattern_too_many 1e9": (keys_by_pattern_too_many, 10**9, {EMPTY}),
    "required_too_many 500": (required_too_many, 500, {EMPTY}),
    "values_too_many 12": (values_too_many, 12, {EMPTY, COMPLEX}),
    "values_too_many 30": (values_too_many, 30, {EMPTY, COMPLEX}),
    "pigeons 9": (pigeons, 9, {EMPTY}),
    "pigeons 14": (pigeons, 14, {EMPTY, COMPLEX}),
    "min_items 20000": (min_items, 20_000, {OK}),
    "min_items_unique 20000": (min_items_unique, 20_000, {OK}),
    "min_items_contains 20000": (min_items_contains, 20_000, {OK}),
    "min_contains 20000": (min_contains, 20_000, {OK}),
    "min_properties 20000": (min_properties, 20_000, {OK}),
    "min_properties_typed 20000": (min_properties_typed, 20_000, {OK}),
    "wide_either 2000": (wide_either, 2000, {OK}),
    "wide_closed 2000": (wide_closed, 2000, {OK, COMPLEX}),
    "wide_dependent 2000": (wide_dependent, 2000, {OK}),
    "wide_if 2000": (wide_if, 2000, {OK}),
}  # fmt: skip


_REGEXES = {
    "broken": (lambda: "a(b", {BAD}),
    "100k groups": (lambda: "(" * 100_000 + "a" + ")" * 100_000, {OK, COMPLEX}),
    "counters in counters": (lambda: "((((a{1,99}){1,99}){1,99}){1,99}){1,99}", {OK}),
    "counters in a loop": (lambda: "(((((a{1,99}){1,99}){1,99}){1,99}|b){1,99})*", {OK, COMPLEX}),
    "huge counter": (lambda: "a{1000000000}", {OK}),
    "exponential": (lambda: "(a|b)*a(a|b){40}", {OK}),
    "a megabyte": (lambda: "ab?" * 350_000, {OK}),
}  # fmt: skip


_VOCABULARIES = {
    "holes": (lambda: {"tokens": [b"", b"a", b"", b'"', b""], "eos": [4]}, {OK}),
    "nothing": (lambda: {"tokens": [], "eos": []}, {"VocabularyError"}),
    "eos out of range": (lambda: {"tokens": [b"a"], "eos": [7]}, {"VocabularyError"}),
    "negative eos": (lambda: {"tokens": [b"a"], "eos": [-1]}, {"VocabularyError"}),
    "one long token": (
        lambda: {"tokens": [b'"', b"a" * 1_000_000, b""], "eos": [2]}, {OK},
    ),
    "all the same": (lambda: {"tokens": [b'"'] * 100_000, "eos": [0]}, {OK}),
}  # fmt: skip


def _large(family: Family, size: int) -> Callable[[], str]:
    return lambda: json.dumps(family(size))


CASES: dict[tuple[str, str], Case] = {
    **{("json_schema", name): Case(*row) for name, row in _SCHEMAS.items()},
    **{
        ("json_schema", name): Case(_large(family, size), right, 1.0)
        for name, (family, size, right) in _EXPLODING.items()
    },
    **{("regex", name): Case(*row) for name, row in _REGEXES.items()},
    **{("vocabulary", name): Case(*row) for name, row in _VOCABULARIES.items()},
}


def setup(config: dict) -> object:
    from oracles.harness import compiler

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    compiler().json_schema("true").matcher().accept_bytes(b"[1")
    return compiler()


def _use(grammar, size: int) -> None:
    """Computes some masks and steps, because an engine may postpone work until a mask is needed."""
    from oracles import oracle

    matcher = grammar.matcher()
    for _ in range(30):
        allowed = oracle.mask_of(matcher, size).nonzero()[0]
        assert allowed.size, "a dead end"
        assert matcher.accept_token(int(allowed[len(allowed) // 2]))


def _vocabulary(tokens: list[bytes], eos: list[int]) -> None:
    import structgen
    from oracles import oracle

    vocabulary = structgen.Vocabulary.from_bytes(tokens, eos_token_ids=eos)
    matcher = structgen.Compiler(vocabulary).json_schema({"type": "string"}).matcher()
    mask = oracle.mask_of(matcher, len(tokens))
    assert (mask == oracle.naive_mask(matcher, len(tokens))).all()


def outcome(compiler, kind: str, text) -> dict:
    """Returns the outcome of one input, and its CPU time, which other processes change little."""
    from oracles.harness import WORDS
    from structgen import errors

    start = time.process_time()
    detail = ""
    try:
        if kind == "vocabulary":
            _vocabulary(**text)
        else:
            _use(getattr(compiler, kind)(text), WORDS.size)
        ended = OK
    except Exception as error:
        ended, detail = type(error).__name__, str(error)[:300]
        if getattr(errors, ended, None) is not type(error):
            ended = f"{type(error).__module__}.{ended}"
    return {"outcome": ended, "detail": detail, "seconds": time.process_time() - start}


def work(compiler, job: tuple[str, str], emit) -> None:
    emit(outcome(compiler, job[0], CASES[job].make()))
