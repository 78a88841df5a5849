"""grid-guardrail (arXiv 2607.11951), which compiles the schema to an LALR(1) grammar and records what it
cannot enforce.

grid-guardrail takes the limit of a text. Near the limit it writes its shortest completion as one run of
tokens; here each token of the run is a mask of one token. It builds its table of shortest completions when it
first gets a limit.
"""

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
from grid.lalr.reserve import ReserveTable
from grid.lexer.dfa import build_scanner
from grid.protocols import Write
from grid.trie.build import build_trie

from ..tokens import Tokens
from .base import Refused, Row, Sequence, row_of


class _Tokenizer:
    """The part of grid-guardrail's tokenizer protocol that masks need."""

    def __init__(self, tokens: Tokens) -> None:
        self._text = tokens.text
        self._ids: dict[bytes, int] = {}
        self._longest = 0
        self.eos_token_id = self.pad_token_id = tokens.eos
        self.special_token_ids = frozenset(tokens.special) | {tokens.eos}
        self.vocabulary = {f"token {index}": index for index in range(len(tokens.text))}

    def token_bytes(self, token: int) -> bytes:
        return self._text[token]

    def greedy_tokenize(self, data: bytes) -> Ids[int]:
        """Returns the longest token at each place, as in grid-guardrail's own adapters."""
        if not self._ids:
            self._ids.update({text: index for index, text in enumerate(self._text) if text})
            self._longest = max(map(len, self._ids))
        ids: list[int] = []
        at = 0
        while at < len(data):
            size = next(n for n in range(self._longest, 0, -1) if data[at : at + n] in self._ids)
            ids.append(self._ids[data[at : at + size]])
            at += size
        return ids


class Grammar:
    def __init__(self, guide: Any, row: Row, unenforced: tuple[str, ...]) -> None:
        self._guide = guide
        self._row = row
        self._incomplete = False
        self.unenforced = unenforced

    def sequence(self) -> Sequence:
        guide = self._guide
        row = self._row
        out = row.view(np.uint32)
        state = guide.initial_state
        written: list[int] = []  # the tokens of the run that are still to be written

        def fill() -> None:
            guide.fill_bitmask(state, out)

        def fill_within(left: int) -> None:
            if not written and self._completes():
                guide.max_new_tokens = state.n_generated + left
                instruction = guide.get_next_instruction(state)
                if isinstance(instruction, Write):
                    written.extend(instruction.tokens.tolist())
            if not written:
                fill()
                return
            row[:] = 0
            out[written[0] >> 5] = np.uint32(1 << (written[0] & 31))

        def accept(token: int) -> bool:
            nonlocal state
            state = guide.get_next_state(state, token)
            if written and written.pop(0) != token:
                written.clear()
            return True

        return Sequence(fill, accept, row, fill_within=fill_within)

    def _completes(self) -> bool:
        """Returns whether the engine can complete texts: a grammar that has no blanks to write between
        lexemes has no table."""
        guide = self._guide
        if guide.reserve is None and not self._incomplete:
            try:
                guide.reserve = ReserveTable(tables=guide.tables, dfa=guide.dfa, adapter=guide.adapter)
            except AssertionError:
                self._incomplete = True
        return guide.reserve is not None


class Engine:
    name = "grid-guardrail"
    version: str = importlib.metadata.version("grid-guardrail")
    notes: tuple[str, ...] = ("keywords that it records as unenforced count as compiled",)
    ends_in_time = True

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
        except Exception as error:  # the engine's errors share no base class
            raise Refused(f"{type(error).__name__}: {error}") from error
        return Grammar(guide, self._row, tuple(sorted(map(str, recorded))))
