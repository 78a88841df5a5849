"""Adapters of glrmask and maskforge for the bench: `--engines structgen,bench.peers:glrmask`.

Input: `Tokens`. Output: a `structgen.maskbench.engines.base.Engine`. The set-up builds the engines'
vocabularies. glrmask writes its mask into the bench's row. maskforge's mask is copied into the row, which
adds microseconds.
"""

from __future__ import annotations

import importlib.metadata
from typing import Any

import numpy as np

from structgen.maskbench.engines.base import Refused, Row, Sequence, row_of
from structgen.maskbench.tokens import Tokens


class _Grammar:
    unenforced: tuple[str, ...] = ()

    def __init__(self, start: Any) -> None:
        self._start = start

    def sequence(self) -> Sequence:
        made: Sequence = self._start()
        return made


class Glrmask:
    """glrmask's mask has no end token; the adapter allows the end if the state accepts."""

    name = "glrmask"
    notes: tuple[str, ...] = ()

    def __init__(self, tokens: Tokens) -> None:
        import glrmask

        self.version = importlib.metadata.version("glrmask")
        self._module, self._eos = glrmask, tokens.eos
        special = {*tokens.special, tokens.eos}
        words = {i: text for i, text in enumerate(tokens.text) if text and i not in special}
        self._vocabulary = glrmask.Vocab.from_id_to_bytes(words)
        self._row: Row = row_of(len(tokens.text))

    def compile(self, schema: str) -> _Grammar:
        try:
            compiled = self._module.Grammar.from_json_schema(schema).compile(self._vocabulary)
        except (ValueError, RuntimeError, NotImplementedError) as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
        return _Grammar(lambda: self._begin(compiled))

    def _begin(self, compiled: Any) -> Sequence:
        state, row, bit = compiled.start(), self._row, np.int32(np.uint32(1 << self._eos % 32).view(np.int32))
        word = self._eos // 32

        def fill() -> None:
            state.fill_mask(row)
            if state.is_accepting():
                row[word] |= bit

        return Sequence(fill, state.commit_token, row)


class Maskforge:
    """Sessions of maskforge, from its compiler of whole documents."""

    name = "maskforge"
    notes: tuple[str, ...] = ()

    def __init__(self, tokens: Tokens) -> None:
        from maskforge import _native

        self.version = importlib.metadata.version("maskforge")
        self._native, special = _native, {*tokens.special, tokens.eos}
        words: list[bytes | None] = [
            text if text and i not in special else None for i, text in enumerate(tokens.text)
        ]
        raw = _native.PyVocabulary.from_id_ordered_tokens(words, tokens.eos, len(words))
        self._vocabulary = _native.CompiledVocabulary.from_vocabulary(raw)
        self._row: Row = row_of(len(tokens.text))

    def compile(self, schema: str) -> _Grammar:
        try:
            program = self._native.Compiler.without_cache().compile_json_schema(schema)
            bound = program.bind(self._vocabulary)
        except self._native.MaskforgeError as error:
            raise Refused(str(error)) from error
        return _Grammar(lambda: self._begin(bound))

    def _begin(self, bound: Any) -> Sequence:
        session, row = bound.start_session(), self._row
        held = bytearray(4 * session.mask_word_count())

        def fill() -> None:
            session.write_mask(held)
            words = np.frombuffer(held, np.int32)
            row[:] = 0
            row[: words.size] = words[: row.size]

        def accept(token: int) -> bool:
            try:
                session.advance(token)
            except self._native.MaskforgeError:
                return False
            return True

        return Sequence(fill, accept, row)


def glrmask(tokens: Tokens) -> Glrmask:
    return Glrmask(tokens)


def maskforge(tokens: Tokens) -> Maskforge:
    return Maskforge(tokens)
