"""Strings that hold the JSON text of a value (``x-structgen-content``), also nested in each other.

The laws: the verdict on a string is jsonschema's verdict on json.loads of the string. A bit of a mask equals
accept_token. A walk meets no dead end, and in any layout it writes a text of the language.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles import closed, harness, oracle, strategies
from oracles.harness import WORDS, Empty
from oracles.oracle import CONTENT
from oracles.strategies import Seeded, Source
from structgen.explain import explain

FEATURES = strategies.Features(unevaluated=True, content=True)
LAYOUTS = ("flexible", "compact", "one-blank", "spaced", "pretty")


def held(schema: Any, levels: int = 1) -> Any:
    for _ in range(levels):
        schema = {"type": "string", CONTENT: schema}
    return schema


def text_of(source: Source, value: Any, levels: int) -> str:
    text = strategies.text(source, value)
    for _ in range(levels):
        text = strategies.text(source, text)
    return text


def random_schema(source: Source) -> tuple[Any, Any, int]:
    """Returns a schema, the schema of the innermost strings' content, and the number of strings around the
    content."""
    inner = strategies.schema(source, FEATURES)
    levels = source.integer(1, 2)
    defined = {"$defs": inner["$defs"]} if isinstance(inner, dict) and "$defs" in inner else {}
    return {**held(inner, levels), **defined}, inner, levels


def told(law: Callable[[Source], str | None]) -> Callable[[Source], str | None]:
    """Wraps a law: if the engine refuses a condition on a string with JSON text, the law counts as kept."""

    @functools.wraps(law)
    def check(source: Source) -> str | None:
        try:
            return law(source)
        except sg.SchemaTooComplex as error:
            assert "meets a condition" in str(error) or "too large" in str(error)
            return harness.SKIPPED

    return check


def unusual(text: str) -> bool:
    """Returns whether a mutation left a numeral like 12e-1, which the engine takes only without a numeric
    keyword."""
    plain = re.sub(r"\\+u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), text).replace("\\", "")
    return re.search(r"[0-9][0-9.]+[eE]", plain) is not None


@told
def verdicts_are_the_oracles(source: Source) -> str | None:
    schema, inner, levels = random_schema(source)
    grammar = harness.compiled(schema, property_order="any")
    if grammar is None:
        return harness.SKIPPED
    judge = oracle.JsonOracle(schema)
    value = strategies.instance(source, inner)
    for _ in range(3):
        text = text_of(source, value, levels)
        if unusual(text):
            return harness.SKIPPED
        assert harness.verdict(grammar, text) == judge.accepts(text), (schema, text)
        value = strategies.mutated(source, value)
    text = text_of(source, value, source.integer(0, 3))
    assert harness.verdict(grammar, text) == judge.accepts(text), (schema, text)


@told
def masks_are_accept(source: Source) -> str | None:
    schema, inner, levels = random_schema(source)
    layout, order = source.pick(LAYOUTS), source.pick(("schema", "any"))
    strings = source.pick(("any", "plain"))
    grammar = harness.compiled(schema, whitespace=layout, property_order=order, strings=strings)
    if grammar is None or grammar is Empty:
        return harness.SKIPPED
    matcher = grammar.matcher()
    for token, mask in harness.walk(source, matcher, WORDS.size, WORDS.eos, 24):
        if source.chance(20):
            wrong = np.flatnonzero(mask != oracle.naive_mask(matcher, WORDS.size))
            assert not wrong.size, (schema, [(int(t), WORDS.tokens[t], bool(mask[t])) for t in wrong[:5]])
        if token in WORDS.eos:
            return None
    return None


@told
def what_ends_is_an_instance(source: Source) -> str | None:
    schema, inner, levels = random_schema(source)
    layout, order = source.pick(LAYOUTS), source.pick(("schema", "any"))
    numbers = source.pick(("plain", "canonical"))  # an exponent of ten digits is too much for the oracle
    grammar = harness.compiled(schema, whitespace=layout, property_order=order, numbers=numbers)
    if grammar is None or grammar is Empty:
        return harness.SKIPPED
    matcher, taken = grammar.matcher(), b""
    for token, _ in harness.walk(source, matcher, WORDS.size, WORDS.eos, source.integer(0, 40)):
        taken += b"" if token in WORDS.eos else WORDS.tokens[token]
    if not matcher.is_terminated():
        try:
            taken += matcher.shortest_completion()
        # without a search no number of tokens is known to suffice for many counted members in a string
        except sg.BudgetExceeded:
            return harness.SKIPPED
    assert harness.verdict(grammar, taken), (schema, taken)
    assert oracle.JsonOracle(schema).accepts(taken.decode()), (schema, taken)


@pytest.mark.parametrize("law", [verdicts_are_the_oracles, masks_are_accept, what_ends_is_an_instance])
def test_seeded(law: Any) -> None:
    harness.seeded(law, 250)


def test_shrinking() -> None:
    harness.shrinking(verdicts_are_the_oracles, 100)


# ---- keywords beside the content ----

WHOLE = {"type": "integer"}
ODD = {"é\n": ['"', "\\", "\u0001", "😀"]}
CASES: list[tuple[Any, list[Any], list[Any]]] = [
    ({CONTENT: WHOLE}, ["1", 5, None], ["a", "1.5", "[1]", '"1"']),
    ({"type": "string", "not": {CONTENT: WHOLE}, CONTENT: {"type": "number"}}, ["1.5"], ["1", "x"]),
    ({"enum": ["1", "x", " 2 ", "[1]", "1,2"], CONTENT: WHOLE}, ["1", " 2 "], ["x", "[1]", "1,2"]),
    ({"enum": ["1", "x", "[1]", "1.5"], "not": {CONTENT: WHOLE}}, ["x", "[1]", "1.5"], ["1", 1]),
    ({"oneOf": [held(WHOLE), {"type": "integer"}]}, ["1", 1], ["x", 1.5]),
    ({"anyOf": [held(WHOLE), {"type": "string", "pattern": "^a"}]}, ["1", "ab"], ["b", "1.5"]),
    ({"allOf": [held({"minimum": 3}), held(WHOLE)]}, ["3"], ["2", "3.5", '"x"']),
    (held({"const": ODD}), [json.dumps(ODD), json.dumps(ODD, ensure_ascii=False)], []),
    (held(True), ["[]", "null"], ["", "x"]),
    ({"additionalProperties": held(WHOLE)}, [{"a": "1"}], [{"a": "x"}]),
    ({"$ref": "#/$defs/t", "$defs": {"t": {"properties": {"k": held({"$ref": "#/$defs/t"})}}}},
     [{"k": '{"k":"{}"}'}, {"k": "1"}], [{"k": '{"k":1,"k":1}'}, {"k": '{"k":"{"}'}]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "taken", "refused"), CASES, ids=[str(i) for i in range(len(CASES))])
def test_what_stands_beside_it(schema: Any, taken: list[Any], refused: list[Any]) -> None:
    grammar, judge = harness.compiled(schema), oracle.JsonOracle(schema)
    for ascii_only in (False, True):
        for value in (*taken, *refused):
            text = json.dumps(value, ensure_ascii=ascii_only)
            assert harness.verdict(grammar, text) == (value in taken), text
            assert judge.accepts(text) == (value in taken), text


@pytest.mark.parametrize(
    "schema",
    [
        {**held(WHOLE), "pattern": "1"},
        {**held(WHOLE), "maxLength": 3},
        {"type": "string", "not": {CONTENT: WHOLE}},
        {"oneOf": [held(WHOLE), held({"minimum": 3, "type": "number"})]},
        {"propertyNames": {CONTENT: WHOLE}, "minProperties": 1},
        {"type": "array", "items": held(WHOLE), "uniqueItems": True, "minItems": 3},
    ],
)
def test_what_is_too_much_is_refused(schema: Any) -> None:
    with pytest.raises(sg.SchemaTooComplex, match="condition on the text"):
        harness.compiler().json_schema(schema).matcher().accept_bytes(b'["1","2","3"]')


def test_a_schema_without_values_is_named() -> None:
    with pytest.raises(sg.UnsatisfiableSchema, match=f"#/properties/a/{CONTENT}"):
        harness.compiler().json_schema(
            {"type": "object", "properties": {"a": held({"not": {}})}, "required": ["a"]}
        )
    endless = {"$defs": {"t": held({"$ref": "#/$defs/t"})}, "$ref": "#/$defs/t"}
    assert harness.compiled(endless) is Empty


def test_a_text_in_many_strings() -> None:
    schema: dict[str, Any] = {
        "$defs": {"t": {"anyOf": [WHOLE, held({"$ref": "#/$defs/t"})]}},
        "$ref": "#/$defs/t",
    }
    grammar = harness.compiled(schema)
    text = "1"
    for _ in range(5):
        text = json.dumps(text)
        assert harness.verdict(grammar, text)
    with pytest.raises(sg.SchemaTooComplex, match="more than 5 JSON texts"):
        harness.verdict(grammar, json.dumps(text))


def test_explained() -> None:
    schema = {"type": "object", "properties": {"a": held({"properties": {"b": WHOLE}})}}
    found = explain(sg.Compiler, schema, json.dumps({"a": '{"b":true}'}))
    assert found is not None
    assert [c.pointer for c in found.causes] == [f"/properties/a/{CONTENT}/properties/b/type"]
    assert explain(sg.Compiler, schema, json.dumps({"a": '{"b":1}'})) is None


@pytest.mark.parametrize("count", [3, 100])
def test_many_names(count: int) -> None:
    names = {f"name {i}": WHOLE for i in range(count)}
    schema = held(
        {"properties": names, "required": [*names], "additionalProperties": False, "type": "object"}
    )
    grammar = harness.compiled(schema, whitespace="compact")
    text = grammar.matcher().shortest_completion()
    assert json.loads(json.loads(text)) == dict.fromkeys(names, 0)
    matcher = grammar.matcher()
    for at in range(60):
        assert (oracle.mask_of(matcher, WORDS.size) == oracle.naive_mask(matcher, WORDS.size)).all()
        assert matcher.accept_bytes(text[at : at + 1])


def test_between_a_prefix_and_a_suffix() -> None:
    closed = {"type": "object", "additionalProperties": False}
    inner = {**closed, "properties": {"b": WHOLE, "c": {"type": "string"}}}
    grammar = harness.compiled({**closed, "properties": {"a": held(inner)}}, whitespace="compact")
    whole = json.dumps({"a": '{"b":12,"c":"z"}'}, separators=(",", ":"))
    for begin, end in ((0, len(whole)), (8, len(whole) - 3), (12, 20), (3, 9)):
        middle = grammar.infill(whole[:begin], whole[end:])
        assert harness.verdict(middle, whole[begin:end])
        assert not harness.verdict(middle, whole[begin:end] + "x,")


# ---- in layouts that exclude texts, and inside of elements ----


@pytest.mark.parametrize("style", ["hermes", "llama4", "qwen3-coder", "minimax-m3", "deepseek-v3.2", "glm"])
def test_in_calls_of_tools(style: str) -> None:
    parameters = closed({"x": held({"type": "array", "items": {"type": "string"}})})
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    grammar = harness.compiler().tools(tools, style=style, tool_choice="required")
    text = grammar.matcher().shortest_completion().decode()
    written = style in ("hermes", "llama4")
    for inner, fits in (('["a b"]', True), ('["é",""]', True), ("[1]", False), ("x", False)):
        other = text.replace("[]", json.dumps(inner, ensure_ascii=False)[1:-1] if written else inner, 1)
        assert harness.verdict(grammar, other) == fits, other
        if fits:
            calls = sg.parse_tool_calls(other, style=style, tools=tools).calls
            assert [call.arguments for call in calls] == [{"x": inner}]


@pytest.mark.parametrize("levels", [1, 2])
def test_an_excluded_text_is_in_no_string(levels: int) -> None:
    schema = held({"type": "object", "additionalProperties": {"type": "string"}}, levels)
    spec = {"type": "json_schema", "json_schema": schema, "excludes": ["</t>", "<|"]}
    grammar = harness.compiler().structural_tag(spec)
    value: Any = {"a": "x </t> y", "</t>": "", "b": "< |"}
    for _ in range(levels):
        value = json.dumps(value)
    plain = json.dumps(value)
    assert not harness.verdict(grammar, plain)
    assert harness.verdict(grammar, plain.replace("<", "\\u003c"))
    matcher, random = grammar.matcher(), Seeded(levels)
    for _, mask in harness.walk(random, matcher, WORDS.size, WORDS.eos, 30):
        assert (mask == oracle.naive_mask(matcher, WORDS.size)).all()


def test_what_cannot_be_kept_out_is_refused() -> None:
    spec = {"type": "json_schema", "json_schema": held(WHOLE), "excludes": ["},"]}
    with pytest.raises(sg.SchemaTooComplex, match="condition on the text"):
        harness.compiler().structural_tag(spec).matcher().shortest_completion()
