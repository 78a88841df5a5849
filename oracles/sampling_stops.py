"""The results of `sg.sample` over every outcome of its random decisions, under every early stop.

`check` takes a case and options. It raises if a weight is biased, or if the texts do not follow the named
law. Time: one run per outcome; tens of milliseconds per case.
"""

from __future__ import annotations

import copy
import itertools
import math
import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest

from oracles.sampling_oracle import (
    STOPPING,
    TableModel,
    brute_force,
    choice,
    every_outcome,
    target,
    trained,
)
from structgen.sampling import api

EXACT = 1e-9


@dataclass(frozen=True)
class Case:
    """A model, a language, and what the trie knows before the call."""

    seed: int
    texts: tuple[str, ...]
    learned: int = 0
    max_tokens: int = 3
    sharp: float = 1.0


@dataclass
class Found:
    """Sums over all outcomes of a run."""

    evidence: float = 0.0
    weights: dict[tuple[int, ...], float] = field(default_factory=lambda: defaultdict(float))
    exact: dict[tuple[Any, ...], float] = field(default_factory=lambda: defaultdict(float))
    sequences: dict[tuple[Any, ...], dict[Any, float]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(float))
    )
    laws: set[str] = field(default_factory=set)
    proper: bool = True  # no run reports that its number of texts depends on the texts
    outcomes: int = 0


def summed(
    case: Case, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> tuple[Found, dict[Any, float]]:
    """Runs `sg.sample` over every outcome, and computes the target by brute force."""
    lm = TableModel(case.seed, [b"a", b"b", b""], ends=(2,), sharp=case.sharp)
    grammar = choice(lm, case.texts)
    potential, weigh = options.get("potential", (None, lambda text: 1.0))
    wanted = brute_force(lm, {t.encode() for t in case.texts}.__contains__, case.max_tokens, weigh)
    law = target(lm, grammar, max_tokens=case.max_tokens, potential=potential)
    trie = trained(law, case.learned)
    trie.key = None if not case.learned else law.key()
    trie.adopt(lm)
    found = Found()

    def run(chance: Any) -> Any:
        monkeypatch.setattr(api, "Seeds", lambda seed: chance)
        return api.sample(
            lm, [], grammar, **{"max_tokens": case.max_tokens, "budget": "reject", "batch": 1, **options,
                                "potential": potential, "trie": copy.deepcopy(trie)}
        )  # fmt: skip

    for probability, samples in every_outcome(run):
        found.outcomes += 1
        found.evidence += probability * math.exp(samples.log_evidence)
        found.laws.add(samples.law)
        depends = any("depends on" in reason for reason in samples.diagnostics.reasons)
        found.proper = found.proper and not depends
        assert not (depends and samples.law in ("exact", "weighted"))
        for sample in samples:
            share = math.exp(sample.log_weight) / samples.diagnostics.draws
            found.weights[tuple(sample.tokens)] += probability * share
        texts = tuple(tuple(sample.tokens) for sample in samples)
        if samples.law == "exact":
            found.exact[texts] += probability
        if samples.diagnostics.method == "cars":
            for at, text in enumerate(texts):
                found.sequences[texts[:at]][text] += probability
    return found, wanted


def follows_the_named_law(found: Found, wanted: dict[tuple[int, ...], float], evidence: bool = True) -> None:
    total = sum(wanted.values())
    share = {s: p / total for s, p in wanted.items()}
    if evidence:
        assert found.evidence == pytest.approx(total, abs=EXACT)
    if found.proper and found.laws <= {"weighted", "local"}:
        assert found.weights.keys() == wanted.keys()
        for s, p in wanted.items():
            assert found.weights[s] == pytest.approx(p, abs=EXACT)
    if "exact" in found.laws:
        # A run that ended early names another law. So the texts of the other runs are independent, up to the
        # probability of the runs left out.
        left_out = 1.0 - sum(found.exact.values())
        distance = 0.0
        for texts, p in found.exact.items():
            product = math.prod(share[s] for s in texts)
            assert p <= product + EXACT, texts
            distance += product - p
        assert distance <= left_out + EXACT
    if found.sequences:
        # Each text follows the target, given the earlier texts and given that the run draws it.
        for before, nexts in found.sequences.items():
            mass = sum(nexts.values())
            for s in wanted:
                assert nexts.get(s, 0.0) == pytest.approx(mass * share[s], abs=EXACT), before


def check(case: Case, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Found:
    found, wanted = summed(case, options, monkeypatch)
    follows_the_named_law(found, wanted, evidence=options["method"] != "mcmc")
    return found


def random_case(seed: int) -> tuple[Case, dict[str, Any]]:
    """Returns a model, a language and a call of `sg.sample` whose outcomes can be enumerated."""
    source = random.Random(seed)
    words = ["".join(w) for n in range(4) for w in itertools.product("ab", repeat=n)]
    texts = tuple(sorted(source.sample(words, source.randint(1, 5))))
    sharp = source.choice((1.0, 0.5, 2.0))
    case = Case(seed, texts, learned=source.randint(0, 2), max_tokens=source.choice((2, 3, 3)), sharp=sharp)
    method = source.choice(("cars", *STOPPING))
    options: dict[str, Any] = {"method": method, "n": source.randint(1, 2)}
    options["until_tv"] = source.choice((None, 0.5, 0.2))
    if method == "cars":
        options["max_trials"] = source.randint(1, 3)
    return case, options
