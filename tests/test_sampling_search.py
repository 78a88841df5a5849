"""Searches compared with brute force. A search promises no distribution."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles.sampling_oracle import TableModel, brute_force, choice
from structgen._structure import StructureTrace
from structgen.sampling import (
    Guide,
    Look,
    Predicate,
    Without,
    beam_search,
    cautious,
    exact_extract,
    penalised,
    prepare,
)
from structgen.sampling.cautious import trials
from structgen.sampling.lexical import Clauses, kept_apart

TEXTS = ["", "a", "ab", "abc", "b", "ca", "cab", "ccc", "bb", "bca"]


def walker(seed: int = 0, texts: list[str] = TEXTS, **how: Any) -> Any:
    lm = TableModel(seed)
    return prepare(lm, [], choice(lm, texts), max_tokens=6, budget="reject", **how)


def best(seed: int, texts: list[str] = TEXTS) -> list[tuple[float, tuple[int, ...]]]:
    lm = TableModel(seed)
    found = brute_force(lm, {t.encode() for t in texts}.__contains__, 6)
    return sorted(((math.log(p), s) for s, p in found.items()), reverse=True)


@pytest.mark.parametrize("seed", range(5))
def test_a_wide_beam_finds_the_most_probable_texts(seed: int) -> None:
    wanted = best(seed)
    found = beam_search(walker(seed), 40)
    assert [tuple(f.tokens) for f in found] == [s for _, s in wanted][:40]
    assert [f.logprob for f in found] == pytest.approx([p for p, _ in wanted], abs=1e-6)
    assert beam_search(walker(seed), 1)[0].logprob <= wanted[0][0] + 1e-9


def test_a_beam_obeys_conditions_and_limits() -> None:
    rule = Predicate(lambda t: "b" not in t, at="token", monotone=True)
    found = beam_search(walker(1, potential=rule), 10)
    assert found and all("b" not in f.text for f in found)
    assert {f.text for f in beam_search(walker(1), 10, length_power=1.0)} <= set(TEXTS)
    with pytest.raises(ValueError):
        beam_search(walker(1), 4, groups=3)


def test_groups_of_a_diverse_beam_differ() -> None:
    for seed in range(4):
        alike = beam_search(walker(seed), 4, groups=4, diversity=0.0)
        apart = beam_search(walker(seed), 4, groups=4, diversity=50.0)
        assert len({tuple(f.tokens) for f in alike}) == 1
        assert len({f.tokens[0] for f in apart}) > 1


def test_goals_and_values_pull() -> None:
    plain = [beam_search(walker(seed), 2)[0].text for seed in range(8)]
    with_c = [
        beam_search(walker(seed), 2, guide=Guide(goals=["c"], goal_weight=5.0))[0].text for seed in range(8)
    ]
    assert sum("c" in t for t in with_c) > sum("c" in t for t in plain)
    long = [
        beam_search(walker(seed), 2, guide=Guide(value=len, value_weight=30.0))[0].text for seed in range(8)
    ]
    assert sum(map(len, long)) > sum(map(len, plain))


# ---- lexical goals ----


def has(clause: Any, text: str) -> bool:
    """Returns whether a text meets a clause, by the definition: it has one of the clause's phrases, or lacks
    one of its `Without` phrases."""
    literals = [clause] if isinstance(clause, (str, Without)) else clause
    return any(x.phrase not in text if isinstance(x, Without) else x in text for x in literals)


GOALS: list[list[Any]] = [
    ["c"],
    ["a", "c"],
    [["ab", "cc"], "c"],
    [Without("b")],
    [Without("ab"), ["c", "b"]],
    [[Without("a"), "ca"], "b"],
    [[Without("a"), Without("b")]],
]


@pytest.mark.parametrize("goals", GOALS, ids=str)
def test_clauses_say_what_stays_and_what_is_lost(goals: list[Any]) -> None:
    clauses = Clauses(goals)
    texts = ["".join(t) for n in range(5) for t in itertools.product("abc", repeat=n)]
    for text in texts:
        assert clauses.met(text.encode()) == tuple(has(goal, text) for goal in goals)
        state = clauses.state(text.encode(), False)
        later = [t for t in texts if t.startswith(text)]
        for at, goal in enumerate(goals):
            assert at not in state.kept or all(has(goal, t) for t in later)
        reachable = [t + more for t in later for more in ("", "abcccab")]
        assert state.lost == any(not any(has(goal, t) for t in reachable) for goal in goals)
        assert 0 <= state.progress <= 1


def test_words_are_whole_and_inflections_are_one_clause() -> None:
    clauses = Clauses([["cat", "cats"], Without("dog")], words=True)
    for text, met in (("a cat.", True), ("two cats", True), ("concatenate", False), ("bobcat", False)):
        assert clauses.met(text.encode()) == (met, True)
    assert clauses.met(b"dogma cat") == (True, True) and clauses.met(b"dog cat") == (True, False)
    # "category" may follow, so the goal is not met yet
    assert clauses.state(b"a cat", False).kept == frozenset()
    assert clauses.state(b"a cat ", False).kept == {0}
    assert clauses.state(b"dog ", False).lost and not clauses.state(b"dog", False).lost


@pytest.mark.parametrize("goals", GOALS, ids=str)
@pytest.mark.parametrize("look", [Look(depth=0), Look(depth=2), Look("beam", 2, 3), Look("sample", 2, 3)])
def test_a_wide_beam_finds_the_best_text_that_meets_all_goals(goals: list[Any], look: Look) -> None:
    for seed in range(4):
        wanted = [s for _, s in best(seed) if all(has(g, text_of(s)) for g in goals)]
        found = beam_search(walker(seed), 40, guide=Guide(goals=goals, look=look, goal_weight=0.0, begun=0.0))
        met = [tuple(f.tokens) for f in found if all(f.met)]
        assert met == wanted and [all(f.met) for f in found] == sorted(all(f.met) for f in found)[::-1]


def text_of(tokens: tuple[int, ...]) -> str:
    return TableModel(0).vocabulary.decode(list(tokens[:-1])).decode()


def test_groups_keep_what_a_narrow_beam_would_lose() -> None:
    goals = ["aa", "bb", "c"]
    texts = ["".join(t) for n in range(1, 6) for t in itertools.product("abc", repeat=n)]
    met, plain = 0, 0
    for seed in range(12):
        found = beam_search(walker(seed, texts), 2, guide=Guide(goals=goals, begun=0.0, look=Look(depth=0)))
        met += sum(found[0].met)
        plain += sum(has(g, beam_search(walker(seed, texts), 2)[0].text) for g in goals)
    assert met >= 21 and plain <= 10  # 18 without groups
    ranked = ["a1", "a2", "b1", "a3", "c1", "b2"]
    for size in range(8):
        assert kept_apart(ranked, size, lambda x: x[0]) == ["a1", "b1", "c1", "a2", "b2", "a3"][:size]
    # A state that has met far fewer clauses than the best state is dropped.
    few = beam_search(walker(1), 6, guide=Guide(goals=["c", "b"], tolerance=0, look=Look(depth=0)))
    assert sum(map(all, (f.met for f in few))) >= 1


def test_looks_ahead_are_what_their_definitions_say() -> None:
    """With one phrase of one token as its goal, a look ahead is the best log-probability of that token behind
    a continuation. All kinds of look ahead are computed by this definition."""
    from structgen.sampling.chance import Seeds

    for seed in range(6):
        lm = TableModel(seed)
        at = walker(seed, ["".join(t) for n in range(5) for t in itertools.product("abc", repeat=n)])
        start = at.start(Seeds(0).stream(0, 0))

        def after(u: tuple[int, ...], lm: TableModel = lm) -> float:
            return float(lm.vector(u)[3])  # "c"

        path: tuple[int, ...] = ()
        greedy = after(())
        while len(path) < 3:
            row = lm.vector(path).copy()
            path = (*path, int(np.argmax(row)))
            if path[-1] in (3, 4):
                greedy = 0.0 if path[-1] == 3 else greedy
                break
            greedy = max(greedy, after(path))
        missing = [[[b"c"]]]
        found = Look("greedy", 3).values(at, [start], missing, Seeds(0))
        assert found == pytest.approx([greedy], abs=1e-6)
        # A beam that holds every text finds the phrase, and so does a draw that takes the phrase.
        assert Look("beam", 3, 999).values(at, [start], missing, Seeds(0)) == [0.0]
        many = Look("sample", 3, 200).values(at, [start], missing, Seeds(0))
        assert many == [0.0]
    at = walker(0, ["c"])
    nowhere = Look("greedy", 2).values(at, [at.start(Seeds(0).stream(0, 0))], [[[b"b"]]], Seeds(0))
    assert nowhere == [-20.0]
    for bad in ({"kind": "deep"}, {"depth": -1}, {"ways": 0}):
        with pytest.raises(ValueError):
            Look(**bad)
    for wrong in ("text", [""], [[]]):
        with pytest.raises((TypeError, ValueError)):
            Clauses(wrong)  # type: ignore[arg-type]


def test_cautious_tries_by_entropy_and_keeps_the_likeliest() -> None:
    assert [trials(h) for h in (0.0, 0.01, 0.76, 1.5, 9.0)] == [1, 1, 6, 10, 10]
    mean = []
    for seed in range(10):
        one = cautious(walker(3), seed)
        assert one is not None and one.text in TEXTS
        assert cautious(walker(3), seed) == one
        mean.append(one.logprob / len(one.tokens))
    plain = [penalised(walker(3), seed, decay=1.0) for seed in range(10)]
    assert np.mean(mean) > np.mean([p.logprob / len(p.tokens) for p in plain if p])
    assert cautious(walker(3, potential=lambda t: False), 0) is None


def test_the_trace_knows_its_longest_repeats() -> None:
    random = np.random.default_rng(0)
    for _ in range(30):
        marks = [bytes([int(m)]) for m in random.integers(0, 2, size=14)]
        trace = StructureTrace()
        for now, mark in enumerate(marks):
            trace.enter(mark)
            naive: dict[int, int] = {}
            for at in range(now):
                same = 0
                while same <= at and marks[at - same] == marks[now - same]:
                    same += 1
                if same >= 2:
                    naive[at % 3] = naive.get(at % 3, 0) + same - 1
            assert trace.penalties(2) == naive
            trace.take(now % 3)


def test_a_penalty_shortens_loops_and_none_changes_nothing() -> None:
    lm = TableModel(2, [b"[", b"]", b"1,", b""], ends=(3,))
    for length in range(40):
        lm._table[(0, *[2] * length)] = np.log(np.array([1e-6, 0.05, 0.95 - 2e-6, 1e-6], np.float32))
    grammar = sg.Compiler(lm.vocabulary).regex(r"\[(1,)*\]")

    def lengths(decay: float) -> list[int]:
        made = [penalised(prepare(lm, [], grammar, max_tokens=40), s, decay=decay) for s in range(20)]
        return [len(f.tokens) for f in made if f]

    assert np.mean(lengths(0.5)) < 0.6 * np.mean(lengths(1.0))
    from structgen.sampling import sample

    plain = sample(lm, [], grammar, method="local", n=3, seed=4, max_tokens=40)
    assert penalised(prepare(lm, [], grammar, max_tokens=40), 4, decay=1.0).tokens == plain[0].tokens  # type: ignore[union-attr]


def test_the_best_span_is_the_best_of_all_spans() -> None:
    for seed in range(5):
        lm = TableModel(seed)
        document = [0, 3, 1, 2, 0, 3]
        scores: dict[str, float] = {}
        for start in range(6):
            for stop in range(start + 1, min(6, start + 4) + 1):
                span = document[start:stop]
                p = sum(float(lm.vector((1, *span[:i]))[t]) for i, t in enumerate([*span, 4]))
                text = lm.vocabulary.decode(span).decode()
                scores[text] = max(p, scores.get(text, -math.inf))
        wanted = sorted(scores.items(), key=lambda item: -item[1])[:3]
        found = exact_extract(lm, [1], document, longest=4, best=3, batch=2)
        assert [(f.text) for f in found] == [t for t, _ in wanted]
        assert [f.logprob for f in found] == pytest.approx([p for _, p in wanted], abs=1e-5)
        assert lm.vocabulary.decode(document[found[0].start : found[0].stop]).decode() == found[0].text
    assert exact_extract(TableModel(0), [1], [], longest=3) == []
