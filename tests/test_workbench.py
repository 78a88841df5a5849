"""Test data for schemas, and changes of interfaces, compared with `JsonOracle` and `jsonschema`."""

from __future__ import annotations

import collections
import copy
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from jsonschema import Draft202012Validator

import structgen as sg
from oracles import closed
from oracles.oracle import JsonOracle
from oracles.strategies import Features, Seeded, schema
from structgen.checking import bytes_compiler
from structgen.cli.main import main
from structgen.comparing import shortest
from structgen.counting import RankedTexts
from structgen.operands import operand
from structgen.testdata import ExamplesLeftOut

ORDER: dict[str, Any] = closed(
    {
        "id": {"type": "string", "pattern": "^[a-z]{2}$"},
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "tags": {"type": "array", "items": {"enum": ["x", "yy", "z"]}, "uniqueItems": True, "maxItems": 2},
    },
    ["id"],
)


def _without(document: Any, pointer: str) -> Any:
    """Returns the schema without the keyword at a pointer, or without the name in `required`."""
    *way, last = [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]
    copied = node = copy.deepcopy(document)
    for step in way:
        node = node[int(step) if isinstance(node, list) else step]
    del node[int(last) if isinstance(node, list) else last]
    return copied


@pytest.mark.parametrize("seed", range(60))
def test_examples_are_what_they_say(seed: int) -> None:
    document = schema(Seeded(seed), Features(depth=2 + seed % 2))
    oracle = JsonOracle(document)
    try:
        found = sg.examples(document, 0)
    except sg.UnsatisfiableSchema:
        return
    for example in found:
        assert oracle.accepts(example.text) == example.valid, example
        if example.kind == "near miss":
            assert JsonOracle(_without(document, example.pointer)).accepts(example.text), example


def test_a_near_miss_breaks_exactly_one_keyword() -> None:
    found = [e for e in sg.examples(ORDER, 0) if e.kind == "near miss"]
    validator = jsonschema.Draft202012Validator(ORDER)
    for example in found:
        errors = list(validator.iter_errors(json.loads(example.text)))
        assert [error.validator for error in errors] == [
            next(step for step in reversed(example.pointer.split("/")) if not step.isdigit())
        ]
    assert {e.pointer.rpartition("/")[2] for e in found} >= {
        "pattern", "minimum", "maximum", "enum", "uniqueItems", "maxItems", "type", "additionalProperties",
    }  # fmt: skip
    texts = {e.pointer: e.text for e in found}
    assert texts["/properties/size/maximum"] == '{"id":"aa","size":10}'


def test_boundaries_reach_each_bound_and_both_sides_of_each_optional_key() -> None:
    values = [json.loads(e.text) for e in sg.examples(ORDER, 0) if e.kind == "boundary"]
    assert {value["size"] for value in values if "size" in value} >= {1, 9}
    assert {tag for value in values for tag in value.get("tags", ())} == {"x", "yy", "z"}
    assert any(len(value.get("tags", ())) == 2 for value in values)
    for name in ("size", "tags"):
        assert {name in value for value in values} == {True, False}


def test_boundaries_behind_references_branches_patterns_and_other_keys() -> None:
    size = {"type": "integer", "minimum": 3, "maximum": 5}
    document = {
        "anyOf": [{"$ref": "#/$defs/size"}, {"type": "object", "patternProperties": {"^x": {"maximum": 7}},
                                            "additionalProperties": {"type": "string", "maxLength": 2}}],
        "$defs": {"size": size},
    }  # fmt: skip
    found = sg.examples(document, 0)
    texts = {(e.kind, e.pointer): e.text for e in found}
    assert (texts["boundary", "/anyOf/0"], texts["boundary", "/anyOf/1"]) == ("3", "{}")
    assert (
        texts["boundary", "/$defs/size/maximum"] == "5" and texts["near miss", "/$defs/size/maximum"] == "6"
    )
    held = json.loads(texts["boundary", "/anyOf/1/patternProperties/^x/maximum"])
    assert [key[0] for key in held] == ["x"] and [*held.values()] == [7]
    held = json.loads(texts["boundary", "/anyOf/1/additionalProperties/maxLength"])
    assert not any(key.startswith("x") for key in held) and [len(value) for value in held.values()] == [2]
    two = {"anyOf": [{"type": "integer", "minimum": 3, "multipleOf": 2}, {"type": "integer", "maximum": 99}]}
    assert [
        e.text for e in sg.examples(two, 0) if (e.kind, e.pointer) == ("boundary", "/anyOf/0/minimum")
    ] == ["4"]
    named = sg.examples({"$id": "http://x.test/s", **document}, 0)
    assert [(e.text, e.pointer) for e in named] == [(e.text, e.pointer) for e in found]
    validator = jsonschema.Draft202012Validator(document)
    assert all(validator.is_valid(json.loads(e.text)) == e.valid for e in found)


def test_draws_are_uniform_and_repeat_by_seed() -> None:
    texts, chance = RankedTexts(bytes_compiler().regex("a|b[xy]{0,2}"), 3), random.Random(1)
    assert texts.total == 8
    seen = collections.Counter(texts.draw(chance) for _ in range(8000))
    # chi2(7) exceeds 26 with the probability 0.0005
    assert len(seen) == 8 and sum((n - 1000) ** 2 / 1000 for n in seen.values()) < 26
    assert sg.examples(ORDER, 4, seed=3) == sg.examples(ORDER, 4, seed=3)
    assert sg.examples(ORDER, 4, seed=3) != sg.examples(ORDER, 4, seed=4)


def test_examples_refuse_what_has_none() -> None:
    with pytest.raises(sg.UnsatisfiableSchema):
        sg.examples({"type": "integer", "minimum": 3, "maximum": 2})
    with pytest.raises(sg.BudgetExceeded, match="no text has at most 2 bytes"):
        sg.examples({"const": "abc"}, max_bytes=2)


def changed(**size: Any) -> dict[str, Any]:
    new = copy.deepcopy(ORDER)
    new["properties"]["size"] |= size
    return new


def test_a_tighter_bound_breaks_requests_and_no_response() -> None:
    rows = sg.diff(ORDER, changed(maximum=8))
    assert [(row.direction, row.breaks) for row in rows] == [("request", True), ("response", False)]
    assert (rows[0].witness, rows[0].pointer) == ('{"id":"aa","size":9}', "/properties/size/maximum")
    rows = sg.diff(ORDER, changed(maximum=10))
    assert [(row.direction, row.breaks) for row in rows] == [("request", False), ("response", True)]


def api(schema: dict[str, Any], **operation: Any) -> dict[str, Any]:
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}}}
    post = {"requestBody": body, "responses": {"200": body}, **operation}
    return {
        "openapi": "3.0.3",
        "paths": {"/orders": {"post": post}},
        "components": {"schemas": {"Order": schema}},
    }


def test_each_operation_of_an_api_by_itself() -> None:
    rows = sg.diff(api(ORDER), api(changed(maximum=8)))
    assert [row.place for row in rows if row.breaks] == ["POST /orders application/json"]
    rows = sg.diff(api(ORDER), {**api(ORDER), "paths": {}})
    assert [(row.place, row.reason) for row in rows if row.breaks][0] == ("POST /orders", "it is gone")
    asked = {"name": "key", "in": "query", "required": True, "schema": {"type": "string"}}
    rows = sg.diff(api(ORDER), api(ORDER, parameters=[asked]))
    assert [(row.place, row.witness, row.keyword) for row in rows if row.breaks] == [
        ("POST /orders", "{}", "required")
    ]


def test_a_parameter_by_content_and_what_references_lead_to() -> None:
    def asked(most: int) -> dict[str, Any]:
        page = {"type": "object", "properties": {"size": {"type": "integer", "maximum": most}}}
        held = {"name": "page", "in": "query", "content": {"application/json": {"schema": page}}}
        return api(ORDER, parameters=[held])

    assert [
        (row.witness, row.pointer.rpartition("/")[2]) for row in sg.diff(asked(9), asked(8)) if row.breaks
    ] == [('{"query:page":{"size":9}}', "maximum")]
    old, new = api(ORDER), api(ORDER)
    old, new = (api({"properties": {"of": {"$ref": "#/components/schemas/Size"}}}) for _ in range(2))
    for document, most in ((old, 9), (new, 8)):
        document["components"]["schemas"]["Size"] = {"type": "integer", "maximum": most}
    assert [row.witness for row in sg.diff(old, new) if row.breaks] == ['{"of":9}']
    old, new = api(ORDER), api(ORDER)
    body = {"schema": {"$ref": "#/paths/~1orders/post/responses/200/content/application~1json/schema"}}
    for document, most in ((old, 9), (new, 8)):
        post = document["paths"]["/orders"]["post"]
        post["responses"] = {"200": {"content": {"application/json": {"schema": changed(maximum=most)}}}}
        post["requestBody"] = {"content": {"application/json": body}}
    assert [row.witness for row in sg.diff(old, new) if row.breaks] == ['{"id":"aa","size":9}']


HOSTILE: list[Any] = [
    {"paths": {"/": {"$ref": "#/paths/~1"}}},
    {"paths": {"/": {"get": {"parameters": [{"$ref": "#/components/parameters/p"}]}}},
     "components": {"parameters": {"p": {"$ref": "#/components/parameters/p"}}}},
    {"paths": {"/": 3, "/a": {"get": [], "put": {"parameters": {}, "responses": [1], "requestBody": ""}}}},
    {"paths": {"/": {"get": {"responses": {"200": {"content": [1]}, "x": None,
                                           "y": {"content": {"json": 4}}}}}}},
    {"paths": {"/": {"get": {"parameters": [3, None, {"name": [], "in": {}}]}}}, "components": []},
    {"paths": {"/": {"get": {"requestBody": {"content": {"json": {"schema": {"$ref": "#/components/a"}}}}}}},
     "components": {"a": {"$ref": "#/components/a"}}},
    {"paths": {"/": {"get": {"requestBody": {"content": {"json": {"schema": {"$ref": "#/paths"}}}}}}}},
]  # fmt: skip


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0", 3])
@pytest.mark.parametrize("document", HOSTILE)
def test_hostile_descriptions_end_in_rows_or_a_clear_error(document: Any, version: Any) -> None:
    whole = {"openapi": version, **document}
    try:
        rows = sg.diff(whole, whole)
    except sg.GrammarError as error:
        assert "leads back to itself" in error.message
    else:
        assert not any(row.breaks for row in rows)


def test_large_and_deep_descriptions_are_bounded() -> None:
    parts = {
        f"P{i}": {"type": "object", "properties": {"a": {"type": "string", "maxLength": i}}}
        for i in range(9000)
    }
    bodies = [{"content": {"json": {"schema": {"$ref": f"#/components/schemas/P{i}"}}}} for i in range(40)]
    paths = {f"/{i}": {"post": {"requestBody": body}} for i, body in enumerate(bodies)}
    old = {"openapi": "3.0.0", "paths": paths, "components": {"schemas": parts}}
    new = {**old, "components": {"schemas": {**parts, "P7": {"type": "object"}, "P8": {"type": "string"}}}}
    assert len(json.dumps(old)) > 700_000
    begin = time.process_time()
    assert [row.place for row in sg.diff(old, new) if row.breaks] == ["POST /8 json"]
    assert time.process_time() - begin < 20
    deep: Any = {"type": "string"}
    for _ in range(20_000):
        deep = {"type": "array", "items": deep}
    body = {"content": {"json": {"schema": deep}}}
    try:
        rows = sg.diff(*[{"openapi": "3.0.0", "paths": {"/": {"post": {"requestBody": body}}}}] * 2)
    except sg.GrammarError as error:
        assert "deep" in error.message
    else:
        assert [row.breaks for row in rows] == [False, None]


def test_each_version_has_documents_of_its_own(tmp_path: Path) -> None:
    files = []
    for version, most in (("old", 9), ("new", 8)):
        folder = tmp_path / version
        folder.mkdir()
        (folder / "size.json").write_text(json.dumps({"type": "integer", "maximum": most}))
        (folder / "order.json").write_text(json.dumps({"properties": {"size": {"$ref": "size.json"}}}))
        files.append(str(folder / "order.json"))
    assert main(["diff", *files]) == 1 and main(["diff", *reversed(files), "--direction", "request"]) == 0
    schema = {"$ref": "size.json"}
    old, new = ({"size.json": {"type": "integer", "maximum": most}} for most in (9, 8))
    rows = sg.diff(schema, schema, old_registry=old, new_registry=new)
    assert [(row.breaks, row.witness) for row in rows] == [(True, "9"), (False, None)]
    assert not any(row.breaks for row in sg.diff(schema, schema, registry=old))
    longer = {"type": "array", "items": schema, "maxItems": 1}
    texts = {e.pointer: e.text for e in sg.examples(longer, 0, registry={"size.json": {"minimum": 7}})}
    assert texts["/maxItems"] == "[7,7]"


def test_openapi_3_0_has_its_own_words() -> None:
    old, new = (
        api({"type": "integer", "minimum": 3, "exclusiveMinimum": True}),
        api({"type": "integer", "minimum": 4}),
    )
    assert not any(row.breaks for row in sg.diff(old, new))
    rows = sg.diff(api({"type": "string", "nullable": True}), api({"type": "string"}))
    assert [row.witness for row in rows if row.breaks] == ["null"]


def test_tools_and_documents_of_other_kinds() -> None:
    old = {"tools": [{"name": "f", "inputSchema": ORDER}, {"name": "g", "inputSchema": {"type": "object"}}]}
    rows = sg.diff(old, {"tools": [{"name": "f", "inputSchema": changed(minimum=2)}]})
    assert [(row.place, row.witness, row.reason) for row in rows] == [
        ("f", '{"id":"aa","size":1}', ""), ("g", None, "it is gone"),
    ]  # fmt: skip
    with pytest.raises(sg.GrammarError, match="give two of one kind"):
        sg.diff(old, ORDER)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"swagger": "2.0", "paths": {}}, "Swagger 2.0"),
        ({"openapi": "3.1.0", "paths": []}, "'paths' of an OpenAPI"),
        ([{"name": "f"}, {"name": "f"}], "tools 0 and 1 have the same name"),
        ({"tools": [{"name": "f"}, {"inputSchema": {}}]}, "tool 1 of an MCP list"),
    ],
)
def test_documents_that_are_not_read_are_no_schemas_that_take_all(document: Any, words: str) -> None:
    with pytest.raises(sg.GrammarError, match=words):
        sg.diff(document, document)


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps(ORDER))
    new.write_text(json.dumps(changed(maximum=8)))
    assert main(["diff", str(old), str(old)]) == 0
    assert main(["diff", str(old), str(new)]) == 1
    assert '{"id":"aa","size":9}' in capsys.readouterr().out
    assert main(["diff", str(old), str(new), "--direction", "response"]) == 0
    assert main(["diff", str(old), str(new), "--json"]) == 1
    assert json.loads(capsys.readouterr().out.strip())[0]["breaks"] is True
    new.write_text('{"$ref": "#"}')
    assert main(["diff", str(old), str(new)]) == 2
    capsys.readouterr()
    assert main(["examples", str(old), "-n", "2", "--max-bytes", "30", "--json"]) == 0
    assert len([json.loads(line) for line in capsys.readouterr().out.splitlines()]) > 20


def test_what_limits_leave_out_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from structgen.testdata import ExamplesLeftOut

    large = {"type": "object", "properties": {f"key{i:06}": {"enum": [i, "x" * 20]} for i in range(20_000)}}
    with pytest.warns(
        ExamplesLeftOut, match="ended after .. compiles: optional parts, boundaries and near misses are"
    ):
        assert len(sg.examples(large, 0)) == 2
    nested: Any = {}
    for _ in range(150):
        nested = {"items": nested}
    wide = {"properties": {str(i): {"type": "string", "minLength": 2} for i in range(300)}}
    for many in (nested, wide):
        begin = time.process_time()
        with pytest.warns(ExamplesLeftOut, match="the search ended after"):
            found = sg.examples(many, 0)
        assert time.process_time() - begin < 20 and "typical" in [example.kind for example in found]
    assert {"boundary", "near miss"} <= {example.kind for example in found}
    for _ in range(3000):
        nested = {"items": nested}
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    try:
        with pytest.raises(sg.GrammarError, match="nested too deeply"):
            sg.examples(nested, 0)
    finally:
        sys.setrecursionlimit(before)
    (tmp_path / "open.json").write_text('{"type": "object", "properties": {"a": {"type": "integer"}}}')
    assert main(["examples", str(tmp_path / "open.json"), "-n", "3"]) == 0
    assert "texts are drawn from those of at most" in capsys.readouterr().err


@pytest.mark.parametrize("schema", [True, {"type": "object"}, {"type": "array"}, {"required": ["a"]}])
def test_texts_of_open_schemas_are_drawn_within_fewer_bytes(schema: Any) -> None:
    with pytest.warns(UserWarning, match="drawn from those of at most"):
        drawn = [example.text for example in sg.examples(schema, 20, seed=1) if example.kind == "drawn"]
    assert len(drawn) > 1
    for text in drawn:
        Draft202012Validator(schema).validate(json.loads(text))


@pytest.mark.parametrize("count", [500, 1_500])
def test_many_required_keys_have_a_shortest_text_in_time(count: int) -> None:
    document = {"type": "object", "required": [f"k{i}" for i in range(count)]}
    began = time.perf_counter()
    text = shortest(operand(document).grammar())
    assert time.perf_counter() - began < 20
    assert sorted(json.loads(text)) == sorted(document["required"])
    assert len(text) == 1 + sum(len(f'"k{i}":0,') for i in range(count))


def test_what_is_too_much_to_draw_leaves_the_other_examples() -> None:
    begin = time.process_time()
    with pytest.warns(ExamplesLeftOut, match="no texts are drawn"):
        found = sg.examples({"type": "object", "required": [f"k{i}" for i in range(300)]})
    # 500 keys take 3 s. They took a minute while the shortest completion of each state was computed.
    assert time.process_time() - begin < 8
    assert sum(one.kind == "near miss" for one in found) == 301
    assert found[0].kind == "shortest" and "drawn" not in {one.kind for one in found}


def test_texts_of_many_closed_keys_are_drawn() -> None:
    """With many closed keys, each state needs a long completion, and each byte leads to few states. Texts are
    drawn all the same."""
    names = [f"k{i}" for i in range(150)]
    document = {"type": "object", "properties": dict.fromkeys(names, {"type": "integer"}), "required": names}
    grammar = operand(document | {"additionalProperties": False}).grammar()
    assert RankedTexts(grammar, len(shortest(grammar)) + 16).total > 9**16


def test_how_many_texts_are_drawn_is_bounded() -> None:
    with pytest.raises(ValueError, match="n must be between 0 and 100000"):
        sg.examples({"enum": [1]}, 10**6)


def test_each_of_many_required_keys_has_a_near_miss() -> None:
    """A near miss of one required key negates this key alone. Negating all keys together took 0.3 s a key,
    and gave up at 100 keys."""
    names = [f"key{i}" for i in range(150)]
    begin = time.process_time()
    found = [e for e in sg.examples({"required": names}, 0) if e.kind == "near miss"]
    assert time.process_time() - begin < 20
    assert [e.pointer for e in found] == [f"/required/{i}" for i in range(150)]
    for name, example in zip(names, found, strict=True):
        assert set(names) - set(json.loads(example.text)) == {name}
    # Draft 7 reads no keyword beside a reference, so such a key is not required.
    beside = {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a"}
    beside |= {"required": ["b"], "definitions": {"a": {"type": "object"}}}
    assert not any(e.pointer.startswith("/required") for e in sg.examples(beside, 0))


def test_each_of_many_closed_keys_has_a_near_miss() -> None:
    """A near miss of one closed key changes its value to another type. Negating the whole object took 0.3 s a
    key."""
    names = [f"k{i}" for i in range(80)]
    document = {"type": "object", "properties": dict.fromkeys(names, {"type": "integer"}), "required": names}
    begin = time.process_time()
    found = sg.examples(document | {"additionalProperties": False})
    assert time.process_time() - begin < 6  # 100 keys take 1.8 s; they once took 35 s
    missed = {e.pointer for e in found if e.kind == "near miss"}
    assert missed >= {f"/properties/{name}/type" for name in names} | {f"/required/{i}" for i in range(80)}


@pytest.mark.parametrize(
    "schema",
    [
        {
            "anyOf": [
                {"type": "integer"},
                {"type": "integer", "minimum": 3},
                {"type": "string", "maxLength": 1},
            ]
        },
        {"allOf": [{"required": ["a"]}, {"required": ["a", "b"]}]},
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "const": 1,
            "maximum": 5,
            "exclusiveMaximum": True,
        },
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"a": {"type": "object"}},
            "$ref": "#/definitions/a",
            "required": ["x"],
        },
        {"oneOf": [{"type": "integer"}, {"type": "number", "multipleOf": 2}]},
        {"type": "array", "items": {"enum": [True, 1]}, "uniqueItems": True, "minItems": 1},
        {  # a value that the other branch accepts, with its keys in another order
            "properties": {
                "z": {"if": {"const": "b"}, "then": {"type": "null"}, "else": {"enum": [-1]}},
                "a": {},
            },
            "required": ["z", "a"],
            "type": "object",
        },
    ],
)
def test_a_near_miss_is_invalid_by_its_keyword_alone(schema: dict[str, Any]) -> None:
    kind = jsonschema.validators.validator_for(schema, Draft202012Validator)
    for example in sg.examples(schema, 0):
        value = json.loads(example.text)
        assert kind(schema).is_valid(value) == example.valid
        if example.kind == "near miss":
            assert kind(_without(schema, example.pointer)).is_valid(value)


def test_the_api_sends_the_request_of_a_webhook() -> None:
    def described(request: Any, response: Any, **more: Any) -> Any:
        def body(schema: Any) -> Any:
            return {"content": {"application/json": {"schema": schema}}}

        operation = {"requestBody": body(request), "responses": {"200": body(response)}}
        return {"openapi": "3.1.0", "webhooks": {"paid": {"post": operation}}, **more}

    wide, narrow = {"type": "integer"}, {"type": "integer", "maximum": 9}
    for request, response in ((wide, narrow), (narrow, wide)):
        rows = sg.diff(described(request, response), described(response, request), direction="both")
        breaks = {row.place: (row.direction, row.breaks) for row in rows}
        # Schemas that the API sends may become narrower; schemas that the API reads may become wider.
        assert breaks["webhook POST paid application/json"] == ("response", request is narrow)
        assert breaks["webhook POST paid 200 application/json"] == ("request", request is narrow)
    rows = sg.diff(described(wide, wide), {"openapi": "3.1.0", "paths": {}})
    assert any(row.breaks for row in rows) and all("gone" in row.reason for row in rows)
    with pytest.raises(sg.GrammarError, match="'webhooks' of an OpenAPI"):
        sg.diff(*[{"openapi": "3.1.0", "webhooks": []}] * 2)


def test_descriptions_without_paths() -> None:
    old = {"openapi": "3.1.0", "components": {"schemas": {"Order": {"type": "integer"}}}}
    new = {"openapi": "3.1.0", "components": {"schemas": {"Order": {"type": "integer", "maximum": 9}}}}
    rows = {(row.place, row.direction): row.breaks for row in sg.diff(old, new)}
    place = "components/schemas/Order"
    assert rows == {(place, "request"): True, (place, "response"): False}
    for one, other in ((old, {**new, "paths": {}}), ({**old, "paths": {}}, new)):
        with pytest.raises(sg.GrammarError, match="without 'paths'"):
            sg.diff(one, other)
    new["components"]["schemas"]["Order"] = {"items": {"minimum": "9"}}
    for row in sg.diff(old, new):
        assert (row.breaks, row.pointer, row.keyword) == (
            None,
            "/items",
            "minimum",
        ) and "malformed" in row.reason
    with pytest.raises(sg.GrammarError, match="neither 'paths' nor schemas"):
        sg.diff({"openapi": "3.1.0"}, {"openapi": "3.1.0"})
