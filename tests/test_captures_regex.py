"""Named groups of regexes as captures, compared with Python's `re`; the time stays polynomial.

`re` keeps the last match of a repeated group, so the tests compare the last capture. The tests avoid repeated
parts that may be empty, because `re` treats empty repetitions by rules of its own.
"""

from __future__ import annotations

import re

import pytest

import structgen
from oracles import harness
from oracles.strategies import Source
from structgen import errors

COMPILER = structgen.Compiler(
    structgen.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b"ab", b"20", b"-0", b""], 259)
)


def read(pattern: str, text: str) -> structgen.Matcher:
    matcher = COMPILER.regex(pattern).matcher()
    assert matcher.accept_bytes(text.encode()), (pattern, text)
    return matcher


def spans(matcher: structgen.Matcher) -> dict[str, list[tuple[int, int]]]:
    return {name: [(c.start, c.end) for c in found] for name, found in matcher.captures().items()}


def in_bytes(text: str, span: tuple[int, int]) -> tuple[int, int] | None:
    return None if span[0] < 0 else (len(text[: span[0]].encode()), len(text[: span[1]].encode()))


SIGNS = ["*", "+", "?", "*?", "+?", "??", "{1,2}", "{2}", "{0,2}?"]


class Patterns:
    """Random patterns over a, b and one multi-byte letter. Each group has a name."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.groups = 0

    def pattern(self, depth: int) -> tuple[str, bool]:
        """Returns a pattern and whether the pattern may match the empty text."""
        kind = self.source.integer(0, 10 if depth else 2)
        if kind <= 2:
            return self.source.pick([("a", False), ("b", False), ("[ab]", False), ("é", False), (".", False)])
        if kind <= 4:
            one, two = self.pattern(depth - 1), self.pattern(depth - 1)
            return one[0] + two[0], one[1] and two[1]
        if kind <= 6:
            one, two = self.pattern(depth - 1), self.pattern(depth - 1)
            return f"(?:{one[0]}|{two[0]})", one[1] or two[1]
        if kind <= 8:
            inner, empty = self.pattern(depth - 1)
            sign = self.source.pick(["?"] if empty else SIGNS)
            return f"(?:{inner}){sign}", empty or sign[0] not in "+{" or sign.startswith("{0")
        if kind == 9:
            inner, empty = self.pattern(depth - 1)
            look = self.source.pick(["(?=a|b+)", "(?!ab)", r"\b", "(?<=a)", "(?<!b)", "(?=[ab]*é)"])
            return look + inner, empty
        name = f"g{self.groups}"
        self.groups += 1
        inner, empty = self.pattern(depth - 1)
        return f"(?P<{name}>{inner})", empty


def as_re(source: Source) -> str | None:
    patterns = (Patterns(source).pattern(4)[0] for _ in range(6))
    pattern = next((p for p in patterns if "(?P<" in p), None)
    if pattern is None:
        return harness.SKIPPED
    known = re.compile(pattern, re.ASCII)
    try:
        grammar = COMPILER.regex(pattern)
    except errors.StructgenError:
        return  # other tests check patterns that match nothing, and assertions too large
    for _ in range(8):
        text = "".join(source.pick(["a", "b", "é", "ab"]) for _ in range(source.integer(0, 5)))
        expected = known.fullmatch(text)
        matcher = grammar.matcher()
        accepted = matcher.accept_bytes(text.encode()) and matcher.is_accepting()
        assert accepted == (expected is not None), (pattern, text)
        if expected is None:
            continue
        found = spans(matcher)
        assert sorted(found) == sorted(known.groupindex), pattern
        for name in known.groupindex:
            # Of nested repetitions the last capture is the one that ends last.
            mine = max(found[name], key=lambda s: (s[1], s[0]), default=None)
            assert mine == in_bytes(text, expected.span(name)), (pattern, text, name, found)


def test_as_python_reads_them() -> None:
    harness.seeded(as_re, 700)


def test_greedy_lazy_and_first_alternative() -> None:
    assert spans(read(r"(?P<a>.*)-(?P<b>.*)", "x-y-z")) == {"a": [(0, 3)], "b": [(4, 5)]}
    assert spans(read(r"(?P<a>.*?)-(?P<b>.*)", "x-y-z")) == {"a": [(0, 1)], "b": [(2, 5)]}
    assert spans(read(r"(?:(?P<a>x)|(?P<b>x))y", "xy")) == {"a": [(0, 1)], "b": []}


def test_a_repeated_group_has_every_match_and_tokens() -> None:
    matcher = COMPILER.regex(r"(?:(?P<n>\d+)-?)+").matcher()
    for token in (257, 258, 53, 45, 57):  # 20 | -0 | 5 | - | 9
        assert matcher.accept_token(token)
    found = matcher.captures()["n"]
    assert [(c.start, c.end, c.start_token, c.end_token, c.text) for c in found] == [
        (0, 2, 0, 1, b"20"),
        (3, 5, 1, 3, b"05"),
        (6, 7, 4, 5, b"9"),
    ]
    assert matcher.rollback(2) is None
    assert [c.text for c in matcher.captures()["n"]] == [b"20", b"05"]


def test_what_did_not_end_is_left_out() -> None:
    assert spans(read(r"(?P<y>\d{4})-(?P<m>\d\d)!", "2024-0")) == {"y": [(0, 4)], "m": []}
    assert spans(read(r"(?P<y>\d{4})-(?P<m>\d\d)!", "")) == {"y": [], "m": []}
    half = COMPILER.regex(r"(?P<e>é+)x").matcher()
    assert half.accept_bytes("éé".encode()[:3])
    assert spans(half) == {"e": []}


def test_assertions_beside_groups() -> None:
    assert spans(read(r"(?P<w>\w+)\b(?P<s>.*)$", "ab é")) == {"w": [(0, 2)], "s": [(2, 5)]}
    assert spans(read(r"(?P<a>a(?=b)|a)(?P<b>.)", "ab")) == {"a": [(0, 1)], "b": [(1, 2)]}
    assert spans(read(r"(?P<l>.*)(?<=b)(?P<r>a*)", "abaa")) == {"l": [(0, 2)], "r": [(2, 4)]}


def test_same_name_twice_is_one_capture() -> None:
    assert spans(read(r"(?P<a>x)|(?P<a>y)", "y")) == {"a": [(0, 1)]}


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(?P<x>(?:a?){40}a{40})", "a" * 40),  # a backtracking reader tries 2^40 ways
        (r"(?P<x>(?:a+)+)b", "a" * 20_000 + "b"),
        (r"(?:(?P<x>a)|b)*", "ab" * 20_000),
    ],
)
def test_no_pattern_takes_exponential_time(pattern: str, text: str) -> None:
    matcher = read(pattern, text)
    with harness.cpu_limit(5):
        assert matcher.captures()["x"]


def test_too_many_steps_are_an_error() -> None:
    matcher = read(r"(?P<x>(?:(?=[ab]*c)a)*)c", "a" * 30_000 + "c")
    with pytest.raises(errors.BudgetExceeded, match="groups"):
        matcher.captures()
