"""xgrammar with its own compiler caches and its eight compile threads.

Special tokens have empty texts, so that xgrammar does not read them as text.
"""

from __future__ import annotations

import functools
import importlib.metadata
from typing import Any

import torch
import xgrammar

from ..tokens import Tokens
from .base import Refused, Row, Sequence


class Grammar:
    unenforced: tuple[str, ...] = ()

    def __init__(self, compiled: Any, mask: torch.Tensor, eos: int) -> None:
        self._compiled = compiled
        self._mask = mask
        self._row: Row = mask.numpy()[0]
        self._eos = eos

    def sequence(self) -> Sequence:
        matcher = xgrammar.GrammarMatcher(self._compiled, override_stop_tokens=[self._eos])
        fill = functools.partial(matcher.fill_next_token_bitmask, self._mask, 0)
        return Sequence(fill, matcher.accept_token, self._row)


class Engine:
    name = "xgrammar"
    version: str = importlib.metadata.version("xgrammar")
    notes: tuple[str, ...] = (
        "keywords that it does not know are dropped without a word",
        "compiles with up to eight threads",
    )

    def __init__(self, tokens: Tokens, **settings: Any) -> None:
        info = xgrammar.TokenizerInfo(tokens.text, stop_token_ids=[tokens.eos])
        self._compiler = xgrammar.GrammarCompiler(info)
        self._mask = xgrammar.allocate_token_bitmask(1, len(tokens.text))
        self._eos = tokens.eos
        self._settings = settings

    def compile(self, schema: str) -> Grammar:
        try:
            compiled = self._compiler.compile_json_schema(schema, **self._settings)
        except Exception as error:  # xgrammar's exceptions share no base class
            raise Refused(f"{type(error).__name__}: {error}") from error
        return Grammar(compiled, self._mask, self._eos)
