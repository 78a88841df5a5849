"""The short run of `python -m bench.differential`, and cases that the long one found.

Every family of random schemas over every draft, engine against judge and jsonschema; the judge itself on
the official suite; walks through masks that end in instances. `STRUCTGEN_LONG=k` makes the counts k times larger.
"""

from __future__ import annotations

import collections
import json

import pytest

import structgen
from bench import data
from tests import harness, oracle
from tests.differential import check, instances
from tests.differential.judge import METASCHEMAS, Judge
from tests.strategies import Seeded, Source

FIRST = 50_000_000  # seeds that the long run does not use first
TALLY: collections.Counter[str] = collections.Counter()


@pytest.fixture(scope="module")
def compiler() -> structgen.Compiler:
    return check.compiler()


def accepts(grammar, text: str) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_bytes(text) and matcher.is_accepting()


@pytest.mark.parametrize("family", check.FAMILIES)
def test_family(family, compiler) -> None:
    checker = check.Checker(compiler, small=300)
    for seed in range(FIRST, FIRST + 30 * harness.LONG):
        checker.run(family, Seeded(seed), 12)
        assert not checker.findings, (seed, check.minimal(checker.findings[0]))
    count = checker.counts
    assert count["valid"] > count["pairs"] // 20 and count["invalid"] > count["pairs"] // 20, count
    assert count["too complex"] <= count["schemas"] // 50, count


# Found by the long run: schema, texts that are instances, texts that are not.
FOUND = [
    (  # a completion asked what a oneOf inside a oneOf needs, and what its negation needs, for ever
        {"type": "object", "oneOf": [{"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"required": ["c"]}]},
        ['{"a": 1}', '{"c": 1}', '{"a": 1, "b": 1, "c": 1}'],
        ["{}", '{"a": 1, "c": 1}', '{"a": 1, "b": 1}'],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "good", "bad"), FOUND)
def test_found(schema, good, bad, compiler) -> None:
    grammar = compiler.json_schema(schema, property_order="any")
    judge = Judge(schema)
    assert judge.accepts(grammar.matcher().shortest_completion().decode())
    for text in good:
        assert judge.accepts(text) and accepts(grammar, text), text
    for text in bad:
        assert not judge.accepts(text) and not accepts(grammar, text), text


@pytest.mark.parametrize("draft", ["draft2020-12", "draft7"])
def test_the_judge_on_the_official_suite(draft) -> None:
    """The second opinion has to be worth something: every required case without remote documents."""
    if not (data.root() / "json-schema-test-suite").is_dir():
        pytest.skip(f"no official suite under {data.root()}")
    number = {"draft2020-12": 2020, "draft7": 7}[draft]
    right = 0
    for group in data.suite_groups(draft):
        if "/optional/" in group.file or any(
            word in json.dumps(group.schema) for word in ("localhost:1234", "json-schema.org", r"\\d", r"\\p", r"\\S")
        ):
            continue
        judge = Judge(group.schema, number, formats={})
        for test in group.tests:
            if "\n" in test.text:
                continue
            assert judge.accepts(test.text) == test.valid, (group.file, group.about, test.about)
            right += 1
    assert right > 700
