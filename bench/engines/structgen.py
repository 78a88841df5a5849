"""structgen, in the default settings unless the runner names others."""

from __future__ import annotations

import functools

import numpy as np

import structgen
from bench.data import Tokens
from bench.engines.base import Refused, Sequence
from structgen import errors


def vocabulary(tokens: Tokens) -> structgen.Vocabulary:
    return structgen.Vocabulary.from_bytes(
        tokens.text, eos_token_ids=[tokens.eos], special_token_ids=tokens.special
    )


def _no_failure() -> str:
    return ""


class Grammar:
    def __init__(self, compiled, mask: np.ndarray):
        self._compiled = compiled
        self._mask = mask

    def sequence(self) -> Sequence:
        matcher = self._compiled.matcher()
        fill = functools.partial(matcher.fill_bitmask, self._mask, 0)
        return Sequence(fill, matcher.accept_token, self._mask[0], _no_failure)


class Engine:
    name = "structgen"
    version = structgen.__version__

    def __init__(self, tokens: Tokens, **options: object):
        self._compiler = structgen.Compiler(vocabulary(tokens))
        self._mask = np.zeros((1, (len(tokens.text) + 31) // 32), dtype=np.int32)
        self._options = options

    def compile(self, schema: str) -> Grammar:
        try:
            compiled = self._compiler.json_schema(schema, **self._options)
        except errors.StructgenError as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
        return Grammar(compiled, self._mask)


create = Engine
