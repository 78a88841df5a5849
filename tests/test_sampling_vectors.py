"""Vectors in blocks: the law does not depend on the blocks, bits do not depend on the order, and memory is
counted."""

from __future__ import annotations

import itertools
import math
import weakref
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles.sampling_laws import ASAP, EXACT, IMPORTANCE, cars_is_exact, case, proper
from oracles.sampling_oracle import (
    CORRECTED,
    DRAWING,
    TableModel,
    brute_force,
    choice,
    every_outcome,
    large,
    target,
    trained,
)
from structgen.sampling import Predicate, sample, vector
from structgen.sampling.logspace import NEVER, logsumexp
from structgen.sampling.trie import Trie
from structgen.sampling.vector import Urn, Vector
from structgen.sampling.walk import Mode, Walker


@pytest.fixture(params=[1, 2, 3])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(vector, "BLOCK", request.param)
    return int(request.param)


def made(seed: int, size: int, spread: float = 3.0, shaped: bool = False) -> Vector:
    random = np.random.default_rng(seed)
    raw = (random.normal(size=size) * spread).astype(np.float32)
    factor = -random.exponential(size=size) if shaped else None
    shift = float(np.logaddexp.reduce(raw.astype(np.float64))) + 0.5
    return Vector(np.arange(size, dtype=np.int32) * 3, raw, shift, factor)


def law(choose: Any) -> dict[int, float]:
    found: dict[int, float] = defaultdict(float)
    for probability, slot in every_outcome(choose):
        found[slot] += probability
    return dict(found)


def test_factors_in_blocks_are_factors_on_the_whole(blocks: int) -> None:
    for seed in range(20):
        row = made(seed, 1 + seed % 8, shaped=bool(seed % 2))
        urn, factors = Urn(row), np.zeros(len(row))
        random = np.random.default_rng(seed)
        for _ in range(12):
            slot = int(random.integers(len(row)))
            factor = float(random.choice([0.0, -0.1, -2.0, -12.0, NEVER]))
            urn.set(slot, factor)
            factors[slot] = factor
            dense = row.scores() + factors
            assert urn.log_total() == pytest.approx(logsumexp(dense), abs=1e-12)
            if logsumexp(dense) == NEVER:
                continue
            weights = np.exp(dense - logsumexp(dense))
            found = law(urn.choose)
            assert found.keys() == {int(i) for i in np.flatnonzero(weights)}
            for at, p in found.items():
                assert p == pytest.approx(weights[at], abs=1e-12)
                assert urn.weight(at) / urn.total() == pytest.approx(weights[at], abs=1e-12)
        plain = np.exp(row.scores() - row.log_mass)
        assert law(row.choose) == pytest.approx(dict(enumerate(plain)), abs=1e-12)
        assert row.entropy == pytest.approx(-(plain * np.log(plain)).sum(), abs=1e-9)


def test_the_same_factors_give_the_same_bits(blocks: int) -> None:
    """A trie's sums are not stored in its file. The reader computes the sums again, and every bit must be
    equal."""
    settings = [(0, -1.0), (2, -0.5), (4, NEVER), (3, -1e-17)]
    totals = set()
    for order in itertools.permutations(settings):
        urn = Urn(made(3, 6))
        urn.set(1, -4.0)
        for slot, factor in order:
            urn.set(slot, factor)
            urn.log_total()
        urn.set(1, 0.0)
        totals.add((urn.total(), urn.log_total()))
    assert len(totals) == 1


def test_factors_too_small_for_a_double_still_count(blocks: int) -> None:
    row = made(5, 5)
    urn = Urn(row)
    factors = np.array([-900.0, -901.0, NEVER, -905.0, -2000.0])
    for slot, factor in enumerate(factors):
        urn.set(slot, float(factor))
    dense = row.scores() + factors
    assert urn.log_total() == pytest.approx(logsumexp(dense), rel=1e-12)
    weights = np.exp(dense - logsumexp(dense))
    for slot, p in law(urn.choose).items():
        assert p == pytest.approx(weights[slot], abs=1e-12)


def test_a_copy_goes_its_own_way(blocks: int) -> None:
    urn = Urn(made(1, 6))
    urn.set(0, -1.0)
    twin, before = urn.copy(), urn.total()
    twin.set(1, NEVER)
    twin.set(0, NEVER)
    assert twin.total() < urn.total() == before


@pytest.mark.parametrize("seed", range(3))
def test_walks_over_many_blocks_keep_their_laws(blocks: int, seed: int) -> None:
    found, wanted = case(seed)
    for draws in (0, 2, 6):
        trie = trained(found, draws, seed)
        proper(found, trie, IMPORTANCE, wanted)
        proper(found, trie, ASAP, wanted)
        cars_is_exact(found, trie, wanted)


def test_awrs_over_many_blocks_keeps_its_law(blocks: int) -> None:
    lm = TableModel(21)
    texts = ["a", "ab", "b", "ba", "ca", "bb"]
    rule = Predicate(lambda text: "c" not in text, at="token", monotone=True)
    law = target(lm, choice(lm, texts), potential=rule, max_tokens=4)
    wanted = brute_force(lm, {t.encode() for t in texts if "c" not in t}.__contains__, 4)
    for extra in (1, 2):
        proper(law, trained(law, 2), Mode(bounds=True, learns=True, extra=extra), wanted)


def test_a_planted_block_bug_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: after a bound changed, a block keeps its old total."""
    monkeypatch.setattr(vector, "BLOCK", 2)
    law, wanted = case(0)
    honest = Urn.set

    def stale(self: Urn, slot: int, factor: float) -> None:
        honest(self, slot, factor)
        self._stale.clear()

    proper(law, trained(law, 3), ASAP, wanted)
    monkeypatch.setattr(Urn, "set", stale)
    with pytest.raises(AssertionError):
        proper(law, trained(law, 3), ASAP, wanted)


# A large vocabulary.


def test_memory_of_a_large_vocabulary() -> None:
    """Four bytes per token: equal masks share their ids, and no other array is as long as the vocabulary.

    The condition asks about single tokens. Without a condition, vectors are thin."""
    lm = large()
    grammar = sg.Compiler(lm.vocabulary).regex('"[a-z0-9]{0,200}"')
    rule = Predicate(lambda text: "zz" not in text, at="token", monotone=True)
    found = sample(lm, [], grammar, method="asap", n=6, seed=0, max_tokens=12, potential=rule)
    wide = sum(1 for node in found.trie.nodes() if len(node.row) > 10_000)
    assert wide >= 20
    assert found.trie.bytes < wide * 20_000 * 5 + len(found.trie) * 5_000
    held = {id(node.row.ids) for node in found.trie.nodes() if len(node.row) > 10_000}
    assert len(held) <= 6, "masks of one state are one array"
    for node in found.trie.nodes():
        arrays = [node.row.raw, node.row.totals, node.row._sums]
        assert sum(a.nbytes for a in arrays if a is not None) <= node.nbytes


def test_what_is_evicted_is_no_longer_counted() -> None:
    lm = large(2_000)
    grammar = sg.Compiler(lm.vocabulary).regex('"[a-z0-9]{0,200}"')
    trie = Trie(max_bytes=200_000)
    sample(lm, [], grammar, method="asap", n=30, seed=0, max_tokens=12, trie=trie)
    assert trie.evicted > 0 and trie.bytes <= trie.max_bytes
    shared = {id(node.row.ids): node.row.ids.nbytes for node in trie._nodes}
    assert trie.bytes == sum(trie._nodes.values()) + sum(shared.values())
    # The trie measures a node's bytes when it touches the node. If a bound is later taken back, the node is a
    # little smaller than measured.
    assert sum(trie._nodes.values()) == pytest.approx(sum(node.nbytes for node in trie._nodes), rel=0.1)
    assert trie._users == {key: sum(id(n.row.ids) == key for n in trie._nodes) for key in shared}


@pytest.mark.parametrize("method", DRAWING)
def test_walks_hold_no_vectors_that_the_trie_let_go(method: Any) -> None:
    """A walk keeps only the path of its text. So the vectors in memory stay within the limit while particles,
    chains and finished draws live."""
    lm = large(2_000)
    grammar = sg.Compiler(lm.vocabulary).regex('"[a-z0-9]{0,200}"')
    trie = Trie(max_bytes=100_000)
    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    honest = Vector.__init__

    class Counted(Vector):
        __slots__ = ("__weakref__",)

        def __init__(self, *args: Any, **how: Any) -> None:
            honest(self, *args, **how)
            alive.add(self)

    rule = Predicate(lambda t: "q" not in t, at="token", monotone=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("structgen.sampling.target.Vector", Counted)
        most = 0
        expand = Walker.expand

        def watched(self: Walker, walks: Any) -> None:
            nonlocal most
            most = max(most, sum(v.nbytes for v in alive))
            expand(self, walks)

        patch.setattr(Walker, "expand", watched)
        how = {"max_trials": 60, "steps": 4, "potential": rule if method == "awrs" else None}
        sample(lm, [], grammar, method=method, n=24, seed=0, max_tokens=40, trie=trie, batch=4, **how)
    assert trie.evicted > 10
    # The vectors of one step of all walks may exceed the limit until the trie is shrunk.
    assert most < trie.max_bytes + 26 * 10_000


@pytest.mark.parametrize("method", CORRECTED)
def test_forgotten_vectors_change_no_law(method: Any) -> None:
    """The limit holds only a few nodes, so the trie evicts the others during the run. The law of the texts
    stays right."""
    lm = TableModel(7, sharp=0.5)
    texts = [x + y for x in "abc" for y in "abc"]
    wanted: dict[str, float] = defaultdict(float)
    for tokens, p in brute_force(lm, {t.encode() for t in texts}.__contains__, 4).items():
        wanted[lm.vocabulary.decode(tokens[:-1]).decode()] += p
    z = sum(wanted.values())
    count = 300 if method == "mcmc" else 500
    for proposal in ("restart", "priority") if method == "mcmc" else ("restart",):
        found = sample(
            lm, [], choice(lm, texts), method=method, n=count, seed=1, max_tokens=4,
            trie_bytes=4500, max_trials=10**6, budget="reject", proposal=proposal, steps=12,
        )  # fmt: skip
        assert found.trie.evicted >= 10
        posterior = found.posterior()
        assert 0.5 * sum(abs(posterior.get(t, 0.0) - p / z) for t, p in wanted.items()) < 0.1


def test_a_draw_does_not_pass_over_the_vocabulary() -> None:
    """A draw from a known vector reads one block of the vector, and one total of each other block."""
    row = made(0, 100_000)
    read: list[int] = []
    honest = Vector.scores

    class Watched(Vector):
        def scores(self, begin: int = 0, stop: int | None = None) -> Any:
            found = honest(self, begin, stop)
            read.append(len(found))
            return found

    row = Watched(row.ids, row.raw, row.shift)
    urn = Urn(row)
    for slot in range(0, 100_000, 5_000):
        urn.set(slot, -1.0)
    read.clear()
    from structgen.sampling.chance import Seeds

    stream = Seeds(0).stream(0, 0)
    for _ in range(10):
        urn.choose(stream)
        urn.set(77, -2.0)
        urn.log_total()
    assert max(read) <= vector.BLOCK and sum(read) <= (20 + 2 * 10) * vector.BLOCK
    assert math.isfinite(urn.log_total()) and EXACT > 0
