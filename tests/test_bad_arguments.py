"""Invalid values for every argument of searches, samplers and mixed models. The call that gets the value
raises an error that names the argument. Every row must raise, so a value that is wrongly taken fails the
test."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable
from typing import Any

import pytest

import structgen as sg
from oracles.sampling_oracle import TableModel, choice
from structgen import sampling as s
from structgen.lm.mixing import Anchored, Contrasted
from structgen.sampling.request import Request, TargetRequest
from structgen.sampling.searches import SearchRequest

NAN = math.nan
# invalid for an argument that must be an integer of at least 1
COUNTS: list[Any] = [0, -1, 1.5, "2", True, NAN, [1]]
FROM_ZERO: list[Any] = [-1, 1.5, "2", True, NAN, [1]]
SHARES: list[Any] = [-0.1, 1.1, NAN, "x", None, [0.5]]
REALS: list[Any] = [NAN, "x", [1.0], True]


def positive(*more: Any) -> list[Any]:
    return [0.0, -1.0, math.inf, *REALS, *more]


def not_negative(*more: Any) -> list[Any]:
    return [-1.0, *REALS, *more]


def optional(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


LM = TableModel(0)
TARGET: dict[str, list[Any]] = {
    "max_tokens": COUNTS,
    "batch": COUNTS,
    "trie_bytes": COUNTS,
    "temperature": positive(),
    "top_k": COUNTS,
    "top_p": [0.0, 1.1, NAN, "x", True],
    "budget": ["none", 3],
    "trie": ["a.trie", 3],
    "potential": [3, "x", [5]],
}
CALLS: dict[str, tuple[Callable[..., Any], dict[str, list[Any]]]] = {
    "search": (
        lambda **how: sg.search(LM, [], choice(LM, ["a", "ab"]), **how),
        TARGET
        | {
            "method": ["dfs", 3, None],
            "n": COUNTS,
            "seed": FROM_ZERO,
            "score": [3, "len"],
            "heuristic": [3],
            "reward": ["x"],
            "enough": REALS,
            "steps": FROM_ZERO,
            "tokens": FROM_ZERO,
            "forwards": FROM_ZERO,
            "seconds": not_negative(),
            "progress": [3],
            "branch": COUNTS,
            "siblings": [1, None, "yes"],
            "decisive": not_negative(),
            "lookahead": FROM_ZERO,
            "block": [3, [5], [""], {}],
            "span": COUNTS,
            "commit": [1, None],
            "explore": not_negative(math.inf),
            "backup": ["least", None],
            "rollout": ["x", 1],
            "resume": [3],
        },
    ),
    "sample": (
        lambda **how: sg.sample(LM, [], choice(LM, ["a", "ab"]), **how),
        TARGET
        | {
            "method": ["x", 3, None],
            "n": COUNTS,
            "seed": FROM_ZERO,
            "extra": COUNTS,
            "until_tv": [0.0, 1.0, NAN, "x", 2],
            "max_trials": COUNTS,
            "steps": FROM_ZERO,
            "proposal": ["x", None],
            "smc_options": [3, {}],
            "check": SHARES,
            "guess": [3, [1, 2], "ab"],
        },
    ),
    "prepare": (lambda **how: s.prepare(LM, [], choice(LM, ["a", "ab"]), **how), TARGET),
    "Searched.resume": (
        lambda **how: sg.search(LM, [], choice(LM, ["a"]), forwards=0).resume(**how),
        {
            "n": COUNTS,
            "steps": FROM_ZERO,
            "tokens": FROM_ZERO,
            "forwards": FROM_ZERO,
            "seconds": not_negative(),
        },
    ),
    "beam_search": (
        lambda **how: s.beam_search(s.prepare(LM, [], choice(LM, ["a"])), **{"width": 2, **how}),
        {
            "width": COUNTS,
            "groups": [*COUNTS, 3],
            "diversity": not_negative(math.inf),
            "length_power": [*REALS, math.inf],
            "guide": [3, ["a"]],
        },
    ),
    "Guide": (
        s.Guide,
        {
            "goals": ["word", 5, [5], [["a", 5]], [[]], [""], [None]],
            "words": [1, None],
            "goal_weight": [*REALS, math.inf],
            "look": [3, "greedy"],
            "begun": [*REALS, math.inf],
            "tolerance": FROM_ZERO,
            "value": [3],
            "value_weight": [*REALS, math.inf],
            "seed": FROM_ZERO,
        },
    ),
    "Without": (s.Without, {"phrase": [5, None, b"x"]}),
    "Look": (
        s.Look,
        {"kind": ["x", None], "depth": FROM_ZERO, "ways": COUNTS, "floor": [1.0, NAN, -math.inf, "x"]},
    ),
    "Contrast": (
        lambda **how: s.Contrast(LM, [], **how),
        {
            "power": positive(),
            "floor": [0.0, 1.0, NAN, "x"],
            "bounded": [1, None],
            "entropy": [3, (1.0,), (2.0, 1.0), (-1.0, 1.0), (0.0, NAN), ("x", 1.0), None],
        },
    ),
    "Reward": (
        lambda **how: s.Reward(**{"fn": len, **how}),
        {"fn": [3, None], "weight": positive(), "most": [*REALS, math.inf], "guides": [1, None]},
    ),
    "LanguageModelPotential": (
        lambda **how: s.LanguageModelPotential(LM, [], **how),
        {"power": positive()},
    ),
    "Predicate": (
        lambda **how: s.Predicate(**{"fn": bool, **how}),
        {"fn": [3, None], "at": ["x", None, 3], "takes": ["x", None]},
    ),
    "Contrasted": (
        lambda **how: Contrasted(LM, TableModel(1), **how),
        {"power": not_negative(math.inf), "plausible": [0.0, 1.1, NAN, "x"], "above": not_negative()},
    ),
    "Anchored": (
        lambda **how: Anchored(LM, TableModel(1), **{"budget": 1.0, **how}),
        {"budget": not_negative(math.inf), "steps": COUNTS},
    ),
    "penalised": (
        lambda **how: s.penalised(s.prepare(LM, [], choice(LM, ["a"])), **how),
        {"seed": FROM_ZERO, "decay": [0.0, 1.1, NAN, "x"], "shortest": COUNTS},
    ),
    "cautious": (
        lambda **how: s.cautious(s.prepare(LM, [], choice(LM, ["a"])), **how),
        {"seed": FROM_ZERO, "span": COUNTS, "stops": [3, [5], "."]},
    ),
    "exact_extract": (
        lambda **how: s.exact_extract(LM, [], "ab", **how),
        {"longest": COUNTS, "batch": COUNTS, "best": COUNTS},
    ),
    "SmcOptions": (
        s.SmcOptions,
        {
            "ess_threshold": SHARES,
            "scheme": ["x", None],
            "twist": [1, None],
            "extra": COUNTS,
            "block": COUNTS,
            "moves": FROM_ZERO,
            "rewrite": COUNTS,
            "lookahead": FROM_ZERO,
        },
    ),
    "Law": (
        s.Law,
        {"temperature": positive(), "top_k": COUNTS, "top_p": [0.0, 1.1, NAN, "x", True]},
    ),
    "Trie": (s.Trie, {"max_bytes": COUNTS}),
    "generate": (
        lambda **how: sg.generate("embedded", "x", regex="a", **how),
        {"structure_penalty": [0.0, 1.1, NAN, "x", None], "n": [1.5, "2", True, 0]},
    ),
}
ROWS = [
    (name, argument, value)
    for name, (_, table) in CALLS.items()
    for argument in table
    for value in table[argument]
]


@pytest.mark.parametrize(("name", "argument", "value"), ROWS, ids=[f"{n}-{a}-{v!r:.20}" for n, a, v in ROWS])
def test_it_is_refused_by_its_name(name: str, argument: str, value: Any) -> None:
    call, _ = CALLS[name]
    with pytest.raises((ValueError, TypeError)) as caught:
        call(**{argument: value})
    said = str(caught.value)
    assert argument in said or argument.rstrip("s") in said, said
    assert (
        "unsupported operand" not in said and "has no attribute" not in said and "object is not" not in said
    )


def test_every_public_argument_is_in_the_table() -> None:
    """The table has every public argument except constraints, prompts and models, which have tests of their
    own."""
    elsewhere = {field.name for field in dataclasses.fields(TargetRequest)} - set(TARGET)
    for name, kind in (("search", SearchRequest), ("sample", Request)):
        arguments = {field.name for field in dataclasses.fields(kind)} - elsewhere - {"plan"}
        assert arguments <= set(CALLS[name][1]), arguments - set(CALLS[name][1])
    plan = {field.name for field in dataclasses.fields(s.SearchPlan)} - {"select"}
    assert plan <= set(CALLS["search"][1])
    for made in (s.Guide, s.Look, s.Without, s.SmcOptions, s.Law):
        name = "SmcOptions" if made is s.SmcOptions else made.__name__
        assert {field.name for field in dataclasses.fields(made)} <= set(CALLS[name][1])
    given = {"lm", "prompt", "amateur", "reference", "walker", "model", "document", "monotone", "ends"}
    calls = (s.Contrast, s.Reward, s.Predicate, Contrasted, Anchored, s.beam_search, s.penalised, s.cautious)
    for made in (*calls, s.exact_extract, s.Trie):
        arguments = set(inspect.signature(made).parameters) - given
        assert arguments <= set(CALLS[made.__name__][1]), made


@pytest.mark.parametrize("value", [NAN, "x", None, math.inf])
def test_scores_that_are_no_numbers_are_named(value: Any) -> None:
    grammar = choice(LM, ["a", "ab", "b"])
    if value is not math.inf:
        for method, score in (("value", "score"), ("a*", "heuristic"), ("mcts", "reward")):
            with pytest.raises(ValueError, match="a score of '.*' is no number"):
                # type: ignore[arg-type]
                sg.search(LM, [], grammar, method=method, **{score: lambda seen: value})
    with pytest.raises((ValueError, TypeError), match="the value of '"):
        s.beam_search(s.prepare(LM, [], grammar), 2, guide=s.Guide(value=lambda text: value))
