"""The library's Lark grammars compared with Lark: accepted texts, refused texts, and mutations of both.

Lark's Earley parser with its dynamic lexer reads any context-free grammar; of the library only PDDL and SyGuS
are LALR(1). structgen with `lexer="dynamic"` must give the same verdicts. docs/grammars.md explains the texts
that the dynamic lexer accepts and the contextual lexer refuses: joined words, and operators cut in two.
"""

from __future__ import annotations

import functools
import re

import pytest

import structgen
from oracles import harness
from oracles.strategies import Source
from structgen import library

lark = pytest.importorskip("lark")

COMPILER = structgen.Compiler(structgen.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], 256))
NAMES = [n for n in library.names() if library.load(n).dialect == "lark"]
LONGEST = 90  # characters; Earley's parser takes a second for a few hundred
_WITHOUT = re.compile(r"^(NAME: /)(.*)/ & ~(?:/(.*)/|KEYWORD)$", re.M)


def for_lark(text: str) -> str:
    """Rewrites `NAME: /a/ & ~/b/` as a look-ahead, which Lark reads."""
    keywords = re.search(r"^KEYWORD: /(.*)/i$\n", text, re.M)

    def replaced(match: re.Match[str]) -> str:
        words = match[3] or f"(?i:{keywords[1]})" if keywords or match[3] else ""
        return rf"{match[1]}(?!({words})(?!\w)){match[2]}/"

    text = _WITHOUT.sub(replaced, text)
    return text.replace(keywords[0], "") if keywords else text


@functools.cache
def parser(name: str, kind: str) -> lark.Lark:
    return lark.Lark(for_lark(library.load(name).text), parser=kind)


def accepts(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.LarkError:
        return False
    return True


def mutated(source: Source, text: str, others: list[str]) -> str:
    at = source.integer(0, len(text))
    kind = source.integer(0, 4)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + source.pick(list(" ()+-*.,;:=<>&1ax\n\"'")) + text[at:]
    if kind == 2:
        end = source.integer(at, min(len(text), at + 5))
        return text[:at] + text[end:] + text[at:end]
    if kind == 3:
        return text[:at] + source.pick(others)[-source.integer(0, 12) :]
    return text.replace(" ", "", 1) if source.chance(50) else text[:at]


@pytest.mark.parametrize("name", NAMES)
def test_agrees(name: str) -> None:
    entry = library.load(name)
    good = [t for t in entry.accepted if len(t) <= LONGEST]
    texts = [t for t in (*entry.accepted, *entry.rejected) if len(t) <= LONGEST]
    contextual, dynamic = COMPILER.lark(entry.text), COMPILER.lark(entry.text, lexer="dynamic")
    earley, lalr = parser(name, "earley"), parser(name, "lalr") if name in ("pddl", "sygus") else None
    counts = [0, 0]
    explained = []

    def check(source: Source) -> None:
        text = source.pick(good if source.chance(80) else texts)
        for _ in range(source.integer(0, 2)):
            text = mutated(source, text, texts)
        here, theirs = harness.verdict(dynamic, text), accepts(earley, text)
        counts[here] += 1
        assert here == theirs, text
        narrow = harness.verdict(contextual, text)
        assert here or not narrow, text
        if lalr is not None and accepts(lalr, text):
            assert narrow, text
        if here and not narrow:
            explained.append(text)

    harness.seeded(check, 15 if name == "python" else 100)
    assert min(counts) > harness.cases(4), counts
    assert len(explained) < 10, explained
