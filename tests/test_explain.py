"""Explanations of refused texts: each keyword with its pointer, and causes that are no keyword."""

from __future__ import annotations

import functools
import json

import jsonschema
import pytest

import structgen
from oracles import data, harness
from oracles.differential import check
from oracles.strategies import Seeded
from structgen.explain import Cause, Explanation
from structgen.explain import explain as explained

explain = functools.partial(explained, structgen.Compiler)
DRAFT4 = "http://json-schema.org/draft-04/schema#"

# keyword: (schema, text, pointer of the cause, byte offset)
CASES = {
    "type": ({"type": "integer"}, '"x"', "/type", 0),
    "enum": ({"enum": ["red", "blue"]}, '"rid"', "/enum", 2),
    "const": ({"const": {"a": 1}}, '{"a": 2}', "/const", 6),
    "minimum": ({"minimum": 5}, "3", "/minimum", 1),
    "exclusiveMinimum": ({"type": "number", "exclusiveMinimum": 5}, "5", "/exclusiveMinimum", 1),
    "maximum": ({"maximum": 5}, "17", "/maximum", 1),
    "exclusiveMaximum": ({"exclusiveMaximum": 5}, "5", "/exclusiveMaximum", 1),
    "multipleOf": ({"type": "integer", "multipleOf": 10}, "14", "/multipleOf", 2),
    "minLength": ({"minLength": 3}, '"ab"', "/minLength", 3),
    "maxLength": ({"maxLength": 2}, '"abc"', "/maxLength", 3),
    "pattern": ({"pattern": "^a+$"}, '"aab"', "/pattern", 3),
    "format": ({"format": "date"}, '"2024-13-01"', "/format", 7),
    "items": ({"items": {"type": "null"}}, "[null, 1]", "/items/type", 7),
    "prefixItems": ({"prefixItems": [{}, {"type": "null"}]}, "[1, 1]", "/prefixItems/1/type", 4),
    "additionalItems": ({"items": [{}], "additionalItems": False}, "[1, 1]", "/additionalItems", 2),
    "minItems": ({"minItems": 2}, "[1]", "/minItems", 2),
    "maxItems": ({"maxItems": 1}, "[1, 2]", "/maxItems", 2),
    "uniqueItems": ({"uniqueItems": True}, '["a", "a"]', "/uniqueItems", 8),
    "contains": ({"contains": {"const": 7}}, "[1]", "/contains", 2),
    "minContains": ({"contains": {"const": 7}, "minContains": 2}, "[7]", "/minContains", 2),
    "maxContains": ({"contains": {"const": 7}, "maxContains": 1}, "[7, 7]", "/maxContains", 5),
    "unevaluatedItems": ({"prefixItems": [{}], "unevaluatedItems": False}, "[1, 2]", "/unevaluatedItems", 2),
    "properties": ({"properties": {"a": {"type": "null"}}}, '{"a": 1}', "/properties/a/type", 6),
    "patternProperties": ({"patternProperties": {"^x/": {"type": "null"}}}, '{"x/y": 1}',
                          "/patternProperties/^x~1/type", 8),
    "additionalProperties": ({"properties": {"a": {}}, "additionalProperties": False}, '{"b": 1}',
                             "/additionalProperties", 2),
    "propertyNames": ({"propertyNames": {"maxLength": 2}}, '{"abc": 1}', "/propertyNames/maxLength", 4),
    "required": ({"required": ["a", "b"]}, '{"a": 1}', "/required", 7),
    "minProperties": ({"minProperties": 2}, '{"a": 1}', "/minProperties", 7),
    "maxProperties": ({"maxProperties": 1}, '{"a": 1, "b": 2}', "/maxProperties", 7),
    "dependentRequired": ({"dependentRequired": {"a": ["b"]}}, '{"a": 1}', "/dependentRequired/a", 7),
    "dependentSchemas": ({"dependentSchemas": {"a": {"required": ["b"]}}}, '{"a": 1}',
                         "/dependentSchemas/a/required", 7),
    "dependencies": ({"dependencies": {"a": ["b"]}}, '{"a": 1}', "/dependencies/a", 7),
    "unevaluatedProperties": ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
                              '{"b": 1}', "/unevaluatedProperties", 2),
    "allOf": ({"allOf": [{}, {"type": "null"}]}, "1", "/allOf/1/type", 0),
    "not": ({"not": {"type": "string"}}, '"a"', "/not", 0),
    "if": ({"if": {"type": "string"}, "then": {"minLength": 2}}, '"a"', "/then/minLength", 2),
    "then": ({"if": {"type": "string"}, "then": False}, '"a"', "/then", 0),
    "else": ({"if": {"type": "string"}, "else": {"type": "null"}}, "5", "/else/type", 0),
    "$ref": ({"properties": {"a": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"maxItems": 0}}}, '{"a": [1]}',
             "/$defs/t/maxItems", 7),
    "false": ({"properties": {"a": False}}, '{"a": 1}', "/properties/a", 3),
    "draft 4": ({"$schema": DRAFT4, "minimum": 5, "exclusiveMinimum": True}, "5", "/exclusiveMinimum", 1),
    "deep": ({"properties": {"a": {"items": {"properties": {"b": {"allOf": [{"maximum": 3}]}}}}}},
             '{"a": [{}, {"b": 4}]}', "/properties/a/items/properties/b/allOf/0/maximum", 18),
    "recursive": ({"properties": {"next": {"$ref": "#"}, "v": {"type": "null"}}},
                  '{"next": {"next": {"v": 1}}}', "/properties/v/type", 24),
}  # fmt: skip


ORDERED = {"properties": {"a": {"minimum": 0}, "b": {"minimum": 0}}}


def only(found: Explanation | None) -> Cause:
    assert found is not None and len(found.causes) == 1, found
    return found.causes[0]


@pytest.mark.parametrize("keyword", CASES)
def test_every_keyword(keyword) -> None:
    schema, text, pointer, offset = CASES[keyword]
    if keyword in ("additionalItems", "dependencies"):
        schema = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
    found = explain(schema, text, property_order="any")
    cause = only(found)
    assert (cause.pointer, found.offset, found.kind) == (pointer, offset, "keyword"), found
    assert cause.keyword in pointer and cause.message and found.allowed != "nothing"
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    if keyword != "format":
        assert not kind(schema).is_valid(json.loads(text))


def test_the_place_and_the_value() -> None:
    schema = {"properties": {"a/b": {"items": {"type": "integer"}}}}
    found = explain(schema, '{\n  "a/b": [1, "é", null]}')
    assert found is not None
    assert (found.line, found.column, found.instance) == (2, 14, "/a~1b/1")
    assert found.allowed == "`-`, `0`-`9`, whitespace"
    assert "must be an integer" in str(found) and "#/properties/a~1b/items/type" in str(found)


def test_a_union_tells_of_its_branches() -> None:
    branches = [
        {"properties": {"kind": {"const": "a"}, "size": {"type": "integer"}}, "required": ["kind", "size"]},
        {"properties": {"kind": {"const": "b"}, "name": {"type": "string"}}, "required": ["kind", "name"]},
    ]
    for keyword in ("anyOf", "oneOf"):
        cause = only(explain({"type": "object", keyword: branches}, '{"kind": "b", "name": 5}'))
        assert (cause.pointer, cause.keyword, len(cause.branches)) == (f"/{keyword}", keyword, 2)
        assert f"/{keyword}/1/properties/name/type" in str(cause)
        assert f"/{keyword}/0/properties/kind/const" in str(cause)
    both = only(explain({"oneOf": [{"minLength": 1}, {"maxLength": 9}]}, '"abc"'))
    assert both.pointer == "/oneOf" and "more than one" in both.message


def test_causes_that_only_work_together() -> None:
    found = explain({"type": "string", "enum": ["x", 1]}, "2")
    assert found is not None and sorted(c.keyword for c in found.causes) == ["enum", "type"]


@pytest.mark.parametrize(
    ("schema", "text", "kind", "words"),
    [
        ({}, '{"a": 1, "b": {"a": 2}, "a": 3}', "duplicate key", '"a" stands twice'),
        ({"properties": {"a": {}}, "additionalProperties": False}, '{"a": 1, "a": 2}', "duplicate key", "a"),
        ({}, '{"a": 1, "\\u0061": 2}', "duplicate key", '"a"'),
        ({}, "[1, 2", "ends early", "too early"),
        ({"required": ["a"]}, "{", "ends early", "too early"),
        ({}, "[1,]", "not JSON", "invalid JSON"),
        ({}, "{'a': 1}", "not JSON", "invalid JSON"),
        ({}, "[1]]", "not JSON", "Extra data"),
        ({"type": "array"}, "[" + " " * 40 + "]", "not JSON", "whitespace"),
        (ORDERED, '{"b": 1, "a": 2}', "order", "in the order"),
        ({**ORDERED, "required": ["a"]}, '{"b": 1, "a": 2}', "order", "order"),
    ],
)  # fmt: skip
def test_refusals_that_no_keyword_causes(schema, text, kind, words) -> None:
    found = explain(schema, text)
    assert found is not None and found.kind == kind and words in found.problem, found
    assert not found.causes


def test_options_that_refuse() -> None:
    gap = explain({"type": "array"}, "[1, 2]", whitespace="compact")
    assert gap is not None and gap.kind == "whitespace" and "compact" in gap.problem
    for schema, text, numbers in (
        ({}, "[1e2]", "canonical"),
        ({}, "[1e2]", "plain"),
        ({}, "1.50", "canonical"),
        ({}, "1.0000000", "plain"),
        ({"type": "integer"}, "12.0", "plain"),
        ({"enum": [1, 2]}, "1.0", "plain"),
    ):
        number = explain(schema, text, numbers=numbers)
        assert number is not None and number.kind == "number" and repr(numbers) in number.problem
    fraction = explain({"type": "integer"}, "12.5", numbers="plain")
    assert fraction is not None and fraction.kind == "keyword"
    listed = explain(
        {"items": {"type": "integer"}}, "[1, 12.0, 12.5]", numbers="plain", whitespace="flexible"
    )
    assert listed is not None and listed.kind == "number"
    assert explain({"type": "number"}, "12.00", numbers="plain") is None
    assert explain({"format": "date"}, '"x"', formats="annotate") is None
    assert explain({"items": [{}], "additionalItems": False}, "[1, 2]", draft=7) is not None
    other = explain({"$ref": "urn:x"}, "1", registry={"urn:x": {"type": "string"}})
    assert only(other).pointer == "/$ref"


def test_a_grammar_explains() -> None:
    grammar = check.compiler().json_schema({"type": "object", "required": ["a"]})
    assert grammar.explain('{"a": 1}') is None
    assert only(grammar.explain("{}")).message == 'the key "a" is missing'
    with pytest.raises(ValueError, match="JSON Schema"):
        check.compiler().regex("a").explain("b")
    with pytest.raises(structgen.UnsatisfiableSchema):
        explain({"enum": []}, "1")


def test_large_schemas_and_deep_texts_take_no_time() -> None:
    names = {f"k{i}": {"type": "object", "properties": {"v": {"type": "integer"}}} for i in range(2000)}
    with harness.cpu_limit(30):
        found = explain({"properties": names, "additionalProperties": False}, '{"k1500": {"v": "x"}}')
        assert only(found).pointer == "/properties/k1500/properties/v/type"
        deep = explain({"items": {"$ref": "#"}, "type": "array"}, "[" * 3000 + "1" + "]" * 3000)
        assert only(deep).pointer == "/type"


def test_random_refusals_have_causes() -> None:
    """On random schemas, every refusal has causes, and without the causes' keywords the text is accepted."""
    explained = 0
    for seed in range(40):
        source = Seeded(seed)
        schema = check.FAMILIES[source.pick(("general", "key classes", "counts", "discriminated"))](
            source, 2020
        )
        for text in ("1", '"a"', "[1, 1]", '{"a": 1}', '{"zz": "a", "ab": null}'):
            try:
                found = explain(schema, text, property_order="any")
            except structgen.StructgenError:
                break
            if found is None:
                continue
            assert found.causes and found.kind in ("keyword", "ends early"), (schema, text, found)
            assert all(c.pointer or c.message for c in found.causes)
            explained += 1
    assert explained > 60


def test_maskbench_refusals_have_causes() -> None:
    if not (data.root() / "maskbench").is_dir():
        pytest.skip(f"no MaskBench under {data.root()}")
    told = 0
    for name in data.sample(data.maskbench_names(), 60, seed=3):
        case = data.maskbench_case(name)
        for instance in [i for i in case.instances if not i.valid][:1]:
            try:
                found = explain(case.schema, instance.text, property_order="any")
            except structgen.StructgenError:
                continue
            assert found is not None and found.causes, (name, instance.text[:200])
            told += 1
    assert told > 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NaN", "NaN is no JSON value"),
        ('{"a":-Infinity}', "-Infinity is no JSON value"),
        (r'"\ud800"', "half of a surrogate pair"),
        (' "a"', "before or after"),
        ('"a"  ', "before or after"),
        ("[1," + " " * 40 + "2]", "more whitespace in a row"),
    ],
)
def test_what_is_no_json_is_told(text: str, message: str) -> None:
    found = harness.compiler().json_schema({}).explain(text)
    assert found is not None
    assert message in str(found)
