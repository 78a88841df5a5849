"""`sg.search` compared with brute force: the order, limits, continued searches, and a replayed tree
search."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles import harness
from oracles.sampling_oracle import END, TableModel, brute_force, choice, random_language
from structgen.errors import StructgenError
from structgen.lm import embedded
from structgen.sampling import Partial, Predicate, Searched, Standing

TEXTS = ["", "a", "ab", "abc", "b", "ca", "cab", "ccc", "bb", "bca"]


def language(lm: TableModel, texts: list[str] = TEXTS) -> list[tuple[float, tuple[int, ...]]]:
    """Returns each text by its most probable token string; the most probable text comes first."""
    found = brute_force(lm, {t.encode() for t in texts}.__contains__, 6)
    ranked = sorted(((math.log(p), s) for s, p in found.items()), key=lambda item: (-item[0], item[1]))
    best: dict[bytes, tuple[float, tuple[int, ...]]] = {}
    for one in ranked:
        best.setdefault(lm.vocabulary.decode(list(one[1][:-1])), one)
    return list(best.values())


def search(lm: TableModel, texts: list[str] = TEXTS, **how: Any) -> Searched:
    return sg.search(lm, [], choice(lm, texts), **{"max_tokens": 6, "budget": "reject", **how})


def shape(found: Searched) -> list[tuple[Any, ...]]:
    """Returns all results of a search except the time."""
    names = ("tokens", "rank", "opened", "rest", "visits", "total", "best", "closed", "ended")
    engine = found._engine
    return [
        *((p.path, *(getattr(p, name) for name in names)) for p in engine.places),
        tuple(engine.texts.items()),
        tuple(sorted(engine.frontier)),
        (found.steps, found.tokens, found.forwards),
    ]


@pytest.mark.parametrize("branch", [1, 2, None])
@pytest.mark.parametrize("seed", range(6))
def test_the_most_probable_texts_come_in_order(seed: int, branch: int | None) -> None:
    lm = TableModel(seed)
    texts = random_language(seed, size=8)
    wanted = language(lm, texts)
    found = search(TableModel(seed), texts, n=5, branch=branch)
    assert [tuple(c.tokens) for c in found] == [s for _, s in wanted[:5]]
    assert [c.score for c in found] == pytest.approx([p for p, _ in wanted[:5]], abs=1e-5)
    assert all(c.certified for c in found) and found.stopped in ("done", "exhausted")
    # A search in parts: texts that are certified before the end are right, and some texts are not certified
    # yet.
    part = search(TableModel(seed), texts, n=5, branch=branch, forwards=2)
    for candidate, (_, tokens) in zip(part, wanted, strict=False):
        assert not candidate.certified or tuple(candidate.tokens) == tokens


def best_below(lm: TableModel, texts: list[str], factor: float = 1.0) -> Any:
    """h is the log-probability of the best text behind a prefix; returns `factor` times h."""
    wanted = language(lm, texts)

    def h(seen: Partial) -> float:
        below = [p for p, s in wanted if s[: len(seen.tokens)] == seen.tokens]
        return factor * (max(below) - seen.logprob) if below else -1e9

    return h


def test_an_admissible_h_saves_forwards_and_keeps_the_order() -> None:
    saved = wrong = 0
    for seed in harness.seeds(12):
        lm = TableModel(seed)
        wanted = [s for _, s in language(lm)]
        plain = search(TableModel(seed), n=3)
        for factor in (1.0, 0.5):
            led = search(TableModel(seed), n=3, method="a*", heuristic=best_below(lm, TEXTS, factor))
            assert [tuple(c.tokens) for c in led] == wanted[:3]
            assert led.forwards <= plain.forwards
            saved += plain.forwards - led.forwards
        # The heuristic h is too low, which breaks an assumption of A*. The order of results must become
        # wrong, so the test of the order can fail.
        misled = search(TableModel(seed), n=3, method="a*", heuristic=best_below(lm, TEXTS, 6.0))
        wrong += [tuple(c.tokens) for c in misled] != wanted[:3]
    assert saved > 0 and wrong > 0


def test_conditions_and_potentials_are_part_of_the_order() -> None:
    rule = Predicate(lambda t: "b" not in t, at="token", monotone=True)
    for seed in range(4):
        lm = TableModel(seed)
        wanted = [s for _, s in language(lm) if b"b" not in lm.vocabulary.decode(list(s[:-1]))]
        found = search(TableModel(seed), n=20, potential=rule)
        assert [tuple(c.tokens) for c in found] == wanted and found.stopped == "exhausted"
        asked = search(TableModel(seed), n=20, potential=lambda t: "b" not in t)
        assert [c.tokens for c in asked] == [c.tokens for c in found]


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"branch": 2},
        {"batch": 4},
        {"method": "adaptive", "decisive": 0.2, "n": 4},
        {"method": "value", "score": lambda s: len(s.text)},
        {"method": "a*", "score": lambda s: s.logprob, "block": ["c", "b"], "branch": 3},
        {"method": "mcts", "reward": lambda s: len(s.text) / 3},
        {"method": "mcts", "reward": lambda s: "c" in s.text, "rollout": "sample", "backup": "mean"},
    ],
)
@pytest.mark.parametrize("limit", ["forwards", "tokens", "steps"])
def test_a_search_in_parts_is_the_search_in_one_go(how: dict[str, Any], limit: str, tmp_path: Path) -> None:
    how = {"n": 6, "seed": 3, "steps": 30, "forwards": None, **how}
    whole = search(TableModel(5), **how)
    lm = TableModel(5)
    part = search(lm, **{**how, limit: 1})
    file = tmp_path / "search.json"
    for turn in range(400):
        if part.stopped in ("done", "exhausted") or part.steps >= 30:
            break
        room: dict[str, int | None] = {"steps": 30 - part.steps, "tokens": None, "forwards": None}
        room[limit] = 1 + turn % 40 if limit == "tokens" else 1
        if turn % 3 == 2:  # the search continues from a file with the known vectors
            part.save(file)
            part = search(lm, **{**how, **room}, resume=file, trie=part.trie)
        else:
            part = part.resume(**room)
    assert shape(part) == shape(whole)


def test_limits_are_never_exceeded_and_forwards_are_spent_to_the_last() -> None:
    for how in ({}, {"method": "mcts", "reward": lambda s: 0.0}, {"method": "adaptive", "decisive": 0.0}):
        for most in (0, 1, 2, 5, 9):
            lm = TableModel(1)
            found = search(lm, n=50, forwards=most, **how)
            assert len(lm.asked) == found.forwards <= most
            assert found.stopped == "forwards" and found.forwards == most
            lm = TableModel(1)
            found = search(lm, n=50, tokens=most, **how)
            assert found.tokens <= most and found.stopped == "tokens"
            assert search(TableModel(1), n=50, steps=most, **how).steps == most
    late = search(TableModel(1), n=50, seconds=0.0)
    assert late.stopped == "seconds" and late.forwards == 0 and list(late) == []
    with pytest.raises(ValueError, match="forwards must be at least 0"):
        search(TableModel(1), forwards=-1)


class Replay:
    """A second implementation of tree search over a table, with plain dictionaries, without the engine or a
    trie."""

    def __init__(self, lm: TableModel, texts: list[str], explore: float, mean: bool) -> None:
        self.lm, self.texts, self.explore, self.mean = lm, {t.encode() for t in texts}, explore, mean
        self.visits: dict[tuple[int, ...], int] = {}
        self.rewards: dict[tuple[int, ...], list[float]] = {}
        self.children: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        self.closed: set[tuple[int, ...]] = set()

    def allowed(self, u: tuple[int, ...]) -> dict[int, float]:
        text = self.lm.vocabulary.decode(list(u))
        row = self.lm.vector(u).astype(float)
        found = {}
        for token in range(5):
            more = text + self.lm.vocabulary.token_bytes(token)
            fits = text in self.texts if token == END else any(t.startswith(more) for t in self.texts)
            if fits:
                found[token] = row[token]
        total = math.log(sum(math.exp(x) for x in found.values()))
        return {token: x - total for token, x in found.items()}

    def reward(self, u: tuple[int, ...]) -> float:
        while not u or u[-1] != END:
            row = self.allowed(u)
            u = (*u, max(row, key=lambda t: row[t]))
        return len(self.lm.vocabulary.decode(list(u[:-1]))) / 3

    def iterate(self) -> None:
        path: list[tuple[int, ...]] = [()]
        while path[-1] in self.children:
            at = path[-1]
            prior = self.allowed(at)

            def appeal(child: tuple[int, ...], at: tuple[int, ...] = at, prior: Any = prior) -> float:
                seen = self.rewards.get(child, [])
                value = (sum(seen) / len(seen) if self.mean else max(seen)) if seen else 0.0
                bonus = self.explore * math.exp(prior[child[-1]]) * math.sqrt(self.visits[at])
                return value + bonus / (1 + self.visits.get(child, 0))

            path.append(max((c for c in self.children[at] if c not in self.closed), key=appeal))
        leaf = path[-1]
        ended = bool(leaf) and leaf[-1] == END
        if not ended:
            row = self.allowed(leaf)
            self.children[leaf] = [(*leaf, t) for t in sorted(row, key=lambda t: (-row[t], t))]
        reward = self.reward(leaf)
        for at in reversed(path):
            self.visits[at] = self.visits.get(at, 0) + 1
            self.rewards.setdefault(at, []).append(reward)
            if (at and at[-1] == END) or all(c in self.closed for c in self.children[at]):
                self.closed.add(at)


@pytest.mark.parametrize("backup", ["max", "mean"])
def test_tree_search_is_what_its_definition_says(backup: str) -> None:
    for seed, explore in ((0, 1.0), (1, 0.3), (2, 4.0)):
        lm = TableModel(seed)
        replay = Replay(lm, TEXTS, explore, backup == "mean")
        for steps in range(1, 25):
            if () in replay.closed:
                break
            replay.iterate()
            found = search(
                TableModel(seed), method="mcts", reward=lambda s: len(s.text) / 3, branch=None,
                explore=explore, backup=backup, steps=steps,
            )  # fmt: skip
            made = {p.path: p for p in found._engine.places if p.visits}
            assert {path: p.visits for path, p in made.items()} == replay.visits
            for path, place in made.items():
                assert place.total == pytest.approx(sum(replay.rewards[path]))
                assert place.best == pytest.approx(max(replay.rewards[path]))


def test_tree_search_ends_when_all_is_seen_and_finds_what_is_best() -> None:
    lm = TableModel(0)
    found = search(lm, method="mcts", reward=lambda s: len(s.text) / 3, branch=None, n=100)
    assert found.stopped == "exhausted"
    assert {tuple(c.tokens) for c in found} == {s for _, s in language(lm)}
    assert found[0].score == 1.0 and not found[0].certified and found.bound == math.inf
    early = search(TableModel(0), method="mcts", reward=lambda s: len(s.text) / 3, enough=1.0)
    assert early.stopped == "done" and early.forwards <= found.forwards


def test_a_value_looks_at_siblings_only_where_the_model_is_unsure() -> None:
    for seed in range(5):
        narrow = search(TableModel(seed), method="value", score=lambda s: -len(s.tokens), decisive=99.0)
        assert all(len(p.children) <= 1 for p in narrow._engine.places)
        wide = search(
            TableModel(seed), method="value", score=lambda s: -len(s.tokens), decisive=0.0, branch=5, n=50
        )
        assert wide.stopped == "exhausted" and not wide[0].certified
        assert wide[0].score == -1  # -1 is the score of the shortest text
        some = search(TableModel(seed), method="value", score=lambda s: -len(s.tokens), decisive=0.8, n=50)
        for place in some._engine.places:
            if place.children and place.walk is not None and len(place.walk.node.row) > 1:
                assert (len(place.children) == 1) == (place.walk.node.row.entropy < 0.8)


def test_adaptive_is_greedy_where_sure_and_compares_where_not() -> None:
    better = 0
    for seed in range(20):
        greedy = search(TableModel(seed), method="adaptive", decisive=99.0)
        assert greedy.forwards <= 5
        # The best first token is the one with the largest sum of its log-probability and the next two greedy
        # log-probabilities.
        paused = search(TableModel(seed), method="adaptive", decisive=0.0, branch=5, lookahead=6)
        better += paused[0].logprob > greedy[0].logprob + 1e-9
        assert paused[0].logprob >= greedy[0].logprob - 1e-6
    assert better > 3


def test_progress_is_told_and_may_stop() -> None:
    seen: list[Standing] = []
    found = search(TableModel(0), n=4, progress=seen.append)
    assert [s.steps for s in seen] == list(range(1, found.steps + 1))
    assert all(a.bound >= b.bound - 1e-12 for a, b in zip(seen, seen[1:], strict=False))
    assert search(TableModel(0), n=4, progress=lambda s: s.steps < 2).stopped == "progress"


def test_the_tree_is_drawn() -> None:
    found = search(TableModel(0), ["<b>", "<i>"] and ["ab", "ac", "c"], n=3)
    text = str(found.tree)
    assert "<end>" in text and "f " in text
    page = found.tree.html()
    assert page.count("<details") == page.count("</details>") and "&lt;end&gt;" in page
    assert "http" not in page
    many = search(TableModel(0), method="mcts", reward=lambda s: 0.5, steps=9)
    assert "visits 9, best 0.5" in str(many.tree)
    assert "Searched(" in repr(found) and "<details" in found._repr_html_()


def test_mistakes_are_named(tmp_path: Path) -> None:
    for how, words in [
        ({"method": "mcts"}, "needs reward="),
        ({"method": "value"}, "needs score= or heuristic="),
        ({"method": "dfs"}, "method is one of best, "),
        ({"branch": 0}, "branch must be at least 1"),
        ({"block": ["."], "branch": None}, "branch= says how many"),
        ({"n": 0}, "n must be at least 1"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"method": "value", "score": lambda s: math.nan}, "is no number"),
    ]:
        with pytest.raises(ValueError, match=words):
            search(TableModel(0), **how)
    with pytest.raises(TypeError, match="did you mean forwards="):
        search(TableModel(0), forward=3)
    found = search(TableModel(0), forwards=2)
    found.save(tmp_path / "s")
    with pytest.raises(StructgenError, match="another setting of the method"):
        search(TableModel(0), resume=tmp_path / "s", branch=3)
    with pytest.raises(StructgenError, match="another grammar: go on with what it was begun with"):
        search(TableModel(0), ["a"], resume=tmp_path / "s")
    with pytest.raises(StructgenError, match="another max_tokens"):
        search(TableModel(0), max_tokens=4, resume=tmp_path / "s")
    with pytest.raises(StructgenError, match="another temperature, top_k or top_p: go on"):
        search(TableModel(0), top_k=2, resume=tmp_path / "s")
    with pytest.raises(StructgenError, match="another vocabulary"):
        search(TableModel(0, [b"a", b"b", b"ab", b"cc", b""]), ["ab"], resume=tmp_path / "s")
    with pytest.raises(StructgenError, match="another set of scores"):
        search(TableModel(0), resume=tmp_path / "s", heuristic=lambda s: 0.0)
    with pytest.raises(StructgenError, match="other settings"):
        search(TableModel(0), resume=found, seed=1)
    with pytest.raises(StructgenError, match="another grammar"):
        search(TableModel(0), ["a"], resume=found)
    with pytest.raises(FileNotFoundError):
        search(TableModel(0), resume=tmp_path / "none")


def test_another_model_is_recognised(tmp_path: Path) -> None:
    for forwards in (1, 3, 9):
        found = search(TableModel(0), forwards=forwards)
        found.save(tmp_path / "s")
        for resume in (found, tmp_path / "s"):
            with pytest.raises(StructgenError, match="another model, which gave other probabilities after '"):
                search(TableModel(1), resume=resume)
            assert search(TableModel(0), resume=resume).stopped == "done"
    # the search saw no vector, so any model may continue it
    search(TableModel(0), forwards=0).save(tmp_path / "s")
    assert search(TableModel(1), resume=tmp_path / "s").stopped == "done"


@pytest.mark.parametrize("method", ["best", "mcts", "adaptive", "a*"])
def test_a_search_with_one_forward_a_run_gets_to_its_end(method: Any, tmp_path: Path) -> None:
    """A search continues from file to file, one forward pass a run, without stored vectors. It counts as many
    forward passes as one uninterrupted run."""
    how: dict[str, Any] = {"method": method, "n": 4, "seed": 2, "steps": 40}
    if method == "mcts":
        how |= {"reward": lambda s: len(s.text) / 3, "rollout": "sample"}
    elif method == "a*":
        how |= {"score": lambda s: s.logprob, "block": ["c"], "branch": 3}
    elif method == "adaptive":
        how |= {"decisive": 0.2}
    whole = search(TableModel(5), **how, forwards=None)
    file = tmp_path / "search.json"
    part = search(TableModel(5), **how, forwards=1)
    for _ in range(whole.forwards + 3):
        part.save(file)
        left = {**how, "steps": 40 - part.steps}
        if not left["steps"] or part.stopped in ("done", "exhausted"):
            break
        part = search(TableModel(5), **left, forwards=1, resume=file)
    assert shape(part) == shape(whole)


def test_a_damaged_file_is_refused_or_harmless(tmp_path: Path) -> None:
    """Changes, drops and doubles bytes of a file. Then changes numbers and computes the digest anew."""
    from structgen.sampling.search_file import _digest

    random = np.random.default_rng(6)
    file, refused = tmp_path / "search.json", 0
    kinds: list[dict[str, Any]] = [
        {"n": 4, "steps": 6},
        {"n": 9, "steps": 7, "method": "mcts", "reward": lambda s: len(s.text) / 3},
    ]
    mutations = harness.cases(400)
    for trial in range(mutations):
        how = kinds[trial % 2]
        if trial < 2:
            search(TableModel(5), **how).save(tmp_path / f"{trial}")
        data = (tmp_path / f"{trial % 2}").read_bytes()
        if trial % 4 < 2:
            data = spoiled(data, random)
        else:
            state = json.loads(data)
            changed(state["search"], random)
            state["digest"] = _digest(state["search"])
            data = json.dumps(state).encode()
        file.write_bytes(data)
        try:
            search(TableModel(5), **{**how, "steps": 5, "forwards": 20}, resume=file)
        except StructgenError as error:
            refused += 1
            assert str(file) in str(error) or "saved search" in str(error) or "another model" in str(error)
    assert refused > 0.8 * mutations


def spoiled(data: bytes, random: np.random.Generator) -> bytes:
    at = int(random.integers(len(data)))
    size = int(random.integers(1, 40))
    return [
        data[:at] + bytes(random.integers(0, 256, size, dtype=np.uint8)) + data[at + size :],
        data[:at],
        data[:at] + data[at + size :],
        data[:at] + data[at : at + size] + data[at:],
        data[:at] + bytes([data[at] ^ (1 << int(random.integers(8)))]) + data[at + 1 :],
        b"[" * 100_000,
    ][int(random.integers(6)) if random.random() < 0.1 else int(random.integers(5))]


def changed(state: Any, random: np.random.Generator) -> None:
    """Changes one value inside a JSON value."""
    while True:
        keys = list(state) if isinstance(state, dict) else list(range(len(state)))
        key = keys[int(random.integers(len(keys)))]
        if isinstance(state[key], (dict, list)) and state[key] and random.random() < 0.9:
            state = state[key]
            continue
        other: list[Any] = [None, -1, 0, 1, 3, 10**30, 1.5, math.nan, math.inf, "x", [], {}, [[]], True]
        state[key] = other[int(random.integers(len(other)))]
        return


def test_a_limit_that_cut_texts_off_is_named() -> None:
    compiler = sg.Compiler(TableModel(0).vocabulary)
    with pytest.warns(RuntimeWarning, match="no text has weight"):
        found = sg.search(TableModel(0), [], compiler.regex("a{7,9}"), max_tokens=3)
    assert not len(found) and found.stopped == "exhausted"
    assert len(found.reasons) == 1
    assert "cannot be completed within 3 tokens; it takes 8," in found.reasons[0]
    short = sg.search(TableModel(0), [], compiler.regex("a{1,9}"), n=20, max_tokens=3)
    assert len(short) == 2 and "max_tokens=3 leaves out longer texts" in short.reasons[0]
    assert sg.search(TableModel(0), [], compiler.regex("a{1,2}"), n=20, max_tokens=3).reasons == []
    assert sg.search(TableModel(0), [], compiler.regex("a{1,9}"), n=1, max_tokens=3).reasons == []


def test_a_small_trie_changes_no_result() -> None:
    found = search(TableModel(3), n=6)
    small = search(TableModel(3), n=6, trie_bytes=4000)
    assert [c.tokens for c in small] == [c.tokens for c in found]
    assert small.forwards >= found.forwards


def test_the_best_slots_are_those_of_a_full_sort() -> None:
    from structgen.sampling.vector import Vector

    random = np.random.default_rng(0)
    for size in (1, 5, 700):
        raw = random.integers(0, 9, size).astype(np.float32)  # many values are equal
        row = Vector(np.arange(size, dtype=np.int32), raw, 12.0)
        wanted = sorted(range(size), key=lambda i: (-raw[i], i))
        for count in (1, 2, 4, 50, size, size + 3):
            assert row.best(count) == wanted[:count]


# ---- trees of another grammar or model ----


def test_a_tree_of_another_spelling_or_order_of_keys_is_refused(tmp_path: Path) -> None:
    """A search must refuse the tree of a grammar with another spelling or order of keys. The search once
    accepted the tree, whose brackets belonged to the other grammar and whose keys stood in a forbidden
    order."""
    ab = {"type": "object", "properties": {"a": {"enum": [1]}, "b": {"enum": [2]}}, "required": ["a", "b"]}
    ba = {**ab, "properties": dict(reversed(ab["properties"].items()))}
    made = sg.search(None, "p", ab, n=2, forwards=10)
    made.save(file := tmp_path / "search")
    tree = sg.sample(None, "p", ab, n=2, method="asap", seed=1).trie
    same: list[dict[str, Any]] = [{"schema": ab}, {"schema": json.dumps(ab, indent=2)}]
    others: list[dict[str, Any]] = [{"schema": ba}] + [
        {"schema": ab, **option}
        for option in (
            {"property_order": "any"},
            {"whitespace": "flexible"},
            {"numbers": "any"},
            {"strings": "any"},
            {"formats": "annotate"},
        )
    ]
    for given in others:
        with pytest.raises(sg.StructgenError, match="grammar"):
            sg.search(None, "p", n=2, forwards=10, resume=file, **given)
        with pytest.raises(sg.StructgenError, match="belongs to another target"):
            sg.sample(None, "p", n=2, method="asap", trie=tree, **given)
    for given in same:
        assert sg.sample(None, "p", n=2, method="asap", trie=tree, seed=1, **given)


def test_the_draft_model_is_another_model(tmp_path: Path) -> None:
    """The test compares a prefix at which target and draft model differ. At other prefixes, such as keys of a
    schema, both are certain."""
    schema = json.loads((Path(__file__).parents[1] / "examples" / "order.schema.json").read_text())
    prompt, draft = "I would like two blue shirts", embedded.path("draft")
    sg.search("embedded", prompt, schema, n=3, forwards=10).save(file := tmp_path / "search")
    with pytest.raises(sg.StructgenError, match="another model"):
        sg.search(draft, prompt, schema, n=3, forwards=10, resume=file)
    for method in ("cars", "importance"):
        tree = sg.sample("embedded", prompt, schema, n=4, method=method, seed=1).trie
        with pytest.raises(sg.StructgenError, match="another model"):
            sg.sample(draft, prompt, schema, n=2, method=method, trie=tree)


def test_a_reward_of_mcts_is_a_share() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        sg.search(None, "p", {"enum": [1, 2]}, method="mcts", reward=lambda _: 7.0, forwards=9)
