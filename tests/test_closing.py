"""extra_keys="forbid": objects have only the members that the schema names, and every accepted text is an
instance."""

from __future__ import annotations

import contextlib
import json
import random
from typing import Any

import jsonschema
import pydantic
import pytest

import structgen as sg
from oracles.harness import BYTES, byte_walk, cases, verdict
from structgen.frontend.closing import closed, closed_text

NAMES = "abcd"


@pytest.fixture(scope="module")
def compiler() -> sg.Compiler:
    return sg.Compiler(BYTES)


def accepts(grammar: sg.CompiledGrammar, value: Any) -> bool:
    return verdict(grammar, json.dumps(value))


A, B = {"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {"type": "integer"}}}
CASES: list[tuple[Any, list[Any], list[Any]]] = [
    (A, [{}, {"a": 1}, 3], [{"b": 1}]),
    ({}, [{"x": 1}], []),
    ({"type": "object"}, [{"x": 1}], []),
    ({**A, "additionalProperties": True}, [{"b": 1}], []),
    ({**A, "additionalProperties": {"type": "integer"}}, [{"b": 1}], [{"b": "x"}]),
    (
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [A], "additionalItems": B},
        [[{"a": 1}, {"b": 1}]],
        [[{"b": 1}], [{}, {"a": 1}]],
    ),
    ({**A, "patternProperties": {"^x": {}}}, [{"xy": 1}], [{"b": 1}]),
    ({"allOf": [A, B]}, [{"a": 1, "b": 1}], [{"c": 1}, {"a": "x"}]),
    ({"anyOf": [{**A, "required": ["a"]}, B]}, [{"a": 1}, {"b": 1}, {"a": 1, "b": 1}], [{"c": 1}]),
    (
        {"oneOf": [{**A, "required": ["a"]}, {**B, "required": ["b"]}]},
        [{"a": 1}, {"b": 1}],
        [{"a": 1, "b": 1}],
    ),
    ({"$ref": "#/$defs/a", "$defs": {"a": A}}, [{"a": 1}], [{"b": 1}]),
    ({"allOf": [{"$ref": "#/$defs/a"}, B], "$defs": {"a": A}}, [{"a": 1, "b": 2}], [{"c": 1}]),
    ({"items": A}, [[{"a": 1}]], [[{"b": 1}]]),
    ({"properties": {"a": A}}, [{"a": {"a": 1}}], [{"a": {"c": 1}}, {"c": 1}]),
    ({"required": ["z"], **A}, [{"z": 1}, {"a": 1, "z": 2}], [{"z": 1, "y": 1}]),
    ({"dependentRequired": {"a": ["z"]}, **A}, [{}, {"z": 1}, {"a": 1, "z": 2}], [{"a": 1}, {"y": 1}]),
    ({"required": ["z"], "additionalProperties": {"type": "integer"}, **A}, [{"z": 1}], [{"z": "s"}]),
    ({"allOf": [{"additionalProperties": {"const": 1}, "required": ["z"]}], **A}, [{"z": 1}], [{"z": 0}]),
    ({"properties": {}}, [{}], [{"a": 1}]),
    ({"patternProperties": {"^x": {}}}, [{"xy": 1}], [{"y": 1}]),
    ({"if": {"required": ["a"]}, "then": B, **A}, [{"a": 1, "b": 1}, {}], [{"c": 1}, {"b": 1}]),
    ({"not": {"properties": {"a": A}, "required": ["a"]}, **A}, [{}], [{"a": 1}, {"c": 1}]),
    ({"dependentSchemas": {"a": B}, **A}, [{"a": 1, "b": 1}], [{"b": 1}]),
    (
        {"properties": {"value": {}, "next": {"$ref": "#"}}},
        [{"next": {"next": {"value": 1}}}],
        [{"next": {"next": {"x": 1}}}],
    ),
]


@pytest.mark.parametrize(("schema", "good", "bad"), CASES, ids=[json.dumps(c[0])[:60] for c in CASES])
def test_which_objects_are_closed(schema: Any, good: list, bad: list, compiler: sg.Compiler) -> None:
    for given in (schema, json.dumps(schema)):
        grammar = compiler.json_schema(given, extra_keys="forbid")
        assert [v for v in good if not accepts(grammar, v)] == []
        assert [v for v in bad if accepts(grammar, v)] == []


class Schemas:
    """Random schemas of objects, combined by every keyword that combines schemas."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.names = ""  # names of the finished definitions, which a reference may use

    def root(self) -> dict[str, Any]:
        definitions = {}
        for name in "pq":
            definitions[name] = self.schema(2)
            self.names += name
        return {**self.schema(3), "$defs": definitions}

    def schema(self, depth: int) -> dict[str, Any]:
        c = self.chance
        inner = lambda: self.schema(depth - 1)  # noqa: E731
        if depth == 0:
            return c.choice([{"type": "integer"}, {"type": "string"}, {}, {"enum": [1, "x"]}])
        out: dict[str, Any] = {}
        for _ in range(c.randrange(1, 4)):
            word = c.choice(
                [
                    *("properties", "properties", "properties", "allOf", "anyOf", "oneOf", "not", "if"),
                    *("$ref", "items"),
                ]
                + ["required", "additionalProperties", "dependentSchemas", "contains", "type"]
                + ["unevaluatedProperties", "patternProperties", "dependentRequired"]
            )
            if word == "properties":
                out[word] = {name: inner() for name in c.sample(NAMES, c.randrange(1, 3))}
            elif word in ("allOf", "anyOf", "oneOf"):
                out[word] = [inner() for _ in range(c.randrange(1, 3))]
            elif word in ("additionalProperties", "unevaluatedProperties"):
                out[word] = inner() if c.random() < 0.5 else c.random() < 0.2
            elif word == "patternProperties":
                out[word] = {"^" + c.choice(NAMES): inner()}
            elif word == "dependentRequired":
                out[word] = {c.choice(NAMES): [c.choice(NAMES + "e")]}
            elif word in ("not", "items", "contains"):
                out[word] = inner()
            elif word == "if":
                out |= {"if": inner(), "then": inner(), "else": inner()}
            elif word == "$ref":
                if self.names:
                    out[word] = "#/$defs/" + c.choice(self.names)
            elif word == "required":
                out[word] = [c.choice(NAMES + "e")]
            elif word == "dependentSchemas":
                out[word] = {c.choice(NAMES): inner()}
            else:
                out[word] = c.choice(["object", "array"])
        if "contains" in out and c.random() < 0.5:
            out["maxContains"] = 1
        return out

    def value(self, depth: int) -> Any:
        c = self.chance
        if depth == 0 or c.random() < 0.2:
            return c.choice([1, "x", "y", None])
        if c.random() < 0.3:
            return [self.value(depth - 1) for _ in range(c.randrange(3))]
        return {name: self.value(depth - 1) for name in c.sample(NAMES + "e", c.randrange(3))}


def test_calls_have_the_arguments_that_are_listed(compiler: sg.Compiler) -> None:
    """Calls, as JSON or as elements, nested too, have only the listed arguments. If the draft cannot express
    the ban, objects stay open."""
    schema = {"type": "object", "properties": {"to": {"properties": {"city": {"type": "string"}}}}}
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "allOf": [{"required": ["to"]}]}
    for parameters, closes in ((schema, True), ({**schema, **old}, False)):
        tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
        for extra_keys in (None, "allow"):
            open_too = extra_keys == "allow" or not closes
            call = compiler.tools([tool], "f", style="json-compact", extra_keys=extra_keys)
            one = compiler.json_schema([tool], extra_keys=extra_keys)
            for value, taken in (
                ({"to": {"city": "x"}}, True), ({"to": {"q": 1}}, open_too), ({"to": {}, "q": 1}, open_too),
            ):  # fmt: skip
                text = json.dumps({"name": "f", "arguments": value}, separators=(",", ":"))
                for grammar in (call, one):
                    assert verdict(grammar, text) == taken
            matcher = compiler.tools([tool], "f", style="qwen3-coder", extra_keys=extra_keys).matcher()
            begins = "<tool_call>\n<function=f>\n<parameter=to>\n{}\n</parameter>\n<parameter=q>"
            assert matcher.accept_bytes(begins) == open_too
    with pytest.raises(ValueError, match="extra_keys"):
        compiler.tools([], extra_keys="no")  # type: ignore[arg-type]


@pytest.mark.parametrize("start", range(0, cases(300), 20))
def test_the_closed_language_is_a_part_of_the_open_one(start: int, compiler: sg.Compiler) -> None:
    kept = 0
    for seed in range(start, start + 20):
        source = Schemas(seed)
        schema = source.root()
        narrow = closed(schema)
        open_judge, closed_judge = (jsonschema.Draft202012Validator(s) for s in (schema, narrow))
        try:
            grammar = compiler.json_schema(
                schema, extra_keys="forbid", property_order="any", numbers="canonical"
            )
        except sg.GrammarError:  # no value satisfies the schema, or a reference leads back to itself
            grammar = None
        values = [source.value(3) for _ in range(40)]
        if grammar is not None:
            for _ in range(3):
                values.append(
                    json.loads(byte_walk(grammar, source.chance, 20).decode("utf-8", "surrogatepass"))
                )
        for value in values:
            try:
                inside, allowed = closed_judge.is_valid(value), open_judge.is_valid(value)
            except RecursionError:
                continue
            assert allowed or not inside, (seed, value)
            kept += inside
            if grammar is not None:
                assert accepts(grammar, value) == inside, (seed, value)
    assert kept > 60


def test_types_texts_drafts_and_spellings(compiler: sg.Compiler) -> None:
    class Item(pydantic.BaseModel):
        name: str

    class Order(pydantic.BaseModel):
        items: list[Item]
        notes: dict[str, str] = {}

    grammar = compiler.json_schema(Order, extra_keys="forbid")
    assert accepts(grammar, {"items": [{"name": "a"}], "notes": {"x": "y"}})
    assert not accepts(grammar, {"items": [{"name": "a", "more": 1}]})
    assert not accepts(grammar, {"more": 1, "items": []})
    assert grammar.parse('{"items": []}') == Order(items=[])
    old = {"$schema": "http://json-schema.org/draft-07/schema#"}
    for schema, draft in ((A, 7), ({**old, **A}, None)):
        grammar = compiler.json_schema(schema, draft=draft, extra_keys="forbid")
        assert accepts(grammar, {"a": 1}) and not accepts(grammar, {"b": 1})
        with pytest.raises(sg.GrammarError, match="2019-09"):
            compiler.json_schema({**schema, "allOf": [B]}, draft=draft, extra_keys="forbid")
    with pytest.raises(ValueError, match="extra_keys"):
        compiler.json_schema(A, extra_keys="no")  # type: ignore[arg-type]
    with pytest.raises(sg.GrammarError, match="more digits"):
        compiler.json_schema('{"minimum": 0.12345678901234567890123}', extra_keys="forbid")
    with pytest.raises(sg.GrammarError):
        compiler.json_schema("{", extra_keys="forbid")
    assert json.loads(closed_text("true")) is True
    deep = '{"items":' * 100_000 + "{}" + "}" * 100_000
    with pytest.raises(sg.GrammarError, match="too deep"):
        compiler.json_schema(deep, extra_keys="forbid")
    found = sg.generate(None, "two blue shirts", {**A, "required": ["a"]}, extra_keys="forbid", max_tokens=40)
    assert set(found.value) == {"a"}


def test_properties_that_are_no_object_are_no_error_of_python() -> None:
    for odd in (1, [], "x", None, True):
        schema = {"properties": odd, "required": ["x"]}
        with contextlib.suppress(sg.StructgenError):
            sg.Compiler(BYTES).json_schema(schema, extra_keys="forbid")
