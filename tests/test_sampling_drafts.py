"""A draft saves forwards and changes nothing else: texts, bounds and laws are those without it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence

import pytest

from oracles.sampling_laws import cars_is_exact, case
from oracles.sampling_oracle import TOKENS, TableModel, choice, random_language, trained
from structgen.sampling import sample

CASES = 200 if os.environ.get("STRUCTGEN_LONG") else 25


def drafter(seed: int) -> Callable[[Sequence[int]], list[int]]:
    """Tokens at random: right, refused, ends, and ids that do not exist."""
    return lambda tokens: random.Random(repr((seed, *tokens))).choices(range(-1, len(TOKENS) + 1), k=4)


@pytest.mark.parametrize("draws", [0, 2])
def test_drafted_trials_draw_from_the_model_given_the_grammar(draws: int) -> None:
    """Over every outcome: a trial ends in s with P(s) / upper(root), so texts follow P(s | grammar)."""
    for seed in range(CASES):
        law, wanted = case(seed)
        cars_is_exact(law, trained(law, draws, seed), wanted, drafter(seed))


@pytest.mark.parametrize("method", ["cars", "asap", "importance", "local", "smc"])
def test_texts_bounds_and_seeds_are_those_without_a_draft(method: str) -> None:
    for seed in range(CASES):
        lm = TableModel(seed)
        grammar = choice(lm, random_language(seed))
        plain, drafted = (
            sample(lm, [], grammar=grammar, method=method, n=6, max_tokens=5, seed=seed, guess=guess)
            for guess in (None, drafter(seed))
        )
        assert [s.tokens for s in plain] == [s.tokens for s in drafted]
        assert plain.log_weights.tolist() == drafted.log_weights.tolist()
        assert plain.log_bracket == drafted.log_bracket
        assert plain.tv_bound == drafted.tv_bound


def test_a_draft_that_is_right_saves_forwards() -> None:
    lm = TableModel(1)
    grammar = choice(lm, ["abcabcabc", "abcabcab"])

    def right(tokens: Sequence[int]) -> list[int]:
        text = b"".join(TOKENS[t] for t in tokens)
        return [TOKENS.index(bytes([c])) for c in b"abcabcabc"[len(text) :]]

    plain = sample(lm, [], grammar=grammar, method="cars", n=1, max_tokens=12, seed=3, max_trials=50)
    drafted = sample(
        lm, [], grammar=grammar, method="cars", n=1, max_tokens=12, seed=3, max_trials=50, guess=right
    )
    assert [s.tokens for s in plain] == [s.tokens for s in drafted]
    assert drafted.diagnostics.calls < plain.diagnostics.calls


def test_a_draft_that_is_no_function_is_refused() -> None:
    lm = TableModel(1)
    with pytest.raises(TypeError, match="guess is a function"):
        sample(lm, [], grammar=choice(lm, ["a"]), guess=[1, 2])  # type: ignore[arg-type]
