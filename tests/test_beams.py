"""The rule "beam": drafts come from a stochastic beam search, and recursive rejection verifies the drafts.
The tests enumerate every outcome with its probability.

Each node of the tree has the largest Gumbel number below it. So the beams of every level follow from the
order of all texts of the drafted depth, and drawing texts without replacement gives this order. The
enumeration visits every order and every outcome of the rule's coins.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles.enumerate import Scripted
from oracles.speculation_laws import drawn_by_the_law, exact_law
from oracles.speculative import OTHER, RandomModel
from structgen._draws import Noise
from structgen.generation import Drawing
from structgen.speculation import DraftModel, LogitNgrams, Speculation, StringDraft
from structgen.speculation.beams import GumbelBelow, stochastic_beams
from structgen.speculation.engine import Row
from structgen.speculation.rules import recursive
from structgen.speculation.sampled import SampledRun
from structgen.speculation.score import open_scorer

Path = tuple[int, ...]


class Ordered:
    """Gumbel numbers for a given order of all texts: a node's number is the place of the best text below
    it."""

    def __init__(self, order: list[Path]) -> None:
        self.order = order

    def __call__(self, path: Path, ids: Any, scores: Any, above: float) -> Any:
        return np.array([self._number((*path, int(i))) for i in ids])

    def _number(self, path: Path) -> float:
        return -min(i for i, text in enumerate(self.order) if text[: len(path)] == path)


def orders(texts: dict[Path, float]) -> Iterator[tuple[list[Path], float]]:
    """Yields every order of the texts with its probability under draws without replacement."""
    for order in itertools.permutations(texts):
        weight, left = 1.0, sum(texts.values())
        for text in order:
            weight *= texts[text] / left
            left = max(left - texts[text], 1e-300)
        yield list(order), weight


def texts_of(q: Any, depth: int) -> dict[Path, float]:
    found: dict[Path, float] = {(): 1.0}
    for _ in range(depth):
        found = {
            (*text, t): p * float(share)
            for text, p in found.items()
            for t, share in enumerate(q(text))
            if share > 0
        }
    return found


def one_step(p: Any, q: Any, width: int, depth: int, rule: Any = recursive) -> Counter:
    """Returns the law of the tokens that one step emits, followed by plain draws up to depth + 1 tokens."""
    law: Counter = Counter()
    for order, weight in orders(texts_of(q, depth)):
        children: dict[Path, list[int]] = {}

        def ask(path: Path, children: dict[Path, list[int]] = children) -> Any:
            children[path] = []
            return np.flatnonzero(q(path)), q(path)[q(path) > 0]

        def add(path: Path, token: int, children: dict[Path, list[int]] = children) -> Path:
            children[path].append(token)
            return (*path, token)

        stochastic_beams((), width, depth, ask, add, Ordered(order))
        waiting: list[list[int]] = [[]]
        while waiting:
            chance = Scripted(waiting.pop())
            text: Path = ()
            while len(text) <= depth:
                drafted = children.get(text)
                if drafted is None:
                    text = (*text, chance.draw(p(text)))
                else:
                    text = (*text, rule(p(text), q(text), drafted, chance)[0])
            waiting += chance.branches
            law[text] += weight * chance.weight
    return law


def table(seed: int, size: int, zero: bool = False) -> Any:
    """Returns a random law of the next token for every prefix."""

    def ask(text: Path) -> Any:
        random = np.random.default_rng([seed, len(text), *text])
        found = random.dirichlet(np.ones(size))
        if zero:  # the drafter never proposes one of the three tokens; another token at each prefix
            found[sum(text) % size] = 0.0
        return found / found.sum()

    return ask


CASES = [(2, 2, 1), (2, 2, 2), (2, 2, 3), (3, 1, 2), (3, 1, 3), (3, 2, 2), (4, 1, 3)]


def distance(found: Counter, p: Any, depth: int) -> float:
    want = texts_of(p, depth + 1)
    assert abs(sum(found.values()) - 1) < 1e-9
    return max(abs(found[t] - want.get(t, 0.0)) for t in found.keys() | want.keys())


@pytest.mark.parametrize(("size", "depth", "width"), CASES)
def test_texts_of_a_step_follow_the_target(size: int, depth: int, width: int) -> None:
    for seed in range(2 if size < 3 or depth < 2 else 1):
        p, q = table(seed, size), table(9 + seed, size, zero=size == 3)
        assert distance(one_step(p, q, width, depth), p, depth) < 1e-12


def test_planted_faults_are_found() -> None:
    """The check fails if children are reordered, or if children that the beam dropped count as drafted."""
    p, q = table(0, 3), table(9, 3)

    def by_probability(p: Any, q: Any, drafts: list[int], chance: Any) -> Any:
        return recursive(p, q, sorted(drafts, key=lambda t: -q[t]), chance)

    def first_alone_renormalised(p: Any, q: Any, drafts: list[int], chance: Any) -> Any:
        kept = np.zeros_like(q)
        kept[drafts] = q[drafts]
        return recursive(p, kept / kept.sum() if drafts else q, drafts, chance)

    for rule in (by_probability, first_alone_renormalised):
        assert distance(one_step(p, q, 2, 1, rule), p, 1) > 1e-3


def test_numbers_have_the_order_of_draws_without_replacement() -> None:
    """Two levels of conditioned numbers have the law of draws of whole texts; a parent's number is the
    largest of its children."""
    q = table(3, 2)
    want = {tuple(order): weight for order, weight in orders(texts_of(q, 2))}
    logs = [np.log(q(())), np.log(q((0,))), np.log(q((1,)))]
    numbers, found, count = GumbelBelow(np.random.default_rng(0)), Counter(), 20000
    for _ in range(count):
        top = numbers((), np.arange(2), logs[0], 0.0)
        assert top.max() == 0.0
        leaves = {}
        for token in range(2):
            scores = logs[0][token] + logs[1 + token]
            below = numbers((token,), np.arange(2), scores, top[token])
            assert below.max() == pytest.approx(top[token], abs=1e-9)
            leaves |= {(token, i): x for i, x in enumerate(below)}
        found[tuple(sorted(leaves, key=lambda t: -leaves[t]))] += 1
    for order, weight in want.items():
        assert abs(found[order] / count - weight) < 5 * np.sqrt(weight * (1 - weight) / count)
    # Log-probabilities far apart give neither overflow nor NaN.
    hard = numbers((), np.arange(3), np.array([-700.0, -1e-9, -1e4]), 300.0)
    assert np.isfinite(hard).all() and hard.max() == pytest.approx(300.0)
    assert GumbelBelow(np.random.default_rng(1))((), np.arange(1), np.array([0.0]), -2.0)[0] == -2.0


@pytest.mark.parametrize("width", [1, 2, 3])
def test_the_engine_has_the_law_too(width: int) -> None:
    """One step of the loop along every path, with masks, an end of the text and plain draws behind the
    step."""
    vocabulary = sg.Vocabulary.from_bytes([b"a", b"b", b"c", b""], eos_token_ids=[3])
    lm, draft = (RandomModel(seed, vocabulary, sharp=1.0) for seed in (1, 2))
    grammar = sg.Compiler(vocabulary).regex("a|(ab|cb|ca)c?")
    want = exact_law(lm, grammar, lm.start([0]))
    texts = exact_law(draft, grammar, draft.start([0]))
    law: Counter = Counter()

    class Told(SampledRun):
        def __init__(self, order: list[Path], chance: Any, *arguments: Any) -> None:
            super().__init__(*arguments)
            self._order, self._told = order, chance

        def _chance(self, item: Any) -> Any:
            return self._told

        def _perturbation(self, item: Any) -> Any:
            return Ordered(self._order)

    pairs = {t[:2]: sum(p for u, p in texts.items() if u[:2] == t[:2]) for t in texts}
    for order, weight in orders(pairs):
        waiting: list[list[int]] = [[]]
        while waiting:
            chance = Scripted(waiting.pop())
            options = Speculation([DraftModel(draft)], rule="beam", branches=width, depth=2)
            how = Drawing(1.0, None, None, 1)
            run = Told(order, chance, open_scorer(lm), vocabulary, lm.eos_token_ids, how, options)
            row = Row([0], grammar.matcher(), Noise(1), 10, None, grammar)
            run.add(row)
            run.step()
            waiting += chance.branches
            begun = {t: p for t, p in want.items() if t[: len(row.tokens)] == tuple(row.tokens)}
            for text, p in begun.items():
                law[text] += weight * chance.weight * p / sum(begun.values())
    assert sum(law.values()) == pytest.approx(1.0)
    assert max(abs(law[t] - want[t]) for t in want) < 1e-7  # the engine's vectors are float32


@pytest.mark.parametrize("drafter", ["model", "n-grams", "strings"])
def test_whole_texts_follow_the_law_of_plain_decoding(drafter: str) -> None:
    lm = RandomModel(4, sharp=1.0)
    grammar = sg.Compiler(lm.vocabulary).regex("(a|ab|bc|c){2,3}")
    made: Any = {
        "model": lambda: DraftModel(RandomModel(5, sharp=1.0)),
        "n-grams": lambda: LogitNgrams(2),
        "strings": lambda: StringDraft(RandomModel(5, OTHER, sharp=1.0)),
    }[drafter]()
    options = Speculation([made], rule="beam", branches=3, depth=3)
    drawn_by_the_law(lm, grammar, options, 500)


def test_beams_keep_to_the_budget() -> None:
    lm = RandomModel(4, sharp=1.0)
    for nodes, width, depth in ((0, 2, 3), (1, 2, 3), (7, 2, 9), (9, 3, 9), (12, 4, 1)):
        options = Speculation(
            [DraftModel(RandomModel(5))], rule="beam", nodes=nodes, branches=width, depth=depth
        )
        found = sg.generate(lm, "ab", max_tokens=20, temperature=1.0, seed=1, speculate=options)
        stats = found.speculation
        assert stats.drafted <= min(nodes, width * depth) * stats.forwards
        assert (stats.drafted == 0) == (nodes < width)
