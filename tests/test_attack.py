"""A short campaign of hostile schemas. `make attack` runs the long campaign (bench/attack.py)."""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

import structgen
from oracles import attack, harness, oracle
from oracles.harness import WORDS, vocabulary
from structgen import _core

SEEDS = 60
UNITS = 200_000  # units of work for a mask, about 20 ms


@pytest.fixture(scope="module")
def compiler() -> structgen.Compiler:
    return structgen.Compiler(vocabulary(WORDS), limits=structgen.Limits(mask=UNITS), on_limit="subset")


@pytest.mark.parametrize("first", range(0, harness.cases(SEEDS), 10))
def test_a_campaign(compiler: structgen.Compiler, first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + 10):
        found = attack.attack(compiler, seed, attack.schema(seed), walks=2, tokens=60, replay=True)
        assert not found.examples, f"seed {seed}: {found.examples}"
        counts += found.counts
    assert counts["texts"] >= 5, counts  # the engine takes some of the schemas


@pytest.mark.parametrize("seed", harness.chosen([369, 623, 810, 820, 1262, 1295, 1378, 1793, 1832]))
def test_what_the_long_campaign_found(seed: int) -> None:
    """Bugs of the long campaign: empty masks, refusals of allowed tokens, and budgets that ended a text
    early. Each seed has a compiler of its own, because a shared compiler knows what other seeds decided."""
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
        found = attack.attack(compiler, seed, text, walks=2, tokens=60, kind=kind, replay=True)
        assert not found.examples, f"seed {seed}: {found.examples}"
        counts += found.counts
    assert counts["texts"] >= 1, counts


@pytest.mark.parametrize("seed", [94, 102])
def test_a_mask_within_a_budget_keeps_to_the_limit_of_a_call(seed: int) -> None:
    """A mask under a budget of tokens stops at its limit of work. These masks once took 0.2 and 0.5 s: the
    last attempt at a row had 50 times the limit, twice, and the search for a completion read all its answers
    again whenever a rule ended."""
    own = structgen.Compiler(vocabulary(WORDS), limits=structgen.Limits(mask=UNITS), on_limit="subset")
    kind, document = attack.grammar(seed)
    found = attack.attack(own, seed, document, walks=20, kind=kind)
    assert not found.examples
    assert max(found.worst.values()) < 0.12, found.worst


@pytest.mark.parametrize("units", harness.chosen([1, 500, 2_000]))
@pytest.mark.parametrize(
    "kind, seeds",
    [
        ("json_schema", harness.chosen((4, 12, 17, 33))),
        ("regex", (118, 138, 153, 182)),
        ("grammar", (14, 93)),
    ],
)
def test_small_limits(kind: str, seeds: Sequence[int], units: int) -> None:
    """Under any limit of work for a mask, the mask still has a token. Each grammar has a compiler of its own.
    `python -m bench.attack --mask 200,500,2000,20000,200000` is the long form."""
    texts = 0
    for seed in seeds:
        own = structgen.Compiler(vocabulary(WORDS), limits=structgen.Limits(mask=units), on_limit="subset")
        document: object = attack.schema(seed) if kind == "json_schema" else attack.pattern(seed)[0]
        method = kind
        if kind == "grammar":
            method, document = attack.grammar(seed)
        found = attack.attack(own, seed, document, walks=3, tokens=60, kind=method)
        assert not found.examples, f"seed {seed}: {found.examples}"
        texts += found.counts["texts"]
    assert texts > 0


def test_the_first_token_of_a_row_is_looked_for_with_little_work_first() -> None:
    """The last attempt at a row begins with little work. It once tried each byte in turn with up to four
    million units of work, and a row cost 10,000,000 units; now a row costs 100,000."""
    formats = [
        "date",
        "time",
        "date-time",
        "duration",
        "email",
        "idn-email",
        "hostname",
        "idn-hostname",
        "ipv4",
    ]
    formats += ["ipv6", "uri", "uri-reference", "iri", "uuid", "json-pointer", "regex", "uri-template"]
    compiler = structgen.Compiler(vocabulary(WORDS), limits=structgen.Limits(mask=200), on_limit="subset")
    matcher = compiler.json_schema({"oneOf": [{"format": f} for f in formats]}).matcher()
    for _ in range(8):
        before = _core._work_done()
        allowed = np.flatnonzero(oracle.mask_of(matcher, WORDS.size)).tolist()
        assert _core._work_done() - before < 500_000
        assert allowed and matcher.accept_token(
            next((t for t in allowed if b'"' in WORDS.tokens[t]), allowed[0])
        )
        if matcher.is_terminated():
            break


def test_a_promised_token_is_in_the_part_of_a_mask() -> None:
    """Under a budget of tokens and a small limit of work, a mask holds the tokens that were found in time.
    The mask of this text once held no token."""
    items = {"type": "integer", "minimum": 0}
    schema = {"type": "array", "uniqueItems": True, "items": items, "contains": {"minimum": -1e9}}
    for seed in range(20):
        own = structgen.Compiler(vocabulary(WORDS), limits=structgen.Limits(mask=200), on_limit="subset")
        found = attack.attack(own, seed, schema | {"minContains": 4, "maxContains": 8}, walks=8, tokens=40)
        assert not found.examples, f"seed {seed}: {found.examples}"


def test_states_stay_where_they_are_while_ways_are_tried() -> None:
    """A matcher tries two ways to read a text. Between the two trials the memory for states ran out, and the
    engine discarded all states. It then looked up a state by a number from before, which ended the
    process."""
    limits = structgen.Limits(mask=500, memory=64 << 10)
    own = structgen.Compiler(vocabulary(WORDS), limits=limits, on_limit="subset")
    kind, document = attack.grammar(35)
    found = attack.attack(own, 35, document, walks=40, kind=kind)
    assert not found.examples, found.examples


def test_a_way_that_is_taken_under_a_budget_ends_in_time() -> None:
    """An ambiguous text has several ways to read on. The engine once took the first way, which was too long
    for the tokens left."""
    pieces = [b'",', b'":', b'"a', b"ab", b"aa", b"},", b"],", b"[[", b"[1", b'{"', b'": ', b"true", b"null"]
    pieces += [b"false", b"10", b".5", b"bb", b'"]', b'"}', b"\xc3\xa9", b"cab", b"1,"]
    tokens = [*(bytes([b]) for b in range(256)), *pieces, b""]
    end = len(tokens) - 1
    compiler = structgen.Compiler(
        structgen.Vocabulary.from_bytes(tokens, end), limits=structgen.Limits(mask=500), on_limit="subset"
    )
    grammar = compiler.gbnf(
        'root ::= [ab] "c" "c" "c" root | (root root)+ "b" "("  ")" [ab] (("("  "("  | "c" [^a]))?'
        ' | "c" root [ab] ("("  "a" | "("  "ab") "c" | ""'
    )
    mask = structgen.allocate_bitmask(1, end + 1)
    source = random.Random(1)
    source.choice("abc")
    first = [*b'"{}[],:01ab2.-e5cdt', *range(256, end)]
    matcher = grammar.matcher()
    for left in range(60, 0, -1):
        matcher.fill_bitmask(mask, 0, left)
        allowed = [t for t in range(end + 1) if mask[0, t >> 5] >> (t & 31) & 1]
        assert matcher.accept_token(source.choice([t for t in first if t in allowed] or allowed))
        if matcher.is_terminated():
            break
    assert matcher.is_terminated()


def test_a_token_that_a_mask_allows_is_read() -> None:
    """A mask allowed a token that `accept_token` refused. The mask was the union of the masks of several
    parts of a state. Some questions were decided for the parts but undecided for the whole state."""
    own = structgen.Compiler(vocabulary(WORDS), limits=structgen.Limits(mask=UNITS), on_limit="subset")
    found = attack.attack(own, 1523, attack.schema(1523), walks=29)
    assert not found.examples, found.examples


def test_another_matcher_asks_again_what_was_undecided() -> None:
    """Two matchers of one grammar agree. The matcher that chose a token had answers in its caches that the
    second matcher lacked, so the second matcher must ask again."""
    own = structgen.Compiler(vocabulary(WORDS), limits=structgen.Limits(mask=200_000), on_limit="subset")
    found = attack.attack(own, 1757, attack.schema(1757), walks=15, replay=True)
    assert not found.examples, found.examples


def test_an_error_of_a_subset_does_not_advise_a_subset() -> None:
    refused = structgen.Compiler(vocabulary(WORDS), limits=structgen.Limits(mask=1))
    with pytest.raises(structgen.errors.BudgetExceeded, match="on_limit='subset'"):
        _fill(refused.regex("(?:[ab]*a[ab]{9})&?c"))
    own = structgen.Compiler(vocabulary(WORDS), limits=structgen.Limits(mask=1), on_limit="subset")
    _fill(own.regex("(?:[ab]*a[ab]{9})&?c"))  # must raise no error


def _fill(grammar: structgen.CompiledGrammar) -> None:
    grammar.matcher().fill_bitmask(structgen.allocate_bitmask(1, grammar.vocabulary.vocab_size), 0)


def test_the_judge_sees_a_wrong_text() -> None:
    """The campaign reports an engine that enforces less than the schema."""
    compiler = structgen.Compiler(vocabulary(WORDS))
    strict = {"type": "array", "items": {"type": "integer", "multipleOf": 7}, "minItems": 1, "maxItems": 2}

    class Lax(structgen.Compiler):
        def json_schema(self, schema, **options):  # type: ignore[override]
            return compiler.json_schema({"type": "array", "maxItems": 3}, **options)

    found = attack.attack(Lax(compiler.vocabulary), 0, strict, walks=12, tokens=30)
    assert found.counts["invalid text"] > 0
