"""A limit in units of work acts equally on every machine, and objects stay usable after a call that ran out
of units."""

from __future__ import annotations

import random
import time

import pytest

import structgen
from oracles import attack, harness, oracle
from oracles.harness import WORDS, vocabulary
from structgen import _core, errors

SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "string", "pattern": "^[a-f]+x?$", "maxLength": 9},
        "b": {"type": "array", "items": {"type": "integer", "multipleOf": 3}, "contains": {"minimum": 5}},
    },
    "required": ["a"],
    "oneOf": [{"required": ["b"]}, {"properties": {"a": {"minLength": 3}}, "maxProperties": 1}],
}
TEXT = b'{"a":"abcx","b":[3,6,9]}'


def work_of(call) -> int:
    before = _core._work_done()
    call()
    return _core._work_done() - before


def compile_and_read() -> structgen.Matcher:
    matcher = structgen.Compiler(vocabulary(WORDS)).json_schema(SCHEMA).matcher()
    assert matcher.accept_bytes(TEXT) and matcher.is_accepting()
    return matcher


def test_work_is_counted_alike() -> None:
    first = work_of(compile_and_read)
    assert first > 100
    assert first == work_of(compile_and_read)


def test_a_failure_that_was_asked_for() -> None:
    total = work_of(compile_and_read)
    for after in range(1, total, max(1, total // 50)):
        _core._fail_after(after)
        with pytest.raises(errors.StructgenError, match="a test asked for"):
            compile_and_read()
    compile_and_read()
    _core._fail_after(0)


# ---- limits ------------------------------------------------------------------------------------

# The engine must see that a language minus itself is empty. The 21st letter from the end decides membership,
# so the search has 2^21 states.
HARD = {
    "type": "string",
    "pattern": "^[ab]*a[ab]{20}$",
    "not": {"pattern": "^[ab]*a[ab]{6}(a|b)[ab]{13}$"},
}
EASY = {"type": "object", "properties": {"a": {"type": "integer"}, "b": HARD, "c": {"type": "boolean"}}}


def compilers(**limits: int | None) -> tuple[structgen.Compiler, structgen.Compiler]:
    tokens = vocabulary(WORDS)
    given = structgen.Limits(**limits)
    return tuple(structgen.Compiler(tokens, limits=given, on_limit=x) for x in ("error", "subset"))  # type: ignore[return-value,arg-type]


def mask(matcher: structgen.Matcher) -> set[int]:
    size = len(WORDS.tokens)
    return {t for t, bit in enumerate(oracle.mask_of(matcher, size)) if bit}


def test_limits_are_checked() -> None:
    assert structgen.Limits(compile=None, mask=None)._units() == (1 << 60, 1 << 60)
    for name in ("compile", "mask", "memory"):
        for wrong in (0, -1):
            with pytest.raises(ValueError, match=f"Limits\\({name}=...\\) must be at least 1"):
                structgen.Limits(**{name: wrong})
        for other in (1.5, "9", True):
            with pytest.raises(TypeError, match="whole number"):
                structgen.Limits(**{name: other})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="whole number"):
        structgen.Limits(memory=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="on_limit is one of error, subset"):
        structgen.Compiler(vocabulary(WORDS), on_limit="ignore")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="structgen.Limits"):
        structgen.Compiler(vocabulary(WORDS), limits=7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="on_limit"):
        structgen.Compiler(vocabulary(WORDS)).regex("a", on_limit="none")  # type: ignore[arg-type]


def test_a_compile_within_its_limit() -> None:
    for compiler in compilers(compile=300):
        with pytest.raises(errors.SchemaTooComplex, match="more than 300 units of work; simplify it"):
            compiler.json_schema({"enum": [f"{i}" * 9 for i in range(500)]})
        compiler.json_schema({"type": "null"})


@pytest.mark.parametrize("place", ["properties", "items", "additionalProperties", "anyOf"])
def test_what_is_optional_and_too_much(place: str) -> None:
    schema: object = {
        "properties": EASY,
        "items": {"type": "array", "items": HARD},
        "additionalProperties": {"type": "object", "additionalProperties": HARD},
        "anyOf": {"anyOf": [HARD, {"type": "integer"}]},
    }[place]
    exact, subset = compilers(compile=100_000, mask=20_000)
    grammar = subset.json_schema(schema)
    found: set[bytes] = set()
    for text in (b"{", b"[", b"1", b'"'):
        matcher = grammar.matcher()
        if not matcher.accept_bytes(text):
            continue
        found.add(text)
        for _ in range(30):
            allowed = mask(matcher)
            assert allowed, "a mask of nothing"
            if matcher.is_accepting():
                break
            least = min(allowed, key=lambda t: (len(subset.vocabulary.token_bytes(t)), t))
            assert matcher.accept_token(least)
    assert found
    with pytest.raises(errors.StructgenError):  # the error comes at the compile or in the middle of a text
        other = exact.json_schema(schema).matcher()
        other.accept_bytes({"properties": b'{"b":"', "items": b'["', "additionalProperties": b'{"x":"',
                            "anyOf": b'"'}[place])  # fmt: skip
        mask(other)


def test_what_is_required_and_too_much() -> None:
    for compiler in compilers(compile=100_000):
        with pytest.raises(errors.SchemaTooComplex):
            compiler.json_schema({"type": "object", "properties": {"b": HARD}, "required": ["b"]})


def test_a_mask_that_is_too_much_leaves_the_matcher_as_it_was() -> None:
    schema = {"type": "object", "properties": {"k": {"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$"}}}
    grammar = compilers()[0].json_schema(schema)
    enough = work_of(lambda: grammar.matcher().accept_bytes(b"{"))  # enough for this call; a mask takes more
    exact, _ = compilers(mask=enough)
    matcher = exact.json_schema(schema).matcher()
    with pytest.raises(errors.BudgetExceeded, match=f"this mask takes more than {enough} units of work"):
        mask(matcher)
    assert matcher.num_steps == 0 and matcher.accept_bytes(b"{")


@pytest.mark.parametrize(
    "pattern", [r"([a-z]+[0-9]*[-,. ])*x{3}", r"[^a]{3,5}([b-z]+1)*", r"(a|b|the|cat)*!"]
)
def test_a_part_of_a_mask(pattern: str) -> None:
    every = mask(compilers()[0].regex(pattern).matcher())
    parts = 0
    for units in (10, 20, 40, 80, 160, 320, 640):
        matcher = compilers(mask=units)[1].regex(pattern).matcher()
        some = mask(matcher)
        assert some and some <= every
        assert not matcher.mask_exact or some == every
        parts += some < every
    assert parts and some == every


def test_without_limits_a_subset_is_the_whole() -> None:
    exact, subset = compilers(mask=None, compile=None)
    for schema in (SCHEMA, {"type": "object"}, {"type": "string", "format": "date-time"}, True):
        one, other = (c.json_schema(schema).matcher() for c in (exact, subset))
        for _ in range(12):
            allowed = mask(one)
            assert allowed == mask(other) and other.mask_exact
            token = max(allowed, key=lambda t: (len(exact.vocabulary.token_bytes(t)), t))
            if one.is_accepting() or not one.accept_token(token) or not other.accept_token(token):
                break


def test_every_way_to_compile_takes_it() -> None:
    exact, subset = compilers()
    for compiler, limit in ((exact, "subset"), (subset, None)):
        options = {"on_limit": limit}
        made = [
            compiler.json_schema({"type": "null"}, **options),
            compiler.json_schema('{"type":"null"}', **options),
            compiler.regex("a+", **options),
            compiler.gbnf('root ::= "a"', **options),
            compiler.lark('start: "a"', **options),
            compiler.grammar('start: "a"', **options),
            compiler.choice(["a"], **options),
            compiler.substring_of("a b", **options),
            compiler.compile("regex", "a", **options),
            compiler.compile("json_schema", "{}", **options),
            compiler.structural_tag({"type": "structural_tag", "format": {"type": "any_text"}}, **options),
        ]
        for grammar in made:
            assert grammar._recipe is not None
            assert grammar._recipe[-1]["on_limit"] == "subset", grammar._recipe
    # The compiler keeps one grammar for each value of `on_limit`.
    assert exact.regex("b") is exact.regex("b") is not exact.regex("b", on_limit="subset")


def test_copies_keep_limits() -> None:
    import pickle

    compiler = structgen.Compiler(
        vocabulary(WORDS), limits=structgen.Limits(mask=77, memory=1 << 20), on_limit="subset"
    )
    again = pickle.loads(pickle.dumps(compiler))
    assert (again.limits, again.on_limit, again._cache_bytes) == (compiler.limits, "subset", 1 << 20)


def test_what_was_left_out_stays_out() -> None:
    # A mask allowed a token that accept_token refused: a search behind one token decided a question that an
    # earlier step had left undecided.
    tokens = [bytes([b]) for b in range(256)] + [b'":{', b'"x1', b"<ab>", b'a""', b""]
    size = len(tokens)
    known = structgen.Vocabulary.from_bytes(tokens, eos_token_ids=[size - 1])
    compiler = structgen.Compiler(known, limits=structgen.Limits(mask=200_000), on_limit="subset")
    matcher = compiler.regex(r"(?!.*a.{40}b).*(?:a|\bab)").matcher()
    for token in (256, 257, ord("*")):
        oracle.mask_of(matcher, size)
        assert matcher.accept_token(token)
    allowed = oracle.mask_of(matcher, size)
    assert allowed.any()
    assert [tokens[t] for t in range(size) if allowed[t] and not matcher.fork().accept_token(t)] == []


FAR = "^(?!.*ab.{15}b)"  # its complement has texts of 18 characters and more


@pytest.mark.parametrize("units", harness.chosen([1, 10, 200, 2_000, 20_000, 200_000]))
@pytest.mark.parametrize(
    "schema, begun",
    [
        (
            {
                "properties": {
                    "x": {
                        "type": "array",
                        "items": {
                            "anyOf": [
                                {"enum": ["é\n"]},
                                {"oneOf": [{"pattern": FAR}, {}]},
                                {"type": "boolean"},
                            ]
                        },
                        "uniqueItems": True,
                        "contains": {"type": "boolean"},
                    }
                }
            },
            b'{"x"',
        ),
        ({"patternProperties": {"^cc$": {"not": {"pattern": FAR}}}, "minProperties": 3}, b'{"ab":fals'),
    ],
)
def test_what_was_too_much_is_decided_where_a_text_would_stop(
    schema: object, begun: bytes, units: int
) -> None:
    # The call raised "what may follow takes too much work to tell" although its remaining units were enough.
    # Each part of the text got half of the remaining units, and an undecided part was not asked again.
    tokens = [bytes([b]) for b in range(256)] + [b""]
    known = structgen.Vocabulary.from_bytes(tokens, eos_token_ids=[256])
    limits = structgen.Limits(mask=units)
    compiler = structgen.Compiler(known, limits=limits, on_limit="subset")
    grammar = compiler.json_schema(schema, whitespace="compact")
    for seed in range(3):
        source = random.Random(seed)
        matcher = grammar.matcher()
        for byte in begun:
            if not oracle.mask_of(matcher, 257)[byte]:
                break  # the name itself is optional
            assert matcher.accept_token(byte)
        for _ in range(60):
            allowed = oracle.mask_of(matcher, 257).nonzero()[0].tolist()
            assert allowed, "a mask of nothing"
            token = source.choice(allowed)
            assert matcher.accept_token(token)
            if token == 256:
                break


@pytest.mark.parametrize("seed", [5, 65, 141, 271, 283, 335, 343])
def test_tokens_that_were_rolled_back_are_read_again(seed: int) -> None:
    # The remaining work decided what a state offers. The engine then forgot a way to read the text on which a
    # mask had relied.
    units = [1, 20, 300, 5_000, 50_000][seed % 5]
    kind, source_text = attack.grammar(seed)
    tokens = [bytes([b]) for b in range(256)] + [b"ab", b"abab", b"aa", b"ba", b"  ", b'a"', b'":', b""]
    end = len(tokens) - 1
    known = structgen.Vocabulary.from_bytes(tokens, eos_token_ids=[end])
    limits = structgen.Limits(mask=units)
    compiler = structgen.Compiler(known, limits=limits, on_limit="subset")
    try:
        grammar = getattr(compiler, kind)(source_text)
    except errors.StructgenError:
        return
    source = random.Random(seed)
    for _ in range(harness.cases(4)):
        matcher, done = grammar.matcher(), []
        for _ in range(60):
            allowed = oracle.mask_of(matcher, end + 1).nonzero()[0].tolist()
            assert allowed
            token = source.choice(allowed)
            assert matcher.accept_token(token)
            if token == end:
                break
            done.append(token)
            if source.random() < 0.2:
                n = source.randint(1, len(done))
                matcher.rollback(n)
                assert matcher.accept_tokens(done[-n:])


def test_an_ambiguous_grammar_is_charged() -> None:
    # The engine united the stacks of all readings of the text for 3 seconds, but charged the mask only 42,284
    # of its 200,000 units.
    grammar = 'root ::= n3*\nn2 ::= "a" | ([a-c] n3){2,40} (n2 | "") (n2){2,40}\nn3 ::= "x" | n2\n'
    tokens = [bytes([b]) for b in range(256)] + [b"aaaaaaaa", b"bbbbbbbb", b"abababab", b"xxxxxxxx", b""]
    known = structgen.Vocabulary.from_bytes(tokens, eos_token_ids=[len(tokens) - 1])
    compiler = structgen.Compiler(known, limits=structgen.Limits(mask=200_000), on_limit="subset")
    matcher = compiler.gbnf(grammar).matcher()
    partly = 0
    for i in range(24):
        allowed = oracle.mask_of(matcher, len(tokens))
        partly += not matcher.mask_exact
        wanted = [t for t in (b"aaaaaaaa", b"abababab", b"a", b"b", b"x") if allowed[tokens.index(t)]]
        assert matcher.accept_token(tokens.index(wanted[i % len(wanted)]))
    assert partly


def test_a_budget_and_many_patterns() -> None:
    """The first completion of the text takes more units than a mask may spend, and the text still goes on."""
    patterns = {f"p{i}": {"type": "string", "pattern": f"a.{{{i % 40}}}$"} for i in range(100)}
    grammar = compilers(mask=200_000)[1].json_schema({"type": "object", "properties": patterns})
    source = random.Random(5)
    for _ in range(3):
        matcher = grammar.matcher(max_tokens=60)
        while not matcher.is_terminated():
            assert matcher.num_steps <= 60
            assert matcher.accept_token(source.choice(sorted(mask(matcher))))


def test_nested_counters_are_charged() -> None:
    """Derivatives of nested counters have hundreds of parts. A mask of 200,000 units once took 0.4 s."""
    tokens = [bytes([b]) for b in range(256)] + [b"aaaaaaaa", b"abab", b"abc", b"abcde", b"bca", b""]
    known = structgen.Vocabulary.from_bytes(tokens, eos_token_ids=[len(tokens) - 1])
    compiler = structgen.Compiler(known, limits=structgen.Limits(mask=200_000), on_limit="subset")
    matcher = compiler.regex("((((((a{1,90}b?){1,90}c?){1,90}d?){1,90}e?){1,90})f?){1,90}").matcher()
    row = structgen.allocate_bitmask(1, len(tokens))
    worst = 0.0
    for token in (256, 257, 258, 259, 256, 260, 258, 257, 259, 256, 258):
        begin = time.process_time()
        matcher.fill_bitmask(row)
        worst = max(worst, time.process_time() - begin)
        assert matcher.accept_token(token) or matcher.accept_bytes(b"a")
    assert worst < 0.25, worst  # 0.05 s on an idle machine


# ---- memory ------------------------------------------------------------------------------------

# With `minItems` the items stay in the states of the parser.
UNIQUE = {
    "type": "array",
    "items": {"enum": [f"v{i}" for i in range(800)]},
    "uniqueItems": True,
    "minItems": 2,
}


@pytest.mark.parametrize("on_limit", ["error", "subset"])
def test_memory_is_bounded_while_it_grows(on_limit: structgen.OnLimit) -> None:
    """Each set of remaining items is a separate state, so memory grows with the text. One text may use eight
    times the limit, and 64 MB (CachePolicy::most). Then the text ends, with both values of `on_limit`, and
    the next text starts with empty caches."""
    limits = structgen.Limits(mask=200_000, memory=1 << 20)
    compiler = structgen.Compiler(vocabulary(WORDS), limits=limits, on_limit=on_limit)
    source, row = random.Random(1), structgen.allocate_bitmask(1, WORDS.size)
    grammar = compiler.json_schema(UNIQUE)
    assert compiler.json_schema(UNIQUE) is grammar

    def read(matcher: structgen.Matcher) -> None:
        matcher.reset()
        assert matcher.accept_bytes(b"[")
        for i in source.sample(range(800), 60):
            matcher.fill_bitmask(row)
            assert matcher.accept_bytes(f'"v{i}",'.encode())

    matcher = grammar.matcher()
    with pytest.raises(
        errors.BudgetExceeded, match=r"more than 72 MB of automata.*Limits\(memory="
    ) as raised:
        for _ in range(2_000):
            read(matcher)
    assert raised.value.pointer is None
    assert compiler.byte_size < 90 << 20
    read(grammar.matcher())
    del matcher
    assert compiler.json_schema(UNIQUE) is not grammar
    made = {grammar._core}
    for _ in range(2_000):
        read(grammar.matcher())
        made.add(grammar._core)
        if len(made) > 1:
            break
    assert len(made) > 1 and compiler.byte_size < 180 << 20  # two grammars are alive at once


def test_memory_of_searches_is_bounded() -> None:
    """A search within one call checks its memory while it runs. Here two objects must be equal, and the
    grammar of the middle takes hundreds of megabytes. A call without a limit of work once took 13.9 GB."""
    limits = structgen.Limits(compile=None, mask=None, memory=1 << 20)
    compiler = structgen.Compiler(vocabulary(WORDS), limits=limits)
    items = {"type": "array", "items": {"type": "object"}}
    open_objects = compiler.json_schema(items | {"not": {"uniqueItems": True}})
    ten = ",".join(f'"{name}":true' for name in "abcdefghij")
    begin = time.process_time()
    with pytest.raises(errors.BudgetExceeded, match="more than 72 MB"):
        open_objects.infill(f'[{{{ten}}},{{"a', "}]").matcher().tokens_needed()
    assert time.process_time() - begin < 10
    assert compiler.byte_size < 90 << 20
    hole = open_objects.infill('[{"a":true},{"a', "}]")  # the middle of a grammar that was built anew
    row = structgen.allocate_bitmask(1, WORDS.size)
    matcher = hole.matcher()
    matcher.fill_bitmask(row)
    assert row.any()
    assert open_objects.matcher().accept_bytes(b'[{"a":1},{"a":1}]')


def test_lists_of_strings_are_counted() -> None:
    """After each string of this schema other keys may follow. So each string keeps a list of its own: the
    tokens that leave the string."""
    keys = [f"{i:03}" for i in range(1000)]
    tokens = [*(bytes([b]) for b in range(256)), *(f'","{key}'.encode() for key in keys), b""]
    compiler = structgen.Compiler(structgen.Vocabulary.from_bytes(tokens, len(tokens) - 1))
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in keys}}
    matcher = compiler.json_schema(schema | {"additionalProperties": False}, whitespace="compact").matcher()
    row, grown = structgen.allocate_bitmask(1, len(tokens)), 0
    for i, key in enumerate(keys[:200]):
        assert matcher.accept_bytes(f'{"," if i else "{"}"{key}":"')
        before = compiler.byte_size
        matcher.fill_bitmask(row)
        grown += compiler.byte_size - before if i >= 100 else 0  # by then the shared tables are built
        assert matcher.accept_bytes('"')
    # without the lists the growth is 12 bytes per token
    assert grown > 15 * sum(1000 - i for i in range(100, 200))


def test_limits_name_the_place() -> None:
    compiler = structgen.Compiler(vocabulary(WORDS), limits=structgen.Limits(compile=100_000, mask=50_000))
    deep = {"type": "object", "properties": {"x": {"type": "array", "items": HARD, "minItems": 1}}}
    with pytest.raises(errors.SchemaTooComplex, match="100,000 units.*at #/properties/x/items") as raised:
        compiler.json_schema(deep | {"required": ["x"]})
    assert raised.value.pointer == "/properties/x/items"
    matcher = compiler.json_schema(deep).matcher()
    with pytest.raises(errors.BudgetExceeded, match="50,000 units.*at #/properties/x") as late:
        assert matcher.accept_bytes(b'{"x":')
        mask(matcher)
    assert late.value.pointer in ("/properties/x", "/properties/x/items")
    keys = {f"a.{{{i}}}b": {"minLength": i} for i in range(40)}
    with pytest.raises(errors.SchemaTooComplex) as found:
        structgen.Compiler(vocabulary(WORDS)).json_schema(
            {
                "type": "array",
                "items": {"type": "object", "patternProperties": keys, "minProperties": 3},
                "minItems": 1,
            }
        )
    assert (found.value.pointer, found.value.keyword) == ("/items", "patternProperties")


def test_a_budget_names_the_limit_that_was_set() -> None:
    ends = [{"pattern": f"a.{{{k}}}$"} for k in range(8, 30, 3)]
    hard = {"type": "string", "pattern": "^[ab]*a[ab]{20}$", "minLength": 300, "allOf": ends}
    matcher = compilers(mask=20_000)[0].json_schema(hard).matcher()
    with pytest.raises(errors.BudgetExceeded, match="1,000,000 units of work, 50 times the limit of 20,000"):
        matcher.tokens_needed()
    matcher = compilers(mask=250_000)[0].json_schema(hard).matcher()
    with pytest.raises(errors.BudgetExceeded, match="1,250,000 units of work, 5 times the limit of 250,000"):
        matcher.shortest_completion()


@pytest.mark.parametrize("schema", [
    {"type": "array", "items": {"type": "object", "required": ["n"], "properties": {"n": {"type": "null"}}}},
    {"type": "string", "format": "date-time"},
])  # fmt: skip
def test_a_vocabulary_that_lacks_bytes_stops_no_text(schema: dict[str, object]) -> None:
    """Some texts cannot be spelled, because the vocabulary lacks bytes. The search for texts that the tokens
    can spell once took more than the work of a mask, and the text ended in BudgetExceeded."""
    tokens = [bytes([b]) for b in range(32, 127) if b not in b"{}"] + [b'":', b'", "', b"12", b""]
    known = structgen.Vocabulary.from_bytes(tokens, eos_token_ids=[len(tokens) - 1])
    compiler = structgen.Compiler(known, limits=structgen.Limits(mask=20_000), on_limit="subset")
    grammar, source = compiler.json_schema(schema), random.Random(3)
    for _ in range(6):
        matcher = grammar.matcher()
        for _ in range(30):
            allowed = [t for t, bit in enumerate(oracle.mask_of(matcher, len(tokens))) if bit]
            assert allowed
            assert matcher.accept_token(source.choice(allowed))
            if matcher.is_terminated():
                break


def test_a_character_whose_set_was_too_much_is_made_again() -> None:
    """A set of states for one character was half built when the limit of work was met. The engine once kept
    the invalid regex, and the next mask read the regex."""
    tokens = [bytes([b]) for b in range(256)] + [b""]
    known = structgen.Vocabulary.from_bytes(tokens, eos_token_ids=[256])
    for pattern in ("(?:a(?!b))*", "(?:ab(?!b))*", "(?:b(?=aa)[ab]a*)*", "(?:[^a]b(?!b))*"):
        for units in range(1, 60):
            limits = structgen.Limits(mask=units)
            grammar = structgen.Compiler(known, limits=limits, on_limit="subset").regex(pattern)
            for _ in range(2):
                assert oracle.mask_of(grammar.matcher(), 257).any()


def test_stacks_of_many_alternatives_are_united_in_pairs() -> None:
    """If n alternatives are added to a set one by one, the interned sets hold n * n / 2 entries, so the
    engine unites alternatives in pairs. A mask of 4,787 objects once took 4,000,000 units, and a text with
    on_limit="subset" ended there."""
    sizes = []
    for n in (700, 1_400):
        one = [{"properties": {f"p{i}": {"type": "integer"}}, "required": [f"p{i}"]} for i in range(n)]
        grammar = structgen.Compiler(vocabulary(WORDS)).json_schema({"additionalProperties": {"anyOf": one}})
        assert grammar.matcher().accept_bytes(b'{"a":{"p')
        sizes.append(grammar.byte_size)
    assert sizes[1] < 2.4 * sizes[0], sizes
