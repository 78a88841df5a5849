"""The forward of a small Llama model in numpy.

Enters: a folder (`config.json`, `model.safetensors`); token ids, their positions, earlier keys and values.
Leaves: hidden states and logits, float32, equal to those of torch to rounding. Cost: the weights in float32;
about thirty calls of numpy a layer, which for one token take longer than their arithmetic.

Factors that do not depend on the text are multiplied into the weights when the weights are read: the gains of
norms, the scale of attention, the factor 1/2 in SiLU's argument. A rotary position embedding rotates pairs of
channels of queries and keys. The channels are reordered so that the two channels of a pair lie side by side:
a pair is then a complex number, and its rotation is one multiplication.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import safetensors_file
from .base import LanguageModelError

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]


class Past(ABC):
    """Keys and values to which a forward pass attends: those of earlier passes, and those of the pass itself,
    which it stores here.

    Queries, keys and values are (rows, heads, tokens, size).
    """

    @abstractmethod
    def scores(self, layer: int, queries: Floats, keys: Floats, values: Floats) -> Floats:
        """Stores one layer's new keys and values. Returns the products of the queries with all keys, shape
        (rows, heads, tokens, slots)."""

    @abstractmethod
    def mix(self, layer: int, weights: Floats) -> Floats:
        """Returns the sums of the values with these weights, shape (rows, heads, tokens, size)."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer's matrices, each (outputs, inputs)."""

    attention: Floats  # queries, keys, values
    output: Floats
    expand: Floats  # gate (halved) and up
    contract: Floats


class Llama:
    """Weights and forward. Immutable; threads may share it.

    Raises:
        LanguageModelError: the files are missing, damaged, or of a model that this forward does not cover.
    """

    def __init__(self, folder: Path) -> None:
        self._config = config = _config(folder / "config.json")
        tensors = safetensors_file.read(folder / "model.safetensors")

        def take(name: str, *shape: int) -> Floats:
            found = tensors.get(name)
            if found is None or found.shape != shape:
                size = "missing" if found is None else f"of shape {list(found.shape)}, not {list(shape)}"
                raise LanguageModelError(f"{folder / 'model.safetensors'}: the tensor {name} is {size}")
            return found.astype(np.float32)

        width, inner, size = config.width, config.inner, config.width // config.heads
        # Of each head's channels, i and i + size / 2 are turned together.
        pairs = np.arange(width).reshape(config.heads, 2, size // 2).swapaxes(1, 2).ravel()
        self._layers: list[_Layer] = []
        for i in range(config.layers):
            at = f"model.layers.{i}."
            q, k, v = (take(f"{at}self_attn.{name}_proj.weight", width, width) for name in "qkv")
            before = take(f"{at}input_layernorm.weight", width)
            between = take(f"{at}post_attention_layernorm.weight", width)
            gate, up = (take(f"{at}mlp.{name}_proj.weight", inner, width) for name in ("gate", "up"))
            self._layers.append(
                _Layer(
                    np.concatenate([q[pairs] / np.float32(np.sqrt(size)), k[pairs], v]) * before,
                    take(f"{at}self_attn.o_proj.weight", width, width),
                    np.concatenate([gate / 2, up]) * between,
                    take(f"{at}mlp.down_proj.weight", width, inner),
                )
            )
        self._embedding = take("model.embed_tokens.weight", config.vocab_size, width)
        head = self._embedding if config.tied else take("lm_head.weight", config.vocab_size, width)
        self._head: Floats = head * take("model.norm.weight", width)
        steps = np.arange(0, size, 2, dtype=np.float32) / np.float32(size)
        # Frequencies and angles are rounded as in transformers; otherwise late positions differ.
        frequencies = np.float32(1) / (config.theta ** steps.astype(np.float64)).astype(np.float32)
        turns = np.arange(config.positions, dtype=np.float32)[:, None] * frequencies
        self._turns = np.exp(1j * turns.astype(np.float64)).astype(np.complex64)

    @property
    def layers(self) -> int:
        return self._config.layers

    @property
    def heads(self) -> int:
        return self._config.heads

    @property
    def head_size(self) -> int:
        return self._config.width // self._config.heads

    @property
    def vocab_size(self) -> int:
        return self._config.vocab_size

    @property
    def positions(self) -> int:
        """The most positions that the model's configuration allows."""
        return self._config.positions

    @property
    def nbytes(self) -> int:
        """The number of bytes of the weights."""
        parts = [self._embedding, self._head, self._turns]
        for layer in self._layers:
            parts += [layer.attention, layer.output, layer.expand, layer.contract]
        return sum(part.nbytes for part in parts)

    def forward(self, ids: Ids, positions: Ids, past: Past, mask: Floats | None) -> Floats:
        """Returns normalised states after the last layer, (rows, tokens, width), for `head`.

        Args:
            ids: (rows, tokens).
            positions: (rows, tokens), each below `positions`.
            past: takes the new keys and values.
            mask: added to the scores, shape (rows or 1, 1, tokens, slots), 0 or -inf; None lets every query
                see every slot. Each query must see at least one slot.
        """
        rows, tokens = ids.shape
        width, heads, size = self._config.width, self._config.heads, self.head_size
        turns = self._turns[positions.ravel()][:, None, :]
        x = self._embedding[ids.ravel()]
        for i, layer in enumerate(self._layers):
            made = self._normalised(x) @ layer.attention.T
            turned = made.view(np.complex64)[:, :width].reshape(rows * tokens, 2 * heads, size // 2)
            turned *= turns
            q, k, v = made.reshape(rows, tokens, 3, heads, size).transpose(2, 0, 3, 1, 4)
            scores = past.scores(i, q, k, v)
            if mask is not None:
                scores += mask
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=-1, keepdims=True)
            mixed = past.mix(i, scores).transpose(0, 2, 1, 3).reshape(rows * tokens, width)
            x += mixed @ layer.output.T
            wide = self._normalised(x) @ layer.expand.T
            gate, up = wide[:, : self._config.inner], wide[:, self._config.inner :]
            # silu(2 g) = g (1 + tanh g). This form never overflows.
            opened = np.tanh(gate)
            opened += 1
            opened *= gate
            opened *= up
            x += opened @ layer.contract.T
        return self._normalised(x).reshape(rows, tokens, width)

    def head(self, states: Floats, ids: Ids | None = None) -> Floats:
        """Returns logits (n, V) of states (n, width); with `ids` only these columns."""
        weights = self._head if ids is None else self._head[ids]
        return states @ weights.T

    def _normalised(self, x: Floats) -> Floats:
        squares = np.einsum("ij,ij->i", x, x)
        squares /= self._config.width
        squares += self._config.epsilon
        np.sqrt(squares, out=squares)
        normalised: Floats = x / squares[:, None]
        return normalised


def log_softmax(logits: Floats) -> Floats:
    """Returns natural-log probabilities along the last axis; a fresh array."""
    shifted: Floats = logits - logits.max(axis=-1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted


@dataclass(frozen=True, slots=True)
class _Config:
    vocab_size: int
    width: int
    inner: int
    layers: int
    heads: int
    positions: int
    epsilon: np.float32
    theta: float
    tied: bool


def _config(path: Path) -> _Config:
    """Returns the numbers of a `config.json`. Raises a LanguageModelError if this forward pass does not
    support a setting; the error names the setting."""
    try:
        raw: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise LanguageModelError(f"cannot read {path}: {error}") from None
    try:
        rope = raw.get("rope_parameters") or {"rope_theta": raw.get("rope_theta", 10000.0)}
        heads = int(raw["num_attention_heads"])
        width = int(raw["hidden_size"])
        covered = {
            "model_type": raw.get("model_type") == "llama",
            "hidden_act": raw.get("hidden_act", "silu") == "silu",
            "num_key_value_heads": raw.get("num_key_value_heads") in (None, heads),
            "head_dim": raw.get("head_dim") in (None, width // heads) and width % (2 * heads) == 0,
            "rope_parameters": rope.get("rope_type", "default") == "default" and not raw.get("rope_scaling"),
            "attention_bias": not raw.get("attention_bias"),
            "mlp_bias": not raw.get("mlp_bias"),
        }
        found = _Config(
            int(raw["vocab_size"]),
            width,
            int(raw["intermediate_size"]),
            int(raw["num_hidden_layers"]),
            heads,
            int(raw["max_position_embeddings"]),
            np.float32(raw.get("rms_norm_eps", 1e-6)),
            float(rope["rope_theta"]),
            bool(raw.get("tie_word_embeddings")),
        )
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise LanguageModelError(f"{path} is damaged: {error!r}") from None
    for name, fine in covered.items():
        if not fine:
            raise LanguageModelError(
                f"{path}: {name} is {raw.get(name)!r}, which the numpy forward does not cover: "
                "load the model with TransformersLM.from_pretrained"
            )
    return found
