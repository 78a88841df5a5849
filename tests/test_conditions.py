"""Conditions on whole texts, `grammar & condition`, compared with enumeration.

The grammar decides membership of a text; other tests check the grammar. Python decides the condition by `in`,
`len` and `re.fullmatch` on bytes. Masks are compared with trials of every token, and every beginning that the
masks allow is the beginning of a text that meets the condition.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import pickle
import random
import re
from collections.abc import Callable

import pytest

import structgen as sg
from oracles import closed, harness, histories, oracle, random_grammars, random_items, ranges
from oracles.random_grammars import DIALECTS, compiled, compilers, draw
from oracles.strategies import Seeded, any_schema
from structgen.checking import bytes_compiler

TOKENS = [bytes([b]) for b in range(256)] + [b"ab", b'a"', b'":', b"11", b""]
END = len(TOKENS) - 1
COMPILER = sg.Compiler(sg.Vocabulary.from_bytes(TOKENS, eos_token_ids=[END]))

CONDITIONS = [
    (sg.without("ab"), lambda t: b"ab" not in t),
    (sg.containing("ab", "bb"), lambda t: b"ab" in t or b"bb" in t),
    (sg.max_bytes(4), lambda t: len(t) <= 4),
    (sg.min_bytes(3) & sg.max_bytes(5), lambda t: 3 <= len(t) <= 5),
    (sg.Regex(".*a.b.*"), lambda t: re.fullmatch(rb".*a.b.*", t) is not None),
    (~sg.containing("a") | sg.containing("b"), lambda t: b"a" not in t or b"b" in t),
]
GRAMMARS = {
    "regex": (COMPILER.regex("[ab]{0,5}c?"), "abc"),
    "gbnf": (COMPILER.gbnf('root ::= "a" root "b" | "ab" | "b" root | "a"'), "ab"),
    "lark": (COMPILER.lark('start: (NAME | "ab" "c")*\nNAME: /[ab]+/\n%ignore "."'), "abc."),
    "schema": (
        COMPILER.json_schema(
            closed({"a": {"enum": [1, "ab"]}, "b": {"enum": [1]}}, ()),
            whitespace="compact",
        ),
        None,
    ),
}


def texts(name):
    if name == "schema":
        found = [b"{}", b'{"a":1}', b'{"a":"ab"}', b'{"b":1}', b'{"a":1,"b":1}', b'{"a":"ab","b":1}']
        return [*found, b'{"b":1,"a":1}', b"{", b'{"a":2}']
    letters = GRAMMARS[name][1]
    return [bytes(map(ord, t)) for n in range(6) for t in itertools.product(letters, repeat=n)]


@pytest.mark.parametrize("which", range(len(CONDITIONS)))
@pytest.mark.parametrize("name", GRAMMARS)
def test_conditions_against_enumeration(name, which):
    grammar, _ = GRAMMARS[name]
    condition, holds = CONDITIONS[which]
    every = texts(name)
    right = {t for t in every if harness.verdict(grammar, t) and holds(t)}
    try:
        found = grammar & condition
    except sg.UnsatisfiableCondition:
        assert not right
        return
    assert {t for t in every if harness.verdict(found, t)} == right
    for text in sorted(right)[:6]:
        for n in range(len(text) + 1):
            matcher = found.matcher()
            assert matcher.accept_bytes(text[:n]), (text, n)
            mask = oracle.mask_of(matcher, END + 1)
            assert (mask == oracle.naive_mask(matcher, END + 1)).all(), text[:n]
            for token in mask.nonzero()[0][:40]:
                fork = matcher.fork()
                assert fork.accept_token(int(token))
                if token != END:
                    whole = text[:n] + TOKENS[token] + fork.shortest_completion()
                    assert harness.verdict(grammar, whole) and holds(whole), whole


def test_what_cannot_be_met_is_named():
    with pytest.raises(sg.UnsatisfiableCondition, match=r"containing\('x'\)") as caught:
        COMPILER.regex("[ab]*") & (sg.max_bytes(3) & sg.containing("x"))
    assert caught.value.condition == "containing('x')"
    with pytest.raises(sg.UnsatisfiableCondition, match="each part alone can be met"):
        COMPILER.regex("[ab]*") & (sg.max_bytes(1) & sg.containing("ab"))


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (lambda: sg.without(), TypeError),
        (lambda: sg.without(""), ValueError),
        (lambda: sg.containing(), ValueError),
        (lambda: sg.containing(1), TypeError),
        (lambda: sg.max_bytes(-1), ValueError),
        (lambda: sg.min_bytes(1.5), TypeError),
        (lambda: sg.Regex(b"a"), TypeError),
        (lambda: COMPILER.regex("a") & "a", TypeError),
        (lambda: COMPILER.regex("a") & sg.Regex("("), sg.GrammarError),
    ],
)
def test_bad_conditions(made, error):
    with pytest.raises(error):
        made()


def test_a_conditioned_grammar_is_one_like_any_other():
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    grammar = COMPILER.json_schema({**schema, "additionalProperties": False}, whitespace="compact")
    found = grammar & sg.containing("ab") & sg.without("abc")
    text = found.matcher().shortest_completion()
    assert "ab" in json.loads(text)["name"]
    assert harness.verdict(pickle.loads(pickle.dumps(found)), text)
    middle = found.infill('{"name":"', '"}')
    assert (
        harness.verdict(middle, b"ab")
        and not harness.verdict(middle, b"abc")
        and not harness.verdict(middle, b"a")
    )


# ---- conditions as an argument of calls ----


def test_a_range_that_no_text_has_inside_other_conditions() -> None:
    """No text meets an empty range of bytes (least above most). Inside a larger condition, texts of exactly
    `most` bytes once met the range."""
    none = sg.min_bytes(3) & sg.max_bytes(1)
    plain = COMPILER.regex("[ab]{0,2}")
    assert harness.verdict(plain & ~none, b"a")
    both = plain & (sg.min_bytes(2) | none)
    assert [t for t in (b"", b"a", b"ab") if harness.verdict(both, t)] == [b"ab"]
    for grammar in (plain, sg.Compiler(sg.Vocabulary.from_bytes([b"a", b"b", b""], [2])).regex("[ab]{0,2}")):
        with pytest.raises(sg.UnsatisfiableCondition):
            grammar & none
        with pytest.raises(sg.UnsatisfiableCondition):
            grammar & (sg.min_bytes(2) & (sg.max_bytes(1) & sg.containing("a")))


@pytest.mark.parametrize("pattern", ['.+[ab"]', ".+", '(?s:.)+"', '[^\n]+"', ".{1,9}b"])
def test_a_complement_beside_a_run_that_has_quotes(pattern: str) -> None:
    """The mask of the intersection once was the mask of a string's body, without quotes and control
    characters."""
    grammar = COMPILER.regex(pattern) & ~~sg.containing("a")
    for text in (b"a", b'"', b'a"', b'"a'):
        matcher = grammar.matcher()
        assert matcher.accept_bytes(text)
        row = oracle.mask_of(matcher, END + 1)
        for token in range(END):
            assert bool(row[token]) is matcher.fork().accept_token(token), (pattern, text, TOKENS[token])


def test_a_condition_beside_a_constraint() -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"enum": ["fool", "Ann", "Bob"]}},
        "required": ["name"],
    }
    result = sg.generate(None, "the name is fool", schema, condition=sg.without("fool", "Ann"))
    assert result.value == {"name": "Bob"}
    for result in sg.sample(None, "x", schema, n=6, seed=1, condition=sg.containing("Ann", "Bob")):
        assert json.loads(result.text)["name"] in ("Ann", "Bob")
    text = sg.generate(None, "hello", condition=sg.max_bytes(9) & sg.min_bytes(3), max_tokens=12).text
    assert 3 <= len(text.encode()) <= 9
    with pytest.raises(TypeError, match="condition= takes what sg.without"):
        sg.generate(None, "x", schema, condition="fool")
    with pytest.raises(sg.UnsatisfiableCondition):
        sg.generate(None, "x", schema, condition=sg.without("name"))


OPEN = {"properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.mark.parametrize("spellings", [{}, {"whitespace": "compact", "strings": "plain", "numbers": "plain"}])
@pytest.mark.parametrize(
    ("schema", "begun"),
    [
        (OPEN, b""),
        ({**OPEN, "type": "object"}, b'{"other":[{}],"n'),
        ({"type": "object", "additionalProperties": OPEN}, b'{"b":{"name":"x"},"a":{'),
        ({"type": "array", "items": OPEN, "uniqueItems": True, "minItems": 3}, b'[{"name":"x"},{"na'),
        ({"type": "object", "minProperties": 3}, b'{"zeb'),
    ],
)
def test_a_phrase_is_completed_in_open_objects(schema, begun, spellings) -> None:
    grammar = COMPILER.json_schema(schema, **spellings) & sg.containing("zebra")
    matcher = grammar.matcher()
    assert matcher.accept_bytes(begun)
    rest = matcher.shortest_completion()
    assert b"zebra" in begun + rest and len(rest) < 60
    assert harness.verdict(grammar, begun + rest)
    assert matcher.tokens_needed() <= len(rest) + 1


@pytest.mark.parametrize("seed", range(60))
def test_completions_of_random_schemas_meet_the_condition(seed: int) -> None:
    """The engine completes a text behind every token, and each completion meets the condition. Under seed 85
    a completion once had two equal items despite uniqueItems."""
    source = random.Random(seed + 30)
    word = source.choice([b"ab", b"zebra", b"a", b"1"])
    condition, meets = source.choice(
        [
            (sg.containing(word), lambda text: word in text),
            (sg.without(word), lambda text: word not in text),
            (sg.Regex("[ -~]*"), lambda text: re.fullmatch(rb"[ -~]*", text) is not None),
        ]
    )
    schema = any_schema(Seeded(seed + 30))
    try:
        grammar = COMPILER.json_schema(schema) & condition
    except (sg.UnsatisfiableSchema, sg.UnsatisfiableCondition, sg.BudgetExceeded, sg.SchemaTooComplex):
        return
    matcher, text = grammar.matcher(), b""
    unasked = (sg.Compiler(COMPILER.vocabulary).json_schema(schema) & condition).matcher()
    row, same = sg.allocate_bitmask(1, len(TOKENS)), sg.allocate_bitmask(1, len(TOKENS))
    for _ in range(10):
        whole = text + matcher.shortest_completion()
        assert harness.verdict(grammar, whole) and meets(whole)
        matcher.fill_bitmask(row)
        unasked.fill_bitmask(same)
        assert (row == same).all(), "a mask depends on the completions that were asked for"
        allowed = [t for t in range(len(TOKENS)) if row[0][t // 32].item() >> (t % 32) & 1]
        token = source.choice(allowed)
        if token == END:
            break
        assert matcher.accept_token(token) and unasked.accept_token(token)
        text += TOKENS[token]


def test_a_phrase_beside_a_type_is_generated() -> None:
    for schema in (OPEN, {**OPEN, "type": "object"}):
        for tokens in (20, 200):
            condition = sg.containing("zebra")
            text = sg.generate(None, "The order", schema, condition=condition, max_tokens=tokens).text
            assert "zebra" in text and json.loads(text)


def test_grammars_with_other_conditions_are_others() -> None:
    plain = COMPILER.regex("[ab]{1,4}")
    one, two = plain & sg.without("ab"), plain & sg.without("ba")
    assert len({plain._identity(), one._identity(), two._identity()}) == 3
    assert one._identity() == (COMPILER.regex("[ab]{1,4}") & sg.without("ab"))._identity()
    assert "without" in repr(one) and "[ab]{1,4}" in repr(one)


@pytest.mark.parametrize(
    ("flags", "status"),
    [
        (["--without", "fool"], 1),
        (["--without", "b", "c"], 0),
        (["--containing", "oo"], 0),
        (["--containing", "bar"], 1),
        (["--max-bytes", "5"], 1),
        (["--min-bytes", "6"], 0),
    ],
)
def test_the_command_line_takes_conditions(flags: list[str], status: int, tmp_path, capsys) -> None:
    from structgen.cli.main import main

    (tmp_path / "schema.json").write_text('{"type": "string"}')
    (tmp_path / "value.json").write_text('"fool"')
    assert main(["check", str(tmp_path / "schema.json"), str(tmp_path / "value.json"), *flags]) == status


@pytest.mark.parametrize(
    "rules",
    [
        "start: (start)? N", "start: opt N\nopt: start |", "start: [start] N", "start: start? (N | A)",
        "start: start N | N", "start: N start?", "start: N+", "start: a N\na: N?",
        "start: x? a N\na: start?\nx: A",
    ],
)  # fmt: skip
@pytest.mark.parametrize("ignore", ["", '%ignore " "\n'])
def test_recursion_behind_something_optional(rules: str, ignore: str) -> None:
    """An optional part stands behind a lexeme and reads nothing. The engine must still enforce which bytes
    may not follow the lexeme."""
    plain = COMPILER.lark(rules + "\nN: /[0-9]+/\nA: /[a-z]/\n" + ignore)
    texts = ["".join(t).encode() for n in range(5) for t in itertools.product("1a ", repeat=n)]
    for condition, holds in (
        (sg.max_bytes(3), lambda t: len(t) <= 3),
        (sg.containing("1a", "11"), lambda t: b"1a" in t or b"11" in t),
    ):
        grammar = plain & condition
        for text in texts:
            assert harness.verdict(grammar, text) == (harness.verdict(plain, text) and holds(text)), text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_random_grammars_with_conditions(dialect: str) -> None:
    every = [t.encode() for t in random_grammars.texts(4)]
    compiler, met = compilers()[0], 0
    judged = (
        (sg.max_bytes(3), lambda t: len(t) < 4),
        (sg.containing("a") & sg.min_bytes(2), lambda t: b"a" in t and len(t) > 1),
    )
    for seed in range(100, 100 + harness.cases(40)):
        plain = compiled(draw(Seeded(seed), dialect), dialect, compiler)
        if plain is None:
            continue
        for condition, holds in judged:
            right = {t for t in every if holds(t) and harness.verdict(plain, t)}
            try:
                grammar = plain & condition
            except sg.UnsatisfiableCondition:
                assert not right, (seed, condition)
                continue
            assert {t for t in every if harness.verdict(grammar, t)} == right, (seed, condition)
            met += bool(right)
    assert met > harness.cases(20)


def test_what_may_be_left_out_does_not_count_as_read() -> None:
    """`"a"?` reads an `a` or nothing. The text contains an `a` only if the part reads one."""
    plain = COMPILER.gbnf('root ::= y "b" "a"?\ny ::= root | ""')
    grammar = plain & sg.containing("a")
    assert [t for t in (b"b", b"bb", b"ba", b"bab", b"bba") if harness.verdict(grammar, t)] == [
        b"ba",
        b"bab",
        b"bba",
    ]


def test_the_condition_may_stand_first_and_phrases_may_be_a_list() -> None:
    grammar = sg.containing(["ab", "b"], "c") & COMPILER.regex("[abc]{2}")
    assert [t for t in (b"aa", b"ab", b"ca") if harness.verdict(grammar, t)] == [b"ab", b"ca"]
    assert repr(sg.without(["a"], "b")) == "without('a', 'b')"
    for wrong in ([], ""):
        with pytest.raises(ValueError, match="phrase"):
            sg.containing(wrong)
    with pytest.raises(TypeError):
        sg.containing(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        3 & COMPILER.regex("a")  # type: ignore[operator]


def test_what_does_not_meet_a_condition_is_explained() -> None:
    grammar = COMPILER.json_schema({"type": "string"}) & sg.without("fool") & sg.max_bytes(10)
    assert grammar.explain('"good"') is None and grammar.parse('"good"') == "good"
    found = grammar.explain('"a fool"')
    assert found is not None and (found.kind, found.offset, found.instance) == ("condition", 6, "")
    assert found.problem == "the text does not meet the condition: without('fool')"
    assert "max_bytes(10)" in str(grammar.explain('"a long text"'))
    assert grammar.explain("1").kind == "keyword"
    with pytest.raises(ValueError, match="JSON Schema"):
        (COMPILER.regex("a") & sg.max_bytes(3)).explain("b")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "not": {"uniqueItems": True}},
        {"oneOf": [{}, {"type": "array", "uniqueItems": True, "maxItems": 2}]},
    ],
)
def test_items_that_have_to_be_equal_are_refused(schema) -> None:
    """The engine does not decide which equal items may stand before the condition becomes impossible. So it
    refuses the schema."""
    with pytest.raises(sg.errors.SchemaTooComplex, match="two items have to be equal"):
        COMPILER.json_schema(schema, whitespace="compact") & sg.without("x")


def test_few_values_in_many_spellings_that_have_to_differ_are_refused() -> None:
    schema = {"type": "array", "items": {"enum": [[1], [2]]}, "uniqueItems": True}
    with pytest.raises(sg.errors.SchemaTooComplex, match="few values in many spellings"):
        COMPILER.json_schema(schema) & sg.without("x")


def test_items_that_are_compared_against_enumeration() -> None:
    """The engine assumed that a captured item differs from all other items. Here it cannot differ, and
    `["b","b"` was wrongly allowed as a beginning."""
    compiler, decided = random_items.json_compiler(), 0
    for seed in harness.seeds(60):
        decided += random_items.check_conditions(seed, compiler)[0]
    assert decided > harness.cases(100)


@pytest.mark.parametrize("rest", ["", '%ignore "."\n'])
def test_conditions_on_middles_against_enumeration(rest: str) -> None:
    """The grammar of a middle, the text between a prefix and a suffix, marks the border of the suffix. No
    condition counts the mark as a byte."""
    for terminals in (("/a/", "/[b]/"), ("/a+/", "/b+/"), ('"a"', '"b"'), ("/[ab]/", '"b"')):
        grammar = COMPILER.lark(f"start: A B A B\nA: {terminals[0]}\nB: {terminals[1]}\n{rest}")
        for prefix, suffix in [("aba", "b"), ("ab", "b"), ("a", "ab"), ("ab", "ab"), ("", "b"), ("ab", "")]:
            middles = grammar.infill(prefix, suffix)
            for condition, meets in CONDITIONS[:4]:
                right = set()
                for n in range(5):
                    for letters in itertools.product(b"ab.", repeat=n):
                        if meets(bytes(letters)) and harness.verdict(middles, bytes(letters)):
                            right.add(bytes(letters))
                try:
                    both = middles & condition
                except sg.UnsatisfiableCondition:
                    assert not right, (terminals, prefix, suffix, condition)
                    continue
                for n in range(5):
                    for letters in itertools.product(b"ab.", repeat=n):
                        text = bytes(letters)
                        assert harness.verdict(both, text) == (text in right), (
                            terminals,
                            prefix,
                            suffix,
                            text,
                        )


@pytest.mark.parametrize(
    ("schema", "condition"),
    [
        ({"type": "object", "minProperties": 2}, sg.max_bytes(11)),
        ({"type": "object", "minProperties": 3}, sg.max_bytes(18)),
        ({"type": "array", "minItems": 3, "uniqueItems": True}, sg.Regex(r"\[[12,]{1,5}\]")),
        (
            {
                "type": "object",
                "minProperties": 3,
                "additionalProperties": {"type": "boolean"},
                "required": ["a"],
            },
            sg.max_bytes(26),
        ),
        (
            {"type": "object", "minProperties": 1, "patternProperties": {"^a": {"type": "null"}}},
            sg.without("true") & sg.max_bytes(12),
        ),
        (
            {"type": "array", "minItems": 2, "uniqueItems": True, "items": {"type": "object"}},
            sg.containing('"b":1') & sg.max_bytes(14),
        ),
    ],
)
def test_a_mask_has_no_token_that_is_refused_and_an_end_without_a_text_is_told(schema, condition) -> None:
    """Under a condition the engine does not know how many different keys or items are still possible. Masks
    were once empty there, or had tokens that lead to no text, and were still called exact."""
    pieces = [bytes([b]) for b in range(256)] + [
        b'":[],"',
        b'":{}',
        b'":1',
        b'{"',
        b'b":1},{',
        b'"b":1}',
        b"",
    ]
    compiler = sg.Compiler(sg.Vocabulary.from_bytes(pieces, eos_token_ids=[len(pieces) - 1]))
    try:
        grammar = compiler.json_schema(schema, property_order="any", whitespace="compact") & condition
    except sg.UnsatisfiableCondition:
        return
    for seed in range(20):
        chance, matcher = random.Random(seed), grammar.matcher()
        while not matcher.is_terminated():
            row = sg.allocate_bitmask(1, len(pieces))
            try:
                matcher.fill_bitmask(row)
            except sg.BudgetExceeded as error:
                assert "differ" in str(error)
                break
            allowed = [t for t in range(len(pieces)) if row[0, t >> 5] >> (t & 31) & 1]
            assert allowed
            if matcher.num_steps > 40:
                break
            for token in allowed:
                assert matcher.fork().accept_token(token), (matcher.num_steps, token)
            matcher.accept_token(chance.choice(allowed))


def test_trials_within_a_range_are_counted_by_what_they_add() -> None:
    """The tables of regexes shrank during a trial, so the count of the trial's work fell below zero. Every
    later mask then refused to try a token."""
    source = random.Random(1)
    letters = b"abcdefghijklmnopqrstuvwxyz"
    words = sorted({bytes(source.choices(letters, k=source.randint(2, 8))) for _ in range(300)})
    pieces = [bytes([b]) for b in range(256)] + [w + source.choice([b"", b'"', b'":']) for w in words] + [b""]
    vocabulary = sg.Vocabulary.from_bytes(pieces, eos_token_ids=[len(pieces) - 1])
    row = sg.allocate_bitmask(1, len(pieces))

    def masks(compiler):
        plain = compiler.json_schema({"properties": {"uploaded": {"type": "boolean"}}}, whitespace="compact")
        matcher = (plain & sg.without("zz") & sg.max_bytes(18)).matcher()
        for byte in b'{"uploaded":true}':
            matcher.fill_bitmask(row)
            yield matcher.mask_exact, row.tobytes()
            assert matcher.accept_bytes(bytes([byte]))

    fresh = list(masks(sg.Compiler(vocabulary)))
    for size in range(40, 64):
        compiler = sg.Compiler(vocabulary)
        compiler.json_schema({"enum": [f"{i}{words[i % len(words)].decode()}" for i in range(400 * size)]})
        among = "|".join(f"{i}.{{{i % 7}}}{words[i % len(words)].decode()}" for i in range(20 * size))
        matcher = compiler.regex(among).matcher()
        matcher.fill_bitmask(row)
        for i in range(20 * size):
            matcher.fork().accept_bytes(b"%dabcdefgh" % i)
        assert list(masks(compiler)) == fresh


@pytest.mark.parametrize("condition", [sg.without("zz"), sg.Regex(".*"), sg.containing("77")])
def test_a_name_that_is_begun_needs_the_longest_of_the_names_that_it_may_be(condition) -> None:
    """Behind the beginning of a key, the bound on bytes must hold for the longest key with this beginning.
    The engine once used the bound of another key, so a mask allowed a token that left too few bytes."""
    names = ["name", "location", "from_year"]
    grammar = sg.Compiler(histories.VOCABULARY).json_schema(
        closed({name: {"type": "integer"} for name in names}, names), whitespace="spaced"
    )
    for begun in (b'{"', b'{"n', b'{"name": 1, "'):
        matcher = (grammar & condition).matcher()
        assert matcher.accept_bytes(begun)
        least = matcher.tokens_needed()
        for left in range(least, least + 6):
            for token in oracle.mask_of(matcher, histories.END + 1, left).nonzero()[0].tolist():
                behind = matcher.fork()
                assert behind.accept_token(token) and behind.tokens_needed() < left, (begun, left, token)


def test_the_plan_of_a_text_is_followed_within_a_range_of_bytes() -> None:
    """A mask under a budget follows the text that the engine planned. The engine once changed to a text of
    equally many bytes that needs one token more, and the mask at 38 tokens was empty."""
    names = {
        "negativeInteger": {"maximum": -1, "type": "integer"},
        "nonEmptyString": {"minLength": 1, "type": "string"},
        "positiveInteger": {"minimum": 1, "type": "integer"},
    }
    schema = {"type": "object", "properties": names, "required": [*names]}
    grammar = sg.Compiler(histories.VOCABULARY).json_schema(
        schema, property_order="any", whitespace="compact"
    )
    source, matcher = random.Random(0), (grammar & sg.containing("77") & sg.max_bytes(400)).matcher()
    left = matcher.tokens_needed()
    while not matcher.is_terminated():
        allowed = oracle.mask_of(matcher, histories.END + 1, left).nonzero()[0].tolist()
        assert matcher.accept_token(source.choice(allowed))
        left -= 1


@pytest.mark.parametrize("condition", [sg.without("zz"), sg.Regex(".*")])
def test_the_fewest_tokens_of_items_that_differ(condition) -> None:
    """The fewest tokens are those of a text whose items differ. A search that ignores captured text counted
    the tokens of `["",""]`, whose items are equal."""
    schema = {"type": "array", "minItems": 2, "maxItems": 3, "uniqueItems": True}
    schema["items"] = {"type": "string", "pattern": "^(ab)*$"}
    grammar = sg.Compiler(histories.VOCABULARY).json_schema(schema, whitespace="compact")
    assert (grammar & condition).matcher().tokens_needed() == grammar.matcher().tokens_needed() == 5


def test_the_number_that_suffices_has_a_mask() -> None:
    """`tokens_needed` tried the numbers from 2 up, and found 61 with what the smaller trials had learned. The
    mask at 61 tokens tried 61 alone, then all smaller numbers."""
    strings = {name: {"type": "string"} for name in ("access_token", "refresh_token")}
    properties = strings | {"expires_in": {"type": "number"}, "token_type": {"enum": ["bearer"]}}
    grammar = sg.Compiler(histories.VOCABULARY).json_schema(
        closed(properties, ["token_type", "access_token", "expires_in", "refresh_token"]),
        property_order="any",
        whitespace="compact",
    )
    source, matcher = random.Random(0), (grammar & sg.Regex(".*[0-9]{2}.*")).matcher()
    left = matcher.tokens_needed()
    while not matcher.is_terminated():
        allowed = oracle.mask_of(matcher, histories.END + 1, left).nonzero()[0].tolist()
        assert matcher.accept_token(source.choice(allowed))
        left -= 1


def test_a_range_of_bytes_beside_a_forbidden_text() -> None:
    """The engine charged ten times the real work for a list of a key's texts, so the call met its limit of
    work."""
    grammar = (
        COMPILER.json_schema({"type": "object"}, whitespace="compact") & sg.without("a") & sg.min_bytes(31)
    )
    text = grammar.matcher().shortest_completion()
    assert len(text) == 31 and b"a" not in text and isinstance(json.loads(text), dict)


def test_a_key_in_a_range_is_judged_without_its_text_if_the_text_does_not_matter() -> None:
    """A key with two more characters fits 12 bytes. The mask allowed the key, but reading it looked at a
    state for each key, gave up, and refused."""
    schema = {"type": "object", "properties": {"b": {"type": "integer"}}, "minProperties": 1}
    schema["additionalProperties"] = {"enum": ["a", "ab", 1]}
    matcher = (
        COMPILER.json_schema(schema, whitespace="compact") & sg.min_bytes(12) & sg.max_bytes(12)
    ).matcher()
    for byte in b'{"aaa\xde\x80x":1}':
        assert oracle.mask_of(matcher, END + 1)[byte] and matcher.accept_bytes(bytes([byte])), byte
    assert matcher.is_accepting()


@pytest.mark.parametrize("names", [("na", "nb"), ("nb", "na")])
def test_a_key_behind_a_backslash_is_completed_by_the_name_that_ends_soonest(names: tuple[str, str]) -> None:
    """A completion took the first name that begins so. `na` needs `nb` as a second member, so another name
    ends sooner."""
    properties = {name: {"enum": ["a", 1]} for name in names}
    schema = {"properties": properties, "required": ["nb"], "additionalProperties": False, "type": "object"}
    matcher = COMPILER.json_schema(schema, whitespace="compact").matcher()
    assert matcher.accept_bytes(b'{"\\u') and matcher.shortest_completion() == b'006Eb":1}'


def ranged(plain, least: int, most: int | None) -> sg.CompiledGrammar | None:
    """Returns the grammar within a range of bytes; None if no text is in the range."""
    condition = sg.min_bytes(least) if most is None else sg.min_bytes(least) & sg.max_bytes(most)
    try:
        return plain & condition
    except sg.UnsatisfiableCondition:
        return None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_masks_in_a_range_of_bytes_against_enumeration(dialect: str) -> None:
    """For every prefix: a mask allows a token exactly if some text of the range begins with prefix and
    token."""
    every = ["".join(t).encode() for n in range(4) for t in itertools.product("abcABC", repeat=n)]
    asked = parts = 0
    for seed in range(300, 300 + harness.cases(60)):
        plain = compiled(draw(Seeded(seed), dialect), dialect, COMPILER)
        if plain is None:
            continue
        words = [t for t in every if harness.verdict(plain, t)]
        source = random.Random(seed)
        most = source.randint(0, 3)
        least = source.choice([0, source.randint(0, most)])
        right = [t for t in words if least <= len(t) <= most]
        grammar = ranged(plain, least, most)
        assert bool(right) == (grammar is not None), (seed, least, most)
        if grammar is None:
            continue
        begun = {t[:n] for t in right for n in range(len(t) + 1)}
        assert {t for t in every if harness.verdict(grammar, t)} == set(right), (seed, least, most)
        for prefix in sorted(begun)[:40]:
            matcher = grammar.matcher()
            assert matcher.accept_bytes(prefix), (seed, prefix)
            row = oracle.mask_of(matcher, END + 1)
            wanted = [prefix + t in begun if t else prefix in right for t in TOKENS]
            assert not any(a and not w for a, w in zip(row, wanted, strict=True)), (seed, prefix)
            assert not matcher.mask_exact or row.tolist() == wanted, (seed, least, most, prefix)
            asked, parts = asked + 1, parts + (not matcher.mask_exact)
            if prefix not in right:
                assert prefix + matcher.shortest_completion() in right, (seed, prefix)
    assert asked > harness.cases(100) and parts <= asked // 20


@pytest.mark.parametrize("most_items", [1, 2, 3])
def test_masks_of_bounded_strings_in_a_range_of_bytes(most_items: int) -> None:
    """A bound for all tokens of a mask decides as a look at each of them. Where strings and their number are
    bounded, only some of the tokens leave a text of the range."""
    tokens = [bytes([b]) for b in range(256)] + [b"aa", b"a" * 7, b'a"', b'""', b'"a', b'"]', b"a" * 11]
    compiler = sg.Compiler(sg.Vocabulary.from_bytes([*tokens, b"</s>"], [len(tokens)], [len(tokens)]))
    plain = compiler.grammar(f'start: "[" item{" item?" * (most_items - 1)} "]"\nitem: /"a{{0,12}}"/')
    words = {
        b"[" + b"".join(b'"' + b"a" * n + b'"' for n in some) + b"]"
        for k in range(1, most_items + 1)
        for some in itertools.product(range(13), repeat=k)
    }
    for least, most in [(0, 9), (5, None), (12, None), (20, None), (29, None), (7, 24), (26, 28), (17, 18)]:
        grammar = ranged(plain, least, most)
        right = {t for t in words if least <= len(t) <= (most or 99)}
        begun = {t[:n] for t in right for n in range(len(t) + 1)}
        assert (grammar is None) == (not right)
        for prefix in sorted(begun)[:: 1 + len(begun) // 60]:
            matcher = grammar.matcher()
            assert matcher.accept_bytes(prefix), prefix
            row = oracle.mask_of(matcher, len(tokens) + 1)
            wanted = [prefix + t in begun for t in tokens] + [prefix in right]
            assert row.tolist() == wanted, (least, most, prefix)


@pytest.mark.parametrize("most_characters", [30, None])
def test_a_token_that_ends_a_string_in_a_range_of_bytes(most_characters: int | None) -> None:
    """A mask had the tokens that end a string, although the text was too short for the range. Accepting these
    tokens failed."""
    tokens = [bytes([b]) for b in range(256)] + [b"a" * 6, b'a"', b'aa"', b'a"}']
    compiler = sg.Compiler(sg.Vocabulary.from_bytes([*tokens, b"</s>"], [len(tokens)], [len(tokens)]))
    characters = {"type": "string"} | ({"maxLength": most_characters} if most_characters else {})
    for schema, begin, end in ((characters, b'"', b'"'), (closed({"a": characters}, "a"), b'{"a":"', b'"}')):
        grammar = compiler.json_schema(schema, whitespace="compact") & sg.min_bytes(21) & sg.max_bytes(60)
        for written in range(24):
            matcher = grammar.matcher()
            assert matcher.accept_bytes(begin + b"a" * written), written
            row = oracle.mask_of(matcher, len(tokens) + 1)
            for token, piece in enumerate(tokens[256:] + [b'"'], 256):
                more, quote, behind = piece.partition(b'"')
                least = len(begin + more + end) + written
                fits = end.startswith(quote + behind) and (not quote or least >= 21)
                token = token if token < len(tokens) else ord('"')
                assert row[token] == fits == matcher.validate_tokens([token]), (written, piece)


@pytest.mark.parametrize("value", [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}])
@pytest.mark.parametrize("size", range(8, 18))
def test_a_member_within_an_exact_number_of_bytes(value: dict[str, object], size: int) -> None:
    """Behind the key, the text may grow by digits up to a bound, or by further members without a bound. Only
    the latter range of lengths was known. A search made a state for each key of a further member and gave up,
    so a token of the mask was refused."""
    schema = {"type": "object", "additionalProperties": value}
    grammar = COMPILER.json_schema(schema, whitespace="compact", numbers="canonical", strings="plain")
    matcher, text, source = (grammar & sg.min_bytes(size) & sg.max_bytes(size)).matcher(), b"", Seeded(size)
    while not matcher.is_terminated():
        row = oracle.mask_of(matcher, END + 1).nonzero()[0].tolist()
        assert row and all(matcher.validate_tokens([token]) for token in row), text
        token = ord('"') if text == b'{"' else source.pick(row)
        assert matcher.accept_token(token)
        text += TOKENS[token]
    assert len(text) == size and isinstance(json.loads(text), dict)


TWO_KEYS: dict[str, object] = {"type": "object", "minProperties": 2}
NESTED = {"type": "object", "properties": {"b": {"type": "string", "maxLength": 6}}, "required": ["b"]}


@pytest.mark.parametrize(
    ("schema", "whitespace", "size", "begin"),
    [
        # Only the completion of all captured texts is in the range, and the key's own one is shorter.
        (TWO_KEYS | {"properties": {"a": NESTED}}, "flexible", 30, b'{"zzzzzzzzzz'),
        # No completion holds for all captured texts: the second key must differ from the first one.
        (TWO_KEYS, "compact", 30, b"{"),
        ({"type": "object", "minProperties": 3}, "compact", 49, b"{"),
        # Within a key only its own completion shows the longer texts: another member behind the second key.
        (TWO_KEYS | {"additionalProperties": {"enum": [1, 22]}}, "compact", 80, b'{"a":1,"b'),
        (
            {"type": "array", "items": TWO_KEYS | {"additionalProperties": {"enum": [1, 22]}}, "minItems": 1},
            "compact",
            54,
            b'[{"',
        ),
        # The blanks give an early range of lengths, and a further key a wide one.
        (closed({}) | TWO_KEYS | {"additionalProperties": {"enum": [1, 22]}}, "flexible", 38, b'{"ab":1'),
    ],
)
@pytest.mark.parametrize("units", [200_000, 10_000_000])
def test_a_token_of_a_row_within_an_exact_number_of_bytes_is_accepted(
    schema: dict[str, object], whitespace: str, size: int, begin: bytes, units: int
) -> None:
    """Rows that called themselves inexact had tokens that were refused afterwards, or were empty."""
    compiler = sg.Compiler(COMPILER.vocabulary, limits=sg.Limits(mask=units))
    plain = compiler.json_schema(schema, whitespace=whitespace, strings="plain", numbers="plain")
    grammar = plain & sg.min_bytes(size) & sg.max_bytes(size)
    for seed in harness.seeds(6):
        matcher, text, source = grammar.matcher(), begin, random.Random(seed)
        assert matcher.accept_bytes(begin)
        while not matcher.is_terminated():
            row = oracle.mask_of(matcher, END + 1).nonzero()[0].tolist()
            assert row and all(matcher.fork().accept_token(token) for token in row), (seed, text)
            token = source.choice(row)
            assert matcher.accept_token(token), (seed, text)
            text += TOKENS[token] if token < END else b""
        assert len(text) == size, (seed, text)
        json.loads(text)


NUMBER_AND_EMPTY = closed({"x": {"type": "number"}, "y": {"const": ""}})

MAIL_AND_SHORT = closed(
    {"x": {"type": "string", "format": "idn-email"}, "y": {"type": "string", "maxLength": 5}}, ("x", "y")
)
TWO_OF_TWO_KEYS = {
    "type": "array",
    "minItems": 2,
    "items": {"type": "object", "minProperties": 2, "additionalProperties": {"const": 1}},
}


def array_of(string: dict[str, object], **more: object) -> dict[str, object]:
    return {"type": "array", "items": {"type": "string"} | string, **more}


@pytest.mark.parametrize(
    ("schema", "whitespace", "units", "least", "most", "begin"),
    [
        (NUMBER_AND_EMPTY, "flexible", 20_000, 116, 117, b'{"x'),
        (array_of({"format": "hostname"}), "compact", 1_000_000, 20, 30, b""),
        (array_of({"format": "ipv6"}), "compact", 1_000_000, 28, 28, b"["),
        (array_of({"format": "ipv6"}), "compact", 1_000_000, 30, 33, b"["),
        (array_of({"format": "ipv6"}), "compact", 1_000_000, 59, 62, b"["),
        (array_of({}, uniqueItems=True, minItems=2), "compact", 1_000_000, 35, None, b'["'),
        # A step of the search takes 3,000 units.
        (MAIL_AND_SHORT, "compact", 1_000_000, 28, 29, b'{"x":"'),
        # The keys of the second object need more bytes than two keys without their texts.
        (TWO_OF_TWO_KEYS, "compact", 10_000_000, 32, 32, b'[{"":1,"'),
        ({"type": "string", "format": "ipv4"}, "compact", 20_000, 29, 29, b'"'),
        ({"type": "string", "format": "uuid"}, "compact", 20_000, 118, 118, b'"'),
    ],
)
def test_a_text_of_a_range_is_found_among_many(
    schema: dict[str, object], whitespace: str, units: int, least: int, most: int | None, begin: bytes
) -> None:
    """A text of the range exists, but too many states stand behind as many bytes. A search level by level met
    its limit of states, and the row was empty."""
    compiler = sg.Compiler(COMPILER.vocabulary, limits=sg.Limits(mask=units))
    plain = compiler.json_schema(schema, whitespace=whitespace)
    grammar = ranged(plain, least, most)
    for seed in harness.seeds(6):
        matcher, text, source = grammar.matcher(), begin, random.Random(seed)
        assert matcher.accept_bytes(begin)
        while not matcher.is_terminated() and len(text) < 150:
            row = oracle.mask_of(matcher, END + 1).nonzero()[0].tolist()
            for token in source.sample(row, min(6, len(row))):
                assert matcher.fork().accept_token(token), (seed, text, token)
            token = source.choice(row)
            assert matcher.accept_token(token), (seed, text)
            text += TOKENS[token] if token < END else b""
        assert len(text) >= (least if matcher.is_terminated() else 150), (seed, text)
        assert most is None or len(text) <= most, (seed, text)
        assert not matcher.is_terminated() or harness.verdict(plain, text)


def test_a_range_between_the_lengths_of_items_that_differ() -> None:
    """`[{}]` has 4 bytes, and the next text, `[{"":"b"}]`, has 10. Items that may be equal have 7."""
    item = {"type": "object", "additionalProperties": {"type": "string", "pattern": "^(aa)*b$"}}
    schema = {"type": "array", "items": item, "minItems": 1, "uniqueItems": True}
    plain = COMPILER.json_schema(schema, whitespace="compact", strings="plain")
    assert ranged(plain, 6, 9) is None
    assert harness.verdict(ranged(plain, 6, 10), b'[{"":"b"}]')


def test_a_range_of_bytes_is_filled_by_formats_and_keys() -> None:
    """A walk through the masks ends in the range. Most states differ by captured text alone, or have an
    escape for each character."""
    ends = [ranges.walk(seed) for seed in range(harness.cases(180))]
    assert sum(ends) > harness.cases(120)


@pytest.mark.parametrize(("keys", "least", "most"), [(5, 33, 38), (4, 27, 30)])
def test_a_budget_of_tokens_and_a_range_of_bytes_keep_one_plan(keys: int, least: int, most: int) -> None:
    """Behind the first token of a text that has both bounds, another text of the range took more tokens than
    were left, and the row was empty."""
    tokens = [bytes([b]) for b in range(256)] + [b'{"', b'":"', b'","', b"  "]
    end = len(tokens)
    compiler = sg.Compiler(sg.Vocabulary.from_bytes([*tokens, b""], eos_token_ids=[end]))
    schema = {"type": "object", "minProperties": keys}
    plain = compiler.json_schema(schema, whitespace="compact", strings="plain", numbers="plain")
    grammar = plain & sg.min_bytes(least) & sg.max_bytes(most)
    for seed in harness.seeds(6):
        matcher, text, source, token = grammar.matcher(), b"", random.Random(seed), 0
        for left in range(matcher.tokens_needed(), 0, -1):
            token = source.choice(oracle.mask_of(matcher, end + 1, left).nonzero()[0].tolist())
            assert matcher.accept_token(token), (seed, text)
            if token == end:
                break
            text += tokens[token]
        assert token == end and least <= len(text) <= most, (seed, text)
        assert len(json.loads(text)) >= keys


@pytest.mark.parametrize("dialect", DIALECTS)
def test_at_least_so_many_bytes_against_the_product(dialect: str) -> None:
    """A range of bytes gives the language of a pattern that states the range. For the pattern the engine
    builds the product of the grammar and an automaton."""
    asked, parts, size = 0, 0, END + 1
    for seed in range(500, 500 + harness.cases(40)):
        plain = compiled(draw(Seeded(seed), dialect), dialect, COMPILER)
        if plain is None:
            continue
        least = random.Random(seed).randint(1, 9)
        grammar = ranged(plain, least, None)
        try:
            product = plain & sg.Regex(f"[ -~]{{{least},}}")
        except sg.UnsatisfiableCondition:
            assert grammar is None, (seed, least)
            continue
        except sg.BudgetExceeded:
            continue
        assert grammar is not None, (seed, least)
        source = random.Random(seed)
        one, two = grammar.matcher(), product.matcher()
        for _ in range(12):
            ours, theirs = oracle.mask_of(one, size), oracle.mask_of(two, size)
            assert not (ours & ~theirs).any(), (seed, least)
            assert not one.mask_exact or (ours == theirs).all(), (seed, least)
            asked, parts = asked + 1, parts + (not one.mask_exact)
            token = source.choice(ours.nonzero()[0].tolist())
            assert one.accept_token(token) and two.accept_token(token)
            if token == size - 1:
                break
    assert asked > harness.cases(40) and parts <= asked // 20


@pytest.mark.parametrize("seed", range(40))
def test_a_range_of_bytes_in_random_schemas(seed: int) -> None:
    """Every text ends in the range, refusals are proofs, and forks, rollbacks and replays agree."""
    source = random.Random(seed)
    schema, spellings = any_schema(Seeded(seed + 700)), source.choice([{}, {"whitespace": "compact"}])
    vocabulary = COMPILER.vocabulary
    try:
        plain = sg.Compiler(vocabulary).json_schema(schema, **spellings)
        shortest = len(plain.matcher().shortest_completion())
        most = shortest + source.choice([0, 1, 3, 10, 40, 200])
        least = source.choice([0, 0, shortest + 1, most])
        grammar = ranged(plain, least, most)
        if grammar is None:
            return
        uncached = ranged(sg.Compiler(vocabulary, cache=False).json_schema(schema, **spellings), least, most)
    except (sg.UnsatisfiableSchema, sg.BudgetExceeded, sg.SchemaTooComplex):
        return
    matcher, beside, read = grammar.matcher(), plain.matcher(), []
    for _ in range(most + 1):
        row = oracle.mask_of(matcher, END + 1)
        exact = matcher.mask_exact
        fresh = uncached.matcher()
        assert fresh.accept_tokens(read) and (oracle.mask_of(fresh, END + 1) == row).all()
        fork = matcher.fork()
        draft = [int(t) for t in source.sample(row.nonzero()[0].tolist(), 1)]
        assert fork.validate_tokens(draft) == 1 and fork.accept_tokens(draft)
        fork.rollback(1)
        assert (oracle.mask_of(fork, END + 1) == row).all() and fork._core.state == matcher._core.state
        used = sum(len(TOKENS[t]) for t in read)
        for token in (oracle.mask_of(beside, END + 1) & ~row).nonzero()[0][:20].tolist():
            assert not matcher.accept_token(token)
            after = beside.fork()
            if token != END and exact and least == 0 and after.accept_token(token):
                with contextlib.suppress(sg.BudgetExceeded):
                    assert used + len(TOKENS[token]) + len(after.shortest_completion()) > most
        if draft[0] == END:
            assert least <= used <= most
            break
        whole = b"".join(TOKENS[t] for t in read) + matcher.shortest_completion()
        assert harness.verdict(plain, whole) and least <= len(whole) <= most
        assert matcher.accept_token(draft[0]) and beside.accept_token(draft[0])
        read += draft


def test_a_range_of_bytes_in_every_way_of_use() -> None:
    """Ranges of bytes work with every feature. `Reasoning` once turned a range into a budget of 2^30 tokens,
    and `(aa)*b` with 4 to 7 bytes lost its texts."""
    ways = [ranges.check(seed) for seed in range(harness.cases(60))]
    assert sum(asked for asked, _ in ways) > harness.cases(200)
    assert sum(limited for _, limited in ways) <= harness.cases(20)


@pytest.mark.parametrize("pattern", ["", "a?", "ab"])
def test_a_range_that_every_text_meets(pattern: str) -> None:
    grammar = COMPILER.regex(pattern)
    shortest = grammar.matcher().shortest_completion()
    for condition in (sg.min_bytes(0), sg.min_bytes(0) & sg.min_bytes(0), ~~sg.min_bytes(0)):
        assert (grammar & condition).matcher().shortest_completion() == shortest


def test_a_range_of_bytes_behind_a_value_that_cannot_grow() -> None:
    """The longest text of an enum bounds how far the value can grow. If the shortest text is written, another
    key must supply the bytes that the range still asks for."""
    schema = {
        "type": "object",
        "properties": {"state": {"enum": ["UP", "x" * 200]}},
        "additionalProperties": {"type": "integer"},
    }
    condition = sg.min_bytes(60) & sg.max_bytes(150)
    matcher = (bytes_compiler().json_schema(schema, whitespace="compact") & condition).matcher()
    assert matcher.accept_bytes(b'{"state":"UP"')
    assert not matcher.accept_bytes(b"}")
    assert matcher.accept_bytes(b',"' + b"k" * 50 + b'":1}')
    assert matcher.is_accepting()


@pytest.mark.parametrize("seed", range(60))
def test_a_range_of_bytes_beside_a_budget_of_tokens(seed: int) -> None:
    """Every allowed token is accepted, and no mask is empty if the number of tokens suffices. The test covers
    conditions of all kinds, both orders of properties and two vocabularies.
    """
    source, compiler = random.Random(seed), (COMPILER, sg.Compiler(histories.VOCABULARY))[seed % 2]
    drawn = any_schema(Seeded(seed + 900)) if seed % 3 else ranges.schema(Seeded(seed))
    narrower = source.choice([None, sg.without("zz"), sg.containing("77", "a"), sg.Regex(".*[0-9]{2}.*")])
    try:
        plain = compiler.json_schema(drawn, property_order=source.choice(["schema", "any"]))
        plain = plain & narrower if narrower else plain
        shortest = len(plain.matcher().shortest_completion())
        grammar = ranged(plain, source.choice([0, shortest + 5]), shortest + source.choice([5, 30]))
        matcher = grammar.matcher() if grammar else None
        left = matcher.tokens_needed() + source.choice([0, 0, 2, 10]) if matcher else 0
    except (sg.UnsatisfiableSchema, sg.UnsatisfiableCondition, sg.BudgetExceeded, sg.SchemaTooComplex):
        return
    while matcher and not matcher.is_terminated():
        allowed = oracle.mask_of(matcher, compiler.vocabulary.vocab_size, left).nonzero()[0].tolist()
        for token in source.sample(allowed, min(12, len(allowed))):
            assert matcher.fork().accept_token(token), (seed, token)
        assert matcher.accept_token(source.choice(allowed))
        left -= 1
        assert left >= 0


def test_a_range_of_bytes_in_an_open_object() -> None:
    """For a range of bytes the engine once copied the grammar for each byte, which took more work than the
    limit allowed."""
    plain = COMPILER.json_schema(OPEN)
    grammar = plain & sg.max_bytes(4000) & sg.min_bytes(2000)
    matcher = grammar.matcher()
    assert matcher.accept_bytes('{"name":"x"') and not matcher.accept_bytes("}")
    assert not oracle.mask_of(matcher, END + 1)[ord("}")]
    text = b'{"name":"x"' + matcher.shortest_completion()
    assert len(text) == 2000 and harness.verdict(grammar, text)
    assert not harness.verdict(grammar, b'{"name":"' + b"x" * 4000 + b'"}')
    assert (COMPILER.regex("[ab]*") & sg.max_bytes(2)).matcher().forced_bytes() == b""
    assert (COMPILER.regex("a(bc|d)") & sg.max_bytes(2)).matcher().forced_bytes() == b"ad"
    assert sg.count(COMPILER.regex("[ab]*c?") & sg.max_bytes(3) & sg.min_bytes(2)) == 4 + 2 + 8 + 4
    held = COMPILER.regex("[ab]*c") & sg.max_bytes(3)
    assert harness.verdict(held.infill("a", "c"), b"b") and not harness.verdict(held.infill("a", "c"), b"bb")
    assert held.can_complete(["aa", sg.Gap(), "bc"]).verdict is False
    assert held.canvas(2).text(held.canvas(2).complete()) == b"c"
    assert harness.verdict(pickle.loads(pickle.dumps(grammar)), text)


def test_a_pattern_of_many_states_is_left_with_the_last_of_its_exits() -> None:
    schema = {"type": "string", "maxLength": 5000, "pattern": r"^(\S+\s+){0,99}\S+$"}
    grammar = bytes_compiler().json_schema(schema) & sg.without("lamps")
    assert harness.verdict(grammar, b'"a lamp s"') and not harness.verdict(grammar, b'"a lamps"')


def test_a_format_is_not_searched_for_a_word_that_it_cannot_spell() -> None:
    """A date-time has 81,458 pairs of a derivative and a state of the condition."""
    schema = {"type": "array", "items": {"type": "string", "format": "date-time"}}
    text = b'["2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"]'
    for word, met, units in (("lamps", True, 20_000), ("ZZ", True, 20_000), ('Z"]', False, 1_000_000)):
        tight = sg.Compiler(COMPILER.vocabulary, limits=sg.Limits(mask=units))
        assert harness.verdict(tight.json_schema(schema) & sg.without(word), text) is met, word


def test_a_phrase_that_a_bounded_string_cannot_hold() -> None:
    """The proof does not visit each number of characters that may be left."""
    schema = {"type": "array", "items": {"type": "string", "maxLength": 1024}}
    grammar = bytes_compiler().json_schema(schema) & sg.containing('", "ti')
    for text, met in ((b'["datasets", "data", "time"]', True), (b'["datasets", "data"]', False)):
        assert harness.verdict(grammar, text) is met


def test_what_is_too_much_to_tell_names_the_condition() -> None:
    tight = sg.Compiler(COMPILER.vocabulary, limits=sg.Limits(mask=1))
    with pytest.raises(sg.BudgetExceeded, match=r"Limits\(mask=...\); the condition is containing\('x'\)"):
        tight.json_schema({"properties": {f"k{i}": OPEN for i in range(300)}}) & sg.containing("x")


def test_a_length_beside_a_phrase_is_counted_by_one_text_of_a_part_and_not_by_all() -> None:
    """A date-time has too many spellings to enumerate them for each question about a length."""
    moment = {"type": "string", "format": "date-time"}
    schema = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "begin": moment, "end": moment},
        "required": ["title", "begin", "end"],
    }
    compiler = sg.Compiler(COMPILER.vocabulary)
    text = b'{"title": "x", "begin": "2024-01-01T10:00:00Z", "end": "2024-01-01T10:00:00Z"}'
    grammar = compiler.json_schema(schema) & sg.without("lamps") & sg.max_bytes(len(text) + 8)
    matcher = grammar.matcher()
    for byte in text:
        row = oracle.mask_of(matcher, END + 1)
        assert row[byte] and matcher.mask_exact
        assert matcher.accept_token(byte)
    assert matcher.is_accepting()


def test_a_range_is_met_by_the_sum_of_parts_that_are_bounded() -> None:
    """No part of the object grows without bound, and the search does not enumerate the whole object's
    texts."""
    names = [f"field{i}" for i in range(12)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "string", "maxLength": 255} for name in names},
        "required": names,
        "additionalProperties": False,
    }
    grammar = COMPILER.json_schema(schema) & sg.min_bytes(1500) & sg.max_bytes(1700)
    chance, matcher, length = random.Random(3), grammar.matcher(), 0
    while not matcher.is_accepting():
        row = oracle.mask_of(matcher, END + 1)[:256].nonzero()[0].tolist()
        assert row and matcher.mask_exact
        matcher.accept_token(chance.choice([b for b in row if b in b"abc"] or row))
        length += 1
    assert 1500 <= length <= 1700


WORDS: list[tuple[bytes, ...]] = [
    (b"a1",), (b"\\u",), (b'"a',), (b"\xa9",), (b'",',), (b"a1", b"aa"), (b"0061",), (b"1",), (b'a"',),
]  # fmt: skip
STRINGS = [
    {"type": "string", "maxLength": 3},
    {"type": "string", "minLength": 2, "maxLength": 4},
    {"type": "string", "pattern": "^[a1]{0,3}$", "maxLength": 3},
    {"type": "string", "not": {"enum": ["a", "a1a"]}, "maxLength": 2},
    {"type": "object", "properties": {"a": {"const": 1}, "a1": {"type": "string"}}},
]


@pytest.mark.parametrize("made", [sg.without, sg.containing])
@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("schema", STRINGS)
def test_masks_of_strings_that_avoid_words_or_contain_them(
    schema: dict[str, object], words: tuple[bytes, ...], made: Callable[..., sg.Condition]
) -> None:
    parts = [b"a", b"1", b"0", b"u", b"\\", b'"', b":", b",", "é".encode(), b"\xa9", b"}"]
    tokens = [bytes([b]) for b in range(256)]
    tokens += [b"".join(p) for n in (2, 3) for p in itertools.product(parts, repeat=n)]
    tokens += [b"\\u0061", b'a1a1"', b"aaaa", b""]
    compiler = sg.Compiler(sg.Vocabulary.from_bytes(tokens, eos_token_ids=[len(tokens) - 1]))
    draws = random.Random(repr((schema, words)))
    try:
        found = compiler.json_schema(schema, whitespace="compact") & made(words)
    except sg.UnsatisfiableCondition:
        return
    for _ in range(2):
        matcher = found.matcher()
        for _ in range(8):
            mask = oracle.mask_of(matcher, len(tokens))
            assert (mask == oracle.naive_mask(matcher, len(tokens))).all(), (schema, words)
            allowed = [t for t in mask.nonzero()[0].tolist() if t != len(tokens) - 1]
            if not allowed:
                break
            assert matcher.accept_token(draws.choice(sorted(allowed, key=lambda t: -len(tokens[t]))[:40]))
