"""sg.sample: methods agree with the target; seeds, batches, tries in files, contracts, diagnostics and async
calls."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles.sampling_oracle import CORRECTED, DRAWING, TableModel, brute_force, choice
from structgen.errors import StructgenError
from structgen.lm.base import LanguageModelError
from structgen.sampling import (
    GrammarPotential,
    JsonSchemaValid,
    LanguageModelPotential,
    Potential,
    PotentialError,
    Predicate,
    Prefix,
    SmcOptions,
    check_laws,
    load_trie,
    prepare,
    sample,
    sample_async,
    save_trie,
)

TEXTS = ["", "a", "ab", "abc", "b", "ca", "cab", "ccc"]
METHODS = [*DRAWING, "auto"]


def setting(seed: int = 0, texts: list[str] = TEXTS, **model: Any) -> tuple[TableModel, Any]:
    lm = TableModel(seed, **model)
    return lm, choice(lm, texts)


def truth(lm: TableModel, texts: list[str], max_tokens: int = 6) -> dict[str, float]:
    """text -> its probability under the target."""
    found: Counter[str] = Counter()
    for tokens, p in brute_force(lm, {t.encode() for t in texts}.__contains__, max_tokens).items():
        found[lm.vocabulary.decode(tokens[:-1]).decode()] += p
    total = sum(found.values())
    return {text: p / total for text, p in found.items()}


def distance(posterior: dict[str, float], wanted: dict[str, float]) -> float:
    return 0.5 * sum(
        abs(posterior.get(t, 0.0) - wanted.get(t, 0.0)) for t in posterior.keys() | wanted.keys()
    )


@pytest.mark.parametrize("method", [*CORRECTED, "auto"])
def test_methods_reach_the_target(method: Any) -> None:
    lm, grammar = setting()
    wanted = truth(lm, TEXTS)
    count = 700 if method == "mcmc" else 2000
    found = sample(lm, [], grammar, method=method, n=count, seed=1, max_tokens=6, budget="reject")
    assert distance(found.posterior(), wanted) < 0.06
    plain = sample(lm, [], grammar, method="local", n=2000, seed=1, max_tokens=6, budget="reject")
    counts = Counter(s.text for s in plain)
    assert distance({t: c / 2000 for t, c in counts.items()}, wanted) > 0.15, (
        "the test cannot tell them apart"
    )


def test_exact_draws_pass_a_chi_square_test_and_the_trials_are_as_many_as_predicted() -> None:
    lm, grammar = setting(1)
    wanted = truth(lm, TEXTS)
    found = sample(lm, [], grammar, method="cars", n=3000, seed=3, max_tokens=6, budget="reject")
    counts = Counter(s.text for s in found)
    statistic = sum((counts[t] - 3000 * p) ** 2 / (3000 * p) for t, p in wanted.items())
    assert statistic < 30  # 7 degrees of freedom: a larger value has a probability below 1 in 10,000
    assert found.law == "exact" and set(found.log_weights) == {0.0}
    low, high = found.log_bracket or (0, 0)
    z = math.log(sum(brute_force(lm, {t.encode() for t in TEXTS}.__contains__, 6).values()))
    assert low <= z + 1e-9 and z <= high + 1e-9
    assert found.log_evidence == pytest.approx(z, abs=0.1)


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_repeats_and_the_batch_size_changes_nothing(method: Any) -> None:
    def run(batch: int, seed: int = 5) -> list[Any]:
        lm, grammar = setting(2)
        found = sample(lm, [], grammar, method=method, n=12, seed=seed, batch=batch, max_tokens=6)
        return [(s.text, s.tokens, s.logprob, s.log_weight) for s in found]

    assert run(1) == run(3) == run(64)
    assert run(1) == run(1)
    assert run(1) != run(1, seed=6)


def test_the_potential_and_the_batch_size_do_not_mix_either() -> None:
    def run(batch: int, method: Any) -> list[Any]:
        lm, grammar = setting(2)
        odd = Predicate(lambda t: len(t) < 3, at="token", monotone=True)
        found = sample(lm, [], grammar, method=method, n=9, seed=5, batch=batch, potential=odd, max_tokens=6)
        return [(s.text, s.log_weight) for s in found]

    for method in DRAWING:
        assert run(1, method) == run(4, method) == run(32, method)


def test_results_carry_their_numbers() -> None:
    lm, grammar = setting(3)
    found = sample(lm, [], grammar, method="importance", n=50, seed=0, max_tokens=6, budget="reject")
    exact = brute_force(lm, {t.encode() for t in TEXTS}.__contains__, 6)
    for one in found:
        assert one.tokens[-1] == 4 and one.text in TEXTS and one.value == one.text
        assert math.exp(one.logprob) == pytest.approx(exact[tuple(one.tokens)], rel=1e-9)
    assert found.weights.sum() == pytest.approx(1.0) and 1 <= found.ess <= len(found)
    assert sum(found.posterior().values()) == pytest.approx(1.0)
    assert len(found.resample(7, seed=1)) == 7
    assert found[0] is found.samples[0] and len(found[:2]) == 2
    about = found.diagnostics
    assert about.method == "importance" and about.draws == 50
    assert about.positions == len(lm.asked) == len(set(lm.asked)), "a prefix was asked for twice"
    assert about.saved > 0 and len(about.mass_lost) >= 2 and about.lost_tokens
    assert all(0 <= lost <= 1 for _, lost in about.mass_lost)
    # For each position, no lost token exceeds the probability that the position lost.
    for at, token, text, lost in about.lost_tokens:
        assert lm.vocabulary.token_bytes(token) == text
        assert 0 < lost <= about.mass_lost[at][1] + 1e-9 or about.mass_lost[at][0] > 1
    first = lm.vector(())
    wrong = [
        t for t in range(5) if not any(w.startswith(lm.vocabulary.token_bytes(t).decode()) for w in TEXTS)
    ]
    assert about.mass_lost[0][1] == pytest.approx(sum(math.exp(first[t]) for t in wrong), abs=1e-6)


def test_a_known_prefix_costs_no_forward_in_the_next_call() -> None:
    lm, grammar = setting(3)
    first = sample(lm, [], grammar, method="cars", n=200, seed=0, max_tokens=6)
    before = set(lm.asked)
    lm.asked.clear()
    again = sample(lm, [], grammar, method="cars", n=200, seed=1, max_tokens=6, trie=first.trie)
    assert not before & set(lm.asked) and len(lm.asked) == again.diagnostics.positions
    assert again.diagnostics.draws <= first.diagnostics.draws


@pytest.mark.parametrize("method", METHODS)
def test_no_prefix_is_computed_twice(method: Any) -> None:
    lm, grammar = setting(3)
    found = sample(lm, [], grammar, method=method, n=40, seed=0, max_tokens=6)
    assert len(lm.asked) == len(set(lm.asked)) == found.diagnostics.positions
    assert found.diagnostics.saved > found.diagnostics.positions


def test_a_vector_is_frozen_and_draws_come_from_the_frozen_one() -> None:
    """A model gives other bits for a prefix in another batch. So a walk keeps the vector of each prefix, and
    both weights and draws come from this vector."""

    class Jitter(TableModel):
        def logprobs(self, contexts: Any) -> np.ndarray:
            rows = super().logprobs(contexts)
            noise = np.random.default_rng(len(self.asked)).normal(size=rows.shape) * 0.3
            return (rows + noise).astype(np.float32)

    lm = Jitter(3, sharp=0.7)
    found = sample(lm, [], choice(lm, TEXTS), method="cars", n=3000, seed=0, max_tokens=6, budget="reject")
    spelled: dict[tuple[int, ...], float] = {}
    for one in found:
        assert spelled.setdefault(tuple(one.tokens), one.logprob) == one.logprob
    z = math.exp(found.trie.bracket[0])
    counts = Counter(tuple(s.tokens) for s in found)
    assert sum(abs(counts[t] / 3000 - math.exp(p) / z) for t, p in spelled.items()) / 2 < 0.04


def test_until_tv_stops_and_certifies() -> None:
    lm, grammar = setting(4, sharp=0.7)
    wanted = truth(lm, TEXTS)
    found = sample(
        lm, [], grammar, method="asap", n=100_000, seed=0, until_tv=0.01, max_tokens=6, budget="reject"
    )
    assert found.diagnostics.draws < 100_000 and "0.01" in found.diagnostics.stopped
    assert found.tv_bound is not None and found.tv_bound <= 0.01
    after = sample(
        lm, [], grammar, method="asap", n=4000, seed=9, trie=found.trie, max_tokens=6, budget="reject"
    )
    counts = Counter(s.text for s in after)
    assert distance({t: c / 4000 for t, c in counts.items()}, wanted) < 0.01 + 0.03


@pytest.mark.parametrize("method", ["cars", "asap", "smc"])
def test_a_saved_trie_is_the_same_trie(method: Any, tmp_path: Any) -> None:
    lm, grammar = setting(5)
    how: dict[str, Any] = {"method": method, "n": 15, "max_tokens": 6}
    first = sample(lm, [], grammar, seed=1, **how)
    path = tmp_path / "trie.npz"
    save_trie(first.trie, path)
    loaded = load_trie(path)
    save_trie(loaded, tmp_path / "again.npz")
    a, b = np.load(path), np.load(tmp_path / "again.npz")
    assert a.files == b.files
    for name in a.files:
        assert a[name].tobytes() == b[name].tobytes(), name
    assert loaded.bracket == first.trie.bracket and loaded.theta == first.trie.theta
    assert loaded.bytes == first.trie.bytes and len(loaded) == len(first.trie)
    kept = sample(lm, [], grammar, seed=2, trie=first.trie, **how)
    lm.asked.clear()
    fresh = sample(lm, [], grammar, seed=2, trie=loaded, **how)
    assert [(s.tokens, s.log_weight) for s in kept] == [(s.tokens, s.log_weight) for s in fresh]
    assert kept.log_bracket == fresh.log_bracket


def test_a_trie_knows_its_target_and_its_model(tmp_path: Any) -> None:
    lm, grammar = setting(5, sharp=0.5)
    trie = sample(lm, [], grammar, n=20, seed=1, method="asap", max_tokens=6).trie
    assert len(trie) > 4
    with pytest.raises(StructgenError, match="another target"):
        sample(lm, [0], grammar, n=1, trie=trie, max_tokens=6)
    with pytest.raises(StructgenError, match="another target"):
        sample(lm, [], grammar, n=1, trie=trie, max_tokens=7)
    with pytest.raises(StructgenError, match="another target"):
        sample(lm, [], grammar, n=1, trie=trie, max_tokens=6, temperature=0.5)
    with pytest.raises(StructgenError, match="another target"):
        sample(lm, [], choice(lm, ["a"]), n=1, trie=trie, max_tokens=6)
    rules = [lambda t: len(t) < 3, lambda t: len(t) < 4]
    ruled = sample(lm, [], grammar, n=3, seed=1, method="asap", potential=rules[0], max_tokens=6).trie
    sample(lm, [], grammar, n=3, seed=1, method="asap", potential=rules[0], trie=ruled, max_tokens=6)
    for other_rule in (rules[1], None, [rules[0], rules[1]]):
        with pytest.raises(StructgenError, match="another target"):
            sample(lm, [], grammar, n=1, potential=other_rule, trie=ruled, max_tokens=6)
    save_trie(trie, tmp_path / "t.npz")
    other = TableModel(6)
    with pytest.raises(StructgenError, match="another model"):
        sample(other, [], choice(other, TEXTS), n=1, trie=trie, max_tokens=6)
    # The first vector of the two models is equal, and later vectors differ.
    adapted = TableModel(5, sharp=0.5)
    adapted._table[()] = adapted.vector(())
    adapted._seed = 6
    with pytest.raises(StructgenError, match="another model"):
        sample(adapted, [], choice(adapted, TEXTS), n=1, trie=trie, max_tokens=6)
    twin = TableModel(5, sharp=0.5)  # an equal model in another object: the check computes four vectors
    again = sample(twin, [], choice(twin, TEXTS), method="asap", n=3, seed=1, trie=trie, max_tokens=6)
    assert len(twin.asked) == again.diagnostics.positions and len(twin.asked) <= 4 + 6
    with pytest.raises(StructgenError, match="another model"):
        sample(other, [], choice(other, TEXTS), n=1, trie=load_trie(tmp_path / "t.npz"), max_tokens=6)
    (tmp_path / "bad.npz").write_bytes((tmp_path / "t.npz").read_bytes()[:300])
    with pytest.raises(StructgenError, match="damaged"):
        load_trie(tmp_path / "bad.npz")


def test_memory_is_bounded_and_results_stay_right() -> None:
    lm, _ = setting(7, sharp=0.3)
    letters = "abc"
    texts = [x + y + z for x in letters for y in letters for z in letters]
    grammar = choice(lm, texts)
    found = sample(
        lm, [], grammar, method="cars", n=500, seed=0, max_tokens=6, trie_bytes=8000, max_trials=10**6
    )
    assert found.trie.evicted > 0 and found.trie.bytes <= 8000
    wanted = truth(lm, texts)
    plain = sample(lm, [], grammar, method="cars", n=500, seed=0, max_tokens=6)
    assert plain.trie.evicted == 0
    assert distance(found.posterior(), wanted) < distance(plain.posterior(), wanted) + 0.05 < 0.2


# Potentials.


class Liar(Predicate):
    """A predicate that wrongly calls a prefix lost."""

    def __init__(self) -> None:
        super().__init__(lambda text: text != "a", at="token", monotone=True)


def test_a_broken_promise_is_found_while_sampling() -> None:
    lm, grammar = setting(8, texts=["ab", "abc", "b"])
    sample(lm, [], grammar, n=20, seed=0, potential=Liar(), method="importance")
    with pytest.raises(PotentialError, match="monotone=False"):
        sample(lm, [], grammar, n=20, seed=0, potential=Liar(), method="importance", check=1.0)
    honest = Predicate(lambda t: "c" not in t, at="token", monotone=True)
    sample(lm, [], grammar, n=50, seed=0, potential=honest, method="importance", check=1.0)


def test_laws_of_potentials() -> None:
    lm, grammar = setting(8)
    words = [[0, 1], [2, 3], [], [3, 0, 1]]
    check_laws(GrammarPotential(grammar), lm.vocabulary, words)
    expert = LanguageModelPotential(TableModel(9), [], power=0.5)
    check_laws(expert, lm.vocabulary, words, tolerance=1e-5)
    check_laws(Predicate(lambda t: len(t) < 3, at="token", monotone=True) * expert, lm.vocabulary, words)
    with pytest.raises(PotentialError, match="extension"):
        check_laws(Liar(), lm.vocabulary, words)

    class Crooked(GrammarPotential):
        def logw_next(self, text: Prefix) -> np.ndarray:
            return super().logw_next(text) - 0.1

    with pytest.raises(PotentialError, match="logw_next"):
        check_laws(Crooked(grammar), lm.vocabulary, words)


def test_a_second_grammar_reads_a_text_once() -> None:
    lm = TableModel(8)
    grammar = sg.Compiler(lm.vocabulary).regex("(a|b|ab)*c?")
    begun = 0

    class Counting:
        vocabulary = grammar.vocabulary

        def matcher(self) -> Any:
            nonlocal begun
            begun += 1
            return grammar.matcher()

    potential: Any = GrammarPotential(Counting())  # type: ignore[arg-type]
    tokens = tuple(int(t) for t in np.random.default_rng(0).integers(0, 3, 3000))
    for at in range(len(tokens) + 1):
        text = Prefix(tokens[:at], lm.vocabulary.decode(tokens[:at]))
        assert potential.prefix(text) == 0.0 and potential.complete(text) == 0.0
        assert np.array_equal(np.flatnonzero(np.isfinite(potential.logw_next(text))), np.arange(5))
    assert begun <= 1 + 3000 // 1000
    odd = (*tokens, 3, 0)
    assert potential.prefix(Prefix(odd, lm.vocabulary.decode(odd))) == -math.inf
    assert potential.prefix(Prefix((*odd, 1), lm.vocabulary.decode((*odd, 1)))) == -math.inf


def test_a_weight_above_one_is_refused_where_it_would_break_the_bound() -> None:
    lm, grammar = setting(8)

    class Boost(Potential):
        def complete(self, text: Prefix) -> float:
            return 1.0

    with pytest.raises(ValueError, match="bounded"):
        sample(lm, [], grammar, method="cars", potential=Boost())
    found = sample(lm, [], grammar, method="smc", n=10, seed=0, potential=Boost())
    assert found.log_bracket is None and len(found) == 10
    lying = Boost()
    lying.bounded = True
    with pytest.raises(StructgenError, match="bounded=False"):
        sample(lm, [], grammar, method="cars", potential=lying)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_weights_that_are_no_weights_are_refused(value: float) -> None:
    lm, grammar = setting(8)

    class Broken(Potential):
        def complete(self, text: Prefix) -> float:
            return value

    class Half(Potential):
        def prefix(self, text: Prefix) -> float:
            return value

    class Shape(Potential):
        shapes = True

        def logw_next(self, text: Prefix) -> np.ndarray:
            return np.full(lm.vocabulary.vocab_size, value)

    for broken in (Broken(), Half(), Shape()):
        with pytest.raises(PotentialError, match=str(value)):
            sample(lm, [], grammar, method="smc", n=4, seed=0, potential=broken)


def test_tests_are_remembered() -> None:
    lm, grammar = setting(2)
    calls: list[str] = []

    def short(text: str) -> bool:
        calls.append(text)
        return len(text) < 3

    rule = Predicate(short, at="token", monotone=True)
    found = sample(lm, [], grammar, method="awrs", n=64, seed=0, potential=rule, max_tokens=6)
    assert len(calls) == found.diagnostics.tests and found.diagnostics.tests_saved > len(calls)
    # The text has two spellings, and the end of the text asks once more. The sampler asks nothing else.
    assert max(Counter(calls).values()) <= 4


def test_json_schema_valid_and_plain_functions() -> None:
    pytest.importorskip("jsonschema")
    digits = [b"[", b"]", b",", b"1", b"2", b""]
    lm = TableModel(3, digits, ends=(5,))
    grammar = sg.Compiler(lm.vocabulary).regex(r"\[[12](,[12])?\]")
    unique = JsonSchemaValid({"uniqueItems": True})
    found = sample(lm, [], grammar, method="cars", n=40, seed=0, potential=[unique, lambda t: t != "[1]"])
    texts = {s.text for s in found}
    assert texts and all(len(set(json.loads(t))) == len(json.loads(t)) for t in texts) and "[1]" not in texts


def test_a_predicate_needs_to_say_whether_it_is_monotone() -> None:
    with pytest.raises(ValueError, match="monotone"):
        Predicate(lambda t: True, at="token")
    with pytest.raises(TypeError):
        sample(TableModel(0), [], None, potential=3)


# Choosing, and the edges of the interface.


def test_fewer_than_a_population_are_drawn_by_weight() -> None:
    """Of 16 particles n texts are drawn by weight, and their summed weight equals that of the particles."""
    lm, grammar = setting(1)

    class Boost(Potential):
        def complete(self, text: Prefix) -> float:
            return float(len(text.text))

    texts: Counter[str] = Counter()
    expected: Counter[str] = Counter()
    for seed in range(120):
        whole = sample(lm, [], grammar, n=16, seed=seed, potential=Boost(), max_tokens=6)
        some = sample(lm, [], grammar, n=2, seed=seed, potential=Boost(), max_tokens=6)
        assert len(some) == 2 and some.diagnostics.method == "smc"
        assert math.isclose(some.log_evidence, whole.log_evidence, abs_tol=1e-9)
        assert math.isclose(np.exp(some.log_weights).sum(), np.exp(whole.log_weights).sum(), rel_tol=1e-9)
        texts.update(one.text for one in some)
        for text, share in whole.posterior().items():
            expected[text] += 2 * share
    # systematic draws miss the expectation by at most one, so 120 / 4 texts at most
    for text, often in expected.items():
        assert abs(texts[text] - often) < 5 * math.sqrt(30), text


def test_a_language_that_does_not_fit_is_said_whatever_the_budget() -> None:
    lm = TableModel(1)
    for budget in ("mask", "reject"):
        with pytest.warns(RuntimeWarning, match="no text has weight: .*within 2 tokens; it takes"):
            found = sample(lm, [], choice(lm, ["abab"]), n=2, seed=0, max_tokens=2, budget=budget)
        assert len(found) == 0 and "within 2 tokens; it takes" in found.diagnostics.reasons[-1]


def test_auto_says_what_it_chose_and_why() -> None:
    lm, grammar = setting(1)
    found = sample(lm, [], grammar, n=5, seed=0, max_tokens=6)
    assert found.law == "exact" and found.diagnostics.method == "cars"
    assert "accepted" in found.diagnostics.reasons[0]

    class Boost(Potential):
        def complete(self, text: Prefix) -> float:
            return 1.0

    found = sample(lm, [], grammar, n=5, seed=0, potential=Boost(), max_tokens=6)
    assert found.diagnostics.method == "smc" and len(found) == 5 and "bounded" in found.diagnostics.reasons[0]
    dead = TableModel(1, zero=[((), 0), ((), 2)])
    found = sample(dead, [], choice(dead, ["a", "ab"]), n=5, seed=0)
    assert len(found) == 0 and "Z is 0" in found.diagnostics.reasons[0]
    never = sample(lm, [], grammar, n=3, seed=0, potential=lambda t: False, max_tokens=6)
    assert len(never) == 0 and never.log_evidence == -math.inf


def test_auto_predicts_what_a_short_pilot_does_not_show() -> None:
    """CARS accepts few trials at first, and more as it learns bounds. The weights of rejected trials predict
    the later acceptance, which `auto` uses."""
    lm = TableModel(1, sharp=1.0)
    texts = ["".join(t) + "bcb" for t in itertools.product("abc", repeat=3)]
    found = sample(lm, [], choice(lm, texts), n=20, seed=2, max_tokens=8)
    assert found.law == "exact" and len(found) == 20
    assert "by the weights" in found.diagnostics.reasons[0]


def test_auto_warns_where_the_language_has_next_to_no_probability() -> None:
    lm = TableModel(3, sharp=5.0)
    random = np.random.default_rng(0)
    texts = sorted({"".join(random.choice(list("abc"), 14)) for _ in range(300)})
    found = sample(lm, [], choice(lm, texts), n=4, seed=0, max_tokens=15, max_trials=50)
    assert found.law != "exact" and any("e^-" in reason for reason in found.diagnostics.reasons)


def test_support_outside_the_nucleus_is_reported() -> None:
    lm = TableModel(1)
    lm._table[()] = np.log(np.array([0.01, 0.02, 0.01, 0.95, 0.01], np.float32))
    found = sample(lm, [], choice(lm, ["a", "b"]), method="importance", n=4, seed=0, top_p=0.5)
    assert len(found) == 0 and found.diagnostics.killed == {"nucleus": 4}


@pytest.mark.parametrize("bad", [
    {"method": "magic"}, {"n": 0}, {"until_tv": 2.0}, {"temperature": 0}, {"top_k": 0}, {"top_p": 0.0},
    {"max_tokens": 0}, {"batch": 0}, {"seed": -1}, {"max_trials": 0, "method": "cars"}, {"trie_bytes": 0},
    {"method": "mcmc", "steps": -1}, {"method": "mcmc", "proposal": "x"}, {"check": 2.0},
])  # fmt: skip
def test_arguments_that_make_no_sense(bad: dict[str, Any]) -> None:
    lm, grammar = setting(0)
    with pytest.raises(ValueError):
        sample(lm, [], grammar, **bad)


@pytest.mark.parametrize("bad", [
    {"ess_threshold": 2}, {"block": 0}, {"moves": -1}, {"extra": 0}, {"lookahead": -1}, {"rewrite": 0},
])  # fmt: skip
def test_options_of_smc_that_make_no_sense(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        SmcOptions(**bad)


def test_a_grammar_of_another_vocabulary_is_refused() -> None:
    lm, _ = setting(0)
    other = TableModel(0, [b"x", b"y", b""], ends=(2,))
    with pytest.raises(sg.VocabularyError):
        sample(lm, [], choice(other, ["x"]))


def test_two_ends_that_sum_to_more_than_one_by_rounding_are_one() -> None:
    """Float32 rows sum to 1 only approximately. Even so a power of the summed probabilities is at most 1."""
    lm = TableModel(0, [b"a", b"b", b"", b""], ends=(2, 3))
    halves = np.log(np.array([1e-30, 1e-30, 0.45, 0.55])).astype(np.float32)
    assert np.logaddexp(np.float64(halves[2]), np.float64(halves[3])) > 0.0
    above = np.array([-50.0, -50.0, 1e-7, -50.0], np.float32)
    for row in (halves, above):
        expert = TableModel(1, [b"a", b"b", b"", b""], ends=(2, 3))
        expert.vector = lambda tokens, row=row: row  # type: ignore[method-assign, misc]
        for power in (0.5, 1.0, 8.0):
            found = sample(
                lm, [], choice(lm, ["", "a"]), method="cars", n=3, seed=0, max_tokens=3, budget="reject",
                potential=LanguageModelPotential(expert, [], power),
            )  # fmt: skip
            assert all(s.text == "" for s in found) and found.log_bracket is not None

    class Wrong(TableModel):
        def logprobs(self, contexts: Any) -> np.ndarray:
            return super().logprobs(contexts) + 1.0

    with pytest.raises(PotentialError, match="bounded=True"):
        sample(lm, [], choice(lm, ["", "a"]), n=3, seed=0, potential=LanguageModelPotential(Wrong(2), []))


@pytest.mark.parametrize("how", ["nan", "inf", "narrow"])
def test_a_model_that_gives_no_law_is_refused(how: str) -> None:
    class Broken(TableModel):
        def logprobs(self, contexts: Any) -> np.ndarray:
            rows = super().logprobs(contexts)
            if how == "narrow":
                return rows[:, :-1]
            rows[:, 1] = float(how)
            return rows

    lm = Broken(0)
    with pytest.raises(LanguageModelError):
        sample(lm, [], choice(lm, TEXTS), method="importance", n=2, seed=0)


def test_a_model_may_keep_its_rows() -> None:
    """The sampler does not write into a model's rows, although models should return new arrays."""

    class Frugal(TableModel):
        def logprobs(self, contexts: Any) -> np.ndarray:
            self.asked += [tuple(c.tokens) for c in contexts]
            return self.vector(tuple(contexts[0].tokens))[None]

    lm, plain = Frugal(0), TableModel(0)
    how: dict[str, Any] = {"method": "importance", "n": 20, "seed": 0, "max_tokens": 6, "batch": 1}
    found = sample(lm, [], choice(lm, TEXTS), **how)
    same = sample(plain, [], choice(plain, TEXTS), **how)
    assert [s.log_weight for s in found] == [s.log_weight for s in same]
    for tokens in lm.asked:
        assert np.array_equal(lm.vector(tokens), TableModel(0).vector(tokens))


def test_without_a_grammar_every_text_counts() -> None:
    lm = TableModel(0, [b"a", b"b", b""], ends=(2,))
    found = sample(lm, [], None, method="cars", n=30, seed=0, max_tokens=4)
    assert len(found) == 30 and "budget" in found.diagnostics.reasons[-1]
    exact = brute_force(lm, lambda t: True, 4)
    assert (found.log_bracket or (0, 0))[1] >= math.log(sum(exact.values())) - 1e-9


def test_smc_keeps_its_promises_on_more_particles() -> None:
    lm, grammar = setting(6)
    z = sum(brute_force(lm, {t.encode() for t in TEXTS}.__contains__, 6).values())
    for scheme in ("systematic", "stratified", "residual", "multinomial"):
        options = SmcOptions(ess_threshold=0.9, scheme=scheme)
        estimates = [
            math.exp(sample(lm, [], grammar, method="smc", n=16, seed=s, max_tokens=6, budget="reject",
                            smc_options=options).log_evidence)
            for s in range(60)
        ]  # fmt: skip
        assert np.mean(estimates) == pytest.approx(z, rel=0.15)
    found = sample(lm, [], grammar, method="smc", n=16, seed=0, max_tokens=6, smc_options=options)
    about = found.diagnostics
    assert len(about.ess) == len(about.mass_lost) and all(0 < e <= 16 + 1e-9 for e in about.ess)
    assert len(about.unique) == len(about.resampled) and all(1 <= u <= 16 for u in about.unique)


def test_async_is_the_same_and_takes_coroutines() -> None:
    lm, grammar = setting(2)

    async def short(text: str) -> bool:
        await asyncio.sleep(0)
        return len(text) < 3

    async def main() -> tuple[Any, Any]:
        rule = Predicate(short, at="token", monotone=True)
        first = sample_async(lm, [], grammar, method="smc", n=8, seed=1, potential=rule, max_tokens=6)
        second = sample_async(lm, [], grammar, method="cars", n=8, seed=1, max_tokens=6)
        return await asyncio.gather(first, second)

    a, b = asyncio.run(main())
    rule = Predicate(lambda t: len(t) < 3, at="token", monotone=True)
    same = sample(lm, [], grammar, method="smc", n=8, seed=1, potential=rule, max_tokens=6)
    assert [s.tokens for s in a] == [s.tokens for s in same]
    exact = sample(lm, [], grammar, method="cars", n=8, seed=1, max_tokens=6)
    assert [s.tokens for s in b] == [s.tokens for s in exact]


def test_a_cancelled_run_stops_before_its_next_forward() -> None:
    lm, grammar = setting(2)

    class Slow(TableModel):
        def logprobs(self, contexts: Any) -> Any:
            import time

            time.sleep(0.05)
            return super().logprobs(contexts)

    slow = Slow(2)

    async def main() -> int:
        task = asyncio.create_task(
            sample_async(slow, [], choice(slow, TEXTS), method="cars", n=10**6, max_trials=10**7, batch=1)
        )
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        asked = len(slow.asked)
        await asyncio.sleep(0.3)
        return len(slow.asked) - asked

    assert asyncio.run(main()) <= 1


def test_prepare_gives_the_walker_that_sample_uses() -> None:
    lm, grammar = setting(2)
    walker = prepare(lm, [], grammar, max_tokens=6)
    assert walker.target.max_tokens == 6 and walker.trie.key == walker.target.key()
