"""`tokens_needed` and masks under small budgets, compared with an exhaustive search for the fewest tokens.

The oracle reads no state of the tested engine. For regexes it takes derivatives of a small syntax tree. For
choices, schemas and grammars it tries every sequence of tokens on a matcher whose vocabulary is single bytes,
so the oracle uses no tokens, tries or budgets. The tested vocabularies lack bytes, repeat tokens, cut
characters in two, and have tokens as long as whole texts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles import harness, oracle
from oracles.least_tokens import (
    BYTES,
    SCHEMAS,
    Read,
    compare,
    compiler,
    of_grammar,
    of_regex,
    of_schema,
    vocabulary,
)
from structgen import errors, library

# ---- the oracle's regexes: a tree, its derivative, its text ----


# ---- the oracle's search for the fewest tokens ----


@pytest.mark.parametrize("block", range(4))
def test_regexes(block: int) -> None:
    found = [pair for seed in range(block * 120, block * 120 + 120) for pair in of_regex(seed)]
    assert sum(least < cheap for least, cheap in found) > 3, "a shortest text always has the fewest tokens"


@pytest.mark.parametrize("index", range(len(SCHEMAS)))
def test_schemas(index: int) -> None:
    for seed in range(5):
        of_schema(seed, index)


def test_grammars() -> None:
    for seed in range(12):
        of_grammar(seed)


def test_choices_whose_bytes_are_missing() -> None:
    for seed in range(40):
        source = np.random.default_rng([seed, 4])
        texts = sorted({"".join(source.choice(list("abc"), int(source.integers(1, 6)))) for _ in range(4)})
        tokens = vocabulary(source, b"abc", size=4)
        if seed % 3 == 0:
            tokens = [t for t in tokens if b"a" not in t] or [b"b"]
        if seed % 4 == 1:
            tokens.append(texts[-1].encode())  # a token as long as a text
        read = Read(sg.Compiler(BYTES).choice(texts))
        compile = lambda t=tokens, c=texts: compiler(t).choice(c)  # noqa: E731
        compare(compile, read, tokens, 7, seed)


# ---- bugs, as they were found ----


def test_the_fewest_tokens_need_not_spell_the_first_shortest_text() -> None:
    matcher = compiler([b"a", b"b", b"ab", b"c"]).regex("[ab]{2}").matcher()
    assert matcher.token_bounds() == (2, 2)
    assert compiler([b"b", b"c"]).choice(["a", "b"]).matcher().tokens_needed() == 2
    with pytest.raises(errors.UnsatisfiableBudget, match="no tokens"):
        compiler([b"c"]).choice(["a", "b"]).matcher().tokens_needed()


def test_a_character_begun_can_be_ended_by_the_bytes_there_are() -> None:
    matcher = compiler([b'"', b"\xc3", b"\xa9", b"a"]).json_schema({"type": "string"}).matcher()
    assert matcher.accept_tokens([0, 1])
    for left in (3, 100):
        assert np.flatnonzero(oracle.mask_of(matcher, 5, left)).tolist() == [2]
    with pytest.raises(errors.UnsatisfiableBudget, match="it takes 3"):
        oracle.mask_of(matcher, 5, 2)


def test_many_seeds_end_over_a_vocabulary_without_some_bytes() -> None:
    tokens = [b'"', b"\xc3", b"\xa9", b"a", b"\xe2", b"\x82"]
    grammar = compiler(tokens).json_schema({"type": "string"})
    for seed in range(100):
        source, matcher = np.random.default_rng(seed), grammar.matcher()
        for left in range(12, 0, -1):
            allowed = np.flatnonzero(oracle.mask_of(matcher, len(tokens) + 1, left))
            assert matcher.accept_token(int(source.choice(allowed)))
            if matcher.is_terminated():
                break
        assert matcher.is_terminated()


def test_a_long_word_within_few_tokens(tekken_vocabulary: sg.Vocabulary) -> None:
    matcher = sg.Compiler(tekken_vocabulary).regex("[a-z]{6}").matcher()
    assert matcher.tokens_needed() == 2
    mask = oracle.mask_of(matcher, len(tekken_vocabulary), 2)
    for token in np.flatnonzero(mask):
        text = tekken_vocabulary.token_bytes(int(token))
        assert len(text) == 6 and text.isalpha() and text.islower()
    assert mask.sum() > 100


def unproved(call: Callable[[], Any]) -> bool:
    """Returns whether a call raises the error for "not known to fit", which claims no proof."""
    with pytest.raises(errors.BudgetExceeded) as caught:
        call()
    return not isinstance(caught.value, errors.UnsatisfiableBudget)


def test_a_search_that_is_too_large_says_so() -> None:
    """If items must differ, the search for the fewest tokens is too large. The two bounds then differ, and no
    error claims a proof."""
    schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 12}
    tokens = [*(bytes([i]) for i in range(256)), b'","', b'["']
    compile = lambda t: compiler(t).json_schema(schema, whitespace="compact").matcher()  # noqa: E731
    matcher = compile(tokens)
    low, high = matcher.token_bounds()
    assert 1 < low < high
    assert oracle.mask_of(compile(tokens), len(tokens) + 1, high).any()
    assert unproved(lambda: oracle.mask_of(compile(tokens), len(tokens) + 1, high - 1))
    # With these bytes as tokens the search finds no text.
    few = compile([b'"', b"a", b"b", b",", b"[", b"]", b'","'])
    assert unproved(few.tokens_needed)
    assert unproved(lambda: oracle.mask_of(few, 8, 40))


# ---- planted bugs, which the comparison must catch ----


def test_the_tokens_of_one_shortest_text_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug is an earlier behaviour of the engine: it counted the tokens of one shortest text,
    although another text may take fewer."""
    witness = lambda self: (self._bounds(False)[1],) * 2  # noqa: E731
    monkeypatch.setattr(sg.grammar.Matcher, "token_bounds", witness)
    with pytest.raises(AssertionError):
        test_regexes(0)


@pytest.mark.parametrize("bug", ["one too many", "one too few", "no budget"])
def test_masks_of_another_budget_are_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = oracle.mask_of

    def wrong(matcher: sg.Matcher, size: int, left: int) -> np.ndarray:
        if bug == "no budget" and left > 3:
            return honest(matcher, size)
        return honest(matcher, size, left + {"one too many": 1, "one too few": -1}.get(bug, 0))

    monkeypatch.setattr(oracle, "mask_of", wrong)
    with pytest.raises((AssertionError, errors.UnsatisfiableBudget, pytest.fail.Exception)):
        test_regexes(0)


def test_a_run_of_characters_beside_a_shorter_way() -> None:
    """If the remaining tokens suffice in front of an allowed token, one fewer suffices behind the token. The
    law also holds if the token stays inside a string and so excludes the shorter text."""
    vocabulary = sg.Vocabulary.from_bytes([bytes([b]) for b in range(256)] + [b""], eos_token_ids=256)
    compiler = sg.Compiler(vocabulary)
    long = {"properties": {"a" * 30: {"const": "b" * 30}}, "required": ["a" * 30]}
    hours = {"propertyNames": {"pattern": "^[01][0-9]:[0-5][0-9]$"}, "additionalProperties": {"const": 1}}
    words = {"anyOf": [{"pattern": "^1.*x{40}$"}, {"const": "12"}]}
    for schema, text in (
        ({"type": "object", "anyOf": [long, hours]}, b'{"1'),
        ({"type": "object", "anyOf": [hours, long]}, b'{"'),
        ({"type": "string", **words}, b'"1'),
    ):
        grammar = compiler.json_schema(schema)
        for budget in (12, 20, 30, 50, 60, 70, 80, 120):
            matcher = grammar.matcher()
            assert matcher.accept_bytes(text)
            if matcher.tokens_needed() > budget:
                continue
            mask = sg.allocate_bitmask(1, vocabulary.vocab_size)
            matcher.fill_bitmask(mask, max_tokens=budget)
            for token in np.unpackbits(mask.view(np.uint8), bitorder="little").nonzero()[0]:
                matcher.accept_token(int(token))
                if not matcher.is_terminated():
                    matcher.fill_bitmask(mask, max_tokens=budget - 1)  # raises if no text fits
                matcher.rollback(1)


def test_a_search_for_fewer_tokens_ends_within_the_limit_of_a_call() -> None:
    """Behind `@`, a search in the library's Python grammar meets a hundred thousand edges within 18 tokens,
    and still stops at the limit of work of a call."""
    own = sg.Compiler(harness.vocabulary(harness.WORDS), limits=sg.Limits(mask=200_000))
    matcher = own.grammar(library.load("python").text).matcher()
    assert matcher.accept_bytes(b"@")
    began = time.process_time()
    assert matcher.tokens_needed() <= 18
    assert time.process_time() - began < 0.5
