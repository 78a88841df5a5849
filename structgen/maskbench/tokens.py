"""The vocabulary that all engines of a run share, and the encoder of its texts.

Enters: "tekken", "embedded", or a tokenizer's file, folder or hub name. Leaves: `Tokens`. Cost: tekken's
131,072 tokens take two seconds, most of it in its own encoder.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._extras import missing
from ..vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Tokens:
    """A vocabulary as bytes by id. Special ids have the empty string; they never match text."""

    name: str
    text: list[bytes]
    special: Sequence[int]
    eos: int  # the end id of replayed texts, and the only one that engines know
    encode: Callable[[str], list[int]]


def load(name: str) -> Tokens:
    """Loads a vocabulary by name. VocabularyError or OSError: there is no such tokenizer."""
    if name == "tekken":
        return tekken()
    if name == "embedded":
        from ..lm import embedded

        return of_vocabulary(Vocabulary.from_file(embedded.path()), "embedded")
    vocabulary = Vocabulary.from_file(name) if Path(name).exists() else Vocabulary.from_huggingface(name)
    return of_vocabulary(vocabulary, name)


def of_vocabulary(vocabulary: Vocabulary, name: str) -> Tokens:
    eos = vocabulary.eos_token_ids[0]
    special = sorted({*vocabulary.special_token_ids, *vocabulary.eos_token_ids})
    return Tokens(name, list(vocabulary.tokens), special, eos, vocabulary.encode)


def tekken() -> Tokens:
    """Mistral's 131,072-token vocabulary, shipped inside the mistral-common package."""
    try:
        import mistral_common
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer
    except ImportError as error:
        raise missing(error, "benchmarks over the tekken vocabulary") from None
    path = Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"
    with open(path, encoding="utf-8") as file:
        record = json.load(file)
    size = record["config"]["default_vocab_size"]
    special = record["config"]["default_num_special_tokens"]
    words = record["vocab"][: size - special]  # the file holds more than the vocabulary uses
    text = [b""] * special + [base64.b64decode(word["token_bytes"]) for word in words]
    tokenizer: Any = Tekkenizer.from_file(path)
    if tokenizer.n_words != len(text):
        raise ValueError(f"{path.name} has {len(text)} tokens, its tokenizer {tokenizer.n_words}")

    def encode(string: str) -> list[int]:
        ids: list[int] = tokenizer.encode(string, bos=False, eos=False)
        return ids

    return Tokens("tekken-131k", text, range(special), tokenizer.eos_id, encode)
