"""The reference implementation of ASAp draws the texts that structgen draws, if both get equal random
numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bench.sampling.references import ReferenceAsap
from bench.sampling.run import kl
from oracles import data
from oracles.tasks import bounded, defined, toy
from structgen.sampling import asap
from structgen.sampling.api import prepare
from structgen.sampling.chance import Seeds
from structgen.sampling.outcome import Purpose


@pytest.mark.parametrize("seed", range(4))
def test_asap_draws_what_the_reference_draws(seed: int) -> None:
    task = toy(seed)
    reference, seeds = ReferenceAsap(task), Seeds(seed)
    walker = prepare(task.lm, task.prompt, task.grammar, max_tokens=task.max_tokens, budget="reject", batch=4)
    ours = asap.draw(walker, seeds, 60)
    theirs = [reference.draw(seeds.stream(Purpose.DRAW, i).choose) for i in range(60)]
    alive = [(tokens, weight) for tokens, weight in theirs if weight > -math.inf]
    assert len(alive) < 60, "no text ran out of room: the test covers less than it should"
    assert [tuple(w.tokens) for w in ours.walks] == [tokens for tokens, _ in alive]
    assert [w.log_weight for w in ours.walks] == pytest.approx([w for _, w in alive], abs=1e-9)
    assert walker.target.spent.positions < reference.cost.forwards / 2


def test_the_distance_of_a_weighted_sample() -> None:
    """Draws that are weighted by the target's own ratios have distance 0; other weights give the formula's
    distance."""
    target = {(1,): 0.3, (2,): 0.1}
    right = [((1,), math.log(0.3), math.log(0.3)), ((2,), math.log(0.1), math.log(0.1))]
    assert kl(right, math.log(0.4)) == pytest.approx(0.0, abs=1e-12)
    even = [(t, 0.0, math.log(p)) for t, p in target.items()]
    assert kl(even, math.log(0.4)) == pytest.approx(0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25))
    assert kl([], 0.0) is None


def test_bounded_grammars_nest_no_deeper() -> None:
    import re

    grammar = 'root ::= "<" E ">"\nE ::= "x" | "(" E "+" E ")" | Missing "y"\n'
    assert [bool(re.fullmatch(bounded(grammar, 1), t)) for t in ("<x>", "<(x+x)>", "<((x+x)+x)>", "<y>")] == [
        True, True, False, False,
    ]  # fmt: skip
    assert defined('root ::= "a" A | "b" B\nA ::= C\nB ::= "\\"" | A\n') == 'root ::= "b" B\nB ::= "\\""\n'
    with pytest.raises(ValueError):
        bounded("root ::= A\nA ::= A", 2)


def test_the_report_says_what_was_measured_and_what_took_too_long(capsys: pytest.CaptureFixture[str]) -> None:
    from bench.sampling.run import COUNTS, MORE, Bench, Stopped, bars, limited, report, table

    bench = Bench(toy(), 1, 20)
    assert bench.width == 0.0, "the law of the table is computed, not bracketed"
    records = [{**bench.known, **r} for r in bench._about()]
    for n in (*COUNTS, MORE):
        for method in ("asap", "cars"):
            # type: ignore[misc]
            for r in bench._timed(method, n, lambda m=method, n=n: bench._ours(m, n, 0)):
                records.append({**bench.known, "seed": 0, **r})
    records += [{**bench.known, "seed": 0, **r} for r in bench._reference(0)]
    bench.limit = 0.05

    def forever() -> dict[str, float]:
        while True:
            pass

    late = list(bench._timed("mcmc", 30, forever))
    assert late == [{"method": "mcmc", "n": 30, "kl": None, "stopped": 0.05}]
    assert not list(bench._timed("mcmc", 100, forever)), "what took too long is not tried with a larger n"
    with pytest.raises(Stopped), limited(0.05):
        forever()
    records += [{**bench.known, "seed": 0, **late[0]}]
    for show in (report, bars, table):
        show(records)
    said = capsys.readouterr().out
    assert "log Z -2.740, exact" in said and "over the limit at n = 30" in said
    error = next(r["value"] for r in records if r["method"] == "normaliser")
    assert error < 1e-12, "local normalisers are exact"
    line = next(line for line in said.splitlines() if line.startswith("toy") and f" {MORE} " in line)
    assert float(line.split()[5]) <= 0.1, "CARS takes a tenth of the reference's forwards"


@pytest.mark.parametrize("depth", [1, None])
def test_brackets_hold_what_dynamic_programming_computes(data_root: Any, depth: int | None) -> None:
    """The brackets hold the exact values, for grammars of real tasks. Dynamic programming over sets of stacks
    computes the exact values; "CP" is finite, so its sum is complete."""
    from bench.sampling.run import call
    from oracles import tasks

    chosen = (
        ("CP/CP_re_ptb_486", "CP/CP_re_ptb_486+") if depth is None else ("CP/CP_re_ptb_486+", tasks.NAMES[1])
    )
    data.need(bool(tasks.names()), f"no GAD tasks under {data_root}")
    for name in chosen:
        law = tasks.law(name)
        assert law is not None
        found = call(tasks.gad(name, depth), "asap", 40, 0)
        low, high = found.log_bracket or (0.0, 0.0)
        assert low - 1e-9 <= law.log_z <= high + 1e-9, name
        # The samplers draw exactly the texts that the law gives a probability.
        exact = {tuple(s.tokens): s.logprob for s in found}
        assert max(exact.values()) < law.log_z + 1e-9
        matcher = tasks.gad(name, depth).grammar.matcher()
        drawn = law.draw(np.random.default_rng(1))
        assert matcher.accept_tokens(list(drawn[:-1])) and matcher.is_accepting()
