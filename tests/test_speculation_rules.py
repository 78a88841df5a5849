"""Rules that accept sampled drafts: every outcome of the code, with its exact probability.

Invariants 3 and 4. The rules ask a `Chance` for randomness. Here the `Chance` answers in every possible way,
and the test sums the probabilities. A verifier with a planted bias must fail: it drops drafts that the
grammar refuses, as if they had not been drawn.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import structgen as sg
from oracles.enumerate import Rule, drafts_of, dropping, law
from oracles.harness import cases
from oracles.speculation_laws import drawn_by_the_law
from oracles.speculative import RandomModel
from structgen.speculation import DraftModel, LogitNgrams, Speculation
from structgen.speculation.rules import Chance, Floats, k_seq, k_seq_discount, recursive, single
from structgen.speculation.sampled import RandomChance, draw_drafts

WEIGHTS = st.sampled_from([0.0, 0.0, 1.0, 1.0, 2.0, 5.0, 0.01, 1e-9])


def laws(size: int) -> st.SearchStrategy[Floats]:
    return (
        st.lists(WEIGHTS, min_size=size, max_size=size)
        .filter(lambda w: sum(w) > 0)
        .map(lambda w: np.array(w) / sum(w))
    )


def assert_exact(rule: Rule, p: Floats, q: Floats, count: int, replace: bool) -> None:
    assert np.abs(law(rule, p, q, count, replace) - p).max() < 1e-12


RULES: dict[str, tuple[Rule, int, bool]] = {
    "single": (lambda p, q, xs, chance: single(p, q, xs[0], chance)[0], 1, True),
    "recursive-2": (lambda p, q, xs, chance: recursive(p, q, xs, chance)[0], 2, False),
    "recursive-3": (lambda p, q, xs, chance: recursive(p, q, xs, chance)[0], 3, False),
    "k-seq-2": (lambda p, q, xs, chance: k_seq(p, q, xs, chance)[0], 2, True),
    "k-seq-3": (lambda p, q, xs, chance: k_seq(p, q, xs, chance)[0], 3, True),
}


@pytest.mark.parametrize("name", RULES)
@given(data=st.data(), size=st.integers(1, 4))
@settings(max_examples=cases(60), deadline=None)
def test_every_rule_gives_the_target_law(name: str, data: st.DataObject, size: int) -> None:
    rule, count, replace = RULES[name]
    assert_exact(rule, data.draw(laws(size)), data.draw(laws(size)), count, replace)


@pytest.mark.parametrize("name", RULES)
def test_five_tokens(name: str) -> None:
    rule, count, replace = RULES[name]
    p, q = np.array([0.4, 0.1, 0.2, 0.3, 0.0]), np.array([0.1, 0.3, 0.2, 0.15, 0.25])
    assert_exact(rule, p, q, count, replace)
    assert_exact(rule, p, p, count, replace)


def masked(law: Floats, mask: Floats) -> Floats:
    return law * mask / (law * mask).sum()


def test_the_mask_belongs_on_the_draft_before_it_is_drawn() -> None:
    """A mask on the target alone is exact. Masks on both models are exact, too, and accept more drafts.
    Dropping the drafts that the grammar refuses is biased."""
    mask = np.array([1.0, 1.0, 0.0, 1.0])
    p, q = np.array([0.1, 0.3, 0.4, 0.2]), np.array([0.35, 0.1, 0.35, 0.2])
    for rule, count, replace in RULES.values():
        assert_exact(rule, masked(p, mask), q, count, replace)
        assert_exact(rule, masked(p, mask), masked(q, mask), count, replace)

    for name in ("single", "recursive-2", "recursive-3"):
        rule, count, replace = RULES[name]
        with pytest.raises(AssertionError):
            assert_exact(dropping(rule), masked(p, mask), q, count, replace)
    # The exact bias: p'(y) + q(invalid) (p'(y) - residual(y)).
    wanted = masked(p, mask)
    rest = np.maximum(wanted - q, 0)
    found = law(dropping(RULES["single"][0]), wanted, q, 1, True)
    assert np.allclose(found, wanted + q[2] * (wanted - rest / rest.sum()), atol=1e-12)


def test_other_planted_faults_are_found_too() -> None:
    p, q = np.array([0.4, 0.4, 0.1, 0.1]), np.array([0.1, 0.2, 0.4, 0.3])

    def no_residual(p: Floats, q: Floats, xs: list[int], chance: Chance) -> int:
        return xs[0] if chance.coin(min(1.0, p[xs[0]] / q[xs[0]])) else chance.draw(p)

    def wrong_q(p: Floats, q: Floats, xs: list[int], chance: Chance) -> int:
        return single(p, np.full(4, 1 / 4), xs[0], chance)[0]

    def no_renormalising(p: Floats, q: Floats, xs: list[int], chance: Chance) -> int:
        for x in xs:
            if chance.coin(min(1.0, p[x] / q[x])):
                return x
            p = np.maximum(p - q, 0) / np.maximum(p - q, 0).sum()
        return chance.draw(p)

    for rule, count in ((no_residual, 1), (wrong_q, 1), (no_renormalising, 2)):
        with pytest.raises(AssertionError):
            assert_exact(rule, p, q, count, False)


@given(p=laws(5), q=laws(5), count=st.integers(1, 4))
@settings(max_examples=cases(100), deadline=None)
def test_the_discount_is_the_least_that_leaves_a_residual(p: Floats, q: Floats, count: int) -> None:
    rho, beta = k_seq_discount(p, q, count)
    assert 1.0 <= rho <= count and abs(beta - np.minimum(p / rho, q).sum()) < 1e-12
    accepted = 1 - (1 - beta) ** count
    assert accepted <= rho * beta + 1e-12
    if beta > 0:
        assert (p - np.minimum(q, p / rho) * accepted / beta).min() > -1e-9
    assert accepted >= (1 - np.exp(-1)) * np.minimum(p, count * q).sum() - 1e-9


def test_a_token_without_probability_is_never_accepted() -> None:
    class Zero(np.random.Generator):
        def random(self, *args, **kwargs):  # type: ignore[no-untyped-def, override]
            return 0.0

    chance = RandomChance(Zero(np.random.PCG64(0)))
    p, q = np.array([0.0, 1.0]), np.array([0.5, 0.5])
    assert single(p, q, 0, chance) == (1, None) and k_seq(p, q, [0, 0], chance) == (1, None)
    assert not chance.coin(0.0) and chance.draw(p) == 1


def test_drafts_are_drawn_as_the_rules_assume() -> None:
    q, random, count = np.array([0.5, 0.0, 0.3, 0.2]), np.random.default_rng(0), 20000
    for rule, replace in (("recursive", False), ("k-seq", True)):
        found = Counter(tuple(draw_drafts(q, rule, 2, random)) for _ in range(count))  # type: ignore[arg-type]
        for xs, weight in drafts_of(q, 2, replace):
            assert abs(found[tuple(xs)] / count - weight) < 5 * np.sqrt(weight * (1 - weight) / count)


@pytest.mark.parametrize("rule", ["single", "recursive", "k-seq"])
@pytest.mark.parametrize("drafter", ["model", "n-grams"])
def test_whole_texts_follow_the_law_of_plain_decoding(rule: str, drafter: str) -> None:
    """The engine with each rule, compared with the exact law of all texts of a small language."""
    lm, draft = RandomModel(4, sharp=1.0), RandomModel(5, sharp=1.0)
    grammar = sg.Compiler(lm.vocabulary).regex("(a|ab|bc|c){2,3}")
    drafters = [DraftModel(draft) if drafter == "model" else LogitNgrams(2)]
    options = Speculation(drafters, rule=rule, branches=2, depth=3)  # type: ignore[arg-type]
    results = drawn_by_the_law(lm, grammar, options, 600)
    assert results[0].speculation is not None
    assert all(r.speculation.forwards <= len(r.tokens) for r in results)
