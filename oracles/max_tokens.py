"""Limits on the tokens of a rule: their meaning by brute force over derivations.

Each law takes a source of choices, and raises an error if the engine's answer differs. Time: milliseconds per
case.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

import structgen
from oracles import harness, limited, oracle
from oracles.limited import EOS, SIZE, TEXTS
from oracles.strategies import Source
from structgen import errors

BYTES = 260  # ids of the vocabulary: every byte, two longer tokens, the end token


@functools.cache
def compiler(cache: bool = True, cache_bytes: int = 64 << 20) -> structgen.Compiler:
    vocabulary = structgen.Vocabulary.from_bytes(TEXTS, eos_token_ids=[EOS])
    return structgen.Compiler(vocabulary, cache=cache, cache_bytes=cache_bytes)


@functools.cache
def byte_compiler() -> structgen.Compiler:
    tokens = [bytes([b]) for b in range(256)] + [b"ab", b"  ", b" a", b""]
    return structgen.Compiler(structgen.Vocabulary.from_bytes(tokens, eos_token_ids=[BYTES - 1]))


def lark(text: str, **options: Any) -> structgen.CompiledGrammar:
    return byte_compiler().lark(text, **options)


def mask_of(matcher: structgen.Matcher, budget: int | None = None) -> np.ndarray:
    return oracle.mask_of(matcher, SIZE, budget)


def random_grammar(source: Source, *compilers: structgen.Compiler) -> tuple[Any, ...] | None:
    """Returns a random grammar, compiled by each compiler; None if no text keeps within its limits."""
    grammar = limited.grammar(source)
    text = limited.lark(grammar)
    try:
        return (grammar, *(each.lark(text, lexer="scannerless") for each in compilers))
    except errors.GrammarError as error:
        assert "tokens and may take" in error.message or "keeps to the limits" in error.message, (text, error)
        return None


def means_what_it_says(source: Source) -> str | None:
    """If masks allow all tokens of a sequence, the text may end exactly if the oracle says so. Masks equal
    accept_token, and each mask allows a token."""
    made = random_grammar(source, compiler())
    if made is None:
        return harness.SKIPPED
    grammar, compiled = made
    left = 150
    todo: list[tuple[int, ...]] = [()]
    while todo and left:
        left -= 1
        taken = todo.pop(source.integer(0, len(todo) - 1))
        matcher = compiled.matcher()
        assert matcher.accept_tokens(taken)
        complete = limited.accepts(grammar, [TEXTS[t] for t in taken])
        assert matcher.is_accepting() == complete, (limited.lark(grammar), [TEXTS[t] for t in taken])
        mask = mask_of(matcher)
        assert mask.any(), ("a dead end", limited.lark(grammar), [TEXTS[t] for t in taken])
        assert (mask == oracle.naive_mask(matcher, SIZE)).all(), (limited.lark(grammar), taken)
        assert mask[EOS] == complete
        if len(taken) < 7:
            todo += [(*taken, t) for t in np.flatnonzero(mask).tolist() if t != EOS]


def spans(matcher: structgen.Matcher) -> dict[str, list[bytes]]:
    return {name: [c.text for c in found] for name, found in matcher.captures().items()}


def captures_are_brute_force(source: Source) -> None:
    """Captures equal brute force for the rule start: a b c, each part a run of letters. The first part takes
    as many letters as possible, then the second."""
    limits = [source.integer(1, 3) for _ in range(2)]
    grammar = lark(
        f"start: a b c\na[max_tokens={limits[0]}, capture]: /[abc]*/\n"
        f"b[max_tokens={limits[1]}, capture]: /[a-c]*/\nc[capture]: /[abc]*/",
        lexer="scannerless",
    )
    tokens = [source.pick((97, 98, 99, 256)) for _ in range(source.integer(0, 8))]
    matcher = grammar.matcher()
    assert matcher.accept_tokens(tokens)
    pieces = [b"ab" if t == 256 else bytes([t]) for t in tokens]
    text = b"".join(pieces)
    begins = list(itertools.accumulate((len(p) for p in pieces), initial=0))[:-1]

    def most(begin: int, limit: int) -> int:
        counted = [b for b in begins if b >= begin]
        return counted[limit] if len(counted) > limit else len(text)

    first = most(0, limits[0])
    second = most(first, limits[1])
    assert spans(matcher) == {"a": [text[:first]], "b": [text[first:second]], "c": [text[second:]]}
