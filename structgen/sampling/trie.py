"""The trie of visited prefixes: frozen vectors, and bounds on what lies below each prefix.

Enters: expansions of prefixes, and the paths of finished walks. Leaves: for every prefix u an upper and a
lower bound on c(u) = P(L | u), the probability that the model completes u to a text of the language.
Cost: a backup touches the explored children of the nodes of one path; memory is 20 bytes per allowed
token of a node, under a budget.

    upper(u) = sum over allowed b of P(b|u) * upper(ub)      upper of an unvisited prefix is 1
    lower(u) = sum over explored b of P(b|u) * lower(ub)     lower of an unvisited prefix is 0
    upper(text that is in) = lower(text that is in) = its weight;  upper(what is out) = 0

The upper bounds are those of ASAp (Park et al. 2024, "Grammar-Aligned Decoding"); the lower bound at the
root is the summed probability of the distinct texts seen, so lower <= Z <= upper is certified at any time.
Only explored children are stored. upper(u) is formed as mass(u) - sum P(b|u)(1 - upper(ub)), which is exact
while little is removed, and summed anew over all tokens where that would cancel.

A node may be *known* (its vector is here, so a walk over it costs no forward) without being *visited*: only
visits count towards bounds, so bounds do not depend on what was fetched ahead. Evicting a node forgets its
vector and its upper bound, which becomes 1 again: a bound kept while the details below it are forgotten
would lie under what a new visit finds there, and a coin with that probability would exceed 1. Lower bounds
survive, and so does the smallest upper bound ever proved.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator

import numpy as np

from .logspace import NEVER, logsumexp
from .target import Expansion

__all__ = ["Edge", "Node", "Trie"]

_NODE_BYTES = 600  # Python objects of a node and its edge
_EDGE_BYTES = 200
_CANCELS = 0.5  # removing more than this share of the mass is summed anew


class Edge:
    """An explored token of a node. `verdict` remembers what a condition said about it."""

    __slots__ = ("logp", "lower", "node", "score", "slot", "upper", "verdict")

    def __init__(self, slot: int, logp: float, score: float) -> None:
        self.slot = slot
        self.logp = logp
        self.score = score
        self.upper = 0.0
        self.lower = NEVER
        self.verdict: bool | None = None
        self.node: Node | None = None


class Node:
    """A prefix. Known once `fill` was called; visited once a walk that learns has passed."""

    __slots__ = ("__weakref__", "_sums", "edges", "ids", "log_mass", "logp", "lost", "parent", "reason",
                 "score", "token", "visited")  # fmt: skip

    def __init__(self, parent: Node | None, token: int) -> None:
        self.parent = parent
        self.token = token
        self.edges: dict[int, Edge] = {}
        self.visited = False
        self.ids: np.ndarray | None = None
        self._sums: np.ndarray | None = None

    @property
    def known(self) -> bool:
        return self.ids is not None

    def fill(self, found: Expansion) -> None:
        self.restore(found.ids, found.logp, found.score, found.log_mass, found.lost, found.reason, False)
        self._sums = found.sums

    def restore(
        self, ids: np.ndarray, logp: np.ndarray, score: np.ndarray, log_mass: float,
        lost: tuple[tuple[int, float], ...], reason: str, visited: bool,
    ) -> None:  # fmt: skip
        self.ids, self.logp, self.score, self.log_mass = ids, logp, score, log_mass
        self.lost, self.reason, self.visited = lost, reason, visited
        self._sums = None

    def edge(self, token: int, slot: int | None = None) -> Edge:
        """The explored child by this token, made if need be. KeyError: it is not allowed here."""
        found = self.edges.get(token)
        if found is None:
            assert self.ids is not None
            if slot is None:
                slot = int(np.searchsorted(self.ids, token))
                if slot == len(self.ids) or self.ids[slot] != token:
                    raise KeyError(token)
            found = Edge(slot, float(self.logp[slot]), float(self.score[slot]))
            self.edges[token] = found
        return found

    def child(self, token: int, slot: int | None = None) -> Node:
        edge = self.edge(token, slot)
        if edge.node is None:
            edge.node = Node(self, token)
        return edge.node

    def proposal(self, bounds: bool) -> tuple[float, np.ndarray]:
        """The log normaliser of score (plus bounds), and ascending cumulated weights."""
        assert self.ids is not None
        if not self.ids.size:
            return NEVER, self.score
        if bounds:
            learned = [e for e in self.edges.values() if e.upper < 0.0]
            if learned:
                score = self.score.copy()
                for edge in learned:
                    score[edge.slot] += edge.upper
                return self.upper(), _cumulated(score)
        if self._sums is None:
            self._sums = _cumulated(self.score)
        return self.log_mass, self._sums

    def upper(self) -> float:
        """log of the summed P(b|u) * upper(ub)."""
        assert self.ids is not None
        if self.log_mass == NEVER:
            return NEVER
        top = self.log_mass
        removed = math.fsum(
            math.exp(e.score - top) * -math.expm1(e.upper) for e in self.edges.values() if e.upper < 0.0
        )
        if removed == 0.0:
            return top
        if removed < _CANCELS:
            return top + math.log1p(-removed)
        score = self.score.copy()
        for edge in self.edges.values():
            if edge.upper < 0.0:
                score[edge.slot] += edge.upper
        return min(top, logsumexp(score))

    def lower(self) -> float:
        """log of the summed P(b|u) * lower(ub) over explored tokens."""
        return logsumexp([e.score + e.lower for e in self.edges.values() if e.lower > NEVER])

    @property
    def nbytes(self) -> int:
        if self.ids is None:
            return _NODE_BYTES
        own = self.ids.nbytes + self.logp.nbytes + (0 if self.score is self.logp else self.score.nbytes)
        own += self.logp.nbytes  # the cumulated weights
        return _NODE_BYTES + own + _EDGE_BYTES * len(self.edges)


def _cumulated(score: np.ndarray) -> np.ndarray:
    top = float(score.max())
    if top == NEVER:
        return np.zeros(score.shape, np.float64)
    return np.cumsum(np.exp(score - top))


class Trie:
    """Prefixes of one target, under a memory budget. Belongs to one thread at a time.

    Args:
        max_bytes: what nodes may hold; beyond it the ones visited longest ago go.

    A trie can be kept and handed to the next call with the same model, prompt, grammar and sampling
    parameters (`trie_file.py` saves it).
    """

    def __init__(self, max_bytes: int = 256 << 20) -> None:
        if max_bytes < 1:
            raise ValueError("max_bytes must be positive")
        self.max_bytes = max_bytes
        self.root = Node(None, -1)
        self.key: str | None = None
        self.evicted = 0
        self.unverified = False  # loaded from a file: the model was not seen yet
        self.lower_bound = NEVER  # log of the best certified bounds on Z
        self.upper_bound = 0.0
        self._upper = 0.0
        # Least recently visited first, parents after their children.
        self._nodes: OrderedDict[Node, int] = OrderedDict()
        self.bytes = 0

    @property
    def theta(self) -> float:
        """log of the root's present upper bound: what CARS accepts against."""
        return self._upper

    @property
    def bracket(self) -> tuple[float, float]:
        """log of certified bounds (lower, upper) on Z."""
        return self.lower_bound, self.upper_bound

    @property
    def tv_bound(self) -> float:
        """A certified bound on the total variation distance between ASAp's next draw and the target."""
        if self._upper == NEVER:
            return 0.0
        return min(1.0, max(0.0, -math.expm1(min(0.0, self.lower_bound - self._upper))))

    @property
    def acceptance(self) -> float:
        """A certified lower bound on the probability that the next CARS trial is accepted."""
        return 1.0 - self.tv_bound if self._upper > NEVER else 0.0

    def __len__(self) -> int:
        return len(self._nodes)

    def nodes(self) -> Iterator[Node]:
        """Every node with a vector, parents before children."""
        todo = [self.root]
        while todo:
            node = todo.pop()
            if node.known:
                yield node
            todo += [e.node for _, e in sorted(node.edges.items(), reverse=True) if e.node is not None]

    def learn(self, path: list[Node]) -> None:
        """Back the bounds up from the last node of a finished walk to the root, and touch the path.

        The edge that the walk ended on carries its verdict already (`settle`).
        """
        for node in path:
            node.visited = True
        for at in range(len(path) - 1, -1, -1):
            node = path[at]
            self.touch(node)
            self._raise(node)
        self.shrink()

    def _raise(self, node: Node) -> None:
        """One step of the backup: from a node to the edge that leads to it."""
        upper, lower = node.upper(), node.lower()
        if node.parent is None:
            if node is self.root:
                # Never above what was known: sums in another order differ in the last bit.
                self._upper = min(self._upper, upper)
                self.lower_bound = max(self.lower_bound, min(lower, self._upper))
                self.upper_bound = min(self.upper_bound, self._upper)
            return
        edge = node.parent.edges.get(node.token)
        if edge is not None and edge.node is node:
            edge.upper = min(edge.upper, upper)
            edge.lower = max(edge.lower, min(lower, edge.upper))

    @staticmethod
    def settle(edge: Edge, log_weight: float) -> None:
        """What a text that ended here weighs; -inf for what is out."""
        edge.upper = min(edge.upper, log_weight)
        if log_weight > NEVER:
            edge.lower = max(edge.lower, edge.upper)

    def touch(self, node: Node) -> None:
        """Note the use of a node and what it weighs now. Called from the leaf to the root."""
        if not node.known or (node.parent is None and node is not self.root):
            return  # evicted while a walk stood on it
        now = node.nbytes
        self.bytes += now - self._nodes.pop(node, 0)
        self._nodes[node] = now

    def shrink(self) -> None:
        """Evict until a fifth of the budget is free again, then recompute the bounds above the gaps."""
        if self.bytes <= self.max_bytes:
            return
        dirty: dict[Node, None] = {}
        while self.bytes > self.max_bytes * 4 // 5 and len(self._nodes) > 1:
            node, weight = self._nodes.popitem(last=False)
            if node is self.root:
                self._nodes[node] = weight
                continue
            self.bytes -= weight
            self.evicted += 1
            dirty.pop(node, None)
            parent, node.parent = node.parent, None  # a walk that stands here goes on, and teaches nobody
            if parent is None:
                continue
            edge = parent.edges[node.token]
            edge.node = None
            if edge.upper > NEVER:
                edge.upper = 0.0
            dirty[parent] = None
        for parent in dirty:
            self._reset(parent)

    def _reset(self, node: Node) -> None:
        """Recompute upper bounds from a node to the root, where they may rise."""
        at: Node | None = node
        while at is not None:
            upper = at.upper() if at.visited else 0.0
            if at.parent is None:
                if at is self.root:
                    self._upper = upper
                return
            edge = at.parent.edges[at.token]
            edge.upper = upper
            at = at.parent

    def restore(self, upper: float, lower: float, best: float) -> None:
        """Bounds of a saved trie, as they were."""
        self._upper, self.lower_bound, self.upper_bound = upper, lower, best
