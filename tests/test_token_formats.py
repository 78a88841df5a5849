"""Formats of tokens compared with brute force: every sequence of few tokens, over a vocabulary that cuts
texts in many ways. The oracle reads a text of units (bytes, special tokens) and knows where the text's tokens
begin. Each random format is written as a structural tag, in EBNF and in Lark.
"""

from __future__ import annotations

import pytest

from oracles import harness
from oracles.token_formats import law, law_of_ebnf, law_of_lark


def test_formats_of_tokens() -> None:
    harness.seeded(law, 60)


def test_tokens_in_ebnf() -> None:
    harness.seeded(law_of_ebnf, 60)


def test_tokens_in_lark() -> None:
    pytest.importorskip("lark")
    harness.seeded(law_of_lark, 60)
