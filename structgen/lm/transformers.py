"""A transformers causal model as a `LanguageModel`: a prefix tree with a key-value cache under a budget.

Enters: any `AutoModelForCausalLM` and its tokenizer. Leaves: frozen vectors of log-probabilities.
Cost: a call runs the tokens that no cached ancestor covers: one forward for up to `batch_size` contexts.
Contexts of different lengths share a forward: cached keys are padded on the left and new tokens on the
right, so that no query ever attends to nothing (a fully masked query may be NaN, and NaN times zero
spreads).

Keys and values lie in *spans*, runs of tokens in one growing buffer. A token appended at the tip of a span
goes into its buffer; a branch begins a span of its own, with the first as parent. Spans are kept by last
use, a parent always later than its children, so what is evicted is never the prefix of something kept.
An evicted prefix is run again when it is next needed. The budget holds between calls; what one call needs
comes on top of it.
"""

from __future__ import annotations

import inspect
import itertools
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, cast
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from ..errors import VocabularyError
from ..vocabulary import Vocabulary
from .base import Context, ContextTooLong, LanguageModelError

if TYPE_CHECKING:
    import torch

    from .trees import TreeScorer

__all__ = ["Node", "TransformersLM"]

_Vector = npt.NDArray[np.float32]
# Padded tokens of one forward; beyond this, contexts with few new tokens do not wait for long prompts.
_FORWARD_TOKENS = 4096
_FIRST_CAPACITY = 32


class Node:
    """A context of a `TransformersLM`. Make one with `start` and `extend`."""

    __slots__ = ("__weakref__", "_length", "_lm", "_serial", "_span", "_vector", "parent", "token")

    def __init__(self, lm: TransformersLM, parent: Node | None, token: int, serial: int) -> None:
        self._lm = lm
        self.parent = parent
        self.token = token
        self._length: int = 0 if parent is None else parent._length + 1
        self._serial = serial
        self._span: _Span | None = None
        self._vector: _Vector | None = None

    def __len__(self) -> int:
        return self._length

    def __bool__(self) -> bool:
        return True

    @property
    def tokens(self) -> list[int]:
        """The ids of the prefix, prompt included."""
        return [node.token for node in _path(self, 0)]

    def extend(self, token: int) -> Self:
        """The prefix with one id more; no forward. LanguageModelError: no such id."""
        return cast(Self, self._lm._child(self, token))

    def __repr__(self) -> str:
        return f"<context of {self._length} tokens>"


@dataclass(eq=False, slots=True)
class _Span:
    """Keys and values of the positions start..stop of one prefix; those before lie in `parent`.

    layers[i] is (keys, values), each (heads, capacity, size). Alive iff it is in `_Store.spans`; then its
    ancestors are too.
    """

    parent: _Span | None
    start: int
    stop: int
    layers: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    bytes: int = 0
    alive: bool = True


class _Store:
    """All spans, least recently used first, and the bytes that they hold (their nodes' vectors too)."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.bytes = 0
        self.spans: OrderedDict[int, _Span] = OrderedDict()

    def cached(self, node: Node) -> int:
        """How many leading tokens of this prefix have keys."""
        at: Node | None = node
        while at is not None and at.parent is not None:
            if at._span is not None and at._span.alive:
                return len(at)
            at = at.parent
        return 0

    def slices(self, node: Node) -> list[tuple[_Span, int, int]]:
        """The spans that hold a prefix, first positions first: (span, from, to) in its buffer."""
        found: list[tuple[_Span, int, int]] = []
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

    def write(self, node: Node, new: list[tuple[torch.Tensor, torch.Tensor]], past: int) -> None:
        """Keep the keys of a prefix's tokens past.. (`new` holds them), but for those that are kept."""
        have = max(self.cached(node), past)
        if have >= len(node):
            return
        path = _path(node, have)
        before = path[0].parent
        span = None if before is None or not len(before) else before._span
        if span is None or not span.alive or span.stop != have:
            span = _Span(span, have, have)
            self.spans[id(span)] = span
        skip = have - past
        self._append(span, [(k[:, skip:], v[:, skip:]) for k, v in new])
        for item in path:
            item._span = span
            if item._vector is not None:
                self.add(span, item._vector.nbytes)
        span.nodes.extend(path)
        self.touch(node)

    def _append(self, span: _Span, new: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        at, count = span.stop - span.start, new[0][0].shape[1]
        before = sum(k.nbytes + v.nbytes for k, v in span.layers)
        if not span.layers:
            span.layers = [(_room(k, count), _room(v, count)) for k, v in new]
        elif at + count > span.layers[0][0].shape[1]:
            span.layers = [(_grown(k, at, count), _grown(v, at, count)) for k, v in span.layers]
        for (keys, values), (k, v) in zip(span.layers, new, strict=True):
            keys[:, at : at + count].copy_(k)
            values[:, at : at + count].copy_(v)
        span.stop += count
        self.add(span, sum(k.nbytes + v.nbytes for k, v in span.layers) - before)

    def add(self, span: _Span, count: int) -> None:
        span.bytes += count
        self.bytes += count

    def shrink(self, budget: int | None = None) -> None:
        """Drop the least recently used spans until the budget holds."""
        limit = self.budget if budget is None else budget
        while self.bytes > limit and self.spans:
            _, span = self.spans.popitem(last=False)
            span.alive = False
            self.bytes -= span.bytes
            span.layers, span.bytes, span.parent = [], 0, None
            for node in span.nodes:
                node._span = None
            span.nodes = []


@dataclass(slots=True)
class _Row:
    """One row of a forward: the tokens past.. of `node`, and the nodes that want their vector."""

    node: Node
    past: int
    wanted: list[Node]

    @property
    def new(self) -> int:
        return len(self.node) - self.past


class TransformersLM:
    """A causal model of transformers with its tokenizer. Thread-safe.

    Args:
        model: a loaded model; it is put into evaluation mode and stays where it is.
        tokenizer: the model's tokenizer; None if `vocabulary` is given and prompts are ids.
        vocabulary: the bytes of the ids, as wide as the logits; made from the tokenizer by default.
        kv_bytes: bytes of keys, values and kept vectors; 0 keeps nothing.
        max_context: tokens of prompt and answer together; by default what the configuration says.
        batch_size: contexts of one forward at most.

    Raises:
        VocabularyError: the tokenizer is another model's.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        *,
        vocabulary: Vocabulary | None = None,
        kv_bytes: int = 512 << 20,
        max_context: int | None = None,
        batch_size: int = 64,
    ) -> None:
        if kv_bytes < 0 or batch_size < 1:
            raise ValueError("kv_bytes must not be negative, batch_size must be positive")
        if vocabulary is None and tokenizer is None:
            raise VocabularyError("a model needs its tokenizer, or a vocabulary")
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.vocabulary: Vocabulary = vocabulary or _vocabulary(model, tokenizer)
        width = _width(model)
        if width is not None and self.vocabulary.vocab_size != width:
            raise VocabularyError(
                f"the vocabulary has {self.vocabulary.vocab_size} ids and the model {width} logits: "
                "make it with vocab_size, or use this model's own tokenizer"
            )
        self.max_context = max_context or _positions(model)
        self.batch_size = batch_size
        arguments = inspect.signature(model.forward).parameters
        self._reuses_keys = _has_plain_cache(model)
        self._pads = self._reuses_keys and "position_ids" in arguments
        self._selects = "logits_to_keep" in arguments
        self._serials = itertools.count()
        self._nodes: WeakValueDictionary[tuple[int, int], Node] = WeakValueDictionary()
        self._root = Node(self, None, -1, next(self._serials))
        self._store = _Store(kv_bytes if self._reuses_keys else 0)
        self._scores_trees = False
        self._tree: tuple[TreeScorer, list[int]] | None = None
        self._lock = threading.RLock()

    @classmethod
    def from_pretrained(
        cls,
        path_or_id: str | os.PathLike[str],
        *,
        device: Any = None,
        dtype: Any = None,
        kv_bytes: int = 512 << 20,
        max_context: int | None = None,
        batch_size: int = 64,
        **arguments: Any,
    ) -> TransformersLM:
        """A model and its tokenizer from a folder or the hub.

        Args:
            device: where the model goes; a GPU if there is one.
            dtype: of the weights; by default float32 on a CPU and what the files hold elsewhere.
            arguments: further arguments of `AutoModelForCausalLM.from_pretrained`.

        Raises:
            LanguageModelError: there is no such model, or its files are damaged.
        """
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as error:
            raise LanguageModelError(
                f"loading a model needs torch and transformers (pip install 'structgen[hf]'): {error}"
            ) from None
        name = os.fspath(path_or_id)
        if device is None:
            device = "cuda" if torch.cuda.is_available() else "cpu"
        if dtype is None:
            dtype = torch.float32 if torch.device(device).type == "cpu" else "auto"
        try:
            tokenizer = AutoTokenizer.from_pretrained(name)
            model = AutoModelForCausalLM.from_pretrained(name, dtype=dtype, **arguments)
        except Exception as error:  # transformers and safetensors raise of many kinds
            reason = str(error).strip().splitlines()
            raise LanguageModelError(
                f"cannot load the model {name!r}: {reason[0] if reason else type(error).__name__}"
            ) from error
        return cls(
            model.to(device),
            tokenizer,
            kv_bytes=kv_bytes,
            max_context=max_context,
            batch_size=batch_size,
        )

    @property
    def eos_token_ids(self) -> Sequence[int]:
        """The ids that end a text."""
        return self.vocabulary.eos_token_ids

    @property
    def cached_bytes(self) -> int:
        """Bytes of the keys, values and vectors that are kept now."""
        return self._store.bytes

    def clear(self) -> None:
        """Forget all keys and values. Contexts that somebody holds keep their vectors."""
        with self._lock:
            self._store.shrink(-1)
            self._tree = None

    def encode(self, text: str) -> list[int]:
        """The ids of a prompt, with the special tokens that the tokenizer adds."""
        if self.tokenizer is None:
            return self.vocabulary.encode(text)
        encoded = self.tokenizer.encode(text)
        return [int(i) for i in getattr(encoded, "ids", encoded)]

    def start(self, prompt: str | Sequence[int]) -> Node:
        """The context of a prompt.

        Raises:
            ContextTooLong: the prompt has more tokens than the model reads.
            LanguageModelError: it is empty and no token begins a text, or an id has no logit.
        """
        tokens = self.encode(prompt) if isinstance(prompt, str) else [int(t) for t in prompt]
        if not tokens:
            first = getattr(self.tokenizer, "bos_token_id", None)
            if first is None:
                raise LanguageModelError("the prompt is empty, and the model has no token to begin with")
            tokens = [int(first)]
        if self.max_context is not None and len(tokens) > self.max_context:
            raise ContextTooLong(f"the prompt has {len(tokens)} tokens; the model reads {self.max_context}")
        node = self._root
        for token in tokens:
            node = self._child(node, token)
        return node

    def logprobs(self, contexts: Sequence[Context]) -> _Vector:
        """Natural-log probabilities of the next token, float32, shape (len(contexts), V).

        Raises:
            ContextTooLong: a context exceeds `max_context`.
            LanguageModelError: a context of another model, or logits that are NaN.
        """
        nodes = [self._checked(context) for context in contexts]
        out = np.empty((len(nodes), self.vocabulary.vocab_size), np.float32)
        with self._lock:
            for group in self._groups(self._rows(nodes)):
                self._forward(group)
            for i, node in enumerate(nodes):
                assert node._vector is not None
                out[i] = node._vector
                self._store.touch(node)
            self._store.shrink()
        return out

    def tree_scorer(self) -> TreeScorer:
        """A batch of rows whose draft trees are scored in one forward; see `structgen.lm.trees`.

        Its keys are its own, apart from those that `logprobs` keeps.

        Raises:
            LanguageModelError: the model cannot take refused drafts back.
        """
        from .trees import TreeScorer

        return TreeScorer(self)

    def check_tree_scoring(self) -> None:
        """LanguageModelError, with the reason, where trees cannot be scored; the first call tries it out."""
        from .trees import check_by_trial, check_tree_scoring

        check_tree_scoring(self.model)
        if not self._scores_trees:
            check_by_trial(self)
            self._scores_trees = True

    def score_tree(self, context: Context, tokens: Sequence[int], parents: Sequence[int]) -> _Vector:
        """Log-probabilities after a context and after every node of a tree below it, in one forward.

        Keys of the last context are kept, and reused where the next one begins alike.

        Args:
            tokens: the nodes, parents before children.
            parents: the number of each node's parent, -1 for the context.

        Returns:
            float32, shape (1 + len(tokens), V): the context's row, then the nodes'.

        Raises:
            ContextTooLong: context and tree exceed `max_context`.
            LanguageModelError: the model cannot score trees, or its logits are NaN.
        """
        import torch

        from .trees import Block, TreeScorer

        prefix = self._checked(context).tokens
        with self._lock:
            kept, known = self._tree or (TreeScorer(self), [])
            if not kept.rows:
                kept.add()
            common = min(_common(known, prefix), len(prefix) - 1)
            self._tree = None  # whatever fails below leaves no half-written keys behind
            kept.truncate(common)
            logits = kept.score([Block(prefix[common:], tokens, parents)])[0]
            with torch.inference_mode():
                found = torch.log_softmax(logits.float(), dim=-1).cpu().numpy()
            kept.keep([[]])
            self._tree = (kept, prefix)
        if np.isnan(found).any():
            raise LanguageModelError("the model's logits are not a distribution: they are NaN or all -inf")
        return cast(_Vector, found)

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

    def _rows(self, nodes: Sequence[Node]) -> list[_Row]:
        """What must run: longest first, so that a prefix of another row's new tokens rides along."""
        missing = {id(n): n for n in nodes if n._vector is None}
        rows: list[_Row] = []
        covered: dict[int, _Row] = {}
        for node in sorted(missing.values(), key=len, reverse=True):
            row = covered.get(id(node))
            if row is None:
                # The last token runs in any case: its keys may be known, its logits are not.
                row = _Row(node, min(self._store.cached(node), len(node) - 1), [])
                rows.append(row)
                for item in _path(node, row.past):
                    covered.setdefault(id(item), row)
            row.wanted.append(node)
        return rows

    def _groups(self, rows: list[_Row]) -> Iterator[list[_Row]]:
        """Rows that share a forward: any where padding works, else those of equal lengths."""
        rows = sorted(rows, key=lambda row: (row.new, row.past))
        group: list[_Row] = []
        for row in rows:
            full = len(group) == self.batch_size or (len(group) + 1) * row.new > _FORWARD_TOKENS
            alike = self._pads or not group or (group[0].new, group[0].past) == (row.new, row.past)
            if group and (full or not alike):
                yield group
                group = []
            group.append(row)
        if group:
            yield group

    def _forward(self, rows: list[_Row]) -> None:
        """One forward; the wanted vectors are frozen, the new keys kept."""
        import torch

        past, new = max(row.past for row in rows), max(row.new for row in rows)
        ids = np.zeros((len(rows), new), np.int64)
        mask = np.zeros((len(rows), past + new), np.int64)
        positions = np.zeros((len(rows), new), np.int64)
        for i, row in enumerate(rows):
            ids[i, : row.new] = [node.token for node in _path(row.node, row.past)]
            mask[i, past - row.past :] = 1  # padding on the right is after every real query
            positions[i] = np.minimum(np.arange(row.past, row.past + new), len(row.node) - 1)
        kept = sorted({len(n) - 1 - row.past for row in rows for n in row.wanted})
        device = self.model.device
        arguments: dict[str, Any] = {
            "input_ids": torch.from_numpy(ids).to(device),
            "attention_mask": torch.from_numpy(mask).to(device),
            "use_cache": self._reuses_keys,
        }
        if self._pads:
            arguments["position_ids"] = torch.from_numpy(positions).to(device)
        if self._selects:
            arguments["logits_to_keep"] = torch.tensor(kept, device=device)
        with torch.inference_mode():
            if self._reuses_keys:
                arguments["past_key_values"] = self._cache(rows, past)
            output = self.model(**arguments)
            place = {p: i for i, p in enumerate(kept)} if self._selects else {p: p for p in kept}
            self._freeze(rows, output.logits, place)
            if self._store.budget:
                self._keep(rows, output.past_key_values, past)

    def _cache(self, rows: list[_Row], past: int) -> Any:
        """The cached keys of the rows as one cache, (rows, heads, past, size), zeros on the left."""
        from transformers import DynamicCache

        if not past:
            return DynamicCache()
        pieces = [self._store.slices(_ancestor(row.node, row.past)) if row.past else [] for row in rows]
        example = next(p[0][0] for p in pieces if p).layers
        layers: list[tuple[torch.Tensor, torch.Tensor]] = []
        for i, pair in enumerate(example):
            made = []
            for side in (0, 1):
                heads, _, size = pair[side].shape
                full = pair[side].new_zeros((len(rows), heads, past, size))
                for r, row in enumerate(rows):
                    at = past - row.past
                    for span, first, last in pieces[r]:
                        full[r, :, at : at + last - first] = span.layers[i][side][:, first:last]
                        at += last - first
                made.append(full)
            layers.append((made[0], made[1]))
        return DynamicCache(layers)

    def _freeze(self, rows: list[_Row], logits: torch.Tensor, place: dict[int, int]) -> None:
        import torch

        width = self.vocabulary.vocab_size
        if logits.shape[-1] != width:
            raise VocabularyError(f"the model gave {logits.shape[-1]} logits for {width} ids")
        nodes = [(i, n, place[len(n) - 1 - row.past]) for i, row in enumerate(rows) for n in row.wanted]
        picked = logits[[i for i, _, _ in nodes], [p for _, _, p in nodes]]
        vectors = torch.log_softmax(picked.float(), dim=-1).cpu().numpy()
        if np.isnan(vectors).any():
            raise LanguageModelError("the model's logits are not a distribution: they are NaN or all -inf")
        for vector, (_, node, _) in zip(vectors, nodes, strict=True):
            own = np.array(vector)
            own.flags.writeable = False
            node._vector = own
            if node._span is not None and node._span.alive:
                self._store.add(node._span, own.nbytes)

    def _keep(self, rows: list[_Row], cache: Any, past: int) -> None:
        for r, row in enumerate(rows):
            span = slice(past, past + row.new)
            new = [(layer.keys[r, :, span], layer.values[r, :, span]) for layer in cache.layers]
            self._store.write(row.node, new, row.past)


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the longest common prefix."""
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))


def _path(node: Node, start: int) -> list[Node]:
    """The nodes of positions start.., in order."""
    found: list[Node] = []
    at: Node | None = node
    while at is not None and len(at) > start:
        found.append(at)
        at = at.parent
    return found[::-1]


def _ancestor(node: Node, length: int) -> Node:
    while len(node) > length:
        assert node.parent is not None
        node = node.parent
    return node


def _room(new: torch.Tensor, count: int) -> torch.Tensor:
    heads, _, size = new.shape
    # A single token is the first of many; a prompt is mostly followed by branches.
    return new.new_empty((heads, max(count, _FIRST_CAPACITY) if count == 1 else count, size))


def _grown(old: torch.Tensor, used: int, count: int) -> torch.Tensor:
    heads, capacity, size = old.shape
    made = old.new_empty((heads, max(capacity + capacity // 2, used + count, _FIRST_CAPACITY), size))
    made[:, :used].copy_(old[:, :used])
    return made


def _text_config(model: Any) -> Any:
    config = model.config
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def _width(model: Any) -> int | None:
    """The number of logits: the head's where there is one, else the configuration's."""
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    weight = getattr(head, "weight", None)
    if weight is not None:
        return int(weight.shape[0])
    size = getattr(_text_config(model), "vocab_size", None)
    return int(size) if isinstance(size, int) else None


def _positions(model: Any) -> int | None:
    config = _text_config(model)
    for name in ("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length"):
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


def _vocabulary(model: Any, tokenizer: Any) -> Vocabulary:
    """The tokenizer's vocabulary at the width of the logits; VocabularyError if they do not belong together.

    A head wider than the tokenizer is usual (padding), and so are special tokens beyond the head (images).
    Text beyond the head, or a head of more than twice the tokenizer, is a tokenizer of another model.
    """
    width = _width(model)
    own = Vocabulary.from_huggingface(tokenizer)
    if width is None:
        return Vocabulary.from_huggingface(tokenizer, model=model)
    beyond = sum(1 for text in own.tokens[width:] if text)
    if beyond or own.vocab_size * 2 < width:
        raise VocabularyError(
            f"the tokenizer has {own.vocab_size} ids and the model {width} logits: "
            "the tokenizer belongs to another model"
        )
    return Vocabulary.from_huggingface(tokenizer, vocab_size=width, model=model)


def _has_plain_cache(model: Any) -> bool:
    """Whether each layer's past is keys and values by position (not a recurrent state)."""
    from transformers import cache_utils

    try:
        layers = cache_utils.DynamicCache(config=model.config).layers
    except Exception:  # a configuration that names no layers
        return False
    plain = (cache_utils.DynamicLayer, cache_utils.DynamicSlidingWindowLayer)
    return all(type(layer) in plain for layer in layers)
