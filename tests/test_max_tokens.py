"""Rules with `max_tokens`: their meaning by brute force, the laws of masks and matchers, and captures."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import numpy as np
import pytest

import structgen
from oracles import harness, limited, oracle
from oracles.limited import EOS, SIZE, TEXTS
from oracles.max_tokens import (
    BYTES,
    captures_are_brute_force,
    compiler,
    lark,
    mask_of,
    means_what_it_says,
    random_grammar,
    spans,
)
from oracles.strategies import Source
from structgen import errors
from structgen.lm import embedded

# ---- the meaning ----


def test_random_grammars() -> None:
    harness.seeded(means_what_it_says, 150)


def test_random_grammars_shrinking() -> None:
    harness.shrinking(means_what_it_says, 30)


UNIQUE = [  # a rule with a limit; from every place one shortest text ends the rule
    {"start": (None, ("seq", (("rule", "x"), ("text", ",")))), "x": (2, ("star", ("any", "ab")))},
    {
        "start": (None, ("seq", (("rule", "x"), ("rule", "y")))),
        "x": (2, ("star", ("any", "abc"))),
        "y": (None, ("star", ("any", "b,"))),
    },
    {"start": (None, ("star", ("seq", (("rule", "x"), ("text", ","))))), "x": (2, ("text", "abc"))},
    {
        "start": (None, ("rule", "x")),
        "x": (3, ("alt", (("seq", (("rule", "x"), ("text", "b"))), ("text", "a")))),
    },
    {
        "start": (3, ("seq", (("rule", "x"), ("star", ("rule", "x"))))),
        "x": (1, ("alt", (("text", "a"), ("text", ",b")))),
    },
    {
        "start": (4, ("rule", "x")),
        "x": (None, ("alt", (("seq", (("text", "a"), ("rule", "y"))), ("text", "b")))),
        "y": (2, ("seq", (("rule", "x"), ("text", "c")))),
    },
]


@pytest.mark.parametrize("index", range(len(UNIQUE)))
def test_all_that_is_meant_is_allowed(index: int) -> None:
    """The engine allows every sequence of up to four tokens that the definition of `max_tokens` allows. The
    test tries every sequence that the grammar without limits allows."""
    grammar: limited.Grammar = UNIQUE[index]
    compiled = compiler().lark(limited.lark(grammar), lexer="scannerless")
    plain = compiler().lark(
        limited.lark({n: (None, node) for n, (_, node) in grammar.items()}), lexer="scannerless"
    )
    todo: list[tuple[int, ...]] = [()]
    meant = 0
    while todo:
        taken = todo.pop()
        matcher = compiled.matcher()
        accepted = matcher.accept_tokens(taken) and matcher.is_accepting()
        wanted = limited.accepts(grammar, [TEXTS[t] for t in taken])
        assert accepted == wanted, [TEXTS[t] for t in taken]
        meant += wanted
        free = plain.matcher()
        assert free.accept_tokens(taken)
        if len(taken) < 4:
            todo += [(*taken, t) for t in range(SIZE - 1) if free.fork().accept_token(t)]
    assert meant > 3


def test_what_counts() -> None:
    """A token counts for the rule in which it begins, even if it ends behind the rule."""
    grammar = compiler().lark('start: "a" x "a"\nx[max_tokens=1]: /[bc]+/', lexer="scannerless")
    a, b, ab, ba, bc = (TEXTS.index(t) for t in (b"a", b"b", b"ab", b"ba", b"bc"))
    for tokens, fits in [
        ((a, b, a), True), ((a, b, b, a), False), ((a, b, ba), False), ((ab, b, a), True), ((ab, ba), True),
        ((ab, b, ba), False), ((a, bc, a), True), ((ab, bc, a), True), ((a, ba), True), ((ab, bc, bc), False),
    ]:  # fmt: skip
        assert grammar.matcher().accept_tokens(tokens) == fits, [TEXTS[t] for t in tokens]
    # accept_bytes counts no tokens, and the accepted text can still be finished.
    matcher = grammar.matcher()
    assert matcher.accept_bytes("abcbcbc") and matcher.accept_token(b) and not matcher.accept_token(b)
    assert matcher.validate_bytes("bcbca") == 5 and matcher.accept_token(a) and matcher.is_accepting()


def test_ignored_text_behind_it_does_not_count() -> None:
    grammar = lark('start: x+ ";"\nx[max_tokens=2]: WORD ("+" WORD)?\nWORD: /[ab]+/\n%ignore " "')
    matcher = grammar.matcher()
    a, ab, blank, two, blank_a = ord("a"), 256, ord(" "), 257, 258
    assert matcher.accept_tokens([a, a, blank, two, blank])
    assert matcher.accept_tokens([blank_a, a, ord(";")])  # the token begins in front of the second x
    # Blanks inside the rule count, so `+` would be the third token.
    matcher.reset()
    assert matcher.accept_tokens([ab, blank]) and not matcher.accept_token(ord("+"))


# ---- laws ----


def walk(source: Source, matcher: structgen.Matcher, steps: int) -> list[int]:
    return [token for token, _ in harness.walk(source, matcher, SIZE, [EOS], steps)]


def cached_is_uncached(source: Source) -> str | None:
    made = random_grammar(source, compiler(), compiler(cache=False))
    if made is None:
        return harness.SKIPPED
    _, cached, uncached = made
    for _ in range(2):
        one, other = cached.matcher(), uncached.matcher()
        for token, mask in harness.walk(source, one, SIZE, [EOS], 12):
            assert (mask == mask_of(other)).all()
            assert other.accept_token(token)


def moves_are_replay(source: Source) -> str | None:
    tiny = compiler(cache_bytes=1 << 14)
    made = random_grammar(source, compiler(), tiny)
    if made is None:
        return harness.SKIPPED
    _, compiled, small = made
    matcher, other = compiled.matcher(), small.matcher()
    parked = other.fork()
    start = mask_of(other)
    taken = []
    for token, mask in harness.walk(source, matcher, SIZE, [EOS], 12):
        assert (mask_of(other) == mask).all()
        if source.chance(40):
            small._collect()
        fork = other.fork()
        assert other.accept_token(token)
        assert (mask_of(fork) == mask).all()
        taken.append(token)
    assert (mask_of(parked) == start).all()
    back = source.integer(0, len(taken))
    kept = taken[: len(taken) - back]
    matcher.rollback(back)
    other.rollback(back)
    replay = compiled.matcher()
    assert replay.validate_tokens(taken) == len(taken)
    assert replay.accept_tokens(kept)
    assert (mask_of(replay) == mask_of(matcher)).all() and (mask_of(replay) == mask_of(other)).all()
    some = [source.integer(0, SIZE - 1) for _ in range(5)]
    count = next((i for i, t in enumerate(some) if not replay.accept_token(t)), len(some))
    assert matcher.validate_tokens(some) == count
    assert (mask_of(other) == mask_of(matcher)).all()


def batches_are_single(source: Source) -> str | None:
    made = random_grammar(source, compiler())
    if made is None:
        return harness.SKIPPED
    matchers = []
    for _ in range(6):
        matcher = made[1].matcher()
        walk(source, matcher, source.integer(0, 8))
        matchers.append(matcher)
    for threads in (1, 3):
        rows = oracle.fresh_mask(SIZE, len(matchers))
        structgen.fill_bitmasks(matchers, rows, threads=threads)
        for row, matcher in enumerate(matchers):
            assert (oracle.bits(rows, SIZE, row) == mask_of(matcher.fork())).all()


def budgets_end(source: Source) -> str | None:
    made = random_grammar(source, compiler())
    if made is None:
        return harness.SKIPPED
    matcher = made[1].matcher()
    walk(source, matcher, source.integer(0, 4))
    if matcher.is_terminated():
        return
    least = matcher.tokens_needed()
    with pytest.raises(errors.UnsatisfiableBudget):
        mask_of(matcher, least - 1)
    plain = mask_of(matcher)
    assert (mask_of(matcher, least + 200) == plain).all()
    left = least + source.integer(0, 3)
    while not matcher.is_terminated():
        mask = mask_of(matcher, left)
        assert mask.any() and not (mask & ~mask_of(matcher)).any()
        for token in np.flatnonzero(mask).tolist():
            fork = matcher.fork()
            assert fork.accept_token(token) and fork.tokens_needed() <= left - 1
        assert matcher.accept_token(int(source.pick(np.flatnonzero(mask))))
        left -= 1
    assert left >= 0


def completions_complete(source: Source) -> str | None:
    made = random_grammar(source, compiler())
    if made is None:
        return harness.SKIPPED
    matcher = made[1].matcher()
    walk(source, matcher, source.integer(0, 6))
    if matcher.is_terminated():
        return
    live = matcher.live_bytes()
    mask = mask_of(matcher)
    assert all(TEXTS[t][0] in live for t in np.flatnonzero(mask).tolist() if t != EOS)
    forced = matcher.forced_bytes()
    for token in np.flatnonzero(mask).tolist():
        assert TEXTS[token].startswith(forced[: len(TEXTS[token])]) or not forced
    rest = matcher.shortest_completion()
    length = matcher.validate_bytes(rest + b"?")
    assert length == len(rest)
    assert matcher.accept_bytes(rest) and matcher.is_accepting()


@pytest.mark.parametrize(
    ("check", "count"),
    [
        (cached_is_uncached, 80),
        (moves_are_replay, 120),
        (batches_are_single, 40),
        (budgets_end, 120),
        (completions_complete, 150),
    ],
)
def test_laws(check: Any, count: int) -> None:
    harness.seeded(check, count)


LEXED = r"""
start: item ("," item)* ";"
item[max_tokens=4]: call | NAME
call: NAME "(" args? ")"
args[max_tokens=3]: item ("," item)*
NAME: /[a-c]+/
%ignore /[ ]+/
"""


@pytest.mark.parametrize("lexer", ["contextual", "dynamic", "scannerless"])
def test_lexemes(lexer: Any) -> None:
    texts = [bytes([b]) for b in b'abc,();" '] + [b"ab", b"a(", b" b", b"),", b"b)", b" ,", b"(a", b""]
    end, size = len(texts) - 1, len(texts)
    vocabulary = structgen.Vocabulary.from_bytes(texts, eos_token_ids=[end])
    made = [structgen.Compiler(vocabulary, cache=cache).lark(LEXED, lexer=lexer) for cache in (True, False)]
    plain = structgen.Compiler(vocabulary).lark(
        LEXED.replace("[max_tokens=4]", "").replace("[max_tokens=3]", ""), lexer=lexer
    )

    def check(source: Source) -> None:
        one, other, free = made[0].matcher(), made[1].matcher(), plain.matcher()
        for token, mask in harness.walk(source, one, size, [end], 25):
            assert (mask == oracle.naive_mask(one, size)).all()
            assert (mask == oracle.mask_of(other, size)).all()
            assert not (mask & ~oracle.mask_of(free, size)).any()
            assert other.accept_token(token) and free.accept_token(token)

    harness.seeded(check, 25)


# ---- front end ----


@pytest.mark.parametrize(
    ("rules", "message", "line", "column"),
    [
        ("start: t\nt[max_tokens=0]: /a/", "rule 't' takes at least 1 tokens and may take 0", 2, 14),
        ("start: t\nt[max_tokens=1.5]: /a/", "'max_tokens' is a whole number of at least 0", 2, 14),
        ("start: t\nt[max_tokens=-2]: /a/", "'max_tokens' is a whole number of at least 0", 2, 14),
        ('start: t\nt[max_tokens="3"]: /a/', "'max_tokens' is a whole number of at least 0", 2, 14),
        ("start: t\nt[max_tokens]: /a/", "'max_tokens' is a whole number of at least 0", 2, 3),
        ('start: "é" t\nt[max_tokens=1]: "xyzxyz"', "rule 't' takes at least 6 tokens and may take 1", 2, 14),
        (
            'start: t "!"\nt[max_tokens=3]: "ab" u\nu[max_tokens=1]: /cc/',
            "rule 'u' takes at least 2 tokens and may take 1",
            3,
            14,
        ),
        (
            'start: t | "!"\nt[max_tokens=2]: %json {"type": "object", "required": ["x"]}',
            "rule 't' takes at least 7 tokens and may take 2",
            2,
            14,
        ),
    ],
)
def test_errors(rules: str, message: str, line: int, column: int) -> None:
    with pytest.raises(errors.GrammarError) as caught:
        lark(rules)
    assert caught.value.message == message
    assert (caught.value.line, caught.value.column) == (line, column)


def test_large_limits() -> None:
    for number in ("00000000000000000000000000012", "9" * 5_000):
        matcher = lark(f"start: x\nx[max_tokens={number}]: /a*/").matcher()
        taken = 0
        while taken < 20 and matcher.accept_token(ord("a")):
            taken += 1
        assert taken == (12 if number.startswith("0") else 20)


@pytest.mark.parametrize(
    ("attributes", "body", "text", "fits"),
    [
        ("lazy", "/.*;/", b"abc;", 4),
        ('stop=";"', "/.*/", b"abc;", 4),
        ('suffix=";"', "/.*/", b"abc;", 4),
        ('stop=";", capture="t"', "/.*/", b"abc;", 4),
        ('stop=";", capture="t", stop_capture="e"', "/.*/", b"abc;", 4),
        ("capture", 'A ";"\nA: /[abc]+/', b"abc;", 4),
        ("capture", '/[abc]/ t | ";"', b"abc;", 4),
    ],
)
def test_with_other_attributes(attributes: str, body: str, text: bytes, fits: int) -> None:
    for ignored in ("", '\n%ignore " "'):
        for limit in (fits - 1, fits):
            grammar = lark(f'start: "<" t ">"\nt[max_tokens={limit}, {attributes}]: {body}{ignored}')
            matcher = grammar.matcher()
            assert matcher.accept_tokens([*b"<", *text, *b">"]) == (limit == fits)
            if limit == fits and "capture" in attributes:
                assert matcher.captures()["t"][0].text == (b"abc" if "stop" in attributes else b"abc;")


def test_templates_and_nested_grammars() -> None:
    grammar = lark(
        'start: pair{w} "." %lark { start: v\nv[max_tokens=1]: /[a-z]+/ }\n'
        'pair{t}: t "," t\nw[max_tokens=2]: /[ab]+/'
    )
    assert grammar.matcher().accept_tokens([*b"ab,ba.z"])
    assert not grammar.matcher().accept_tokens([*b"aba"])
    assert not grammar.matcher().accept_tokens([*b"a,aba"])
    assert not grammar.matcher().accept_tokens([*b"a,a.zz"])


def test_left_recursion_through_other_rules() -> None:
    grammar = lark(
        'start: x ";"\nx[max_tokens=3]: y | "a"\ny[max_tokens=2]: x "b" | x "c"', lexer="scannerless"
    )
    for text, fits in ((b"a;", True), (b"ab;", True), (b"abc;", False), (b"abcb;", False)):
        assert grammar.matcher().accept_tokens([*text]) == fits, text
    alone = lark('start: x ";"\nx[max_tokens=3]: y | "a"\ny: x "b" | x "c"', lexer="scannerless")
    for text, fits in ((b"a;", True), (b"abc;", True), (b"abcb;", False)):
        assert alone.matcher().accept_tokens([*text]) == fits, text


# ---- captures ----


@pytest.mark.parametrize("lexer", ["contextual", "dynamic", "scannerless"])
def test_captures_keep_to_limits(lexer) -> None:
    grammar = lark('start: a b\na[max_tokens=2, capture="a"]: /.*/\nb[capture]: /.*/', lexer=lexer)
    matcher = grammar.matcher()
    assert matcher.accept_tokens([*b"vwxyz"])
    assert spans(matcher) == {"a": [b"vw"], "b": [b"xyz"]}
    matcher.reset()
    assert matcher.accept_tokens([256, 256, *b"xy"])
    assert spans(matcher)["a"] == [b"abab"]
    matcher.reset()
    assert matcher.accept_bytes("text is no token") and matcher.accept_tokens([*b"xyz"])
    assert spans(matcher)["a"] == [b"text is no tokenxy"]
    assert matcher.accept_token(BYTES - 1) and spans(matcher)["a"] == [b"text is no tokenxy"]
    unfinished = lark(
        'start: a b "!"\na[max_tokens=2, capture="a"]: /[a-z]*/\nb: /[a-z]*/', lexer="scannerless"
    ).matcher()
    # the rule has its two tokens, so its text is complete
    assert unfinished.accept_tokens([*b"xy"]) and spans(unfinished)["a"] == [b"xy"]


def test_free_text_ends_where_its_limit_is_or_before() -> None:
    """guidance translates gen(max_tokens=4) into an unbounded pattern with a limit, then the text behind
    it."""
    rest = 'WORD: /[ab]+/\nKEY: "ab" "</t>"'
    grammar = lark('start: x "</t>" WORD\nx[max_tokens=4, capture]: /(.|\\n)*/\n' + rest)
    for text in (b"", b"u", b"a\nbc"):
        matcher = grammar.matcher()
        assert matcher.accept_tokens([*text])
        mask = oracle.mask_of(matcher, BYTES)
        assert mask[ord("<")] and mask[ord("v")] == (len(text) < 4)
        assert matcher.accept_tokens([*b"</t>ab"]) and matcher.is_accepting()
        assert spans(matcher)["x"] == [text]


def test_captures_by_brute_force() -> None:
    harness.seeded(captures_are_brute_force, 60)


# ---- a real vocabulary ----


def timed(matcher: structgen.Matcher, size: int) -> tuple[np.ndarray, float]:
    began = time.process_time()
    mask = oracle.mask_of(matcher, size)
    return mask, time.process_time() - began


def test_free_text_and_json(tekken_vocabulary: structgen.Vocabulary) -> None:
    size = len(tekken_vocabulary)
    made = structgen.Compiler(tekken_vocabulary)
    grammar = made.lark(
        'start: think answer\nthink[max_tokens=200, stop="</think>"]: /(.|\\n)*/\n'
        'answer[max_tokens=1]: "yes" | "no"'
    )
    source = np.random.default_rng(0)
    matcher = grammar.matcher()
    slow, taken = [], 0
    while not matcher.is_terminated():
        mask, seconds = timed(matcher, size)
        slow.append(seconds)
        allowed = np.flatnonzero(mask)
        assert allowed.size
        assert matcher.accept_token(int(source.choice(allowed)))
        taken += 1
        assert taken < 300
    assert sorted(slow)[len(slow) // 2] < 2e-3, slow
    assert max(slow) < 2.0, max(slow)

    properties = {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "integer"}}}
    schema = json.dumps({"type": "object", "properties": properties, "required": ["a", "b"]})
    document = made.lark(f"start: doc\ndoc[max_tokens=30]: %json {schema}")
    for seed in range(3):
        source = np.random.default_rng(seed)
        matcher, taken = document.matcher(), 0
        while not matcher.is_terminated():
            mask, seconds = timed(matcher, size)
            assert seconds < 2.0
            token = int(source.choice(np.flatnonzero(mask)))
            assert matcher.accept_token(token)
            taken += 1
        assert taken <= 31


# ---- generation ----


def test_speculative_texts_are_plain_texts_and_complete() -> None:
    from oracles.speculative import VOCABULARY, RandomModel

    grammar = structgen.Compiler(VOCABULARY).lark(
        'start: a ("," a)* ":" b\na[max_tokens=2]: %json {"enum": ["ab", "abab", "a", 1, 12]}\n'
        "b[max_tokens=4, capture]: /[ab0-9]+/"
    )
    for seed in range(6):
        texts = {}
        for speculate in (None, "auto"):
            result = structgen.generate(
                RandomModel(seed),
                "ab",
                grammar=grammar,
                max_tokens=14,
                temperature=1.0,
                seed=seed,
                speculate=speculate,
            )
            assert result.finish_reason == "stop"
            assert grammar.matcher().accept_tokens(list(result.tokens))
            texts[speculate] = result.text
        assert texts[None] == texts["auto"]


LONG_VALUES = [
    ({"type": "string", "minLength": 200}, 100, 18),
    (
        {"type": "object", "properties": {"bio": {"type": "string", "minLength": 400}}, "required": ["bio"]},
        300,
        60,
    ),
    ({"type": "array", "minItems": 20, "items": {"type": "string", "minLength": 20}}, 200, 90),
    (
        {
            "type": "object",
            "properties": {f"p{i}": {"type": "string", "minLength": 80, "maxLength": 100} for i in range(5)},
            "required": [f"p{i}" for i in range(5)],
        },
        200,
        90,
    ),
    ({"type": "string", "pattern": "^[a-z ]{500,}$"}, 200, 60),
    (
        {"type": "object", "properties": {"bio": {"type": "string", "minLength": 1000}}, "required": ["bio"]},
        900,
        130,
    ),
]


@pytest.mark.parametrize("options", [{}, {"limits": structgen.Limits(mask=200_000), "on_limit": "subset"}])
@pytest.mark.parametrize(("schema", "budget", "few"), harness.chosen(LONG_VALUES))
def test_long_values_end_in_time(schema: Any, budget: int, few: int, options: dict[str, Any]) -> None:
    """Of all texts of the value, the one with the fewest bytes takes a token per character. Other texts take
    far fewer tokens, so the value ends within the budget."""
    known = structgen.Vocabulary.from_file(embedded.path())
    compiler = structgen.Compiler(known, **options)
    source = random.Random(budget)
    for tokens in (budget, few):
        matcher = compiler.json_schema(schema).matcher(max_tokens=tokens)
        mask = structgen.allocate_bitmask(1, known.vocab_size)
        taken = 0
        while not matcher.is_terminated():
            matcher.fill_bitmask(mask, 0)
            allowed = np.flatnonzero(oracle.bits(mask, known.vocab_size))
            # short tokens make the walk as long as possible
            short = [t for t in allowed if len(known.token_bytes(int(t))) <= 2]
            assert matcher.accept_token(int(source.choice(short or list(allowed))))
            taken += 1
            assert taken <= tokens
    assert compiler.json_schema(schema).matcher().tokens_needed() <= few


def _conditions(source: random.Random) -> list[dict[str, Any]]:
    """Conditions on one string. If no text meets all of them, the schema is refused."""
    patterns = [
        *("[ab]{6}$", ".*", "^[^a]", "^c", "[ab]", "[^a-z]", "a", "^[ab]*$", "[ab]{2}x{3}", "x?$"),
        "^.{2,9}$",
    ]
    out: list[dict[str, Any]] = [{"pattern": source.choice(patterns)} for _ in range(source.randint(1, 3))]
    if source.random() < 0.4:
        out.append({"minLength": source.randint(1, 12)})
    if source.random() < 0.4:
        out.append({"maxLength": source.randint(8, 40)})
    if source.random() < 0.3:
        out.append({"not": source.choice([{"pattern": "^a"}, {"const": "ab"}, {"enum": ["a", "b"]}])})
    if source.random() < 0.2:
        out.append({"format": source.choice(["email", "date", "uri", "hostname"])})
    return out


@pytest.mark.parametrize("strings", ["any", "plain"])
@pytest.mark.parametrize("family", range(6))
def test_strings_of_many_conditions_end_in_time(family: int, strings: Any) -> None:
    """A bound on the completion of a string must hold for all of the string's conditions together. With
    single bytes as tokens, the fewest tokens are the bytes of the shortest text and the end token. One
    compiler serves all schemas, because what it learned from one schema must hold for the others."""
    single = structgen.Vocabulary.from_bytes([*(bytes([b]) for b in range(256)), b""], 256)
    compiler = structgen.Compiler(single)
    mask = structgen.allocate_bitmask(1, 257)
    ended = 0
    for number in range(25):
        source = random.Random(100 * family + number)
        schema = {"type": "string", "allOf": _conditions(source)}
        try:
            grammar = compiler.json_schema(schema, strings=strings)
        except errors.UnsatisfiableSchema:
            continue
        least = len(grammar.matcher().shortest_completion()) + 1
        assert grammar.matcher().tokens_needed() == least, schema
        with pytest.raises(errors.UnsatisfiableBudget):
            grammar.matcher().fill_bitmask(mask, 0, max_tokens=least - 1)
        for budget in (least, least + 1, least + 3, least + 30):
            matcher = grammar.matcher(max_tokens=budget)
            taken = 0
            while not matcher.is_terminated():
                matcher.fill_bitmask(mask, 0)
                allowed = np.flatnonzero(oracle.bits(mask, 257))
                assert matcher.accept_token(int(source.choice(allowed))), schema
                taken += 1
            assert taken <= budget
            ended += 1
    assert ended > 20
