"""A transformers causal model as a `LanguageModel`: forwards for the prefix tree of prefix_tree.py.

Enters: any `AutoModelForCausalLM` and its tokenizer. Leaves: frozen vectors of log-probabilities.
Cost: a call runs the tokens that no cached ancestor covers: one forward for up to `batch_size` contexts.

The problem. A batch of the tree has contexts of different lengths, of which different numbers of tokens are
cached. Models differ in what their forward takes: positions, which logits to keep, a plain cache of keys or a
recurrent state.

The idea. Cached keys are padded on the left and new tokens on the right, so that no query ever attends to
nothing (a fully masked query may be NaN, and NaN times zero spreads). For a row with 3 cached and 1 new token
beside a row with 1 cached and 2 new tokens the mask and the ids are

    cached    new           positions
    1 1 1     1 1  x -      3 3      - is padding after the last token; no real query attends to it
    0 0 1     1 1  y z      1 2

If the model takes `logits_to_keep`, only the vectors that are asked for are computed. The new keys of each
row are stored in the tree's spans. Which arguments the model's forward takes is read from its signature once
(`__init__`).

A model without a plain cache runs every context as a whole. Vectors of a model on a GPU may stay there
(`resident`). Draft trees are scored by trees.py with a cache of their own (`score_tree`, `tree_scorer`).

Invariants.
- The vocabulary is as wide as the logits. A tokenizer of another model is refused (`_vocabulary`).
- A vector with NaN is never kept: it is a LanguageModelError.
- A small model on a CPU computes in one thread, and torch's own number is put back after each forward.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from .._extras import missing
from .._tokenizers.hub import hub_options
from ..errors import VocabularyError
from ..vocabulary import Vocabulary
from .base import Context, LanguageModelError
from .prefix_tree import Node, PrefixTreeLM, Row, ancestor, layout
from .threads import OneThread

if TYPE_CHECKING:
    import torch

    from .resident import Resident
    from .trees import TreeScorer

__all__ = ["Node", "TransformersLM"]

_Vector = npt.NDArray[np.float32]
_SMALL = 10_000_000  # for models of up to so many parameters, a second thread only costs time


class TransformersLM(PrefixTreeLM):
    """A causal model of transformers with its tokenizer. Thread-safe.

    Args:
        model: a loaded model. It is put into evaluation mode and stays on its device.
        tokenizer: the model's tokenizer; None if `vocabulary` is given and prompts are ids.
        vocabulary: the bytes of the ids, as wide as the logits; made from the tokenizer by default.
        kv_bytes: the most bytes of keys, values and kept vectors; 0 keeps nothing.
        max_context: the most tokens of prompt and answer together; by default as the configuration says.
        batch_size: the most contexts of one forward.

    Raises:
        VocabularyError: the tokenizer belongs to another model.
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
        if vocabulary is None and tokenizer is None:
            raise VocabularyError("a model needs its tokenizer, or a vocabulary")
        self.model: Any = model.eval()
        self.tokenizer = tokenizer
        vocabulary = vocabulary or _vocabulary(model, tokenizer)
        width = _width(model)
        if width is not None and vocabulary.vocab_size != width:
            raise VocabularyError(
                f"the vocabulary has {vocabulary.vocab_size} ids and the model {width} logits: "
                "make it with vocab_size, or use this model's own tokenizer"
            )
        arguments = inspect.signature(model.forward).parameters
        self._reuses_keys = _has_plain_cache(model)
        self._selects = "logits_to_keep" in arguments
        super().__init__(
            vocabulary,
            kv_bytes=kv_bytes if self._reuses_keys else 0,
            max_context=max_context or _positions(model),
            batch_size=batch_size,
            pads=self._reuses_keys and "position_ids" in arguments,
        )
        self._small = sum(p.numel() for p in model.parameters()) <= _SMALL
        self._scores_trees = False
        self._tree: tuple[TreeScorer, list[int]] | None = None

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
        """Returns a model and its tokenizer from a folder, a GGUF file or the hub.

        The weights of a GGUF file are read into `dtype`, whatever they are in the file; that takes the
        packages gguf and accelerate.

        Args:
            device: the device of the model; by default a GPU if there is one.
            dtype: the type of the weights; by default float32 on a CPU, and that of the files elsewhere.
            arguments: further arguments of `AutoModelForCausalLM.from_pretrained`.

        Raises:
            LanguageModelError: there is no such model, or its files are damaged.
            MissingDependency: torch or transformers is not installed.
        """
        try:
            import torch
            from transformers import AutoModelForCausalLM, AutoTokenizer
        except ImportError as error:
            raise missing(error, "models of transformers") from None
        name = os.fspath(path_or_id)
        if device is None:
            device = "cuda" if torch.cuda.is_available() else "cpu"
        if dtype is None:
            dtype = torch.float32 if torch.device(device).type == "cpu" else "auto"
        source = name
        files = {}
        if name.endswith(".gguf"):
            if not os.path.isfile(name):
                raise LanguageModelError(f"cannot load the model {name!r}: no such file")
            source, file = os.path.split(name)
            source, files = source or ".", {"gguf_file": file}
        elif os.path.isdir(name) and not os.path.exists(os.path.join(name, "config.json")):
            raise LanguageModelError(f"cannot load the model {name!r}: the folder has no config.json")
        try:
            files |= hub_options(source)
            tokenizer = AutoTokenizer.from_pretrained(source, **files)
            model = AutoModelForCausalLM.from_pretrained(source, dtype=dtype, **{**files, **arguments})
        except Exception as error:  # transformers and safetensors raise many types of errors
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
    def runs_here(self) -> bool:
        """Whether forward passes compute in the caller's thread. The caller then measures them by its own
        clock."""
        return bool(self.model.device.type == "cpu")

    def threads(self) -> AbstractContextManager[None]:
        """Returns a context for a forward: one thread of torch for a small model on a CPU, otherwise all
        threads."""
        return _one_thread() if self._small and self.runs_here else nullcontext()

    def clear(self) -> None:
        """Forgets all keys and values. Contexts that are still held keep their vectors."""
        with self._lock:
            super().clear()
            self._tree = None

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a prompt, with the special tokens that the tokenizer adds."""
        if self.tokenizer is None:
            return self.vocabulary.encode(text)
        encoded = self.tokenizer.encode(text)
        return [int(i) for i in getattr(encoded, "ids", encoded)]

    def _first_token(self) -> int | None:
        first = getattr(self.tokenizer, "bos_token_id", None)
        return None if first is None else int(first)

    @staticmethod
    def _empty(like: Any, shape: tuple[int, ...]) -> Any:
        return like.new_empty(shape)

    def tree_scorer(self) -> TreeScorer:
        """Returns a batch of rows whose draft trees are scored in one forward; see `structgen.lm.trees`.

        It keeps keys of its own, apart from those of `logprobs`.

        Raises:
            LanguageModelError: the model cannot remove refused drafts from its cache.
        """
        from .trees import TreeScorer

        return TreeScorer(self)

    def check_tree_scoring(self) -> None:
        """Raises a LanguageModelError with the reason if trees cannot be scored.

        The first call tries it out.
        """
        from .trees import check_by_trial, check_tree_scoring

        check_tree_scoring(self.model)
        if not self._scores_trees:
            check_by_trial(self)
            self._scores_trees = True

    def score_tree(self, context: Context, tokens: Sequence[int], parents: Sequence[int]) -> _Vector:
        """Returns log-probabilities after a context and after every node of a tree below it, in one forward.

        The keys of the last context are kept. The next call reuses them for a common prefix.

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
            self._tree = None  # if anything below fails, the half-written keys are dropped
            kept.truncate(common)
            logits = kept.score([Block(prefix[common:], tokens, parents)])[0]
            with torch.inference_mode():
                found = torch.log_softmax(logits.float(), dim=-1).cpu().numpy()
            kept.keep([[]])
            self._tree = (kept, prefix)
        if np.isnan(found).any():
            raise LanguageModelError("the model's logits are not a distribution: they are NaN or all -inf")
        return cast(_Vector, found)

    def _forward(self, rows: list[Row]) -> None:
        """Runs one forward pass, stores the wanted vectors and keeps the new keys."""
        import torch

        past, (ids, positions) = max(row.past for row in rows), layout(rows)
        mask = np.zeros((len(rows), past + ids.shape[1]), np.int64)
        for i, row in enumerate(rows):
            mask[i, past - row.past :] = 1  # padding on the right comes after every real query
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
        with torch.inference_mode(), self.threads():
            if self._reuses_keys:
                arguments["past_key_values"] = self._cache(rows, past)
            output = self.model(**arguments)
            place = {p: i for i, p in enumerate(kept)} if self._selects else {p: p for p in kept}
            self._freeze_all(rows, output.logits, place)
            if self._store.budget:
                self._keep(rows, output.past_key_values, past)

    def _cache(self, rows: list[Row], past: int) -> Any:
        """Returns the cached keys of the rows as one cache of shape (rows, heads, past, size), padded on the
        left."""
        from transformers import DynamicCache

        if not past:
            return DynamicCache()
        pieces = [self._store.slices(ancestor(row.node, row.past)) if row.past else [] for row in rows]
        made: list[torch.Tensor] = []
        for i, like in enumerate(next(p[0][0] for p in pieces if p).buffers):
            heads, _, size = like.shape
            full = like.new_zeros((len(rows), heads, past, size))
            for r, row in enumerate(rows):
                at = past - row.past
                for span, first, last in pieces[r]:
                    full[r, :, at : at + last - first] = span.buffers[i][:, first:last]
                    at += last - first
            made.append(full)
        return DynamicCache(list(zip(made[::2], made[1::2], strict=True)))

    def _freeze_all(self, rows: list[Row], logits: torch.Tensor, place: dict[int, int]) -> None:
        import torch

        width = self.vocabulary.vocab_size
        if logits.shape[-1] != width:
            raise VocabularyError(f"the model gave {logits.shape[-1]} logits for {width} ids")
        nodes = [(i, n, place[len(n) - 1 - row.past]) for i, row in enumerate(rows) for n in row.wanted]
        picked = logits[[i for i, _, _ in nodes], [p for _, _, p in nodes]]
        vectors = torch.log_softmax(picked.float(), dim=-1)
        if not self._stays:
            for vector, (_, node, _) in zip(vectors.cpu().numpy(), nodes, strict=True):
                self._freeze(node, vector)
            return
        if bool(torch.isnan(vectors).any()):
            raise LanguageModelError("the model's logits are not a distribution: they are NaN or all -inf")
        for vector, (_, node, _) in zip(vectors, nodes, strict=True):
            self._keep_vector(node, vector.clone())

    @property
    def _stays(self) -> bool:
        """Whether vectors stay on the model's device.

        Apple's device has no double precision, so vectors do not stay there.
        """
        return not self.runs_here and self.model.device.type != "mps"

    @staticmethod
    def _as_array(vector: Any) -> _Vector:
        return vector if isinstance(vector, np.ndarray) else cast(_Vector, vector.cpu().numpy())

    def resident(self, contexts: Sequence[Context]) -> Resident | None:
        """Returns the rows of `logprobs` on the device that computed them; None if that is the CPU.

        Raises:
            As `logprobs`.
        """
        if not self._stays:
            return None
        import torch

        from .resident import Resident

        with self._lock, torch.inference_mode():
            rows = Resident(torch.stack(self._vectors(contexts)))
            self._store.shrink()
        return rows

    def _keep(self, rows: list[Row], cache: Any, past: int) -> None:
        for r, row in enumerate(rows):
            span = slice(past, past + row.new)
            new = [t[r, :, span] for layer in cache.layers for t in (layer.keys, layer.values)]
            self._store.write(row.node, new, row.past)


def _torch_threads() -> tuple[Callable[[], int], Callable[[int], object]]:
    import torch

    return torch.get_num_threads, torch.set_num_threads


_one_thread = OneThread(_torch_threads, of_caller=True)


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """Returns the length of the longest common prefix."""
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))


def _text_config(model: Any) -> Any:
    config = model.config
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def _width(model: Any) -> int | None:
    """Returns the number of logits, from the head if there is one, else from the configuration."""
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
    """Returns the tokenizer's vocabulary at the width of the logits. Raises a VocabularyError if tokenizer
    and model do not belong together.

    A head may be wider than the tokenizer (padding), and special tokens may lie beyond the head (images). But
    if ordinary tokens lie beyond the head, or the head has more than twice as many ids, the tokenizer is
    another model's.
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
    """Returns whether each layer keeps keys and values by position, and not a recurrent state."""
    from transformers import cache_utils

    try:
        layers = cache_utils.DynamicCache(config=model.config).layers
    except Exception:  # the configuration does not name its layers
        return False
    plain = (cache_utils.DynamicLayer, cache_utils.DynamicSlidingWindowLayer)
    return all(type(layer) in plain for layer in layers)
