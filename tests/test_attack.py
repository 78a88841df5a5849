"""A short campaign of hostile schemas; `make attack` runs the long one (bench/attack.py)."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence

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


@pytest.mark.parametrize("seed", [369, 623, 810, 820, 1262, 1295, 1378, 1793, 1832])
def test_what_the_long_campaign_found(seed: int) -> None:
    """Masks without a token, an allowed token that was refused, and budgets that stopped a text: each in a
    compiler of its own, because what others have decided is known."""
    own = structgen.Compiler(vocabulary(WORDS), limits=structgen.Limits(mask=UNITS), on_limit="subset")
    found = attack.attack(own, seed, attack.schema(seed), walks=4, tokens=80)
    assert not found.examples, found.examples


@pytest.mark.parametrize("first", [*range(0, 40, 10), 180])
def test_patterns(compiler: structgen.Compiler, first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + 10):
        pattern, judged = attack.pattern(seed)
        check = functools.partial(attack.matches, pattern) if judged else None
        found = attack.attack(compiler, seed, pattern, walks=2, tokens=60, kind="regex", check=check)
        assert not found.examples, f"seed {seed}: {found.examples}"
        counts += found.counts
    assert counts["texts"] >= 5, counts


@pytest.mark.parametrize("seeds", [range(0, 10), range(20, 30), [78]])
def test_grammars(compiler: structgen.Compiler, seeds: Sequence[int]) -> None:
    counts: Counter[str] = Counter()
    for seed in seeds:
        kind, text = attack.grammar(seed)
        found = attack.attack(compiler, seed, text, walks=2, tokens=60, kind=kind)
        assert not found.examples, f"seed {seed}: {found.examples}"
        counts += found.counts
    assert counts["texts"] >= 1, counts


def test_the_judge_sees_a_wrong_text() -> None:
    """An engine that enforces less than the schema is found out."""
    compiler = structgen.Compiler(vocabulary(WORDS))
    strict = {"type": "array", "items": {"type": "integer", "multipleOf": 7}, "minItems": 1, "maxItems": 2}

    class Lax(structgen.Compiler):
        def json_schema(self, schema, **options):  # type: ignore[override]
            return compiler.json_schema({"type": "array", "maxItems": 3}, **options)

    found = attack.attack(Lax(compiler.vocabulary), 0, strict, walks=12, tokens=30)
    assert found.counts["invalid text"] > 0
