"""Contrast, rewards and anchored steps: laws compared with enumeration, and bounds where the docs state
them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles.sampling_laws import ASAP, IMPORTANCE, cars_is_exact, proper
from oracles.sampling_oracle import END, TableModel, brute_force, choice, target, trained
from structgen.lm.base import LanguageModel, LanguageModelError
from structgen.lm.mixing import Anchored, Contrasted, mixed_within
from structgen.sampling import Contrast, Reward, check_laws

TEXTS = ["a", "ab", "b", "ca", "cc"]


def entropy(row: np.ndarray) -> float:
    row = row.astype(float)
    return float(-(np.exp(row) * row).sum())


def wanted(lm: TableModel, other: TableModel, power: float, floor: float, between: Any, bounded: bool) -> Any:
    """Returns the law of `Contrast`, computed token by token."""
    found = {}
    for tokens, p in brute_force(lm, {t.encode() for t in TEXTS}.__contains__, 5).items():
        weight = 1.0
        for at, token in enumerate(tokens):
            row = other.vector(tokens[:at])
            if between[0] <= entropy(row) <= between[1]:
                weight *= max(math.exp(row[token]), floor) ** -power * (floor**power if bounded else 1.0)
        found[tokens] = p * weight
    return found


@pytest.mark.parametrize("between", [(0.0, math.inf), (0.0, 0.9), (0.9, 5.0)])
@pytest.mark.parametrize("floor", [1e-3, 0.2])
def test_the_law_of_contrast_is_exact(floor: float, between: tuple[float, float]) -> None:
    lm, other = TableModel(41), TableModel(42)
    shape = Contrast(other, [], 0.7, floor=floor, entropy=between)
    law = target(lm, choice(lm, TEXTS), potential=shape)
    law_of = wanted(lm, other, 0.7, floor, between, True)
    for draws in (0, 4):
        trie = trained(law, draws)
        proper(law, trie, IMPORTANCE, law_of)
        proper(law, trie, ASAP, law_of)
        cars_is_exact(law, trie, law_of)
    free = Contrast(other, [], 0.7, floor=floor, entropy=between, bounded=False)
    law = target(lm, choice(lm, TEXTS), potential=free)
    assert not law.bounded
    proper(law, trained(law, 0), IMPORTANCE, wanted(lm, other, 0.7, floor, between, False))


def test_the_normaliser_of_a_step_is_bounded() -> None:
    lm, other = TableModel(3), TableModel(4)
    seen = set()
    for bounded, floor in itertools.product((True, False), (0.01, 0.3)):
        shape = Contrast(other, [], 0.5, floor=floor, bounded=bounded)
        found = sg.sample(
            lm, [], choice(lm, TEXTS), method="importance", n=60, seed=0, max_tokens=6, potential=shape
        )
        plain = sg.sample(lm, [], choice(lm, TEXTS), method="importance", n=60, seed=0, max_tokens=6)
        masses = {tuple(found.trie.tokens(node)): node.row.log_mass for node in found.trie.nodes()}
        least, most = (0.5 * math.log(floor), 0.0) if bounded else (0.0, -0.5 * math.log(floor))
        for node in plain.trie.nodes():
            tokens = tuple(plain.trie.tokens(node))
            if tokens in masses:
                change = masses[tokens] - node.row.log_mass
                assert least - 1e-9 <= change <= most + 1e-9
                seen.add(round(change, 3))
    assert len(seen) > 5


def test_laws_of_the_potentials_and_their_mistakes() -> None:
    lm = TableModel(8)
    words = [[0, 1], [2, 3], [], [3, 0, 1]]
    for bounded in (True, False):
        check_laws(Contrast(TableModel(9), [], bounded=bounded), lm.vocabulary, words, tolerance=1e-5)
    check_laws(Contrast(TableModel(9), [], entropy=(0.5, 1.0)), lm.vocabulary, words, tolerance=1e-5)
    check_laws(Reward(len), lm.vocabulary, words)
    for how in ({"floor": 0.0}, {"floor": 1.0}, {"entropy": (2.0, 1.0)}, {"power": -1.0}):
        with pytest.raises(ValueError):
            Contrast(TableModel(9), [], **how)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="weight must be above 0"):
        Reward(len, 0.0)


def test_a_reward_tilts_whole_texts() -> None:
    lm = TableModel(5)
    plain = brute_force(lm, {t.encode() for t in TEXTS}.__contains__, 5)

    def reward(text: str) -> float:
        return text.count("a") - 0.5 * text.count("c")

    law_of = {
        s: p * math.exp(1.3 * (reward(lm.vocabulary.decode(list(s[:-1])).decode()) - 1))
        for s, p in plain.items()
    }
    law = target(lm, choice(lm, TEXTS), potential=Reward(reward, 1.3, most=1.0))
    for draws in (0, 3):
        trie = trained(law, draws)
        proper(law, trie, IMPORTANCE, law_of)
        cars_is_exact(law, trie, law_of)
    found = sg.sample(
        lm, [], choice(lm, TEXTS), method="smc", n=4000, seed=1, max_tokens=5, potential=Reward(reward, 1.3)
    )
    total = sum(law_of.values())
    assert found.log_evidence == pytest.approx(math.log(total) + 1.3, abs=0.1)
    for s, p in law_of.items():
        text = lm.vocabulary.decode(list(s[:-1])).decode()
        mine = sum(q for t, q in law_of.items() if lm.vocabulary.decode(list(t[:-1])).decode() == text)
        assert found.posterior().get(text, 0.0) == pytest.approx(mine / total, abs=0.05), (text, p)


# ---- laws of single steps ----


def rows(lm: LanguageModel, prefixes: list[tuple[int, ...]]) -> np.ndarray:
    found = []
    for prefix in prefixes:
        context: Any = lm.start([])
        for token in prefix:
            context = context.extend(token)
        found.append(lm.logprobs([context])[0])
    return np.array(found, np.float64)


PREFIXES = [p for n in range(4) for p in itertools.product(range(4), repeat=n)]


def test_contrasted_rows_are_those_of_the_papers() -> None:
    p, q = TableModel(1), TableModel(2)
    for power, plausible, above in ((0.5, 0.1, 0.0), (1.0, 0.3, 0.0), (2.0, 0.01, 1.1)):
        mixed = Contrasted(p, q, power, plausible=plausible, above=above)
        assert isinstance(mixed, LanguageModel)
        for prefix, row in zip(PREFIXES, rows(mixed, PREFIXES), strict=True):
            left, right = p.vector(prefix).astype(float), q.vector(prefix).astype(float)
            assert np.exp(row).sum() == pytest.approx(1, abs=1e-5)
            if entropy(left) < above:
                assert row == pytest.approx(left, abs=1e-5)
                continue
            fair = np.flatnonzero(left >= left.max() + math.log(plausible))
            scores = (1 + power) * left[fair] - power * right[fair]
            assert row[fair] - row[fair[0]] == pytest.approx(scores - scores[0], abs=1e-4)
            others = [i for i in range(5) if i not in fair]
            assert all(row[i] < row[fair].min() + 1e-6 and row[i] > -np.inf for i in others)
    assert rows(Contrasted(p, q, 0.0), PREFIXES) == pytest.approx(rows(p, PREFIXES), abs=1e-5)


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    return float((np.exp(p) * (p - q)).sum())


@pytest.mark.parametrize("budget", [0.0, 0.05, 0.4, 2.0, 1e6])
def test_anchored_texts_stay_within_their_budget(budget: float) -> None:
    """For every text of four tokens, the test bounds the sum of the divergences of its steps, and the
    divergence between the laws of whole texts."""
    p, r, steps = TableModel(1), TableModel(2), 3
    mixed = Anchored(p, r, budget, steps)
    table = dict(zip(PREFIXES, rows(mixed, PREFIXES), strict=True))
    whole, most = 0.0, 0.0
    for tokens in itertools.product(range(5), repeat=4):
        logp = logr = spent = 0.0
        for at, token in enumerate(tokens):
            row, other = table[tokens[:at]], r.vector(tokens[:at]).astype(float)
            spent += divergence(row, other)
            assert spent <= budget * min(1.0, (at + 1) / steps) + 1e-5
            logp, logr = logp + row[token], logr + other[token]
            if token == END:
                break
        else:
            at = 4
        most = max(most, spent)
        # A text that ends early stands for all its continuations.
        if END not in tokens[:-1] or tokens[tokens.index(END) + 1 :].count(0) == 3 - tokens.index(END):
            whole += math.exp(logp) * (logp - logr)
    assert whole <= budget + 1e-4
    if budget == 0.0:
        assert rows(mixed, PREFIXES) == pytest.approx(rows(r, PREFIXES), abs=1e-5)
    elif budget == 1e6:
        assert rows(mixed, PREFIXES) == pytest.approx(rows(p, PREFIXES), abs=1e-5)
    else:
        assert most > 0.95 * min(budget, 0.4)  # the texts use most of the budget


def test_the_mixture_is_the_nearest_to_the_model() -> None:
    """Among distributions within the budget none is nearer to p than the mixture; the test tries random
    ones."""
    random = np.random.default_rng(0)
    for _ in range(20):
        p, r, other = (np.log(random.dirichlet(np.ones(5))) for _ in range(3))
        row, spent = mixed_within(p, r, 0.2)
        assert spent <= 0.2
        assert spent == pytest.approx(min(0.2, divergence(p, r)), abs=1e-6)
        for share in np.linspace(0, 1, 21):
            rival = np.log(share * np.exp(row) + (1 - share) * np.exp(other))
            if divergence(rival, r) <= 0.2:
                assert divergence(rival, p) >= divergence(row, p) - 1e-6


def test_mixed_models_are_models() -> None:
    p, r = TableModel(1), TableModel(2)
    mixed = Anchored(p, r, 0.3, 4)
    context = mixed.start([])
    deep = context.extend(0).extend(1)
    assert context.extend(0) is context.extend(0) and deep.tokens == [0, 1] and len(deep) == 2
    # Prefixes give equal rows in any order and any grouping.
    fresh = Anchored(TableModel(1), TableModel(2), 0.3, 4)
    start = fresh.start([])
    both = fresh.logprobs([start.extend(0), start])
    assert np.array_equal(mixed.logprobs([deep]), fresh.logprobs([start.extend(0).extend(1)]))
    assert np.array_equal(both[::-1], mixed.logprobs([context, context.extend(0)]))
    result = sg.generate(mixed, [], choice=TEXTS, seed=1, temperature=1.0)
    assert result.text in TEXTS
    texts = sg.search(mixed, [], choice(p, TEXTS), n=20, max_tokens=5)
    table = dict(zip(PREFIXES, rows(mixed, PREFIXES), strict=True))
    for one in texts:
        logp = sum(table[tuple(one.tokens[:at])][token] for at, token in enumerate(one.tokens))
        assert one.logprob == pytest.approx(logp, abs=1e-5)
    with pytest.raises(LanguageModelError, match="different tokens or ends"):
        Anchored(p, TableModel(1, [b"x", b""], ends=(1,)), 1.0)
    for wrong in (lambda: Anchored(p, r, -1.0), lambda: Contrasted(p, r, -1.0)):
        with pytest.raises(ValueError):
            wrong()
