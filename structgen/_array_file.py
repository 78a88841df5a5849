"""Arrays in files, and which vocabulary they belong to.

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

# What readers of a damaged file raise; zipfile: RuntimeError where a part is encrypted or of a later version.
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
    """Read arrays. One of `DAMAGED`: the file is not what `save_arrays` writes; OSError: there is none."""
    size = os.path.getsize(path)
    with ZipFile(path) as parts:  # `save_arrays` compresses nothing: what grows when it is read is refused
        if any(part.compress_type != ZIP_STORED or part.file_size > size for part in parts.infolist()):
            raise ValueError("a part is larger than the file")
    with np.load(path, allow_pickle=False) as data:
        return {name: data[name] for name in data.files}


_digests: WeakKeyDictionary[Vocabulary, str] = WeakKeyDictionary()


def vocabulary_digest(vocabulary: Vocabulary) -> str:
    """A digest of the bytes of every token. It is remembered, because 131,072 tokens take 70 ms."""
    found = _digests.get(vocabulary)
    if found is None:
        parts = hashlib.sha256()
        for text in vocabulary.tokens:
            parts.update(len(text).to_bytes(4, "little") + text)
        found = _digests[vocabulary] = parts.hexdigest()
    return found
