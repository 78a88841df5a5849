"""The official JSON-Schema-Test-Suite. structgen passes every test of the required and of the optional files,
except for the tests in suite_exceptions.json. Each exception states its reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import suite
from oracles import data
from oracles.harness import HANG

EXCEPTIONS = Path(__file__).with_name("suite_exceptions.json")


@pytest.mark.parametrize("draft", suite.DRAFTS)
def test_suite(draft, data_root) -> None:
    data.need((data_root / "json-schema-test-suite").is_dir(), "no official suite in the data directory")
    rows = suite.run([draft], optional=True, limit=HANG)
    assert sum(row["right"] for row in rows) > 1000
    assert not [f"{row['file']}: {row['about']}: {row['error']}" for row in rows if row["error"]]
    listed = json.loads(EXCEPTIONS.read_text(encoding="utf-8"))
    known = {
        (file, test): reason
        for file, tests in listed["tests"].items()
        if file.startswith(f"{draft}/")
        for test, reason in tests.items()
    }
    assert {file for file, _ in known} <= {row["file"] for row in rows if "/optional/" in row["file"]}
    assert set(known.values()) <= listed["reasons"].keys()
    missed = {(row["file"], f"{row['about']}: {test}") for row in rows for test in row["missed"]}
    assert missed - known.keys() == set(), "wrong"
    assert known.keys() - missed == set(), "no longer wrong: take them off the list"
