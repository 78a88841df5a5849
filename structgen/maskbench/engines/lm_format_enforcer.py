"""lm-format-enforcer, a character-level parser in Python over a tree of the tokens' texts.

lm-format-enforcer knows tokens as text. A token that is no whole UTF-8 text is a replacement character for
it, as in its own integrations, and several such tokens are decoded together. This adapter declares every
other token a word, so its text follows from the token alone. The integrations decode ever longer sequences
for byte-level tokenizers, so the adapter's times are better than theirs.
"""

from __future__ import annotations

import importlib.metadata
import json
import logging

from lmformatenforcer import JsonSchemaParser, TokenEnforcer
from lmformatenforcer.tokenenforcer import TokenEnforcerTokenizerData

from ..tokens import Tokens
from .base import Refused, Row, Sequence, row_of


class Grammar:
    unenforced: tuple[str, ...] = ()

    def __init__(self, enforcer: TokenEnforcer, row: Row) -> None:
        self._enforcer = enforcer
        self._row = row

    def sequence(self) -> Sequence:
        enforcer, row = self._enforcer, self._row
        taken: list[int] = []

        def fill() -> None:
            row[:] = enforcer.get_allowed_tokens(taken).allowed_tokens

        def accept(token: int) -> bool:
            taken.append(token)
            return True

        return Sequence(fill, accept, row)


class Engine:
    name = "lm-format-enforcer"
    version: str = importlib.metadata.version("lm-format-enforcer")
    notes: tuple[str, ...] = (
        "whole tokens are declared as words, which spares it the decoding of ever longer texts",
    )

    def __init__(self, tokens: Tokens) -> None:
        # the engine logs a traceback for each parser that fails
        logging.getLogger().setLevel(logging.CRITICAL)
        words: list[tuple[int, str, bool]] = []
        for index, data in enumerate(tokens.text):
            if data:
                text = data.decode("utf-8", "replace")
                words.append((index, text, text.encode() == data))
        text_of = tokens.text

        def decode(ids: list[int]) -> str:
            return b"".join(text_of[i] for i in ids).decode("utf-8", "replace").rstrip("\ufffd")

        self._data = TokenEnforcerTokenizerData(words, decode, tokens.eos, True, len(tokens.text))
        self._row = row_of(len(tokens.text))

    def compile(self, schema: str) -> Grammar:
        try:
            return Grammar(TokenEnforcer(self._data, JsonSchemaParser(json.loads(schema))), self._row)
        # the engine validates the schema while it parses it, and may raise any exception
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
