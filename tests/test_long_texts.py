"""Arrays of many different items and objects with many keys: verdicts compared with arithmetic.

`python -m bench.long` measures the cost of a token as a text grows.
"""

from __future__ import annotations

import json
import random
import re
import time
from fractions import Fraction

import pytest

import structgen
from oracles import harness
from oracles.differential.targeted import captures
from oracles.oracle import JsonOracle
from oracles.strategies import Seeded

HUGE = re.compile(rb"[eE][+-]?[0-9]{4}")  # exponents so large that only the engine can compare the numbers
BYTES = structgen.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b""], eos_token_ids=[256])


def spelling(source: random.Random, value: int) -> str:
    """Returns a random spelling of value / 4."""
    quarters, whole = value % 4, value // 4 if value >= 0 or value % 4 == 0 else value // 4 + 1
    if quarters == 0:
        return source.choice([f"{whole}", f"{whole}.0", f"{whole}.00"])
    text = f"{abs(value) * 25 // 100}.{abs(value) * 25 % 100:02}"
    return ("-" if value < 0 else "") + text + source.choice(["", "0"])


@pytest.mark.parametrize("seed", range(12))
def test_many_numbers_are_different(seed: int) -> None:
    source = random.Random(seed)
    schema: dict[str, object] = {"type": "array", "uniqueItems": True, "items": {"type": "number"}}
    if seed % 3 == 0:
        schema["items"] = {"type": ["number", "string"]}
    if seed % 3 == 1:
        schema["items"] = {"type": "number", "minimum": -1000, "exclusiveMaximum": 900}
    grammar = structgen.Compiler(BYTES).json_schema(schema)
    matcher, seen = grammar.matcher(), set()
    assert matcher.accept_bytes(b"[")
    for _ in range(120):
        value = source.randrange(-90, 90)
        text = spelling(source, value)
        number = Fraction(text)
        fork = matcher.fork()
        ends = fork.accept_bytes(text.encode() + b"]") and fork.is_accepting()
        assert ends == (number not in seen), (sorted(seen), text)
        if not ends:  # a longer number may begin so
            assert matcher.fork().accept_bytes(text.encode())
            continue
        seen.add(number)
        assert matcher.accept_bytes(text.encode() + b",")
    assert len(seen) > 60


@pytest.mark.parametrize("beside", [{}, {"maxLength": 5}, {"not": {"enum": ["w1", "w22", "no"]}}], ids=str)
def test_many_items_of_a_long_list_are_different(beside: dict[str, object]) -> None:
    """Every allowed beginning of an item can be completed to a text of the list that is no item so far."""
    words = [f"w{i}" for i in range(150)] + ["", "w", 'w"1', "w\\2", "wordy", "w\u00e9", "a much longer word"]
    items = {"enum": words, **beside}
    grammar = structgen.Compiler(BYTES).json_schema({"type": "array", "uniqueItems": True, "items": items})
    left = {w for w in words if JsonOracle(items).accepts_value(w)}
    matcher, row, source = grammar.matcher(), structgen.allocate_bitmask(1, 257), random.Random(1)
    assert matcher.accept_bytes(b"[")
    while left:
        for w in source.sample(words, 8):
            assert matcher.fork().accept_bytes(json.dumps(w).encode()) == (w in left), w
        begun = source.choice(sorted(left))[:2]
        fork = matcher.fork()
        assert fork.accept_bytes(b'"' + json.dumps(begun)[1:-1].encode())
        fork.fill_bitmask(row)
        assert bool(row[0, 34 // 32] >> 34 % 32 & 1) == (begun in left)
        word = source.choice(sorted(left))
        left.remove(word)
        assert matcher.accept_bytes(json.dumps(word).encode() + (b"," if left else b"]"))
    assert matcher.is_accepting()


# ---- items kept outside of the states ----

TOKENS = list(
    dict.fromkeys(
        [bytes([i]) for i in range(256)]
        + b'", "] "," ["a","a" [1,1 1, 0, 7. 0. -0 12 7,7 a" b", "a" "a", ], ]] null true,'.split()
        + b'\\u0061 [[ [{" }] },{" ": [1], 0e 7e- .0 [] [],[] {} a","a" 1.0 1e0 ," ,1 1,1,'.split()
        + b'"} "}, "id": 1},'.split()
        + b'{"a":1 "a":1, ":1," ":{"a": "a": k" b": 1,"b": 1,"a": }, }} },"a": \\u0062":'.split()
        + [b", "]
    )
)
WORDS = structgen.Vocabulary.from_bytes([*TOKENS, b""], eos_token_ids=[len(TOKENS)])
LIKELY = [
    TOKENS.index(t) for t in b'", , " 1, 0, a" b", ] ], 0 1 7 a 7. .0 },{" -0 - [ null \\u0061 a","a"'.split()
]
KEYS = [
    *LIKELY,
    *(TOKENS.index(t) for t in b'{ " : ":1," "a": b": 1,"b": }, ":{"a": \\u0062": } { ":1,"'.split()),
]
INTEGER, STRING = {"type": "integer"}, {"type": "string"}
RECORD = {"type": "object", "properties": {"id": INTEGER}, "required": ["id"]}
NAME = {"type": "string", "pattern": "^[a-z]+[0-9]*$"}
FIVE = ["a", "ab", "b", "ba", "bab"]


def distinct(items: object = None, **more: object) -> dict[str, object]:
    schema: dict[str, object] = {"type": "array", "uniqueItems": True, **more}
    return schema if items is None else schema | {"items": items}


def chosen(key: str, value: object) -> dict[str, object]:
    return {"type": "object", "properties": {"k": {"const": key}, "v": value}, "required": ["k", "v"]}


# A text keeps its items in a set beside the parse states if the schema says so at the start: some array
# requires different items.
ASKS = distinct(INTEGER, minItems=2)
# arrays whose items are kept beside the parse states, arrays whose items the states compare, and both in one
# schema
SCHEMAS = [
    *map(distinct, (None, INTEGER, {"type": "number"}, STRING, RECORD, {"type": "object"})),
    *(distinct({"type": kinds}) for kinds in (["string", "null"], ["integer", "string", "boolean"])),
    *(distinct({"type": "integer", "minimum": low}) for low in (-2, 0, 5)),
    *(distinct({"type": "number", bound: 0}) for bound in ("minimum", "exclusiveMinimum", "maximum")),
    *(
        distinct({"type": "string"} | more)
        for more in ({"minLength": 1}, {"maxLength": 2}, {"pattern": "^a"}, {"pattern": "^a(b+|1)$"}, NAME)
    ),
    *(distinct({"type": "array", "items": item}) for item in (INTEGER, {"type": "number"})),
    *(distinct({"type": "array"} | more) for more in ({"minItems": 2}, {"maxItems": 2, "items": INTEGER})),
    *(distinct(distinct(item)) for item in (INTEGER, {"type": "number"})),
    *(distinct(INTEGER, **more) for more in ({"minItems": 3}, {"maxItems": 3})),
    distinct(INTEGER, contains={"const": 1}),
    distinct({"type": "object", "additionalProperties": INTEGER}),
    distinct({"type": "number"}, prefixItems=[INTEGER, STRING]),
    distinct(prefixItems=[INTEGER, {"type": "boolean"}]),
    *(distinct({"type": kinds}) for kinds in ("null", ["boolean", "null"])),
    distinct(distinct(), contains={"const": []}),
    distinct({"enum": [[1], 2]}, prefixItems=[distinct({"type": "number"})]),
    distinct({"enum": ["a", "b", 1, None]}),
    *(distinct({"enum": texts}) for texts in (["a"], ["", "a", "aa", "ab", "b", "ba b"], FIVE)),
    *(distinct({"enum": FIVE}, **more) for more in ({"maxItems": 2}, {"minItems": 2})),
    distinct({"enum": ["a\n", "a", "\u001f", '"a', "\ue000", "\U0001f600", "\U00010000", "\ud7ff", "b"]}),
    {"type": "array", "items": distinct({"enum": FIVE})},
    {"anyOf": [distinct({"enum": FIVE}), distinct({"enum": [*FIVE[1:], "aa"]}), ASKS]},
    distinct({"anyOf": [{"enum": ["a", "b"]}, INTEGER]}),
    {"type": "array", "items": distinct(INTEGER)},
    {"not": distinct()},
    {"type": "object", "properties": {"a": distinct(INTEGER)}, "additionalProperties": distinct(STRING)},
    *({"anyOf": [distinct(INTEGER), {"type": "array", "items": INTEGER, "maxItems": n}]} for n in (1, 4)),
    {"oneOf": [chosen("x", distinct(INTEGER)), chosen("y", {"type": "array"})]},
]
# objects whose keys are kept beside the parse states, objects whose keys the states hold, and both in one
# schema
MAPS: list[dict[str, object]] = [
    *({"additionalProperties": value} for value in (True, INTEGER, STRING, ASKS, {"type": "object"})),
    *({"propertyNames": {"pattern": p}} for p in ("^[a-z]+[0-9]*$", "^a", "^.{1,2}$", "^(a|b|ab)$", "b$")),
    {"propertyNames": {"maxLength": 2}},
    {"propertyNames": {"enum": ["a", "b", "c"]}},
    {"patternProperties": {"^a": INTEGER, "b$": {"type": "number"}}, "additionalProperties": False},
    {"patternProperties": {"^a": INTEGER, "^.$": ASKS}, "additionalProperties": {"type": "null"}},
    {"patternProperties": {"^a": INTEGER, "^b$": {}}, "minProperties": 3, "additionalProperties": False},
    *(
        {"additionalProperties": INTEGER, least: n}
        for least in ("minProperties", "maxProperties")
        for n in (1, 3)
    ),
    {"properties": {"a": INTEGER, "b": ASKS}, "required": ["b"]},
    {"properties": {"a": INTEGER}, "dependentRequired": {"b": ["a", "k"]}},
    {"dependentSchemas": {"a": {"additionalProperties": INTEGER}}},
    {"not": {"required": ["a"]}, "maxProperties": 4},
    {
        "anyOf": [
            {"required": ["a"], "additionalProperties": False, "properties": {"a": {}}},
            {"minProperties": 2},
        ]
    },
    {"oneOf": [{"additionalProperties": INTEGER}, {"required": ["b"]}]},
    {
        "allOf": [{"properties": {"a": {}}}, {"patternProperties": {"^b": INTEGER}}],
        "unevaluatedProperties": ASKS,
    },
    {"additionalProperties": {"additionalProperties": {"additionalProperties": INTEGER}}},
    {"additionalProperties": {"enum": [{"a": 1}, {"b": 1, "a": 1}]}},
]
SCHEMAS += [{"anyOf": [{"type": "object", **more}, ASKS]} for more in MAPS]
SCHEMAS += [distinct({"type": "object", **more}) for more in MAPS[::3]]
STYLES: list[dict[str, str]] = [
    *({"whitespace": w} for w in ("flexible", "compact", "pretty")),
    *({"numbers": n} for n in ("plain", "canonical")),
    {"strings": "plain"},
]


def row(matcher: structgen.Matcher, budget: int | None = None) -> list[int]:
    size = matcher.grammar.vocabulary.vocab_size
    mask = structgen.allocate_bitmask(1, size)
    matcher.fill_bitmask(mask, max_tokens=budget)
    return [t for t in range(size) if mask[0][t // 32] >> (t % 32) & 1]


def budgeted(matcher: structgen.Matcher, budget: int) -> list[int] | None:
    try:
        return row(matcher, budget)
    except (structgen.errors.UnsatisfiableBudget, structgen.errors.BudgetExceeded):
        return None


def compare(source: random.Random, schema: object, style: dict[str, str]) -> bytes:
    """Returns a matcher that keeps items beside the parse states agrees with a matcher whose states compare
    the items. Returns the text of the random walk."""
    beside, states = structgen.Compiler(WORDS), structgen.Compiler(WORDS, cache=False)
    one, other = (each.json_schema(schema, **style).matcher() for each in (beside, states))
    taken: list[bytes] = []
    likely = source.choice([LIKELY, KEYS])
    for _ in range(source.randint(5, 60)):
        if taken and source.random() < 0.1:
            back = source.randint(1, min(len(taken), 8))
            one.rollback(back), other.rollback(back)
            del taken[-back:]
        if source.random() < 0.1:
            one = one.fork()
        if source.random() < 0.08:
            assert one.shortest_completion() == other.shortest_completion(), (schema, taken)
            assert one.forced_bytes() == other.forced_bytes()
            assert one.live_bytes() == other.live_bytes() and one.is_accepting() == other.is_accepting()
        if source.random() < 0.04:
            assert one.tokens_needed() == other.tokens_needed(), (schema, taken)
        if source.random() < 0.04:  # a budget needs the states, so a fork of the matcher gets the budget
            budget = source.randint(1, 30)
            assert budgeted(one.fork(), budget) == budgeted(other.fork(), budget), (schema, taken, budget)
        allowed = row(one)
        assert allowed == row(other), (schema, style, taken)
        assert allowed, (schema, style, taken)
        for t in source.sample(range(len(TOKENS)), 6):
            assert one.fork().accept_token(t) == (t in allowed), (schema, style, taken, TOKENS[t])
        text = [t for t in allowed if t < len(TOKENS)]
        if not text:
            break
        token = source.choice([t for t in likely if t in allowed and source.random() < 0.75] or text)
        assert one.accept_token(token) and other.accept_token(token)
        taken.append(TOKENS[token])
    return b"".join(taken) + one.shortest_completion()


@pytest.mark.parametrize("seed", range(len(SCHEMAS)))
def test_items_beside_the_states_are_those_of_the_states(seed: int) -> None:
    """The two ways to compare items give equal masks: a set beside the parse states, and (without a cache of
    masks) the states, which use formulas and automata."""
    source = random.Random(seed)
    for number in range(5):
        compare(source, SCHEMAS[seed], STYLES[(seed + number) % len(STYLES)])


def test_random_items_beside_the_states() -> None:
    walked = 0
    seeds = harness.seeds(300)
    for seed in seeds:
        source, schema = random.Random(seed), captures(Seeded(seed), 2020)
        try:
            text = compare(source, schema, source.choice(STYLES))
        except (structgen.errors.UnsatisfiableSchema, structgen.errors.SchemaTooComplex):
            continue
        assert JsonOracle(schema).accepts(text.decode()), (schema, text)
        walked += 1
    assert walked > len(seeds) // 2


@pytest.mark.parametrize("mantissa", ["1", "1.5", "7.25"])
@pytest.mark.parametrize("sign", ["", "-"])
def test_huge_exponents_are_one_value(mantissa: str, sign: str) -> None:
    """Exponents from 10**18 on. `states` compares the items by automata."""
    beside, states = structgen.Compiler(WORDS), structgen.Compiler(WORDS, cache=False)
    one, other = (each.json_schema(distinct({"type": "number"})).matcher() for each in (beside, states))
    below, first, last = (f"{mantissa}e{sign}{n}" for n in ("9" * 18, "1" + "0" * 18, "9" * 19))
    for matcher in (one, other):
        assert matcher.accept_bytes(f"[{first},{below},".encode())
        assert not matcher.fork().accept_bytes(f"{last},".encode())
    for byte in below[:-1]:
        assert row(one) == row(other)
        assert one.accept_bytes(byte.encode()) and other.accept_bytes(byte.encode())
    assert row(one) == row(other) and not one.accept_bytes(b"9")


@pytest.mark.parametrize("items", [None, INTEGER, STRING, NAME, RECORD])
def test_items_make_no_states(items: object) -> None:
    grammar = structgen.Compiler(BYTES).json_schema(distinct(items))
    matcher, mask = grammar.matcher(), structgen.allocate_bitmask(1, 257)
    known: list[int] = []
    for i in range(2000):
        value = f'"s{i}"' if items in (STRING, NAME) else f'{{"id":{i}}}' if items is RECORD else str(i)
        for byte in ("[,"[i > 0] + value).encode():
            matcher.fill_bitmask(mask)
            assert matcher.accept_token(byte)
        known.append(grammar._core.states)
    assert known[-1] - known[200] < 20
    assert not matcher.fork().accept_bytes(b"," + value.encode() + b"]")
    matcher.rollback(len(value) + 1)
    assert matcher.accept_bytes(b"," + value.encode() + b"]") and matcher.is_accepting()


def test_items_of_a_list_make_no_states() -> None:
    """A new item adds no parse state. An item of a list of 500 texts once added some ten states, of 11 kB in
    all."""
    words = [f"s{i}" for i in range(500)]
    grammar = structgen.Compiler(BYTES).json_schema(distinct({"enum": words}))
    mask, known = structgen.allocate_bitmask(1, 257), 0
    for order in (words, words[::-1]):
        matcher, known = grammar.matcher(), grammar._core.states
        for byte in json.dumps(order, separators=(",", ":")).encode():
            matcher.fill_bitmask(mask)
            assert matcher.accept_token(byte)
        assert matcher.is_accepting()
    assert grammar._core.states == known


NUMBERS = {"additionalProperties": INTEGER}
CROWDS: list[dict[str, object]] = [
    NUMBERS,
    {"propertyNames": {"pattern": "^[a-z]+[0-9]*$"}, "minProperties": 700},
    {"patternProperties": {"^k": INTEGER, "^s$": {}, "^[ab]$": INTEGER}, "additionalProperties": False},
    {"properties": {"k5": INTEGER, "a": INTEGER, "last": {}}, "required": ["last"], **NUMBERS},
    {"properties": {"a": {"type": "array", "items": {"type": "object", **NUMBERS}}}, **NUMBERS},
    {"oneOf": [NUMBERS, {"required": ["last"]}]},
]


@pytest.mark.parametrize("more", CROWDS)
def test_keys_make_no_states(more: dict[str, object]) -> None:
    """A new key adds no parse state. The objects have more keys than the states can hold, so the keys are
    kept beside the states."""
    grammar = structgen.Compiler(BYTES).json_schema({"type": "object", **more})
    matcher, mask = grammar.matcher(), structgen.allocate_bitmask(1, 257)
    known: list[int] = []
    for i in range(2000):
        for byte in (f'{"{,"[i > 0]}"k{i}":{i}').encode():
            matcher.fill_bitmask(mask)
            assert matcher.accept_token(byte)
        known.append(grammar._core.states)
    assert known[-1] - known[1000] < 20
    matcher.rollback(5)  # removes `:1999`
    for key in ("k7", r"k\u0037", r"\u006b1999"):
        other = matcher.fork()
        assert other.accept_bytes(b':0,"' + key.encode()) and not other.accept_token(ord('"'))
        other.fill_bitmask(mask)
        assert not mask[0][1] >> 2 & 1 and not other.accept_bytes(b'":')
    assert matcher.accept_bytes(b':1,"k2000":1')


@pytest.mark.parametrize("seed", range(len(CROWDS)))
def test_many_keys_beside_the_states_are_those_of_the_states(seed: int) -> None:
    """The two ways to keep keys give equal masks: a set beside the parse states, and (without a cache of
    masks) the states."""
    source, schema = random.Random(seed), {"type": "object", **CROWDS[seed]}
    matcher, slow = (
        structgen.Compiler(WORDS, cache=cache).json_schema(schema).matcher() for cache in (True, False)
    )
    for i in range(400):
        for byte in (f'{"{,"[i > 0]}"k{i}":{i}').encode():
            row(matcher)
            token = TOKENS.index(bytes([byte]))
            assert matcher.accept_token(token) and slow.accept_token(token)
    for _ in range(harness.cases(30)):
        beside, states = matcher.fork(), slow.fork()
        back = source.choice([0, 0, source.randint(0, 60), 3500])
        beside.rollback(back), states.rollback(back)
        for step in range(source.randint(1, 40)):
            allowed = row(beside)
            assert allowed == row(states), (schema, step)
            text = [t for t in allowed if t < len(TOKENS)]
            if not text:
                break
            token = source.choice([t for t in KEYS if t in allowed and source.random() < 0.75] or text)
            assert beside.accept_token(token) and states.accept_token(token)
        assert beside.shortest_completion() == states.shortest_completion()
        assert beside.live_bytes() == states.live_bytes()


def numbered(element: str, count: int, open_: str = "[") -> str:
    return open_ + ",".join(element.replace("#", str(i)) for i in range(count))


# long texts whose items or keys are kept beside the parse states
LONG: list[tuple[object, str]] = [
    (distinct(INTEGER), numbered("#", 500)),
    (distinct(INTEGER), numbered("#", 200)),
    (distinct({"type": "number"}), numbered("#.5", 300)),
    (distinct({"type": "integer", "minimum": 5}), numbered("1#", 400)),
    (distinct(STRING), "[" + ",".join(f'"{chr(i)}"' for i in range(35, 91)) + ',"' + "a" * 1024 + '",""'),
    (distinct(NAME), numbered('"s#"', 300)),
    (distinct(), numbered("[#]", 300)),
    (distinct(), '["' + "a" * 1024 + '"'),
    (distinct(RECORD), numbered('{"id":#}', 280)),
    (distinct(distinct(INTEGER)), numbered("[#]", 300)),
    (distinct({"type": "array", "items": RECORD}), numbered('[{"id":#}]', 280)),
    (distinct(distinct(INTEGER, minItems=3), minItems=3), "[[" + ",".join(map(str, range(400))) + "]"),
    ({"type": "object", **CROWDS[0]}, numbered('"k#":#', 280, "{")),
    ({"type": "object", **CROWDS[3]}, numbered('"k#":#', 300, "{")),
    (
        {"properties": {"a": STRING, "b": distinct(INTEGER, minItems=12)}, "required": ["a", "b"]},
        '{"a":"' + "x" * 1024 + '","b":[1,2',
    ),
]


@pytest.mark.parametrize("seed", range(len(LONG)))
def test_long_texts_end_within_a_budget(seed: int) -> None:
    """Rows under a budget are non-empty subsets of the masks. Each text ends within the budget, and a
    rollback gives equal rows."""
    schema, text = LONG[seed]
    grammar = structgen.Compiler(WORDS).json_schema(schema)
    start = [TOKENS.index(bytes([b])) for b in text.encode()]
    for number in range(harness.cases(12)):
        source = random.Random(100 * seed + number)
        left = source.choice([source.randint(60, 120), source.randint(100, 400), 3000])
        matcher, plain = grammar.matcher(max_tokens=len(start) + left), grammar.matcher()
        for t in start:
            if source.random() < 0.1:
                row(matcher), row(plain)
            assert matcher.accept_token(t) and plain.accept_token(t)
        written = bytearray(text.encode())
        for step in range(left + 1):
            allowed, any_ = row(matcher), row(plain)
            assert allowed and set(allowed) <= set(any_), (schema, written[-80:], left, step)
            tokens = [t for t in allowed if t < len(TOKENS)]
            if not tokens or (len(TOKENS) in allowed and source.random() < 0.5):
                break
            token = source.choice([t for t in KEYS if t in tokens and source.random() < 0.9] or tokens)
            if step % 7 == 0:
                fork = matcher.fork()
                assert fork.accept_token(token)
                row(fork)
                fork.rollback(1)
                assert row(fork) == allowed, (schema, written[-80:], left, TOKENS[token])
            assert matcher.accept_token(token) and plain.accept_token(token), (schema, TOKENS[token])
            written += TOKENS[token]
        assert matcher.is_accepting(), (schema, written[-80:])
        if not HUGE.search(written):
            assert JsonOracle(schema).accepts(written.decode(errors="surrogatepass")), (schema, written[-80:])


# ---- budgets of few tokens, compared with enumeration ----

FEW = structgen.Vocabulary.from_bytes(
    [*(bytes([i]) for i in range(256)), *b'\\u0061 ", 1, ], null true 1.0'.split(), b""], eos_token_ids=[263]
)
FEW_END = 263
SMALL: list[dict[str, object]] = [
    *map(
        distinct, ({"type": "integer", "minimum": 0, "maximum": 30}, {"type": "integer"}, {"type": "number"})
    ),
    *map(distinct, ({"enum": [1, 10, "a", None, True]}, {"type": ["boolean", "null", "integer"]})),
    *(distinct({"type": "string", "pattern": p}) for p in ("^[ab]{1,2}$", "^a[ab]*$", "^a(b{3}[ab]*)?$")),
    *(distinct(distinct({"type": "integer"}, **more)) for more in ({}, {"minItems": 2}, {"maxItems": 1})),
    distinct({"type": "array", "items": {"type": "boolean"}}),
    distinct({"type": "integer"}, minItems=6),
    distinct({"type": "object", "additionalProperties": {"enum": [0, 1]}}),
    *(
        {
            "type": "object",
            "propertyNames": {"pattern": p},
            "additionalProperties": {"type": "integer"},
            **more,
        }
        for p in ("^[ab]{1,2}$", "^a[ab]*$")
        for more in ({}, {"minProperties": 4}, {"maxProperties": 3})
    ),
]


def ends_within(matcher: structgen.Matcher, left: int) -> bool:
    """Returns whether at most `left` tokens, the end token included, end the text."""
    if matcher.is_accepting():
        return left >= 1
    if left <= 1:
        return False
    return any(ends_within(after(matcher, t), left - 1) for t in row(matcher) if t != FEW_END)


def after(matcher: structgen.Matcher, token: int) -> structgen.Matcher:
    fork = matcher.fork()
    assert fork.accept_token(token)
    return fork


@pytest.mark.parametrize("seed", range(len(SMALL)))
def test_rows_within_few_tokens_are_those_of_an_enumeration(seed: int) -> None:
    """Under a small budget each token of a row leads to an end, and no row is empty if the fewest tokens are
    left. All finished texts are valid."""
    schema = SMALL[seed]
    oracle = JsonOracle(schema)
    grammars = [
        structgen.Compiler(FEW, cache=c).json_schema(schema, whitespace="compact") for c in (True, False)
    ]
    for number in range(harness.cases(3)):
        source = random.Random(100 * seed + number)
        one, other = (g.matcher() for g in grammars)
        taken: list[int] = []
        for _ in range(source.choice([0, 5, 20, 60])):
            tokens = [t for t in row(one) if t < FEW_END]
            if not tokens:
                break
            taken.append(source.choice(tokens))
            assert one.accept_token(taken[-1]) and other.accept_token(taken[-1])
        needed = one.fork().tokens_needed()
        assert needed == other.fork().tokens_needed(), (schema, taken)
        left = needed + source.choice([0, 1, 2, source.randint(0, 30)])
        while True:
            allowed = row(one, left)
            assert allowed, (schema, taken, left)
            if left <= 3:
                exact = one.mask_exact
                wanted = [t for t in row(other) if t == FEW_END or ends_within(after(other, t), left - 1)]
                assert allowed == wanted if exact else set(allowed) <= set(wanted), (schema, taken, left)
            tokens = [t for t in allowed if t < FEW_END]
            if not tokens or (FEW_END in allowed and source.random() < 0.3):
                break
            taken.append(source.choice(tokens))
            assert one.accept_token(taken[-1]) and other.accept_token(taken[-1])
            left -= 1
        text = FEW.decode(taken)
        assert oracle.accepts(text.decode()), (schema, text)


@pytest.mark.parametrize(
    ("items", "count"),
    [
        ({"type": "object", "additionalProperties": {"type": "string", "minLength": 30}}, 6),
        ({"type": "array", "items": {"type": "string", "minLength": 30}}, 6),
        ({"type": "string", "pattern": "^a(b{30}[a-z]*)?$"}, 10),
        ({"type": ["null", "string"], "minLength": 30}, 6),
        (RECORD, 9),
    ],
)
def test_items_that_must_be_written_and_differ_are_within_the_budget(items: object, count: int) -> None:
    """Of two different objects, only one can be `{}`; the other must be at least `{"":"..."}`. Masks within
    200 tokens once let the text begin with `[{`."""
    grammar = structgen.Compiler(BYTES).json_schema(distinct(items, minItems=count), whitespace="compact")
    needed = grammar.matcher().tokens_needed()
    for left in (needed // 2, needed):
        matcher, source = grammar.matcher(), random.Random(left)
        if left < needed:
            assert budgeted(matcher, left) is None, left
            continue
        while not matcher.is_accepting():
            allowed = row(matcher, left)
            assert allowed, left
            likely = [t for t in allowed if t in b'{}[],"n'] or allowed
            assert matcher.accept_token(source.choice(likely))
            left -= 1


def test_items_are_in_the_account_of_memory() -> None:
    compiler = structgen.Compiler(BYTES, cache_bytes=1 << 20)
    grammar = compiler.json_schema(distinct(INTEGER))
    matcher, alone, count = grammar.matcher(), compiler.byte_size, 0
    assert matcher.accept_bytes(b"[")
    with pytest.raises(structgen.errors.BudgetExceeded, match="this text takes more than 72 MB"):
        for first in range(0, 4_000_000, 50_000):
            assert matcher.accept_bytes("".join(f"{i}," for i in range(first, first + 50_000)).encode())
            count = first + 50_000
            assert compiler.byte_size - alone > 30 * count
    assert count > 500_000
    fork = grammar.matcher().fork()
    assert not matcher.accept_bytes(b"7,"), "it is as it was"
    del matcher
    assert compiler.byte_size < alone + (1 << 20) and fork.accept_bytes(b"[7,")


@pytest.mark.parametrize(
    "item", ['"' + r"\u0061" * 4000 + '"', "[" + "1," * 8000 + "1]", '{"k":"' + "x" * 9000 + '"}']
)
def test_a_token_of_a_long_item_costs_what_one_of_a_short_item_does(item: str) -> None:
    """Each mask asks whether the item that may end here is new. The question takes equal time for long and
    short items, because the engine does not write out the item."""
    matcher, mask = (
        structgen.Compiler(BYTES).json_schema(distinct()).matcher(),
        structgen.allocate_bitmask(1, 257),
    )

    def seconds(text: str) -> float:
        began = time.process_time()
        for byte in text.encode():
            matcher.fill_bitmask(mask)
            assert matcher.accept_token(byte)
        return time.process_time() - began

    seconds("[[1],")
    half = len(item) // 2
    first, second = seconds(item[:half]), seconds(item[half:])
    assert second < 4 * first + 0.2, (first, second)
    for end in b",]":
        assert not matcher.fork().accept_bytes(b"," + item.encode() + bytes([end]))


LETTERS = "x" * 40


@pytest.mark.parametrize(
    ("one", "same"),
    [
        ('"' + "a" * 40 + '"', '"' + r"\u0061" * 40 + '"'),
        ('"' + "\U0001f600" * 20 + '"', '"' + r"\ud83d\ude00" * 20 + '"'),
        ('"' + r"\n\"" * 20 + '"', '"' + r"\u000a\u0022" * 20 + '"'),
        ('"' + "\u00e9" * 40 + '"', '"' + r"\u00E9" * 40 + '"'),
        (f'{{"a":"{LETTERS}","b":[1,2]}}', f'{{"b" : [1.0, 2e0] ,"\\u0061": "{LETTERS}"}}'),
    ],
)
def test_spellings_of_a_long_item_are_equal(one: str, same: str) -> None:
    for first, second in ((one, same), (same, one)):
        matcher = structgen.Compiler(BYTES).json_schema(distinct()).matcher()
        assert matcher.accept_bytes(f"[{first},7,{second[:-1]}".encode())
        assert not matcher.fork().accept_bytes(f"{second[-1]},".encode())
        assert not matcher.fork().accept_bytes(f"{second[-1]}]".encode())
        assert matcher.accept_bytes(b',"c":0}' if second[-1] == "}" else b'c"')


# all numbers that begin with 1e and 17 nines, except for the shortest
LAST_POWERS = "[1e" + 20 * "9" + "".join(f",1e{17 * '9'}{last}" for last in range(10))


@pytest.mark.parametrize(
    ("items", "text", "goes_on"),
    [
        (INTEGER, "[1,2", b",]"),
        ({"type": "null"}, "[null", b"]"),
        ({"type": "boolean"}, "[true,false", b"]"),
        # a larger exponent counts as 10^18 (numbers/decimal.h), so the number keeps its value
        ({"type": "number"}, "[1e" + 20 * "9" + ",1e" + 18 * "9", b",]"),
        ({"type": "number"}, "[1e" + 20 * "9" + ",1e" + 19 * "9", b""),
        ({"type": "number"}, "[1e" + 20 * "9" + ",1e" + 18 * "9" + ",1e" + 18 * "9", b""),
        (INTEGER, "[1e-0,1e" + 20 * "9" + ",1e" + 18 * "9" + ",1e" + 18 * "9", b""),
        ({"type": "number"}, "[1e-" + 20 * "9" + ",1e-" + 18 * "9" + ",1e-" + 18 * "9", b""),
        ({"type": "number"}, LAST_POWERS + ",1e" + 17 * "9", b",]"),
        ({"type": "number"}, LAST_POWERS + ",1e" + 17 * "9" + ",1e" + 17 * "9", b""),
    ],
)
def test_a_text_goes_on_where_a_value_is_left(items: object, text: str, goes_on: bytes) -> None:
    for cache in (True, False):
        matcher = structgen.Compiler(BYTES, cache=cache).json_schema(distinct(items)).matcher()
        assert matcher.accept_bytes(text.encode()) == bool(goes_on), cache
        if goes_on:
            assert {b for b in row(matcher) if b in b",]"} == set(goes_on), cache


def test_a_mask_in_a_long_number_costs_what_reading_it_costs() -> None:
    """All tokens that end the number share one comparison with the earlier items."""
    grammar, mask = (
        structgen.Compiler(WORDS).json_schema(distinct()),
        structgen.allocate_bitmask(1, len(TOKENS) + 1),
    )
    reading, masks = 0.0, 0.0
    for _ in range(20):
        matcher, began = grammar.matcher(), time.process_time()
        assert matcher.accept_bytes(b"[5,0." + b"1" * 50_000)
        read = time.process_time()
        matcher.fill_bitmask(mask)
        reading, masks = reading + read - began, masks + time.process_time() - read
    assert masks < 10 * reading, (masks, reading)


@pytest.mark.parametrize("begun", ["", r"\n"])
def test_a_mask_in_a_long_string_costs_what_one_in_a_short_one_does(begun: str) -> None:
    """The hash of a string grows with each character, so a mask in a long string does not read the string
    again."""
    tokens = [bytes([i]) for i in range(256)] + [bytes([i]) + b'"' for i in b"abcdefgh"]
    vocabulary = structgen.Vocabulary.from_bytes([*tokens, b""], eos_token_ids=[len(tokens)])
    grammar = structgen.Compiler(vocabulary).json_schema(distinct(STRING))
    mask = structgen.allocate_bitmask(1, vocabulary.vocab_size)
    seconds = []
    for length in (100, 400_000):
        matcher = grammar.matcher()
        assert matcher.accept_bytes(f'["b","{begun}'.encode() + b"x" * length)
        matcher.fill_bitmask(mask)
        began = time.process_time()
        for _ in range(100):
            assert matcher.accept_bytes(b"x")
            matcher.fill_bitmask(mask)
        seconds.append(time.process_time() - began)
    assert seconds[1] < 10 * seconds[0] + 0.005, seconds
