"""Reads a tokenizer file, or the file in a model's folder, into `Parts`. The content decides the format, not
the name.

Enters: a path. Leaves: `Parts`. If the file names no end of sequence, the files beside it give the ids.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import VocabularyError
from . import byte_bpe, ends, huggingface, sentencepiece_model
from .parts import Parts

_NAMES = ("tokenizer.json", "tekken.json", "tokenizer.model")
_PATTERNS = ("*.tiktoken", "*.model", "*.model.v*", "tekken*.json")


def read(path: Path) -> Parts:
    """Reads a tokenizer file, or the tokenizer file in a folder. VocabularyError names the file and the
    reason."""
    file = _in_folder(path) if path.is_dir() else path
    try:
        data = file.read_bytes()
    except OSError as error:
        raise VocabularyError(f"cannot read {file}: {error.strerror}") from None
    try:
        parts = _parse(data)
    except VocabularyError as error:
        raise VocabularyError(f"{file}: {error}") from None
    beside = ends.beside(file.parent, parts)
    parts.eos = beside or parts.eos or ends.by_name(parts)
    return parts


def _in_folder(folder: Path) -> Path:
    for name in _NAMES:
        if (folder / name).is_file():
            return folder / name
    found = sorted(file for pattern in _PATTERNS for file in folder.glob(pattern))
    if not found:
        raise VocabularyError(
            f"{folder} has no tokenizer file (tokenizer.json, tekken.json, *.model or *.tiktoken)"
        )
    return found[0]


def _parse(data: bytes) -> Parts:
    if not data.strip():
        raise VocabularyError("the file is empty")
    if data.startswith(b"version https://git-lfs"):
        raise VocabularyError("the file is a Git LFS pointer; fetch the file itself")
    if data.lstrip()[:1] in (b"{", b"["):
        return _parse_json(byte_bpe.parse_json(data), data)
    if byte_bpe.looks_like_tiktoken(data[:4096]):
        return byte_bpe.read_tiktoken(data)
    if data[:1] == b"\n":  # field 1, length-delimited: the first piece of a SentencePiece model
        return sentencepiece_model.read_model(data)
    if data[:4] == b"GGUF":
        raise VocabularyError("a GGUF file, which structgen does not read: pass its tokenizer.json")
    raise VocabularyError(
        "the format is not known (tokenizer.json, tekken.json, SentencePiece .model, .tiktoken)"
    )


def _parse_json(record: Any, data: bytes) -> Parts:
    if isinstance(record, dict) and byte_bpe.looks_like_tekken(record):
        return byte_bpe.read_tekken(record)
    if isinstance(record, dict) and huggingface.looks_like_tokenizer(record):
        return huggingface.read_json(record, data)
    kind = type(record).__name__
    keys = ", ".join(list(record)[:5]) if isinstance(record, dict) else ""
    if isinstance(record, dict) and record.keys() & {"tokenizer_class", "eos_token"}:
        raise VocabularyError("a tokenizer_config.json, which holds no vocabulary: pass tokenizer.json")
    if isinstance(record, dict) and len(record) > 100 and all(isinstance(v, int) for v in record.values()):
        raise VocabularyError("a vocab.json, which does not say how it spells bytes: pass tokenizer.json")
    raise VocabularyError(f"JSON, but no tokenizer: a {kind}" + (f" with the keys {keys}" if keys else ""))
