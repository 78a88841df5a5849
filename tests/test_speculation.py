"""Speculative decoding gives the text of plain decoding, token by token, whatever the drafts are.

The invariants of drafts under a grammar: greedy and seeded sampling equal plain decoding's (1, 2); masks of
draft nodes equal those of a replay (5); refused drafts leave no trace (6); drafts change only the number of
forward passes (8); forced text is drafted, not injected (9); ragged rows equal single rows (10). Numbers 3, 4
and 7 are in test_speculation_rules.py and test_trees.py.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import structgen as sg
from oracles.harness import cases
from oracles.speculative import (
    DRAFTERS,
    SCHEMAS,
    TEXTS,
    TREES,
    VOCABULARY,
    Adversary,
    Oracle,
    RandomModel,
)
from structgen._draws import Noise
from structgen.generation import Drawing, generate
from structgen.speculation import (
    CostTable,
    Drafter,
    DraftModel,
    Forced,
    Speculation,
    SuffixAutomatonDrafter,
    TokenRecycling,
    Trigram,
)
from structgen.speculation.engine import Row, SpeculativeRows
from structgen.speculation.goodput import Bench, Calibration, Goodput
from structgen.speculation.options import resolve
from structgen.speculation.score import open_scorer
from structgen.speculation.tree import TreeWalk, build, tree_masks

LM = RandomModel()
COMPILER = sg.Compiler(VOCABULARY)


def options(drafters: str, tree: str) -> Speculation:
    return Speculation(DRAFTERS[drafters](), **TREES[tree])  # type: ignore[arg-type]


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("drafters", DRAFTERS)
def test_the_text_is_that_of_plain_decoding(drafters: str, tree: str) -> None:
    """The text is that of plain decoding for all drafters and trees, greedy and sampled, for one text and for
    a batch. The drafters' stores fill during the test."""
    speculation = options(drafters, tree)
    for seed, schema in enumerate([*SCHEMAS, None]):
        for how in ({}, {"temperature": 0.8, "seed": seed}, {"temperature": 1.2, "seed": seed, "n": 3}):
            arguments: dict[str, Any] = {"max_tokens": 40, **how}
            plain = plainly(seed, **arguments)
            fast = generate(LM, "abcab12", schema, speculate=speculation, **arguments)
            for a, b in zip(_listed(plain), _listed(fast), strict=True):
                assert (a.tokens, a.finish_reason, a.value) == (b.tokens, b.finish_reason, b.value)
                assert a.logprobs == pytest.approx(b.logprobs)
            stats = _listed(fast)[0].speculation
            emitted = sum(len(r.tokens) for r in _listed(fast))
            assert stats.tokens == emitted and stats.row_forwards <= emitted
            # A row's forward pass emits the accepted nodes and one more token. At the end of the row that
            # token may be a node.
            nodes = emitted - stats.row_forwards - stats.skipped
            assert nodes <= stats.accepted <= nodes + len(_listed(fast))
            assert stats.accepted <= stats.drafted and stats.forwards <= stats.row_forwards


@functools.cache
def plainly(number: int, **arguments: Any) -> Any:
    """Returns the plain decoding of a schema, with which the tests compare all drafters and trees."""
    return generate(LM, "abcab12", [*SCHEMAS, None][number], **arguments)


def _listed(result: Any) -> list[Any]:
    return result if isinstance(result, list) else [result]


@given(
    seed=st.integers(0, 10**6),
    schema=st.sampled_from(SCHEMAS),
    temperature=st.sampled_from([0.0, 0.3, 1.0, 3.0]),
    top_k=st.sampled_from([None, 1, 3, 10]),
    top_p=st.sampled_from([None, 0.5, 0.95]),
    limit=st.integers(12, 40),
    complete=st.booleans(),
    tree=st.sampled_from(list(TREES)),
    sharp=st.sampled_from([0.0, 1.0, 4.0]),
    drafters=st.sampled_from(["fused", "other fused"]),
)
@settings(max_examples=cases(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_way_of_sampling(
    seed: int,
    schema: Any,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    limit: int,
    complete: bool,
    tree: str,
    sharp: float,
    drafters: str,
) -> None:
    """All sampling options give the text of plain decoding. With sharpness 0 all tokens are equally probable,
    so greedy decoding depends on the order of ties."""
    lm = RandomModel(seed, sharp=sharp)
    arguments: dict[str, Any] = {
        "max_tokens": limit + 10,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "seed": seed,
        "complete": complete,
    }
    plain = generate(lm, "ab", schema, **arguments)
    fast = generate(lm, "ab", schema, speculate=options(drafters, tree), **arguments)
    assert plain.tokens == fast.tokens


def test_a_perfect_drafter_needs_few_forwards() -> None:
    for how in ({}, {"temperature": 1.0, "seed": 3}):  # type: dict[str, Any]
        how.update(max_tokens=60, complete=False)
        plain = generate(LM, "ab", SCHEMAS[0], **how)
        speculation = Speculation([Oracle(plain.tokens)], adaptive=False, nodes=100)
        fast = generate(LM, "ab", SCHEMAS[0], speculate=speculation, **how)
        assert fast.tokens == plain.tokens and fast.speculation.forwards == 1
        # The target as its own drafter is perfect under sampling, too, because the drafter gets the noise.
        same = Speculation([DraftModel(RandomModel(0), width=1)], adaptive=False, nodes=100)
        fast = generate(LM, "ab", SCHEMAS[0], speculate=same, **how)
        # A path of many uncertain tokens is cut off where it becomes too improbable.
        assert fast.tokens == plain.tokens and fast.speculation.forwards <= 2


def test_drafting_saves_forwards_where_text_repeats() -> None:
    for name in ("grammar", "suffix tree", "token recycling", "logit n-grams", "trigram", "other vocabulary"):
        speculation = Speculation(DRAFTERS[name](), adaptive=False, nodes=8)
        for _ in range(3):
            found = generate(LM, "ab", SCHEMAS[0], speculate=speculation)
        assert found.speculation.forwards < len(found.tokens), name
        assert found.speculation.drafters[speculation.drafters[0].name].accepted > 0


# --- one step at a time ----------------------------------------------------------------------------------


def mask_of(matcher: sg.Matcher) -> list[int]:
    mask = sg.allocate_bitmask(1, len(TEXTS))
    matcher.fill_bitmask(mask)
    return mask[0].tolist()


def ended(matcher: sg.Matcher, tree: Any, node: int) -> bool:
    """Returns whether a node lies behind an end token."""
    return tree.parents[node] >= 0 and 0 in tree.path(tree.parents[node])


def run_of(
    rows: Sequence[Row], speculation: Speculation, temperature: float, lm: Any = LM
) -> SpeculativeRows:
    how = Drawing(temperature, None, None, 1)
    run = SpeculativeRows(open_scorer(lm), lm.vocabulary, lm.eos_token_ids, how, speculation)
    for row in rows:
        run.add(row)
    return run


def row_of(schema: Any, prompt: str, seed: int, room: int = 40, budget: int | None = 40) -> Row:
    grammar = COMPILER.json_schema(schema, whitespace="compact")
    return Row(VOCABULARY.encode(prompt), grammar.matcher(), Noise(seed), room, budget, grammar)


@pytest.mark.parametrize("drafters", ["fused", "adversary", "same model"])
def test_the_matcher_knows_what_was_emitted_and_nothing_else(drafters: str) -> None:
    rows = [row_of(s, "ab", i) for i, s in enumerate(SCHEMAS)]
    run = run_of(rows, options(drafters, "wide"), 1.0)
    while run.live:
        run.step()
        for row in rows:
            assert row.matcher is not None and row.grammar is not None
            fresh = row.grammar.matcher()
            assert fresh.accept_tokens(row.tokens)
            assert row.matcher.num_steps == len(row.tokens) == len(row.logprobs)
            assert row.matcher.is_terminated() == row.done == fresh.is_terminated()
            assert mask_of(row.matcher) == mask_of(fresh)


@given(seed=st.integers(0, 10**6), schema=st.sampled_from(SCHEMAS), steps=st.integers(0, 12))
@settings(max_examples=cases(60), deadline=None)
def test_masks_of_nodes_are_those_of_a_replay(seed: int, schema: Any, steps: int) -> None:
    """The masks of a draft tree's nodes equal those of a replay, after random advances, rollbacks and forks,
    in every order in which the tree grows."""
    random = np.random.default_rng(seed)
    grammar = COMPILER.json_schema(schema, whitespace="compact")
    matcher, text = grammar.matcher(), []
    for _ in range(steps):
        allowed = [t for t in range(len(TEXTS)) if matcher.validate_tokens([t])]
        kind = random.integers(4)
        if kind == 0 and text:
            count = int(random.integers(1, len(text) + 1))
            matcher.rollback(count)
            del text[-count:]
        elif kind == 1:
            matcher = matcher.fork()
        elif not matcher.is_terminated():
            token = allowed[int(random.integers(len(allowed)))]
            assert matcher.accept_token(token)
            text.append(token)
    before = mask_of(matcher), matcher.num_steps, matcher.is_terminated()
    made = build(
        matcher,
        [(0, Adversary(seed)), (1, Adversary(seed + 1))],
        budget=20,
        depth=6,
        ends=frozenset([0]),
        position=len(text),
        calibration=Calibration(2),
        goodput=None,
        vocab_size=len(TEXTS),
    )
    assert before == (mask_of(matcher), matcher.num_steps, matcher.is_terminated())
    tree, walk = made.tree, TreeWalk(matcher)
    for node in random.permutation(len(tree)).tolist():
        path = tree.path(node)
        assert len(path) == tree.depths[node] <= 6
        fresh = grammar.matcher()
        assert fresh.accept_tokens([*text, *path])
        here = walk.at(path)
        assert here is not None and mask_of(here) == mask_of(fresh)
    walk.at([])
    probed = [*tree.path(len(tree) - 1), 33, 17] if len(tree) else [33, 17]
    tree.add_probes(0, probed)  # a chain that the grammar may refuse
    masks = tree_masks(matcher, tree, len(TEXTS), None)
    for node in range(-1, len(tree)):
        fresh = grammar.matcher()
        valid = fresh.accept_tokens([*text, *tree.path(node)]) and not (
            node >= 0 and (0 in text or ended(fresh, tree, node))
        )
        assert masks[node + 1].tolist() == (mask_of(fresh) if valid else [0] * len(masks[0]))
    assert before == (mask_of(matcher), matcher.num_steps, matcher.is_terminated())
    assert all(parent < node for node, parent in enumerate(tree.parents))
    assert all(tree.chances[p] >= tree.chances[n] for n, p in enumerate(tree.parents) if p >= 0)


def test_ragged_rows_are_single_rows_and_may_join_late() -> None:
    """A batch of rows gives the texts of single rows: prompts of unequal lengths, rows that end early or join
    late, and prompts with the end token as an ordinary id."""
    cases = [
        (s, p, i)
        for i, (s, p) in enumerate(zip(SCHEMAS * 2, ["a", "abcabc", "12,1", "xyz"] * 2, strict=False))
    ]
    singles = []
    for schema, prompt, seed in cases:
        row = row_of(schema, prompt, seed)
        row.prompt = [0, *row.prompt, 0]
        run = run_of([row], options("none", "adaptive"), 1.0)
        run.run()
        singles.append(row.tokens)
    rows = [row_of(s, p, i) for s, p, i in cases]
    for row in rows:
        row.prompt = [0, *row.prompt, 0]
    run = run_of(rows[:3], options("fused", "wide"), 1.0)
    waiting = rows[3:]
    while run.live or waiting:
        run.step()
        if waiting:
            run.add(waiting.pop(0))
    assert [r.tokens for r in rows] == singles


def test_forced_text_is_drafted_and_not_injected() -> None:
    """Forced bytes leave the choice of tokens open; every beginning can still become a text."""
    grammar = COMPILER.choice(["abcabcabc"])
    seen = set()
    for seed in range(60):
        how: dict[str, Any] = {"temperature": 1.0, "seed": seed, "grammar": grammar}
        plain = generate(LM, "x", **how)
        fast = generate(LM, "x", speculate=[Forced()], **how)
        assert plain.tokens == fast.tokens
        seen.add(tuple(plain.tokens))
        text = b""
        for token in fast.tokens:
            text += VOCABULARY.token_bytes(token)
            assert grammar.matcher().validate_bytes(text) == len(text)
    assert len(seen) > 5


def test_a_row_stops_where_it_is_told_to() -> None:
    for stop in range(1, 8):
        heard: list[int] = []

        def listen(tokens: Sequence[int], heard: list[int] = heard, stop: int = stop) -> bool:
            heard.extend(tokens)
            return len(heard) >= stop

        row = row_of(SCHEMAS[0], "ab", 3)
        row.on_tokens = listen
        run = run_of([row], options("same model", "wide"), 1.0)
        run.run()
        assert len(row.tokens) == stop and heard == row.tokens


def test_room_and_budget_hold_at_every_length() -> None:
    for room in range(1, 30):
        row = row_of(SCHEMAS[1], "ab", 5, room, None)
        run_of([row], options("same model", "wide"), 1.0).run()
        assert len(row.tokens) <= room and (row.done or len(row.tokens) == room)
    with pytest.raises(sg.UnsatisfiableBudget):
        generate(LM, "ab", SCHEMAS[0], max_tokens=3, speculate=[Forced()])


def test_without_log_probabilities_a_certain_end_costs_no_forward() -> None:
    grammar = COMPILER.choice(["abc"])
    for how in ({}, {"temperature": 1.0, "seed": 1}):
        full = generate(LM, "x", grammar=grammar, speculate=[], **how)
        bare = generate(LM, "x", grammar=grammar, speculate=[], logprobs=False, **how)
        assert bare.tokens == full.tokens and bare.logprobs == [] and len(full.logprobs) == len(full.tokens)
        assert bare.speculation.forwards == full.speculation.forwards - 1 == len(full.tokens) - 1
        assert bare.speculation.skipped == 1
    assert generate(LM, "x", grammar=grammar, logprobs=False).logprobs == []


# --- costs and acceptance --------------------------------------------------------------------------------


def test_where_nothing_can_be_predicted_drafting_stops() -> None:
    """The text is uniform noise: after a few trials nearly every forward pass has the width one."""
    lm = RandomModel(2, memory=50, sharp=0.1)
    flat = CostTable({1: 1e-3, 2: 1.5e-3, 8: 3e-3, 32: 10e-3}, learn=False)
    drafters: list[Drafter] = [SuffixAutomatonDrafter(), TokenRecycling(), Trigram()]
    found = generate(
        lm, "abab", max_tokens=300, temperature=1.0, seed=1, speculate=Speculation(drafters, cost=flat)
    )
    stats = found.speculation
    assert len(found.tokens) > 100
    assert stats.idle > 0.85 * stats.forwards and stats.drafted < 0.25 * stats.tokens


def test_goodput_takes_what_pays() -> None:
    cheap = CostTable({1: 1.0, 128: 1.01}, learn=False)
    dear = CostTable({1: 1.0, 2: 2.0, 128: 128.0}, learn=False)
    stairs = CostTable({1: 1.0, 8: 1.0, 12: 3.0, 16: 3.0, 128: 30.0}, learn=False)
    for cost, chances, best in (
        (cheap, [0.5, 0.2, 0.05], 3),
        (dear, [0.5, 0.2], 0),
        (dear, [1.0, 1.0, 0.3], 2),
        (stairs, [0.1] * 12, 7),
    ):
        goodput = Goodput(cost, 1, 1)
        for chance in chances:
            if goodput.worth(chance):
                goodput.added(chance)
        assert goodput.best() == best, (chances, goodput.best())


def test_a_cost_table_is_monotone_and_follows_measurements() -> None:
    table = CostTable()
    assert not table.known and table(1) == 1.0 < table(64)
    random = np.random.default_rng(0)
    for _ in range(400):
        width = int(random.integers(1, 40))
        table.observe(width, (1.0 + 0.1 * width) * float(random.uniform(0.9, 1.1)))
    values = table.table()
    assert all(a <= b + 1e-12 for a, b in zip(values, values[1:], strict=False))
    for width in (1, 8, 32):
        assert values[width] == pytest.approx(1.0 + 0.1 * width, rel=0.35)
    for _ in range(200):  # a batch is wider than any row
        width = int(random.integers(300, 600))
        table.observe(width, 1.0 + 0.1 * width)
    assert table(500) == pytest.approx(51.0, rel=0.2) and table(2000) == pytest.approx(201.0, rel=0.2)


def test_a_slow_moment_does_not_rule_a_width_out() -> None:
    """Another process makes one measured time too long. The fitted line through the times of the other widths
    does not move."""
    table = CostTable()
    for i in range(200):
        width = 1 + i % 8
        table.observe(width, 1.0 + 0.02 * width)
    for _ in range(2):
        table.observe(20, 12.0)
    assert table(20) < 2.5 and table(40) < 3.5 and table(1) == pytest.approx(1.02, rel=0.1)
    # A width that is slow in every measurement counts as slow, and so does a jump in the hardware's times.
    for i in range(200):
        table.observe(20, 12.0)
        table.observe(1 + i % 8, 1.0 + 0.02 * (i % 8 + 1))
    assert table(20) > 8.0 and table(8) < 2.5


def test_the_tree_may_give_up_a_little_of_the_best_rate_but_only_where_drafting_pays() -> None:
    line = CostTable({1: 1.0, 2: 1.02, 128: 1.0 + 0.02 * 127}, learn=False)

    def size(chances: list[float]) -> int:
        goodput = Goodput(line, 1, 1)
        for chance in chances:
            if not goodput.worth(chance):
                break
            goodput.added(chance)
        return goodput.best()

    assert size([0.015] * 20) == 0  # no gain, so no time is spent
    sure = [0.9, 0.8, 0.7, 0.6, 0.5]
    assert size([*sure, *[0.045] * 30]) >= 5 and size([*sure, *[0.075] * 30]) > 8
    rates = [1 + 0.02 * n for n in range(40)]
    for tail in (0.0, 0.05, 0.06, 0.07):
        chances = [*sure, *[tail] * 30]
        reached = [(1 + sum(chances[:n])) / rates[n] for n in range(len(chances) + 1)]
        assert reached[size(chances)] >= 0.94 * max(reached)


def test_calibration_learns_what_offers_are_worth() -> None:
    parent = Calibration(1)
    child = Calibration(1, parent)
    for i in range(200):
        child.observe(0, 0.9, i % 10 == 0)
    assert child.chance(0, 0.9) < 0.25 and Calibration(1, parent).chance(0, 0.9) < 0.25
    assert child.chance(0, 1.0) == 1.0 and child.chance(0, 0.1) > 0


def test_the_bench_doubles_and_forgives() -> None:
    """A useless drafter is tried again ever more rarely: the distance between trials doubles. If the text
    becomes predictable, the drafter works again."""
    bench, asked = Bench(), 0
    for _ in range(400):
        if bench.asked([0]):
            asked += 1
            bench.observe(0, cost=1.0, gain=0.0)
    assert asked < 40
    while not bench.asked([0]):
        pass
    for _ in range(50):
        bench.observe(0, cost=1.0, gain=3.0)
    assert all(bench.asked([0]) for _ in range(20))


def test_the_bench_remembers_earlier_texts_and_ends_a_dear_trial() -> None:
    earlier = Bench()

    def asked(cost: float, gain: float, patience: float = 100.0) -> int:
        """Returns how many of a dozen steps ask the drafter."""
        text, count = Bench(earlier), 0
        for _ in range(12):
            if text.asked([0]):
                count += 1
                text.observe(0, cost, gain, patience)
        earlier.remember(text)
        return count

    first = asked(1.0, 0.0)
    assert asked(1.0, 0.0) < first  # the drafter starts on trial
    # one gain puts the drafter back to work, and the next steps keep it
    assert asked(1.0, 3.0) == 12 and asked(1.0, 3.0) == 12
    earlier = Bench()
    assert asked(1.0, 0.0, patience=2.5) < first and asked(1.0, 3.0, patience=0.5) == 12


# --- the interface ---------------------------------------------------------------------------------------


def test_auto_keeps_its_stores_with_the_model() -> None:
    lm = RandomModel()
    first = generate(lm, "ab", SCHEMAS[0], speculate="auto")
    second = generate(lm, "ab", SCHEMAS[0], speculate="auto")
    assert first.tokens == second.tokens == generate(lm, "ab", SCHEMAS[0]).tokens
    assert second.speculation.forwards <= len(first.tokens)
    assert resolve("auto", lm) is resolve("auto", lm) is not resolve("auto", RandomModel())
    assert {"forward", "draft", "verify", "total"} <= second.timings.keys()
    assert second.speculation.as_dict()["tokens_per_forward"] >= 1
    assert generate(lm, "ab", SCHEMAS[0]).speculation is None


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("yes", TypeError),
        (3, TypeError),
        ([object()], TypeError),
    ],
)
def test_what_cannot_speculate_is_refused(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        generate(LM, "ab", SCHEMAS[0], speculate=value)


@pytest.mark.parametrize(
    "arguments", [{"nodes": -1}, {"branches": 0}, {"depth": 0}, {"rule": "other"}, {"restricted_head": -1}]
)
def test_options_are_checked(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Speculation([], **arguments)


def test_rules_that_sample_say_what_they_need() -> None:
    with pytest.raises(ValueError, match="temperature above 0"):
        generate(LM, "a", SCHEMAS[0], speculate=Speculation([DraftModel(LM)], rule="single"))
    with pytest.raises(ValueError, match="needs a drafter"):
        generate(LM, "a", SCHEMAS[0], temperature=1.0, speculate=Speculation([], rule="single"))
    with pytest.raises(TypeError, match="no distribution"):
        generate(LM, "a", SCHEMAS[0], temperature=1.0, speculate=Speculation([Forced()], rule="k-seq"))
