"""Every method through `sg.sample`, with every option and every rule that ends a run early, over every
outcome of its randomness: E[evidence] = Z, and texts follow the law that the result names.

K is a run's number of texts, which may be random, and N its number of draws. The tests check:

- exp(log_evidence) has the mean Z, whatever ended the run. MCMC gives no evidence.
- Law "exact": the texts are independent draws, so P(s_1 = a, s_2 = b, ...) = P_L(a) P_L(b) ... Runs that
  ended early name another law. Each text of CARS, given the earlier texts, follows the target.
- Law "weighted" or "local": the sum of exp(log_weight) 1{s} over the texts, divided by N, has the mean P(s).
- Law "approximate" after a stop that depends on texts: `diagnostics.reasons` names the stop.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from oracles.sampling_oracle import STOPPING, Table
from oracles.sampling_stops import EXACT, Case, check, follows_the_named_law, random_case, summed
from structgen.sampling import Predicate, SmcOptions, asap, auto, cars, local
from structgen.sampling.evidence import Evidence
from structgen.sampling.logspace import NEVER, logsumexp
from structgen.sampling.trie import Trie


@pytest.mark.parametrize("seed", range(6))
def test_random_cases(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    check(*random_case(seed), monkeypatch)


SHORT = Case(2, ("a", "ab", "bb"))
LEARNED = Case(5, ("a", "b", "ba"), learned=1)
EMPTY = Case(3, ("", "b"), learned=2)
NEVER_TEXTS = Case(4, ("bbb",))  # four tokens with the end, but the limit is three
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
@pytest.mark.parametrize("method", [name for name in STOPPING if name != "cars"])
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
    """A pilot run decides which sampler `auto` uses. Each sampler stays unbiased, whatever the pilot's trie
    has learned."""
    monkeypatch.setattr(auto, "TRIALS", 2)
    monkeypatch.setattr(auto, "_PROBES", 1)
    monkeypatch.setattr(auto, "PARTICLES", 1)
    case = Case(5, ("a", "b"), max_tokens=2)
    # CARS, if the pilot prefers it; otherwise the probes and the method behind them
    for accepted in (0.05, 2.0):
        monkeypatch.setattr(auto, "ACCEPTED", accepted)
        check(case, {"method": "auto", "n": 2, "max_trials": 3, "until_tv": until_tv}, monkeypatch)


# Planted bugs: each must break the laws above.


def breaks(case: Case, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError):
        check(case, options, monkeypatch)


def test_a_plain_mean_under_a_stop_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug is an earlier behaviour of the code: every draw of the run had equal weight, although a stop
    ended the run."""

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
        # the bug: a draw that found a text also takes the remaining mass
        if max(log_parts) > NEVER and self._left > 0.0:
            self._share, self._left = self._share + self._left, 0.0
        honest(self, *log_parts)

    honest = Evidence.add
    monkeypatch.setattr(Evidence, "add", late)
    breaks(SHORT, {"method": "cars", "n": 2, "max_trials": 3}, monkeypatch)


def test_a_text_counted_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probability of known texts is already counted, so accepting a known text again must add nothing.
    The bug adds the text again."""
    monkeypatch.setattr(Trie, "texts", lambda self, end, most: _Forgetful(honest(self, end, most)))
    breaks(LEARNED, {"method": "cars", "n": 2, "max_trials": 3}, monkeypatch)


class _Forgetful(dict[Any, float]):
    def __contains__(self, key: object) -> bool:
        return False


honest = Trie.texts


def test_a_run_ended_by_its_texts_and_named_exact_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: a run that ends when its bracket is tight calls its texts independent draws."""
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
