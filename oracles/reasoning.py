"""Random models that think before they answer, and the definition of their texts.

A case is a seed: marks, a grammar of answers, limits, and a model that draws at random. `means_what_it_says`
compares verdicts on random tokens with `valid`, which splits a text by another method than the engine.
`shares_no_mask_of_another` compares masks with those of a compiler without a cache. `thinks_and_answers`
writes a text under a budget with drafts of 1 to 8 tokens, and takes a part of it back. `a_host_drafts` writes
texts with the calls of a serving engine.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import structgen as sg
from oracles import closed, oracle
from oracles.strategies import Source, pattern, schema
from structgen.integrations.hosts import HostRequest, request_of

# Tokens that end, begin and cross the marks. A special token has a name and no text.
_TEXTS = [
    *b"ab01{}\":,n<>/\n", *(b"th", b"<t", b"</", b"<th>", b"</th>", b"</th>{", b'h>{"n":', b'"n"', b"\n\n"),
    *(b">1", b"a</", b"th>ab", b"ba<", b"}"),
]  # fmt: skip
TOKENS = [bytes([t]) if isinstance(t, int) else t for t in _TEXTS]
OPEN, CLOSE = len(TOKENS), len(TOKENS) + 1
NAMES = {OPEN: b"[T]", CLOSE: b"[/T]"}
EOS = len(TOKENS) + 2
VOCABULARY = sg.Vocabulary.from_bytes(
    [*TOKENS, b"[T]", b"[/T]", b""], eos_token_ids=[EOS], special_token_ids=[OPEN, CLOSE]
)
COMPILER = sg.Compiler(VOCABULARY)
SIZE = VOCABULARY.vocab_size

_RECORD = closed({"n": {"type": "integer", "minimum": 0, "maximum": 11}})
MARKS = [
    ("<th>", "</th>"),
    ("[T]", "[/T]"),
    ("<", "</th>"),
    ("ab", "aa"),
    ("<th>", "aba"),
    ("[T]\n", "\n[/T]"),
]


@functools.cache
def answers() -> list[sg.CompiledGrammar]:
    return [
        COMPILER.json_schema(_RECORD, whitespace="compact"),
        COMPILER.json_schema(_RECORD),
        COMPILER.regex("[01]{1,3}"),
        COMPILER.choice(["{a}", "{b0}", "1"]),
        COMPILER.gbnf('root ::= "{" item* "}"\nitem ::= [01] | root'),
        COMPILER.regex(r"(\n|1)+0"),
    ]


def case(source: Source) -> tuple[sg.CompiledGrammar, sg.CompiledGrammar, sg.Reasoning]:
    """Returns the grammar of answers, the grammar with thoughts, and the marks and limits of the thoughts."""
    start, end = source.pick(MARKS)
    reasoning = sg.Reasoning(
        start,
        end,
        source.pick([None, None, 0, 1, 2, 3, 6]),
        required=source.chance(40),
        prefilled=source.chance(30),
        gap=source.pick(["", "\n", "\n\n"]),
    )
    answer = source.pick(answers())
    grammar = COMPILER.with_reasoning(answer, reasoning)
    assert grammar.reasoning is not None
    return answer, grammar, grammar.reasoning


def written(tokens: Sequence[int]) -> bytes:
    return b"".join(NAMES.get(t, TOKENS[t] if t < OPEN else b"") for t in tokens)


def accepts(answer: sg.CompiledGrammar, text: bytes) -> bool:
    matcher = answer.matcher()
    return matcher.accept_bytes(text) and matcher.is_accepting()


def valid(answer: sg.CompiledGrammar, reasoning: sg.Reasoning, tokens: Sequence[int]) -> bool:
    """Returns whether tokens without an end token are a text. The function searches for a split into thoughts
    and answer that fits the definition."""
    text, begins = b"", []
    special = set()  # the places of bytes that belong to a special token
    for token in tokens:
        begins.append(len(text))
        piece = written([token])
        if token in NAMES:
            special |= set(range(len(text), len(text) + len(piece)))
        text += piece
    start, end, gap = (part.encode() for part in (reasoning.start, reasoning.end, reasoning.gap))

    def is_mark(mark: bytes, at: int) -> bool:
        """Returns whether the mark stands at a place, with its special tokens as such and the rest as
        text."""
        if text[at : at + len(mark)] != mark:
            return False
        inside = {
            at + mark.find(name) + i for name in NAMES.values() if name in mark for i in range(len(name))
        }
        return inside == special & set(range(at, at + len(mark)))

    def answered(at: int) -> bool:
        return not special & set(range(at, len(text))) and accepts(answer, text[at:])

    if not (reasoning.required or reasoning.prefilled) and answered(0):
        return True
    at = 0
    if not reasoning.prefilled:
        if not is_mark(start, 0):
            return False
        at = len(start)
    close = text.find(end, at)
    if close < 0 or not is_mark(end, close) or special & set(range(at, close)):
        return False
    within = [b for b, token in zip(begins, tokens, strict=True) if at <= b < close and written([token])]
    if reasoning.max_tokens is not None and len(within) > reasoning.max_tokens:
        return False
    behind = close + len(end)
    return any(text[behind : behind + n] == gap[:n] and answered(behind + n) for n in range(len(gap) + 1))


def means_what_it_says(source: Source) -> None:
    """Verdicts on random tokens equal `valid`, and every mask equals the acceptance by forks."""
    answer, grammar, reasoning = case(source)
    matcher, tokens = grammar.matcher(), []
    for _ in range(source.integer(1, 14)):
        mask = oracle.mask_of(matcher, SIZE)
        for token in range(SIZE):
            assert mask[token] == matcher.fork().accept_token(token), (tokens, token)
        likely = [t for t in np.flatnonzero(mask) if t != EOS]
        token = int(source.pick(likely)) if likely and source.chance(85) else source.integer(0, EOS - 1)
        assert matcher.is_accepting() == valid(answer, reasoning, tokens), tokens
        if not matcher.accept_token(token):
            for more in ([], [source.integer(0, EOS - 1)]):
                assert not valid(answer, reasoning, [*tokens, token, *more]), [*tokens, token, *more]
            break
        tokens.append(token)
    assert matcher.is_accepting() == valid(answer, reasoning, tokens), tokens


def _many_tokens(source: Source, lacking: bool) -> sg.Vocabulary:
    """Bytes, pieces of marks and answers, cut characters, and so many words that masks skip subtrees of the
    trie. With 3,000 words a limit meets more tokens than it tries with their own text (kTrials of limits.cc).

    `lacking`: no byte that continues a character is a token.
    """
    letters = source.pick(['abe</>thé日 "{0', 'a"<th>/\\\n😀}1u0k:,', "<|end>é\u2028a"])
    words = {
        "".join(source.pick(letters) for _ in range(source.integer(1, 6)))
        for _ in range(source.pick([200, 1000, 3000]))
    }
    whole = sorted(
        word.encode() for word in words | {"</th", "th>{", '</th>{"', "é</th>", '":', "日</", "\n\n"}
    )
    pieces = {*whole, *(word[:-1] for word in whole[:300]), *(word[1:] for word in whole[:300])}
    single = [bytes([i]) for i in range(256) if not (lacking and 0x80 <= i < 0xC0)]
    tokens = [*single, *sorted(pieces - {*single, b""}), b""]
    return sg.Vocabulary.from_bytes(tokens, eos_token_ids=[len(tokens) - 1])


def _answer(source: Source) -> Callable[[sg.Compiler], sg.CompiledGrammar]:
    items = {"type": "string", "minLength": source.integer(0, 3)}
    words = {"type": "array", "items": items, "minItems": 2, "maxItems": 3, "uniqueItems": True}
    longer = closed({name * 9: {"type": "integer"} for name in "xyz"}, ["x" * 9])
    if source.chance(20):
        text = pattern(source)
        return lambda compiler: compiler.regex(text)
    document = source.pick([{"enum": ["ab", "a", 7]}, _RECORD, longer, words, schema(source), schema(source)])
    return lambda compiler: compiler.json_schema(document, whitespace="compact")


def shares_no_mask_of_another(source: Source, lacking: bool = False) -> int:
    """Under limits and budgets, masks equal those of a compiler without a cache, if both are exact. Returns
    the number of compared masks."""
    vocabulary = _many_tokens(source, lacking)
    compilers = [
        sg.Compiler(vocabulary, cache=False),
        sg.Compiler(vocabulary, cache_bytes=source.pick([1 << 20, 64 << 20])),
    ]
    compared = 0
    for limit in (None, source.integer(0, 6), 40):
        marks = source.pick([("<th>", "</th>"), ("<", "</th>"), ("ab", "aa"), ("<th>", "aba"), ("é", "日")])
        thinks = sg.Reasoning(*marks, max_tokens=limit, required=source.chance(50))
        written_as = _answer(source)
        try:
            both = [compiler.with_reasoning(written_as(compiler), thinks) for compiler in compilers]
        except (
            sg.StructgenError,
            ValueError,
        ):  # the schema has no value, or the answer may begin with a mark
            continue
        for budget in (None, 25, 60, 300):
            compared += _same_masks(
                source, [grammar.matcher() for grammar in both], budget, marks[1].encode()
            )
    return compared


def _same_masks(source: Source, matchers: list[sg.Matcher], left: int | None, end: bytes) -> int:
    vocabulary, compared, tokens = matchers[0].grammar.vocabulary, 0, []
    for _ in range(30):
        try:
            alone, shared = (oracle.mask_of(matcher, vocabulary.vocab_size, left) for matcher in matchers)
        except (sg.UnsatisfiableBudget, sg.BudgetExceeded):  # an inexact mask allowed this token
            break
        except sg.VocabularyError:  # no tokens spell any text
            assert not tokens
            break
        if exact := all(matcher.mask_exact for matcher in matchers):
            assert np.array_equal(alone, shared), (left, tokens, np.flatnonzero(alone != shared))
            compared += 1
        allowed = np.flatnonzero(alone & shared).tolist()
        marks = [t for t in allowed if end[:1] in vocabulary.token_bytes(t)]
        token = source.pick(marks if marks and source.chance(50) else allowed)
        try:
            taken = [matcher.accept_token(token) for matcher in matchers]
        except sg.BudgetExceeded:  # a small cache ran out of memory
            break
        assert all(taken) or not exact, (tokens, token, taken)
        tokens.append(token)
        if not all(taken) or matchers[0].is_terminated():
            break
        left = None if left is None else left - 1
    return compared


def thinks_and_answers(source: Source) -> None:
    """Writes a text under a budget, with drafts of a model that thinks at random. The text is whole, valid
    and in time."""
    answer, grammar, reasoning = case(source)
    least = grammar.matcher().tokens_needed()
    room = least + source.pick([0, 0, 1, 2, 5, 20])
    matcher, tokens = grammar.matcher(), []
    while not matcher.is_terminated():
        assert len(tokens) < room, ("cut off", tokens)
        taken = _draft(source, matcher, room - len(tokens))
        for token in taken:
            assert matcher.accept_token(token)
        tokens += taken
        if source.chance(15):
            back = source.integer(0, len(tokens))
            matcher.rollback(back)
            tokens = tokens[: len(tokens) - back]
            again = grammar.matcher()
            assert again.accept_tokens(tokens)
            assert (_mask(again, room - len(tokens)) == _mask(matcher, room - len(tokens))).all()
    assert tokens[-1] == EOS and len(tokens) <= room
    assert valid(answer, reasoning, tokens[:-1]), tokens
    thoughts, text = grammar.reasoning.split(written(tokens).decode()) if grammar.reasoning else (None, "")
    assert accepts(answer, text.encode()) and (thoughts is None or reasoning.end not in thoughts), tokens
    assert reasoning.required <= (thoughts is not None)


def a_host_drafts(source: Source) -> None:
    """The calls of a serving engine that drafts, as vLLM makes them, over a batch of texts.

    `validate` cuts a draft. The rows of all places are filled, with accepts in between, and then all is
    rolled back. The engine takes a part of the draft and one token of the row behind. Sometimes a step leaves
    a row out. Every draft token has to be in its row, and each text ends whole and in time.
    """
    going = []
    for _ in range(source.integer(1, 3)):
        answer, grammar, reasoning = case(source)
        room = grammar.matcher().tokens_needed() + source.pick([0, 0, 1, 2, 5, 20])
        request = request_of(grammar, max_tokens=room)
        going.append((request, grammar.matcher(), room, [], answer, reasoning))
    while going:
        place = source.integer(0, len(going) - 1)
        request, free, room, tokens, answer, reasoning = going[place]
        taken = _engine_step(source, request, free)[: room - len(tokens)]
        taken = taken[: taken.index(EOS) + 1] if EOS in taken else taken
        tokens += taken
        assert free.accept_tokens(taken)
        assert request.accept(taken) and request.error is None, (tokens, request.error)
        if request.is_terminated():
            assert tokens[-1] == EOS and valid(answer, reasoning, tokens[:-1]), tokens
            del going[place]
        else:
            assert len(tokens) < room, ("cut off", tokens)


def _engine_step(source: Source, request: HostRequest, free: sg.Matcher) -> list[int]:
    """Returns the tokens of one step: a part of a draft and one more. `free` is at the same place without a
    budget."""
    draft = _guesses(source, free.fork(), source.integer(0, 8))
    draft = draft[: request.validate(draft)]
    assert EOS not in draft[:-1]
    rows, mask = [], oracle.fresh_mask(SIZE)
    for token in [*draft, None]:
        if not request.is_terminated():
            request.fill(mask, 0)
            rows.append(oracle.bits(mask, SIZE).copy())
            assert token is None or rows[-1][token], ("a draft token that its row forbids", draft)
        assert token is None or request.accept([token])
    request.rollback(len(draft))
    for i, row in enumerate(rows):
        others = [int(t) for t in np.flatnonzero(row) if t not in draft[i : i + 1]]
        if i == len(draft) or (others and source.chance(30)):
            return [*draft[:i], int(source.pick(others))]
    return draft


def _guesses(source: Source, at: sg.Matcher, length: int) -> list[int]:
    """Returns a draft of mostly allowed tokens, so that drafts are long. It may run past an end."""
    draft: list[int] = []
    while len(draft) < length:
        allowed = [] if at.is_terminated() else np.flatnonzero(oracle.mask_of(at, SIZE))
        guided = len(allowed) and source.chance(90)
        draft.append(int(source.pick(allowed)) if guided else source.integer(0, SIZE - 1))
        if not at.accept_token(draft[-1]) and not at.is_terminated():
            break
    return draft


def _mask(matcher: sg.Matcher, left: int) -> Any:
    return oracle.mask_of(matcher, SIZE, left)


def _draft(source: Source, matcher: sg.Matcher, left: int) -> list[int]:
    """Returns the tokens of a draft before the first that a mask under the budget forbids, and one token of
    that mask."""
    at, taken = matcher.fork(), []
    draft = _guesses(source, matcher.fork(), source.integer(1, 8))
    fits = matcher.validate_tokens(draft)
    fork = matcher.fork()
    assert all(fork.accept_token(t) for t in draft[:fits])
    assert fits == len(draft) or not fork.accept_token(draft[fits])
    for token in draft:
        allowed = _mask(at, left - len(taken))
        if not allowed[token]:
            token = int(source.pick(np.flatnonzero(allowed)))
            taken.append(token)
            break
        taken.append(token)
        assert at.accept_token(token)
        if at.is_terminated():
            break
    return taken
