"""The trie of visited prefixes: frozen vectors, and bounds on what lies below each prefix.

Enters: expansions of prefixes, and the paths of finished walks. Leaves: for every prefix u an upper and a
lower bound on c(u) = P(L | u), the probability that the model completes u to a text of the language.
Cost: a backup sums one block of 512 tokens anew for each node of one path; memory is 4 bytes per allowed
token of a node, or 5 kB where its vector is thin (`vector.py`), under a budget.

    upper(u) = sum over allowed b of P(b|u) * upper(ub)      upper of an unvisited prefix is 1
    lower(u) = sum over explored b of P(b|u) * lower(ub)     lower of an unvisited prefix is 0
    upper(text that is in) = lower(text that is in) = its weight;  upper(what is out) = 0

The upper bounds are those of ASAp (Park et al. 2024, "Grammar-Aligned Decoding"); the lower bound at the root
is the summed probability of the distinct texts seen, so lower <= Z <= upper is certified at any time. Only
explored children are stored. Sums of upper bounds are kept by blocks, and a block is summed again after a
change. Lower bounds only rise, and the increase is added in log space. Neither computation subtracts, so
rounding errors do not accumulate.

A node may be *known* (its vector is here, so a walk over it costs no forward) without being *visited*: only
visits change bounds, so fetching ahead does not. Evicting a node forgets its vector, also for walks that hold
the node, and resets its upper bound to 1. Otherwise a new visit, which lacks the forgotten bounds of the
children, would compute a sum above the old bound, and the probability of a coin would exceed 1. Lower bounds
and the smallest proved upper bound on Z are kept.
"""

from __future__ import annotations

import math
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._checks import whole
from .logspace import NEVER
from .vector import Urn, Vector

_NODE_BYTES = 900  # memory of the Python objects of a node and its vector
_EDGE_BYTES = 280


class Edge:
    """An explored token of a node. `verdict` remembers what a condition said about it.

    Only the node changes `upper` and `lower` (`Node.bound`, `Node.lift`), because it keeps their sums.
    """

    __slots__ = ("logp", "lower", "node", "score", "slot", "upper", "verdict")

    def __init__(self, slot: int, logp: float, score: float) -> None:
        self.slot: int = slot
        self.logp: float = logp
        self.score: float = score
        self.upper: float = 0.0
        self.lower: float = NEVER
        self.verdict: bool | None = None
        self.node: Node | None = None


class Node:
    """A prefix. It is known once it has a vector, and visited once a walk that learns has passed it."""

    __slots__ = ("__weakref__", "edges", "lower", "parent", "token", "urn", "vector", "visited")

    def __init__(self, parent: Node | None, token: int) -> None:
        self.parent: Node | None = parent
        self.token: int = token
        self.edges: dict[int, Edge] = {}
        self.visited: bool = False
        self.lower: float = NEVER  # log of the summed P(b|u) * lower(ub) over explored tokens
        self.vector: Vector | None = None
        self.urn: Urn | None = None  # the vector with the upper bounds as factors; None if no bound is known

    @property
    def known(self) -> bool:
        return self.vector is not None

    @property
    def row(self) -> Vector:
        """The vector of a known node."""
        assert self.vector is not None
        return self.vector

    def edge(self, token: int, slot: int | None = None) -> Edge:
        """Returns the edge of a token, made if it is new. Raises a KeyError if the token is not allowed
        here."""
        found = self.edges.get(token)
        if found is None:
            slot = self.row.slot(token) if slot is None else slot
            if slot is None:
                raise KeyError(token)
            found = Edge(slot, self.row.logp(slot), self.row.score(slot))
            self.edges[token] = found
        return found

    def child(self, token: int, slot: int | None = None) -> Node:
        edge = self.edge(token, slot)
        if edge.node is None:
            edge.node = Node(self, token)
        return edge.node

    def bound(self, edge: Edge, upper: float) -> None:
        """Sets the upper bound of an edge of this node."""
        if upper != edge.upper:
            edge.upper = upper
            if self.urn is None:
                self.urn = Urn(self.row)
            self.urn.set(edge.slot, upper)

    def lift(self, edge: Edge, lower: float) -> None:
        """Raises the lower bound of an edge of this node, if the new bound is higher."""
        if lower <= edge.lower:
            return
        # log(exp(lower) - exp(edge.lower)): only the increase is added, so nothing cancels.
        gain = lower + (0.0 if edge.lower == NEVER else math.log(-math.expm1(edge.lower - lower)))
        self.lower = float(np.logaddexp(self.lower, edge.score + gain))
        edge.lower = lower

    def settle(self, edge: Edge, log_weight: float) -> None:
        """Records the weight of the text that ends with this edge; -inf: the text is outside the language."""
        self.bound(edge, min(edge.upper, log_weight))
        if log_weight > NEVER:
            self.lift(edge, edge.upper)

    def replace(self, vector: Vector) -> None:
        """Replaces a thin vector by a whole one. The bounds of the node do not change."""
        self.vector, self.urn = vector, None
        for token, edge in list(self.edges.items()):
            slot = vector.slot(token)
            if slot is None:  # the model does not repeat its earlier vector
                del self.edges[token]
                continue
            edge.slot, edge.logp, edge.score = slot, vector.logp(slot), vector.score(slot)
            if edge.upper:
                self.urn = Urn(vector) if self.urn is None else self.urn
                self.urn.set(slot, edge.upper)

    def forget(self) -> None:
        """Drops the vector, the bounds and the edges, so walks that hold the node keep little memory."""
        self.vector = self.urn = None
        self.edges = {}
        self.lower, self.visited = NEVER, False

    def proposal(self, bounds: bool) -> tuple[float, Vector | Urn]:
        """Returns the log normaliser of the scores (times the bounds if `bounds` is set), and the vector or
        urn to draw from."""
        row = self.row
        if bounds and self.urn is not None and row.log_mass > NEVER:
            return self.urn.log_total(), self.urn
        return row.log_mass, row

    def upper(self) -> float:
        """Returns the log of the summed P(b|u) * upper(ub)."""
        return self.proposal(True)[0]

    @property
    def nbytes(self) -> int:
        """The memory of the node without its ids, which the trie counts once for all nodes that share
        them."""
        if self.vector is None:
            return _NODE_BYTES
        own = self.vector.nbytes + (0 if self.urn is None else self.urn.nbytes)
        return _NODE_BYTES + own + _EDGE_BYTES * len(self.edges)


def _nobody() -> None:
    """Stands in for the weak reference to a model that is not known."""


class Trie:
    """Prefixes of one target, under a memory budget. Belongs to one thread at a time.

    Args:
        max_bytes: the most memory of nodes. Beyond it, the nodes visited longest ago are evicted.

    The next call with the same model, prompt, grammar and sampling parameters can take the trie;
    `trie_file.py` saves it.
    """

    def __init__(self, max_bytes: int = 256 << 20) -> None:
        whole("max_bytes", max_bytes, 1)
        self.max_bytes: int = max_bytes
        self.root: Node = Node(None, -1)
        self.key: str | None = None
        self.evicted: int = 0
        self._model: Callable[[], Any] = _nobody  # the model that gave the vectors, while it lives
        self.lower_bound: float = NEVER  # log of the best certified bounds on Z
        self.upper_bound: float = 0.0
        self._upper = 0.0
        # Least recently visited first, parents after their children.
        self._nodes: OrderedDict[Node, int] = OrderedDict()
        self._users: dict[int, int] = {}  # id of an array of token ids -> nodes whose vectors hold it
        self.bytes: int = 0

    def made_by(self, lm: Any) -> bool:
        """Returns whether this object gave the vectors. The model of a trie from a file is not known."""
        return self._model() is lm

    def adopt(self, lm: Any) -> None:
        try:
            self._model = weakref.ref(lm)
        except TypeError:  # An object without weak references is compared by its vectors each time.
            self._model = _nobody

    def latest(self, count: int) -> list[Node]:
        """Returns the root, and those of the last used nodes that hang below the root; at most `count`
        nodes."""
        found = [self.root]
        for node in reversed(self._nodes):
            if len(found) == count:
                break
            at = node
            while at.parent is not None:
                at = at.parent
            if at is self.root and node is not self.root:
                found.append(node)
        return found

    @staticmethod
    def tokens(node: Node) -> list[int]:
        """Returns the ids that lead to a node."""
        found = []
        at = node
        while at.parent is not None:
            found.append(at.token)
            at = at.parent
        return found[::-1]

    @property
    def theta(self) -> float:
        """The log of the root's present upper bound. CARS accepts with probability Z / this bound."""
        return self._upper

    @property
    def bracket(self) -> tuple[float, float]:
        """The logs of certified bounds (lower, upper) on Z."""
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
        """Returns every node with a vector, parents before children."""
        todo = [self.root]
        while todo:
            node = todo.pop()
            if node.known:
                yield node
            todo += [e.node for _, e in sorted(node.edges.items(), reverse=True) if e.node is not None]

    def texts(self, end: int, most: int) -> dict[tuple[int, ...], float]:
        """Returns at most `most` of the known texts, each with the log of P times the potentials.

        Args:
            end: the id of end-of-sequence.
        """
        found: dict[tuple[int, ...], float] = {}
        todo: list[tuple[Node, tuple[int, ...], float]] = [(self.root, (), 0.0)]
        while todo and len(found) < most:
            node, tokens, logp = todo.pop()
            for token, edge in sorted(node.edges.items()):
                if token == end and edge.lower > NEVER:
                    found[*tokens, token] = logp + edge.score + edge.lower
                elif edge.node is not None:
                    todo.append((edge.node, (*tokens, token), logp + edge.score))
        return found

    def learn(self, path: list[Node]) -> None:
        """Backs the bounds up from the last node of a finished walk to the root, and touches the path.

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
        """Makes one step of the backup: passes a node's bounds to the edge that leads to the node."""
        upper, lower = node.upper(), node.lower
        if node.parent is None:
            if node is self.root:
                # The bound never rises above its earlier value; sums in another order differ in the last bit.
                self._upper = min(self._upper, upper)
                self.lower_bound = max(self.lower_bound, min(lower, self._upper))
                self.upper_bound = min(self.upper_bound, self._upper)
            return
        edge = node.parent.edges.get(node.token)
        if edge is not None and edge.node is node:
            node.parent.bound(edge, min(edge.upper, upper))
            node.parent.lift(edge, min(lower, edge.upper))

    def touch(self, node: Node) -> None:
        """Records the use of a node and the memory that the node takes now. The caller goes from the leaf to
        the root."""
        if not node.known:
            return  # the node was evicted while a walk stood on it
        now, before = node.nbytes, self._nodes.pop(node, None)
        if before is None:
            before = 0
            self._share(node, 1)
        self.bytes += now - before
        self._nodes[node] = now

    def replace(self, node: Node, vector: Vector) -> None:
        """Replaces a thin vector by a whole one, and counts its memory."""
        weight = self._nodes.pop(node, None)
        if weight is not None:
            self.bytes -= weight
        node.replace(vector)
        self.touch(node)

    def _share(self, node: Node, change: int) -> None:
        """Adds the memory of ids with the first vector that holds them, and subtracts it with the last
        one."""
        if node.row.thin:
            return  # the ids belong to this node alone
        ids = node.row.ids
        users = self._users.get(id(ids), 0) + change
        if users:
            self._users[id(ids)] = users
        else:
            del self._users[id(ids)]
        if users == max(0, change):  # this is the first vector that holds the ids, or the last one
            self.bytes += change * ids.nbytes

    @property
    def full(self) -> bool:
        return self.bytes > self.max_bytes

    def shrink(self) -> None:
        """Evicts nodes until a fifth of the budget is free, then recomputes the bounds above them."""
        if not self.full:
            return
        dirty: dict[Node, None] = {}
        while self.bytes > self.max_bytes * 4 // 5 and len(self._nodes) > 1:
            node, weight = self._nodes.popitem(last=False)
            if node is self.root:
                self._nodes[node] = weight
                continue
            self.bytes -= weight
            self._share(node, -1)
            self.evicted += 1
            dirty.pop(node, None)
            # A walk at this node fetches the vector again and continues, but changes no bounds.
            parent, node.parent = node.parent, None
            node.forget()
            edge = None if parent is None else parent.edges.get(node.token)
            if parent is None or edge is None or edge.node is not node:
                continue
            edge.node = None
            if edge.upper > NEVER:
                parent.bound(edge, 0.0)
            dirty[parent] = None
        for parent in dirty:
            self._reset(parent)

    def _reset(self, node: Node) -> None:
        """Recomputes upper bounds from a node to the root. Upper bounds may rise here."""
        at: Node | None = node
        while at is not None:
            upper = at.upper() if at.visited else 0.0
            if at.parent is None:
                if at is self.root:
                    self._upper = upper
                return
            edge = at.parent.edges.get(at.token)
            if edge is None or edge.node is not at:
                return  # an earlier step evicted a node above this one
            at.parent.bound(edge, upper)
            at = at.parent

    def restore(self, upper: float, lower: float, best: float) -> None:
        """Sets the bounds of a saved trie."""
        self._upper, self.lower_bound, self.upper_bound = upper, lower, best
