"""A compiler in a file: what its grammars were compiled from, and the tokens that they were warmed with.

Enters: grammars and a path, or a path and a vocabulary. Leaves: a file, or a list of calls and tokens. Cost:
the bytes of the texts, and about 7 bytes per token. To read a file costs one look at all bytes and the digest
of the vocabulary (70 ms at 131,072 tokens, once per process).

The file holds calls and not masks. A state's mask points into rows of the vocabulary, regexes and stacks,
which are numbered in the order in which texts met them. The calls make all of these again, under the limits
of the process that loads the file. So a file cannot make a mask allow a forbidden token.

The file is one line (name, version, SHA-256 of the rest) and JSON. Only methods and options of `_METHODS` are
called; none of them reads a file.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ._array_file import vocabulary_digest
from .errors import GrammarError, VocabularyError
from .kinds import KINDS

if TYPE_CHECKING:
    from .grammar import CompiledGrammar
    from .vocabulary import Vocabulary

_NAME, _VERSION = b"structgen compiler", 1
_EMPTY: tuple[Any, ...] = (None, [], {})
# The options that a file may set, for each method of Compiler. Every other option must have its default,
# because its value is a Python object or names a file.
_METHODS = {name: kind.saved for name, kind in KINDS.items() if kind.saved}


class Saved(NamedTuple):
    """One grammar: a method of Compiler, its text and options, and the tokens of texts that it has read."""

    method: str
    text: str
    options: dict[str, Any]
    texts: list[list[int]]


def _call(grammar: CompiledGrammar) -> Saved | None:
    """Returns the saved form of a grammar; None if the grammar was made of more than a text."""
    if grammar._recipe is None:
        return None
    _, method, given, options = grammar._recipe
    named = _METHODS.get(method, frozenset())
    others = {name: value for name, value in options.items() if name not in named}
    if not named or len(given) != 1 or not isinstance(given[0], str):
        return None
    if any(value not in _EMPTY for value in others.values()):
        return None
    kept = {name: value for name, value in options.items() if name in named}
    return Saved(method, given[0], kept, [list(tokens) for tokens in grammar._texts or ()])


def write(path: str | os.PathLike[str], vocabulary: Vocabulary, grammars: Iterable[CompiledGrammar]) -> int:
    """Writes grammars to a file, and returns their number. GrammarError: the file cannot be written."""
    path = Path(path)
    calls = [call for grammar in grammars if (call := _call(grammar)) is not None]
    of = {"digest": vocabulary_digest(vocabulary), "ends": list(vocabulary.eos_token_ids)}
    body = json.dumps({"vocabulary": of, "grammars": calls}, separators=(",", ":")).encode()
    beside = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name + ".", delete=False) as file:
            beside = file.name
            file.write(_first_line(body) + body)
        os.replace(beside, path)
    except OSError as error:
        if beside is not None and os.path.exists(beside):
            os.unlink(beside)
        raise GrammarError(f"{path}: cannot be written: {error.strerror or error}") from None
    return len(calls)


def read(path: str | os.PathLike[str], vocabulary: Vocabulary) -> list[Saved]:
    """Returns the grammars of a file. GrammarError: no such file, another format or version, damaged.
    VocabularyError: it was saved for another vocabulary."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise GrammarError(f"{os.fspath(path)}: {error.strerror or error}") from None
    line, _, body = data.partition(b"\n")
    if not line.startswith(_NAME + b" "):
        raise GrammarError(f"{os.fspath(path)}: is no saved compiler")
    if not line.startswith(b"%s %d " % (_NAME, _VERSION)):
        raise GrammarError(f"{os.fspath(path)}: was saved by another version; save it again")
    damaged = GrammarError(f"{os.fspath(path)}: is damaged or cut off; save it again")
    if line + b"\n" != _first_line(body):
        raise damaged
    try:
        whole = json.loads(body)
        of, calls = whole["vocabulary"], [Saved(*call) for call in whole["grammars"]]
        digest, ends = of["digest"], of["ends"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise damaged from None
    if digest != vocabulary_digest(vocabulary) or ends != list(vocabulary.eos_token_ids):
        raise VocabularyError(
            f"{os.fspath(path)}: was saved for another vocabulary; load it with that one, or save it again"
        )
    if not all(_sound(call, vocabulary.vocab_size) for call in calls):
        raise damaged
    return calls


def _first_line(body: bytes) -> bytes:
    return b"%s %d %s\n" % (_NAME, _VERSION, hashlib.sha256(body).hexdigest().encode())


def _sound(call: Saved, size: int) -> bool:
    return (
        isinstance(call.method, str)
        and call.method in _METHODS
        and isinstance(call.text, str)
        and isinstance(call.options, dict)
        and set(call.options) <= _METHODS[call.method]
        and all(value is None or type(value) in (str, int) for value in call.options.values())
        and isinstance(call.texts, list)
        and all(isinstance(tokens, list) for tokens in call.texts)
        and all(type(t) is int and 0 <= t < size for tokens in call.texts for t in tokens)
    )
