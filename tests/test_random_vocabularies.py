"""Random tiny vocabularies, models, languages and potentials: the brackets and texts of every method,
compared with full enumeration. A vocabulary has one to three end tokens at any ids, and several ids may have
equal bytes.

STRUCTGEN_RANDOM_VOCABULARIES=2000 python -m pytest tests/test_random_vocabularies.py -k bracket
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles import harness
from oracles.sampling_laws import (
    ASAP,
    IMPORTANCE,
    breaks,
    cars_is_exact,
    chain_is_invariant,
    one_walk,
    proper,
    transition_matrix,
)
from oracles.sampling_oracle import (
    DRAWING,
    TableModel,
    brute_force,
    every_outcome,
    random_language,
    target,
    trained,
)
from structgen.lm.mixing import Anchored, Contrasted
from structgen.sampling import Contrast, LanguageModelPotential, Reward, load_trie, save_trie, vector
from structgen.sampling.target import Target
from structgen.sampling.trie import Trie

KINDS = ("none", "contrast", "power", "reward")
TOKENS = 5


@dataclass
class Case:
    lm: TableModel
    second: TableModel
    texts: list[str]
    random: np.random.Generator


def case(seed: int, words: int = 3) -> Case:
    random = np.random.default_rng([seed, 99])
    spelled = [b"a", b"b", b"c", b"ab", b"bc", b"abc"]
    more = random.integers(0, len(spelled), 1 + random.integers(words))
    tokens = spelled[:3] + [spelled[int(i)] for i in more]
    tokens += [b""] * int(random.integers(1, 4))
    tokens = [tokens[i] for i in random.permutation(len(tokens))]
    ends = [i for i, text in enumerate(tokens) if not text]
    sharp = float(random.choice([0.5, 1.5, 4.0]))
    models = [TableModel(int(random.integers(1 << 30)), tokens, ends, sharp) for _ in range(2)]
    return Case(models[0], models[1], random_language(seed, size=6), random)


def merged(lm: TableModel, prefix: tuple[int, ...]) -> np.ndarray:
    """Returns a model's row, in which the first end token has the summed probability of all end tokens."""
    row, ends = lm.vector(prefix).astype(np.float64), lm.eos_token_ids
    row[ends[0]] = math.log(math.fsum(math.exp(row[end]) for end in ends))
    row[ends[1:]] = -np.inf
    return row


def entropy(row: np.ndarray) -> float:
    return -math.fsum(math.exp(x) * x for x in row if x > -np.inf)


def weighed(found: Case, kind: str) -> tuple[Any, dict[tuple[int, ...], float]]:
    """Returns a potential, and the law of texts under the potential."""
    lm, second, random = found.lm, found.second, found.random
    power, floor = float(random.choice([0.5, 1.0, 2.0])), float(random.choice([1e-3, 0.1]))
    least, most = [(0.0, math.inf), (0.0, 1.0), (1.0, 9.0)][int(random.integers(3))]
    potential: Any = {
        "none": lambda: None,
        "contrast": lambda: Contrast(second, [], power, floor=floor, entropy=(least, most)),
        "power": lambda: LanguageModelPotential(second, [], power),
        "reward": lambda: Reward(lambda text: text.count("a") - text.count("c"), power, most=3.0),
    }[kind]()

    def weight(tokens: tuple[int, ...]) -> float:
        if kind == "none":
            return 1.0
        if kind == "reward":
            text = lm.vocabulary.decode(list(tokens[:-1])).decode()
            return math.exp(power * (text.count("a") - text.count("c") - 3.0))
        total = 1.0
        for at, token in enumerate(tokens):
            row = merged(second, tokens[:at])
            if kind == "power":
                total *= math.exp(power * row[token])
            elif least <= entropy(row) <= most:
                total *= (floor / max(floor, math.exp(row[token]))) ** power
        return total

    plain = brute_force(lm, {text.encode() for text in found.texts}.__contains__, TOKENS)
    return potential, {tokens: p * weight(tokens) for tokens, p in plain.items()}


def bracketed(seed: int, kind: str) -> None:
    found = case(seed)
    potential, wanted = weighed(found, kind)
    z = math.log(math.fsum(wanted.values())) if wanted else -math.inf
    grammar = sg.Compiler(found.lm.vocabulary).choice(found.texts)
    for method in DRAWING:
        how: dict[str, Any] = {"seed": seed, "max_tokens": TOKENS, "budget": "reject", "potential": potential}
        drawn = sg.sample(found.lm, [], grammar, method=method, n=30, max_trials=200, **how)
        assert drawn.log_bracket is not None
        low, high = drawn.log_bracket
        assert low - 1e-12 <= z <= high + 1e-12, (seed, kind, method, found.lm.eos_token_ids)
        assert all(tuple(one.tokens) in wanted for one in drawn), method


@pytest.mark.parametrize("kind", KINDS)
def test_every_bracket_holds_log_z(kind: str) -> None:
    for seed in harness.seeds(24):
        bracketed(seed, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", harness.seeds(9))
def test_every_law_is_that_of_enumeration(kind: str, seed: int) -> None:
    found = case(seed)
    potential, wanted = weighed(found, kind)
    if not wanted or min(wanted.values()) < 1e-13 * max(wanted.values()):
        pytest.skip("no text fits, or one is too rare for sums of cumulated weights to hold it")
    law = target(found.lm, sg.Compiler(found.lm.vocabulary).choice(found.texts), potential=potential)
    for draws in (0, 3):
        trie = trained(law, draws, seed)
        proper(law, trie, IMPORTANCE, wanted)
        proper(law, trie, ASAP, wanted)
        cars_is_exact(law, trie, wanted)


@pytest.mark.parametrize("proposal", ["restart", "uniform", "priority"])
@pytest.mark.parametrize("seed", [1, 7, 16])
def test_chains_are_reversible_under_contrast(proposal: Any, seed: int) -> None:
    found = case(seed, words=1)
    potential, wanted = weighed(found, "contrast")
    law = target(found.lm, sg.Compiler(found.lm.vocabulary).choice(found.texts), potential=potential)
    chain_is_invariant(law, proposal, wanted)


def too_far(counts: dict[Any, float], wanted: dict[Any, float], n: int) -> bool:
    """Pearson's chi-square of n draws, six deviations above its mean. Rare texts share one cell."""
    total = sum(wanted.values())
    cells = [(counts.get(key, 0.0), n * p / total) for key, p in wanted.items()]
    common = [cell for cell in cells if cell[1] >= 10]
    rare = [cell for cell in cells if cell[1] < 10]
    seen, due = sum(cell[0] for cell in rare), sum(cell[1] for cell in rare)
    common += [(seen, due)] if due > 1 else []
    freedom = max(1, len(common) - 1)
    found = sum((seen - due) ** 2 / due for seen, due in common)
    return bool(found > freedom + 6 * math.sqrt(2 * freedom) + 10)


@pytest.mark.parametrize("method", ["mcmc", "cars"])
@pytest.mark.parametrize("kind", ["contrast", "none"])
def test_many_draws_are_as_frequent_as_enumeration_says(method: Any, kind: str) -> None:
    """Texts of CARS have the target's frequencies. The last texts of chains have the frequencies after
    equally many steps of the exact chain."""
    tried = noticed = 0
    for seed in harness.seeds(12):
        found = case(seed)
        potential, wanted = weighed(found, kind)
        grammar = sg.Compiler(found.lm.vocabulary).choice(found.texts)
        if not 3 <= len(wanted) <= 40:
            continue
        steps, n = 3, 1500
        if method == "mcmc":
            wanted = after_steps(target(found.lm, grammar, potential=potential), sorted(wanted), steps)
            if not wanted:
                continue
        drawn = sg.sample(
            found.lm, [], grammar, method=method, n=n, seed=1, max_tokens=TOKENS, budget="reject",
            potential=potential, steps=steps, max_trials=10**6, proposal="restart",
        )  # fmt: skip
        counts: dict[Any, float] = {}
        for one in drawn:
            counts[tuple(one.tokens)] = counts.get(tuple(one.tokens), 0) + 1
        assert len(drawn) == n and not too_far(counts, wanted, n), seed
        wrong = {key: p * (1.5 if at % 2 else 1.0) for at, (key, p) in enumerate(wanted.items())}
        noticed += too_far(counts, wrong, n)
        tried += 1
    assert tried >= harness.cases(4) and noticed >= harness.cases(3)


def after_steps(law: Target, states: list[tuple[int, ...]], steps: int) -> dict[tuple[int, ...], float]:
    """Returns the exact distribution of a chain's state after `steps` transitions, if a local walk draws its
    first state. Empty if a local walk may end without weight."""
    start: dict[tuple[int, ...], float] = dict.fromkeys(states, 0.0)
    for probability, (walk,) in every_outcome(one_walk(law, Trie(), IMPORTANCE)):
        if not walk.alive:
            return {}
        start[tuple(walk.tokens)] += probability
    moves = transition_matrix(law, "restart", states)
    ends = np.array([start[state] for state in states]) @ np.linalg.matrix_power(moves, steps)
    return dict(zip(states, ends.tolist(), strict=True))


def test_ends_that_an_entropy_counts_apart_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Contrast.weigh

    def apart(self: Contrast, rows: Any) -> Any:
        self._ends, ends = self._ends[:1], self._ends
        try:
            return honest(self, rows)
        finally:
            self._ends = ends

    monkeypatch.setattr(Contrast, "weigh", apart)
    breaks(lambda: [bracketed(seed, "contrast") for seed in range(24)])


def test_a_sum_of_ends_that_is_rounded_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Target._together
    monkeypatch.setattr(Target, "_together", staticmethod(lambda ends: float(np.float32(honest(ends)))))
    breaks(lambda: [bracketed(seed, "none") for seed in range(24)])


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_thin_vectors_know_all_ends(kept: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Thin vectors, which keep only the most probable tokens, and whole vectors give one law and equal
    entropies, also after saving and loading."""
    monkeypatch.setattr(vector, "TOP", kept)
    monkeypatch.setattr(vector, "THIN_FROM", 2)
    monkeypatch.setattr(vector, "THIN_TAIL", 1.0)
    seen = 0
    for seed in harness.seeds(10):
        found = case(seed)
        _, wanted = weighed(found, "none")
        law = target(found.lm, sg.Compiler(found.lm.vocabulary).choice(found.texts))
        if not wanted:
            continue
        law.thin = True
        for draws in (0, 4):
            trie = trained(law, draws, seed)
            seen += sum(node.row.thin and len(found.lm.eos_token_ids) > 1 for node in trie.nodes())
            proper(law, trie, IMPORTANCE, wanted)
            cars_is_exact(law, trie, wanted)
            if draws:
                trie.key = "x"
                save_trie(trie, tmp_path / "t")
                again = load_trie(tmp_path / "t")
                assert again.bracket == trie.bracket
                for mine, theirs in zip(trie.nodes(), again.nodes(), strict=True):
                    assert mine.row.raw.dtype == theirs.row.raw.dtype
                    assert np.array_equal(mine.row.raw, theirs.row.raw)
                    whole = law.expand([_at(trie, mine, law)], thin=False)[0]
                    assert mine.row.entropy == pytest.approx(whole.entropy, abs=1e-9)
                    assert mine.row.log_mass == pytest.approx(whole.log_mass, abs=1e-12)
                    assert dict(mine.row.lost) == pytest.approx(dict(whole.lost), abs=1e-9)
    assert seen > harness.cases(5)


def _at(trie: Trie, node: Any, law: Target) -> Any:
    from structgen.sampling.chance import Source
    from structgen.sampling.walk import Walk

    walk = Walk(trie.root, Source(np.random.default_rng(0)))
    walk.tokens = trie.tokens(node)
    return walk


def rows(lm: Any, prefix: tuple[int, ...]) -> np.ndarray:
    context = lm.start([])
    for token in prefix:
        context = context.extend(token)
    return np.asarray(lm.logprobs([context])[0], np.float64)


def test_mixed_models_take_several_ends_for_one() -> None:
    """A mixed model treats several end tokens as one: a table that divides the end's probability among
    several ids gives the same law of texts."""
    random = np.random.default_rng(3)
    for seed in range(8):
        one = [TableModel(seed + 10 * i, [b"a", b"b", b"c", b""], (3,)) for i in (0, 1)]
        many = [TableModel(0, [b"a", b"b", b"c", b"", b""], (3, 4)) for _ in (0, 1)]
        for left, right in zip(one, many, strict=True):
            for prefix in ((), (0,), (0, 1)):
                share = float(random.uniform(0.05, 0.95))
                row = left.vector(prefix)
                parts = [row[3] + math.log(share), row[3] + math.log(1 - share)]
                right._table[prefix] = np.concatenate([row[:3], parts]).astype(np.float32)
        for make in (
            lambda p, q: Contrasted(p, q, 0.7, plausible=0.2, above=1.0),
            lambda p, q: Contrasted(p, q, 1.0, plausible=0.5),
            lambda p, q: Anchored(p, q, 0.3, 3),
        ):
            for prefix in ((), (0,), (0, 1)):
                plain, apart = rows(make(*one), prefix), rows(make(*many), prefix)
                apart[3] = np.logaddexp(apart[3], apart[4])
                assert apart[:4] == pytest.approx(plain, abs=1e-5)
