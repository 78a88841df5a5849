"""The oracle of bench/: the reference's ASAp, given the same numbers, draws the same texts."""

from __future__ import annotations

import math

import pytest

from bench.sampling.references import ReferenceAsap
from bench.sampling.run import kl
from bench.sampling.tasks import bounded, defined, toy
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
    """Draws whose weights are the target's own ratios have distance 0; others what the formula says."""
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
