"""grid-guardrail (arXiv 2607.11951): the schema as an LALR(1) grammar; what it cannot enforce it records."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Sequence as Ids
from typing import Any

import numpy as np
from grid.grammar import spec
from grid.grammar.projection import RoleProjection
from grid.guide import GridGuide
from grid.jsonschema import compile_json_schema
from grid.lalr.compile import compile_tables
from grid.lexer.dfa import build_scanner
from grid.trie.build import build_trie

from ..tokens import Tokens
from .base import Refused, Row, Sequence, row_of


class _Tokenizer:
    """The part of its tokenizer protocol that masks need."""

    def __init__(self, tokens: Tokens) -> None:
        self._text = tokens.text
        self.eos_token_id = self.pad_token_id = tokens.eos
        self.special_token_ids = frozenset(tokens.special) | {tokens.eos}
        self.vocabulary = {f"token {index}": index for index in range(len(tokens.text))}

    def token_bytes(self, token: int) -> bytes:
        return self._text[token]

    def greedy_tokenize(self, data: bytes) -> Ids[int]:
        raise NotImplementedError("the benchmark sets no token budget, so nothing is completed")


class Grammar:
    def __init__(self, guide: Any, row: Row, unenforced: tuple[str, ...]) -> None:
        self._guide = guide
        self._row = row
        self.unenforced = unenforced

    def sequence(self) -> Sequence:
        guide = self._guide
        out = self._row.view(np.uint32)
        state = guide.initial_state

        def fill() -> None:
            guide.fill_bitmask(state, out)

        def accept(token: int) -> bool:
            nonlocal state
            state = guide.get_next_state(state, token)
            return True

        return Sequence(fill, accept, self._row)


class Engine:
    name = "grid-guardrail"
    version = importlib.metadata.version("grid-guardrail")
    notes = ("keywords that it records as unenforced count as compiled",)

    def __init__(self, tokens: Tokens) -> None:
        self._adapter = _Tokenizer(tokens)
        self._trie = build_trie(self._adapter)
        self._row = row_of(len(tokens.text))

    def compile(self, schema: str) -> Grammar:
        try:
            source, recorded = compile_json_schema(json.loads(schema))
            grammar = spec.load(source)
            tables = compile_tables(RoleProjection.full(grammar).build())
            scanner = build_scanner(grammar.terminals, grammar.terminal_order)
            guide = GridGuide(tables=tables, dfa=scanner, trie=self._trie, adapter=self._adapter)
        except Exception as error:  # its errors share no base class
            raise Refused(f"{type(error).__name__}: {error}") from error
        return Grammar(guide, self._row, tuple(sorted(map(str, recorded))))
