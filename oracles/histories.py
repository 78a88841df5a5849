"""Checks that a mask depends only on the grammar, the text, the budget and the limits, and does not depend on
earlier questions.

The oracle is a new compiler for every question. Time: a compile and a mask for each question, milliseconds
with a small vocabulary.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import structgen as sg

from . import oracle

PIECES = [
    *(bytes([i]) for i in range(256)),
    *b'{"|":|","|"]|"}|",|ab|abc|a"|b"|ab":|b","|[[|["|":"|true|12|]}|{}|""|"a"|"a":|,"a|a","b'.split(b"|"),
]
END = len(PIECES)
VOCABULARY = sg.Vocabulary.from_bytes([*PIECES, b""], eos_token_ids=[END])
# The vocabulary lacks all other bytes, so some texts of a grammar cannot be spelled.
FEW = [bytes([b]) for b in range(32, 127)] + [t for t in PIECES if len(t) > 1]
LACKING = sg.Vocabulary.from_bytes([*FEW, b""], eos_token_ids=[len(FEW)])


class Question(NamedTuple):
    tokens: tuple[int, ...]
    left: int | None  # the number of tokens left in the budget


class Told(NamedTuple):
    """An error's name or the tokens of a mask, and whether the engine calls the mask exact."""

    answer: Any
    exact: bool


def told(grammar: Any, question: Question) -> Told:
    matcher = grammar.matcher()
    try:
        if not matcher.accept_tokens(list(question.tokens)):
            return Told("refused", True)
        row = oracle.mask_of(matcher, grammar.vocabulary.vocab_size, question.left)
    except sg.StructgenError as error:
        return Told(type(error).__name__, isinstance(error, sg.UnsatisfiableBudget))
    return Told(frozenset(np.flatnonzero(row).tolist()), matcher.mask_exact)


def questions(compiled: Callable[[], Any], source: random.Random, walks: int) -> Iterator[Question]:
    """Questions along random texts, each with a compiler of its own. Budgets begin near the least that
    suffices."""
    least = compiled().matcher().tokens_needed()
    for _ in range(walks):
        grammar, tokens = compiled(), ()
        left = least + source.choice([0, 0, 1, 2, 3, 5, 8, 12])
        while left > 0:
            question = Question(tokens, left)
            yield question
            yield Question(tokens, None)
            answer = told(grammar, question).answer
            allowed = sorted(answer) if isinstance(answer, frozenset) else []
            if not allowed or (token := source.choice(allowed)) in grammar.vocabulary.eos_token_ids:
                break
            tokens, left = (*tokens, token), left - 1


def differing(
    compiled: Callable[[], Any],
    seed: int,
    walks: int = 2,
    orders: int = 1,
    other: Callable[[], Any] | None = None,
) -> tuple[int, int]:
    """Compares new compilers with used ones, asked in shuffled orders. Raises if two answers differ although
    no search met its limit of work (the mask is exact). Returns the number of questions, and of differences
    in inexact masks.

    Args:
        other: builds the used compilers, with a smaller cache, for example. By default they are like the new
            ones.
    """
    source = random.Random(seed)
    try:
        asked = list(dict.fromkeys(questions(compiled, source, walks)))
    except sg.StructgenError:  # no text can be spelled, or none is known
        return 0, 0
    fresh = {question: told(compiled(), question) for question in asked}
    limited = set()
    for _ in range(orders):
        source.shuffle(asked)
        used = (other or compiled)()
        for question in asked:
            now, first = told(used, question), fresh[question]
            if now.answer == first.answer:
                continue
            assert not (now.exact and first.exact), (seed, question, first, now)
            limited.add(question)
    return len(asked), len(limited)


def cut_otherwise(vocabulary: sg.Vocabulary, tokens: Sequence[int], source: random.Random) -> tuple[int, ...]:
    """Returns random tokens that spell the text of the given tokens."""
    pieces = [vocabulary.token_bytes(t) for t in range(vocabulary.vocab_size)]
    text = b"".join(pieces[t] for t in tokens)
    # the tokens at each place behind which the rest can be spelled
    ends: dict[int, list[int]] = {len(text): []}
    for at in range(len(text) - 1, -1, -1):
        if fit := [t for t, p in enumerate(pieces) if p and text.startswith(p, at) and at + len(p) in ends]:
            ends[at] = fit
    out: list[int] = []
    at = 0
    while at < len(text):
        out.append(source.choice(ends[at]))
        at += len(pieces[out[-1]])
    return tuple(out)


def differing_cuts(compiled: Callable[[], Any], seed: int, walks: int = 2) -> int:
    """Cuts one text into tokens in two ways and compares the rows within budgets; raises if rows differ.
    Returns the number of questions."""
    source, asked = random.Random(seed), 0
    grammar = compiled()
    for question in questions(compiled, source, walks):
        other = cut_otherwise(grammar.vocabulary, question.tokens, source)
        if other == question.tokens:
            continue
        for left in [None] if question.left is None else range(max(1, question.left - 3), question.left + 4):
            one, two = (told(grammar, Question(cut, left)) for cut in (question.tokens, other))
            asked += 1
            assert one == two, (seed, left, question.tokens, other, one, two)
    return asked
