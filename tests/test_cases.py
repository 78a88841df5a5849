"""Schemas with valid and invalid texts: tests/cases/*.json, one list of cases per file.

A case is {"about", "schema", "valid": [texts], "invalid": [texts]}. "options" holds the compiler's options.
"error" marks a schema or an option that must be refused, with the error's "pointer" and a part of its
"message". Every bug that a fuzzer finds becomes a case.
"""

from __future__ import annotations

import builtins
import json
from pathlib import Path

import pytest

from oracles import harness
from structgen import errors

CASES = [
    pytest.param(case, id=f"{file.stem}: {case['about']}")
    for file in sorted((Path(__file__).parent / "cases").glob("*.json"))
    for case in json.loads(file.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("case", CASES)
def test_case(case) -> None:
    options = {"property_order": "any", **case.get("options", {})}
    if "error" in case:
        kind = getattr(errors, case["error"], None) or getattr(builtins, case["error"])
        with pytest.raises(kind) as caught:
            harness.compiler().json_schema(case["schema"], **options)
        assert type(caught.value) is kind
        assert "pointer" not in case or caught.value.pointer == case["pointer"]
        assert case.get("message", "") in str(caught.value)
        return
    grammar = harness.compiler().json_schema(case["schema"], **options)
    for text in case.get("valid", []):
        assert harness.verdict(grammar, text), f"{text} is an instance"
    for text in case.get("invalid", []):
        assert not harness.verdict(grammar, text), f"{text} is no instance"
