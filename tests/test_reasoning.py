"""Thoughts in front of an answer: the grammar of both, its border under drafts and budgets, the parts."""

from __future__ import annotations

import pickle

import pytest

import structgen as sg
from oracles import harness, reasoning
from oracles.reasoning import CLOSE, COMPILER, OPEN
from structgen.reasoning import FAMILIES, Splitter

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["n"],
    "additionalProperties": False,
}
BYTES = sg.Compiler(sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b""], eos_token_ids=[256]))
RECORD = BYTES.json_schema(SCHEMA, whitespace="compact")


def accepts(grammar: sg.CompiledGrammar, text: str) -> bool:
    return harness.verdict(grammar, text)


# ---- the grammar ----


def test_texts_by_definition() -> None:
    harness.seeded(reasoning.means_what_it_says, 150)


def test_drafts_over_the_border() -> None:
    harness.seeded(reasoning.thinks_and_answers, 300)


def test_thoughts_end_mark_gap_answer() -> None:
    grammar = BYTES.with_reasoning(RECORD, sg.Reasoning())
    for text in (
        '{"n":1}',
        '<think>a</think>{"n":1}',
        '<think></think>\n\n{"n":1}',
        '<think>{</think>\n{"n":1}',
    ):
        assert accepts(grammar, text), text
        assert grammar.parse(text) == {"n": 1}
    for text in (
        '<think>a{"n":1}',
        '<think>a</think>{"n":10}',
        '\n{"n":1}',
        '</think>{"n":1}',
        "<think>a</think>",
    ):
        assert not accepts(grammar, text), text
    assert grammar.answer is RECORD and RECORD.answer is RECORD and RECORD.reasoning is None


def test_required_and_prefilled() -> None:
    required = BYTES.with_reasoning(RECORD, sg.Reasoning(required=True))
    assert required.matcher().forced_bytes() == b"<think>" and not accepts(required, '{"n":1}')
    prefilled = BYTES.with_reasoning(RECORD, sg.Reasoning(prefilled=True))
    assert accepts(prefilled, 'so</think>{"n":1}') and not accepts(prefilled, '{"n":1}')


def test_an_answer_of_any_text() -> None:
    grammar = BYTES.with_reasoning(None, "qwen3")
    assert accepts(grammar, "hello") and accepts(grammar, "<think>a</think>\n\nhello")
    assert not accepts(grammar, "<think>a") and grammar.parse("<think>a</think>\n\nhello") == "hello"


def test_a_limit_on_thoughts_forces_the_end_mark() -> None:
    grammar = BYTES.with_reasoning(RECORD, sg.Reasoning(max_tokens=3, required=True))
    matcher = grammar.matcher()
    assert matcher.accept_tokens(list(b"<think>abc")) and not matcher.accept_token(ord("d"))
    assert matcher.forced_bytes() == b"</think>" and matcher.forced_tokens() == list(b"</think>")
    none = BYTES.with_reasoning(RECORD, sg.Reasoning(max_tokens=0))
    assert accepts(none, '<think></think>{"n":1}') and not accepts(none, '<think>a</think>{"n":1}')


def test_a_special_token_as_a_mark_is_no_text() -> None:
    grammar = COMPILER.with_reasoning(COMPILER.regex("[01]+"), sg.Reasoning("[T]", "[/T]", required=True))
    matcher = grammar.matcher()
    assert matcher.forced_tokens() == [OPEN] or matcher.live_bytes() == b""
    assert matcher.accept_tokens([OPEN, 0, 1, CLOSE, 2]) and matcher.is_accepting()


def test_an_end_mark_that_begins_with_its_end() -> None:
    """The first complete mark counts: what is "aa" behind "a" is not hidden in "aaa"."""
    for limit in (None, 5):
        grammar = BYTES.with_reasoning(
            BYTES.regex("a?b"), sg.Reasoning("<", "aa", limit, required=True, gap="")
        )
        assert accepts(grammar, "<aaab") and accepts(grammar, "<xaab") and not accepts(grammar, "<aaaab")


def test_every_kind_of_grammar_stands_behind_thoughts() -> None:
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}
    tag = {"type": "tag", "begin": "<a>", "content": {"type": "any_text"}, "end": "</a>"}
    call = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
    meta = "https://json-schema.org/draft/2020-12/schema"
    kinds = [
        (BYTES.regex(r"(?u)\w+"), "né", "-"),
        (BYTES.choice(["yes", "no"]), "yes", "maybe"),
        (BYTES.gbnf('root ::= "a" root | "b"'), "aab", "aa"),
        (BYTES.lark('start: WORD ("," WORD)*\nWORD: /[a-z]+/\n%ignore " "'), "ab , c", "ab c"),
        (BYTES.structural_tag(tag), "<a>x</a>", "<a>x"),
        (BYTES.tools([tool], "required"), call, "f"),
        (sg.template("{a} and {b}", a=int, b=int).compile(BYTES), "1 and 2", "1 and"),
        (BYTES.substring_of("one two three"), "two three", "one three"),
        (BYTES.automaton(initial=0, finals=[1], transitions={0: {"a": 1}, 1: {"b": 0}}), "aba", "ab"),
        (BYTES.json_schema({"$ref": meta}), '{"type":"object"}', "1"),
        (BYTES.json_schema({"$ref": "u:x"}, registry={"u:x": {"const": 1}}), "1", "2"),
    ]  # fmt: skip
    kinds.append((BYTES.deserialize(kinds[3][0].serialize()), "ab,c", "c,"))
    for answer, good, bad in kinds:
        grammar = BYTES.with_reasoning(answer, sg.Reasoning(max_tokens=9))
        for before in ("", "<think>hm</think>", "<think></think>\n"):
            assert accepts(grammar, before + good), (answer, before)
            assert not accepts(grammar, before + bad), (answer, before)
        assert grammar.parse("<think>hm</think>" + good) == answer.parse(good)
        again = pickle.loads(pickle.dumps(grammar))
        assert accepts(again, "<think>hm</think>" + good) and again.reasoning == grammar.reasoning


def test_elements_keep_their_marks_behind_thoughts() -> None:
    """Numbers of nodes in schemas' marks move with the nodes."""
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}}
    call = "<tool_call>\n<function=f>\n<parameter=x>\nhi\n</parameter>\n</function>\n</tool_call>"
    grammar = BYTES.tools([tool], style="qwen3-coder", reasoning="qwen3")
    assert accepts(grammar, call) and accepts(grammar, "<think>so</think>\n\n" + call)
    assert not accepts(grammar, "<think>so</think>" + call.replace("=x", "=y"))


def test_tools_think() -> None:
    tool = {"name": "f", "parameters": {"type": "object", "properties": {}}}
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    grammar = BYTES.tools([tool], reasoning=sg.Reasoning())
    for text in ("hi", call, "<think>I call</think>" + call, "<think>I do not</think>hi"):
        assert accepts(grammar, text), text
    assert not accepts(grammar, "<think>a") and not accepts(grammar, "hi <think>")
    with pytest.warns(DeprecationWarning, match="reasoning=True is deprecated"):
        old = BYTES.tools([tool], "required", reasoning=True)
    assert accepts(old, "<think>a</think>" + call) and not accepts(old, call)


# ---- the budget ----


def test_the_least_room_is_exact_and_below_it_nothing_is_allowed() -> None:
    grammar = BYTES.with_reasoning(RECORD, sg.Reasoning(required=True))
    least = grammar.matcher().tokens_needed()
    assert least == len('<think></think>{"n":1}') + 1
    row = sg.allocate_bitmask(1, 257)
    with pytest.raises(sg.UnsatisfiableBudget, match=str(least)):
        grammar.matcher().fill_bitmask(row, max_tokens=least - 1)


# ---- what is refused ----


@pytest.mark.parametrize(
    "fields, error, words",
    [
        ({"start": ""}, ValueError, "start of Reasoning must not be empty"),
        ({"end": 3}, TypeError, "end of Reasoning is a text"),
        ({"end": "think"}, ValueError, "end of Reasoning, 'think', stands in start"),
        ({"max_tokens": -1}, ValueError, "max_tokens of Reasoning must be at least 0"),
        ({"max_tokens": 1.5}, TypeError, "max_tokens of Reasoning is a whole number"),
        ({"required": 1}, TypeError, "required of Reasoning is True or False"),
    ],
)
def test_fields(fields, error, words) -> None:
    with pytest.raises(error, match=words):
        sg.Reasoning(**fields)


def test_what_would_be_ambiguous_or_unknown() -> None:
    with pytest.raises(sg.GrammarError, match="start of Reasoning, '<think>', may also begin the answer"):
        BYTES.with_reasoning(BYTES.regex(".*"), sg.Reasoning())
    assert BYTES.with_reasoning(BYTES.regex(".*"), sg.Reasoning(required=True)).reasoning is not None
    with pytest.raises(ValueError, match="'qwen4' is no family of models; did you mean 'qwen3'"):
        sg.Reasoning.of("qwen4")
    with pytest.raises(sg.GrammarError, match="thoughts already"):
        BYTES.with_reasoning(BYTES.with_reasoning(RECORD, "qwen3"), "qwen3")
    with pytest.raises(sg.GrammarError, match="no grammar with a condition"):
        BYTES.with_reasoning(RECORD & sg.max_bytes(90), "qwen3")
    with pytest.raises(sg.VocabularyError, match="another vocabulary"):
        COMPILER.with_reasoning(RECORD, "qwen3")


def test_the_gap_is_left_out_where_an_answer_begins_with_it() -> None:
    grammar = BYTES.with_reasoning(BYTES.regex(r"\s*x"), sg.Reasoning(required=True))
    assert grammar.reasoning is not None and grammar.reasoning.gap == ""
    assert grammar.reasoning.split("<think>a</think>\n x") == ("a", "\n x")


# ---- families ----


def test_families_from_chat_templates() -> None:
    class Tokenizer:
        def __init__(self, template: str, prompt: str) -> None:
            self.chat_template, self.prompt = template, prompt

        def apply_chat_template(self, messages, add_generation_prompt, tokenize) -> str:
            return self.prompt

    qwen = "{% if '</think>' in content %}...{{ '<think>\\n' }}"
    assert sg.Reasoning.of(Tokenizer(qwen, "assistant\n")) == FAMILIES["qwen3"]
    assert sg.Reasoning.of(Tokenizer(qwen, "assistant\n<think>\n")).prefilled
    seed = Tokenizer("<seed:think> </seed:think> <think>", "")
    assert sg.Reasoning.of(seed, max_tokens=5).start == "<seed:think>"
    with pytest.raises(ValueError, match="the chat template tells no marks of thoughts"):
        sg.Reasoning.of(Tokenizer("plain", ""))


# ---- the parts ----


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_parts_do_not_depend_on_the_borders_of_tokens(size: int) -> None:
    text = b"<think>a </thin b</think>\n\n{</think>}"
    splitter, thoughts, answer = Splitter(sg.Reasoning()), b"", b""
    for at in range(0, len(text), size):
        for_thoughts, for_answer = splitter.feed(text[at : at + size])
        thoughts, answer = thoughts + for_thoughts, answer + for_answer
    assert splitter.finish() == (b"", b"") and splitter.answering
    assert (thoughts, answer) == (b"a </thin b", b"{</think>}")


def test_parts_of_texts_that_are_cut_off() -> None:
    split = sg.Reasoning().split
    assert split("<think>a</thi") == ("a</thi", "") and split("<thi") == (None, "<thi")
    assert split("<think>a</think>\n") == ("a", "") and split("x") == (None, "x")
    assert sg.Reasoning(prefilled=True).split("a</think>x") == ("a", "x")
