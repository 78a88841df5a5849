"""The draft tree: one trie of the tokens that all drafters propose, built best first and pruned by the
grammar.

Enters: a matcher at the end of the text and one cursor a drafter. Leaves: `DraftTree`.
Cost: a heap operation and a few membership checks a node; the matcher walks between neighbours of the heap.

The problem. Several drafters guess, each with probabilities of its own and each several tokens ahead. A
forward has room for few nodes, and a node with a token that the grammar refuses would be wasted.

The idea. A cursor stands at a node and offers (token, probability) for its children. A heap orders the offers
of all nodes by path probability. The best offer becomes the next node, and the cursors at this node make
offers in turn (OPT-Tree: Wang et al. 2024; DySpec: Xiong et al. 2024). Cursors of different drafters at one
node offer into one set of children (token tree merging: Miao et al., SpecInfer, 2024). With the grammar
`[0-9]+` and, after the text,

    drafter 0    1: 0.6, x: 0.3; after 1 it offers 2: 0.5            drafter 1    1: 0.5, 2: 0.4

    x is refused, and its 0.3 goes to its siblings: drafter 0 offers 1 with 0.6 / 0.7 = 0.857
    node 0    1, below the root, 0.857, offered by both
    node 1    2, below node 0, 0.857 * 0.5 = 0.429, offered by drafter 0
    node 2    2, below the root, 0.4, offered by drafter 1

A node's probability is the largest that a drafter gives, as calibrated by acceptance (goodput.py). `Goodput`
ends the growth and cuts the tree to its best size.

Invariants.
- Parents come before children, and nodes come in the order of their path probability. So any prefix of the
  list of nodes is a tree, and `cut` may keep any prefix.
- Pruning is exact: the target never draws a token that the grammar refuses.
- When `build` returns or raises an exception, the matcher stands where it stood before.
- Tokens without an alternative (probability 1) do not count against the budget.

Rejected. A fork of the matcher for each node: a fork copies the whole history. `TreeWalk` moves one matcher
instead.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..errors import UnsatisfiableBudget
from ..logits import allocate_bitmask
from .base import Cursor, Here

if TYPE_CHECKING:
    from ..matcher import Matcher
    from .goodput import Calibration, Goodput

# The most nodes beyond the budget. Forced tokens do not count against the budget, and a grammar may force
# text without an end.
_FREE = 64
_LEAST = 1e-3  # nodes with a smaller path probability are not added


@dataclass(slots=True)
class DraftTree:
    """Nodes 0 .. n-1, parents before children. The root is -1, the last token of the text.

    Attributes:
        offers: for each node the (drafter, probability) pairs that proposed it.
        chances: for each node its path probability, as expected.
        probes: for a drafter, nodes that it wants scored for its own use. Their text may be invalid.
    """

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    children: list[dict[int, int]] = field(default_factory=lambda: [{}])
    offers: list[tuple[tuple[int, float], ...]] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)
    probes: dict[int, list[int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, parent: int, token: int, offers: tuple[tuple[int, float], ...], chance: float) -> int:
        """Adds a node and returns its number. `parent` must have no child `token` yet."""
        node = len(self.tokens)
        self.tokens.append(token)
        self.parents.append(parent)
        self.depths.append(1 if parent < 0 else self.depths[parent] + 1)
        self.children[parent + 1][token] = node
        self.children.append({})
        self.offers.append(offers)
        self.chances.append(chance)
        return node

    def child(self, node: int, token: int) -> int | None:
        """Returns the child of a node that holds `token`, or None if there is none. The node -1 is the
        root."""
        return self.children[node + 1].get(token)

    def path(self, node: int) -> list[int]:
        """Returns the tokens from the root's child down to a node."""
        found: list[int] = []
        while node >= 0:
            found.append(self.tokens[node])
            node = self.parents[node]
        return found[::-1]

    def cut(self, count: int) -> None:
        """Removes all nodes but the first `count`."""
        for node in range(len(self.tokens) - 1, count - 1, -1):
            del self.children[self.parents[node] + 1][self.tokens[node]]
        del self.tokens[count:], self.parents[count:], self.depths[count:]
        del self.children[count + 1 :], self.offers[count:], self.chances[count:]

    def add_probes(
        self, drafter: int, tokens: Sequence[int], parents: Sequence[int] | None = None, depth: int = 1 << 30
    ) -> None:
        """Adds a chain below the root, or a tree if `parents` are given (-1: the root).

        Nodes that exist are shared. Nodes deeper than `depth` are left out. `probes` lacks them, too.
        """
        nodes: list[int] = []
        kept: list[int] = []
        for i, token in enumerate(tokens):
            parent = i - 1 if parents is None else parents[i]
            above = -1 if parent < 0 else nodes[parent]
            if parent >= 0 and above < 0 or (0 if above < 0 else self.depths[above]) >= depth:
                nodes.append(-1)
                continue
            known = self.child(above, token)
            nodes.append(self.add(above, token, (), 0.0) if known is None else known)
            kept.append(nodes[-1])
        self.probes[drafter] = kept


@dataclass(slots=True)
class Built:
    """A tree and the cost of building it.

    Attributes:
        pruned: offers that the grammar refused. checks: questions to the matcher.
        seconds: the time of each drafter. asked: its calls of `children` and their part of that time.
    """

    tree: DraftTree
    pruned: int = 0
    checks: int = 0
    seconds: dict[int, float] = field(default_factory=dict)
    asked: dict[int, tuple[int, float]] = field(default_factory=dict)


class TreeWalk:
    """Moves the text's own matcher between nodes.

    The caller asks only for paths that the matcher accepts. The end of `with` moves it back.
    """

    def __init__(self, matcher: Matcher | None) -> None:
        self._matcher = matcher
        self._path: list[int] = []

    def at(self, path: list[int]) -> Matcher | None:
        """Returns the matcher at the end of a path that it accepts."""
        if self._matcher is None:
            return None
        here, common = self._path, 0
        while common < len(here) and common < len(path) and here[common] == path[common]:
            common += 1
        if common < len(here):
            self._matcher.rollback(len(here) - common)
        if common < len(path):
            self._matcher.accept_tokens(path[common:])
        self._path = path
        return self._matcher

    def __enter__(self) -> TreeWalk:
        return self

    def __exit__(self, *error: object) -> None:
        self.at([])


def build(
    matcher: Matcher | None,
    cursors: Sequence[tuple[int, Cursor]],
    *,
    budget: int,
    depth: int,
    ends: Container[int],
    position: int,
    calibration: Calibration,
    goodput: Goodput | None,
    vocab_size: int,
    afford: Callable[[int, float], bool] | None = None,
    width: int = 64,
    prune: bool = True,
) -> Built:
    """Grows a tree from the end of a text.

    Args:
        matcher: stands at the end of the text. It is moved and put back. None: nothing is pruned.
        cursors: (number of the drafter, its cursor at the end of the text).
        budget: the most nodes, without tokens that have no alternative.
        depth: the most levels.
        ends: end-of-sequence ids. Nothing is drafted after one.
        position: tokens of the answer before the root.
        calibration: the acceptance of each drafter's probabilities so far.
        goodput: decides when to stop, and how many nodes to keep; None: the tree fills the budget.
        vocab_size: larger ids are ignored.
        afford: (drafter, path probability) -> whether to ask the drafter there; None: always.
        width: the most children of one node.
        prune: False keeps tokens that the grammar refuses. For ablations: the text is the same.
    """
    made = Built(DraftTree())
    with TreeWalk(matcher if prune else None) as walk:
        tree = made.tree
        standing: list[Sequence[tuple[int, Cursor]]] = [cursors]  # the cursors at node i, at index i + 1
        # Entries: (-path probability, number, node, token, offers); token -1 asks for the node's children.
        heap: list[tuple[float, int, int, int, tuple[tuple[int, float], ...]]] = [(-1.0, 0, -1, -1, ())]
        serial = 0
        counted = 0
        while heap:
            negative, _, node, token, offers = heapq.heappop(heap)
            chance = -negative
            if chance < _LEAST or (goodput is not None and not goodput.worth(chance)):
                break
            if token >= 0:
                if chance < 1.0:
                    if counted >= budget:
                        break
                    counted += 1
                new = tree.add(node, token, offers, chance)
                if goodput is not None:
                    goodput.added(chance)
                if token in ends or tree.depths[new] >= depth or len(tree) >= budget + _FREE:
                    standing.append(())
                    continue
                standing.append(_stepped(standing[node + 1], token, made.seconds))
                serial += 1
                heapq.heappush(heap, (negative, serial, new, -1, ()))
                continue
            if not standing[node + 1] or depth < 1:
                continue
            path = tree.path(node)
            here = Here(walk.at(path), position + len(path))
            asked = standing[node + 1]
            if afford is not None:
                asked = [(number, cursor) for number, cursor in asked if afford(number, chance)]
            for token, p, offers in _offered(here, asked, made, calibration, vocab_size)[:width]:
                serial += 1
                heapq.heappush(heap, (-chance * p, serial, node, token, offers))
        if goodput is not None:
            tree.cut(goodput.best())
    return made


def _stepped(
    cursors: Sequence[tuple[int, Cursor]], token: int, seconds: dict[int, float]
) -> list[tuple[int, Cursor]]:
    found = []
    for number, cursor in cursors:
        begin = time.perf_counter()
        after = cursor.step(token)
        seconds[number] = seconds.get(number, 0.0) + time.perf_counter() - begin
        if after is not None:
            found.append((number, after))
    return found


def _offered(
    here: Here,
    cursors: Sequence[tuple[int, Cursor]],
    made: Built,
    calibration: Calibration,
    vocab_size: int,
) -> list[tuple[int, float, tuple[tuple[int, float], ...]]]:
    """Returns the valid tokens that drafters offer at a node: (token, calibrated probability, its offers),
    best first."""
    valid: dict[int, bool] = {}
    found: dict[int, list[tuple[int, float]]] = {}
    chances: dict[int, float] = {}
    for number, cursor in cursors:
        begin = time.perf_counter()
        offers = cursor.children(here)
        spent = time.perf_counter() - begin
        made.seconds[number] = made.seconds.get(number, 0.0) + spent
        calls, before = made.asked.get(number, (0, 0.0))
        made.asked[number] = calls + 1, before + spent
        lost = 0.0
        kept = []
        for token, p in offers:
            if not 0 <= token < vocab_size:
                continue
            if here.matcher is not None:
                ok = valid.get(token)
                if ok is None:
                    made.checks += 1
                    ok = valid[token] = here.matcher.validate_tokens([token]) == 1
                if not ok:
                    made.pruned += 1
                    lost += p
                    continue
            kept.append((token, p))
        scale = 1.0 / (1.0 - lost) if 0.0 < lost < 1.0 else 1.0
        for token, p in kept:
            p = min(1.0, p * scale)
            found.setdefault(token, []).append((number, p))
            known = calibration.chance(number, p)
            if known > chances.get(token, -1.0):
                chances[token] = known
    order = sorted(found, key=lambda token: -chances[token])
    return [(token, chances[token], tuple(found[token])) for token in order]


def tree_masks(
    matcher: Matcher, tree: DraftTree, vocab_size: int, budget: int | None
) -> npt.NDArray[np.int32]:
    """Returns the masks of the root and of all nodes, shape (1 + nodes, ceil(V/32)), computed in one walk,
    depth first.

    The masks can be made while a model runs on another device. A row after a refused token, after the end or
    out of budget allows nothing. Verification never uses such a row.

    Raises:
        UnsatisfiableBudget: the text cannot be completed within the budget.
    """
    masks = allocate_bitmask(1 + len(tree), vocab_size)
    masks[1:] = 0
    matcher.fill_bitmask(masks, 0, max_tokens=budget)
    waiting = list(tree.children[0].values())
    depth = 0
    try:
        while waiting:
            node = waiting.pop()
            matcher.rollback(depth - tree.depths[node] + 1)
            depth = tree.depths[node] - 1
            if matcher.is_terminated() or not matcher.accept_token(tree.tokens[node]):
                continue
            depth += 1
            try:
                matcher.fill_bitmask(masks, node + 1, None if budget is None else budget - depth)
            except UnsatisfiableBudget:
                masks[node + 1] = 0
                continue
            waiting += tree.children[node + 1].values()
    finally:
        matcher.rollback(depth)
    return masks
