"""A suffix tree over finished answers, with counts: the tokens that usually followed the text's suffix in
earlier answers.

Enters: answers, when they are finished. Leaves: the continuations of the text's longest suffixes in the tree,
with counts. Cost: `depth` steps to insert a token, a few steps to follow a text, and at most two nodes for
each stored token. If more than `tokens` tokens are stored, the oldest answers are dropped.

SuffixDecoding (Oliaro et al. 2024). Paths are compressed: an edge is a piece of a stored answer. An inserted
suffix points the edges on its path at its own answer. So an edge belongs to the youngest answer that goes
through it, and dropping the oldest answer leaves no edge without its text.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field

from ..._fork import hold_over_forks
from ..base import Cursor, Here, Quiet, Start, Step

_OFFERED = 4
_POINTS = 3


class _Node:
    """The edge into this node is text[start : start + length]; `count` suffixes pass through it."""

    __slots__ = ("children", "count", "length", "start", "text")

    def __init__(self, text: Sequence[int], start: int, length: int, count: int) -> None:
        self.text: Sequence[int] = text
        self.start: int = start
        self.length: int = length
        self.count: int = count
        self.children: dict[int, _Node] = {}


# A place in the tree: a node, and the number of its edge's tokens that were read.
Point = tuple[_Node, int]


class SuffixTree:
    """All substrings of at most `depth` tokens of the stored sequences, with their counts. Thread-safe.

    Args:
        depth: the number of tokens of the longest substring.
        tokens: the largest number of tokens to store; with 0, nothing is stored.
    """

    def __init__(self, depth: int = 32, tokens: int = 1 << 16) -> None:
        if depth < 2 or tokens < 0:
            raise ValueError("depth must be at least 2, tokens must not be negative")
        self.depth = depth
        self.limit = tokens
        self.root: _Node = _Node((), 0, 0, 0)
        self.version: int = 0
        self.lock: threading.Lock = threading.Lock()
        hold_over_forks(self, "lock")
        self._stored: deque[list[int]] = deque()
        self._total = 0

    def __len__(self) -> int:
        """Returns the number of stored tokens."""
        return self._total

    def insert(self, tokens: Sequence[int]) -> None:
        """Stores a sequence. The oldest sequences are dropped to make room for it."""
        sequence = list(tokens)
        if not sequence or len(sequence) > self.limit:
            return
        with self.lock:
            self.version += 1
            while self._total + len(sequence) > self.limit:
                self._remove(self._stored.popleft())
            self._stored.append(sequence)
            self._total += len(sequence)
            for start in range(len(sequence)):
                self._insert_suffix(sequence, start)

    def count(self, tokens: Sequence[int]) -> int:
        """Returns how often a substring of at most `depth` tokens occurs."""
        with self.lock:
            point: Point | None = (self.root, 0)
            for token in tokens:
                point = advance(point, token) if point is not None else None
            return 0 if point is None else point[0].count

    def _insert_suffix(self, text: list[int], start: int) -> None:
        node, at, end = self.root, start, min(len(text), start + self.depth)
        node.count += 1
        while at < end:
            child = node.children.get(text[at])
            if child is None:
                node.children[text[at]] = _Node(text, at, end - at, 1)
                return
            same = _agree(child, text, at, end)
            if same < child.length:
                upper = _Node(child.text, child.start, same, child.count)
                child.start += same
                child.length -= same
                upper.children[child.text[child.start]] = child
                node.children[text[at]] = upper
                child = upper
            child.count += 1
            child.text, child.start = text, at
            node, at = child, at + same

    def _remove(self, text: list[int]) -> None:
        self._total -= len(text)
        for start in range(len(text)):
            node, at, end = self.root, start, min(len(text), start + self.depth)
            node.count -= 1
            while at < end:
                child = node.children[text[at]]
                child.count -= 1
                if not child.count:
                    del node.children[text[at]]
                    break
                node, at = child, at + child.length


def _agree(node: _Node, text: list[int], at: int, end: int) -> int:
    """Returns how many tokens of the node's edge are those of text[at:end]; at least one."""
    length = min(node.length, end - at)
    edge = node.text[node.start : node.start + length]
    if edge == text[at : at + length]:
        return length
    return next(i for i in range(length) if edge[i] != text[at + i])


def advance(point: Point, token: int) -> Point | None:
    """Returns the place one token further down; None if no stored text continues with the token."""
    node, used = point
    if used < node.length:
        return (node, used + 1) if node.text[node.start + used] == token else None
    child = node.children.get(token)
    return None if child is None else (child, 1)


@dataclass(eq=False)
class SuffixTreeDrafter:
    """Drafts from earlier answers.

    Args:
        tree: the store; by default one of its own.
        prompts: store prompts too (never needed where another drafter copies from the prompt).
    """

    has_distribution = False
    name = "suffix tree"

    tree: SuffixTree = field(default_factory=SuffixTree)
    _: KW_ONLY
    prompts: bool = False

    def open(self, start: Start) -> _Session:
        return _Session(self, start.prompt)


class _Session(Quiet):
    """A session on one text. `_points` are the text's suffixes in the tree, longest first."""

    def __init__(self, drafter: SuffixTreeDrafter, prompt: Sequence[int]) -> None:
        self._tree = drafter.tree
        self._longest = drafter.tree.depth // 2
        self._recent: list[int] = list(prompt[-self._longest :])
        self._answer: list[int] = list(prompt) if drafter.prompts else []
        self._points: list[Point] = []
        self._version = -1

    def accept(self, step: Step) -> None:
        self._answer += step.tokens
        self._recent = [*self._recent, *step.tokens][-self._longest :]
        with self._tree.lock:
            if self._version == self._tree.version:
                for token in step.tokens:
                    self._points = self._read(self._points, token)

    def cursor(self) -> Cursor | None:
        with self._tree.lock:
            if self._version != self._tree.version:
                # Another text was stored: nodes may have been split under the old points.
                self._version = self._tree.version
                self._points = []
                for token in self._recent:
                    self._points = self._read(self._points, token)
        return _Cursor(self._tree, self._version, self._points[:_POINTS]) if self._points else None

    def _read(self, points: list[Point], token: int) -> list[Point]:
        starts = [*points[-self._longest + 1 :], (self._tree.root, 0)]
        return [after for point in starts if (after := advance(point, token)) is not None]

    def close(self) -> None:
        self._tree.insert(self._answer)


class _Cursor:
    __slots__ = ("_points", "_tree", "_version")

    def __init__(self, tree: SuffixTree, version: int, points: Sequence[Point]) -> None:
        self._tree = tree
        self._version = version
        self._points = points

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        with self._tree.lock:
            if self._version != self._tree.version:
                return ()
            for rank, (node, used) in enumerate(self._points):
                trust = 1.0 if rank == 0 else 0.9
                if used < node.length:
                    sure = node.count / (node.count + 0.5)
                    return ((node.text[node.start + used], sure * trust),)
                if node.children:
                    total = node.count + 0.5
                    best = sorted(node.children.items(), key=lambda item: -item[1].count)[:_OFFERED]
                    return [(token, trust * child.count / total) for token, child in best]
        return ()

    def step(self, token: int) -> _Cursor | None:
        with self._tree.lock:
            if self._version != self._tree.version:
                return None
            found = [after for p in self._points if (after := advance(p, token)) is not None]
        return _Cursor(self._tree, self._version, found) if found else None
