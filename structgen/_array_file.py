"""Saves numpy arrays in a file with a digest of the vocabulary that they belong to.

Enters: named numpy arrays and a path. Leaves: a file in numpy's .npz form (no pickles, nothing compressed),
or the arrays back. Cost: one pass over the bytes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np

if TYPE_CHECKING:
    from .vocabulary import Vocabulary

# Readers of a damaged file raise these. zipfile raises RuntimeError for a part that is encrypted or too new.
DAMAGED = (ValueError, LookupError, EOFError, BadZipFile, TypeError, AttributeError, OverflowError, OSError,
           RuntimeError, MemoryError)  # fmt: skip


def save_arrays(path: str | os.PathLike[str], arrays: Mapping[str, Any]) -> None:
    """Write arrays. The file appears whole or not at all."""
    path = Path(path)
    partial = path.with_name(path.name + ".part")
    with open(partial, "wb") as stream:
        np.savez(stream, **arrays)
    os.replace(partial, path)


def load_arrays(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read arrays.

    Raises:
        one of `DAMAGED`: `save_arrays` did not write the file. OSError: there is no such file.
    """
    size = os.path.getsize(path)
    with ZipFile(path) as parts:  # `save_arrays` compresses nothing, so a compressed part is refused.
        if any(part.compress_type != ZIP_STORED or part.file_size > size for part in parts.infolist()):
            raise ValueError("a part is larger than the file")
    with np.load(path, allow_pickle=False) as data:
        return {name: data[name] for name in data.files}


_digests: WeakKeyDictionary[Vocabulary, str] = WeakKeyDictionary()


def vocabulary_digest(vocabulary: Vocabulary) -> str:
    """Returns a digest of the bytes of every token. It is remembered, because 131,072 tokens take 70 ms."""
    found = _digests.get(vocabulary)
    if found is None:
        parts = hashlib.sha256()
        for text in vocabulary.tokens:
            parts.update(len(text).to_bytes(4, "little") + text)
        found = _digests[vocabulary] = parts.hexdigest()
    return found
