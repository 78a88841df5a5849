"""Checks constraints without a model: `sg.check`, with a compiler over single bytes.

Enters: a constraint as a kind and a text. Leaves: the keywords that constrain nothing, or an error. Cost: a
compile; the compiler is made once.
"""

from __future__ import annotations

import atexit
import functools
from typing import Any

from .compiler import Compiler
from .grammar import ReportEntry
from .vocabulary import Vocabulary


def check(kind: str, text: Any, **options: Any) -> tuple[ReportEntry, ...]:
    """Compiles a constraint without a model's vocabulary, so that a front end can report its errors.

    Args:
        kind, text, options: as in `Compiler.compile`.

    Returns:
        The keywords that constrain nothing, as in `CompiledGrammar.report`.

    Raises:
        GrammarError: the constraint does not compile; the message names the place. A constraint that names
            special tokens is refused too, because the vocabulary here has none.
    """
    return bytes_compiler().compile(kind, text, **options).report


@functools.cache
def bytes_compiler() -> Compiler:
    """Returns a compiler over a vocabulary of single bytes. It needs no model."""
    tokens: list[bytes | None] = [bytes([i]) for i in range(256)]
    return Compiler(Vocabulary.from_bytes([*tokens, None], eos_token_ids=256), cache_bytes=64 << 20)


atexit.register(bytes_compiler.cache_clear)  # The compiler goes before the interpreter shuts down.
