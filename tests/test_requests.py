"""Settings of a request beyond the grammar: end tokens, a number of tokens, tokens after the end, copies and
pickles, and constraints by kind. The oracle of end tokens is a vocabulary that has these end tokens."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles import closed, harness

WORDS = [b"ab", b"abc", b'"a', b'":', b"{}", b"12", b"[1", b"true", b"no", b"yes"]
TEXTS: list[bytes | None] = [bytes([i]) for i in range(256)]
TOKENS = [*TEXTS, *WORDS, None, None, None]
EOS, PAD, OTHER = 266, 267, 268
SCHEMA = closed({"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "boolean"}}}, ["a"])


def vocabulary(*ends: int) -> sg.Vocabulary:
    return sg.Vocabulary.from_bytes(TOKENS, eos_token_ids=ends or EOS)


COMPILER = sg.Compiler(vocabulary())
GRAMMARS: list[tuple[str, Any]] = [
    ("regex", "(ab|yes)*c?"),
    ("regex", "[a-z]{2,6}"),
    ("json_schema", SCHEMA),
    ("gbnf", 'root ::= "(" root ")" | "ab" | ""'),
    ("lark", 'start: (a | "yes")+\na[max_tokens=3]: /[ab]+c/'),
    ("choice", ["yes", "no", "abc"]),
]


def row(matcher: sg.Matcher, **options: Any) -> frozenset[int]:
    mask = sg.allocate_bitmask(1, len(TOKENS))
    mask[:] = 0x5A5A5A5A  # the call must overwrite the row's old contents
    matcher.fill_bitmask(mask, **options)
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: len(TOKENS)]
    return frozenset(np.flatnonzero(bits).tolist())


@pytest.mark.parametrize("seed", range(60))
def test_end_tokens_are_those_of_a_vocabulary_that_has_them(seed: int) -> None:
    chance = random.Random(seed)
    ends = chance.sample(
        [EOS, PAD, OTHER, ord("z"), 256 + chance.randrange(len(WORDS))], chance.randint(1, 3)
    )
    kind, text = chance.choice(GRAMMARS)
    tested = COMPILER.compile(kind, text).matcher(end_token_ids=ends)
    wanted = sg.Compiler(vocabulary(*ends)).compile(kind, text).matcher()
    batch = sg.allocate_bitmask(1, len(TOKENS))
    for _ in range(12):
        allowed = row(tested)
        assert allowed == row(wanted)
        sg.fill_bitmasks([tested], batch)
        assert row(tested) == frozenset(
            np.flatnonzero(np.unpackbits(batch.view(np.uint8), bitorder="little")[: len(TOKENS)]).tolist()
        )
        for token in (EOS, PAD, OTHER, *chance.sample(range(len(TOKENS)), 30)):
            assert tested.validate_tokens([token]) == wanted.validate_tokens([token]) == (token in allowed), (
                token
            )
        token = chance.choice(sorted(allowed))
        assert tested.accept_token(token) and wanted.accept_token(token)
        assert tested.is_terminated() == wanted.is_terminated() == (token in ends)
        if tested.is_terminated():
            assert row(tested) == row(wanted) == frozenset(ends)
            return


@pytest.mark.parametrize("seed", range(40))
def test_a_number_of_tokens_counts_down_by_itself(seed: int) -> None:
    chance = random.Random(seed)
    kind, text = chance.choice(GRAMMARS)
    grammar = COMPILER.compile(kind, text)
    most = grammar.matcher().tokens_needed() + chance.randrange(8)
    told, plain = grammar.matcher(max_tokens=most), grammar.matcher()
    batch = sg.allocate_bitmask(2, len(TOKENS))
    for left in range(most, 0, -1):
        allowed = row(told)
        assert allowed == row(plain, max_tokens=left) and allowed
        assert row(told, max_tokens=left + 5) == allowed, "the smaller number counts"
        sg.fill_bitmasks([told, told.fork()], batch)
        bits = np.unpackbits(batch.view(np.uint8), axis=1, bitorder="little")[:, : len(TOKENS)]
        assert set(np.flatnonzero(bits[1]).tolist()) == allowed
        token = chance.choice(sorted(allowed))
        assert told.accept_token(token) and plain.accept_token(token)
        if told.is_terminated():
            break
        if chance.random() < 0.3:  # removes the end tokens again
            assert told.fork().num_steps == told.num_steps
            told.rollback()
            assert row(told) == allowed
            assert told.accept_token(token)
    assert told.is_terminated(), "a text that follows its masks ends in time"


def test_too_few_tokens_are_an_error_that_says_so() -> None:
    matcher = COMPILER.regex("[a-z]{20}").matcher(max_tokens=3)
    with pytest.raises(sg.UnsatisfiableBudget, match=r"within the 3 tokens that are left of max_tokens=3"):
        row(matcher)
    mask = sg.allocate_bitmask(1, len(TOKENS))
    with pytest.raises(sg.UnsatisfiableBudget):
        sg.fill_bitmasks([matcher], mask)
    assert matcher.accept_tokens(list(b"abcdefghij")), "only masks count"


def test_tokens_after_the_end() -> None:
    grammar = COMPILER.choice(["yes"])
    strict, loose = grammar.matcher(), grammar.matcher(after_end="ignore")
    for matcher in (strict, loose):
        assert matcher.accept_tokens([265, EOS])
    assert not strict.accept_token(97)
    assert loose.accept_tokens([97, EOS, 65, PAD]) and loose.is_terminated()
    assert not loose.accept_token(len(TOKENS)) and not loose.accept_token(-1)
    loose.rollback(5)
    assert not loose.is_terminated() and loose.num_steps == 1
    assert row(loose) == {EOS}


def test_only_end_tokens_are_left() -> None:
    lone = sg.Vocabulary.from_bytes([b"a", b"b", None], eos_token_ids=2)
    matcher = sg.Compiler(lone).regex("ab").matcher(end_token_ids=[1, 2])
    mask = sg.allocate_bitmask(1, 3)
    matcher.fill_bitmask(mask)
    assert matcher.accept_token(0)
    with pytest.raises(sg.BudgetExceeded, match="one of end_token_ids"):
        matcher.fill_bitmask(mask)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"end_token_ids": []}, "empty"),
        ({"end_token_ids": [-1]}, "id -1 is outside the vocabulary of 269 ids"),
        ({"end_token_ids": [269]}, "id 269 is outside"),
        ({"max_tokens": -1}, "max_tokens must be at least 0"),
        ({"after_end": "go"}, "after_end is one of refuse, ignore"),
    ],
)
def test_requests_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        COMPILER.regex("a").matcher(**options)


@pytest.mark.parametrize(
    "options", [{"max_tokens": 1.5}, {"max_tokens": "3"}, {"end_token_ids": [1.5]}, {"end_token_ids": ["a"]}]
)
def test_requests_of_the_wrong_type(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="max_tokens is a whole number|end_token_ids are token ids"):
        COMPILER.regex("a").matcher(**options)


def test_misused_batches_registries_and_texts() -> None:
    with pytest.raises(TypeError, match="row 1 of the batch"):
        sg.fill_bitmasks([COMPILER.regex("a").matcher(), None], sg.allocate_bitmask(2, len(TOKENS)))  # type: ignore[list-item]
    with pytest.raises(TypeError, match="a registry is"):
        COMPILER.json_schema({}, registry="x")
    matcher = COMPILER.regex("(?s).*").matcher()
    assert not matcher.accept_bytes("\ud800") and matcher.validate_bytes("a\ud800") == 2
    assert COMPILER.json_schema({}).explain('"\ud800"') is not None


def test_a_copy_of_a_matcher_is_its_own() -> None:
    matcher = COMPILER.regex("[ab]*").matcher(end_token_ids=[PAD], max_tokens=4)
    assert matcher.accept_token(97)
    for other in (copy.copy(matcher), copy.deepcopy(matcher), copy.deepcopy({"state": matcher})["state"]):
        assert other.accept_tokens([97, 98])
        assert (matcher.num_steps, other.num_steps) == (1, 3)
        assert row(other) == {PAD}, "its request goes with it"


def test_grammars_and_compilers_are_shared_by_copies() -> None:
    grammar = COMPILER.json_schema(SCHEMA)
    assert copy.copy(grammar) is copy.deepcopy(grammar) is grammar
    assert copy.deepcopy(COMPILER) is COMPILER


@pytest.mark.parametrize(
    "grammar",
    [
        *(COMPILER.compile(kind, text) for kind, text in GRAMMARS),
        COMPILER.json_schema('{"type": "integer"}'),
        COMPILER.json_schema(dict[str, int]),
        COMPILER.substring_of("one two three"),
        COMPILER.structural_tag(
            {"type": "structural_tag", "format": {"type": "const_string", "value": "ab"}}
        ),
        COMPILER.tools([{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}], "required"),
    ],
)
def test_a_pickled_grammar_is_compiled_again(grammar: sg.CompiledGrammar) -> None:
    again, twin = pickle.loads(pickle.dumps((grammar, grammar)))
    assert again is twin
    one, other = grammar.matcher(), again.matcher()
    chance = random.Random(1)
    for _ in range(10):
        allowed = row(one)
        assert allowed == row(other)
        token = chance.choice(sorted(allowed))
        assert one.accept_token(token) and other.accept_token(token)
        if one.is_terminated():
            break
    assert type(again.parse(b"1" if grammar.source == '{"type": "integer"}' else b"{}")) is type(
        grammar.parse(b"1" if grammar.source == '{"type": "integer"}' else b"{}")
    )


def test_a_pickled_grammar_keeps_nothing_alive() -> None:
    again = pickle.loads(pickle.dumps(COMPILER.regex("[ab]+")))
    held = weakref.ref(again.vocabulary)
    del again
    gc.collect()
    assert held() is None


def test_a_process_that_checks_ends_in_silence() -> None:
    code = "import structgen as sg; sg.check('json', '{}'); keep = sg.check"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_pickled_schema_is_the_one_that_was_compiled() -> None:
    schema: dict[str, Any] = {"enum": ["yes", "no"]}
    grammar = COMPILER.json_schema(schema)
    schema["enum"].append("ab")
    again = pickle.loads(pickle.dumps(grammar))
    assert again.matcher().validate_bytes('"ab"') == 1


def test_matchers_are_not_pickled() -> None:
    with pytest.raises(TypeError, match="pickle its grammar and the tokens"):
        pickle.dumps(COMPILER.regex("a").matcher())


def test_a_compiler_from_a_pickle() -> None:
    compiler = pickle.loads(pickle.dumps(COMPILER))
    assert compiler.regex("a+").matcher().accept_token(97)


def test_the_encoder_of_a_list_of_bytes_forces_its_own_tokens() -> None:
    def encode(text: str) -> list[int]:
        return [ord(c) for c in text]

    for given, wanted in ((encode, [97, 98]), (None, [256])):
        vocab = sg.Vocabulary.from_bytes(TOKENS, EOS, encode=given)
        assert vocab.encode("ab") == wanted
        assert pickle.loads(pickle.dumps(sg.Vocabulary.from_bytes(TOKENS, EOS))).encode("ab") == [256]


def test_kinds() -> None:
    accepted = {
        "json_schema": (SCHEMA, '{"a": 1,"b":[true]}', '{"a":1.0}'),
        "json": ('{"type":"string"}', '"a"', '"\\u0061"'),
        "json_object": ("", '{"a":[1]}', "[1]"),
        "regex": ("a+", "aa", "b"),
        "choice": ('["yes","no"]', "yes", "maybe"),
        "gbnf": ('root ::= "a"', "a", "b"),
        "ebnf": ('root ::= "a"', "a", "b"),
        "lark": ('start: "a"', "a", "b"),
        "grammar": ('root ::= "a"', "a", "b"),
        "structural_tag": (
            '{"type": "structural_tag", "format": {"type": "const_string", "value": "ab"}}',
            "ab",
            "b",
        ),
        "response_format": ('{"type": "json_object", "schema": {"const": 5}}', "5", "6"),
        "tools": (
            '[{"type": "function", "function": {"name": "f"}}]',
            '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>',
            "<tool_call>{",
        ),
    }
    from structgen.kinds import ALIASES, KINDS

    assert accepted.keys() == KINDS.keys() | ALIASES.keys()
    for kind, (text, good, bad) in accepted.items():
        assert sg.check(kind, text) == ()
        matcher = COMPILER.compile(kind, text).matcher()
        assert matcher.fork().accept_bytes(good) and matcher.fork().accept_tokens([*good.encode(), EOS])
        assert not matcher.accept_tokens([*bad.encode(), EOS])


@pytest.mark.parametrize(
    ("kind", "text", "error", "message"),
    [
        ("jsn", "{}", ValueError, "unknown kind 'jsn'; did you mean 'json'"),
        (None, "{}", ValueError, "unknown kind None"),
        ("json", "{", sg.GrammarError, "invalid JSON"),
        ("json", None, sg.GrammarError, "there is no schema"),
        ("json", {"$ref": "http://x/y"}, sg.UnsupportedSchema, "reference"),
        ("json", {"minimum": 2, "maximum": 1, "type": "integer"}, sg.UnsatisfiableSchema, "(?i)no "),
        ("json_object", '{"type": "string"}', sg.GrammarError, "takes no text"),
        ("regex", 3, sg.GrammarError, "is a text, not int"),
        ("regex", "(", sg.GrammarError, "not closed"),
        ("choice", "yes", sg.GrammarError, "a choice is a list"),
        ("choice", '{"a": 1}', sg.GrammarError, "a choice is a list"),
        ("choice", "[]", sg.GrammarError, "at least one"),
        ("gbnf", "root = 1", sg.GrammarError, "line 1"),
        ("structural_tag", "{", sg.GrammarError, "JSON"),
    ],
)
def test_constraints_that_are_refused(kind: Any, text: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sg.check(kind, text)


def test_reports_and_options_of_kinds() -> None:
    assert [e.keyword for e in sg.check("json", {"minimun": 1, "type": "integer"})] == ["minimun"]
    wide = COMPILER.compile("json", {"type": "string"}, strings="any", whitespace="flexible")
    assert wide.matcher().accept_bytes('"\\u0061"')
    assert sg.check("regex", "a", whitespace="compact") == ()
    with pytest.raises(TypeError, match="takes no option 'root'"):
        sg.check("gbnf", 'root ::= "a"', root="root")


def test_a_prepared_grammar_has_its_first_mask() -> None:
    grammar = sg.Compiler(vocabulary()).json_schema(SCHEMA)
    before = grammar.byte_size
    assert grammar.prepare() is grammar
    assert grammar.byte_size > before


def test_a_warm_grammar_knows_the_masks_of_texts_that_it_read() -> None:
    grammar, cold = (sg.Compiler(vocabulary()).json_schema(SCHEMA) for _ in range(2))
    texts = ['{"a":12,"b":[true]}', b'{"a":1}']
    assert grammar.warm(texts) == sum(len(grammar.vocabulary.encode(text)) for text in texts)
    states = grammar._core.states
    for text in texts:
        matcher, other = grammar.matcher(), cold.matcher()
        for token in grammar.vocabulary.encode(text):
            assert row(matcher) == row(other)
            assert matcher.accept_token(token) and other.accept_token(token)
        assert row(matcher) == row(other)
    assert grammar._core.states == states  # no state was added
    assert cold._core.states > 1
    assert grammar.warm(['{"a":true}'], seconds=5.0) == 3  # the warm-up stops where the text stops
    assert grammar.warm(texts, seconds=0.0) == 0
    with pytest.raises(TypeError, match="list of texts"):
        grammar.warm("{}")
    with pytest.raises(TypeError, match="a text is str or bytes, as the model writes it, not 5"):
        grammar.warm([5])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="a list of texts, not 5"):
        grammar.warm(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["lark", "grammar", "structural_tag"])
def test_schemas_in_grammars_are_spelled_as_requests_are(kind: str) -> None:
    text = 'start: %json {"type": ["integer", "string"]}'
    if kind == "structural_tag":
        text = '{"type": "json_schema", "json_schema": {"type": ["integer", "string"]}}'
    else:
        pytest.importorskip("lark")
    compiler = harness.compiler()
    narrow, wide = compiler.compile(kind, text), compiler.compile(kind, text, numbers="any", strings="any")
    for spelled, taken in (("12", True), ("1e2", False), ('"A"', True), ('"\\u0041"', False)):
        assert harness.verdict(narrow, spelled) == taken
        assert harness.verdict(wide, spelled)
