"""`tokens_needed` and masks under small budgets against an exhaustive search for the fewest tokens.

The oracle reads no state of the engine under test. For regexes it takes derivatives of a small syntax tree;
for choices, schemas and grammars it tries every sequence of tokens on a matcher whose vocabulary is single
bytes, so that tokens, tries and budgets have no part in it. Vocabularies lack bytes, hold tokens twice, cut
characters in two, and hold tokens as long as whole texts.
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

# ---- regexes: a tree, its derivative, its text ----

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


# ---- the fewest tokens ----


class Regex:
    """What a language is to the search: a state, its successor by a text (None: dead), whether it may end."""

    def __init__(self, tree: Tree) -> None:
        self.start = tree

    def after(self, state: Tree, text: bytes) -> Tree | None:
        for c in text.decode("latin-1"):
            state = derivative(state, c)
        return None if state == NEVER else state

    def ends(self, state: Tree) -> bool:
        return nullable(state)


class Read:
    """A language that an engine over single bytes reads; states are texts."""

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
    """Tokens that complete the text, the end included, by breadth; infinity where it is more than `most`."""
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
    """A random walk's bounds, budgets and masks against the oracle. (fewest, bound without search) each."""
    source = np.random.default_rng([seed, 9])
    grammar = compile()
    size, matcher, state = len(tokens) + 1, grammar.matcher(), language.start
    walked: list[int] = []
    found = []

    def fresh() -> sg.Matcher:
        """One for which nothing was searched yet."""
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
            break  # so would every mask, each after a search as long
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
            for asked in (matcher, fresh()):
                if wanted:
                    assert set(np.flatnonzero(oracle.mask_of(asked, size, left)).tolist()) == wanted, left
                else:
                    with pytest.raises(errors.UnsatisfiableBudget):
                        oracle.mask_of(asked, size, left)
        # A token after which nothing ends is refused.
        ends = [i for i, n in next_least.items() if n < FAR]
        if not ends:
            break
        token = int(source.choice(sorted(ends)))
        assert matcher.accept_token(token)
        walked.append(token)
        state = language.after(state, tokens[token])
    return found


def vocabulary(source: np.random.Generator, letters: bytes, longest: int = 3, size: int = 6) -> list[bytes]:
    """Some letters, not always all of them; longer tokens; sometimes one twice."""
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
    """A random regex over a random vocabulary."""
    source = np.random.default_rng([seed, 1])
    tree = cat(random_tree(source, 3), random_tree(source, 3))
    tokens = vocabulary(source, b"abcd", longest=4, size=9)
    if not tokens:
        return []
    return compare(lambda: compiler(tokens).regex(spelled(tree)), Regex(tree), tokens, 8, seed)


@pytest.mark.parametrize("block", range(4))
def test_regexes(block: int) -> None:
    found = [pair for seed in range(block * 120, block * 120 + 120) for pair in of_regex(seed)]
    assert sum(least < cheap for least, cheap in found) > 3, "a shortest text always has the fewest tokens"


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
    """One of the schemas over a random vocabulary of its pieces."""
    source = np.random.default_rng([seed, index, 2])
    count = int(source.integers(8, 13))
    tokens = [PIECES[int(i)] for i in source.choice(len(PIECES), count, replace=False)]
    tokens += [b'"'] if source.integers(0, 3) else []
    read = Read(sg.Compiler(BYTES).json_schema(SCHEMAS[index], whitespace="compact"))
    compare(lambda: compiler(tokens).json_schema(SCHEMAS[index], whitespace="compact"), read, tokens, 5, seed)


@pytest.mark.parametrize("index", range(len(SCHEMAS)))
def test_schemas(index: int) -> None:
    for seed in range(5):
        of_schema(seed, index)


def of_grammar(seed: int) -> None:
    """A random context-free grammar over a random vocabulary."""
    from .sampling_oracle import random_rules

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


def test_grammars() -> None:
    for seed in range(12):
        of_grammar(seed)


def test_choices_whose_bytes_are_missing() -> None:
    for seed in range(40):
        source = np.random.default_rng([seed, 4])
        texts = sorted({"".join(source.choice(list("abc"), int(source.integers(1, 6)))) for _ in range(4)})
        tokens = vocabulary(source, b"abc", size=4)
        if seed % 3 == 0:
            tokens = [t for t in tokens if b"a" not in t] or [b"b"]
        if seed % 4 == 1:
            tokens.append(texts[-1].encode())  # a token as long as a text
        read = Read(sg.Compiler(BYTES).choice(texts))
        compile = lambda t=tokens, c=texts: compiler(t).choice(c)  # noqa: E731
        compare(compile, read, tokens, 7, seed)


# ---- what was wrong, as it was found ----


def test_the_fewest_tokens_need_not_spell_the_first_shortest_text() -> None:
    matcher = compiler([b"a", b"b", b"ab", b"c"]).regex("[ab]{2}").matcher()
    assert matcher.token_bounds() == (2, 2)
    assert compiler([b"b", b"c"]).choice(["a", "b"]).matcher().tokens_needed() == 2
    with pytest.raises(errors.UnsatisfiableBudget, match="no tokens"):
        compiler([b"c"]).choice(["a", "b"]).matcher().tokens_needed()


def test_a_character_begun_can_be_ended_by_the_bytes_there_are() -> None:
    matcher = compiler([b'"', b"\xc3", b"\xa9", b"a"]).json_schema({"type": "string"}).matcher()
    assert matcher.accept_tokens([0, 1])
    for left in (3, 100):
        assert np.flatnonzero(oracle.mask_of(matcher, 5, left)).tolist() == [2]
    with pytest.raises(errors.UnsatisfiableBudget, match="it takes 3"):
        oracle.mask_of(matcher, 5, 2)


def test_many_seeds_end_over_a_vocabulary_without_some_bytes() -> None:
    tokens = [b'"', b"\xc3", b"\xa9", b"a", b"\xe2", b"\x82"]
    grammar = compiler(tokens).json_schema({"type": "string"})
    for seed in range(100):
        source, matcher = np.random.default_rng(seed), grammar.matcher()
        for left in range(12, 0, -1):
            allowed = np.flatnonzero(oracle.mask_of(matcher, len(tokens) + 1, left))
            assert matcher.accept_token(int(source.choice(allowed)))
            if matcher.is_terminated():
                break
        assert matcher.is_terminated()


def test_a_long_word_within_few_tokens(tekken_vocabulary: sg.Vocabulary) -> None:
    matcher = sg.Compiler(tekken_vocabulary).regex("[a-z]{6}").matcher()
    assert matcher.tokens_needed() == 2
    mask = oracle.mask_of(matcher, len(tekken_vocabulary), 2)
    for token in np.flatnonzero(mask):
        text = tekken_vocabulary.token_bytes(int(token))
        assert len(text) == 6 and text.isalpha() and text.islower()
    assert mask.sum() > 100


def unproved(call: Callable[[], Any]) -> bool:
    """Whether a call ends in the error that claims no proof."""
    with pytest.raises(errors.BudgetExceeded) as caught:
        call()
    return not isinstance(caught.value, errors.UnsatisfiableBudget)


def test_a_search_that_is_too_large_says_so() -> None:
    """Items that must differ decide what follows: then the bounds differ, and no error claims a proof."""
    schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 12}
    tokens = [*(bytes([i]) for i in range(256)), b'","', b'["']
    compile = lambda t: compiler(t).json_schema(schema, whitespace="compact").matcher()  # noqa: E731
    matcher = compile(tokens)
    low, high = matcher.token_bounds()
    assert 1 < low < high
    assert oracle.mask_of(compile(tokens), len(tokens) + 1, high).any()
    assert unproved(lambda: oracle.mask_of(compile(tokens), len(tokens) + 1, high - 1))
    # Over these bytes nothing is found at all.
    few = compile([b'"', b"a", b"b", b",", b"[", b"]", b'","'])
    assert unproved(few.tokens_needed)
    assert unproved(lambda: oracle.mask_of(few, 8, 40))


# ---- planted bugs: the comparison must see them ----


def test_the_tokens_of_one_shortest_text_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was there before."""
    witness = lambda self: (self._bounds(False)[1],) * 2  # noqa: E731
    monkeypatch.setattr(sg.grammar.Matcher, "token_bounds", witness)
    with pytest.raises(AssertionError):
        test_regexes(0)


@pytest.mark.parametrize("bug", ["one too many", "one too few", "no budget"])
def test_masks_of_another_budget_are_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = oracle.mask_of

    def wrong(matcher: sg.Matcher, size: int, left: int) -> np.ndarray:
        if bug == "no budget" and left > 3:
            return honest(matcher, size)
        return honest(matcher, size, left + {"one too many": 1, "one too few": -1}.get(bug, 0))

    monkeypatch.setattr(oracle, "mask_of", wrong)
    with pytest.raises((AssertionError, errors.UnsatisfiableBudget, pytest.fail.Exception)):
        test_regexes(0)


def test_a_run_of_characters_beside_a_shorter_way() -> None:
    """After a token that a mask allows, one token less is enough; also where the token stays inside a string
    and rules out what would have been shorter."""
    vocabulary = sg.Vocabulary.from_bytes([bytes([b]) for b in range(256)] + [b""], eos_token_ids=256)
    compiler = sg.Compiler(vocabulary)
    long = {"properties": {"a" * 30: {"const": "b" * 30}}, "required": ["a" * 30]}
    hours = {"propertyNames": {"pattern": "^[01][0-9]:[0-5][0-9]$"}, "additionalProperties": {"const": 1}}
    words = {"anyOf": [{"pattern": "^1.*x{40}$"}, {"const": "12"}]}
    for schema, text in (
        ({"type": "object", "anyOf": [long, hours]}, b'{"1'),
        ({"type": "object", "anyOf": [hours, long]}, b'{"'),
        ({"type": "string", **words}, b'"1'),
    ):
        grammar = compiler.json_schema(schema)
        for budget in (12, 20, 30, 50, 60, 70, 80, 120):
            matcher = grammar.matcher()
            assert matcher.accept_bytes(text)
            if matcher.tokens_needed() > budget:
                continue
            mask = sg.allocate_bitmask(1, vocabulary.vocab_size)
            matcher.fill_bitmask(mask, max_tokens=budget)
            for token in np.unpackbits(mask.view(np.uint8), bitorder="little").nonzero()[0]:
                matcher.accept_token(int(token))
                if not matcher.is_terminated():
                    matcher.fill_bitmask(mask, max_tokens=budget - 1)  # raises where it does not fit
                matcher.rollback(1)
