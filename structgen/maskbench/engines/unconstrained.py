"""No grammar: every step allows every token that is text. This is the line "LM only" of the JSONSchemaBench
paper."""

from __future__ import annotations

import numpy as np

import structgen

from ..tokens import Tokens
from .base import Row, Sequence, row_of


class Grammar:
    unenforced: tuple[str, ...] = ("everything",)

    def __init__(self, row: Row) -> None:
        self._row = row

    def sequence(self) -> Sequence:
        return Sequence(lambda: None, lambda _token: True, self._row)


class Engine:
    name = "unconstrained"
    version: str = structgen.__version__
    notes: tuple[str, ...] = ("the model alone",)

    def __init__(self, tokens: Tokens) -> None:
        allowed = np.array([bool(text) for text in tokens.text])
        allowed[tokens.eos] = True
        self._row = row_of(len(tokens.text))
        packed = np.packbits(allowed, bitorder="little")
        self._row.view(np.uint8)[: packed.size] = packed

    def compile(self, schema: str) -> Grammar:
        return Grammar(self._row)
