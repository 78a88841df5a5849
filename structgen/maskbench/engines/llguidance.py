"""llguidance, called through its fastest Python interface.

The mask is written through `unsafe_compute_mask_ptr`, which is what `llguidance.numpy.
fill_next_token_bitmask` calls after about a microsecond of argument checks. A compiled grammar is one
`LLMatcher`; a new sequence resets it, so that its lexer stays warm (a server that builds a matcher for each
request has it colder).
"""

from __future__ import annotations

import functools
import importlib.metadata
from typing import Any

import llguidance

from ..tokens import Tokens
from .base import Refused, Row, Sequence, row_of


class _Tokenizer:
    """The attributes that `llguidance.TokenizerWrapper` reads."""

    def __init__(self, tokens: Tokens) -> None:
        self.eos_token_id = tokens.eos
        self.bos_token_id = None
        self.tokens = [text or b"<special_%d>" % i for i, text in enumerate(tokens.text)]
        self.special_token_ids = list(tokens.special)
        self._encode = tokens.encode

    def __call__(self, text: str) -> list[int]:
        return self._encode(text)


class Grammar:
    unenforced: tuple[str, ...] = ()

    def __init__(self, tokenizer: Any, grammar: str, row: Row) -> None:
        self._make = functools.partial(llguidance.LLMatcher, tokenizer, grammar, log_level=0)
        self._matcher = self._make()
        self._fresh = True
        self._row = row
        if self._matcher.is_error():
            raise Refused(self._matcher.get_error())

    def sequence(self) -> Sequence:
        if not self._fresh:
            self._matcher.reset()
            if self._matcher.is_error():  # a matcher never leaves its error state
                self._matcher = self._make()
        self._fresh = False
        matcher, row = self._matcher, self._row
        fill = functools.partial(matcher.unsafe_compute_mask_ptr, row.ctypes.data, row.nbytes)
        return Sequence(fill, matcher.consume_token, row, matcher.get_error)


class Engine:
    name = "llguidance"
    version: str = importlib.metadata.version("llguidance")
    notes: tuple[str, ...] = (
        "a new sequence resets the matcher: its lexer is warmer than in a server that builds one anew",
    )

    def __init__(self, tokens: Tokens) -> None:
        wrapper = llguidance.TokenizerWrapper(_Tokenizer(tokens))
        self._tokenizer = llguidance.LLTokenizer(wrapper, n_vocab=len(tokens.text))
        self._row = row_of(len(tokens.text))

    def compile(self, schema: str) -> Grammar:
        try:
            grammar = llguidance.LLMatcher.grammar_from_json_schema(schema)
        except ValueError as error:
            raise Refused(str(error)) from error
        return Grammar(self._tokenizer, grammar, self._row)
