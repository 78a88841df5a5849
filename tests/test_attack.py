"""A short campaign of hostile schemas; `make attack` runs the long one (bench/attack.py)."""

from __future__ import annotations

from collections import Counter

import pytest

import structgen
from tests import attack
from tests.harness import WORDS, vocabulary

SEEDS = 60
UNITS = 200_000  # of a mask: about 20 ms


@pytest.fixture(scope="module")
def compiler() -> structgen.Compiler:
    return structgen.Compiler(vocabulary(WORDS), limits=structgen.Limits(mask=UNITS), on_limit="subset")


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_a_campaign(compiler: structgen.Compiler, first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + 10):
        found = attack.attack(compiler, seed, attack.schema(seed), walks=2, tokens=60)
        assert not found.examples, f"seed {seed}: {found.examples}"
        counts += found.counts
    assert counts["texts"] >= 5, counts  # not everything is refused


def test_the_judge_sees_a_wrong_text() -> None:
    """An engine that enforces less than the schema is found out."""
    compiler = structgen.Compiler(vocabulary(WORDS))
    strict = {"type": "array", "items": {"type": "integer", "multipleOf": 7}, "minItems": 1, "maxItems": 2}

    class Lax(structgen.Compiler):
        def json_schema(self, schema, **options):  # type: ignore[override]
            return compiler.json_schema({"type": "array", "maxItems": 3}, **options)

    found = attack.attack(Lax(compiler.vocabulary), 0, strict, walks=12, tokens=30)
    assert found.counts["invalid text"] > 0
