"""xgrammar with additional properties allowed (`strict_mode=False`), as JSON Schema means them.

Its compiler keeps its caches and its eight threads, and special tokens are empty so that it does not
read them as text.
"""

from __future__ import annotations

import functools
import importlib.metadata

import torch
import xgrammar

from bench.data import Tokens
from bench.engines.base import Refused, Sequence


def _no_failure() -> str:
    return ""


class Grammar:
    def __init__(self, compiled: xgrammar.CompiledGrammar, mask: torch.Tensor, eos: int):
        self._compiled = compiled
        self._mask = mask
        self._row = mask.numpy()[0]
        self._eos = eos

    def sequence(self) -> Sequence:
        matcher = xgrammar.GrammarMatcher(self._compiled, override_stop_tokens=[self._eos])
        fill = functools.partial(matcher.fill_next_token_bitmask, self._mask, 0)
        return Sequence(fill, matcher.accept_token, self._row, _no_failure)


class Engine:
    name = "xgrammar"
    version = importlib.metadata.version("xgrammar")

    def __init__(self, tokens: Tokens):
        info = xgrammar.TokenizerInfo(tokens.text, stop_token_ids=[tokens.eos])
        self._compiler = xgrammar.GrammarCompiler(info)
        self._mask = xgrammar.allocate_token_bitmask(1, len(tokens.text))
        self._eos = tokens.eos

    def compile(self, schema: str) -> Grammar:
        try:
            compiled = self._compiler.compile_json_schema(schema, strict_mode=False)
        except Exception as error:  # its exceptions share no base class
            raise Refused(f"{type(error).__name__}: {error}") from error
        return Grammar(compiled, self._mask, self._eos)


create = Engine
