"""References that lead nowhere or back to their own schema. Only a schema that needs such a reference is
refused.

Validators raise an error or recurse without end on such values. So the oracle reads a schema in three values,
true, false and unknown (Kleene's logic): a broken reference is "unknown". The oracle must say "true" of every
text that the engine accepts, and no call may raise in the middle of a text.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from oracles.harness import compiler
from structgen import errors

LOOP = {"$defs": {"x": {"$ref": "#/$defs/x"}}}


NEEDED = [
    ({"properties": {"a": "?"}}, b'{"b":', b'{"a":'),
    ({"properties": {"a": {"not": "?"}}}, b'{"b":', b'{"a":'),
    ({"properties": {"a": {"properties": {"b": "?"}}}}, b'{"a":{"c":', b'{"a":{"b":'),
    ({"items": {"oneOf": ["?", {"type": "null"}]}}, b"[]", b"[n"),
    ({"items": {"anyOf": ["?", {"type": "null"}]}}, b"[null]", b"[1"),
    ({"items": {"if": "?", "then": {"type": "null"}, "else": {"type": "null"}}}, b"[]", b"[n"),
    ({"contains": "?"}, b"1", b"["),
    ({"propertyNames": "?"}, b"{}", b'{"'),
    ({"dependentSchemas": {"a": "?"}}, b'{"b":1}', b'{"a":'),
    ({"type": "array", "prefixItems": [{"$ref": "#/$defs/y"}]}, b"[]", b"[1"),
]


@pytest.mark.parametrize("reference", ["#/$defs/x", "#/$defs/nothing"])
@pytest.mark.parametrize(("schema", "open", "shut"), NEEDED)
def test_what_does_not_need_it_is_allowed(schema: Any, open: bytes, shut: bytes, reference: str) -> None:
    text = json.dumps({**schema, "$defs": {**LOOP["$defs"], "y": {"allOf": ["?"]}}})
    grammar = compiler().json_schema(text.replace('"?"', json.dumps({"$ref": reference})))
    assert grammar.matcher().accept_bytes(open)
    assert not grammar.matcher().accept_bytes(shut)
    assert any("values that need it are refused" in line.reason for line in grammar.report)


@pytest.mark.parametrize("mode", ["error", "subset"])
@pytest.mark.parametrize(("schema", "open", "shut"), NEEDED)
def test_a_loop_of_dynamic_references_is_one(schema: Any, open: bytes, shut: bytes, mode: Any) -> None:
    x = {"$dynamicAnchor": "n", "$dynamicRef": "#n"}
    text = json.dumps({**schema, "$defs": {"x": x, "y": {"allOf": ["?"]}}})
    text = text.replace('"?"', json.dumps({"$ref": "#/$defs/x"}))
    grammar = compiler().json_schema(text, on_limit=mode)
    assert grammar.matcher().accept_bytes(open)
    assert not grammar.matcher().accept_bytes(shut)


def test_a_schema_that_needs_a_dynamic_loop_is_refused_at_once() -> None:
    with pytest.raises(errors.GrammarError, match="refers to itself without consuming"):
        compiler().json_schema({"$dynamicAnchor": "n", "$dynamicRef": "#n"})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/x", **LOOP},
        {"allOf": [{"$ref": "#"}]},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#/anyOf/0"}]},
        {"properties": {"a": {"$ref": "#/$defs/x"}}, "required": ["a"], "type": "object", **LOOP},
    ],
)
def test_a_schema_that_needs_one_is_refused_at_once(schema: Any) -> None:
    with pytest.raises(errors.GrammarError, match="leads back to its own schema"):
        compiler().json_schema(schema)


def test_loops_through_a_value_are_no_loops() -> None:
    nodes = {"next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}
    schema = {"type": "object", "properties": nodes, "required": ["next"]}
    grammar = compiler().json_schema(schema)
    assert grammar.matcher().accept_bytes(b'{"next":{"next":null}}')
    assert not grammar.report
    # A `then` without `if` has no effect, so its reference makes no loop.
    idle = {"$defs": {"a": {"then": {"$ref": "#"}, "type": "null"}}, "allOf": [{"$ref": "#/$defs/a"}]}
    assert compiler().json_schema(idle).matcher().accept_bytes(b"null")


# ---- Kleene's three values ----


def _holds(schema: Any, value: Any, root: Any, path: frozenset[str]) -> bool | None:
    """True, false, or None if the verdict depends on a broken reference."""
    if isinstance(schema, bool):
        return schema
    parts: list[bool | None] = []
    if "$ref" in schema:
        reference = schema["$ref"]
        target = root["$defs"].get(reference.removeprefix("#/$defs/")) if reference != "#" else root
        known = target is not None and reference not in path
        parts.append(_holds(target, value, root, path | {reference}) if known else None)
    if "type" in schema:
        kind = {"null": type(None), "integer": int, "array": list}[schema["type"]]
        parts.append(type(value) is kind)
    logic = [key for key in ("allOf", "anyOf", "oneOf") if key in schema]
    inner = {key: [_holds(s, value, root, path) for s in schema[key]] for key in logic}
    if "allOf" in inner:
        parts.append(_all(inner["allOf"]))
    if "anyOf" in inner:
        parts.append(_not(_all([_not(x) for x in inner["anyOf"]])))
    if "oneOf" in inner:
        kids = inner["oneOf"]
        true = sum(k is True for k in kids)
        parts.append(None if None in kids and true < 2 else true == 1)
    if "not" in schema:
        parts.append(_not(_holds(schema["not"], value, root, path)))
    if "items" in schema and isinstance(value, list):
        parts.append(_all([_holds(schema["items"], item, root, frozenset()) for item in value]))
    return _all(parts)


def _not(x: bool | None) -> bool | None:
    return None if x is None else not x


def _all(parts: list[bool | None]) -> bool | None:
    return False if False in parts else None if None in parts else True


def _schema(r: random.Random, depth: int) -> Any:
    kind = r.choice(["type", "ref", "allOf", "anyOf", "oneOf", "not", "items"] if depth else ["type", "ref"])
    if kind == "type":
        return {"type": r.choice(["null", "integer", "array"])}
    if kind == "ref":
        return {"$ref": r.choice(["#", "#/$defs/a", "#/$defs/b", "#/$defs/nothing"])}
    if kind in ("not", "items"):
        return {kind: _schema(r, depth - 1)}
    kids = [_schema(r, depth - 1) for _ in range(r.randint(1, 3))]
    # Two equal branches make `oneOf` false, whether they are true, false or unknown.
    return {kind: [k for i, k in enumerate(kids) if k not in kids[:i]]}


VALUES = [None, 1, [], [None], [1], [[]], [None, 1], [[None]], [[1], None]]


def test_random_schemas_against_three_values() -> None:
    r = random.Random(24)
    seen = {"refused": 0, True: 0, False: 0, None: 0}
    for _ in range(600):
        schema = {**_schema(r, 2), "$defs": {"a": _schema(r, 2), "b": _schema(r, 1)}}
        try:
            grammar = compiler().json_schema(schema)
        except (errors.GrammarError, errors.UnsatisfiableSchema, errors.UnsupportedSchema):
            seen["refused"] += 1
            continue
        for value in VALUES:
            truth = _holds(schema, value, schema, frozenset({"#"}))
            matcher = grammar.matcher()
            text = json.dumps(value, separators=(",", ":")).encode()
            taken = matcher.accept_bytes(text) and matcher.is_accepting()
            assert not taken or truth is True, (schema, value)
            seen[truth] += 1
    assert all(count > 100 for count in seen.values()), seen
