"""Drafts save forward passes and change nothing else: texts, bounds and laws equal those without drafts.

Oracle: brute force over token strings, and enumeration of every outcome of a trial, over 200 random grammars.
"""

from __future__ import annotations

import copy
import itertools
import math
import os
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from oracles.sampling_laws import ASAP, EXACT, cars_is_exact, case, grammar_case, one_walk
from oracles.sampling_oracle import (
    DRAWING,
    TOKENS,
    TableModel,
    choice,
    every_outcome,
    random_language,
    trained,
)
from structgen.sampling import sample
from structgen.sampling.walk import Walker
from structgen.speculation import Speculation, standard_drafters
from structgen.speculation.drafters import Lookahead, PromptLookup, TokenRecycling

GRAMMARS = 200
CASES = GRAMMARS if os.environ.get("STRUCTGEN_LONG") else 25


def drafter(seed: int) -> Callable[[Sequence[int]], list[int]]:
    """Returns a drafter of random tokens: right ones, refused ones, end tokens, and ids outside the
    vocabulary."""
    return lambda tokens: random.Random(repr((seed, *tokens))).choices(range(-1, len(TOKENS) + 1), k=4)


def drafters(seed: int) -> Any:
    """Drafters whose trees are wide, deep or learned, or all of these."""
    lists = [[PromptLookup()], [TokenRecycling()], [Lookahead(window=3)], standard_drafters()]
    return Speculation(lists[seed % len(lists)], nodes=1 + seed % 7)


def any_case(seed: int) -> tuple[Any, dict[tuple[int, ...], float]]:
    """Returns a list of texts or a compiled grammar, in turn."""
    return case(seed) if seed % 3 else grammar_case(seed)


@pytest.mark.parametrize("part", range(4))
def test_drafted_trials_draw_from_the_model_given_the_grammar(part: int) -> None:
    """Over every outcome, a trial ends in s with the probability P(s) / upper(root), up to 1e-12."""
    assert EXACT <= 1e-12
    for seed in range(part, GRAMMARS, 4):
        law, wanted = any_case(seed)
        cars_is_exact(law, trained(law, seed % 3, seed), wanted, drafter(seed))


def test_trials_with_trees_draw_from_the_model_given_the_grammar() -> None:
    for seed in range(CASES):
        law, wanted = any_case(seed)
        law.start = law.lm.start([0, 1, 0, 2])
        prompted = {k: v for k, v in _law_after(law, wanted, (0, 1, 0, 2)).items() if v > 0}
        cars_is_exact(law, trained(law, seed % 3, seed), prompted, drafters(seed))


def _law_after(law: Any, wanted: Any, prompt: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """Returns the probabilities of the texts after a given prompt."""
    found = {}
    for text in wanted:
        logp = 0.0
        for at, token in enumerate(text):
            row = law.lm.vector((*prompt, *text[:at])).astype(float)
            logp += row[token] - math.log(sum(math.exp(x) for x in row))
        found[text] = math.exp(logp)
    return found


@pytest.mark.parametrize("method", DRAWING)
def test_texts_bounds_and_seeds_are_those_without_a_draft(method: Any) -> None:
    for seed in range(CASES):
        lm = TableModel(seed)
        grammar = choice(lm, random_language(seed))
        plain, *drafted = (
            sample(
                lm,
                [1, 0, 1][: seed % 4],
                grammar=grammar,
                method=method,
                n=6,
                max_tokens=5,
                seed=seed,
                guess=guess,
            )
            for guess in (None, drafter(seed), drafters(seed), "auto")
        )
        for found in drafted:
            assert [s.tokens for s in plain] == [s.tokens for s in found]
            assert plain.log_weights.tolist() == found.log_weights.tolist()
            assert plain.log_bracket == found.log_bracket
            assert [s.tv_bound for s in plain] == [s.tv_bound for s in found]


def test_the_bound_of_each_answer_holds() -> None:
    """Given the trie before a draw, the stated bound on the total variation between the law of the draw and
    the target holds by enumeration."""
    for seed in range(CASES):
        law, wanted = case(seed)
        total = sum(wanted.values())
        target = {s: p / total for s, p in wanted.items()}
        for draws in (0, 1, 4):
            trie = trained(law, draws, seed)
            made: dict[tuple[int, ...], float] = defaultdict(float)
            for probability, (walk,) in every_outcome(one_walk(law, trie, ASAP)):
                made[tuple(walk.tokens)] += probability
            distance = sum(max(0.0, p - made[s]) for s, p in target.items())
            claimed = _bound(law, trie, "asap", seed)
            assert distance <= claimed + EXACT <= 1 - math.exp(trie.lower_bound - trie.theta) + 2 * EXACT
            assert _bound(law, trie, "local", seed) >= claimed - EXACT
            assert _bound(law, trie, "cars", seed) == 0.0
    assert sample(TableModel(1), [], grammar=choice(TableModel(1), ["a"]), method="smc")[0].tv_bound is None


def _bound(law: Any, trie: Any, method: Any, seed: int) -> float | None:
    known = copy.deepcopy(trie)
    Walker(law, known, 1).claim()
    found = sample(law.lm, [], grammar=law.grammar, method=method, max_tokens=5, budget="reject", seed=seed,
                   trie=known, max_trials=100_000)  # fmt: skip
    return found[0].tv_bound


def test_a_draft_that_is_right_saves_forwards() -> None:
    lm = TableModel(1)
    grammar = choice(lm, ["abcabcabc", "abcabcab"])
    letters = [TOKENS.index(bytes([c])) for c in b"abcabcabc"]

    def right(tokens: Sequence[int]) -> list[int]:
        text = b"".join(TOKENS[t] for t in tokens)
        return letters[len(text) :]

    plain, *drafted = (
        sample(lm, letters, grammar=grammar, method="cars", max_tokens=12, seed=3, max_trials=50, guess=guess)
        for guess in (None, right, [PromptLookup()])
    )
    for found in drafted:
        assert [s.tokens for s in plain] == [s.tokens for s in found]
        assert found.diagnostics.calls < plain.diagnostics.calls


@pytest.mark.parametrize("wrong", [[1, 2], 3, "lookup", [PromptLookup(), 1]])
def test_who_cannot_draft_is_refused(wrong: Any) -> None:
    lm = TableModel(1)
    with pytest.raises(TypeError, match="guess is a function"):
        sample(lm, [], grammar=choice(lm, ["a"]), guess=wrong)


@pytest.mark.parametrize(("wrong", "words"), [(3, "not 3"), (None, "not None"), (["a"], "'a' is none")])
def test_a_guess_that_is_no_ids_is_named(wrong: Any, words: str) -> None:
    lm = TableModel(1)
    with pytest.raises(TypeError, match=f"guess gives token ids, .*{words}"):
        sample(lm, [], grammar=choice(lm, ["a"]), guess=lambda tokens: wrong)


def test_a_guess_without_an_end_is_read_as_far_as_the_room_goes() -> None:
    lm = TableModel(1)
    asked = {"grammar": choice(lm, ["a", "ab"]), "method": "cars", "max_tokens": 6, "seed": 1}
    plain, drafted = (sample(lm, [], guess=g, **asked) for g in (None, lambda tokens: itertools.repeat(0)))
    assert [s.tokens for s in plain] == [s.tokens for s in drafted]
