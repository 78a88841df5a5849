"""A tiny model whose thoughts are long, short, absent or never-ending, as a folder that real hosts load.

Enters: a folder. Leaves: a Llama model of one layer, its tokenizer and its chat template, 1 MB, and a judge
of its texts. Cost: a tenth of a second. Needs `safetensors`.

The weights are a table of bigrams: the layer adds nothing, a token of the script has a dimension of its own,
and the row of that dimension gives the next token a logit of 20, so the model writes by chance

    <|answer|>  ->  <think> (three in four)  |  {" (one in four: no thoughts)
    <think>     ->  one of three chains: 40 words, 3 words, or a circle of 2 words
    the last word of the first two chains  ->  </think>  ->  {"

All other tokens have rows of zeros. The token behind such a token is drawn uniformly; under a mask, uniformly
among the allowed tokens.
"""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

import structgen as sg
from structgen.lm import embedded
from structgen.reasoning import FAMILIES

THINKS = FAMILIES["qwen3"]
PROMPT = "<|text|>how many?<|answer|>"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 999}},
    "required": ["n"],
    "additionalProperties": False,
}
_DIMENSIONS, _HEADS, _LOGIT, _LONG, _SHORT = 64, 2, 20.0, 40, 3
_CHAT = (
    "{% for m in messages %}<|text|>{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|answer|>{% if prefilled %}<think>{% endif %}{% endif %}"
)


def write(folder: Path) -> Path:
    """Writes the model. The two marks are special tokens behind the tokens of the embedded model."""
    from safetensors.numpy import save_file

    source = embedded.path("target")
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = json.loads((source / "tokenizer.json").read_text("utf-8"))
    marks = [dict(tokenizer["added_tokens"][0]), dict(tokenizer["added_tokens"][0])]
    for i, (mark, name) in enumerate(zip(marks, (THINKS.start, THINKS.end), strict=True)):
        mark |= {"id": 2048 + i, "content": name, "special": False}
    tokenizer["added_tokens"] += marks
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    settings = json.loads((source / "tokenizer_config.json").read_text("utf-8"))
    settings["chat_template"] = _CHAT
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    shutil.copy(source / "generation_config.json", folder)
    config = json.loads((source / "config.json").read_text("utf-8")) | {
        "dtype": "float32", "hidden_size": _DIMENSIONS, "intermediate_size": _DIMENSIONS,
        "num_hidden_layers": 1,
        "num_attention_heads": _HEADS, "num_key_value_heads": _HEADS, "head_dim": _DIMENSIONS // _HEADS,
        "vocab_size": 2050, "tie_word_embeddings": False,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    save_file(_weights(_script(tokenizer)), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def _script(tokenizer: dict[str, Any]) -> dict[int, dict[int, float]]:
    """Returns a dict of token -> the possible next tokens, each with its logit."""
    ids = tokenizer["model"]["vocab"] | {mark["content"]: mark["id"] for mark in tokenizer["added_tokens"]}
    start, end = ids[THINKS.start], ids[THINKS.end]
    words = [ids[word] for word in _words(ids)]
    long, short, endless = words[:_LONG], words[_LONG : _LONG + _SHORT], words[_LONG + _SHORT :]
    follows = {a: {b: _LOGIT} for chain in (long, short, [*endless, endless[0]]) for a, b in pairwise(chain)}
    follows[ids["<|answer|>"]] = {start: _LOGIT + math.log(3), ids['{"']: _LOGIT}
    follows[start] = {chain[0]: _LOGIT for chain in (long, short, endless)}
    for chain in (long, short):
        follows[chain[-1]] = {end: _LOGIT}
    follows[end] = {ids['{"']: _LOGIT}
    return follows


def _words(ids: Iterable[str]) -> list[str]:
    """Returns the words of the three chains. No word is in two chains, so a text shows its chain."""
    found: list[str] = []
    for word in sorted(w for w in ids if w.isascii() and w.isalpha() and w.islower() and len(w) >= 5):
        if not any(word in other or other in word for other in found):
            found.append(word)
    return found[: _LONG + _SHORT + 2]


def _weights(follows: dict[int, dict[int, float]]) -> dict[str, Any]:
    size = _DIMENSIONS
    shapes = dict.fromkeys([f"self_attn.{part}_proj" for part in "qkvo"], (size, size))
    shapes |= dict.fromkeys([f"mlp.{part}_proj" for part in ("gate", "up", "down")], (size, size))
    weights = {f"model.layers.0.{name}.weight": np.zeros(shape, np.float32) for name, shape in shapes.items()}
    for name in ("model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm", "model.norm"):
        weights[name + ".weight"] = np.ones(size, np.float32)
    for name in ("model.embed_tokens", "lm_head"):
        weights[name + ".weight"] = np.zeros((2050, size), np.float32)
    for dimension, (token, following) in enumerate(follows.items()):
        weights["model.embed_tokens.weight"][token, dimension] = 1
        for other, logit in following.items():  # the layer's norm scales the 1 to sqrt(size)
            weights["lm_head.weight"][other, dimension] = logit / math.sqrt(size)
    return weights


class Judge:
    """Counts the thoughts of texts and checks each text.

    Attributes:
        seen: the number of texts by their thoughts: "absent", "long", "short", "endless".
    """

    def __init__(self, folder: Path) -> None:
        self.vocabulary: sg.Vocabulary = sg.Vocabulary.from_file(folder)
        ids = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
        words = _words(ids)
        self._of = {words[0]: "long", words[_LONG]: "short", words[_LONG + _SHORT]: "endless"}
        self.seen: Counter[str] = Counter()

    def ids(self, tokens: Sequence[int], most: int, **changes: Any) -> None:
        """Checks a text as tokens with its end token: whole, within `most` tokens, with a valid answer."""
        assert len(tokens) <= most, (len(tokens), most)
        assert tokens[-1] in self.vocabulary.eos_token_ids, tokens
        thinks = sg.Reasoning(**{name: getattr(THINKS, name) for name in THINKS.__slots__} | changes)
        self.parts(*thinks.split(self.text(tokens)))

    def text(self, tokens: Sequence[int]) -> str:
        """Returns the text of tokens, including the names of the marks."""
        names = {token: name for name, token in self.vocabulary.special_tokens.items()}
        ends = self.vocabulary.eos_token_ids
        return b"".join(
            self.vocabulary.tokens[t] or names[t].encode() for t in tokens if t not in ends
        ).decode()

    def parts(self, thoughts: str | None, answer: str) -> None:
        """Checks thoughts and answer of one text."""
        jsonschema.validate(json.loads(answer), SCHEMA)
        assert thoughts is None or (THINKS.start not in thoughts and THINKS.end not in thoughts)
        kinds = ["absent"] if thoughts is None else [k for w, k in self._of.items() if thoughts.startswith(w)]
        assert len(kinds) == 1, thoughts
        self.seen[kinds[0]] += 1

    def complete(self) -> None:
        """Asserts that every kind of thoughts occurred."""
        assert set(self.seen) == {"absent", *self._of.values()}, self.seen
