"""The parts of a tokenizer, to which every format is reduced."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .._extras import missing
from ..errors import VocabularyError

Encode = Callable[[str], Sequence[int]]


@dataclass(slots=True)
class Parts:
    """A tokenizer as bytes by id.

    `tokens[i]` is the text of id i; it is b"" if the id is unused or never text. `special` holds the names of
    ids that are never text; `never` holds the ids of this kind that have no name. `eos` holds the end ids
    that the format itself names, and may be empty. `encode` is the tokenizer's own canonical encoder without
    special tokens, or None. `kind` names the format in error messages.
    """

    tokens: list[bytes]
    kind: str
    special: dict[str, int] = field(default_factory=dict)
    never: set[int] = field(default_factory=set)
    eos: list[int] = field(default_factory=list)
    encode: Encode | None = None


@contextmanager
def reading(package: str) -> Iterator[None]:
    """Turns every error that a package raises about a file into a VocabularyError, also a panic of its Rust
    code."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise VocabularyError(f"{package} cannot use this tokenizer: {reason}") from None


class PackageEncoder:
    """Encodes texts to canonical ids with a package, which is imported at the first text."""

    package: str
    of: str  # the purpose of the package, for error messages

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._made: Callable[[str], list[int]] | None = None

    def opened(self, package: Any, data: bytes) -> Callable[[str], list[int]]:
        """Returns the encoder that the package makes of the file."""
        raise NotImplementedError

    def __call__(self, text: str) -> list[int]:
        if self._made is None:
            try:
                package = importlib.import_module(self.package)
            except ImportError as error:
                raise missing(error, self.of) from None
            with reading(self.package):
                self._made = self.opened(package, self._data)
        with reading(self.package):
            return self._made(text)

    def __getstate__(self) -> bytes:
        return self._data

    def __setstate__(self, data: bytes) -> None:
        self._data, self._made = data, None


def by_id(entries: dict[int, bytes]) -> list[bytes]:
    """Returns a list indexed by id; an id without an entry has b""."""
    tokens = [b""] * (max(entries, default=-1) + 1)
    for index, text in entries.items():
        tokens[index] = text
    return tokens
