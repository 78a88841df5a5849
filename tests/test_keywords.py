"""The core's table of keywords beside the published metaschemas and beside what the engine does."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from oracles import harness
from structgen import _core, errors

METASCHEMAS = Path(__file__).resolve().parents[1] / "structgen" / "_metaschemas" / "documents.json"
ROWS = {name: (about, asserts) for name, about, asserts in _core.keywords()}
REFERENCES = {"$ref", "$dynamicRef", "$recursiveRef"}
VALUES = {"number": [1.5], "string": ["a"], "array": [[0, 0]], "object": [{"a": 0}], "any": [None, True]}
# What a keyword may say, and what may stand beside it: alone, that allows every one of the values.
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
    """keyword -> the metaschemas that have it."""
    found: dict[str, set[str]] = {}
    for uri, schema in json.loads(METASCHEMAS.read_text("utf-8")).items():
        for name in schema.get("properties", ()):
            found.setdefault(name, set()).add(uri)
    return found


def test_the_keywords_are_those_of_the_metaschemas() -> None:
    assert len(ROWS) == len(_core.keywords())
    assert ROWS.keys() == published().keys() | {"$ref"}


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
    assert {n for n in ROWS.keys() - told.keys() - REFERENCES if ROWS[n][1]} == {"dependencies"}


def refused(keyword: str) -> set[str]:
    """The kinds with a value that some schema of the keyword excludes."""
    found: set[str] = set()
    for said, beside, draft in itertools.product(SAID, BESIDE, ("2019-09", "2020-12")):
        try:
            grammar = harness.compiled({keyword: said, **beside}, draft=draft)
        except errors.StructgenError:  # `multipleOf` of 0, a `type` that is none
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
