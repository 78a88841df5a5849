"""The laws of the samplers as checks: E[w 1{s}] = P(s), exact acceptance, proper weights, detailed balance.

Each check takes a sampler and a case, sums over every outcome of the random decisions, and raises if a sum is
wrong. Time: one run per outcome; tens of milliseconds per case.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles.sampling_oracle import (
    TableModel,
    brute_force,
    choice,
    every_outcome,
    random_cfg_language,
    random_language,
    random_rules,
    recognises,
    target,
)
from structgen.sampling import cars, mcmc, smc
from structgen.sampling.chance import Seeds
from structgen.sampling.drafting import drafts_of
from structgen.sampling.trie import Trie
from structgen.sampling.walk import Mode, Walk, Walker

EXACT = 1e-12


IMPORTANCE = Mode()


ASAP = Mode(bounds=True, learns=True)


def case(seed: int, sharp: float = 1.5, **how: Any) -> tuple[Any, dict[tuple[int, ...], float]]:
    """Returns a random model and language: (target, P(s) 1[s in L])."""
    lm = TableModel(seed, sharp=sharp)
    texts = random_cfg_language(seed, 3) if seed % 2 else random_language(seed)
    found = target(lm, choice(lm, texts), **how)
    inside = {t.encode() for t in texts}
    return found, brute_force(lm, inside.__contains__, found.max_tokens)


def grammar_case(seed: int) -> tuple[Any, dict[tuple[int, ...], float]]:
    """`case` for a random context-free grammar, compiled as a grammar: recursion, empty rules, ambiguity. The
    language is infinite, and the limit of tokens cuts it."""
    rules, lm = random_rules(seed), TableModel(seed)
    lines = [f"{name} ::= " + " | ".join(_spelled(body) for body in bodies) for name, bodies in rules.items()]
    text = "\n".join(lines).replace("S ::=", "root ::=", 1).replace(" S", " root")
    law = target(lm, sg.Compiler(lm.vocabulary).gbnf(text), max_tokens=4)
    return law, brute_force(lm, lambda text: recognises(rules, text.decode()), 4)


def _spelled(body: str) -> str:
    return " ".join(c if c in "ST" else f'"{c}"' for c in body) or '""'


def weighted_sums(outcomes: Any) -> dict[tuple[int, ...], float]:
    """E[w 1{s}] for each text s, from (probability, walks)."""
    sums: dict[tuple[int, ...], float] = defaultdict(float)
    for probability, walks in outcomes:
        for walk in walks:
            if walk.alive:
                sums[tuple(walk.tokens)] += probability * math.exp(walk.log_weight)
    return dict(sums)


def assert_equal(found: dict[Any, float], wanted: dict[Any, float], tolerance: float = EXACT) -> None:
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        assert found[key] == pytest.approx(value, abs=tolerance), key


def one_walk(law: Any, trie: Trie, mode: Mode, guess: Any = None) -> Any:
    def run(chance: Any) -> list[Walk]:
        walker = Walker(law, copy.deepcopy(trie), 1)
        walker.drafts = drafts_of(guess, law)
        walk = walker.start(chance, mode)
        walker.run([walk], mode)
        return [walk]

    return run


def proper(law: Any, trie: Trie, mode: Mode, wanted: dict[tuple[int, ...], float]) -> None:
    assert_equal(weighted_sums(every_outcome(one_walk(law, trie, mode))), wanted)


def cars_is_exact(law: Any, trie: Trie, wanted: dict[tuple[int, ...], float], guess: Any = None) -> None:
    """A trial accepts s with the probability P(s) / upper(root), for every s. So accepted texts are exact,
    and the acceptance rate is Z / upper(root)."""
    found: dict[tuple[int, ...], float] = defaultdict(float)
    for probability, (walk,) in every_outcome(one_walk(law, trie, cars.MODE, guess)):
        if walk.alive:
            found[tuple(walk.tokens)] += probability
    bound = math.exp(trie.theta)
    assert_equal(dict(found), {s: p / bound for s, p in wanted.items()})
    assert sum(found.values()) == pytest.approx(sum(wanted.values()) / bound, abs=EXACT)


def small(seed: int = 2) -> tuple[Any, list[str], TableModel]:
    lm = TableModel(seed, [b"a", b"b", b""], ends=(2,), sharp=1.0)
    texts = ["a", "ab", "bba"]
    return lm, texts, choice(lm, texts)  # type: ignore[return-value]


def population(law: Any, trie: Trie, options: smc.SmcOptions, n: int = 2) -> Any:
    def run(chance: Any) -> Any:
        return smc.draw(Walker(law, copy.deepcopy(trie), 1), chance, n, options)

    return run


def smc_is_proper(
    law: Any, trie: Trie, options: smc.SmcOptions, wanted: dict[Any, float], n: int = 2
) -> None:
    """E[mean weight of s] = P(s) for every s, hence E[estimate of Z] = Z."""
    sums: dict[tuple[int, ...], float] = defaultdict(float)
    evidence = 0.0
    for probability, out in every_outcome(population(law, trie, options, n)):
        evidence += probability * math.exp(out.log_evidence)
        for walk, weight in zip(out.walks, out.log_weights, strict=True):
            sums[tuple(walk.tokens)] += probability * math.exp(weight) / n
    assert_equal(dict(sums), wanted)
    assert evidence == pytest.approx(sum(wanted.values()), abs=EXACT)


def transition_matrix(law: Any, proposal: Any, states: list[tuple[int, ...]]) -> np.ndarray:
    """Returns the exact transition matrix between whole texts."""
    place = {s: i for i, s in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for s in states:
        trie = Trie()

        def run(chance: Any, s: Any = s, trie: Trie = trie) -> tuple[int, ...]:
            walker = Walker(law, trie, 1)
            x = fixed_walk(walker, s)
            y = mcmc.propose(walker, x, chance, proposal)
            walker.run([y], Mode(entropies=True))
            if y.alive and chance.coin(math.exp(mcmc.log_acceptance(x, y, proposal))):
                return tuple(y.tokens)
            return s

        for probability, result in every_outcome(run):
            matrix[place[s], place[result]] += probability
    return matrix


def fixed_walk(walker: Walker, tokens: tuple[int, ...]) -> Walk:
    """Returns the walk along the given tokens."""
    walk = walker.start(Seeds(0).stream(0, 0))
    for token in tokens:
        walker.expand([walk])
        node = walk.node
        walk.entropies.append(node.row.entropy)
        walker.take(walk, int(np.searchsorted(node.row.ids, token)), node.row.log_mass, False)
        walker.judge(walk, IMPORTANCE)
    return walk


def chain_is_invariant(law: Any, proposal: Any, wanted: dict[tuple[int, ...], float]) -> None:
    states = sorted(wanted)
    total = sum(wanted.values())
    pi = np.array([wanted[s] / total for s in states])
    matrix = transition_matrix(law, proposal, states)
    np.testing.assert_allclose(matrix.sum(1), 1.0, atol=EXACT)
    np.testing.assert_allclose(pi @ matrix, pi, atol=EXACT)
    flow = pi[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, atol=EXACT)
    law_at = np.full(len(states), 1.0 / len(states))
    before = 1.0
    for _ in range(60):
        law_at = law_at @ matrix
        now = 0.5 * float(np.abs(law_at - pi).sum())
        assert now <= before + 1e-12
        before = now
    assert before < 0.05


def breaks(check: Any) -> None:
    with pytest.raises(AssertionError):
        check()
