"""Readers take near-linear time. Each reader that was quadratic is timed at two sizes of text; others have a
limit.

`python -m bench.readers` has every reader and many kinds of text. The bars hold on a busy machine: in CPU
time, a text of eight times the length takes at most twenty times as long.
"""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest

import structgen as sg
from bench import readers
from oracles.harness import verdict

VOCABULARY = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b""], 256)


def spent(reader: str, kind: str, size: int) -> float:
    texts, compile = readers.compilers()[reader]
    text = texts[kind](size)
    compiler = sg.Compiler(VOCABULARY)
    gc.freeze()  # the garbage collector then visits the reader's objects alone
    try:
        start = time.process_time()
        compile(compiler, text)
        return time.process_time() - start
    finally:
        gc.unfreeze()


@pytest.mark.parametrize(
    ("reader", "kind", "size"),
    [
        ("lark", "newlines", 1 << 13),
        ("lark", "newlines between", 1 << 13),
        ("lark", "comments", 1 << 14),
        ("lark", "many rules", 1 << 14),
        ("regex", "named groups", 1 << 15),
        ("tags", "many triggers", 1 << 13),
        ("tags", "many tags", 1 << 14),
    ],
)
def test_what_was_quadratic(reader: str, kind: str, size: int) -> None:
    sg.Compiler(VOCABULARY).lark('start: "a"')  # the first call imports modules and builds tables
    small = large = float("inf")
    for _ in range(8):  # the least of eight runs: other programs only add time
        small = min(small, spent(reader, kind, size))
        large = min(large, spent(reader, kind, 8 * size))
        if large < 20 * max(small, 0.004):
            return
    raise AssertionError(f"{large:.3f} s for eight times the text, {small:.3f} s for the text")


def test_every_kind_of_text_is_read_or_refused() -> None:
    """Every row of the table, at a small size, is a grammar."""
    for reader, (texts, _) in readers.compilers().items():
        for kind in texts:
            ((_, _, error),) = readers.measured(reader, kind, [600], 10)
            assert not error or kind in REFUSED, (reader, kind, error)


REFUSED = {"chain of rules", "deep groups", "many declares", "many templates", "deep const"}


def test_too_many_triggers() -> None:
    spec: Any = readers.tags(200_000)
    with pytest.raises(sg.GrammarError, match=r"at most 1,000 are read: give tags a common trigger"):
        sg.Compiler(VOCABULARY).structural_tag(spec)


def test_lines_without_text_change_nothing() -> None:
    text = 'start: a\n\n  \n\t\n// c\n\n a: "x"\n   \n  | "y"\n\n\n'
    grammar = sg.Compiler(VOCABULARY).lark(text)
    for end in ("x", "y"):
        assert verdict(grammar, end)
    with pytest.raises(sg.GrammarError, match="line 5"):
        sg.Compiler(VOCABULARY).lark('start: a\n\n  \n\na: "x" )\n')
