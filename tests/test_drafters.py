"""Each drafter alone: compared with brute force where possible, and held to its limits."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import structgen as sg
from oracles.harness import cases, together
from oracles.speculative import SCHEMAS, TEXTS, VOCABULARY
from structgen._draws import Noise
from structgen.speculation import (
    Forced,
    Here,
    Likely,
    LogitNgrams,
    Lookahead,
    LookaheadWindow,
    PromptLookup,
    SchemaOrder,
    SourceCopy,
    Start,
    Step,
    SuffixAutomatonDrafter,
    SuffixTree,
    SuffixTreeDrafter,
    TokenRecycling,
    Trigram,
)
from structgen.speculation.drafters.ranking import ranked
from structgen.speculation.drafters.schema_order import Shapes, State, predictions, read
from structgen.speculation.drafters.suffix_automaton import SuffixAutomaton
from structgen.speculation.tree import DraftTree

TOKENS = st.lists(st.integers(0, 2), max_size=40)


def start(prompt: Sequence[int], schema: Any = None, noise: Noise | None = None) -> Start:
    grammar = None
    if schema is not None:
        grammar = sg.Compiler(VOCABULARY).json_schema(schema, whitespace="compact")
    return Start(prompt, VOCABULARY, grammar, 1.0 if noise else 0.0, noise)


def likely(*places: tuple[Sequence[int], dict[int, float]]) -> Likely:
    """Probabilities of the next token behind some contexts. A place is (last tokens, probabilities)."""
    width = max(len(p) for _, p in places)
    ids, logprobs = np.zeros((len(places), width), np.int64), np.full((len(places), width), -np.inf)
    for i, (_, p) in enumerate(places):
        best = sorted(p, key=lambda t: -p[t])
        ids[i, : len(best)] = best
        logprobs[i, : len(best)] = np.log([p[t] for t in best])
    return Likely([tuple(c) for c, _ in places], ids, logprobs.astype(np.float32))


def follow(session: Any, tokens: Sequence[int]) -> None:
    for token in tokens:
        session.accept(Step([token]))


HERE = Here(None, 0)


def drafted(session: Any, length: int) -> list[int]:
    """Returns the most probable chain of tokens that a session proposes."""
    found: list[int] = []
    cursor = session.cursor()
    while cursor is not None and len(found) < length:
        offers = cursor.children(HERE)
        if not offers:
            break
        token = max(offers, key=lambda o: o[1])[0]
        found.append(token)
        cursor = cursor.step(token)
    return found


# --- copying ---------------------------------------------------------------------------------------------


@given(TOKENS)
@settings(max_examples=cases(200), deadline=None)
def test_the_automaton_matches_the_longest_suffix_seen_before(text: list[int]) -> None:
    sam = SuffixAutomaton()
    state = length = last = 0
    for end, token in enumerate(text, 1):
        state, length = sam.read(state, length, token)
        last = sam.extend(last, token)
        state = sam.fit(state, length)
        past = text[: end - 1]
        want = 0
        for n in range(1, end):
            if any(past[i : i + n] == text[end - n : end] for i in range(end - n)):
                want = n
        assert length == want
        # The state holds exactly the continuations of the suffix in the whole text.
        if want:
            suffix = text[end - want : end]
            follows = {text[i + want] for i in range(end - want) if text[i : i + want] == suffix}
            assert set(sam.follows(state)) == follows
            assert sam.length[sam.link[state]] < want <= sam.length[state]
    assert len(sam.link) <= max(1, 2 * len(text))


def test_suffix_automaton_drafts_the_continuation() -> None:
    session = SuffixAutomatonDrafter().open(start([5, 6, 7, 8, 9, 1, 5, 6]))
    assert drafted(session, 3) == [7, 8, 9]
    follow(session, [7])
    assert drafted(session, 2) == [8, 9]
    assert SuffixAutomatonDrafter(3).open(start([5, 6, 7, 5, 6])).cursor() is None
    with pytest.raises(ValueError):
        SuffixAutomatonDrafter(0)


def test_prompt_lookup_takes_the_longest_gram() -> None:
    prompt = [1, 2, 3, 4, 9, 2, 3, 5, 8, 1, 2, 3]
    assert drafted(PromptLookup(3, 2).open(start(prompt)), 9) == [4, 9]
    assert drafted(PromptLookup(2, 2).open(start(prompt)), 9) == [5, 8]
    assert drafted(PromptLookup(2, 2, latest=False).open(start(prompt)), 9) == [4, 9]
    session = PromptLookup(2, 2, answers=False).open(start([1, 2]))
    follow(session, [3, 1])
    assert drafted(session, 9) == [2, 3]
    follow(session, [2])
    assert session.cursor() is None  # only the answer continues "1 2"


def test_source_copy_finds_its_place_again() -> None:
    source = [1, 2, 3, 4, 5, 6, 7, 8]
    session = SourceCopy(source, tokens=3, again=2).open(start([0]))
    assert drafted(session, 9) == [1, 2, 3]
    follow(session, [1, 2, 30, 40])
    assert drafted(session, 9) == [3, 4, 5]
    follow(session, [5, 6])
    assert drafted(session, 9) == [7, 8]
    follow(session, [7, 8])
    assert session.cursor() is None


# --- stores ----------------------------------------------------------------------------------------------


@given(st.lists(TOKENS, max_size=6), st.integers(2, 6), st.data())
@settings(max_examples=cases(100), deadline=None)
def test_the_suffix_tree_counts_every_substring(texts: list[list[int]], depth: int, data: Any) -> None:
    limit = data.draw(st.integers(0, 90))
    tree = SuffixTree(depth, limit)
    kept: list[list[int]] = []
    for text in texts:
        tree.insert(text)
        if text and len(text) <= limit:
            kept.append(text)
        while sum(map(len, kept)) > limit:
            kept.pop(0)
    assert len(tree) == sum(map(len, kept)) <= limit
    for n in range(1, depth + 1):
        for sub in data.draw(st.lists(st.lists(st.integers(0, 2), min_size=n, max_size=n), max_size=6)):
            want = sum(t[i : i + n] == sub for t in kept for i in range(len(t) - n + 1))
            assert tree.count(sub) == want
    assert tree.count([]) == tree.root.count == len(tree)
    nodes, waiting = 0, [tree.root]
    while waiting:
        node = waiting.pop()
        nodes += 1
        waiting += node.children.values()
        for token, child in node.children.items():
            assert child.text[child.start] == token and child.count > 0
            assert any(child.text is t for t in tree._stored)
    assert nodes <= 2 * len(tree) + 1


def test_suffix_tree_drafts_what_was_frequent() -> None:
    drafter = SuffixTreeDrafter(SuffixTree(8, 1000))
    for text in ([1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 9, 9]):
        session = drafter.open(start([0]))
        follow(session, text)
        session.close()
    session = drafter.open(start([0]))
    follow(session, [7, 1, 2])
    assert drafted(session, 9) == [3, 4]
    assert [t for t, _ in session.cursor().children(HERE)] == [3, 9]
    cursor = session.cursor()
    drafter.tree.insert([1, 5])  # splits an edge under a cursor of another text
    assert cursor.children(HERE) == () and cursor.step(3) is None
    assert drafted(session, 9) == [3, 4]


def test_stores_serve_several_threads() -> None:
    drafters = [SuffixTreeDrafter(SuffixTree(8, 200)), TokenRecycling(), LogitNgrams(2, 50), Trigram(50)]

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(30):
            sessions = [d.open(start([1, 2])) for d in drafters]
            text = [1, 2]
            for token in random.integers(0, 5, size=12).tolist():
                seen = likely((text[-8:], dict(enumerate(random.dirichlet(np.ones(5)).tolist()))))
                for session in sessions:
                    session.accept(Step([token], lambda seen=seen: seen))
                    drafted(session, 4)
                text.append(token)
            for session in sessions:
                session.close()

    together(work, 4)
    assert len(drafters[0].tree) <= 200 and len(drafters[2]._entries) <= 50 and len(drafters[3]._counts) <= 50


def test_token_recycling_keeps_the_last_successors() -> None:
    table = TokenRecycling(longest=1, width=2)
    session = table.open(start([3]))
    assert session.cursor().children(HERE) == ()  # a place without known continuations offers none
    session.accept(Step([4], lambda: likely(([3], {4: 0.9, 5: 0.1}))))
    session.accept(Step([3], lambda: likely(([4], {6: 0.6, 4: 0.3, 5: 0.1}))))
    assert [t for t, _ in session.cursor().children(HERE)] == [4, 5]
    assert [t for t, _ in session.cursor().step(4).children(HERE)] == [6, 4]
    assert drafted(table.open(start([4])), 1) == [6]
    # The store keeps the later of two observations of one context, also within one step, because the text is
    # observed behind the refused drafts.
    session.accept(Step([4], lambda: likely(([3], {7: 1.0}), ([4], {9: 1.0}), ([3], {8: 1.0}))))
    assert drafted(table.open(start([3])), 1) == [8] and drafted(table.open(start([4])), 1) == [9]


def test_token_recycling_asks_the_longest_context_first_and_forgets_the_oldest() -> None:
    table = TokenRecycling(longest=2, contexts=5)
    table.learn(likely(([1, 2], {5: 0.7, 6: 0.3}), ([9, 2], {7: 1.0})))
    for context, best in (([1, 2], 5), ([9, 2], 7), ([8, 2], 7)):
        assert drafted(table.open(start(context)), 1) == [best]
    assert table.open(start([8, 8])).cursor().children(HERE) == ()
    for i in range(40):
        table.learn(likely(([i, i + 1], {i: 1.0})))
        assert len(table._slots) <= 5 and table.row([i, i + 1])[0] == 2
    assert table.row([1, 2]) is None and table.row([38, 39])[1][0] == 38
    # Updates many rows at once while the table grows.
    table = TokenRecycling()
    table.learn(likely(*(([i, i + 1, i + 2], {i % 7: 1.0}) for i in range(3000))))
    for i in (0, 1, 1500, 2999):
        assert drafted(table.open(start([i, i + 1, i + 2])), 1) == [i % 7]
    # With noise, the first proposal is the token that the noise prefers.
    noise = Noise(3)
    table.learn(likely(([1, 2, 3], {5: 0.6, 6: 0.4})))
    for position in range(20):
        ids = np.array([5, 6])
        want = ids[np.argmax(np.log([0.6, 0.4]) + noise.gumbel(position, ids))]
        cursor = table.open(start([1, 2, 3], noise=noise)).cursor()
        assert cursor.children(Here(None, position))[0][0] == want


def test_logit_ngrams_average_and_prefer_the_longest() -> None:
    store = LogitNgrams(2)
    store.learn(likely(([1, 2], {5: 0.6, 6: 0.4}), ([9, 2], {7: 1.0})))
    assert store.known([1, 2])[0] == 2 and store.known([8, 2])[0] == 1 and store.known([8, 8])[0] == 0
    mixed = store.known([8, 2])[1]
    assert mixed[7] == pytest.approx(0.5) and mixed[5] == pytest.approx(0.3)
    found = store.open(start([1, 2])).cursor().children(HERE)
    assert found[0][0] == 5
    # With noise, the first proposal is the token that the noise prefers.
    noise = Noise(3)
    for position in range(20):
        here = Here(None, position)
        cursor = store.open(start([1, 2], noise=noise)).cursor()
        ids = np.array([5, 6])
        want = ids[np.argmax(np.log([0.6, 0.4]) + noise.gumbel(position, ids))]
        assert cursor.children(here)[0][0] == want
    q = cursor.distribution(here)
    assert q[1].sum() == pytest.approx(1.0) and q[1][list(q[0]).index(5)] == pytest.approx(0.6)


def test_trigrams_count_and_fade() -> None:
    table = Trigram(8, prompts=False)
    session = table.open(start([1, 2]))
    follow(session, [3, 1, 2, 3, 1, 2, 4, 1, 2])
    assert [t for t, _ in session.cursor().children(HERE)] == [3, 4]
    for i in range(100):
        table.learn(i, i, i)
    assert len(table._counts) == 8
    for i in range(100):
        table.learn(0, 0, i)
    assert len(table._counts[0, 0]) <= 16


def test_lookahead_turns_probes_into_ngrams() -> None:
    session = Lookahead(window=3, longest=3).open(start([1, 2, 3, 4]))
    guesses = list(session.probes())
    assert len(guesses) == 3
    session.accept(Step([guesses[0]], None, [20, 21, 22]))
    # guesses[0] is part of the text now. The target's tokens behind each guess become the next guesses.
    assert list(session.probes()) == [20, 21, 22]
    cursor = session.cursor()
    assert 20 in [t for t, _ in cursor.children(HERE)]
    session.accept(Step([9, 9]))
    assert len(session.probes()) == 3
    for i in range(200):
        session.accept(Step([i + 1], None, [(7 * i) % 40, i % 40, 3]))
    assert all(len(grams) <= 6 for grams in session._pool._grams.values())


def test_the_window_is_a_row_of_columns_and_columns_become_ngrams() -> None:
    """The test's target predicts, behind every path, the last token plus one. So each column of the lookahead
    window counts up."""
    session = LookaheadWindow(window=3, ngram=4).open(start([7, 3, 5]))
    rows = []
    for _ in range(4):
        tokens, parents = list(session.probes()), list(session.probe_parents())
        rows.append(len(tokens) // 3)
        assert parents == [-1, 0, 1, *range(len(tokens) - 3)]
        session.accept(Step([1], probes=[t + 1 for t in tokens]))
    # Each step adds one generation, up to ngram - 1 generations.
    assert rows == [1, 2, 3, 3]
    columns = [list(session.probes())[c::3] for c in range(3)]
    assert all(column == list(range(column[0], column[0] + 3)) for column in columns)
    # An n-gram of four: the first token of a column and the three tokens behind it.
    first = columns[0][0]
    session.accept(Step([first], probes=[t + 1 for t in session.probes()]))
    assert drafted(session, 3) == [first + 1, first + 2, first + 3]


def test_the_window_moves_with_the_text() -> None:
    """A guess keeps its position in the text: row r's guess for position r + c stays after a step of any
    length."""
    session = LookaheadWindow(window=4, ngram=3).open(start([9]))
    place = 0  # the position of the next token
    rows: list[Any] = []
    for tokens in ([1], [1, 1], [1], [1, 1, 1], [1]):
        probes, parents = list(session.probes()), list(session.probe_parents())
        depths: list[int] = []
        for parent in parents:
            depths.append(0 if parent < 0 else depths[parent] + 1)
        for guess, depth in zip(probes, depths, strict=True):
            assert guess in (9, 100 + place + depth)
        rows.append(probes)
        # The target predicts 100 + position at every position.
        session.accept(Step(tokens, probes=[101 + place + depth for depth in depths]))
        place += len(tokens)
    assert sum(guess >= 100 for guess in rows[-1]) >= 4
    kept = list(session.probes())
    session.accept(Step([1, 1]))  # a step without probes
    assert list(session.probes())[:2] == kept[2:4]
    for bad in ({"window": 0}, {"ngram": 1}, {"keys": 0}):
        with pytest.raises(ValueError):
            LookaheadWindow(**bad)


def test_probes_are_a_tree_within_the_depth() -> None:
    tree = DraftTree()
    shared = tree.add(-1, 5, (), 0.5)
    tree.add_probes(0, [5, 6, 7, 8], [-1, 0, 0, 2], depth=2)
    assert tree.probes[0] == [shared, 1, 2] and tree.parents == [-1, 0, 0] and tree.tokens == [5, 6, 7]
    tree.add_probes(1, [5, 6, 9])
    assert tree.probes[1] == [0, 1, 3] and tree.depths == [1, 2, 2, 3]


def test_ranked_is_the_gumbel_argmax() -> None:
    random = np.random.default_rng(0)
    noise = Noise(1)
    for position in range(50):
        logprobs = np.log(random.dirichlet(np.ones(6))).astype(np.float32)
        ids = np.arange(10, 16)
        scores = logprobs.astype(np.float64) / 0.7 + noise.gumbel(position, ids)
        found = ranked(ids, logprobs, 0.7, noise, position, 3)
        assert [t for t, _ in found] == (10 + np.argsort(-scores)[:3]).tolist()
        greedy = ranked(ids, logprobs, 0.0, None, position, 2)
        assert greedy[0][0] == 10 + int(np.argmax(logprobs))
        assert greedy[0][1] == pytest.approx(min(float(np.exp(logprobs.max())), 0.99), rel=1e-5)


# --- grammar and schema ----------------------------------------------------------------------------------


def test_forced_text_is_offered_in_canonical_tokens() -> None:
    grammar = sg.Compiler(VOCABULARY).choice(["abcabcx"])
    session = Forced().open(Start([1], VOCABULARY, grammar, 0.0, None))
    matcher, cursor, text = grammar.matcher(), session.cursor(), []
    while cursor is not None:
        offers = cursor.children(Here(matcher, len(text)))
        if not offers:
            break
        assert matcher.accept_token(offers[0][0])
        text.append(offers[0][0])
        cursor = cursor.step(offers[0][0])
    assert (
        [TEXTS[t] for t in text] == [b"abc", b"abc", b"x", b""] and offers == () and matcher.is_terminated()
    )
    assert Forced().open(start([1])).cursor() is None
    # A token that was forced at one place is not proposed at the next place.
    grammar = sg.Compiler(VOCABULARY).regex("abc[xyz]12")
    session, matcher = Forced().open(Start([1], VOCABULARY, grammar, 0.0, None)), grammar.matcher()
    for text, forced in ((b"", [b"abc"]), (b"abc", []), (b"x", [b"12"])):
        assert matcher.accept_bytes(text)
        found = session.cursor().children(Here(matcher, matcher.num_steps))
        assert [TEXTS[t] for t, _ in found] == forced
    # A token is certain if the mask has no other. Of `ab`, `a` could come first; behind `z` only `x` may
    # stand.
    grammar = sg.Compiler(VOCABULARY).regex("ab(zx)?")
    session, matcher = Forced().open(Start([1], VOCABULARY, grammar, 0.0, None)), grammar.matcher()
    for text, certain in ((b"", False), (b"abz", True), (b"x", True)):
        assert matcher.accept_bytes(text)
        ((token, p),) = session.cursor().children(Here(matcher, matcher.num_steps))
        mask = sg.allocate_bitmask(1, len(TEXTS))
        matcher.fill_bitmask(mask)
        assert matcher.validate_tokens([token]) == 1 and (p == 1.0) == certain
        assert certain == (sum(bin(w & 0xFFFFFFFF).count("1") for w in mask[0].tolist()) == 1)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text('ab"\\\u00e9 ,:{}[]', max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES, st.booleans(), st.sampled_from([*SCHEMAS, {"properties": {"a": {"$ref": "#"}}}]))
@settings(max_examples=cases(150), deadline=None)
def test_the_reader_follows_every_json_text(value: Any, spaced: bool, schema: Any) -> None:
    """At every byte of a JSON text the reader has a state, at the end no value is open, and guesses never
    raise."""
    shapes = Shapes(schema)
    text = json.dumps(value, separators=(", ", ": ") if spaced else (",", ":"), ensure_ascii=False).encode()
    state: State | None = State("value", (), shapes.of(schema))
    for i in range(len(text)):
        state = read(state, text[i : i + 1], shapes)
        assert state is not None, text[: i + 1]
        predictions(state, shapes, spaced)
    assert state is not None and not state.stack and state.mode in ("after", "scalar")


@given(st.binary(max_size=30))
@settings(max_examples=cases(150), deadline=None)
def test_the_reader_survives_any_bytes(text: bytes) -> None:
    shapes = Shapes(SCHEMAS[0])
    state: State | None = State("value", (), shapes.of(SCHEMAS[0]))
    for i in range(len(text)):
        state = read(state, text[i : i + 1], shapes)
        if state is None:
            return
        predictions(state, shapes)


@pytest.mark.parametrize(
    ("before", "guess"),
    [
        ("", '{"a":'),
        ('{"a', '":'),
        ('{"a":1', ',"b":"'),
        ('{"a":1,"', 'b":"'),
        ('{"a":1,"b":', '"x"'),
        ('{"a":1,"b":"y', 'y"'),
        ('{"a":1,"b":"x"', ',"c":{"d":["'),
        ('{"a":1,"c":{', '"d":["'),
        ('{"a":1,"c":{"d":["q"]', "}"),
        ('{"a":1,"c":{"d":["q"', ',"'),
        ('{"a":1,"f":t', "rue"),
        ('{"z":0,"', 'a":'),
    ],
)
def test_guesses_follow_the_schema(before: str, guess: str) -> None:
    schema = {
        "properties": {
            "a": {"type": "integer"},
            "b": {"enum": ["x", "yy"]},
            "c": {"$ref": "#/$defs/c"},
            "f": {"type": ["null", "boolean"]},
        },
        "$defs": {"c": {"allOf": [{"properties": {"d": {"items": {"type": "string"}, "type": "array"}}}]}},
    }
    shapes = Shapes(schema)
    state = read(State("value", (), shapes.of(schema)), before.encode(), shapes)
    assert state is not None
    found = dict(predictions(state, shapes))
    assert guess.encode() in found, found


@pytest.mark.parametrize("type_", [True, 2147483648, {"a": 1}, None, [1]])
def test_a_schema_with_a_broken_type_has_a_shape(type_: Any) -> None:
    """The grammar ignores a `type` of a wrong kind. The draft must not fail such a request."""
    shapes = Shapes({"properties": {"a": {"type": type_}}, "type": type_})
    assert [name for name, _ in shapes.of({"properties": {"a": {"type": type_}}}).names] == ["a"]
    assert shapes.of({"type": type_}).kinds == ()


def test_the_shape_of_a_schema_that_doubles_is_found_at_once() -> None:
    """20 parts on each of 8 levels are 25,600,000,000 paths."""
    definitions = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 20} for i in range(9)}
    begin = time.perf_counter()
    Shapes({"$defs": definitions}).of({"$ref": "#/$defs/d0"})
    assert time.perf_counter() - begin < 5


def test_schema_order_drafts_names_and_reads_habits() -> None:
    schema = {"type": "object", "properties": {"abc": {"type": "integer"}, "b": {"type": "string"}}}
    session = SchemaOrder().open(start([1], schema))
    assert VOCABULARY.decode(drafted(session, 20)) == b'{"abc":'
    follow(session, VOCABULARY.encode('{"abc": 12'))
    session.accept(Step(VOCABULARY.encode(', "')))
    assert VOCABULARY.decode(drafted(session, 9)).startswith(b'b": "')
    for other in (None, {"type": "integer"}):
        assert drafted(SchemaOrder().open(start([1], other)), 5) == []
    pattern = sg.Compiler(VOCABULARY).regex("ab+")
    assert SchemaOrder().open(Start([1], VOCABULARY, pattern, 0.0, None)).cursor() is None
