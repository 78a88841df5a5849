"""structgen, in the default settings unless the runner names others."""

from __future__ import annotations

import functools
from typing import Any

import structgen
from structgen import errors

from ..tokens import Tokens
from .base import Refused, Row, Sequence, row_of


def vocabulary(tokens: Tokens) -> structgen.Vocabulary:
    return structgen.Vocabulary.from_bytes(
        tokens.text, eos_token_ids=[tokens.eos], special_token_ids=tokens.special
    )


class Grammar:
    def __init__(self, compiled: structgen.CompiledGrammar, row: Row) -> None:
        self._compiled = compiled
        self._row = row

    @property
    def unenforced(self) -> tuple[str, ...]:
        return tuple(f"{entry.keyword} at #{entry.pointer}" for entry in self._compiled.report)

    def sequence(self) -> Sequence:
        matcher = self._compiled.matcher()
        fill = functools.partial(matcher.fill_bitmask, self._row, 0)
        return Sequence(fill, matcher.accept_token, self._row)


class Engine:
    name = "structgen"
    version = structgen.__version__
    notes: tuple[str, ...] = ()

    def __init__(self, tokens: Tokens, **options: Any) -> None:
        self._compiler = structgen.Compiler(vocabulary(tokens))
        self._row = row_of(len(tokens.text))
        self._options = options

    def compile(self, schema: str) -> Grammar:
        try:
            compiled = self._compiler.json_schema(schema, **self._options)
        except errors.StructgenError as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
        return Grammar(compiled, self._row)
