"""Thin vectors: the code that makes them is compared with plain numpy, and every law of the samplers holds
with almost no token kept."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles.sampling_laws import ASAP, IMPORTANCE, cars_is_exact, case, proper, weighted_sums
from oracles.sampling_oracle import (
    DRAWING,
    TableModel,
    brute_force,
    choice,
    every_outcome,
    large,
    target,
    trained,
)
from structgen.logits import brief_row
from structgen.sampling import (
    Predicate,
    beam_search,
    load_trie,
    mcmc,
    prepare,
    sample,
    save_trie,
    smc,
    vector,
)
from structgen.sampling.chance import Seeds
from structgen.sampling.walk import Walker


def by_hand(row: np.ndarray, bits: np.ndarray, most: int) -> tuple[Any, ...]:
    wide = row.astype(np.float64)
    allowed = np.flatnonzero(bits & (row > -np.inf))
    best = sorted(allowed, key=lambda i: (-row[i], i))[:most]
    top = wide[allowed].max()
    weights = np.exp(wide[allowed] - top) / np.exp(wide[allowed] - top).sum()
    held = weights[weights > 0]
    refused = np.where(bits, -np.inf, wide)
    return (
        np.sort(best),
        float(np.logaddexp.reduce(wide)),
        math.fsum(math.exp(wide[i] - top) for i in allowed if i not in set(best)),
        float(-(held * np.log(held)).sum()),
        int(refused.argmax()) if refused.max() > -np.inf else None,
    )


@pytest.mark.parametrize("spread", [0.1, 3.0, 20.0])
def test_a_row_in_brief_is_what_numpy_says(spread: float) -> None:
    random = np.random.default_rng(int(spread * 10))
    seen = 0
    for trial in range(120):
        size, most = int(random.integers(3, 3000)), int(random.integers(1, 40))
        row = (random.normal(size=size) * spread).astype(np.float32)
        row = np.round(row) if trial % 3 == 0 else row  # many values are equal
        row[random.random(size) < (0.3 if trial % 5 == 0 else 0.0)] = -np.inf
        bits = random.random(size) < random.choice([0.02, 0.5, 0.97, 1.0])
        mask = sg.allocate_bitmask(1, size)[0]
        padded = np.ones(mask.size * 32, np.uint8)  # the mask's bits behind the last token have no meaning
        padded[:size] = bits
        mask[:] = np.packbits(padded, bitorder="little").view(np.int32)
        found = brief_row(row, mask, most)
        if int((bits & (row > -np.inf)).sum()) <= most:
            assert found is None
            continue
        ids, shift, tail, entropy, lost = by_hand(row, bits, most)
        if found is None:
            assert tail == 0 or row.max() - row[bits].max() > 300
            continue
        seen += 1
        assert np.array_equal(found.ids, ids) and np.array_equal(found.values, row[ids])
        assert found.best == row[bits].max() and found.shift == pytest.approx(shift, abs=1e-12)
        assert found.tail == pytest.approx(tail, rel=1e-12, abs=1e-290)
        assert found.entropy == pytest.approx(entropy, abs=1e-10)
        assert (None if found.lost is None else found.lost[0]) == lost
    assert seen > 60


def test_a_row_that_is_no_case_for_it() -> None:
    full = np.full(4, -1, np.int32)
    for bad in (np.full(128, np.nan), np.full(128, -np.inf), np.full(128, np.inf)):
        assert brief_row(bad.astype(np.float32), full, 3) is None
    row = np.zeros(128, np.float32)
    row[7] = np.nan
    assert brief_row(row, full, 3) is None
    row[7] = 400.0
    no = full.copy()
    no[0] &= ~(1 << 7)
    # the probability of the allowed tokens underflows beside that of the forbidden tokens
    assert brief_row(row, no, 3) is None
    assert brief_row(row, np.zeros(4, np.int32), 3) is None


@pytest.fixture(params=[1, 2, 3])
def thin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(vector, "TOP", request.param)
    monkeypatch.setattr(vector, "THIN_FROM", 2)
    monkeypatch.setattr(vector, "THIN_TAIL", 1.0)
    return int(request.param)


def thinned(law: Any) -> Any:
    law.thin = True
    return law


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("draws", [0, 1, 3, 8])
def test_every_law_holds_with_thin_vectors(thin: int, seed: int, draws: int) -> None:
    law, wanted = case(seed)
    trie = trained(thinned(law), draws, seed)
    proper(law, trie, IMPORTANCE, wanted)
    proper(law, trie, ASAP, wanted)
    cars_is_exact(law, trie, wanted)
    total = math.log(sum(wanted.values()))
    assert trie.bracket[0] <= total + 1e-12 and total <= trie.bracket[1] + 1e-12


def test_populations_and_chains_hold_with_thin_vectors(thin: int) -> None:
    lm = TableModel(2, [b"a", b"b", b"c", b""], ends=(3,), sharp=1.0)
    texts = ["a", "b", "c", "cc"]
    law = thinned(target(lm, choice(lm, texts), max_tokens=3))
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 3)
    total = sum(wanted.values())
    options = smc.SmcOptions(ess_threshold=1.0, scheme="multinomial")

    def run(chance: Any) -> Any:
        class One:
            seed = 0

            def stream(self, purpose: int, index: int) -> Any:
                return chance

        found = smc.draw(Walker(law, trained(law, 0), 1), One(), 2, options)  # type: ignore[arg-type]
        return found

    evidence = sum(
        p * math.exp(found.log_evidence) for p, found in every_outcome(run) if found.log_evidence > -math.inf
    )
    assert evidence == pytest.approx(total, abs=1e-9)
    chains = mcmc.draw(Walker(law, trained(law, 0), 4), Seeds(0), 400, steps=12, proposal="priority")
    for tokens, p in wanted.items():
        share = sum(tuple(w.tokens) == tokens for w in chains.walks) / 400
        assert share == pytest.approx(p / total, abs=0.08)


def test_a_crowded_tail_gives_way_to_a_whole_vector(thin: int) -> None:
    lm = TableModel(3)
    texts = ["a", "ab", "b", "c", "ca", "cb", "bb"]
    law = thinned(target(lm, choice(lm, texts)))
    wanted = brute_force(lm, {t.encode() for t in texts}.__contains__, 5)
    trie = trained(law, 400)
    assert any(node.row.whole is not None for node in trie.nodes()) or thin == 3
    for node in trie.nodes():
        assert {t: e.slot for t, e in node.edges.items()} == {t: node.row.slot(t) for t in node.edges}
    proper(law, trie, ASAP, wanted)
    cars_is_exact(law, trie, wanted)
    assert trie.bracket[1] == pytest.approx(math.log(sum(wanted.values())), abs=1e-9)


def test_planted_bugs_of_thin_vectors_are_caught(thin: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        (Walker, "_from_tail", lambda self, walk, lot: first_of_the_tail(self, walk)),
        (vector.Urn, "_tail", lambda self: self.vector.tail),
    ]
    for where, name, bug in cases if thin < 3 else []:  # with three tokens kept, the tail is one token
        with monkeypatch.context() as patch:
            patch.setattr(where, name, bug)
            with pytest.raises(AssertionError):
                for seed in range(4):
                    law, wanted = case(seed)
                    trie = trained(thinned(law), 40)
                    proper(law, trie, ASAP, wanted)
                    cars_is_exact(law, trie, wanted)


def first_of_the_tail(walker: Walker, walk: Any) -> int:
    """Returns the bug: always the first token that was left out, without regard to weights."""
    row, whole = walk.node.row, walker.whole(walk)
    at = next(i for i, token in enumerate(whole.ids) if token not in row.ids)
    return int(row.keep(int(whole.ids[at]), float(whole.raw[at])))


@pytest.mark.parametrize("method", DRAWING)
def test_a_seed_repeats_whatever_the_batch_and_the_file(method: Any, thin: int, tmp_path: Path) -> None:
    lm, texts = TableModel(8), ["a", "ab", "b", "ca", "cab", "bb"]
    grammar = choice(lm, texts)
    alone = sample(lm, [], grammar, method=method, n=12, seed=5, batch=1, max_tokens=5)
    wide = sample(lm, [], grammar, method=method, n=12, seed=5, batch=8, max_tokens=5)
    assert [(s.tokens, s.log_weight) for s in alone] == [(s.tokens, s.log_weight) for s in wide]
    save_trie(alone.trie, tmp_path / "t")
    again = load_trie(tmp_path / "t")
    first = sample(lm, [], grammar, method=method, n=9, seed=6, max_tokens=5, trie=again)
    second = sample(lm, [], grammar, method=method, n=9, seed=6, max_tokens=5, trie=alone.trie)
    assert [(s.tokens, s.log_weight) for s in first] == [(s.tokens, s.log_weight) for s in second]


def test_a_search_and_a_condition_over_a_thin_trie_fetch_what_is_missing(thin: int) -> None:
    lm, texts = TableModel(8), ["a", "ab", "b", "ca", "cab", "bb"]
    grammar = choice(lm, texts)
    trie = sample(lm, [], grammar, method="cars", n=30, seed=1, max_tokens=5).trie
    assert any(node.row.thin for node in trie.nodes()) or thin > 1
    found = sg.search(lm, [], grammar, n=20, max_tokens=5, trie=trie)
    fresh = sg.search(lm, [], grammar, n=20, max_tokens=5)
    assert [c.tokens for c in found] == [c.tokens for c in fresh]
    trie = sample(lm, [], grammar, method="cars", n=30, seed=1, max_tokens=5).trie
    walker = prepare(lm, [], grammar, max_tokens=5, trie=trie)
    plain = prepare(lm, [], grammar, max_tokens=5)
    assert [f.tokens for f in beam_search(walker, 9)] == [f.tokens for f in beam_search(plain, 9)]
    rule = Predicate(lambda t: "c" not in t, at="token", monotone=True)
    law = thinned(target(lm, grammar, potential=rule))
    assert sum(weighted_sums(every_outcome(lambda c: one(law, c))).values()) > 0


def one(law: Any, chance: Any) -> list[Any]:
    walker = Walker(law, None, 1)
    walk = walker.start(chance, IMPORTANCE)
    walker.run([walk], IMPORTANCE)
    return [walk]


def test_a_prefix_takes_less_than_8_kb() -> None:
    lm = large()
    lm._sharp = 5.0
    grammar = sg.Compiler(lm.vocabulary).regex('"[a-z0-9]{0,200}"')
    for method in ("asap", "cars"):
        found = sample(lm, [], grammar, method=method, n=6, seed=0, max_tokens=12, max_trials=200)
        nodes = list(found.trie.nodes())
        held = [node for node in nodes if node.row.thin]
        assert len(held) >= 10
        assert found.trie.bytes / len(nodes) < 8192
