"""Drafts that are sampled from a drafter's distribution and accepted by comparing it with the target's.

Input and output are as in engine.py. The text follows the same law as the text of engine.py, but it is not
the same text. Cost: at every visited place, the distributions of the target and of the draft over the whole
vocabulary.

The first drafter gives the distributions. The grammar masks them *before* a draft is drawn. The rule gets
every draft that was drawn, also drafts that the target's mask refuses (rules.py says why). Trees grow in
level order, with `branches` draws per node while the budget lasts: whether a node gets drafts depends on the
number of nodes before it, never on their tokens. The rule "beam" grows trees by stochastic beam search
(beams.py) and offers the children of a node in the order of that search.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from .._draws import probabilities
from ..logits import allocate_bitmask, apply_bitmask
from .base import Cursor, Drafter, Here
from .beams import GumbelBelow, Perturbation, stochastic_beams
from .drafters import DraftModel
from .engine import Row, SpeculativeRows, _Live
from .options import Rule
from .rules import Chance, Floats, k_seq, recursive
from .score import Scores
from .tree import Built, DraftTree, TreeWalk

Distribution = tuple[npt.NDArray[np.int64], Floats]


def _none(drafter: Drafter) -> str:
    if isinstance(drafter, DraftModel):
        return (
            f"{drafter.name} has another vocabulary, and no distribution over this one to sample drafts "
            "from: take TokenIntersection or StringDraft"
        )
    return (
        f"{drafter.name} has no distribution to sample drafts from: take rule='coupled', or DraftModel, "
        "TokenIntersection, StringDraft, LayerChoice, TrimmedHead or LogitNgrams"
    )


class RandomChance:
    """`Chance` from a generator of numpy."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random

    def coin(self, p: float) -> bool:
        # `random()` may be 0, and a token of probability 0 must not be accepted then: strictly below.
        return bool(self._random.random() < p)

    def draw(self, p: Floats) -> int:
        sums = np.cumsum(p)
        at = int(np.searchsorted(sums, self._random.random() * sums[-1], side="right"))
        last = int(np.flatnonzero(p)[-1])
        return min(at, last)


def draw_drafts(q: Floats, rule: Rule, branches: int, random: np.random.Generator) -> list[int]:
    """Draws the drafts of one place from q: distinct drafts for "recursive", independent drafts for other
    rules."""
    if rule == "recursive":
        support = np.flatnonzero(q)
        scores = np.log(q[support]) + random.gumbel(size=len(support))
        order = np.argsort(-scores)[:branches]
        return [int(i) for i in support[order]]
    chance = RandomChance(random)
    return [chance.draw(q) for _ in range(1 if rule == "single" else branches)]


class SampledRun(SpeculativeRows):
    """`SpeculativeRows` whose options name another rule than "coupled"."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        # The rules need whole distributions, so the head is never restricted.
        super().__init__(*arguments, **{**keywords, "logprobs": True})
        if self.how.temperature == 0:
            raise ValueError(
                f"rule {self.options.rule!r} needs a temperature above 0; 'coupled' is greedy too"
            )
        if not self.options.drafters:
            raise ValueError(f"rule {self.options.rule!r} needs a drafter with a distribution")
        if not getattr(self.options.drafters[0], "has_distribution", True):
            raise TypeError(_none(self.options.drafters[0]))
        self._random: dict[int, np.random.Generator] = {}
        self._drafts: dict[int, dict[int, tuple[Floats, list[int]]]] = {}

    def add(self, row: Row, *, read: bool = False) -> None:
        super().add(row, read=read)
        item = self._live[-1]
        assert row.noise is not None
        self._random[id(item)] = row.noise.generator()
        cursor = item.sessions[0].cursor()
        if cursor is not None and not hasattr(cursor, "distribution"):
            raise TypeError(_none(self.options.drafters[0]))

    def _draft(self, item: _Live) -> None:
        begin = time.perf_counter()
        tree = DraftTree()
        drafts: dict[int, tuple[Floats, list[int]]] = {}
        item.built, item.asked = Built(tree), [0]
        self._drafts[id(item)] = drafts
        cursor = item.sessions[0].cursor()
        deepest = min(self.options.depth, item.left - 1)
        walk = TreeWalk(item.row.matcher)
        try:
            if cursor is not None and self.options.rule == "beam":
                self._beams(item, tree, drafts, walk, cursor, deepest)
                cursor = None
            level: list[tuple[int, Cursor]] = [] if cursor is None else [(-1, cursor)]
            for _ in range(deepest):
                below: list[tuple[int, Cursor]] = []
                for node, at in level:
                    below += self._branch(item, tree, drafts, walk, node, at)
                level = below
        finally:
            walk.at([])
        item.seconds = time.perf_counter() - begin
        item.built.seconds[0] = item.seconds

    def _branch(
        self,
        item: _Live,
        tree: DraftTree,
        drafts: dict[int, tuple[Floats, list[int]]],
        walk: TreeWalk,
        node: int,
        cursor: Cursor,
    ) -> list[tuple[int, Cursor]]:
        """Draws below one node. Returns the new nodes with their cursors."""
        options = self.options
        if len(tree) + options.branches > options.nodes:
            return []
        found = self._asked(item, tree, walk, node, cursor)
        if found is None:
            return []
        q = self._spread(found)
        drawn = draw_drafts(q, options.rule, options.branches, self._random[id(item)])
        drafts[node] = (q, drawn)
        made = []
        for token in dict.fromkeys(drawn):
            child = tree.add(node, token, ((0, float(q[token])),), 0.0)
            after = None if token in self.ends else cursor.step(token)
            if after is not None:
                made.append((child, after))
        return made

    def _beams(
        self,
        item: _Live,
        tree: DraftTree,
        drafts: dict[int, tuple[Floats, list[int]]],
        walk: TreeWalk,
        cursor: Cursor,
        deepest: int,
    ) -> None:
        """Builds the tree of stochastic beam search. A child that finds no room in the tree counts as not
        drawn."""
        width = self.options.branches
        cursors = {-1: cursor}

        def law(node: int) -> Distribution | None:
            found = self._asked(item, tree, walk, node, cursors[node])
            if found is None:
                return None
            some = found[1] > 0.0  # a token that was rounded away cannot be drawn
            drafts[node] = self._spread(found), []
            return found[0][some], found[1][some]

        def add(node: int, token: int) -> int | None:
            q, drawn = drafts[node]
            drawn.append(token)
            child = tree.add(node, token, ((0, float(q[token])),), 0.0)
            after = None if token in self.ends else cursors[node].step(token)
            if after is None:
                return None
            cursors[child] = after
            return child

        levels = min(deepest, self.options.nodes // width)
        stochastic_beams(-1, width, levels, law, add, self._perturbation(item))

    def _chance(self, item: _Live) -> Chance:
        return RandomChance(self._random[id(item)])

    def _perturbation(self, item: _Live) -> Perturbation:
        return GumbelBelow(self._random[id(item)])

    def _asked(
        self, item: _Live, tree: DraftTree, walk: TreeWalk, node: int, cursor: Cursor
    ) -> Distribution | None:
        """Returns the distribution that the drafter draws from behind a node."""
        path = tree.path(node)
        here = Here(walk.at(path), len(item.row.tokens) + len(path))
        ask = cast(Callable[[Here], "Distribution | None"], cast(Any, cursor).distribution)
        return ask(here)

    def _spread(self, found: Distribution) -> Floats:
        """Spreads a distribution over the whole vocabulary."""
        q = np.zeros(self.vocabulary.vocab_size)
        q[found[0]] = found[1]
        return q

    def _choose(self, item: _Live, scores: Scores, node: int) -> int:
        """Draws the next token: by the rule if tokens were drafted here, otherwise from the target."""
        row, vector = item.row, scores.vector(node + 1)
        if row.matcher is not None:
            mask = allocate_bitmask(1, self.vocabulary.vocab_size)
            budget = None if row.budget is None else row.budget - len(row.tokens)
            row.matcher.fill_bitmask(mask, 0, max_tokens=budget)
            self.statistics.masks += 1
            vector = apply_bitmask(vector, mask[0])
        ids, weights = probabilities(vector, self.how)
        p = np.zeros(self.vocabulary.vocab_size)
        p[ids] = weights
        chance = self._chance(item)
        drafted = self._drafts[id(item)].get(node)
        if drafted is None:
            token = chance.draw(p)
        else:
            rule = k_seq if self.options.rule == "k-seq" else recursive
            token = rule(p, *drafted, chance)[0]
        if row.matcher is None:
            row.done = token in self.ends
        else:
            row.matcher.accept_token(token)
            row.done = row.matcher.is_terminated()
        return token
