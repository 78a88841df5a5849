"""Every token that a mask allows within a budget of tokens can be finished, under any limit of work.

The oracle is the walk itself: each mask gets the number of tokens left. If the first mask was given, no later
mask may be empty or refused. ``jsonschema`` judges the finished texts.
"""

from __future__ import annotations

import json
import random
import time
from typing import Any

import jsonschema
import numpy as np
import pytest

import structgen
from oracles import harness, histories, oracle
from structgen.lm import embedded

KINDS = [
    {
        "type": "object",
        "properties": {"tag": {"const": f"kind-{i}"}, **{f"f{j}": {"type": "string"} for j in range(i % 5)}},
        "required": ["tag"],
    }
    for i in range(40)
]
BUDGETED: dict[str, dict[str, Any]] = {
    "two items are equal": {
        "type": "array",
        "items": {"type": "string", "pattern": "^[ab]{0,3}$"},
        "maxItems": 3,
        "not": {"uniqueItems": True},
    },
    "numbers differ": {
        "type": "array",
        "items": {"type": "integer", "minimum": 10, "maximum": 101},
        "uniqueItems": True,
        "maxItems": 2,
    },
    "one of many kinds": {"oneOf": KINDS},
    "one of many kinds below any key": {"type": "object", "additionalProperties": {"oneOf": KINDS}},
    "a key decides": {
        "patternProperties": {"^a": {"type": "integer"}, "b$": {"enum": ["ab", "ba", []]}},
        "not": {"required": ["a", "b"]},
        "minProperties": 1,
    },
}
PIECES = [
    *(bytes([b]) for b in range(128)),
    *b'ab|ba|aab|a"|b"|"]|"}|",|"a"|"b"|"a|", "|","|":|{"|{}|[]|11|1]|10|"tag"|"kind-|"f0"'.split(b"|"),
]


@pytest.mark.parametrize("complete", [True, False], ids=["all bytes", "pieces"])
@pytest.mark.parametrize("schema", BUDGETED.values(), ids=BUDGETED)
def test_a_budget_that_a_mask_left_is_kept_at_any_limit(schema: dict[str, Any], complete: bool) -> None:
    pieces = [*PIECES, *(bytes([b]) for b in range(128, 256))] if complete else PIECES
    end = len(pieces)
    vocabulary = structgen.Vocabulary.from_bytes([*pieces, b""], eos_token_ids=[end])
    validator = jsonschema.Draft202012Validator(schema)
    for units in (200, 2_000, 50_000, 10_000_000):
        limits = structgen.Limits(mask=units)
        compiler = structgen.Compiler(vocabulary, limits=limits, on_limit="subset")
        grammar = compiler.json_schema(schema, whitespace="compact", strings="plain", numbers="plain")
        for seed in harness.seeds(25):
            source = random.Random(seed)
            budget = source.randint(8, 30)
            matcher, text = grammar.matcher(), b""
            for left in range(budget, 0, -1):
                try:
                    mask = oracle.mask_of(matcher, end + 1, left)
                except (structgen.UnsatisfiableBudget, structgen.BudgetExceeded):
                    assert not text, (units, seed, left, text)
                    break
                allowed = np.flatnonzero(mask).tolist()
                assert allowed, (units, seed, left, text)
                # The walk takes the end last and prefers tokens that write a quotation mark, because these
                # tokens decide most.
                inner = [t for t in allowed if t != end] or allowed
                quoted = [t for t in inner if t != end and b'"' in pieces[t]]
                token = source.choice(quoted if quoted and source.random() < 0.5 else inner)
                assert matcher.accept_token(token), (units, seed, left, text, token)
                if token == end:
                    break
                text += pieces[token]
            else:
                raise AssertionError((units, seed, text))
            if matcher.is_terminated():
                validator.validate(json.loads(text.decode("utf-8", "replace")))


@pytest.mark.parametrize("memory", [20_000, 1 << 20, 256 << 20])
def test_a_token_that_one_way_allows_is_accepted(memory: int) -> None:
    """A text may have several readings. The way that was kept from an earlier state put the token `"a":` into
    the row of a reading that refuses it."""
    compiler = structgen.Compiler(
        histories.LACKING, on_limit="subset", limits=structgen.Limits(mask=100_000, memory=memory)
    )
    text = """start: "{" (k ":" start ("," k ":" start)*)? "}" | "[" "]" | /[0-9]+/
    k: /"[ab]*"/
    %ignore /[ ]{0,2}/
    """
    matcher = (compiler.lark(text) & structgen.min_bytes(12)).matcher()
    oracle.mask_of(matcher, len(histories.FEW) + 1, 7)
    assert matcher.accept_token(histories.FEW.index(b"{"))
    allowed = np.flatnonzero(oracle.mask_of(matcher, len(histories.FEW) + 1, 6)).tolist()
    assert allowed and all(matcher.fork().accept_token(t) for t in allowed)


def test_a_subset_never_proves_that_no_text_fits() -> None:
    """With 50 units of work the engine omits `bbb`, which ends the text in two tokens. So the error must not
    claim a proof that no text fits, as an earlier version did."""
    vocabulary = structgen.Vocabulary.from_bytes([b"a", b"ab", b"b", b"bbb", b""], 4)
    for cache in (1, 1 << 20):
        compiler = structgen.Compiler(
            vocabulary, cache_bytes=cache, limits=structgen.Limits(mask=50), on_limit="subset"
        )
        grammar = compiler.regex(r"\w{3,6}").infill("", "b") & structgen.containing("bb")
        try:
            mask = structgen.allocate_bitmask(1, 5)
            grammar.matcher(max_tokens=2).fill_bitmask(mask)
            assert mask[0, 0] == 1 << 3
        except structgen.BudgetExceeded as error:
            assert not isinstance(error, structgen.UnsatisfiableBudget)
            assert "by what is in the subset" in str(error)


@pytest.mark.parametrize(("keys", "budget"), [(20, 20), (60, 20), (60, 150)])
def test_a_budget_that_cannot_be_met_is_refused_in_the_time_of_few_masks(keys: int, budget: int) -> None:
    """A search for fewer tokens stops after the work of a few masks, and the error states what is known."""
    known = structgen.Vocabulary.from_file(embedded.path())
    times = []
    for _ in range(3):
        compiler = structgen.Compiler(known, limits=structgen.Limits(mask=200_000))
        matcher = compiler.json_schema({"type": "object", "minProperties": keys}).matcher()
        mask = structgen.allocate_bitmask(1, known.vocab_size)
        begin = time.thread_time()
        with pytest.raises(structgen.BudgetExceeded, match=r"none was ruled out; tokens_needed\(\)"):
            matcher.fill_bitmask(mask, max_tokens=budget)
        times.append(time.thread_time() - begin)
    assert min(times) < 0.05


def test_the_first_row_of_a_fresh_grammar_is_the_row_of_a_known_one() -> None:
    """A fresh grammar and a grammar that was used before give equal first rows. All counts of a repetition
    share one text, so the first row pays once for the work of all counts."""
    pieces = [
        *(bytes([b]) for b in range(256)),
        *(b" " * n for n in range(2, 129)),
        *(b"ab" * n for n in range(1, 65)),
    ]
    known = structgen.Vocabulary.from_bytes([*pieces, b""], eos_token_ids=[len(pieces)])
    compiler = structgen.Compiler(known, limits=structgen.Limits(mask=200_000), on_limit="subset")
    plain = structgen.allocate_bitmask(1, known.vocab_size)
    structgen.Compiler(known).regex("[a-z ]{400}").matcher().fill_bitmask(plain, max_tokens=32)
    matcher = compiler.regex("[a-z ]{400}").matcher()
    for _ in range(2):
        mask = structgen.allocate_bitmask(1, known.vocab_size)
        matcher.fill_bitmask(mask, max_tokens=32)
        assert matcher.mask_exact
        assert np.array_equal(mask, plain)
