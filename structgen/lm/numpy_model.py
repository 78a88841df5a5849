"""The embedded models without torch: a small Llama in numpy as a `LanguageModel`.

Enters: a folder of weights and tokenizer. Leaves: frozen vectors of log-probabilities, logits of draft trees.
Cost: a forward over the tokens that no cached ancestor covers. Earlier keys are read in place. Keys that
all rows share (those of a prompt) take one product for all rows; keys of a single row take a product for
this row.

BLAS runs in one thread. On two busy cores several threads took 77 ms of CPU time to read 200 tokens, and one
thread takes 16 ms.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _tokenizers
from .._draws import top
from .._tokenizers import byte_level
from ..errors import VocabularyError
from ..vocabulary import Vocabulary
from .base import LanguageModelError
from .llama import Floats, Llama, Past, log_softmax
from .prefix_tree import PrefixTreeLM, Row, Span, ancestor, layout
from .threads import one_blas_thread
from .tree_scoring import Block, TreeScoring
from .tree_slots import TreeSlots

_Part = tuple[Span, int, int]  # a span, and the beginning and end of a part of its buffer


class NumpyLM(PrefixTreeLM):
    """A model of `structgen.lm.llama` with its vocabulary, whose own encoder reads prompts. Thread-safe.

    Args:
        encode: turns a text into ids; the name of a special token in the text becomes this token.
        kv_bytes: the most bytes of keys, values and kept vectors; 0 keeps nothing.
        max_context: the most tokens of prompt and answer together; by default that of the configuration.
        batch_size: the most contexts of one forward.

    Raises:
        VocabularyError: the vocabulary does not have exactly one id for each logit.
    """

    runs_here = True
    # the limit for doubtful answers of the embedded models; see `structgen.lm.doubt`
    least_logprob: float | None = None

    def __init__(
        self,
        model: Llama,
        vocabulary: Vocabulary,
        encode: Callable[[str], Sequence[int]],
        *,
        kv_bytes: int = 512 << 20,
        max_context: int | None = None,
        batch_size: int = 64,
    ) -> None:
        if vocabulary.vocab_size != model.vocab_size:
            raise VocabularyError(
                f"the vocabulary has {vocabulary.vocab_size} ids and the model {model.vocab_size} logits"
            )
        self.llama = model
        self._encode = encode
        limit = model.positions if max_context is None else min(max_context, model.positions)
        super().__init__(vocabulary, kv_bytes=kv_bytes, max_context=limit, batch_size=batch_size)

    @classmethod
    def from_folder(cls, folder: Path, **options: Any) -> NumpyLM:
        """Returns a folder with `config.json`, `model.safetensors` and a byte-level `tokenizer.json`.

        Raises:
            LanguageModelError: a file is missing, damaged, or of a model that is not covered.
            VocabularyError: the tokenizer is damaged, or of a kind that is not covered.
        """
        parts = _tokenizers.read(folder)
        parts.encode = byte_level.of_file(folder / "tokenizer.json")
        return cls(Llama(folder), Vocabulary(parts), parts.encode, **options)

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a prompt; the names of special tokens are read as these tokens."""
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise LanguageModelError(
                f"the prompt has half of a surrogate pair at character {error.start}: it is no Unicode text"
            ) from None
        return list(self._encode(text))

    def tree_scorer(self) -> NumpyTreeScorer:
        """Returns a batch of rows whose draft trees are scored in one forward. It keeps keys of its own."""
        return NumpyTreeScorer(self)

    def check_tree_scoring(self) -> None:
        """Does nothing, because this model scores trees."""

    @staticmethod
    def _empty(like: Any, shape: tuple[int, ...]) -> Any:
        return np.empty(shape, like.dtype)

    def _forward(self, rows: list[Row]) -> None:
        ids, positions = layout(rows)
        keys = _Prefixes(self.llama, [self._parts(row) for row in rows], ids.shape[1])
        wanted = [(i, n) for i, row in enumerate(rows) for n in row.wanted]
        places = [len(n) - 1 - rows[i].past for i, n in wanted]
        with one_blas_thread():
            states = self.llama.forward(ids, positions, keys, keys.mask())
            vectors = log_softmax(self.llama.head(states[[i for i, _ in wanted], places]))
        for (_, node), vector in zip(wanted, vectors, strict=True):
            self._freeze(node, vector)
        if self._store.budget:
            for i, row in enumerate(rows):
                self._store.write(row.node, [keys.new[:, i, :, : row.new]], row.past)

    def _parts(self, row: Row) -> list[_Part]:
        """Returns the parts of spans that hold a row's cached keys, in the order of positions."""
        return self._store.slices(ancestor(row.node, row.past)) if row.past else []


class _Prefixes(Past):
    """Holds keys and values for a forward pass: first the shared ones of all rows, then each row's own, then
    the new ones.

    Each row's own keys are padded on the left, and the scores of the padding are -inf.
    """

    def __init__(self, model: Llama, parts: list[list[_Part]], tokens: int) -> None:
        rows = len(parts)
        shape = (2 * model.layers, rows, model.heads, tokens, model.head_size)
        self.new: Floats = np.empty(shape, np.float32)
        common = 0
        while all(len(p) > common and p[common] == parts[0][common] for p in parts):
            common += 1
        views = [[span.buffers[0][:, :, first:last] for span, first, last in p] for p in parts]
        self._shared: list[Floats] = views[0][:common]
        self._own: list[list[Floats]] = [v[common:] for v in views] if rows > 1 else []
        self._begin = sum(v.shape[2] for v in self._shared)
        lengths = [sum(v.shape[2] for v in own) for own in self._own]
        self._end = self._begin + max(lengths, default=0)
        self._starts = [self._end - n for n in lengths]

    def mask(self) -> Floats | None:
        """Returns the mask by which each new token sees the earlier new tokens of its row; None for one token
        a row."""
        tokens = self.new.shape[3]
        if tokens == 1:
            return None
        made = np.zeros((1, 1, tokens, self._end + tokens), np.float32)
        made[..., self._end :][..., ~np.tri(tokens, dtype=np.bool_)] = -np.inf
        return made

    def scores(self, layer: int, queries: Floats, keys: Floats, values: Floats) -> Floats:
        self.new[2 * layer], self.new[2 * layer + 1] = keys, values
        rows, heads, tokens, _ = queries.shape
        found = np.empty((rows, heads, tokens, self._end + tokens), np.float32)
        at = 0
        if self._shared:
            every = _by_head(queries)
            for part in self._shared:
                stop = at + part.shape[2]
                made = every @ part[2 * layer].swapaxes(1, 2)
                found[..., at:stop] = made.reshape(heads, rows, tokens, stop - at).swapaxes(0, 1)
                at = stop
        for r, own in enumerate(self._own):
            at = self._starts[r]
            found[r, :, :, self._begin : at] = -np.inf
            for part in own:
                stop = at + part.shape[2]
                np.matmul(queries[r], part[2 * layer].swapaxes(1, 2), out=found[r, :, :, at:stop])
                at = stop
        np.matmul(queries, keys.swapaxes(2, 3), out=found[..., self._end :])
        return found

    def mix(self, layer: int, weights: Floats) -> Floats:
        rows, heads, tokens, _ = weights.shape
        mixed: Floats = weights[..., self._end :] @ self.new[2 * layer + 1]
        at = 0
        for part in self._shared:
            stop = at + part.shape[2]
            made = _by_head(weights[..., at:stop]) @ part[2 * layer + 1]
            mixed += made.reshape(heads, rows, tokens, -1).swapaxes(0, 1)
            at = stop
        for r, own in enumerate(self._own):
            at = self._starts[r]
            for part in own:
                stop = at + part.shape[2]
                mixed[r] += weights[r, :, :, at:stop] @ part[2 * layer + 1]
                at = stop
        return mixed


def _by_head(x: Floats) -> Floats:
    """Reorders (rows, heads, tokens, n) to (heads, rows * tokens, n), so that all rows take one product for
    each head."""
    rows, heads, tokens, size = x.shape
    return x[0] if rows == 1 else x.swapaxes(0, 1).reshape(heads, rows * tokens, size)


class NumpyTreeScorer(TreeScoring):
    """Draft trees under a `NumpyLM`."""

    runs_here = True

    def __init__(self, lm: NumpyLM) -> None:
        self._llama = lm.llama
        self._keys = _Slots(lm.llama)
        super().__init__(self._keys, lm.vocabulary.vocab_size, lm.max_context)

    def wait(self) -> None:
        pass

    def has_plain_head(self) -> bool:
        return True

    def head(self, states: Floats, ids: npt.NDArray[np.int64]) -> Floats:
        with one_blas_thread():
            found: Floats = self._llama.head(states[None], ids)[0]
        return found

    def vector(self, logits: Floats) -> Floats:
        return log_softmax(logits)

    def best(self, logits: Floats) -> int:
        return int(logits.argmax())

    def top(self, logits: Floats, count: int) -> tuple[npt.NDArray[np.int64], Floats]:
        found = log_softmax(logits)
        ids = np.stack([top(row, count) for row in found])
        return ids, np.take_along_axis(found, ids, axis=1)

    def _run(self, blocks: Sequence[Block], *, hidden: bool = False, keep_last: bool = False) -> list[Floats]:
        ids, positions, seen = self._layout(blocks)
        mask = None if seen.all() else np.where(seen[:, None], np.float32(0), np.float32(-np.inf))
        with one_blas_thread():
            states = self._llama.forward(ids, positions, self._keys, mask)
            if keep_last:
                return []
            starts = [max(len(b.taken) - 1, 0) for b in blocks]
            parts = [
                states[r, start : start + 1 + len(b.tokens)]
                for r, (start, b) in enumerate(zip(starts, blocks, strict=True))
            ]
            if hidden:
                return parts
            logits = self._llama.head(np.concatenate(parts))
        ends = list(itertools.accumulate(len(p) for p in parts))
        return [logits[end - len(p) : end] for p, end in zip(parts, ends, strict=True)]


class _Slots(TreeSlots, Past):
    """The keys and values of draft trees in one buffer of shape (2 layers, rows, heads, capacity, size)."""

    def __init__(self, model: Llama) -> None:
        super().__init__(0)
        shape = (2 * model.layers, 0, model.heads, 0, model.head_size)
        self._buffer: Floats = np.zeros(shape, np.float32)

    def buffers(self) -> list[Floats]:
        return [self._buffer]

    def replace(self, buffers: Sequence[Floats]) -> None:
        (self._buffer,) = buffers

    @staticmethod
    def zeros(like: Floats, shape: tuple[int, ...]) -> Floats:
        return np.zeros(shape, like.dtype)

    def scores(self, layer: int, queries: Floats, keys: Floats, values: Floats) -> Floats:
        stop = self.slots + keys.shape[2]
        self._buffer[2 * layer, :, :, self.slots : stop] = keys
        self._buffer[2 * layer + 1, :, :, self.slots : stop] = values
        found: Floats = queries @ self._buffer[2 * layer, :, :, :stop].swapaxes(2, 3)
        return found

    def mix(self, layer: int, weights: Floats) -> Floats:
        mixed: Floats = weights @ self._buffer[2 * layer + 1, :, :, : weights.shape[3]]
        return mixed
