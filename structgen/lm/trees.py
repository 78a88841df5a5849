"""Draft trees under a model of transformers; tree_scoring.py says what a tree is.

Enters: blocks of taken tokens and drafts. Leaves: their logits, as tensors. Cost: one forward.

Masks are additive and 4-D. transformers passes such masks on unread, and its eager attention *adds* them, so
a Boolean mask would give wrong scores without an error. Because the masks are passed on unread, sliding
windows are written into the mask here. A model is refused if refused drafts cannot be removed from its state
(a recurrent model), or if its attention depends on slots and not on positions.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from .base import LanguageModelError
from .tree_cache import TreeCache
from .tree_scoring import Block, TreeScoring

if TYPE_CHECKING:
    from .transformers import TransformersLM

__all__ = ["Block", "TreeScorer", "check_by_trial", "check_tree_scoring"]


class TreeScorer(TreeScoring):
    """A batch of rows under one model. It is not thread-safe, but several batches may share a model.

    Args:
        lm: the model.

    Raises:
        LanguageModelError: the model cannot score trees; the message names the reason.
    """

    def __init__(self, lm: TransformersLM) -> None:
        check_tree_scoring(lm.model)
        self._model = lm.model
        self._threads = lm.threads
        self._config = _text_config(lm.model)
        self._cache = TreeCache(_layers(self._config), 0)
        super().__init__(self._cache, lm.vocabulary.vocab_size, lm.max_context)
        self._windows = _windows(self._config)
        self._selects = "logits_to_keep" in inspect.signature(lm.model.forward).parameters
        self._dtype = next((p.dtype for p in lm.model.parameters() if p.is_floating_point()), torch.float32)
        self._lowest = float(torch.finfo(self._dtype).min)
        self._last: torch.Tensor | None = None

    @property
    def runs_here(self) -> bool:
        return bool(self._model.device.type == "cpu")

    def wait(self) -> None:
        if not self.runs_here and self._last is not None:
            self._last.flatten()[:1].cpu()

    def vector(self, logits: torch.Tensor) -> npt.NDArray[np.float32]:
        with torch.inference_mode():
            found: npt.NDArray[np.float32] = torch.log_softmax(logits.float(), dim=-1).cpu().numpy()
        return found

    def best(self, logits: torch.Tensor) -> int:
        return int(logits.argmax())

    def top(self, logits: torch.Tensor, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        with torch.inference_mode():
            logits = logits.float()
            values, ids = logits.topk(min(count, logits.shape[-1]), dim=-1)
            values = values - logits.logsumexp(dim=-1, keepdim=True)
        return ids.cpu().numpy(), values.cpu().numpy()

    def head(self, states: torch.Tensor, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Returns logits of these ids alone, shape (len(ids),), from one row of hidden states."""
        linear = self._model.get_output_embeddings()
        index = torch.from_numpy(ids).to(linear.weight.device)
        with torch.inference_mode(), self._threads():
            logits = torch.mv(linear.weight.index_select(0, index), states)
            if linear.bias is not None:
                logits = logits + linear.bias.index_select(0, index)
        found: npt.NDArray[np.float32] = logits.float().cpu().numpy()
        return found

    def has_plain_head(self) -> bool:
        """Returns whether logits are exactly the rows of the head times the last hidden state; found out by a
        trial."""
        linear = getattr(self._model, "get_output_embeddings", lambda: None)()
        base = getattr(self._model, "base_model", None)
        if not isinstance(linear, torch.nn.Linear) or base is None or base is self._model:
            return False
        ids = torch.arange(3, device=self._model.device)[None] % max(1, self.vocab_size)
        with torch.inference_mode():
            full = self._model(input_ids=ids, use_cache=False).logits
            own = linear(base(input_ids=ids, use_cache=False)[0])
        return full.shape == own.shape and bool(torch.allclose(full, own, rtol=1e-5, atol=1e-5))

    def _run(
        self, blocks: Sequence[Block], *, hidden: bool = False, keep_last: bool = False
    ) -> list[torch.Tensor]:
        ids, positions, seen = self._layout(blocks)
        width = ids.shape[1]
        device = self._model.device
        arguments: dict[str, Any] = {
            "input_ids": torch.from_numpy(ids).to(device),
            "position_ids": torch.from_numpy(positions).to(device),
            "attention_mask": self._masks(seen, positions, device),
            "past_key_values": self._cache.cache,
            "use_cache": True,
        }
        starts = [max(len(b.taken) - 1, 0) for b in blocks]
        first = min(starts)
        if self._selects and not hidden:
            # The logits of the prompt's tokens are not needed, and they are most of the work of a first
            # forward.
            arguments["logits_to_keep"] = 1 if keep_last else torch.arange(first, width, device=device)
        with torch.inference_mode(), self._threads():
            model = self._model.base_model if hidden else self._model
            output = model(**arguments)
            scores = output[0] if hidden else output.logits
        self._last = scores
        if keep_last:
            return []
        offset = first if self._selects and not hidden else 0
        found = []
        for r, block in enumerate(blocks):
            part = scores[r, starts[r] - offset : starts[r] - offset + 1 + len(block.tokens)]
            found.append(part)
        return found

    def _masks(self, seen: npt.NDArray[np.bool_], positions: npt.NDArray[np.int64], device: Any) -> Any:
        if not self._windows:
            return self._additive(seen, device)
        full = self._additive(seen, device) if None in self._windows.values() else None
        made: dict[str, Any] = {}
        for name, window in self._windows.items():
            if window is None:
                made[name] = full
                continue
            slots = seen.shape[2] - seen.shape[1]
            keys = np.zeros((seen.shape[0], seen.shape[2]), np.int64)
            # A live slot's position is its rank among the row's live slots.
            keys[:, :slots] = np.cumsum(self._cache.live[:, :slots], axis=1) - 1
            keys[:, slots:] = positions
            near = positions[:, :, None] - keys[:, None, :] < window
            made[name] = self._additive(seen & near, device)
        return made if len(made) > 1 or _takes_masks_by_type(self._config) else next(iter(made.values()))

    def _additive(self, seen: npt.NDArray[np.bool_], device: Any) -> torch.Tensor:
        visible = torch.from_numpy(seen[:, None]).to(device)
        mask = torch.full(visible.shape, self._lowest, dtype=self._dtype, device=device)
        return mask.masked_fill_(visible, 0.0)


def check_tree_scoring(model: Any) -> None:
    """Raises a LanguageModelError with the reason unless drafts can be scored as a tree and taken back."""
    from transformers import cache_utils

    try:
        layers = cache_utils.DynamicCache(config=model.config).layers
    except Exception as error:
        raise LanguageModelError(f"the model's cache is unknown ({error}): drafts cannot be scored") from None
    plain = (cache_utils.DynamicLayer, cache_utils.DynamicSlidingWindowLayer)
    for i, layer in enumerate(layers):
        if type(layer) not in plain:
            raise LanguageModelError(
                f"layer {i} of {type(model).__name__} keeps a {type(layer).__name__}, which cannot take "
                "refused drafts back (a recurrent state has no positions): use speculate=None"
            )
    if not layers and not isinstance(getattr(_text_config(model), "num_hidden_layers", None), int):
        raise LanguageModelError(f"{type(model).__name__} does not say how many layers it has")
    if "position_ids" not in inspect.signature(model.forward).parameters:
        raise LanguageModelError(
            f"{type(model).__name__} takes no position_ids: nodes of a tree need positions of their own"
        )
    config = _text_config(model)
    if getattr(config, "alibi", False) or "local" in (getattr(config, "attention_layers", None) or ()):
        raise LanguageModelError(
            f"{type(model).__name__} looks at the distance of slots, which is not that of a tree's positions"
        )
    _windows(config)
    attention = getattr(config, "_attn_implementation", None)
    if attention not in (None, "eager", "sdpa"):
        raise LanguageModelError(
            f"attention {attention!r} takes no 4-D mask: load the model with attn_implementation='sdpa'"
        )


def check_by_trial(lm: TransformersLM) -> None:
    """Raises a LanguageModelError unless a small tree gets the logits of its paths. It runs a few short
    forwards.

    A model may ignore the mask or the positions. It would then accept drafts that it would not write itself.
    """
    scorer = TreeScorer(lm)
    scorer.add(2)
    size = max(lm.vocabulary.vocab_size, 2)
    ids = [(7 * i + 3) % size for i in range(12)]
    blocks = [Block(ids[:4], ids[4:8], [-1, -1, 0, 2]), Block(ids[8:10], ids[10:12], [-1, -1])]
    scores = scorer.score(blocks)
    allowed = 1e-2 if scorer._dtype in (torch.float32, torch.float64) else 0.5
    for block, rows, nodes in zip(blocks, scores, ((3, 1), (1,)), strict=True):
        for node in nodes:
            path: list[int] = []
            at = node
            while at >= 0:
                path.append(block.tokens[at])
                at = block.parents[at]
            text = torch.tensor([[*block.taken, *reversed(path)]], device=lm.model.device)
            with torch.inference_mode():
                wanted = torch.log_softmax(
                    lm.model(input_ids=text, use_cache=False).logits[0, -1].float(), -1
                )
                found = torch.log_softmax(rows[node + 1].float(), -1)
                gap = float((wanted.exp() - found.exp()).abs().max())
            if not gap < allowed:
                raise LanguageModelError(
                    f"{type(lm.model).__name__} does not score trees right (in a trial, probabilities differ "
                    f"by {gap:.2g}): use speculate=None"
                )


def _layers(config: Any) -> int:
    return int(config.num_hidden_layers)


def _windows(config: Any) -> dict[str, int | None]:
    """Returns a dict of layer type -> size of its sliding window; empty if every layer sees all tokens."""
    window: int | None = getattr(config, "sliding_window", None)
    types = getattr(config, "layer_types", None)
    if types is None:
        used = getattr(config, "use_sliding_window", True)
        return {"sliding_attention": window} if used and window is not None else {}
    found = {t: window if t == "sliding_attention" else None for t in dict.fromkeys(types)}
    unknown = found.keys() - {"full_attention", "sliding_attention"}
    if unknown:
        raise LanguageModelError(f"layers of type {', '.join(sorted(unknown))} have masks of their own")
    return {} if found.keys() == {"full_attention"} else found


def _takes_masks_by_type(config: Any) -> bool:
    """Returns whether the model takes a dict of masks by layer type. Models with `layer_types` do."""
    return getattr(config, "layer_types", None) is not None


def _text_config(model: Any) -> Any:
    config = model.config
    return config.get_text_config() if hasattr(config, "get_text_config") else config
