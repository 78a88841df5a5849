"""Context-free grammars: random grammars against brute force, the laws of masks, and bounds on work.

The oracle computes every text up to a length from the grammar's tree, by iterating the rules' equations. It
uses no stacks and no regexes, and needs no special case for left recursion.
"""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import pytest

import structgen
from oracles import harness, oracle
from oracles.strategies import Source, Words
from structgen import errors

LIMIT = 7  # the greatest length of the oracle's texts
ALPHABET = "ab"


def _words() -> Words:
    tokens = ["".join(t) for n in (1, 2, 3) for t in itertools.product(ALPHABET + "c", repeat=n)]
    return Words([t.encode() for t in tokens] + [b"abab", b"bbbb", b"aaaaa", b"", b""], [len(tokens) + 4], [])


WORDS = _words()
VOCABULARY = structgen.Vocabulary.from_bytes(WORDS.tokens, eos_token_ids=WORDS.eos)
BYTES = structgen.Compiler(structgen.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], 256))
CACHED, PLAIN = structgen.Compiler(VOCABULARY), structgen.Compiler(VOCABULARY, cache=False)


# ---- random grammars ----


def expression(source: Source, names: list[str], depth: int = 3) -> tuple:
    kind = source.integer(0, 9 if depth else 4)
    if kind <= 1:
        return ("text", source.pick(["a", "b", "ab", "ba", "", "aa"]))
    if kind == 2:
        return ("class", source.pick(["a", "ab", "b"]))
    if kind <= 4:
        return ("rule", source.pick(names))
    if kind <= 6:
        return ("sequence", [expression(source, names, depth - 1) for _ in range(source.integer(1, 3))])
    if kind <= 8:
        return ("choice", [expression(source, names, depth - 1) for _ in range(source.integer(1, 3))])
    least = source.integer(0, 2)
    most = source.pick([None, least, least + 1, least + 3])
    return ("repeat", expression(source, names, depth - 1), least, most)


def grammar(source: Source) -> dict[str, tuple]:
    names = ["root", *"xyzw"[: source.integer(0, 4)]]
    return {name: expression(source, names) for name in names}


def written(tree: tuple) -> str:
    match tree:
        case ("text", text):
            return f'"{text}"'
        case ("class", chars):
            return f"[{chars}]"
        case ("rule", name):
            return name
        case ("sequence", parts):
            return "(" + " ".join(map(written, parts)) + ")"
        case ("choice", parts):
            return "(" + " | ".join(map(written, parts)) + ")"
        case ("repeat", part, least, most):
            return f"({written(part)}){{{least},{'' if most is None else most}}}"
    raise AssertionError(tree)


def as_gbnf(rules: dict[str, tuple]) -> str:
    return "\n".join(f"{name} ::= {written(tree)}" for name, tree in rules.items())


def joined(one: frozenset[str], two: frozenset[str]) -> frozenset[str]:
    return frozenset(x + y for x in one for y in two if len(x) + len(y) <= LIMIT)


def texts_of(tree: tuple, known: dict[str, frozenset[str]]) -> frozenset[str]:
    match tree:
        case ("text", text):
            return frozenset([text])
        case ("class", chars):
            return frozenset(chars)
        case ("rule", name):
            return known[name]
        case ("sequence", parts):
            found = frozenset([""])
            for part in parts:
                found = joined(found, texts_of(part, known))
            return found
        case ("choice", parts):
            return frozenset().union(*(texts_of(part, known) for part in parts))
        case ("repeat", part, least, most):
            one = texts_of(part, known)
            power = frozenset([""])
            for _ in range(least):
                power = joined(power, one)
            found = power
            for _ in range(LIMIT + 1 if most is None else most - least):
                power = joined(power, one)
                found |= power
            return found
    raise AssertionError(tree)


def language(rules: dict[str, tuple]) -> frozenset[str]:
    known = dict.fromkeys(rules, frozenset())
    while True:
        new = {name: texts_of(tree, known) for name, tree in rules.items()}
        if new == known:
            return known["root"]
        known = new


def compiled(rules: dict[str, tuple], compiler: structgen.Compiler = CACHED):
    """The compiled grammar, or None if no text matches."""
    try:
        return compiler.gbnf(as_gbnf(rules))
    except errors.GrammarError as error:
        assert "no text matches" in error.message, as_gbnf(rules)
        return None


# ---- laws ----


def same_language(source: Source) -> None:
    rules = grammar(source)
    texts = language(rules)
    found = compiled(rules)
    if found is None:
        assert not texts, as_gbnf(rules)
        return
    prefixes = {t[:n] for t in texts for n in range(len(t) + 1)}
    for length in range(6):
        for letters in itertools.product(ALPHABET, repeat=length):
            text = "".join(letters)
            matcher = found.matcher()
            alive = matcher.accept_bytes(text)
            assert (alive and matcher.is_accepting()) == (text in texts), (text, as_gbnf(rules))
            if text in prefixes:
                assert alive, (text, as_gbnf(rules))
            elif alive:  # a text longer than the oracle's limit may begin like this
                rest = matcher.shortest_completion()
                assert len(text) + len(rest) > LIMIT, (text, rest, as_gbnf(rules))
                assert matcher.accept_bytes(rest) and matcher.is_accepting()


def masks_are_exact(source: Source) -> str | None:
    rules = grammar(source)
    pair = compiled(rules), compiled(rules, PLAIN)
    if pair[0] is None:
        return harness.SKIPPED
    one, two = (each.matcher() for each in pair)
    steps = source.integer(1, 12)
    taken = []
    for _ in range(steps):
        mask = oracle.mask_of(one, WORDS.size)
        assert (mask == oracle.mask_of(two, WORDS.size)).all(), as_gbnf(rules)
        assert (mask == oracle.naive_mask(one, WORDS.size)).all(), as_gbnf(rules)
        assert mask.any(), f"a dead end: {as_gbnf(rules)}"
        token = int(source.pick(np.flatnonzero(mask).tolist()))
        assert one.accept_token(token) and two.accept_token(token)
        taken.append(token)
        if token in WORDS.eos:
            break
    mask = oracle.mask_of(one, WORDS.size)
    back = source.integer(0, len(taken))
    one.rollback(back)
    assert one.accept_tokens(taken[len(taken) - back :])
    pair[0]._collect()
    assert (mask == oracle.mask_of(one, WORDS.size)).all()


def budgets_end(source: Source) -> str | None:
    """Under a budget every walk ends with a text of the language, within the budget."""
    rules = grammar(source)
    found = compiled(rules)
    if found is None:
        return harness.SKIPPED
    matcher = found.matcher()
    needed = matcher.tokens_needed()
    left = needed + source.pick([0, 1, needed])
    while not matcher.is_terminated():
        mask = oracle.mask_of(matcher, WORDS.size, left)
        assert mask.any(), as_gbnf(rules)
        assert matcher.accept_token(int(source.pick(np.flatnonzero(mask).tolist())))
        left -= 1
    assert left >= 0
    if needed > 1:
        with pytest.raises(errors.UnsatisfiableBudget, match=str(needed)):
            oracle.mask_of(found.matcher(), WORDS.size, needed - 1)


@pytest.mark.parametrize("law", [same_language, masks_are_exact, budgets_end], ids=lambda f: f.__name__)
def test_laws(law) -> None:
    harness.seeded(law, 300)


@pytest.mark.parametrize("law", [same_language, masks_are_exact], ids=lambda f: f.__name__)
def test_laws_shrinking(law) -> None:
    harness.shrinking(law, 20)


# ---- hand-picked ----

CASES = [
    ('root ::= e\ne ::= e "+" t | t\nt ::= "(" e ")" | "a"', ["a", "a+a", "(a+a)+a"], ["", "a+", "+a", "(a"]),
    ('root ::= x "b"\nx ::= y? x "a" | y\ny ::= "a"?', ["b", "ab", "aab", "aaaab"], ["", "a", "bb"]),
    ('root ::= x\nx ::= y "a" | "b"\ny ::= x "a" | x', ["b", "ba", "baa", "baaa"], ["", "a", "bb"]),
    ('root ::= "a"{2,3}{2,2}', ["aaaa", "aaaaa", "aaaaaa"], ["aaa", "aaaaaaa"]),
    ('root ::= x{2,}\nx ::= "a" x "b" | "b"', ["bb", "abbb", "bbb"], ["b", "ab", "abb"]),
    ('root ::= x x x\nx ::= root? "a"?', ["", "a", "aaaa", "a" * 30], ["b"]),
    ('root ::= "a" root "b" | ', ["", "ab", "aabb"], ["a", "abab", "ba"]),
    ('root ::= root root | "a" | "b" "b"', ["a", "bb", "abba"], ["", "b", "bbb"]),
]


@pytest.mark.parametrize("text, inside, outside", CASES)
def test_cases(text, inside, outside) -> None:
    found = BYTES.gbnf(text)
    assert [t for t in inside if not harness.verdict(found, t)] == []
    assert [t for t in outside if harness.verdict(found, t)] == []


def test_useless_rules_are_warned_about() -> None:
    found = CACHED.gbnf('root ::= "a" | x\nx ::= "a" x\ny ::= "b"')
    assert sorted(found.warnings) == [
        "rule 'x' matches no text, so nothing that needs it is used",
        "rule 'y' is not used",
    ]
    with pytest.raises(errors.GrammarError, match="no text matches"):
        CACHED.gbnf('root ::= root "a" | "b" root')


def test_ambiguity_is_linear() -> None:
    """10,000 tokens of `e ::= e "+" e | "1"`, with a mask before each: work and memory grow linearly."""
    vocabulary = structgen.Vocabulary.from_bytes([b"1", b"+", b"1+", b""], 3)
    found = structgen.Compiler(vocabulary).gbnf('root ::= e\ne ::= e "+" e | "1"')
    matcher = found.matcher()
    row = structgen.allocate_bitmask(1, 4)
    sizes, states = [found.byte_size], [found._core.states]
    # 0.02 s on an idle machine; 50 s if a token cost as much as the whole text so far
    with harness.cpu_limit(2):
        for _ in range(4):
            for _ in range(1250):
                for token in (0, 1):
                    matcher.fill_bitmask(row)
                    assert matcher.accept_token(token)
            sizes.append(found.byte_size)
            states.append(found._core.states)
    assert len(set(np.diff(states[1:]).tolist())) == 1  # every token adds an equal number of states
    assert states[1] - states[0] <= states[2] - states[1] + 1
    assert sizes[4] - sizes[0] < 6 * (sizes[1] - sizes[0])
    assert sizes[4] < 60e6
    assert matcher.accept_token(0) and matcher.is_accepting()


@pytest.mark.parametrize(
    "kind, text",
    [
        ("gbnf", 'root ::= x "."\nx ::= "a" x "b" | "a" x "c" | "aa" x "d" | "a"'),
        ("gbnf", 'root ::= x "."\nx ::= x x x | x x | "a" | "aa"'),
        ("gbnf", 'root ::= a a a a "."\na ::= b b b | ""\nb ::= c c c | "" | "a"\nc ::= "a" c | "aa" c | ""'),
        # few ways: several ways share one node
        ("lark", 'start: x+ "."\nx[capture]: A | B\nA: /a/\nB: /a{1,3}/'),
    ],
)
def test_a_token_that_many_ways_read(kind, text) -> None:
    """The number of ways to read the text doubles with each token. The work of a mask grows only with the
    tokens' bytes."""
    words = [*(bytes([b]) for b in range(256)), *(b"a" * n for n in range(2, 65)), b""]
    vocabulary = structgen.Vocabulary.from_bytes(words, len(words) - 1)
    limits = structgen.Limits(mask=100_000)
    options = {} if kind == "gbnf" else {"lexer": "scannerless"}
    matchers = [
        getattr(structgen.Compiler(vocabulary, cache, limits=limits), kind)(text, **options).matcher()
        for cache in (True, False)
    ]
    for token in (b"a", b"aaaa", b"a" * 20, b"a"):
        masks = [oracle.mask_of(matcher, len(words)) for matcher in matchers]
        assert (masks[0] == masks[1]).all() and masks[0][words.index(b"a" * 64)]
        assert all(matcher.accept_token(words.index(token)) for matcher in matchers)


def test_right_recursion_keeps_the_stack_flat() -> None:
    found = CACHED.gbnf('root ::= "a" root | "(" root ")" | "b"')
    matcher = found.matcher()
    states = found._core.states
    for _ in range(3000):
        assert matcher.accept_bytes("a")
    assert found._core.states - states < 10


def chain(length: int, rule: str) -> str:
    rules = (rule.format(i=i, j=i + 1) for i in range(length))
    return "root ::= r0\n" + "\n".join(rules) + f'\nr{length} ::= "a"?'


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda b: b.sequence([0, 7]), "outside its list"),
        (lambda b: b.negate(1), "outside its list"),
        (lambda b: b.capture("name", 1), "outside its list"),
        (lambda b: b.call(0), "outside its list"),
        (lambda b: b.define(b.rule("r"), 1), "node out of range"),
        (lambda b: b.define(3, 0), "rule out of range"),
        (lambda b: b.lexeme("NAME", 0, whole=1), "node out of range"),
        (lambda b: b.gap([0]), "made of lexemes"),
        (lambda b: b.byte(b""), "no byte"),
        (lambda b: b.repeat(0, 3, 2), "wrong way round"),
        (lambda b: b.repeat(0, 0, 1 << 40), "too large"),
        (lambda b: b.repeat(0, (1 << 30) + 1), "too large"),
        (lambda b: b.limit(0, (1 << 32) - 1, "r"), "out of range"),
    ],
)
def test_a_builder_refuses_what_lowering_would_trust(make, why) -> None:
    builder = structgen._core.GrammarBuilder()
    assert builder.literal(b"a") == 0
    with pytest.raises(ValueError, match=why):
        make(builder)


@pytest.mark.parametrize(
    "text",
    [
        "root ::= " + "(" * 5000 + '"a"' + ")" * 5000,
        chain(60, "r{i} ::= r{j} r{j}"),
        chain(3000, 'r{i} ::= r{j} | r{j} "x"'),
        chain(300, 'r{i} ::= r{j} "x" | r0 "b"'),
        "root ::= (((((" + '"a"' + "){0,999}){0,999}){0,999}){0,999}){0,999}",
        "root ::= " + " | ".join(f'"w{i}"' for i in range(20000)),
        'root ::= x{0,1000000}\nx ::= "a" x "b" | "c"',
        'root ::= root{0,100000} "a" | "b"',
        'root ::= (root "a"){0,30} | "b"',
    ],
)
def test_hostile(text) -> None:
    """Each grammar ends in a result or an error within seconds."""
    with harness.cpu_limit(10), contextlib.suppress(structgen.StructgenError):
        found = CACHED.gbnf(text)
        matcher = found.matcher()
        oracle.mask_of(matcher, WORDS.size)
        matcher.accept_bytes("a")
        oracle.mask_of(matcher, WORDS.size)
