"""Reads live tokenizer objects of any library, which it recognises by their attributes.

Enters: a tokenizer of transformers, tokenizers, tiktoken or mistral-common. Leaves: `Parts`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import byte_bpe, ends, files, huggingface
from .parts import Parts

# attributes in which transformers' tokenizers keep the inner tokenizer
_TIKTOKEN_INSIDE = ("tokenizer", "model", "encoder")
_MISTRAL_INSIDE = (
    (),
    ("tokenizer",),
    ("instruct_tokenizer", "tokenizer"),
    ("tokenizer", "instruct_tokenizer", "tokenizer"),
)


def from_object(tokenizer: Any) -> Parts:
    """Reads a live tokenizer. Raises a VocabularyError if the object is not a tokenizer."""
    if hasattr(tokenizer, "image_processor") or hasattr(tokenizer, "feature_extractor"):
        tokenizer = tokenizer.tokenizer  # a multi-modal processor
    parts = _read(tokenizer)
    parts.eos = ends.of_tokenizer(tokenizer, parts)
    return parts


def _read(tokenizer: Any) -> Parts:
    if byte_bpe.is_tiktoken(tokenizer):
        return byte_bpe.from_encoding(tokenizer)
    if (file := _mistral_file(tokenizer)) is not None:
        return files.read(file)
    if not hasattr(tokenizer, "backend_tokenizer"):
        for name in _TIKTOKEN_INSIDE:  # remote code of Qwen and Kimi
            if byte_bpe.is_tiktoken(inner := getattr(tokenizer, name, None)):
                return byte_bpe.from_encoding(inner)
    return huggingface.from_transformers(tokenizer)


def _mistral_file(tokenizer: Any) -> Path | None:
    """Returns the file behind a tokenizer of mistral-common, or transformers' wrapper of one."""
    for path in _MISTRAL_INSIDE:
        found = tokenizer
        for name in path:
            found = getattr(found, name, None)
        if type(found).__module__.startswith("mistral_common."):
            file = getattr(found, "file_path", None)
            if file is not None:
                return Path(file)
    return None
