"""The samplers' invariants, summed over every outcome of their randomness: equalities, not estimates."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles import oracle
from oracles.sampling_laws import (
    ASAP,
    IMPORTANCE,
    assert_equal,
    breaks,
    cars_is_exact,
    case,
    chain_is_invariant,
    one_walk,
    proper,
    small,
    smc_is_proper,
    weighted_sums,
)
from oracles.sampling_oracle import (
    END,
    TOKENS,
    Table,
    TableModel,
    brute_force,
    choice,
    every_outcome,
    log,
    random_language,
    target,
    trained,
)
from structgen.sampling import Predicate, asap, cars, local, mcmc, smc
from structgen.sampling.chance import Seeds
from structgen.sampling.resampling import SCHEMES, resample
from structgen.sampling.trie import Trie
from structgen.sampling.walk import Mode, Walk, Walker

# The laws are functions, so a test can show that a planted bug breaks them.


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("draws", [0, 1, 3, 8])
def test_every_walk_is_properly_weighted_at_every_trie_state(seed: int, draws: int) -> None:
    law, wanted = case(seed)
    trie = trained(law, draws, seed)
    proper(law, trie, IMPORTANCE, wanted)
    proper(law, trie, ASAP, wanted)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("draws", [0, 1, 3, 8])
def test_cars_accepts_each_text_with_its_probability_over_the_bound(seed: int, draws: int) -> None:
    law, wanted = case(seed)
    cars_is_exact(law, trained(law, draws, seed), wanted)


def follows_masks(grammar: sg.CompiledGrammar, tokens: tuple[int, ...], max_tokens: int) -> bool:
    matcher = grammar.matcher()
    size = grammar.vocabulary.vocab_size
    return all(
        oracle.mask_of(matcher, size, max_tokens - i)[t] and matcher.accept_token(t)
        for i, t in enumerate(tokens)
    )


@pytest.mark.parametrize("budget", ["mask", "reject"])
@pytest.mark.parametrize("max_tokens", [1, 2, 3, 4])
def test_length_limits_are_part_of_the_target(budget: str, max_tokens: int) -> None:
    for seed in (0, 2, 3):
        lm = TableModel(seed)
        texts = random_language(seed, longest=4, size=8)
        law = target(lm, choice(lm, texts), max_tokens=max_tokens, budget=budget)
        wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, max_tokens)
        if budget == "mask":  # masks refuse the beginning of some texts that fit (`mask_exact`)
            wanted = {s: p for s, p in wanted.items() if follows_masks(law.grammar, s, max_tokens)}
        for draws in (0, 2):
            if not wanted:
                continue
            trie = trained(law, draws)
            proper(law, trie, IMPORTANCE, wanted)
            cars_is_exact(law, trie, wanted)


@pytest.mark.parametrize("how", [{"temperature": 0.5}, {"temperature": 3.0}, {"top_k": 2}, {"top_p": 0.7},
                                 {"temperature": 1.7, "top_k": 4, "top_p": 0.8}])  # fmt: skip
def test_sampling_parameters_define_the_target_before_the_mask(how: dict[str, Any]) -> None:
    lm = TableModel(11)
    texts = ["", "a", "ab", "abc", "ca"]
    law = target(lm, choice(lm, texts), **how)
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 5, **how)
    for draws in (0, 3):
        trie = trained(law, draws)
        if wanted:
            proper(law, trie, IMPORTANCE, wanted)
            proper(law, trie, ASAP, wanted)
            cars_is_exact(law, trie, wanted)


def test_end_tokens_are_one_event() -> None:
    tokens = [b"a", b"b", b"", b""]
    lm = TableModel(3, tokens, ends=(2, 3))
    law = target(lm, choice(lm, ["a", "ba", "b"]))
    wanted = brute_force(lm, {b"a", b"ba", b"b"}.__contains__, 5)
    assert all(s[-1] == 2 for s in wanted)
    proper(law, Trie(), IMPORTANCE, wanted)
    cars_is_exact(law, trained(law, 2), wanted)


def test_bounds_hold_at_every_prefix_and_meet_when_all_is_seen() -> None:
    for seed in range(8):
        law, wanted = case(seed, sharp=0.5)
        total = sum(wanted.values())
        trie, last = Trie(), 0.0
        walker = Walker(law, trie, 1)
        for index in range(5000):
            walk = walker.start(Seeds(seed).stream(0, index))
            walker.run([walk], ASAP)
            low, high = trie.bracket
            assert low <= log(total) + 1e-12 and high >= log(total) - 1e-12
            assert high <= last, "the upper bound rose"
            last = high
            if index < 40:
                check_node(law, trie.root, (), wanted)
            if high - low < 1e-13:
                break
        assert high - low < 1e-13 and low == pytest.approx(log(total), abs=1e-12)
        # The trie is complete: every draw has the weight Z, so the effective sample size is the number of
        # draws.
        out = asap.draw(walker, Seeds(seed + 100), 20)
        assert np.allclose(out.log_weights, log(total), atol=1e-12)
        assert trie.tv_bound < 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_the_certified_distance_holds(seed: int) -> None:
    """TV(Q, P_L) <= 1 - lower/upper, where Q is the law of ASAp's next draw and P_L the target, whatever the
    trie has learned."""
    law, wanted = case(seed)
    total = sum(wanted.values())
    for draws in (0, 1, 2, 5, 20):
        trie = trained(law, draws, seed)
        made: dict[tuple[int, ...], float] = defaultdict(float)
        for probability, (walk,) in every_outcome(one_walk(law, trie, ASAP)):
            made[tuple(walk.tokens)] += probability
        distance = 0.5 * sum(abs(made[s] - p / total) for s, p in wanted.items())
        assert distance <= 1 - total / math.exp(trie.theta) + 1e-12 <= trie.tv_bound + 2e-12


def check_node(law: Any, node: Any, tokens: tuple[int, ...], wanted: dict[tuple[int, ...], float]) -> None:
    """Checks lower(u) <= c(u) <= upper(u). c(u) is the share of texts of the language in the model's
    probability of u, P(L, u) / P(u)."""
    for token, edge in node.edges.items():
        below = (*tokens, token)
        reach = 1.0
        for at, t in enumerate(below):
            reach *= math.exp(float(law.law.apply(law.lm.vector(below[:at])[None])[0][t]))
        inside = sum(p for s, p in wanted.items() if s[: len(below)] == below) / reach
        assert math.exp(edge.upper) >= inside - 1e-9
        assert math.exp(edge.lower) <= inside + 1e-9
        if edge.node is not None and edge.node.known:
            check_node(law, edge.node, below, wanted)


def test_evicting_resets_bounds_and_keeps_every_law() -> None:
    lm = TableModel(4)
    texts = random_language(4, longest=4, size=5) + ["abca", "cab"]
    law = target(lm, choice(lm, texts), max_tokens=6)
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 6)
    total = log(sum(wanted.values()))
    trie = Trie(max_bytes=4000)
    walker = Walker(law, trie, 1)
    for index in range(150):
        walk = walker.start(Seeds(1).stream(0, index))
        walker.run([walk], ASAP)
        assert trie.bytes <= 4000 + 2500
        assert trie.bracket[0] <= total + 1e-12 <= trie.bracket[1] + 2e-12
        assert trie.theta >= total - 1e-12
        if index % 30 == 7:
            cars_is_exact(law, trie, wanted)
            proper(law, trie, ASAP, wanted)
    assert trie.evicted > 20


# Conditions.


def words_without(letter: str) -> Predicate:
    return Predicate(lambda text: letter not in text, at="token", monotone=True)


CONDITIONS = {
    "token": (words_without("c"), lambda text: b"c" not in text),
    "end": (Predicate(lambda text: len(text) % 2 == 1), lambda text: len(text) % 2 == 1),
    "not monotone": (
        Predicate(lambda text: text.endswith("b"), at="token", monotone=False),
        lambda text: text.endswith(b"b"),
    ),
    "unit": (
        Predicate(lambda text: not text.startswith("b"), at="unit", monotone=True, ends=("a",)),
        lambda text: not text.startswith(b"b"),
    ),
}


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("extra", [None, 1, 2, 3])
def test_conditions_with_and_without_awrs(name: str, extra: int | None) -> None:
    predicate, holds = CONDITIONS[name]
    lm = TableModel(21)
    texts = ["a", "ab", "b", "ba", "ca", "bb"]
    law = target(lm, choice(lm, texts), potential=predicate, max_tokens=4)
    wanted = brute_force(lm, {t.encode() for t in texts if holds(t.encode())}.__contains__, 4)
    for draws in (0, 2):
        trie = trained(law, draws)
        for bounds in (False, True):
            proper(law, trie, Mode(bounds=bounds, learns=True, extra=extra), wanted)
    if extra is None:
        for draws in (0, 1, 5):
            cars_is_exact(law, trained(law, draws), wanted)


def test_awrs_without_a_grammar() -> None:
    """AWRS without a grammar: the condition alone decides which tokens are allowed."""
    lm = TableModel(8, [b"a", b"b", b""], ends=(2,))
    texts = [b"", b"a", b"ab", b"bb"]
    begins = {t[:n] for t in texts for n in range(len(t) + 1)}
    inside = Predicate(lambda t: t in begins, at="token", monotone=True, takes="bytes")
    whole = Predicate(lambda t: t in texts, takes="bytes")
    law = target(lm, None, potential=inside * whole, max_tokens=3)
    wanted = brute_force(lm, texts.__contains__, 3)
    for extra in (1, 2):
        proper(law, Trie(), Mode(extra=extra), wanted)


def test_soft_weights_at_the_end_are_exact_in_every_mode() -> None:
    lm = TableModel(31)
    texts = ["a", "ab", "b", "ca", "cc"]
    soft = Table({b"a": -0.3, b"ab": -2.0, b"ca": -math.inf}, bounded=True)
    law = target(lm, choice(lm, texts), potential=soft)
    weight = lambda t: math.exp(soft._complete.get(t, 0.0))  # noqa: E731
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 5, weight)
    for draws in (0, 1, 6):
        trie = trained(law, draws)
        proper(law, trie, IMPORTANCE, wanted)
        proper(law, trie, ASAP, wanted)
        cars_is_exact(law, trie, wanted)


def test_shaping_potentials_enter_the_proposal_exactly() -> None:
    from structgen.sampling import GrammarPotential, LanguageModelPotential

    lm, other = TableModel(41), TableModel(42)
    texts = ["a", "ab", "b", "ca", "cc"]
    second = sg.Compiler(lm.vocabulary).regex("[ac]+b?")
    power = 0.7
    shape = LanguageModelPotential(other, [], power) * GrammarPotential(second)
    law = target(lm, choice(lm, texts), potential=shape)
    plain = brute_force(lm, {b"a", b"ab", b"ca", b"cc"}.__contains__, 5)
    wanted = {}
    for tokens, p in plain.items():
        expert = sum(float(other.vector(tokens[:i])[t]) for i, t in enumerate(tokens))
        wanted[tokens] = p * math.exp(power * expert)
    for draws in (0, 4):
        trie = trained(law, draws)
        proper(law, trie, IMPORTANCE, wanted)
        cars_is_exact(law, trie, wanted)


# Populations.


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
@pytest.mark.parametrize("threshold", [0.7, 1.0])
def test_smc_evidence_is_unbiased_under_every_scheme(scheme: Any, threshold: float) -> None:
    lm, texts, grammar = small()
    law = target(lm, grammar, max_tokens=4)
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 4)
    options = smc.SmcOptions(ess_threshold=threshold, scheme=scheme)
    smc_is_proper(law, Trie(), options, wanted)
    smc_is_proper(law, trained(law, 2), options, wanted)


@pytest.mark.parametrize("options", [
    smc.SmcOptions(ess_threshold=1.0, block=2),
    smc.SmcOptions(ess_threshold=1.0, moves=1, rewrite=1),
    smc.SmcOptions(ess_threshold=0.0, moves=1, rewrite=3),
    smc.SmcOptions(ess_threshold=0.9, moves=1, rewrite=2, scheme="multinomial"),
])  # fmt: skip
def test_blocks_and_moves_leave_the_target_alone(options: smc.SmcOptions) -> None:
    lm = TableModel(5, [b"a", b"b", b""], ends=(2,), sharp=1.0)
    texts = ["a", "ab", "ba"]
    law = target(lm, choice(lm, texts), max_tokens=3)
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 3)
    smc_is_proper(law, trained(law, 1), options, wanted, n=2 if options.ess_threshold else 1)


def test_critics_guide_but_only_the_whole_text_counts() -> None:
    lm, texts, grammar = small(7)
    critic = Table({b"ab": 0.9, b"bba": -0.4}, {b"a": 1.1, b"b": -2.0, b"bb": 0.3})
    law = target(lm, grammar, max_tokens=4, potential=critic)
    weight = lambda t: math.exp(critic._complete.get(t, 0.0))  # noqa: E731
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 4, weight)
    for options in (smc.SmcOptions(ess_threshold=1.0), smc.SmcOptions(ess_threshold=0.0)):
        smc_is_proper(law, Trie(), options, wanted)


def test_a_constant_twist_changes_nothing() -> None:
    lm, texts, grammar = small(7)
    constant = Table({}, {b"a": 3.0, b"b": 3.0, b"ab": 3.0, b"bb": 3.0, b"bba": 3.0, b"ba": 3.0})
    with_twist = target(lm, grammar, max_tokens=4, potential=constant)
    without = target(lm, grammar, max_tokens=4)
    for seed in range(30):
        options = smc.SmcOptions(ess_threshold=0.5)
        a = smc.draw(Walker(with_twist), Seeds(seed), 4, options)
        b = smc.draw(Walker(without), Seeds(seed), 4, options)
        if not any(w.ended for w in a.walks) and a.resampled == b.resampled:
            assert [w.tokens for w in a.walks] == [w.tokens for w in b.walks]
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 4)
    smc_is_proper(with_twist, Trie(), smc.SmcOptions(ess_threshold=1.0), wanted)


def test_lookahead_values_are_divided_out() -> None:
    lm = TableModel(9, [b"a", b"b", b""], ends=(2,), sharp=1.0)
    texts = ["a", "ab"]
    critic = Table({b"a": -1.0, b"ab": 0.5})
    law = target(lm, choice(lm, texts), max_tokens=3, potential=critic)
    weight = lambda t: math.exp(critic._complete[t])  # noqa: E731
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 3, weight)
    smc_is_proper(law, Trie(), smc.SmcOptions(ess_threshold=1.0, lookahead=1, scheme="multinomial"), wanted)


def test_smc_with_awrs_is_proper() -> None:
    lm = TableModel(2, [b"a", b"b", b""], ends=(2,), sharp=1.0)
    predicate = Predicate(lambda t: not t.startswith("ab"), at="token", monotone=True)
    law = target(lm, choice(lm, ["a", "ab", "ba"]), max_tokens=3, potential=predicate)
    wanted = brute_force(lm, {b"a", b"ba"}.__contains__, 3)
    smc_is_proper(law, Trie(), smc.SmcOptions(ess_threshold=1.0, extra=1, scheme="multinomial"), wanted)


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
def test_resampling_is_unbiased_and_keeps_the_count(scheme: Any) -> None:
    for weights in ([0.5, 0.3, 0.2], [0.25] * 4, [0.0, 1.0, 0.0], [0.61, 0.0, 0.38, 0.01]):
        expected = np.zeros(len(weights))
        total = 0.0
        for probability, found in every_outcome(lambda c, w=weights: resample(np.array(w), scheme, c)):
            assert len(found) == len(weights)
            total += probability
            expected += probability * np.bincount(found, minlength=len(weights))
        assert total == pytest.approx(1.0)
        np.testing.assert_allclose(expected, np.array(weights) * len(weights), atol=1e-9)


# Chains.


@pytest.mark.parametrize("proposal", ["restart", "uniform", "priority"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_chains_are_reversible_for_the_target(proposal: Any, seed: int) -> None:
    lm = TableModel(seed, sharp=1.0)
    texts = ["a", "ab", "abc", "b", "ca"]
    law = target(lm, choice(lm, texts))
    chain_is_invariant(law, proposal, brute_force(lm, {t.encode() for t in texts}.__contains__, 5))


@pytest.mark.parametrize("proposal", ["restart", "priority"])
def test_chains_know_potentials(proposal: Any) -> None:
    lm = TableModel(3, sharp=1.0)
    texts = ["a", "ab", "b", "ca"]
    critic = Table({b"ab": 1.2, b"b": -0.5})
    law = target(lm, choice(lm, texts), potential=critic)
    weight = lambda t: math.exp(critic._complete.get(t, 0.0))  # noqa: E731
    chain_is_invariant(law, proposal, brute_force(lm, {t.encode() for t in texts}.__contains__, 5, weight))


# Planted bugs: each must break the law that covers it.


def test_a_biased_weight_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    law, wanted = case(0)
    trie = trained(law, 3)
    honest = Walker.take

    def biased(self: Walker, walk: Walk, slot: int, total: float, bounds: bool) -> None:
        honest(self, walk, slot, total, bounds)
        # the bug: the weight keeps a small part of the draw's bound, although the bound must be divided out
        walk.log_weight += walk.bound * 0.01

    monkeypatch.setattr(Walker, "take", biased)
    breaks(lambda: proper(law, trie, ASAP, wanted))


def test_a_bound_read_after_it_changed_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    law, wanted = case(2)
    trie = trained(law, 3)
    honest = Walker.take

    def stale(self: Walker, walk: Walk, slot: int, total: float, bounds: bool) -> None:
        honest(self, walk, slot, total, bounds)
        walk.bound = 0.0

    monkeypatch.setattr(Walker, "take", stale)
    breaks(lambda: proper(law, trie, ASAP, wanted))


@pytest.mark.parametrize("bug", ["dropped residual", "last draw counts as its own mass", "stops on success"])
def test_wrong_normalisers_of_awrs_are_caught(monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    from structgen.sampling import walk as module

    def wrong(walker: Walker, walk: Walk, total: float, lot: Any, extra: int) -> Any:
        from structgen.sampling.awrs import _ask

        weights = lot.weights(0)
        scale = float(weights.sum())
        valid, taken = 0.0, -1
        rest = weights.copy()
        while taken < 0:
            if rest.sum() <= 0:
                return None
            slot = walk.chance.choose(np.cumsum(rest))
            if _ask(walker, walk, slot):
                taken, valid = slot, float(weights[slot])
            rest[slot] = 0.0
        if bug != "dropped residual" and rest.sum() > 0:
            open_mass = float(rest.sum())
            slot = walk.chance.choose(np.cumsum(rest))
            if _ask(walker, walk, slot):
                valid += float(weights[slot]) if bug.startswith("last") else open_mass
            elif bug.startswith("stops") and open_mass > weights[slot]:
                rest[slot] = 0.0  # the bug: one more attempt, made only after a failure
                slot = walk.chance.choose(np.cumsum(rest))
                valid += float(rest.sum()) if _ask(walker, walk, slot) else 0.0
        return taken, total + math.log(valid / scale)

    lm = TableModel(21)
    texts = ["a", "ab", "b", "ba", "ca", "bb"]
    law = target(lm, choice(lm, texts), potential=words_without("c"), max_tokens=4)
    wanted = brute_force(lm, {t.encode() for t in texts if "c" not in t}.__contains__, 4)
    proper(law, Trie(), Mode(extra=1), wanted)
    monkeypatch.setattr(module, "estimate", wrong)
    breaks(lambda: proper(law, Trie(), Mode(extra=1), wanted))


def test_a_bound_kept_over_an_eviction_is_caught() -> None:
    """The bug: an eviction from the trie forgets a subtree and keeps the bound that the subtree proved. Then
    CARS accepts with a probability above 1."""
    lm = TableModel(6)
    texts = ["a", "ab", "cab", "ccc"]
    law = target(lm, choice(lm, texts))
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 5)
    trie = trained(law, 40)
    cars_is_exact(law, trie, wanted)
    # Children of the root lose their details but keep their bounds.
    for edge in trie.root.edges.values():
        edge.node = None
    breaks(lambda: cars_is_exact(law, trie, wanted))


def test_taking_whoever_finishes_first_is_biased() -> None:
    """Trials run side by side. If finished trials are taken in the order in which they end, short texts are
    preferred. Only the order in which trials start is exact."""
    lm = TableModel(12, [b"a", b"b", b""], ends=(2,), sharp=0.2)
    texts = ["a", "bb"]
    law = target(lm, choice(lm, texts), max_tokens=3)
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 3)
    total = sum(wanted.values())

    def first_of_two(order: Any) -> dict[tuple[int, ...], float]:
        found: dict[tuple[int, ...], float] = defaultdict(float)

        def run(chance: Any) -> list[Walk]:
            walker = Walker(law, Trie(), 1)
            walks = [walker.start(chance, cars.MODE) for _ in range(2)]
            for walk in walks:
                walker.run([walk], Mode(bounds=False, coin=True))
            return sorted([w for w in walks if w.alive], key=order)

        for probability, walks in every_outcome(run):
            if walks:
                found[tuple(walks[0].tokens)] += probability
        mass = sum(found.values())
        return {s: p / mass for s, p in found.items()}

    exact = {s: p / total for s, p in wanted.items()}
    assert_equal(first_of_two(lambda w: 0), exact)
    breaks(lambda: assert_equal(first_of_two(lambda w: len(w.tokens)), exact, 1e-3))


def test_a_wrong_acceptance_ratio_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = TableModel(0, sharp=1.0)
    texts = ["a", "ab", "abc", "b", "ca"]
    law = target(lm, choice(lm, texts))
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 5)
    honest = mcmc._log_q

    def without_the_position(x: Walk, y: Walk, proposal: Any) -> float:
        return honest(x, y, proposal) + (math.log(len(x.tokens)) if proposal == "uniform" else 0.0)

    monkeypatch.setattr(mcmc, "_log_q", without_the_position)
    breaks(lambda: chain_is_invariant(law, "uniform", wanted))
    monkeypatch.setattr(mcmc, "_log_q", honest)
    chain_is_invariant(law, "uniform", wanted)


def test_weights_lost_at_resampling_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    lm, texts, grammar = small()
    law = target(lm, grammar, max_tokens=4)
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 4)
    options = smc.SmcOptions(ess_threshold=1.0)
    honest = smc._Population.replace

    def forgetful(self: Any, ancestors: list[int], log_weight: float) -> None:
        honest(self, ancestors, 0.0)

    monkeypatch.setattr(smc._Population, "replace", forgetful)
    breaks(lambda: smc_is_proper(law, Trie(), options, wanted))


# The edges of probability.


def test_no_text_has_weight() -> None:
    lm = TableModel(1, zero=[((), 0), ((), 2)])  # neither "a" nor "ab" begins a text
    law = target(lm, choice(lm, ["a", "ab"]))
    for draw in (
        lambda w: local.draw(w, Seeds(0), 3, weighted=True),
        lambda w: asap.draw(w, Seeds(0), 3),
        lambda w: cars.draw(w, Seeds(0), 3, max_trials=50),
        lambda w: smc.draw(w, Seeds(0), 3),
        lambda w: mcmc.draw(w, Seeds(0), 3, steps=2),
    ):
        out = draw(Walker(law, Trie(), 2))
        assert not out.walks and out.log_evidence == -math.inf
    out = cars.draw(Walker(law, Trie()), Seeds(0), 3, max_trials=50)
    assert out.draws == 1 and "Z is 0" in out.stopped


def test_one_text_one_token_and_the_empty_text() -> None:
    for texts in (["a"], [""], ["", "a"]):
        lm = TableModel(2)
        law = target(lm, choice(lm, texts))
        wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 5)
        for draws in (0, 2):
            trie = trained(law, draws)
            proper(law, trie, IMPORTANCE, wanted)
            cars_is_exact(law, trie, wanted)


def test_tokens_below_the_smallest_float() -> None:
    """The only allowed token has the probability 1e-35, and every draw still ends with its exact weight."""
    lm = TableModel(2)
    lm._table[()] = np.array([-80.6, -1e-7, -90.0, -20.0, -18.0], np.float32)
    law = target(lm, choice(lm, ["a", "ab"]))
    wanted = brute_force(lm, {b"a", b"ab"}.__contains__, 5)
    assert 0 < sum(wanted.values()) < 1e-34
    sums = weighted_sums(every_outcome(one_walk(law, Trie(), IMPORTANCE)))
    assert sums.keys() == wanted.keys()
    for s, p in wanted.items():
        assert sums[s] == pytest.approx(p, rel=1e-6)
    trie = trained(law, 30)
    assert trie.bracket[0] == pytest.approx(log(sum(wanted.values())), abs=1e-3)
    assert trie.bracket[1] == pytest.approx(log(sum(wanted.values())), abs=1e-3)


def test_the_vocabulary_is_what_these_tests_say() -> None:
    assert TOKENS[END] == b"" and len(TOKENS) <= 5
