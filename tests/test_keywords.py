"""The core's table of keywords compared with the published metaschemas and with the engine's behaviour."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from oracles import harness
from structgen import _core, errors, keywords

METASCHEMAS = Path(__file__).resolve().parents[1] / "structgen" / "_metaschemas" / "documents.json"
ROWS = {name: (about, asserts) for name, about, asserts, _ in _core.keywords()}
OWN = {"x-structgen-content"}
REFERENCES = {"$ref", "$dynamicRef", "$recursiveRef"}
VALUES = {"number": [1.5], "string": ["a"], "array": [[0, 0]], "object": [{"a": 0}], "any": [None, True]}
# Each row: values of a keyword, and the keywords beside it. Without the tested keyword, the schema of a row
# allows every value.
SAID: list[Any] = [
    0,
    3,
    "^b$",
    "date",
    False,
    True,
    {"a": False},
    {"a": ["b"]},
    {"type": "null"},
    ["b"],
    [False],
    [[]],
]
BESIDE: list[dict[str, Any]] = [{}, {"contains": True}, {"items": [True]}]


def published() -> dict[str, set[str]]:
    """keyword -> the metaschemas that define it."""
    found: dict[str, set[str]] = {}
    for uri, schema in json.loads(METASCHEMAS.read_text("utf-8")).items():
        for name in schema.get("properties", ()):
            found.setdefault(name, set()).add(uri)
    return found


def test_the_keywords_are_those_of_the_metaschemas() -> None:
    assert len(ROWS) == len(_core.keywords())
    assert ROWS.keys() == published().keys() | OWN | {"$ref"}


def test_what_asserts_is_in_a_vocabulary_that_asserts() -> None:
    told = {
        name: any(
            part in uri for uri in uris for part in ("applicator", "validation", "unevaluated", "format")
        )
        for name, uris in published().items()
        if any("/meta/" in uri for uri in uris)
    }
    assert told == {
        name: asserts and name not in REFERENCES for name, (_, asserts) in ROWS.items() if name in told
    }
    assert all(ROWS[name] == ("any", True) for name in REFERENCES)
    assert {n for n in ROWS.keys() - told.keys() - REFERENCES if ROWS[n][1]} == OWN | {"dependencies"}


def refused(keyword: str) -> set[str]:
    """Returns the kinds of JSON values that the keyword restricts: some schema with the keyword excludes a
    value of the kind."""
    found: set[str] = set()
    for said, beside, draft in itertools.product(SAID, BESIDE, ("2019-09", "2020-12")):
        try:
            grammar = harness.compiled({keyword: said, **beside}, draft=draft)
        except errors.StructgenError:  # a `multipleOf` of 0, or an unknown `type`
            continue
        for kind, values in VALUES.items():
            if not all(harness.verdict(grammar, json.dumps(value)) for value in values):
                found.add(kind)
    return found


@pytest.mark.parametrize("name", ROWS)
def test_a_keyword_is_about_what_it_excludes(name: str) -> None:
    about, asserts = ROWS[name]
    if name in REFERENCES | {"if", "then", "else"}:
        return
    if not asserts:
        assert refused(name) == set()
    elif about == "any":
        assert len(refused(name)) > 1
    else:
        assert refused(name) == {about}


def holds(node: Any) -> set[str]:
    """Returns the places of schemas in a keyword's value, by the keyword's rule in the metaschema."""
    if not isinstance(node, dict):
        return set()
    if "$dynamicRef" in node or "$recursiveRef" in node or node.get("$ref") == "#":
        return {"schema"}
    if str(node.get("$ref")).endswith("/schemaArray"):
        return {"list"}
    if holds(node.get("additionalProperties")):
        return {"mixed" if "anyOf" in node["additionalProperties"] else "map"}
    return {how for part in node.get("anyOf", ()) for how in holds(part)}


def test_where_schemas_stand_is_what_the_metaschemas_say() -> None:
    said: dict[str, set[str]] = {name: set() for name, *_ in _core.keywords() if name not in OWN}
    for schema in json.loads(METASCHEMAS.read_text("utf-8")).values():
        for name, node in schema.get("properties", {}).items():
            said[name] |= holds(node)
    del said["contentSchema"]  # an annotation, which the engine does not read
    either = {name: {"either"} if how == {"schema", "list"} else how for name, how in said.items()}
    assert either == {name: {how} - {""} for name, _, _, how in _core.keywords() if name in either}


def test_the_schemas_inside_are_walked_and_rewritten() -> None:
    schema = {
        "properties": {"a": {"type": "null"}, "b": True},
        "dependencies": {"a": ["b"], "b": {"minProperties": 2}},
        "items": [{"const": 1}, False],
        "allOf": "not a list",
        "not": {"const": 2},
        "title": {"const": 3},
    }
    before = json.dumps(schema)
    assert list(keywords.inner_schemas(schema)) == [
        ("properties", "a", {"type": "null"}),
        ("properties", "b", True),
        ("dependencies", "a", ["b"]),
        ("dependencies", "b", {"minProperties": 2}),
        ("items", 0, {"const": 1}),
        ("items", 1, False),
        ("not", None, {"const": 2}),
    ]
    assert keywords.rewritten(schema, lambda keyword, _: keyword) == {
        **schema,
        "properties": {"a": "properties", "b": "properties"},
        "dependencies": {"a": "dependencies", "b": "dependencies"},
        "items": ["items", "items"],
        "not": "not",
    }
    assert json.dumps(schema) == before
