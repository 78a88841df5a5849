"""structgen in its default settings, unless the runner names others."""

from __future__ import annotations

import functools
from typing import Any

import structgen
from structgen import errors

from ..tokens import Tokens
from .base import LimitTooSmall, Refused, Row, Sequence, row_of


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
        row = self._row
        fill = functools.partial(matcher.fill_bitmask, row, 0)
        known: bool | None = None  # whether a shortest completion can be found; `sg.generate` asks the same

        def fill_within(left: int) -> None:
            nonlocal known
            if known is None:
                known = _can_budget(matcher)
            if not known:
                fill()
                return
            try:
                matcher.fill_bitmask(row, 0, max_tokens=left)
            except errors.UnsatisfiableBudget as error:
                raise LimitTooSmall(str(error)) from error

        return Sequence(fill, matcher.accept_token, row, fill_within=fill_within)


def _can_budget(matcher: structgen.Matcher) -> bool:
    try:
        matcher.tokens_needed()
    except errors.BudgetExceeded:
        return False
    return True


class Engine:
    name = "structgen"
    version: str = structgen.__version__
    notes: tuple[str, ...] = ()
    ends_in_time = True

    def __init__(self, tokens: Tokens, limits: structgen.Limits | None = None, **options: Any) -> None:
        self._compiler = structgen.Compiler(vocabulary(tokens), limits=limits)
        self._row = row_of(len(tokens.text))
        self._options = options

    def compile(self, schema: str) -> Grammar:
        try:
            compiled = self._compiler.json_schema(schema, **self._options)
        except errors.StructgenError as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
        return Grammar(compiled, self._row)
