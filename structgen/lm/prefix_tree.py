"""Contexts as a prefix tree, and a store with a budget for the keys and values of prefixes. All models share
this module.

Enters: prompts, then token ids. Leaves: frozen vectors of log-probabilities; a subclass runs the forwards.
Cost: a call runs the tokens that no cached ancestor covers: one forward for up to `batch_size` contexts.

The problem. Samplers, searches and servers ask for many contexts that share beginnings: answers to one
prompt, branches of a search, texts that go back a few tokens. Reading a prefix again is wasted work, but the
keys of all prefixes do not fit in memory.

The idea. A context is a node of a tree; `start` and `extend` make it without a forward pass. Keys and values
lie in *spans*, runs of tokens in one growing buffer. A token behind the last token of a span goes into the
span's buffer. A branch begins a span of its own, whose parent is the first span. After `s = lm.start([5, 6,
7])`, `a = s.extend(8)` and `b = s.extend(9)`:

    lm.logprobs([s])       one forward of 3 tokens; s has a span of the positions 0 to 3
    lm.logprobs([a, b])    one forward of 2 rows with a token each; a goes into the span of s, which now
                           ends at 4; b begins a span of the positions 3 to 4, whose parent is that of s

If a call asks for a context and for a prefix of it, one row serves both (`_rows`): the forward reads the
longer context and also gives the scores after the shorter context.

The least recently used spans are evicted. A parent counts as used after its children, so the prefix of a kept
span is never evicted. An evicted prefix is computed again when it is next needed. The budget holds between
calls; one call may need more.

Invariants.
- A node's vector does not change while it is kept, and is NaN nowhere.
- A span is alive if and only if it is in `_Store.spans`, and then its ancestors are alive.
- Equal paths are one node while some code holds the node (`_nodes` is weak).
- Buffers are arrays of numpy or tensors of torch. Only operations with equal names in both are used, and
  `_empty` makes new buffers.
"""

from __future__ import annotations

import itertools
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, cast
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from .._checks import whole
from .._fork import hold_over_forks
from .base import Context, ContextTooLong, LanguageModelError

if TYPE_CHECKING:
    from ..vocabulary import Vocabulary

Vector = npt.NDArray[np.float32]
# The most tokens of a forward, padding included. Contexts with few new tokens then need not wait for long
# prompts.
_FORWARD_TOKENS = 4096
_FIRST_CAPACITY = 32


class Node:
    """A context of a model. `PrefixTreeLM.start` and `extend` make one."""

    __slots__ = ("__weakref__", "_length", "_lm", "_serial", "_span", "_vector", "parent", "token")

    def __init__(self, lm: PrefixTreeLM, parent: Node | None, token: int, serial: int) -> None:
        self._lm = lm
        self.parent: Node | None = parent
        self.token: int = token
        self._length: int = 0 if parent is None else parent._length + 1
        self._serial = serial
        self._span: Span | None = None
        self._vector: Any = None  # an array, or a subclass's substitute for it

    def __len__(self) -> int:
        return self._length

    def __bool__(self) -> bool:
        return True

    @property
    def tokens(self) -> list[int]:
        """The ids of the prefix, with the prompt."""
        return [node.token for node in path(self, 0)]

    def extend(self, token: int) -> Self:
        """Returns the context of one id more, without a forward. Raises a LanguageModelError if there is no
        such id."""
        return cast(Self, self._lm._child(self, token))

    def __repr__(self) -> str:
        return f"<context of {self._length} tokens>"


@dataclass(eq=False, slots=True)
class Span:
    """Keys and values of the positions start..stop of one prefix. Those of earlier positions are in `parent`.

    Each buffer is (..., heads, capacity, size): keys or values of one layer or of several. A span is `alive`
    if and only if it is in `_Store.spans`; then its ancestors are alive, too.
    """

    parent: Span | None
    start: int
    stop: int
    buffers: list[Any] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    bytes: int = 0
    alive: bool = True


class _Store:
    """All spans, the least recently used first, and the number of bytes that the spans and the vectors of
    their nodes take."""

    def __init__(self, budget: int, empty: Callable[[Any, tuple[int, ...]], Any]) -> None:
        self.budget = budget
        self._empty = empty
        self.bytes = 0
        self.spans: OrderedDict[int, Span] = OrderedDict()

    def cached(self, node: Node) -> int:
        """Returns the number of leading tokens of this prefix whose keys are kept."""
        at: Node | None = node
        while at is not None and at.parent is not None:
            if at._span is not None and at._span.alive:
                return len(at)
            at = at.parent
        return 0

    def slices(self, node: Node) -> list[tuple[Span, int, int]]:
        """Returns the spans of a prefix in the order of positions, as (span, begin, end).

        `begin` and `end` are places in the span's buffer.
        """
        found: list[tuple[Span, int, int]] = []
        stop, span = len(node), node._span
        while span is not None and stop:
            found.append((span, 0, stop - span.start))
            stop, span = span.start, span.parent
        return found[::-1]

    def touch(self, node: Node) -> None:
        span = node._span
        while span is not None and span.alive:
            self.spans.move_to_end(id(span))
            span = span.parent

    def write(self, node: Node, new: Sequence[Any], past: int) -> None:
        """Keeps the keys of a prefix's tokens past.., which are `new`, unless they are kept already."""
        have = max(self.cached(node), past)
        if have >= len(node):
            return
        nodes = path(node, have)
        before = nodes[0].parent
        span = None if before is None or not len(before) else before._span
        if span is None or not span.alive or span.stop != have:
            span = Span(span, have, have)
            self.spans[id(span)] = span
        skip = have - past
        self._append(span, [part[..., skip:, :] for part in new])
        for item in nodes:
            item._span = span
            if item._vector is not None:
                self.add(span, item._vector.nbytes)
        span.nodes.extend(nodes)
        self.touch(node)

    def _append(self, span: Span, new: list[Any]) -> None:
        at, count = span.stop - span.start, new[0].shape[-2]
        before = sum(b.nbytes for b in span.buffers)
        if not span.buffers:
            # A single token begins an answer, so the buffer gets room for more. After a prompt, branches
            # usually follow.
            room = max(count, _FIRST_CAPACITY) if count == 1 else count
            span.buffers = [self._sized(part, room) for part in new]
        elif at + count > (capacity := span.buffers[0].shape[-2]):
            room = max(capacity + capacity // 2, at + count, _FIRST_CAPACITY)
            grown = [self._sized(buffer, room) for buffer in span.buffers]
            for made, old in zip(grown, span.buffers, strict=True):
                made[..., :at, :] = old[..., :at, :]
            span.buffers = grown
        for buffer, part in zip(span.buffers, new, strict=True):
            buffer[..., at : at + count, :] = part
        span.stop += count
        self.add(span, sum(b.nbytes for b in span.buffers) - before)

    def _sized(self, like: Any, room: int) -> Any:
        return self._empty(like, (*like.shape[:-2], room, like.shape[-1]))

    def add(self, span: Span, count: int) -> None:
        span.bytes += count
        self.bytes += count

    def shrink(self, budget: int | None = None) -> None:
        """Drops the least recently used spans until the budget holds."""
        limit = self.budget if budget is None else budget
        while self.bytes > limit and self.spans:
            _, span = self.spans.popitem(last=False)
            span.alive = False
            self.bytes -= span.bytes
            span.buffers, span.bytes, span.parent = [], 0, None
            for node in span.nodes:
                node._span = None
            span.nodes = []


@dataclass(slots=True)
class Row:
    """One row of a forward: the tokens of `node` from index `past` on, and the nodes whose vectors are
    wanted."""

    node: Node
    past: int
    wanted: list[Node]

    @property
    def new(self) -> int:
        return len(self.node) - self.past


class PrefixTreeLM(ABC):
    """A `LanguageModel` without the forward, which a subclass adds. Thread-safe.

    Args:
        vocabulary: the bytes of the ids, as wide as the logits.
        kv_bytes: the most bytes of keys, values and kept vectors; 0 keeps nothing.
        max_context: the most tokens of prompt and answer together.
        batch_size: the most contexts of one forward.
        pads: whether rows of different lengths may share a forward.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        kv_bytes: int,
        max_context: int | None,
        batch_size: int,
        pads: bool = True,
    ) -> None:
        whole("kv_bytes", kv_bytes, 0)
        self.vocabulary = vocabulary
        self.max_context = max_context
        self.batch_size: int = whole("batch_size", batch_size, 1)
        self._pads = pads
        self._serials = itertools.count()
        self._nodes: WeakValueDictionary[tuple[int, int], Node] = WeakValueDictionary()
        self._root = Node(self, None, -1, next(self._serials))
        self._store = _Store(kv_bytes, self._empty)
        self._lock = threading.RLock()
        hold_over_forks(self)

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Returns the ids of a prompt, with the special tokens that the tokenizer adds."""

    @abstractmethod
    def _forward(self, rows: list[Row]) -> None:
        """Runs one forward.

        Gives the wanted nodes their vectors (`_freeze`) and writes new keys to `_store`.
        """

    @staticmethod
    @abstractmethod
    def _empty(like: Any, shape: tuple[int, ...]) -> Any:
        """Returns an uninitialised buffer of this shape, otherwise like `like`."""

    def _first_token(self) -> int | None:
        """Returns the token that stands for an empty prompt, or None if an empty prompt is an error."""
        return None

    @property
    def eos_token_ids(self) -> Sequence[int]:
        """The ids that end a text."""
        return self.vocabulary.eos_token_ids

    @property
    def cached_bytes(self) -> int:
        """The number of bytes of the keys, values and vectors that are kept now."""
        return self._store.bytes

    def clear(self) -> None:
        """Forgets all keys and values. Contexts that are still held keep their vectors."""
        with self._lock:
            self._store.shrink(-1)

    def cached_tokens(self, context: Context) -> int:
        """Returns the number of leading tokens whose keys are kept. A forward reads the other tokens."""
        node = self._checked(context)
        with self._lock:
            return self._store.cached(node)

    def release(self, contexts: Sequence[Context]) -> None:
        """Forgets the vectors of contexts that will not be asked for again. Their keys stay.

        A server calls this, because with 131,000 ids a vector takes half a megabyte for each token of an
        answer. A vector that is asked for again is computed anew, and may differ by rounding.
        """
        with self._lock:
            for context in contexts:
                node = self._checked(context)
                if node._vector is not None:
                    if node._span is not None and node._span.alive:
                        self._store.add(node._span, -node._vector.nbytes)
                    node._vector = None

    def start(self, prompt: str | Sequence[int]) -> Node:
        """Returns the context of a prompt.

        Raises:
            ContextTooLong: the prompt has more tokens than the model reads.
            LanguageModelError: the prompt is empty and the model has no first token, or an id has no logit.
        """
        tokens = self.encode(prompt) if isinstance(prompt, str) else [int(t) for t in prompt]
        if not tokens:
            first = self._first_token()
            if first is None:
                raise LanguageModelError("the prompt is empty, and the model has no token to begin with")
            tokens = [first]
        if self.max_context is not None and len(tokens) > self.max_context:
            raise ContextTooLong(f"the prompt has {len(tokens)} tokens; the model reads {self.max_context}")
        node = self._root
        for token in tokens:
            node = self._child(node, token)
        return node

    def logprobs(self, contexts: Sequence[Context]) -> Vector:
        """Returns natural-log probabilities of the next token, float32, shape (len(contexts), V).

        Raises:
            ContextTooLong: a context exceeds `max_context`.
            LanguageModelError: a context of another model, or logits that are NaN.
        """
        out = np.empty((len(contexts), self.vocabulary.vocab_size), np.float32)
        with self._lock:
            for i, vector in enumerate(self._vectors(contexts)):
                out[i] = self._as_array(vector)
            self._store.shrink()
        return out

    def _vectors(self, contexts: Sequence[Context]) -> list[Any]:
        """Returns the frozen vectors of contexts. Runs the forwards that they need. The caller has the
        lock."""
        nodes = [self._checked(context) for context in contexts]
        for group in self._groups(self._rows(nodes)):
            self._forward(group)
        for node in nodes:
            assert node._vector is not None
            self._store.touch(node)
        return [node._vector for node in nodes]

    @staticmethod
    def _as_array(vector: Any) -> Vector:
        """Returns a vector as an array of numpy. A subclass may keep vectors of another kind."""
        found: Vector = vector
        return found

    def _child(self, parent: Node, token: int) -> Node:
        token = int(token)
        if not 0 <= token < self.vocabulary.vocab_size:
            raise LanguageModelError(
                f"token {token} is outside the model's {self.vocabulary.vocab_size} logits: "
                "the text was tokenized for another model"
            )
        key = (parent._serial, token)
        with self._lock:
            node = self._nodes.get(key)
            if node is None:
                node = self._nodes[key] = Node(self, parent, token, next(self._serials))
        return node

    def _checked(self, context: Context) -> Node:
        if not isinstance(context, Node) or context._lm is not self:
            raise LanguageModelError("the context belongs to another model")
        if not len(context):
            raise LanguageModelError("an empty context has no next token")
        if self.max_context is not None and len(context) > self.max_context:
            raise ContextTooLong(f"the context has {len(context)} tokens; the model reads {self.max_context}")
        return context

    def _rows(self, nodes: Sequence[Node]) -> list[Row]:
        """Returns the rows that must run.

        The longest contexts come first. A context that ends within the new tokens of another row joins that
        row.
        """
        missing = {id(n): n for n in nodes if n._vector is None}
        rows: list[Row] = []
        covered: dict[int, Row] = {}
        for node in sorted(missing.values(), key=len, reverse=True):
            row = covered.get(id(node))
            if row is None:
                # The last token always runs: its keys may be kept, but its logits are not.
                row = Row(node, min(self._store.cached(node), len(node) - 1), [])
                rows.append(row)
                for item in path(node, row.past):
                    covered.setdefault(id(item), row)
            row.wanted.append(node)
        return rows

    def _groups(self, rows: list[Row]) -> Iterator[list[Row]]:
        """Groups rows for forwards. Without padding only rows of equal lengths share a forward."""
        rows = sorted(rows, key=lambda row: (row.new, row.past))
        group: list[Row] = []
        for row in rows:
            full = len(group) == self.batch_size or (len(group) + 1) * row.new > _FORWARD_TOKENS
            alike = self._pads or not group or (group[0].new, group[0].past) == (row.new, row.past)
            if group and (full or not alike):
                yield group
                group = []
            group.append(row)
        if group:
            yield group

    def _freeze(self, node: Node, vector: Vector) -> None:
        """Sets a node's log-probabilities for good. Raises a LanguageModelError if a log-probability is
        NaN."""
        if np.isnan(vector).any():
            raise LanguageModelError("the model's logits are not a distribution: they are NaN or all -inf")
        own = np.array(vector)
        own.flags.writeable = False
        self._keep_vector(node, own)

    def _keep_vector(self, node: Node, own: Any) -> None:
        node._vector = own
        if node._span is not None and node._span.alive:
            self._store.add(node._span, own.nbytes)


def layout(rows: Sequence[Row]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Returns the new tokens of rows and their positions, (rows, new), padded on the right."""
    new = max(row.new for row in rows)
    ids = np.zeros((len(rows), new), np.int64)
    positions = np.zeros((len(rows), new), np.int64)
    for i, row in enumerate(rows):
        ids[i, : row.new] = [node.token for node in path(row.node, row.past)]
        positions[i] = np.minimum(np.arange(row.past, row.past + new), len(row.node) - 1)
    return ids, positions


def path(node: Node, start: int) -> list[Node]:
    """Returns the nodes on the way to `node`, from position `start` on."""
    found: list[Node] = []
    at: Node | None = node
    while at is not None and len(at) > start:
        found.append(at)
        at = at.parent
    return found[::-1]


def ancestor(node: Node, length: int) -> Node:
    while len(node) > length:
        assert node.parent is not None
        node = node.parent
    return node
