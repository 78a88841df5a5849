"""OpenAI's custom tools: a call has a text in place of arguments. The text is free, a regex, or a Lark
grammar.

Oracles: the grammar without a string around its texts, and `json`.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

import structgen as sg
from oracles import harness, oracle
from structgen import library
from structgen.checking import bytes_compiler

pytest.importorskip("lark", reason="lark is not installed (the extra `lark`)")

SUM = """
start: term (("+" | "-") term)*
term: NUMBER | STRING | "(" start ")"
STRING: /"[^"\\\\\\n]*"/
NUMBER: /[0-9]+/
%ignore /[ \\n\\t]+/
"""
PROMPT = "Add 3 and 4"


def custom(name: str, syntax: str = "", definition: str = "", flat: bool = False) -> dict[str, Any]:
    """Returns a custom tool in the form of a chat, or in the flat form of `/v1/responses`."""
    inner: dict[str, Any] = {"name": name, "description": "A tool"}
    if syntax:
        grammar = {"syntax": syntax, "definition": definition}
        inner["format"] = {"type": "grammar", **(grammar if flat else {"grammar": grammar})}
    return {"type": "custom", **(inner if flat else {"custom": inner})}


def verdict(grammar: sg.CompiledGrammar, text: str) -> bool:
    return bool(
        harness.verdict(
            grammar, f'{{"name":"f","arguments":{{"input":{json.dumps(text, ensure_ascii=False)}}}}}'
        )
    )


@pytest.mark.parametrize("name", [n for n in library.names() if library.load(n).dialect == "lark"])
def test_a_string_holds_what_the_grammar_takes(name: str) -> None:
    entry = library.load(name)
    tool = custom("f", "lark", entry.text, flat=True)
    grammar = bytes_compiler().tools([tool], "required", style="json-compact", parallel=False)
    for text in (*entry.accepted, *entry.rejected):
        assert verdict(grammar, text) == (text in entry.accepted), text


def test_the_end_of_the_string_ends_a_lexeme() -> None:
    """The quote that ends the string may follow `a`. No other quote may, because the lexeme QUOTED would
    match one more."""
    tool = custom("f", "lark", 'start: A | QUOTED\nA: "a"\nQUOTED: /a"+/')
    grammar = bytes_compiler().tools([tool], "required", style="json-compact", parallel=False)
    for text, fine in (("a", True), ('a"', True), ('a""', True), ("aa", False), ('"', False)):
        assert verdict(grammar, text) == fine, text


def test_masks_are_exact() -> None:
    """The masks are exact for tokens that cross quotes, escapes and the ends of lexemes."""
    words = [
        *(b'"', b"\\", b'\\"', b'\\"}', b"n", b"\\n", b"1", b"12", b"+", b" +", b"(", b"))", b'"}}', b"}"),
        b"\\u0009",
    ]
    vocabulary = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), *words, b""], 256 + len(words))
    grammar = sg.Compiler(vocabulary).tools(
        [custom("f", "lark", SUM)], "required", style="json-compact", parallel=False
    )
    text = json.dumps({"name": "f", "arguments": {"input": '(1 + "a b")\n- 2'}}, separators=(",", ":"))
    matcher = grammar.matcher()
    for byte in text.encode():
        mask = oracle.mask_of(matcher, vocabulary.vocab_size)
        assert (mask == oracle.naive_mask(matcher, vocabulary.vocab_size)).all()
        assert matcher.accept_token(byte)
    assert matcher.is_accepting() and np.flatnonzero(oracle.mask_of(matcher, vocabulary.vocab_size)).size


@pytest.mark.parametrize("style", ["hermes", "json-compact", "qwen3-coder", "pythonic", "glm"])
def test_a_pattern_in_every_kind_of_style(style: str) -> None:
    tools = [custom("stamp", "regex", r"[0-9]{4}-(a|b)"), custom("say")]
    grammar = bytes_compiler().tools(tools, {"type": "custom", "custom": {"name": "stamp"}}, style=style)
    text = grammar.matcher().shortest_completion().decode()
    (call,) = sg.parse_tool_calls(text, style=style, tools=tools).calls
    assert call.name == "stamp" and re.fullmatch("[0-9]{4}-(a|b)", call.arguments["input"])
    assert not grammar.matcher().accept_bytes(text.replace(call.arguments["input"], "12"))


def test_the_grammar_survives_bytes() -> None:
    compiler = bytes_compiler()
    grammar = compiler.tools([custom("f", "lark", SUM)], "required", style="json-compact", parallel=False)
    again = compiler.deserialize(grammar.serialize())
    for text, fine in (('(1 + "x")', True), ("1\t+ 2", True), ("1 +", False), ('"a" "b"', False)):
        assert verdict(grammar, text) == verdict(again, text) == fine


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        (custom("f", "ebnf", "x"), "'syntax', 'lark' or 'regex'"),
        (
            {"type": "custom", "name": "f", "format": {"type": "json"}},
            "the format of tool 0 is 'text' or 'grammar'",
        ),
        ({"type": "custom", "custom": 3}, "tool 0 is no object"),
        ({"type": "custom", "custom": {}}, "has no function with a name"),
        (custom("f", "lark", "start: other"), "other"),
        (custom("f", "lark", 'root ::= "a"'), "not of GBNF"),
        (custom("f", "lark", "start: %json {}"), "cannot contain a JSON Schema"),
        (custom("f", "regex", "(a"), "pattern"),
    ],
)
def test_mistakes(tool: dict[str, Any], words: str) -> None:
    with pytest.raises(sg.GrammarError, match=re.escape(words)):
        bytes_compiler().tools([tool], "required", style="json-compact")


def test_a_style_of_elements_cannot_hold_a_grammar() -> None:
    with pytest.raises(
        sg.GrammarError, match="the tool 'f' has a Lark grammar, which only styles whose arguments"
    ):
        bytes_compiler().tools([custom("f", "lark", SUM)], style="qwen3-coder")


# ---- the server ----


def streamed(response: Any) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    return [json.loads(line[6:]) for line in response.text.split("\n") if line.startswith("data: {")]


@pytest.mark.parametrize("choice", ["required", {"type": "custom", "custom": {"name": "f"}}])
def test_a_chat(client, choice) -> None:
    body = {
        "messages": [{"role": "user", "content": PROMPT}],
        "tools": [custom("f", "lark", SUM)],
        "max_tokens": 80,
    }
    body |= {"tool_choice": choice, "parallel_tool_calls": False}
    response = client.post("/v1/chat/completions", json=body)
    assert response.status_code == 200, response.text
    message = response.json()["choices"][0]["message"]
    (call,) = message["tool_calls"]
    assert call["type"] == "custom" and call["custom"]["name"] == "f"
    assert harness.verdict(bytes_compiler().lark(SUM), call["custom"]["input"])
    chunks = streamed(client.post("/v1/chat/completions", json=body | {"stream": True}))
    deltas = [d for c in chunks for d in c["choices"][0]["delta"].get("tool_calls", [])]
    assert [d["custom"] for d in deltas] == [call["custom"]]
    turns = [*body["messages"], message, {"role": "tool", "tool_call_id": call["id"], "content": "7"}]
    assert client.post("/v1/chat/completions", json=body | {"messages": turns}).status_code == 200


def test_responses(client) -> None:
    tools = [custom("f", "lark", SUM, flat=True), custom("g", flat=True)]
    body = {
        "input": PROMPT,
        "tools": tools,
        "tool_choice": {"type": "custom", "name": "f"},
        "max_output_tokens": 80,
    }
    (item,) = client.post("/v1/responses", json=body).json()["output"]
    assert item["type"] == "custom_tool_call" and harness.verdict(bytes_compiler().lark(SUM), item["input"])
    events = streamed(client.post("/v1/responses", json=body | {"stream": True}))
    told = {event["type"]: event for event in events}
    assert told["response.custom_tool_call_input.delta"]["delta"] == item["input"]
    assert told["response.custom_tool_call_input.done"]["input"] == item["input"]
    assert told["response.completed"]["response"]["output"][0]["input"] == item["input"]
    output = {"type": "custom_tool_call_output", "call_id": item["call_id"], "output": "7"}
    turns = [{"role": "user", "content": PROMPT}, item, output]
    assert client.post("/v1/responses", json=body | {"input": turns}).status_code == 200


def test_a_broken_grammar_is_refused_by_its_tool(client) -> None:
    body = {"messages": [{"role": "user", "content": PROMPT}], "tools": [custom("f", "lark", "start: other")]}
    response = client.post("/v1/chat/completions", json=body)
    assert response.status_code == 400 and response.json()["error"]["param"] == "tools"
    body["tools"] = [custom("f"), custom("g", "ebnf", "x")]
    response = client.post("/v1/chat/completions", json=body)
    assert response.status_code == 400 and response.json()["error"]["param"] == "tools[1].format"
