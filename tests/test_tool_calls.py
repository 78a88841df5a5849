"""`parse_tool_calls` is the inverse of `Compiler.tools`: in every style, on texts of the grammar and on
others.

tests/hosts/test_sglang.py compares `parse_tool_calls` with SGLang's own readers.
"""

from __future__ import annotations

import collections
import datetime
import random
import re
from typing import Any

import jsonschema
import pytest

import structgen as sg
from oracles import harness, tool_calls
from oracles.differential import instances
from oracles.strategies import Seeded
from oracles.tool_styles import ARGUMENTS, SCHEMA, written
from structgen.checking import bytes_compiler
from structgen.frontend.tools import STYLES as ALL

# tests/test_python_calls.py tests calls in Python.
STYLES = {name: row for name, row in ALL.items() if row.parameters != "python"}
BEFORE = ("", "Let me see: <tool <|x [TOOL {\n")
NAMES = ("weather", "time", "weather_now")
TOOLS = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in NAMES]
BYTES = sg.Compiler(sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], 256))


def pairs(reply: sg.ToolReply) -> list[tuple[str, dict]]:
    return [(call.name, call.arguments) for call in reply.calls]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("told", [True, False])
def test_calls_that_are_written_are_read(style: str, told: bool) -> None:
    chance = random.Random(style)
    for _ in range(20):
        usable = ARGUMENTS if style != "minimax-m3" else ARGUMENTS[:3]  # this style writes [] and "" alike
        if not told:  # without a type, 5 may be a number or a text
            usable = usable[:3] if STYLES[style].parameters != "json" else usable
        calls = [(chance.choice(NAMES), chance.choice(usable)) for _ in range(chance.randint(1, 3))]
        before = chance.choice(BEFORE[: 2 - STYLES[style].whole])
        reply = sg.parse_tool_calls(
            before + written(style, calls), style=style, tools=TOOLS if told else None
        )
        assert pairs(reply) == calls
        assert reply.text.strip() == before.strip()


@pytest.mark.parametrize("style", STYLES)
def test_texts_of_the_grammar(style: str) -> None:
    tools = TOOLS
    if style == "minimax-m3":  # the style's elements cannot mark an array of any items
        plain = {k: v for k, v in SCHEMA["properties"].items() if k != "deep"}
        tools = [
            {"function": {"name": name, "parameters": {**SCHEMA, "properties": plain}}} for name in NAMES
        ]
    grammar = BYTES.tools(tools, "required", style=style)
    found = 0
    for seed in range(12):
        text = instances.walk(Seeded(seed), grammar.matcher(), 60).decode(errors="replace")
        reply = sg.parse_tool_calls(text, style=style, tools=tools)
        assert reply.calls, text
        for call in reply.calls:
            assert call.name in NAMES
            jsonschema.Draft202012Validator(SCHEMA).validate(call.arguments)
        found += len(reply.calls)
    assert found >= 12


@pytest.mark.parametrize("style", STYLES)
def test_texts_that_are_cut_off(style: str) -> None:
    calls = [("weather", ARGUMENTS[2]), ("time", ARGUMENTS[1])]
    text = ("" if STYLES[style].whole else "so: ") + written(style, calls)
    known = 0
    for end in range(len(text) + 1):
        reply = sg.parse_tool_calls(text[:end], style=style, tools=TOOLS)
        assert pairs(reply) == calls[: len(reply.calls)]
        assert len(reply.calls) >= known, "a longer text has no fewer calls"
        known = len(reply.calls)
    assert known == 2


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("told", [True, False])
def test_any_text_is_read(style: str, told: bool) -> None:
    chance = random.Random(f"any {style}")
    row = STYLES[style]
    pieces = [row.begin.replace("{name}", "time").replace("{index}", "0"), row.end, row.open, row.close]
    pieces += [row.trigger, row.separator, '{"a": 1}', "{", "}", '"', "\\", "[[[[", "x", "\n", "<", "é"]
    for _ in range(200):
        text = "".join(chance.choices(pieces, k=chance.randint(0, 12)))
        reply = sg.parse_tool_calls(text, style=style, tools=TOOLS if told else None)
        assert all(isinstance(call.arguments, dict | list | str | int | float | None) for call in reply.calls)


def book(day: datetime.date, seats: int = 1) -> None:
    """Books seats."""


def test_functions_of_python_get_their_types() -> None:
    text = '<tool_call>\n{"name": "book", "arguments": {"day": "2027-03-05"}}\n</tool_call>'
    (call,) = sg.parse_tool_calls(text, style="hermes", tools=[book]).calls
    assert call.arguments["day"] == datetime.date(2027, 3, 5)
    assert sg.parse_tool_calls(text).calls[0].arguments == {"day": "2027-03-05"}
    other = sg.parse_tool_calls(text.replace("book", "look"), tools=[book])
    assert not other.calls and "look" in other.text, "another name is no call"


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="did you mean 'hermes'"):
        sg.parse_tool_calls("", style="hermez")
    with pytest.raises(TypeError, match="a text is a str"):
        sg.parse_tool_calls(b"")  # type: ignore[arg-type]
    assert sg.parse_tool_calls("no call") == sg.ToolReply("no call", [])
    deep = '{"name": "f", "arguments": ' + "[" * 100_000 + "}"
    assert not sg.parse_tool_calls(deep, style="json").calls


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ({"type": "function", "function": {"name": "f", "paramters": {}}}, "did you mean 'parameters'?"),
        ({"name": "f", "json_schema": {}}, "did you mean 'parameters'?"),
        ({"type": "function", "function": {"name": "f"}, "parameters": {}}, "put them inside"),
    ],
)
def test_misspelled_parameters_do_not_become_none(tool: dict[str, Any], words: str) -> None:
    with pytest.raises(sg.GrammarError, match=re.escape(words)):
        sg.generate(None, "x", tools=[tool], tool_choice="required")
    with pytest.raises(TypeError, match="parallel_tool_calls is True or False, not 'no'"):
        sg.generate(None, "x", tools=[{"name": "f"}], parallel_tool_calls="no")  # type: ignore[call-overload]


@pytest.mark.parametrize("style", [name for name, row in ALL.items() if row.parameters.endswith("_xml")])
def test_no_value_holds_a_mark_that_ends_the_call(style: str) -> None:
    """A reader looks for marks before it reads values, so no value may hold a mark that ends the call. The
    test puts a mark of the style at every place of an accepted text. If the grammar accepts the result, it is
    still one call."""
    row, compiler = ALL[style], bytes_compiler()
    function = {"name": "f", "parameters": {"properties": {"x": {"type": "string"}}, "required": ["x"]}}
    tools = [{"type": "function", "function": function}]
    grammar = compiler.tools(tools, "required", style=style)
    text = grammar.matcher().shortest_completion().decode()
    marks = {row.end, *row.end.split("\n"), row.close, row.close.strip(), row.begin, row.open, row.trigger}
    taken = 0
    for mark in sorted(marks - {""}):
        mark = mark.replace("{name}", "f").replace("{index}", "0")
        for i in range(len(text)):
            changed = text[:i] + mark + text[i:]
            matcher = grammar.matcher()
            if matcher.accept_bytes(changed) and matcher.is_accepting():
                taken += 1
                assert len(sg.parse_tool_calls(changed, style=style, tools=tools).calls) == 1, changed
    assert taken or style == "minimax-m3"  # values of this style hold no mark at all


def test_arguments_that_a_function_does_not_take_are_told_by_the_call() -> None:
    def weather(city: str) -> None: ...

    text = '<tool_call>\n{"name": "weather", "arguments": {"city": 3}}\n</tool_call>'
    with pytest.raises(
        sg.GrammarError, match="a call of 'weather' has arguments that it does not take: city"
    ):
        sg.parse_tool_calls(text, tools=[weather])


# ---- random tools ----


def test_random_tools_are_called_in_time_and_as_strictly_as_asked() -> None:
    """Random lists of tools, choices, levels of strictness, thoughts and budgets: each call ends in time and
    is as strict as asked. Seeds 0 to 150 and 1,000 to 2,000 were tried once."""
    tally: collections.Counter[str] = collections.Counter()
    harness.seeded(lambda source: tool_calls.called(source, tally), 150)
    assert tally["judged"] > 10


def test_line_breaks_inside_a_call() -> None:
    text = "<function_calls>f(a=[0\r,\t1 \n\n  ], n=3)\nf(a=[], n=4)\n</function_calls>"
    found = sg.parse_tool_calls(text, style="olmo3").calls
    assert [call.arguments for call in found] == [{"a": [0, 1], "n": 3}, {"a": [], "n": 4}]
