"""Searches: they are compared with brute force, and promise no distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import structgen as sg
from structgen._structure import Trace
from structgen.sampling import Guide, Predicate, beam_search, cautious, exact_extract, penalised, prepare
from structgen.sampling.cautious import trials
from tests.sampling_oracle import TableModel, brute_force, choice

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
        trace = Trace()
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
