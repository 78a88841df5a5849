"""Test data of schemas and changes of interfaces, beside `JsonOracle` and `jsonschema`."""

from __future__ import annotations

import collections
import copy
import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import structgen as sg
from oracles.oracle import JsonOracle
from oracles.strategies import Features, Seeded, schema
from structgen.checking import bytes_compiler
from structgen.cli.main import main
from structgen.counting import Texts

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^[a-z]{2}$"},
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "tags": {"type": "array", "items": {"enum": ["x", "yy", "z"]}, "uniqueItems": True, "maxItems": 2},
    },
    "required": ["id"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("seed", range(40))
def test_examples_are_what_they_say(seed: int) -> None:
    document = schema(Seeded(seed), Features(depth=2))
    oracle = JsonOracle(document)
    try:
        found = sg.examples(document, 0)
    except sg.UnsatisfiableSchema:
        return
    for example in found:
        assert oracle.accepts(example.text) == example.valid, example


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


def test_draws_are_uniform_and_repeat_by_seed() -> None:
    texts, chance = Texts(bytes_compiler().regex("a|b[xy]{0,2}"), 3), random.Random(1)
    assert texts.total == 8
    seen = collections.Counter(texts.draw(chance) for _ in range(8000))
    assert len(seen) == 8 and sum((n - 1000) ** 2 / 1000 for n in seen.values()) < 26  # chi2(7) at 0.0005
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
