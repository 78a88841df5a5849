"""Masks over vocabularies that lack bytes, compared with exhaustive search.

The law: a token is allowed exactly if some sequence of tokens ends the text behind it. Vocabularies are
random: some bytes, longer tokens, repeated tokens, characters cut in two. The oracles share no code with the
engine. For regexes: the finite graph of derivatives that tokens reach. For grammars: a naive fixpoint of the
intersection of the rules with the texts that tokens spell. For schemas: every text up to a length.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles import oracle
from oracles.least_tokens import BYTES, EMPTY, PIECES, Read, Regex, Tree, alt, cat, compiler, vocabulary
from oracles.sampling_oracle import random_rules
from structgen import errors


def completable(language: Any, states: set[Hashable], tokens: list[bytes], most: int) -> set[Hashable] | None:
    """Returns the reachable states from which tokens end a text. None if too many states are reachable."""
    edges: dict[Hashable, set[Hashable]] = {}
    todo = list(states)
    while todo:
        state = todo.pop()
        if state in edges:
            continue
        if len(edges) > most:
            return None
        edges[state] = {a for t in set(tokens) if t and (a := language.after(state, t)) is not None}
        todo += edges[state]
    alive = {state for state in edges if language.ends(state)}
    while more := {s for s, to in edges.items() if s not in alive and to & alive}:
        alive |= more
    return alive


def compare(
    grammar: sg.CompiledGrammar,
    tokens: list[bytes],
    after: Callable[[Any, bytes], Any],
    ends: Callable[[Any], bool],
    alive: Callable[[Any], bool | None],
    start: Any,
    seed: int,
    steps: int = 5,
) -> tuple[int, int]:
    """Compares the masks of a random walk with an oracle. Returns the number of tokens that the language's
    bytes allow, and how many of them were refused."""
    source = np.random.default_rng([seed, 77])
    size, matcher, state = len(tokens) + 1, grammar.matcher(), start
    seen = refused = 0
    for _ in range(steps):
        next_states = {i: after(state, t) for i, t in enumerate(tokens) if t}
        by_bytes = {i for i, s in next_states.items() if s is not None}
        verdicts = {i: alive(next_states[i]) for i in by_bytes}
        if None in verdicts.values():
            return seen, refused
        wanted = {i for i in by_bytes if verdicts[i]}
        end = {size - 1} if ends(state) else set()
        accepted = set(np.flatnonzero(oracle.naive_mask(matcher, size)).tolist())
        assert accepted == wanted | end, (tokens, state)
        if not wanted | end:
            with pytest.raises(errors.VocabularyError, match="no tokens of the vocabulary"):
                oracle.mask_of(matcher, size)
            return seen, refused + len(by_bytes)
        for asked in (matcher, matcher.fork()):
            assert set(np.flatnonzero(oracle.mask_of(asked, size)).tolist()) == wanted | end, (tokens, state)
        seen, refused = seen + len(by_bytes), refused + len(by_bytes - wanted)
        if not wanted:
            break
        token = int(source.choice(sorted(wanted)))
        assert matcher.accept_token(token)
        state = next_states[token]
    return seen, refused


# ---- regexes ----

LETTERS = ["a", "b", "é", "ö"]


def random_pattern(source: np.random.Generator, depth: int) -> tuple[Tree, str]:
    """Returns a tree over bytes, and the pattern over characters with the same texts."""
    kind = int(source.integers(0, 5)) if depth else 0
    if kind <= 1:
        letter = LETTERS[int(source.integers(0, 4))]
        tree: Tree = EMPTY
        for byte in letter.encode():
            tree = cat(tree, ("set", chr(byte)))
        return tree, letter
    if kind == 2:
        body, text = random_pattern(source, depth - 1)
        low = int(source.integers(0, 3))
        high = None if source.integers(0, 2) else low + int(source.integers(1, 3))
        return ("repeat", body, low, high), f"(?:{text}){{{low},{'' if high is None else high}}}"
    (a, x), (b, y) = random_pattern(source, depth - 1), random_pattern(source, depth - 1)
    return (cat(a, b), f"(?:{x})(?:{y})") if kind == 3 else (alt(a, b), f"(?:{x}|{y})")


@pytest.mark.parametrize("block", range(2))
def test_regexes(block: int) -> None:
    seen = refused = 0
    for seed in range(block * 150, block * 150 + 150):
        source = np.random.default_rng([seed, 1])
        tree, text = random_pattern(source, 4)
        tokens = vocabulary(source, "abéö".encode(), longest=4, size=9)
        language = Regex(tree)
        if not tokens:
            continue

        def alive(state: Any, language: Any = language, tokens: list[bytes] = tokens) -> bool | None:
            found = completable(language, {state}, tokens, 3000)
            return None if found is None else state in found

        grammar = compiler(tokens).regex(text)
        a, b = compare(grammar, tokens, language.after, language.ends, alive, language.start, seed)
        seen, refused = seen + a, refused + b
    assert refused > 30 and seen > 2 * refused


# ---- grammars ----


class Rules:
    """Whether some text of a grammar begins with a prefix and goes on with tokens, by a naive fixpoint.

    An automaton reads the bytes of a prefix, then the bytes of tokens. `pairs[X]` holds the states before and
    behind a text of X (Bar-Hillel, Perles, Shamir 1961).
    """

    def __init__(self, rules: dict[str, list[str]], tokens: list[bytes]) -> None:
        self.rules, self.tokens = rules, sorted({t for t in tokens if t})
        self._known: dict[tuple[bytes, bool], bool] = {}

    def meets(self, prefix: bytes, tokens: bool, then: str = "") -> bool:
        if (prefix, tokens) not in self._known:
            self._known[prefix, tokens] = self._meets(prefix, tokens)
        return self._known[prefix, tokens]

    def _meets(self, prefix: bytes, tokens: bool) -> bool:
        steps: dict[str, set[tuple[Any, Any]]] = {}
        end = len(prefix)
        for i, c in enumerate(prefix):
            steps.setdefault(chr(c), set()).add((i, i + 1))
        for t in self.tokens if tokens else []:
            for i, c in enumerate(t):
                at, to = (end if i == 0 else t[:i]), (end if i + 1 == len(t) else t[: i + 1])
                steps.setdefault(chr(c), set()).add((at, to))
                if i + 1 == len(t):
                    steps[chr(c)].add((at, end))
        states = {s for pairs in steps.values() for pair in pairs for s in pair} | {0, end}
        found: dict[str, set[tuple[Any, Any]]] = {name: set() for name in self.rules}
        while True:
            before = sum(map(len, found.values()))
            for name, bodies in self.rules.items():
                for body in bodies:
                    pairs = {(s, s) for s in states}
                    for symbol in body:
                        by = found.get(symbol, steps.get(symbol, set()))
                        pairs = {(a, d) for a, b in pairs for c, d in by if b == c}
                    found[name] |= pairs
            if sum(map(len, found.values())) == before:
                return (0, end) in found["S"]


def gbnf(rules: dict[str, list[str]]) -> str:
    def name(symbol: str) -> str:
        return {"S": "root", "T": "T"}.get(symbol, f'"{symbol}"')

    return "\n".join(
        f"{name(head)} ::= " + " | ".join(" ".join(map(name, body)) or '""' for body in bodies)
        for head, bodies in rules.items()
    )


RECURSIVE: list[dict[str, list[str]]] = [
    {"S": ["aSb", "c"]},  # without b or c no text ends, and the number of states is infinite
    {"S": ["aSa", "bSb", ""]},
    {"S": ["aST", "b"], "T": ["c", "bT"]},
    {"S": ["SaS", "b", "cSc"]},
]


def test_grammars() -> None:
    seen = refused = 0
    for seed in range(70):
        source = np.random.default_rng([seed, 3])
        rules = RECURSIVE[seed % 4] if seed % 3 else random_rules(seed)
        tokens = [t for t in vocabulary(source, b"abc", size=5) if seed % 2 or t != b"c"]
        if not tokens:
            continue
        rules_of = Rules(rules, tokens)
        read = Read(sg.Compiler(BYTES).gbnf(gbnf(rules)))
        a, b = compare(
            compiler(tokens).gbnf(gbnf(rules)),
            tokens,
            read.after,
            lambda text, r=rules_of: r.meets(text, False),
            lambda text, r=rules_of: r.meets(text, True),
            b"",
            seed,
            4,
        )
        seen, refused = seen + a, refused + b
    assert refused > 20 and seen > 2 * refused


# ---- schemas ----

SCHEMAS: list[Any] = [
    {"type": "string", "maxLength": 3},
    {"type": "string"},
    {"enum": ["a", "ab", "é", 1, 10, None]},
    {"type": "array", "items": {"enum": ["a", "b", 1]}, "maxItems": 2},
    {"type": "array", "items": {"enum": ["a", "b", 10]}, "uniqueItems": True},
    {"type": "object", "properties": {"a": {"enum": ["a", "b"]}, "b": {"type": "boolean"}}, "required": ["a"],
     "additionalProperties": False},
    {"type": "object", "additionalProperties": {"type": "boolean"}, "maxProperties": 2,
     "propertyNames": {"enum": ["a", "b", "ab"]}},
    {"anyOf": [{"type": "boolean"}, {"type": "array", "items": {"$ref": "#"}, "maxItems": 1}]},
]  # fmt: skip


@pytest.mark.parametrize("index", range(len(SCHEMAS)))
def test_schemas(index: int) -> None:
    read = Read(sg.Compiler(BYTES).json_schema(SCHEMAS[index], whitespace="compact"))
    for seed in range(12):
        source = np.random.default_rng([seed, index, 2])
        count = int(source.integers(8, 15))
        tokens = [PIECES[int(i)] for i in source.choice(len(PIECES), count, replace=False)]
        tokens += [b'"', *tokens[:2]] if source.integers(0, 3) else []

        def alive(text: Any, tokens: list[bytes] = tokens) -> bool | None:
            """Searches breadth first; None if the search meets too many texts."""
            level, met = {text}, 0
            while level:
                if any(map(read.ends, level)):
                    return True
                met += len(level)
                if met > 300:
                    return None
                level = {a for s, t in itertools.product(level, set(tokens)) if (a := read.after(s, t))}
            return False

        for cache in (True, False):
            made = sg.Vocabulary.from_bytes([*tokens, b""], eos_token_ids=[len(tokens)])
            grammar = sg.Compiler(made, cache=cache).json_schema(SCHEMAS[index], whitespace="compact")
            compare(grammar, tokens, read.after, read.ends, alive, b"", seed)


# ---- cases ----


def test_no_text_can_be_spelled() -> None:
    for tokens, schema in (([b"{", b'"', b"a"], {"type": "object"}), ([b"["], {"type": "array"})):
        matcher = compiler(tokens).json_schema(schema).matcher()
        with pytest.raises(
            errors.VocabularyError, match=r"lacks the bytes 0x00, 0x01, 0x02, 0x03 and \d+ more"
        ):
            oracle.mask_of(matcher, len(tokens) + 1)
        assert not matcher.accept_token(0)


def test_a_complete_vocabulary_is_left_alone() -> None:
    """The test's vocabulary lacks only the bytes that UTF-8 never uses."""
    tokens = [bytes([b]) for b in range(0xF5) if b not in (0xC0, 0xC1)]
    mask = oracle.mask_of(compiler(tokens).regex(".*").matcher(), len(tokens) + 1)
    assert mask[tokens.index(b"\xc3")] and not mask[tokens.index(b"\n")]


def test_what_was_promised_outlives_an_epoch() -> None:
    tokens = [b'"', b"\xc3", b"\xa9", b"a", b'","', b"[", b"]", b"["]
    made = sg.Vocabulary.from_bytes([*tokens, b""], eos_token_ids=[len(tokens)])
    grammar = sg.Compiler(made, cache_bytes=1 << 16).json_schema(
        {"type": "array", "items": {"type": "string"}}
    )
    source, matcher = np.random.default_rng(1), grammar.matcher()
    for _ in range(300):
        allowed = np.flatnonzero(oracle.mask_of(matcher, len(tokens) + 1))
        allowed = allowed[allowed < len(tokens)]
        if not len(allowed):
            matcher.rollback(2)
            continue
        assert matcher.accept_token(int(source.choice(allowed)))


# ---- long tokens ----


def test_long_tokens_are_never_allowed() -> None:
    tokens = [*(bytes([i]) for i in range(256)), b"x" * 1024, b"x" * 1025, b"y" * (20 << 20)]
    made = sg.Vocabulary.from_bytes([*tokens, b""], eos_token_ids=[len(tokens)])
    mask = oracle.mask_of(sg.Compiler(made).regex("[a-z]*").matcher(), len(tokens) + 1)
    assert mask[256] and not mask[257] and not mask[258]
    assert list(made.never_allowed) == [254, 255, 257, 258]
    assert made.never_allowed[257] == "longer than 1,024 bytes"
    assert made.never_allowed[255] == "holds the byte 0xFE or 0xFF"


def test_many_long_tokens_are_allowed_up_to_their_sum() -> None:
    tokens = [
        *(bytes([i]) for i in range(256)),
        *(bytes([97 + i % 26]) * 512 + b"%d" % i for i in range(200)),
    ]
    made = sg.Vocabulary.from_bytes([*tokens, b""], eos_token_ids=[len(tokens)])
    mask = oracle.mask_of(sg.Compiler(made).regex("[a-z0-9]*").matcher(), len(tokens) + 1)
    assert 100 < mask[256:].sum() < 150
    left_out = [i for i in made.never_allowed if i > 255]
    assert left_out and left_out == [i for i in range(256, 456) if not mask[i]]
    assert {made.never_allowed[i] for i in left_out} == {
        "tokens of more than 256 bytes have more than 65,536 together"
    }
