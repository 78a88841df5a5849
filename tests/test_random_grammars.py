"""Random context-free grammars of every dialect compared with `random_grammars.Oracle`, and the bugs found
so."""

from __future__ import annotations

import pytest

import structgen
from oracles import harness, random_grammars

BYTES = structgen.Compiler(structgen.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], 256))


@pytest.mark.parametrize("dialect", random_grammars.DIALECTS)
def test_random_grammars(dialect) -> None:
    """The engine and the oracle agree on acceptance of every short text, on masks, dead ends and completions.
    No call crashes or raises an unexpected error."""
    count = 60 if dialect in ("contextual", "dynamic") else 30
    assert random_grammars.failures(dialect, harness.FIRST_SEED, harness.cases(count)) == []


# grammar, texts of the language, other texts
EMPTY = [
    ('start: start a |\na: "A" |', ["", "A", "AAA"], ["B"]),
    ('start: a*\na[capture]: "A" |', ["", "A", "AAA"], ["B"]),
    ('start: ("A" |)*', ["", "A", "AA"], ["B"]),
    ('start: a* "B"\na: "A" |', ["B", "AB", "AAB"], ["", "A", "BB"]),
    ('start: start a | "B"\na: "(" start ")" |', ["B", "B(B)", "B(B(B))(B)"], ["", "(B)", "B()"]),
    ('start: a "B"\na: a c | "A"\nc: "C" |', ["AB", "ACB", "ACCB"], ["B", "CB", "A"]),
    ('start: "a" /b*/ "c"', ["ac", "abc", "abbc"], ["a", "abb", "c"]),
    ('start: A\nA: "Q"?', ["", "Q"], ["QQ"]),
    ('start: A B A\nA: "x"*\nB: "y"?\n%ignore " "', ["", "x", "xyx", " xx y ", "y x"], ["yy", "xyxy"]),
]


@pytest.mark.parametrize("lexer", ["contextual", "dynamic", "scannerless"])
@pytest.mark.parametrize("text, inside, outside", EMPTY)
def test_empty_texts(text, inside, outside, lexer) -> None:
    found = BYTES.lark(text, lexer=lexer)
    assert [t for t in inside if not harness.verdict(found, t)] == []
    assert [t for t in outside if harness.verdict(found, t)] == []


def test_an_empty_capture_is_reported() -> None:
    matcher = BYTES.lark('start: a "B"\na[capture]: "A" |').matcher()
    assert matcher.accept_bytes(b"B")
    assert [(c.start, c.end) for c in matcher.captures()["a"]] == [(0, 0)]


def test_a_highly_ambiguous_grammar_reads_long_texts() -> None:
    found = BYTES.lark('start: A | (x~2..3)~0..2 | B start | start B A\nx: start x B | B\nA: "c"\nB: /a?/')
    for text in (b"a", b"ac", b"c", b"aac"):
        assert harness.verdict(found, text * 15)
