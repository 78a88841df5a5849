"""A safetensors file as numpy arrays, without the package of that name.

Enters: a path. Leaves: arrays by name, read-only, in the file's own precision (bfloat16 as float32).
Cost: one read of the file. The format is eight bytes of length, a JSON header of that length with name, type,
shape and place of every tensor, and then the tensors.
"""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .base import LanguageModelError

_KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


def read(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Returns all tensors of a file. Raises a LanguageModelError if the file cannot be read or is damaged."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LanguageModelError(f"cannot read {path}: {error.strerror or error}") from None
    try:
        (length,) = struct.unpack_from("<Q", data)
        if 8 + length > len(data):
            raise ValueError("its header is cut off")
        header = json.loads(data[8 : 8 + length])
        body = memoryview(data)[8 + length :]
        return {name: _tensor(body, entry) for name, entry in header.items() if name != "__metadata__"}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error) as error:
        raise LanguageModelError(f"{path} is damaged: {error}") from None


def _tensor(body: memoryview, entry: Any) -> npt.NDArray[Any]:
    kind, shape, (start, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if kind not in _KINDS:
        raise ValueError(f"a tensor of type {kind}, which is none of {', '.join(_KINDS)}")
    dtype = np.dtype(_KINDS[kind])
    if any(n < 0 for n in shape) or not 0 <= start <= stop <= len(body):
        raise ValueError("a tensor lies outside the file")
    if stop - start != math.prod(shape) * dtype.itemsize:
        raise ValueError("a tensor's shape is not its size")
    found: npt.NDArray[Any] = np.frombuffer(body[start:stop], dtype).reshape(shape)
    if kind == "BF16":
        found = (found.astype(np.uint32) << 16).view(np.float32)
    return found
