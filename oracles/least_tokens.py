"""The fewest tokens that end a text, by exhaustive search: an oracle of `tokens_needed` and of small budgets.

Each law takes a seed, and raises an error if the engine's answer differs. Time: milliseconds per seed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import structgen as sg
from structgen import errors

from . import oracle

FAR = math.inf


BYTES = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b""], eos_token_ids=[256])


Tree = tuple[Any, ...]


NEVER: Tree = ("never",)


EMPTY: Tree = ("empty",)


def cat(a: Tree, b: Tree) -> Tree:
    if NEVER in (a, b):
        return NEVER
    return b if a == EMPTY else a if b == EMPTY else ("cat", a, b)


def alt(a: Tree, b: Tree) -> Tree:
    parts = {p for t in (a, b) for p in (t[1] if t[0] == "alt" else [t]) if p != NEVER}
    if len(parts) < 2:
        return parts.pop() if parts else NEVER
    return ("alt", frozenset(parts))


def nullable(t: Tree) -> bool:
    if t[0] == "cat":
        return nullable(t[1]) and nullable(t[2])
    if t[0] == "alt":
        return any(map(nullable, t[1]))
    if t[0] == "repeat":
        return t[2] == 0 or nullable(t[1])
    return t == EMPTY


@functools.cache
def derivative(t: Tree, c: str) -> Tree:
    if t[0] == "set":
        return EMPTY if c in t[1] else NEVER
    if t[0] == "cat":
        first = cat(derivative(t[1], c), t[2])
        return alt(first, derivative(t[2], c)) if nullable(t[1]) else first
    if t[0] == "alt":
        return functools.reduce(alt, (derivative(p, c) for p in t[1]), NEVER)
    if t[0] == "repeat":
        low, high = max(0, t[2] - 1), None if t[3] is None else t[3] - 1
        rest = EMPTY if high == 0 else ("repeat", t[1], low, high)
        return cat(derivative(t[1], c), rest)
    return NEVER


def spelled(t: Tree) -> str:
    if t[0] == "set":
        return "[" + t[1] + "]"
    if t[0] == "cat":
        return spelled(t[1]) + spelled(t[2])
    if t[0] == "alt":
        return "(?:" + "|".join(sorted(map(spelled, t[1]))) + ")"
    if t[0] == "repeat":
        return f"(?:{spelled(t[1])}){{{t[2]},{'' if t[3] is None else t[3]}}}"
    return "(?:)"


def random_tree(source: np.random.Generator, depth: int) -> Tree:
    kind = int(source.integers(0, 5)) if depth else 0
    if kind <= 1:
        size = int(source.integers(1, 3))
        return ("set", "".join(sorted(source.choice(list("abcd"), size, replace=False))))
    if kind == 2:
        low = int(source.integers(0, 4))
        high = None if source.integers(0, 3) == 0 else low + int(source.integers(0, 3))
        body = random_tree(source, depth - 1)
        return EMPTY if high == 0 else ("repeat", body, low, high)
    make = cat if kind == 3 else alt
    return make(random_tree(source, depth - 1), random_tree(source, depth - 1))


class Regex:
    """A language as the search sees it: a state, the state behind a text (None if no text continues), and
    whether the text may end."""

    def __init__(self, tree: Tree) -> None:
        self.start = tree

    def after(self, state: Tree, text: bytes) -> Tree | None:
        for c in text.decode("latin-1"):
            state = derivative(state, c)
        return None if state == NEVER else state

    def ends(self, state: Tree) -> bool:
        return nullable(state)


class Read:
    """A language that an engine over single bytes reads. States are texts."""

    def __init__(self, grammar: sg.CompiledGrammar) -> None:
        self.matcher = grammar.matcher()
        self.start = b""
        self._known: dict[bytes, tuple[bool, bool]] = {}

    def _look(self, text: bytes) -> tuple[bool, bool]:
        if text not in self._known:
            self.matcher.reset()
            alive = self.matcher.accept_bytes(text)
            self._known[text] = alive, alive and self.matcher.is_accepting()
        return self._known[text]

    def after(self, state: bytes, text: bytes) -> bytes | None:
        return state + text if self._look(state + text)[0] else None

    def ends(self, state: bytes) -> bool:
        return self._look(state)[1]


def fewest(language: Any, state: Any, tokens: list[bytes], most: int) -> float:
    """Returns the fewest tokens that complete the text, the end included, found breadth first; infinity above
    `most`."""
    level = {state}
    for count in range(1, most + 1):
        if any(language.ends(s) for s in level):
            return count
        level = {
            after for s in level for t in set(tokens) if t and (after := language.after(s, t)) is not None
        }
    return FAR


def compare(
    compile: Callable[[], sg.CompiledGrammar],
    language: Any,
    tokens: list[bytes],
    most: int,
    seed: int,
    steps: int = 3,
) -> list[tuple[float, int]]:
    """Compares a random walk's bounds, budgets and masks with the oracle. Yields (fewest, bound without
    search)."""
    source = np.random.default_rng([seed, 9])
    grammar = compile()
    size, matcher, state = len(tokens) + 1, grammar.matcher(), language.start
    walked: list[int] = []
    found = []

    def fresh() -> sg.Matcher:
        """Returns a matcher of a grammar that has not made any search yet."""
        made = compile().matcher()
        assert made.accept_tokens(walked)
        return made

    for _ in range(steps):
        least = fewest(language, state, tokens, most)
        try:
            low, high = matcher.token_bounds()
        except errors.UnsatisfiableBudget:
            assert least == FAR, "completions that were said not to exist do"
            low = high = 10**9
        except errors.BudgetExceeded:
            assert least == FAR, "a search gave up where few tokens complete the text"
            break  # every following mask would fail, too, after an equally long search
        if least < FAR:
            try:
                found.append((least, fresh()._bounds(False)[1]))
            except errors.BudgetExceeded:
                found.append((least, 10**9))
            assert low == high == least == matcher.tokens_needed()
        else:
            assert high > most
        next_least = {
            i: fewest(language, after, tokens, most)
            for i, t in enumerate(tokens)
            if t and (after := language.after(state, t)) is not None
        }
        for left in range(1, most + 1):
            wanted = {i for i, n in next_least.items() if n <= left - 1}
            wanted |= {size - 1} if language.ends(state) else set()
            rows = []
            for asked in (matcher, fresh()):
                if not wanted:
                    with pytest.raises(errors.UnsatisfiableBudget):
                        oracle.mask_of(asked, size, left)
                    continue
                rows.append(set(np.flatnonzero(oracle.mask_of(asked, size, left)).tolist()))
                assert rows[-1] and rows[-1] <= wanted, left
                assert rows[-1] == wanted or not asked.mask_exact, left
            assert rows == rows[:1] * 2 or not rows, "a mask depends on what was asked before it"
        # The mask must refuse a token behind which no text ends.
        ends = [i for i, n in next_least.items() if n < FAR]
        if not ends:
            break
        token = int(source.choice(sorted(ends)))
        assert matcher.accept_token(token)
        walked.append(token)
        state = language.after(state, tokens[token])
    return found


def vocabulary(source: np.random.Generator, letters: bytes, longest: int = 3, size: int = 6) -> list[bytes]:
    """Returns a random choice of the letters, longer tokens, and sometimes a repeated token."""
    tokens = [bytes([c]) for c in letters if source.integers(0, 5)]
    for _ in range(int(source.integers(1, size))):
        length = int(source.integers(2, longest + 1))
        tokens.append(bytes(source.choice(list(letters), length).tolist()))
    if source.integers(0, 3) == 0 and tokens:
        tokens.append(tokens[0])
    return tokens


def compiler(tokens: list[bytes]) -> sg.Compiler:
    return sg.Compiler(sg.Vocabulary.from_bytes([*tokens, b""], eos_token_ids=[len(tokens)]))


def of_regex(seed: int) -> list[tuple[float, int]]:
    """Returns a random regex over a random vocabulary."""
    source = np.random.default_rng([seed, 1])
    tree = cat(random_tree(source, 3), random_tree(source, 3))
    tokens = vocabulary(source, b"abcd", longest=4, size=9)
    if not tokens:
        return []
    return compare(lambda: compiler(tokens).regex(spelled(tree)), Regex(tree), tokens, 8, seed)


SCHEMAS: list[Any] = [
    {"type": "string"},
    {"type": "string", "maxLength": 2},
    {"enum": ["a", "ab", 1, None]},
    {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2},
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"],
     "additionalProperties": False},
    {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 1},
    {"type": "integer", "minimum": 10},
]  # fmt: skip


PIECES = [b'"', b"a", b"b", b'"a', b'a"', b'","', b'":"', b'{"a":', b'"}', b"{", b"}", b"[", b"]", b",", b":",
          b"true", b"tr", b"ue", b"false", b"1", b"0", b"null", b"\xc3", b"\xa9", b"\xc3\xa9", b'["a"',
          b'"b"]', b'{"a":"b"}', b'["a","b"]']  # fmt: skip


def of_schema(seed: int, index: int) -> None:
    """One of the schemas over a random vocabulary of the schema's pieces."""
    source = np.random.default_rng([seed, index, 2])
    count = int(source.integers(8, 13))
    tokens = [PIECES[int(i)] for i in source.choice(len(PIECES), count, replace=False)]
    tokens += [b'"'] if source.integers(0, 3) else []
    read = Read(sg.Compiler(BYTES).json_schema(SCHEMAS[index], whitespace="compact"))
    compare(lambda: compiler(tokens).json_schema(SCHEMAS[index], whitespace="compact"), read, tokens, 5, seed)


def of_grammar(seed: int) -> None:
    """A random context-free grammar over a random vocabulary."""
    from oracles.sampling_oracle import random_rules

    source = np.random.default_rng([seed, 3])
    rules = random_rules(seed)
    text = "\n".join(
        f"{'root' if name == 'S' else name} ::= "
        + " | ".join(
            " ".join("root" if c == "S" else c if c == "T" else f'"{c}"' for c in body) or '""'
            for body in bodies
        )
        for name, bodies in rules.items()
    )
    tokens = vocabulary(source, b"abc", size=4)
    if tokens:
        compare(lambda: compiler(tokens).gbnf(text), Read(sg.Compiler(BYTES).gbnf(text)), tokens, 5, seed)
