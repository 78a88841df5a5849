"""Further laws of the samplers, summed over every outcome: compiled grammars, sharpened targets, single
estimates, and moves under critics. Each planted bug must break the law that covers it."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles.sampling_laws import (
    ASAP,
    EXACT,
    IMPORTANCE,
    breaks,
    cars_is_exact,
    case,
    chain_is_invariant,
    grammar_case,
    proper,
    small,
    smc_is_proper,
)
from oracles.sampling_oracle import (
    DRAWING,
    STOPPING,
    Table,
    TableModel,
    brute_force,
    choice,
    every_outcome,
    target,
    trained,
)
from structgen.sampling import Canonical, LanguageModelPotential, Predicate, mcmc, sample, smc
from structgen.sampling.awrs import estimate
from structgen.sampling.chance import Seeds
from structgen.sampling.logspace import NEVER
from structgen.sampling.resampling import SCHEMES, resample
from structgen.sampling.target import Law, Target
from structgen.sampling.trie import Trie
from structgen.sampling.walk import Mode, Walk, Walker


@pytest.mark.parametrize("seed", range(8))
def test_random_grammars_compiled_as_grammars(seed: int) -> None:
    """The grammars have recursion, empty rules and ambiguity. The language is infinite, and the limit of
    tokens cuts it."""
    law, wanted = grammar_case(seed)
    for draws in (0, 3):
        trie = trained(law, draws, seed)
        if not wanted:
            continue
        proper(law, trie, IMPORTANCE, wanted)
        proper(law, trie, ASAP, wanted)
        cars_is_exact(law, trie, wanted)


def test_a_power_of_the_model_is_a_target_like_any_other() -> None:
    lm = TableModel(13)
    texts = ["a", "ab", "b", "ca", "cc"]
    law = target(lm, choice(lm, texts), potential=LanguageModelPotential(lm, [], 1.5))
    plain = brute_force(lm, {t.encode() for t in texts}.__contains__, 5)
    wanted = {s: p * math.exp(1.5 * raw(lm, s)) for s, p in plain.items()}
    for draws in (0, 3):
        proper(law, trained(law, draws), IMPORTANCE, wanted)
        cars_is_exact(law, trained(law, draws), wanted)


def raw(lm: TableModel, tokens: tuple[int, ...]) -> float:
    return sum(float(lm.vector(tokens[:i])[t]) for i, t in enumerate(tokens))


# One estimate of AWRS.


@pytest.mark.parametrize("extra", [1, 2, 3, 6])
@pytest.mark.parametrize("seed", range(4))
def test_an_estimate_has_the_masked_mass_for_its_mean_whatever_token_was_drawn(extra: int, seed: int) -> None:
    """E[w | token] = Z for every token that is drawn, where w is the estimate and Z the probability of all
    allowed tokens. If every token is tested, w = Z."""
    letters = [b"a", b"b", b"c", b"d", b""]
    lm = TableModel(seed, letters, ends=(4,))
    allowed = {i for i in range(4) if (seed * 7 + 3) >> i & 1} | {seed}
    rule = Predicate(lambda t: not t or "abcd".index(t[0]) in allowed, at="token", monotone=True)
    law = target(lm, None, potential=rule, max_tokens=3)
    p = np.exp(lm.vector(()).astype(np.float64))
    p /= p.sum()
    mass = sum(p[i] for i in (*allowed, 4))
    first: dict[int, float] = defaultdict(float)
    weighted: dict[int, float] = defaultdict(float)
    values = set()

    def run(chance: Any) -> tuple[int, float]:
        walker = Walker(law, Trie(), 1)
        walk = walker.start(chance)
        walker.expand([walk])
        found = estimate(walker, walk, *walk.node.proposal(False), extra)
        assert found is not None
        return found

    for probability, (slot, log_mass) in every_outcome(run):
        first[slot] += probability
        weighted[slot] += probability * math.exp(log_mass)
        values.add(round(math.exp(log_mass), 9))
    for slot, q in first.items():
        assert q == pytest.approx(p[slot] / mass, abs=EXACT)
        assert weighted[slot] / q == pytest.approx(mass, abs=EXACT)
    if extra == 6:
        assert values == {round(mass, 9)}
    elif extra == 1:
        assert len(values) > 1


# Populations.


@pytest.mark.parametrize(("n", "options"), [
    (2, smc.SmcOptions(ess_threshold=1.0, moves=1, rewrite=1, block=2)),
    (1, smc.SmcOptions(ess_threshold=0.5, moves=1, rewrite=2)),
])  # fmt: skip
def test_moves_know_what_critics_said(n: int, options: smc.SmcOptions) -> None:
    lm = TableModel(5, [b"a", b"b", b""], ends=(2,), sharp=1.0)
    texts = ["a", "ab", "ba"]
    critic = Table({b"a": -0.7, b"ba": 0.9}, {b"a": 0.6, b"b": -0.4})
    law = target(lm, choice(lm, texts), max_tokens=3, potential=critic)
    weigh = lambda t: math.exp(critic._complete.get(t, 0.0))  # noqa: E731
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 3, weigh)
    smc_is_proper(law, Trie(), options, wanted, n)


def test_a_critic_may_end_texts_early() -> None:
    """A critic gives a prefix the weight 0 (-inf as a logarithm). The particles of the prefix end, and the
    other particles keep their weights."""
    lm, texts, grammar = small(7)
    critic = Table({b"bba": -math.inf, b"a": -0.3}, {b"b": -math.inf, b"bb": -math.inf})
    law = target(lm, grammar, max_tokens=4, potential=critic)
    weigh = lambda t: math.exp(critic._complete.get(t, 0.0))  # noqa: E731
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 4, weigh)
    assert 0 < len(wanted) < len(brute_force(lm, {t.encode() for t in texts}.__contains__, 4))
    smc_is_proper(law, Trie(), smc.SmcOptions(ess_threshold=1.0), wanted)
    everything = Table({t.encode(): -math.inf for t in texts}, {b"a": -math.inf, b"b": -math.inf})
    out = smc.draw(Walker(target(lm, grammar, max_tokens=4, potential=everything)), Seeds(0), 4)
    assert not out.walks and out.log_evidence == NEVER and out.stopped


def test_canonical_spellings_alone() -> None:
    lm = TableModel(3)
    texts = ["ab", "abc", "cab", "b"]
    law = target(lm, choice(lm, texts), potential=Canonical(lm.vocabulary), max_tokens=5)
    every = brute_force(lm, {t.encode() for t in texts}.__contains__, 5)
    wanted = {
        s: p for s, p in every.items() if list(s[:-1]) == lm.vocabulary.encode(lm.vocabulary.decode(s[:-1]))
    }
    assert len(wanted) == len(texts) < len(every)
    for draws in (0, 3):
        proper(law, trained(law, draws), IMPORTANCE, wanted)
        cars_is_exact(law, trained(law, draws), wanted)


# The target that a result states.


def test_the_target_is_recorded_and_until_tv_is_obeyed() -> None:
    lm = TableModel(4, sharp=0.7)
    grammar = choice(lm, ["a", "ab", "abc", "b"])
    rule = Predicate(lambda t: t != "b")
    found = sample(
        lm, [], grammar, n=5000, seed=0, temperature=1.2, top_k=4, max_tokens=6, until_tv=0.05, potential=rule
    )
    assert found.diagnostics.target == {
        "temperature": 1.2, "top_k": 4, "top_p": None, "max_tokens": 6, "budget": "mask",
        "potentials": ["Predicate"],
    }  # fmt: skip
    assert len(found) < 5000 and "0.05" in found.diagnostics.stopped
    assert found.acceptance is not None and found.acceptance >= 0.95
    for method in sorted(set(DRAWING) - set(STOPPING)):
        with pytest.raises(ValueError, match="until_tv"):
            sample(lm, [], grammar, method=method, until_tv=0.05)  # type: ignore[arg-type]


# Planted bugs.


def test_a_temperature_after_the_mask_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: the temperature is applied after the mask, as transformers' warpers do, which changes the
    target and Z."""
    lm = TableModel(11)
    texts = ["", "a", "ab", "abc", "ca"]
    law = target(lm, choice(lm, texts), temperature=0.5)
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 5, temperature=0.5)
    proper(law, Trie(), IMPORTANCE, wanted)
    honest = Target._vector

    def late(self: Target, cursor: Any, row: Any, shift: float, mask: Any) -> Any:
        plain = self.lm.logprobs([cursor.context])[0]
        found = honest(self, cursor, plain.copy(), float(np.logaddexp.reduce(plain)), mask)
        return type(found)(found.ids, found.raw / np.float32(0.5), found.shift)

    monkeypatch.setattr(Target, "_vector", late)
    breaks(lambda: proper(law, Trie(), IMPORTANCE, wanted))


def test_ends_counted_apart_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = TableModel(3, [b"a", b"b", b"", b""], ends=(2, 3))
    law = target(lm, choice(lm, ["a", "ba", "b"]))
    wanted = brute_force(lm, {b"a", b"ba", b"b"}.__contains__, 5)
    proper(law, Trie(), IMPORTANCE, wanted)

    monkeypatch.setattr(Target, "_together", staticmethod(lambda ends: float(ends[0])))
    breaks(lambda: proper(law, Trie(), IMPORTANCE, wanted))


def test_a_text_that_ran_out_of_room_and_is_kept_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: a text that is cut off at the limit counts as a text if the grammar accepts the cut text."""
    lm = TableModel(0)
    texts = ["a", "ab", "abc", "abca"]
    law = target(lm, choice(lm, texts), max_tokens=3)
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 3)
    proper(law, Trie(), IMPORTANCE, wanted)
    honest = Walker.step

    def truncating(self: Walker, walk: Walk, mode: Mode, ahead: bool = False) -> None:
        if len(walk.tokens) == 2:  # only the end token has room: the bug reports an end without its cost
            walk.tokens.append(self.target.end)
            walk.ended = True
            return
        honest(self, walk, mode, ahead)

    monkeypatch.setattr(Walker, "step", truncating)
    breaks(lambda: proper(law, Trie(), IMPORTANCE, wanted))


def test_a_fresh_vector_for_a_known_prefix_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: draws come from one vector and weights from another. Frozen vectors prevent it."""
    law, wanted = case(0)
    trie = trained(law, 2)
    proper(law, trie, IMPORTANCE, wanted)
    honest = Walker.take

    def other(self: Walker, walk: Walk, slot: int, total: float, bounds: bool) -> None:
        honest(self, walk, slot, total + (0.02 if len(walk.tokens) == 0 else 0.0), bounds)

    monkeypatch.setattr(Walker, "take", other)
    breaks(lambda: proper(law, trie, IMPORTANCE, wanted))


def test_a_twist_that_is_not_taken_back_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    lm, texts, grammar = small(7)
    critic = Table({b"ab": 0.9}, {b"a": 1.1, b"b": -2.0, b"bb": 0.3})
    law = target(lm, grammar, max_tokens=4, potential=critic)
    weigh = lambda t: math.exp(critic._complete.get(t, 0.0))  # noqa: E731
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 4, weigh)
    options = smc.SmcOptions(ess_threshold=1.0)
    smc_is_proper(law, Trie(), options, wanted)
    honest = Walker.judge

    def keeps(self: Walker, walk: Walk, mode: Mode) -> None:
        walk.twist, kept = 0.0, walk.twist
        honest(self, walk, mode)
        if not walk.ended:
            walk.twist = kept

    monkeypatch.setattr(Walker, "judge", keeps)
    breaks(lambda: smc_is_proper(law, Trie(), options, wanted))


@pytest.mark.parametrize("bug", ["half a grid", "no remainder"])
def test_wrong_resampling_is_caught(monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    weights = np.array([0.61, 0.0, 0.38, 0.01])

    def half(w: np.ndarray, chance: Any) -> list[int]:
        sums = np.cumsum(w)
        u = chance.uniform(lambda: np.unique(np.mod(sums[:-1] * len(w), 1.0))) / 2
        return [int(i) for i in np.searchsorted(sums, (np.arange(len(w)) + u) / len(w), side="right")]

    def floored(w: np.ndarray, chance: Any) -> list[int]:
        sure = np.floor(w * len(w)).astype(int)
        found = [int(i) for i in np.repeat(np.arange(len(w)), sure)]
        return found + [int(np.argmax(w))] * (len(w) - len(found))

    def unbiased(scheme: Any) -> None:
        expected = np.zeros(len(weights))
        for probability, found in every_outcome(lambda c: resample(weights, scheme, c)):
            expected += probability * np.bincount(found, minlength=len(weights))
        np.testing.assert_allclose(expected, weights * len(weights), atol=EXACT)

    name = "systematic" if bug == "half a grid" else "residual"
    unbiased(name)
    monkeypatch.setitem(SCHEMES, name, half if bug == "half a grid" else floored)
    breaks(lambda: unbiased(name))


@pytest.mark.parametrize("bug", ["not normalised", "zero at the start"])
def test_wrong_proposals_of_chains_are_caught(monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    """The law from which a chain draws the place of its cut depends on the whole remaining text. The cut may
    be at the start. Each planted bug breaks one of these facts."""
    lm = TableModel(0, sharp=1.0)
    texts = ["a", "ab", "abc", "b", "ca"]
    law = target(lm, choice(lm, texts))
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 5)
    chain_is_invariant(law, "priority", wanted)
    if bug == "not normalised":

        def entropies(x: Walk, y: Walk, proposal: Any) -> float:
            shared = 0
            while shared < min(len(x.tokens), len(y.tokens)) and x.tokens[shared] == y.tokens[shared]:
                shared += 1
            cuts = range(min(shared, len(x.tokens) - 1) + 1)
            return float(np.logaddexp.reduce([x.path[i].row.entropy + mcmc._log_draw(y, i) for i in cuts]))

        monkeypatch.setattr(mcmc, "_log_q", entropies)
    else:
        honest = mcmc.positions

        def never_whole(state: Walk, proposal: Any) -> np.ndarray:
            logs = honest(state, proposal).copy()
            if len(logs) > 1:
                logs[0] = NEVER
                logs -= np.logaddexp.reduce(logs)
            return logs

        monkeypatch.setattr(mcmc, "positions", never_whole)
    breaks(lambda: chain_is_invariant(law, "priority", wanted))


def test_the_law_of_a_task_is_the_brute_force_law() -> None:
    """oracles/exact.py agrees with enumeration; the benchmark's distances depend on oracles/exact.py."""
    from oracles.exact import Exact, Stacks
    from oracles.tasks import Ngram, bounded, rules_of

    text = 'root ::= "a" Rest\nRest ::= "" | "b" | "(" Rest "," Rest ")" | "cb"\n'
    tokens = [b"a", b"b", b"(", b")", b",", b"cb", b"c", b"(b", b",)", b""]
    vocabulary = sg.Vocabulary.from_bytes(tokens, eos_token_ids=[9])
    random = np.random.default_rng(0)
    lm = Ngram(vocabulary, [[int(t) for t in random.integers(0, 10, 12)] for _ in range(6)], 3)
    rows = functools.cache(lambda state: lm.row(state).astype(np.float32).astype(np.float64))
    norm = functools.cache(lambda state: rows(state) - np.logaddexp.reduce(rows(state)))
    law = Exact(Stacks(rules_of(text), 1), norm, lm.step, lm.state(()), tokens, [9])
    grammar = sg.Compiler(vocabulary).regex(bounded(text, 1))
    import re

    pattern = re.compile(bounded(text, 1).encode())
    found: dict[tuple[int, ...], float] = {}

    def visit(taken: tuple[int, ...], log_p: float) -> None:
        data = b"".join(tokens[t] for t in taken)
        row = norm(lm.state(taken))
        if pattern.fullmatch(data):
            found[(*taken, 9)] = log_p + float(row[9])
        matcher = grammar.matcher()
        assert matcher.accept_tokens(list(taken))
        for token in range(9):
            if matcher.fork().accept_token(token):
                visit((*taken, token), log_p + float(row[token]))

    visit((), 0.0)
    assert len(found) > 20
    assert law.log_z == pytest.approx(np.logaddexp.reduce(list(found.values())), abs=1e-12)
    draws = [law.draw(np.random.default_rng(i)) for i in range(3000)]
    for s, log_p in found.items():
        share = math.exp(log_p - law.log_z)
        assert draws.count(s) / 3000 == pytest.approx(share, abs=5 * math.sqrt(share / 3000) + 1e-3)
    assert set(draws) <= found.keys()
    assert Law().temperature == 1.0
