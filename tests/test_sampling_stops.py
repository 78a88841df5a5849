"""Every method through `sg.sample`, with every option and every rule that ends a run early, over every
outcome of its randomness: E[evidence] = Z, and texts follow the law that the result names.

What is checked, with the run's number of texts K (it may be random) and draws N:

- exp(log_evidence) has the mean Z, whatever ended the run; but for MCMC, which gives none;
- law "exact": the texts are independent draws: P(s_1 = a, s_2 = b, ...) = P_L(a) P_L(b) ..., but for the runs
  that ended early, which are named otherwise; and each text of CARS, given those before it, follows the
  target;
- law "weighted" or "local": the sum of exp(log_weight) 1{s} over the texts, divided by N, has the mean P(s);
- law "approximate" after a stop that looks at texts: `diagnostics.reasons` says so.
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

from structgen.sampling import Predicate, SmcOptions, api, asap, auto, cars, local
from structgen.sampling.evidence import Evidence
from structgen.sampling.logspace import NEVER, logsumexp
from structgen.sampling.trie import Trie
from tests.sampling_oracle import Table, TableModel, brute_force, choice, every_outcome, target, trained

EXACT = 1e-9


@dataclass(frozen=True)
class Case:
    """A model, a language, and what the trie knows already."""

    seed: int
    texts: tuple[str, ...]
    learned: int = 0
    max_tokens: int = 3
    sharp: float = 1.0


@dataclass
class Found:
    """Sums over all outcomes."""

    evidence: float = 0.0
    weights: dict[tuple[int, ...], float] = field(default_factory=lambda: defaultdict(float))
    exact: dict[tuple[Any, ...], float] = field(default_factory=lambda: defaultdict(float))
    sequences: dict[tuple[Any, ...], dict[Any, float]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(float))
    )
    laws: set[str] = field(default_factory=set)
    proper: bool = True  # no run says that the number of its texts depends on them
    outcomes: int = 0


def summed(
    case: Case, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> tuple[Found, dict[Any, float]]:
    """`sg.sample` over every outcome, and the target by brute force."""
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
        # Runs that ended early are named otherwise, and leave the others at most so far from independence.
        left_out = 1.0 - sum(found.exact.values())
        distance = 0.0
        for texts, p in found.exact.items():
            product = math.prod(share[s] for s in texts)
            assert p <= product + EXACT, texts
            distance += product - p
        assert distance <= left_out + EXACT
    if found.sequences:
        # Each text, given that there is one and given those before it, follows the target.
        for before, nexts in found.sequences.items():
            mass = sum(nexts.values())
            for s in wanted:
                assert nexts.get(s, 0.0) == pytest.approx(mass * share[s], abs=EXACT), before


def check(case: Case, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Found:
    found, wanted = summed(case, options, monkeypatch)
    follows_the_named_law(found, wanted, evidence=options["method"] != "mcmc")
    return found


def random_case(seed: int) -> tuple[Case, dict[str, Any]]:
    """A model, a language and a call of `sg.sample` whose outcomes can all be gone through."""
    source = random.Random(seed)
    words = ["".join(w) for n in range(4) for w in itertools.product("ab", repeat=n)]
    texts = tuple(sorted(source.sample(words, source.randint(1, 5))))
    sharp = source.choice((1.0, 0.5, 2.0))
    case = Case(seed, texts, learned=source.randint(0, 2), max_tokens=source.choice((2, 3, 3)), sharp=sharp)
    method = source.choice(("cars", "cars", "asap", "importance", "local"))
    options: dict[str, Any] = {"method": method, "n": source.randint(1, 2)}
    options["until_tv"] = source.choice((None, 0.5, 0.2))
    if method == "cars":
        options["max_trials"] = source.randint(1, 3)
    return case, options


@pytest.mark.parametrize("seed", range(6))
def test_random_cases(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check(*random_case(seed), monkeypatch)


SHORT = Case(2, ("a", "ab", "bb"))
LEARNED = Case(5, ("a", "b", "ba"), learned=1)
EMPTY = Case(3, ("", "b"), learned=2)
NEVER_TEXTS = Case(4, ("bbb",))  # four tokens with the end: nothing fits into three
CASES = [SHORT, LEARNED, EMPTY, NEVER_TEXTS]


@pytest.mark.parametrize("until_tv", [None, 0.5, 0.2])
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_cars_under_every_stop(
    case: Case, n: int, until_tv: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for max_trials in (1, 2, 3):
        check(case, {"method": "cars", "n": n, "max_trials": max_trials, "until_tv": until_tv}, monkeypatch)


def test_cars_is_exact_where_trials_are_ample(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(5, ("a", "b", "ba"), learned=2)
    found = check(case, {"method": "cars", "n": 2, "max_trials": 9}, monkeypatch)
    assert sum(found.exact.values()) > 0.99


@pytest.mark.parametrize("until_tv", [None, 0.5, 0.2])
@pytest.mark.parametrize("method", ["asap", "importance", "local"])
@pytest.mark.parametrize("case", CASES)
def test_draws_under_every_stop(
    case: Case, method: str, until_tv: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_LOOK", 1)
    for n in (1, 2, 4):
        check(case, {"method": method, "n": n, "until_tv": until_tv}, monkeypatch)


def test_rounds_of_draws_do_not_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_LOOK", 2)
    for batch in (1, 2, 3):
        options = {"method": "importance", "n": 5, "until_tv": 0.5, "batch": batch}
        found = check(LEARNED, options, monkeypatch)
        if batch == 1:
            first = found
        assert dict(found.weights) == pytest.approx(dict(first.weights), abs=EXACT)


SOFT = {b"a": -0.5, b"ab": -1.5, b"bb": -math.inf}
POTENTIALS: dict[str, Any] = {
    "soft": (Table(SOFT, bounded=True), lambda text: math.exp(SOFT.get(text, 0.0))),
    "condition": (
        Predicate(lambda text: not text.startswith("ab"), at="token", monotone=True),
        lambda text: float(not text.startswith(b"ab")),
    ),
    "end": (Predicate(lambda text: text != "a"), lambda text: float(text != b"a")),
}


@pytest.mark.parametrize("name", POTENTIALS)
@pytest.mark.parametrize(
    "options",
    [
        {"method": "cars", "n": 2, "max_trials": 3},
        {"method": "cars", "n": 2, "max_trials": 3, "until_tv": 0.4},
        {"method": "asap", "n": 3, "until_tv": 0.4},
        {"method": "importance", "n": 3, "until_tv": 0.4},
        {"method": "smc", "n": 2},
        {"method": "awrs", "n": 2, "extra": 2},
        {
            "method": "smc",
            "n": 2,
            "smc_options": SmcOptions(ess_threshold=1.0, scheme="multinomial", block=2),
        },
        {"method": "smc", "n": 2, "smc_options": SmcOptions(ess_threshold=0.9, twist=False, extra=None)},
        {"method": "smc", "n": 1, "smc_options": SmcOptions(extra=None, moves=1, rewrite=2)},
        {"method": "mcmc", "n": 1, "steps": 2},
    ],
    ids=str,
)
def test_potentials_under_every_stop(
    name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_LOOK", 1)
    check(SHORT, {**options, "potential": POTENTIALS[name]}, monkeypatch)


@pytest.mark.parametrize("until_tv", [None, 0.4])
def test_auto_is_unbiased_after_its_pilot(until_tv: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which sampler runs depends on the pilot; each is unbiased whatever the trie knows when it starts."""
    monkeypatch.setattr(auto, "TRIALS", 2)
    monkeypatch.setattr(auto, "_PROBES", 1)
    monkeypatch.setattr(auto, "PARTICLES", 1)
    case = Case(5, ("a", "b"), max_tokens=2)
    for accepted in (0.05, 2.0):  # CARS where the pilot says so; and the probes, with what follows them
        monkeypatch.setattr(auto, "ACCEPTED", accepted)
        check(case, {"method": "auto", "n": 2, "max_trials": 3, "until_tv": until_tv}, monkeypatch)


# Planted bugs: each must break the laws above.


def breaks(case: Case, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError):
        check(case, options, monkeypatch)


def test_a_plain_mean_under_a_stop_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was there before: every draw of the run counts alike."""

    def plain(self: Evidence) -> float:
        counted = self._counted  # type: ignore[attr-defined]
        return logsumexp([part for parts in counted for part in parts]) - math.log(len(counted))

    class Counting(Evidence):
        def __init__(self) -> None:
            super().__init__()
            self._counted: list[tuple[float, ...]] = []

        def add(self, *log_parts: float) -> None:
            self._counted.append(log_parts)

        log_mean = property(plain)

    for module in (cars, asap, local):
        monkeypatch.setattr(module, "Evidence", Counting)
    monkeypatch.setattr(local, "_LOOK", 1)
    breaks(SHORT, {"method": "cars", "n": 1, "max_trials": 3}, monkeypatch)
    breaks(LEARNED, {"method": "asap", "n": 4, "until_tv": 0.2}, monkeypatch)
    breaks(LEARNED, {"method": "importance", "n": 4, "until_tv": 0.2}, monkeypatch)


def test_a_share_fixed_after_the_draw_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(self: Evidence, *log_parts: float) -> None:
        if max(log_parts) > NEVER and self._left > 0.0:  # a draw that found something takes the rest as well
            self._share, self._left = self._share + self._left, 0.0
        honest(self, *log_parts)

    honest = Evidence.add
    monkeypatch.setattr(Evidence, "add", late)
    breaks(SHORT, {"method": "cars", "n": 2, "max_trials": 3}, monkeypatch)


def test_a_text_counted_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mass of texts met before is known; accepting one of them once more must add nothing."""
    monkeypatch.setattr(Trie, "texts", lambda self, end, most: _Forgetful(honest(self, end, most)))
    breaks(LEARNED, {"method": "cars", "n": 2, "max_trials": 3}, monkeypatch)


class _Forgetful(dict[Any, float]):
    def __contains__(self, key: object) -> bool:
        return False


honest = Trie.texts


def test_a_run_ended_by_its_texts_and_named_exact_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts of a run that ends where the bracket is tight are not independent draws."""
    honest = cars.draw

    def boastful(*arguments: Any, **how: Any) -> Any:
        out = honest(*arguments, **how)
        out.law, out.notes = "exact", []
        return out

    monkeypatch.setattr(cars, "draw", boastful)
    for case, until_tv in ((LEARNED, 0.2), (EMPTY, 0.2)):
        options = {"method": "cars", "n": 2, "max_trials": 4, "until_tv": until_tv}
        found, wanted = summed(case, options, monkeypatch)
        with pytest.raises(AssertionError):
            follows_the_named_law(found, wanted)
