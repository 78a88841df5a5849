"""Laws of masks and matchers, checked at random states of random schemas and patterns.

A mask bit equals accept_token on a fork. A cached mask equals the mask computed from scratch.
rollback, fork, reset and validate equal a replay. No state is a dead end, and walks under a budget end.
Finished walks are in the language. A collection of the arena changes no mask.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import random
import re

import numpy as np
import pytest

import structgen
from oracles import harness, oracle, strategies
from oracles.harness import WORDS, Empty
from oracles.strategies import Seeded, Source
from structgen import errors

HUGE = re.compile(rb"[eE][+-]?[0-9]{4}")  # exponents so large that only the engine can compare the numbers
FEATURES = strategies.Features(unevaluated=True)


def grammar_pair(source: Source, *compilers: structgen.Compiler) -> tuple | None:
    """Returns one random grammar from each compiler; None if the grammar is empty or too complex."""
    if source.chance(30):
        pattern = strategies.pattern(source)
        return tuple(each.regex(pattern) for each in compilers)
    schema = strategies.schema(source, FEATURES)
    order = source.pick(("schema", "any"))
    found = [harness.compiled(schema, using=each, property_order=order) for each in compilers]
    if any(each is None or each is Empty for each in found):
        return None
    return tuple(found)


def random_state(source: Source, grammar, steps: int):
    """Returns a matcher after some allowed tokens, and the tokens."""
    matcher = grammar.matcher()
    taken = []
    for token, _ in harness.walk(source, matcher, WORDS.size, WORDS.eos, steps):
        taken.append(token)
    return matcher, taken


def mask_is_accept(source: Source) -> str | None:
    pair = grammar_pair(source, harness.compiler())
    if pair is None:
        return harness.SKIPPED
    matcher, _ = random_state(source, pair[0], source.integer(0, 14))
    mask = oracle.mask_of(matcher, WORDS.size)
    naive = oracle.naive_mask(matcher, WORDS.size)
    if not matcher.is_terminated():
        wrong = np.flatnonzero(mask != naive)
        assert not wrong.size, [(int(t), WORDS.tokens[t], bool(mask[t])) for t in wrong[:5]]
        assert mask[WORDS.eos].all() == mask[WORDS.eos].any() == matcher.is_accepting()
        holes = [t for t, text in enumerate(WORDS.tokens) if not text]
        assert not mask[holes].any(), "a token without text is allowed"
        assert not mask[[t for t in WORDS.special if t not in WORDS.eos]].any()
    else:
        assert set(np.flatnonzero(mask)) == set(WORDS.eos)


def cached_is_uncached(source: Source) -> str | None:
    pair = grammar_pair(source, harness.compiler(), harness.compiler(cache=False))
    if pair is None:
        return harness.SKIPPED
    cached, uncached = pair
    other = uncached.matcher()
    for _ in range(2):  # the second walk over the grammar uses memos of the first
        matcher = cached.matcher()
        other.reset()
        for token, mask in harness.walk(source, matcher, WORDS.size, WORDS.eos, 20):
            assert (mask == oracle.mask_of(other, WORDS.size)).all()
            assert (mask == oracle.mask_of(matcher, WORDS.size)).all()
            assert other.accept_token(token)


def moves_are_replay(source: Source) -> str | None:
    pair = grammar_pair(source, harness.compiler())
    if pair is None:
        return harness.SKIPPED
    grammar = pair[0]
    matcher, taken = random_state(source, grammar, source.integer(1, 14))

    def same(one, other) -> None:
        assert one.is_accepting() == other.is_accepting()
        assert one.is_terminated() == other.is_terminated()
        assert (oracle.mask_of(one, WORDS.size) == oracle.mask_of(other, WORDS.size)).all()

    def replay(tokens) -> object:
        fresh = grammar.matcher()
        assert fresh.accept_tokens(tokens)
        return fresh

    # the bytes of the tokens lead to the same state as the tokens
    if taken and taken[-1] not in WORDS.eos:
        by_bytes = grammar.matcher()
        assert by_bytes.accept_bytes(b"".join(WORDS.tokens[t] for t in taken))
        same(by_bytes, matcher)
    # a fork is independent
    fork = matcher.fork()
    same(fork, matcher)
    some = [source.integer(0, WORDS.size - 1) for _ in range(4)]
    for token in some:
        fork.accept_token(token)
    same(matcher, replay(taken))
    # validate counts the tokens that accept would take, and leaves the state unchanged
    if not matcher.is_terminated():
        length = matcher.validate_tokens(some)
        same(matcher, replay(taken))
        walker = matcher.fork()
        count = 0
        for token in some:
            if not walker.accept_token(token):
                break
            count += 1
        assert length == count
        # accept_tokens accepts all tokens or none
        walker = matcher.fork()
        assert walker.accept_tokens(some) == (length == len(some))
        if length < len(some):
            same(walker, matcher)
    # a refused token leaves the state unchanged
    naive = oracle.naive_mask(matcher, WORDS.size)
    if not naive.all():
        assert not matcher.accept_token(int(np.flatnonzero(~naive)[0]))
        same(matcher, replay(taken))
    # rollback equals a shorter replay, and reset equals an empty one
    back = source.integer(0, len(taken))
    matcher.rollback(back)
    same(matcher, replay(taken[: len(taken) - back]))
    assert matcher.accept_tokens(taken[len(taken) - back :])
    same(matcher, replay(taken))
    matcher.reset()
    same(matcher, grammar.matcher())


def walks_finish_inside(source: Source) -> str | None:
    """Every state of a walk has an allowed token, and the text of a finished walk is in the language."""
    if source.chance(25):
        pattern = strategies.pattern(source)
        grammar = harness.compiler().regex(pattern)
        inside = re.compile(pattern).fullmatch
    else:
        schema = strategies.schema(source)
        grammar = harness.compiled(schema, property_order=source.pick(("schema", "any")))
        if grammar is None or grammar is Empty:
            return harness.SKIPPED
        inside = oracle.JsonOracle(schema).accepts
    matcher = grammar.matcher()
    text = b""
    for token, _ in harness.walk(source, matcher, WORDS.size, WORDS.eos, 60, close_after=15):
        text += b"" if token in WORDS.eos else WORDS.tokens[token]
    if matcher.is_terminated() and not HUGE.search(text):
        assert inside(text.decode()), text


def collecting_changes_nothing(source: Source) -> str | None:
    tiny = harness.compiler(cache_bytes=1 << 14)
    pair = grammar_pair(source, harness.compiler(), tiny)
    if pair is None:
        return harness.SKIPPED
    matcher, other = (each.matcher() for each in pair)
    parked = other.fork()
    start = oracle.mask_of(matcher, WORDS.size)
    taken = []
    for step, (token, mask) in enumerate(
        harness.walk(source, matcher, WORDS.size, WORDS.eos, source.integer(1, 25))
    ):
        assert (mask == oracle.mask_of(other, WORDS.size)).all()
        assert other.accept_token(token)
        if step % 3 == 0:
            pair[1]._collect()
        taken.append(token)
    assert (start == oracle.mask_of(parked, WORDS.size)).all()
    other.rollback(len(taken))
    assert (start == oracle.mask_of(other, WORDS.size)).all()
    assert other.accept_tokens(taken)
    assert (oracle.mask_of(matcher, WORDS.size) == oracle.mask_of(other, WORDS.size)).all()


def several_matchers_survive_collections(source: Source) -> str | None:
    """Several matchers of one grammar stand at different places. Between their starts the arena was collected
    several times. Each matcher's masks stay right."""
    count = 4
    using = source.pick(
        (harness.compiler(), harness.nasty_compiler(), harness.nasty_compiler(cache_bytes=1 << 14))
    )
    words = harness.WORDS if using is harness.compiler() else harness.NASTY
    plain = harness.compiler(cache=False) if words is harness.WORDS else harness.nasty_compiler(cache=False)
    schema = strategies.keyed(source)
    pair = [harness.compiled(schema, using=each) for each in (using, plain)]
    if any(each is None or each is Empty for each in pair):
        return harness.SKIPPED
    places = [(pair[0].matcher(), pair[1].matcher()) for _ in range(count)]
    for _ in range(30):
        index = source.integer(0, count - 1)
        matcher, other = places[index]
        if other.is_terminated():
            continue
        mask = oracle.mask_of(other, words.size)
        if source.chance(70):
            assert (oracle.mask_of(matcher, words.size) == mask).all()
        token = harness.long_token(source, words, np.flatnonzero(mask))
        assert matcher.accept_token(token) and other.accept_token(token)
        if source.chance(15):
            places[source.integer(0, count - 1)] = (matcher.fork(), other.fork())
        if source.chance(25):
            pair[0]._collect()
    for matcher, other in places:
        assert (oracle.mask_of(matcher, words.size) == oracle.mask_of(other, words.size)).all()


def nasty_masks_are_accept(source: Source) -> str | None:
    """The mask equals accept_token, the plain walk and the mask of a tiny arena; live_bytes agrees, too. The
    tokens are difficult: several keys, a repeated key, cut escapes and characters, and runs longer than the
    counters."""
    words = harness.NASTY
    kind = source.integer(0, 3)
    if kind == 0:
        schema = strategies.schema(source, FEATURES)
    else:
        schema = strategies.counted(source) if kind == 1 else strategies.keyed(source)
    whitespace = source.pick(("flexible", "flexible", "compact", "pretty"))
    options = {
        "whitespace": whitespace,
        "property_order": source.pick(("schema", "any")),
        "strings": source.pick(("any", "plain")),
        "numbers": source.pick(("any", "plain", "canonical")),
    }
    grammars = [
        harness.compiled(schema, using=each, **options)
        for each in (
            harness.nasty_compiler(),
            harness.nasty_compiler(cache=False),
            harness.nasty_compiler(cache_bytes=1 << 14),
        )
    ]
    if any(each is None or each is Empty for each in grammars):
        assert all(each is None or each is Empty for each in grammars)
        return harness.SKIPPED
    matchers = [each.matcher() for each in grammars]
    for _ in range(source.integer(1, 14)):
        masks = [oracle.mask_of(each, words.size) for each in matchers]
        assert (masks[0] == masks[1]).all() and (masks[0] == masks[2]).all()
        assert masks[0].any(), "a dead end"
        if source.chance(25):
            naive = oracle.naive_mask(matchers[0], words.size)
            wrong = np.flatnonzero(masks[0] != naive)
            assert not wrong.size, [(words.tokens[t], bool(masks[0][t])) for t in wrong[:5]]
            live = [b for b in range(256) if matchers[0].validate_bytes(bytes([b]))]
            assert live == list(matchers[0].live_bytes())
        token = harness.long_token(source, words, np.flatnonzero(masks[0]))
        assert all(each.accept_token(token) for each in matchers)
        if token in words.eos:
            return


def forced_is_the_only_way(source: Source) -> str | None:
    pair = grammar_pair(source, harness.compiler())
    if pair is None:
        return harness.SKIPPED
    matcher, taken = random_state(source, pair[0], source.integer(0, 10))
    if matcher.is_terminated():
        return
    forced = matcher.forced_bytes()
    probe = matcher.fork()
    for byte in forced[:200]:
        assert not probe.is_accepting()
        ways = [b for b in range(256) if probe.fork().accept_bytes(bytes([b]))]
        assert ways == [byte]
        assert probe.accept_bytes(bytes([byte]))
    tokens = matcher.forced_tokens()
    assert matcher.validate_tokens(tokens) == len(tokens)
    text = b"".join(WORDS.tokens[t] for t in tokens if t not in WORDS.eos)
    assert forced.startswith(text)


BYTES = structgen.Compiler(harness.BYTES)


def tokens_of_the_texts(source: Source) -> str | None:
    """The vocabulary has pieces of the texts of several grammars. The masks of these grammars, all of one
    compiler, equal a plain walk, the masks of a compiler that was asked in another order, and the masks
    behind single bytes."""
    chance, texts, schemas = random.Random(source.integer(0, 1 << 30)), [], []
    for _ in range(source.integer(1, 3)):
        schema = strategies.renamed(source, strategies.any_schema(source))
        found = harness.compiled(schema, using=BYTES)
        if found is None or found is Empty:
            continue
        with contextlib.suppress(errors.BudgetExceeded):
            texts += [harness.byte_walk(found, chance, count) for count in (5, 30, 80)]
            schemas.append(schema)
    words = strategies.words_of(source, texts, source.pick((20, 80, 200)))
    plain, cached, other = (
        structgen.Compiler(harness.vocabulary(words), cache=cache) for cache in (False, True, True)
    )
    asked = []
    for schema in schemas:
        grammars = [harness.compiled(schema, using=each) for each in (plain, cached, other)]
        for _ in range(2):
            matcher, taken = grammars[1].matcher(), list[int]()
            for token, mask in harness.long_walk(source, grammars[0].matcher(), words, 12):
                assert (oracle.mask_of(matcher, words.size) == mask).all(), (schema, taken)
                asked.append((grammars[2], list(taken), mask))
                taken.append(token)
                assert matcher.accept_token(token)
    for grammar, taken, mask in source.shuffled(asked):
        matcher, by_bytes = grammar.matcher(), grammar.matcher()
        assert matcher.accept_tokens(taken)
        assert all(by_bytes.accept_bytes(bytes([b])) for t in taken for b in words.tokens[t]), taken
        for each in (matcher, by_bytes):
            assert (oracle.mask_of(each, words.size) == mask).all(), taken
    return None if asked else harness.SKIPPED


@pytest.mark.parametrize("written", [{}, {"b": 1}], ids=["first", "second"])
def test_a_key_is_begun_that_only_repeats(written) -> None:
    """A mask does not know which key the text already has. Each key here has one character, and no token may
    begin the key again, although other keys may begin."""
    schema = {"type": "object", "patternProperties": {"^.$": {"const": 1}}, "additionalProperties": False}
    begun = json.dumps(written, separators=(",", ":"))[:-1] + ("," if written else "") + '"a'
    tokens = [*(bytes([b]) for b in range(256)), *(f'":1,"{key}'.encode() for key in "acé"), b'":1,"', b""]
    vocabulary = structgen.Vocabulary.from_bytes(tokens, len(tokens) - 1)
    for cache in (True, False):
        matcher = structgen.Compiler(vocabulary, cache).json_schema(schema, whitespace="compact").matcher()
        assert matcher.accept_bytes(begun)
        mask = oracle.mask_of(matcher, len(tokens))
        assert (mask == oracle.naive_mask(matcher, len(tokens))).all()
        assert [bool(mask[t]) for t in range(256, 260)] == [False, True, True, True]


LAWS = (
    *(mask_is_accept, cached_is_uncached, moves_are_replay, walks_finish_inside),
    *(collecting_changes_nothing, forced_is_the_only_way, several_matchers_survive_collections),
    *(nasty_masks_are_accept, tokens_of_the_texts),
)
SEEDS = {forced_is_the_only_way: 120, nasty_masks_are_accept: 400, tokens_of_the_texts: 120}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_seeded(law) -> None:
    harness.seeded(law, SEEDS.get(law, 250))


# Grammars that remember earlier examples are left out, because shrinking needs a repeatable outcome.
@pytest.mark.parametrize(
    "law",
    [law for law in LAWS if law is not several_matchers_survive_collections],
    ids=lambda law: law.__name__,
)
def test_shrinking(law) -> None:
    harness.shrinking(law, 25)


BUDGET_SCHEMAS = [
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["b"]},
    {"type": "array", "items": {"enum": ["x", "yy", None]}, "minItems": 3},
    {"type": "string", "minLength": 5, "pattern": "^[a-z]+$"},
    {"anyOf": [{"const": {"k": [1, 2]}}, {"type": "object", "required": ["q"], "maxProperties": 2}]},
    {
        "$defs": {
            "t": {"type": "object", "properties": {"n": {"$ref": "#/$defs/t"}, "v": {}}, "required": ["v"]}
        },
        "$ref": "#/$defs/t",
    },
]


@pytest.mark.parametrize("schema", BUDGET_SCHEMAS)
@pytest.mark.parametrize("factor", [1.0, 1.2, 2.0])
def test_budgets(schema, factor) -> None:
    """If every mask gets the budget, each random walk ends within the budget, with a text of the language."""
    grammar = harness.compiled(schema)
    width = (WORDS.size + 31) // 32
    row = np.zeros((1, width), dtype=np.int32)
    for seed in range(4):
        source = harness.Seeded(seed)
        matcher = grammar.matcher()
        left = int(matcher.tokens_needed() * factor)
        text = b""
        while not matcher.is_terminated():
            matcher.fill_bitmask(row, 0, left)
            allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
            token = int(source.pick(allowed.tolist()))
            assert matcher.accept_token(token)
            text += b"" if token in WORDS.eos else WORDS.tokens[token]
            left -= 1
        assert left >= 0
        assert oracle.JsonOracle(schema).accepts(text.decode()), text
    with pytest.raises(structgen.UnsatisfiableBudget):
        grammar.matcher().fill_bitmask(row, 0, 1)


@pytest.mark.parametrize("cache_bytes", [1 << 14, 1 << 26])
def test_threads_fill_the_same_masks(cache_bytes) -> None:
    """Five threads walk different paths of one fresh grammar, with a collection in the middle. Every mask
    equals the mask of the plain walk."""
    words = harness.NASTY
    plain = harness.nasty_compiler(cache=False)

    def check(source: Source) -> str | None:
        schema = strategies.keyed(source)
        using = structgen.Compiler(harness.vocabulary(words), cache_bytes=cache_bytes)
        shared, alone = (harness.compiled(schema, using=each) for each in (using, plain))
        if shared is None or shared is Empty or alone is None:
            return harness.SKIPPED
        paths = [list(harness.long_walk(source, alone.matcher(), words, 12)) for _ in range(6)]

        def run(index: int) -> None:
            for turn in range(6):
                path = paths[(index + turn) % len(paths)]
                matcher = shared.matcher()
                for step, (token, mask) in enumerate(path):
                    before = b"".join(words.tokens[t] for t, _ in path[:step])
                    assert (oracle.mask_of(matcher, words.size) == mask).all(), (schema, before)
                    matcher.accept_token(token)
                if index == 4 and turn == 2:
                    shared._collect()

        harness.together(run, 5)

    harness.seeded(check, 60)


def test_random_vocabularies() -> None:
    """The mask equals accept_token for random vocabularies, too."""

    def check(source: Source) -> str | None:
        words = strategies.words(source, merges=source.integer(0, 80))
        compiler = structgen.Compiler(harness.vocabulary(words))
        grammar = harness.compiled(strategies.schema(source), using=compiler)
        if grammar is None or grammar is Empty:
            return harness.SKIPPED
        matcher = grammar.matcher()
        for _ in harness.walk(source, matcher, words.size, words.eos, source.integer(0, 10)):
            pass
        if not matcher.is_terminated():
            mask = oracle.mask_of(matcher, words.size)
            assert (mask == oracle.naive_mask(matcher, words.size)).all()

    harness.seeded(check, 60)


@pytest.mark.parametrize("seed", range(6))
def test_large_vocabulary(seed, tekken, tekken_vocabulary) -> None:
    """The mask equals accept_token for each of 131,072 tokens, after a valid text that is cut at a random
    token."""
    source = Seeded(seed)
    compiler = structgen.Compiler(tekken_vocabulary)
    schema = strategies.schema(source)
    try:
        grammar = compiler.json_schema(schema, property_order="any")
    except (errors.UnsatisfiableSchema, errors.SchemaTooComplex):
        grammar = compiler.json_schema({"items": {"maxLength": 9}, "type": "array"})
    matcher = grammar.matcher()
    for _ in range(source.integer(0, 6)):
        allowed = np.flatnonzero(oracle.mask_of(matcher, len(tekken.text)))
        assert matcher.accept_token(int(source.pick(allowed)))
        if matcher.is_terminated():
            matcher.rollback(1)
            break
    mask = oracle.mask_of(matcher, len(tekken.text))
    assert (mask == oracle.naive_mask(matcher, len(tekken.text))).all()


COUNTED = [
    {"type": "string", "maxLength": 70, "pattern": r"^$|(^(?:\S+\s+){0,20}\S+$)"},
    {"type": "string", "minLength": 1, "maxLength": 25, "pattern": r"^(?:\S+\s+){0,6}\S+$"},
    {"type": "string", "pattern": r"^(?:[a-z]{1,3},){0,12}$"},
    {"type": "string", "pattern": r"^(?:a|bc|\"){2,19}$", "maxLength": 30},
    {"type": "string", "pattern": r"^(?:(?:[ab]{0,5}-){0,7};){0,9}$"},
    {"type": "string", "pattern": r"^(?:\w+ ?){0,9}$", "not": {"pattern": r"^(?:a ){3,9}"}, "maxLength": 40},
]


@pytest.mark.parametrize("schema", COUNTED)
def test_counters_that_share_masks(schema, tekken_vocabulary) -> None:
    """A mask copied from a regex with other limits equals the plain walk, down to the last count.

    The test needs a large vocabulary: in a small one few masks differ from the mask of an unlimited string.
    """
    vocabulary = tekken_vocabulary
    simple = re.compile(rb' ?[abc]{1,3} ?|[-;, "]')
    short = [t for t, text in enumerate(vocabulary.tokens) if simple.fullmatch(text)]
    fast, plain = (structgen.Compiler(vocabulary, cache=c).json_schema(schema) for c in (True, False))
    chance = random.Random(str(schema))
    mask, other = (structgen.allocate_bitmask(1, vocabulary.vocab_size) for _ in range(2))
    left, right = fast.matcher(), plain.matcher()
    for step in range(45):
        left.fill_bitmask(mask)
        if step % 3 == 0 or step > 30:
            right.fill_bitmask(other)
            assert (mask == other).all(), step
        allowed = [t for t in short if mask[0, t // 32] >> (t % 32) & 1]
        inner = [t for t in allowed if b'"' not in vocabulary.token_bytes(t)] if step else allowed
        if not inner:
            break
        token = chance.choice(inner)
        assert left.accept_token(token) and right.accept_token(token)


PATTERNS = [
    *(r"^\S+$", r"^\s*x?\s*$", r"^(?:\S+\s?)*$", r"^[^\n]*$", r"^[^\u2003]*$", r"^[\u2000-\u200a\w]*$"),
    *(r"^[\p{L} ]*$", r"^\W*$", r"^[\u0080-\uffff]*a?$", r"^.*[.!?]$", r"^[a-z0-9-]+:[a-z.]*$"),
    *(r"^([a-z]|[ ])*$", r"^\S*b$", r"^[^ñ]*b$", r"^[^\s,]*,\S*\.$", r"^\D*\s*y$"),
    r"^[\s\S]*[^\u0000-\u2fff]$",
]
LOOPS = [
    *(("pattern", {"type": "string", "pattern": p}) for p in PATTERNS),
    *(("short", {"type": "string", "pattern": p, "minLength": 1, "maxLength": 40}) for p in PATTERNS[:6]),
    *(("near", {"type": "string", "pattern": p, "minLength": 1, "maxLength": 14}) for p in PATTERNS[6:]),
    *(("least", {"type": "string", "pattern": p, "minLength": 6, "maxLength": 17}) for p in PATTERNS[::2]),
    *(
        ("exact", {"type": "string", "pattern": p, "minLength": 12, "maxLength": 12})
        for p in (
            "[0-9a-f]+",
            r"^\S+@\S+$",
            "^(ab|c)+$",
            "^(..)*$",
            "^(.{3})+$",
            "é.?a",
            r"^[ab]+(\.[^a]+)*$",
        )
    ),
    ("odd", {"type": "string", "pattern": "^(..)*$", "minLength": 5, "maxLength": 9}),
    ("one of", {"type": "string", "oneOf": [{"pattern": "ma"}, {"pattern": "or"}, {"pattern": "^.é"}]}),
    (
        "any of",
        {"anyOf": [{"pattern": "^[^x]*$", "minLength": 3}, {"pattern": "é$", "maxLength": 5}, {"enum": [1]}]},
    ),
    ("keys", {"patternProperties": {"foo": {"type": "integer"}, "[0-9a-f]{4}": {"type": "string"}}}),
    ("keys", {"patternProperties": {"fo+": {"type": "integer"}, ".*": {"type": "string"}}}),
    ("keys", {"patternProperties": {"^x-": True, "a.b": False}, "propertyNames": {"maxLength": 9}}),
    (
        "lark",
        r"""
        start: (NAME | STRING | COMMENT)+
        NAME: /[^\W\d]\w*/
        STRING: /"[^"]*"/
        COMMENT: /#[^\n]*/
        %ignore /\s+/
        """,
    ),
    ("json", {"type": "string", "pattern": r"^.*.ab$"}),
    ("json", {"type": "string", "pattern": r"^[^a]+a[^ae]+(\.[^ae]*)*.be"}),
    ("json", {"type": "string", "pattern": "^(é[ab]*è|[^é])*$"}),
    ("json", {"type": "string", "pattern": r"^\S+(\s\S+){2}"}),
    ("json", {"type": "string", "pattern": "^([^,]*,){3}$"}),
    ("json", {"type": "string", "pattern": "^(a|b|\U0001f600|è )*x?$"}),
    (
        "json",
        {"patternProperties": {"^[a-zé]*ab": {"type": "null"}}, "additionalProperties": {"type": "integer"}},
    ),
    ("lark", 'start: A ("," A)*\nA: /(ab|[^b,])+/'),
    ("lark", 'start: (A | B)*\nA: /([^ab]|a[^b])*ab/\nB: /é(a|b)+/\n%ignore " "'),
    ("lark", 'start: (WORD "," )* WORD\nWORD: /\\S+?/ & ~KEY\nKEY: "a" | "the"\n%ignore " "'),
]


@functools.cache
def dense_vocabulary() -> structgen.Vocabulary:
    """Returns a vocabulary of short texts, whole and cut off: letters, blanks, and both mixed. Some subtrees
    of its trie then have one class of bytes, and others have several."""
    kinds = ("éñ\U0001f600", "\u00a0\u3000\u2003", "è\u3000", "ab", "a ,", "aè\u00a0")
    texts = {"".join(t).encode() for k in kinds for n in (1, 2, 3, 4) for t in itertools.product(k, repeat=n)}
    texts |= {t[:-1] for t in texts if len(t) > 1} | {bytes([i]) for i in range(256)}
    return structgen.Vocabulary.from_bytes([*sorted(texts), b""], len(texts))


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("kind, text", LOOPS)
def test_what_loops_is_skipped_rightly(kind, text, dense, tekken_vocabulary) -> None:
    """The masks equal the plain walk where the engine skips tokens: subtrees that are allowed as a whole,
    lengths beside patterns, and overlapping patterns of keys."""
    vocabulary = dense_vocabulary() if dense else tekken_vocabulary
    if kind == "lark":
        pytest.importorskip("lark", reason="lark is an extra; the schemas beside it are tested without")
    compilers = (structgen.Compiler(vocabulary, cache=c) for c in (True, False))
    left, right = ((c.lark(text) if kind == "lark" else c.json_schema(text)).matcher() for c in compilers)
    chance = random.Random(str(text))
    mask, other = (structgen.allocate_bitmask(1, vocabulary.vocab_size) for _ in range(2))
    for step in range(14):
        left.fill_bitmask(mask)
        right.fill_bitmask(other)
        assert (mask == other).all(), (
            step,
            np.flatnonzero(np.unpackbits((mask ^ other).view(np.uint8), bitorder="little"))[:5],
        )
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        inner = [t for t in chance.choices(allowed, k=8) if b'"' not in vocabulary.token_bytes(int(t))]
        token = int(inner[0]) if inner and step else int(chance.choice(allowed))
        assert left.accept_token(token) and right.accept_token(token)
        if left.is_terminated():
            break
