"""outlines-core, which compiles the schema to one regular expression and then to an automaton over tokens."""

from __future__ import annotations

import functools
import importlib.metadata

import outlines_core
from outlines_core import json_schema

from ..tokens import Tokens
from .base import Refused, Row, Sequence, row_of


class Grammar:
    unenforced: tuple[str, ...] = ()

    def __init__(self, index: outlines_core.Index, row: Row, eos: int) -> None:
        self._index = index
        self._row = row
        self._eos = eos

    def sequence(self) -> Sequence:
        guide = outlines_core.Guide(self._index)
        fill = functools.partial(guide.write_mask_into, self._row.ctypes.data, self._row.size, 4)
        eos = self._eos

        def accept(token: int) -> bool:
            if token == eos:  # the automaton has no transition for the end token
                return bool(guide.is_finished())
            # raises a ValueError if the mask does not allow the token
            guide.advance(token, return_tokens=False)
            return True

        return Sequence(fill, accept, self._row)


class Engine:
    name = "outlines-core"
    version: str = importlib.metadata.version("outlines-core")
    notes: tuple[str, ...] = (
        "recursion is cut off at depth 3, ranges of numbers are ignored, allOf is a concatenation",
        "at most one space between tokens of JSON",
    )

    def __init__(self, tokens: Tokens) -> None:
        ids: dict[bytes | str, list[int]] = {}
        for index, text in enumerate(tokens.text):
            if text:
                ids.setdefault(text, []).append(index)
        self._vocabulary = outlines_core.Vocabulary(tokens.eos, ids)
        self._row = row_of(len(tokens.text))
        self._eos = tokens.eos

    def compile(self, schema: str) -> Grammar:
        try:
            pattern = json_schema.build_regex_from_schema(schema)
            index = outlines_core.Index(pattern, self._vocabulary)
        except BaseException as error:  # a panic of Rust is no Exception
            if isinstance(error, (KeyboardInterrupt, SystemExit, MemoryError)):
                raise
            raise Refused(f"{type(error).__name__}: {error}") from error
        return Grammar(index, self._row, self._eos)
