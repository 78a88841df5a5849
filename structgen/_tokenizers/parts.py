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

    `tokens[i]` is the text of id i, b"" where the id is a hole or never text. `special` names the
    ids that are never text; `never` has the ids of this kind without a name. `eos` is what the format
    itself says ends a sequence (may be empty). `encode` is the tokenizer's own canonical encoder
    without special tokens, or None. `kind` is the format in words, for messages.
    """

    tokens: list[bytes]
    kind: str
    special: dict[str, int] = field(default_factory=dict)
    never: set[int] = field(default_factory=set)
    eos: list[int] = field(default_factory=list)
    encode: Encode | None = None


@contextmanager
def reading(package: str) -> Iterator[None]:
    """Turns each error of a package about a file, a panic of its Rust code too, into a VocabularyError."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise VocabularyError(f"{package} cannot use this tokenizer: {reason}") from None


class PackageEncoder:
    """Canonical ids for the bytes of a file, by a package that is loaded at the first text."""

    package: str
    of: str  # what an error says that the package is for

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._made: Callable[[str], list[int]] | None = None

    def opened(self, package: Any, data: bytes) -> Callable[[str], list[int]]:
        """The encoder that the package makes of the file."""
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
    """A list with b"" for every id that no entry has."""
    tokens = [b""] * (max(entries, default=-1) + 1)
    for index, text in entries.items():
        tokens[index] = text
    return tokens
