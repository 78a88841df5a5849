"""Structural tags and tools: cases, and verdicts compared with xgrammar's if xgrammar is installed."""

# ruff: noqa: E501, UP031  (tables: a case is a line; calls are full of braces)
from __future__ import annotations

import dataclasses
import importlib.util
import itertools
import json
import pickle
import random
import re
from typing import Any

import numpy as np
import pytest

import structgen
from oracles import closed, harness, oracle
from oracles.differential import instances
from oracles.strategies import Seeded
from structgen import errors
from structgen.frontend import tools as tool_styles
from structgen.frontend.elements import ELEMENT_STYLES
from structgen.frontend.tool_calls import style_of_template
from structgen.reasoning import FAMILIES

VOCABULARY = structgen.Vocabulary.from_bytes(
    [bytes([i]) for i in range(256)] + [b"", b"", b"", b""],
    eos_token_ids=256,
    special_token_ids={"<end>": 256, "<tool_call>": 257, "</tool_call>": 258, "[TOOL_CALLS]": 259},
)
PLAIN = structgen.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], 256)
COMPILER, BYTES = structgen.Compiler(VOCABULARY), structgen.Compiler(PLAIN)

INTEGER = {"type": "json_schema", "json_schema": {"type": "integer"}}
TAG_A = {"type": "tag", "begin": "<a>", "content": INTEGER, "end": "</a>"}
TAG_B = {"type": "tag", "begin": "<b>", "content": {"type": "any_text"}, "end": "</b>"}

CASES = [
    ({"type": "const_string", "value": "x\n"}, ["x\n"], ["x", ""]),
    ({"type": "regex", "pattern": "a+"}, ["aa"], ["", "b"]),
    ({"type": "grammar", "grammar": 'root ::= "(" root ")" | "x"'}, ["((x))"], ["(x"]),
    ({"type": "any_text", "excludes": ["no"]}, ["", "n o"], ["no", "a no b"]),
    (TAG_A, ["<a>12</a>"], ["<a>x</a>", "12", "<a>12</a> "]),
    (TAG_B, ["<b></b>", "<b>x < /b> <b></b>"], ["<b></b></b>", "<b>"]),
    ({"type": "tag", "begin": "<", "content": {"type": "any_text"}, "end": ["1", "2"]}, ["<x1", "<2"], ["<12", "<"]),
    ({"type": "sequence", "elements": [TAG_A, {"type": "optional", "content": TAG_B}]}, ["<a>1</a>", "<a>1</a><b></b>"], ["<b></b>"]),
    ({"type": "or", "elements": [TAG_A, TAG_B]}, ["<a>1</a>", "<b>1</b>"], ["<a>1</a><b></b>", ""]),
    ({"type": "star", "content": TAG_A}, ["", "<a>1</a><a>2</a>"], ["<a>"]),
    ({"type": "plus", "content": TAG_A}, ["<a>1</a>"], [""]),
    ({"type": "repeat", "content": TAG_A, "min": 2, "max": 2}, ["<a>1</a><a>2</a>"], ["<a>1</a>"]),
    (
        {"type": "triggered_tags", "triggers": ["<a", "<b"], "tags": [TAG_A, TAG_B]},
        ["", "text < a", "x<a>1</a>y<b>2</b>", "<<a>1</a>", "<a>1</a><a>2</a>"],
        ["<a", "<ax", "<a>x</a>", "x<a>1</a><b>"],
    ),
    (
        {"type": "triggered_tags", "triggers": ["<a>"], "tags": [TAG_A], "stop_after_first": True},
        ["", "text<a>1</a>"],
        ["<a>1</a>text", "<a>1</a><a>1</a>"],
    ),
    (
        {"type": "triggered_tags", "triggers": ["<a>"], "tags": [TAG_A], "at_least_one": True},
        ["<a>1</a>text", "<a>1</a>"],
        ["", "text"],
    ),
    (
        {"type": "triggered_tags", "triggers": ["<a>"], "tags": [TAG_A], "at_least_one": True, "stop_after_first": True},
        ["<a>1</a>"],
        ["", "text", "<a>1</a>text"],
    ),
    (
        {"type": "tags_with_separator", "tags": [TAG_A, TAG_B], "separator": ", ", "at_least_one": True},
        ["<a>1</a>", "<a>1</a>, <b>x</b>"],
        ["", "<a>1</a>,<b></b>", "<a>1</a>, "],
    ),
    ({"type": "tags_with_separator", "tags": [TAG_A], "separator": ""}, ["", "<a>1</a><a>2</a>"], ["x"]),
    ({"type": "dispatch", "rules": [["fn:", INTEGER]], "excludes": ["bad"]}, ["", "a fn:12 b fn:3", "fn:1"], ["fn:", "bad", "fn:x"]),
]  # fmt: skip
CASES += [
    (
        {"structures": [{"begin": "<a>", "schema": {"type": "integer"}, "end": "</a>"}], "triggers": ["<a"]},
        ["x <a>1</a> y"],
        ["<a>x"],
    )
]


TRIGGERED = {"type": "triggered_tags", "triggers": ["<a"], "tags": [TAG_A]}
ANY = {"type": "any_text"}


def ending(content: dict, end: str | list[str] = "end") -> dict:
    return {"type": "tag", "begin": "b", "content": content, "end": end}


# The end mark of a tag closes the tag, also where the tag's content is free text.
CASES += [
    (ending({**ANY, "excludes": ["end", "no"]}), ["bend", "bxend"], ["bxendyend", "bnoend"]),
    (ending({**ANY, "excludes": ["e", "no"]}), ["bend", "bxend"], ["bexend", "bnoend", "bxeend"]),
    (ending({**ANY, "excludes": ["xe"]}), ["bxend", "bend"], ["bxexend"]),
    (ending({**ANY, "excludes": ["en"], "max_chars": 3}), ["bend", "bxxxend"], ["bxenend", "bxxxxend"]),
    ({"type": "regex", "pattern": "\\d"}, ["1"], ["\u0663"]),
    (ending({**ANY, "excludes": ["x"]}, ["end", "x"]), ["bend", "bx", "byx"], ["bxx", "b"]),
    (ending(TRIGGERED), ["bend", "bxend", "bx<a>1</a>yend"], ["bxendyend", "b<a>1</a>endend", "bx<a>1</a>"]),
    (ending({**TRIGGERED, "stop_after_first": True}), ["bend", "bx<a>1</a>end"], ["bx<a>1</a>yend", "bxendyend"]),
    (ending({**TRIGGERED, "at_least_one": True}), ["b<a>1</a>end", "b<a>1</a>xend"], ["bend", "b<a>1</a>xendxend"]),
    (ending({**TRIGGERED, "at_least_one": True, "stop_after_first": True}), ["b<a>1</a>end"], ["b<a>1</a>xend"]),
    (ending({"type": "sequence", "elements": [INTEGER, ANY]}), ["b1end", "b1xend"], ["b1xendyend"]),
    (ending({"type": "sequence", "elements": [ANY, INTEGER]}), ["b1end", "bx1end"], ["bend1end"]),
    (ending({"type": "or", "elements": [INTEGER, ANY]}), ["b1end", "bxend"], ["bxendyend"]),
    (ending({"type": "optional", "content": ANY}), ["bend", "bxend"], ["bxendyend"]),
    (ending({**ANY, "max_chars": 3}), ["bend", "bxxxend"], ["bxxxxend", "bendend"]),
    (ending({**ANY, "max_chars": 3}, ["end", "x"]), ["bend", "byyx"], ["bxyx", "byyyyend"]),
]  # fmt: skip
# Differences from xgrammar: of two overlapping ends, the one that begins first closes the tag; a trigger may
# hold an excluded text.
ALONE = [
    (ending({"type": "dispatch", "rules": [["fn:", INTEGER]]}), ["bxfn:1yend"], ["bxendyend"]),
    (ending({**TRIGGERED, "excludes": ["e", "<"]}), ["bend", "bx<a>1</a>yend"], ["b<end", "bx<a>1</a>eend"]),
    (ending(ANY, "aba"), ["baba", "bxaba"], ["bababa"]),
    (ending({**ANY, "max_chars": 9}, "aba"), ["baba", "bxaba", "baaba"], ["bababa"]),
]


@pytest.mark.parametrize("spec, inside, outside", ALONE)
def test_first_end_counts(spec, inside, outside) -> None:
    test_cases(spec, inside, outside)


ARGUMENTS = closed(
    {"a": {"type": "string"}, "n": {"type": "integer"}, "e": {"type": "string", "enum": ["x", "y"]}},
    ["a", "n"],
)
D = "｜DSML｜"
WRITTEN = {
    "deepseek_xml": f'<{D}parameter name="a" string="true">1 < 2</{D}parameter>\n<{D}parameter name="n" string="false">3</{D}parameter>',
    "deepseek_v4_1_xml": f'<{D} parameter name="a" string="true">1 < 2</{D} parameter>\n<{D} parameter name="n" string="false">3</{D} parameter>',
    "kimi_k3_xml": '<|open|>argument key="a" type="string"<|sep|>1 < 2<|close|>argument<|sep|><|open|>argument key="n" type="number"<|sep|>3<|close|>argument<|sep|>',
}  # fmt: skip
CASES += [
    (
        {"type": "json_schema", "style": style, "json_schema": ARGUMENTS},
        [text, text + text[: text.index("\n") if "\n" in text else text.index('<|open|>argument key="n"')].replace('"a"', '"e"').replace("1 < 2", "x")],
        [text.replace("3", "x"), text.replace('"true"', '"false"').replace('"string"', '"number"'), text[: len(text) // 2]],
    )
    for style, text in WRITTEN.items()
]  # fmt: skip


def wrapped(spec: dict) -> dict:
    return spec if "structures" in spec else {"type": "structural_tag", "format": spec}


@pytest.mark.parametrize("spec, inside, outside", CASES)
def test_cases(spec, inside, outside) -> None:
    found = BYTES.structural_tag(wrapped(spec))
    assert [t for t in inside if not harness.verdict(found, t)] == []
    assert [t for t in outside if harness.verdict(found, t)] == []
    assert harness.verdict(BYTES.structural_tag(json.dumps(wrapped(spec))), inside[0])


def test_xgrammar_agrees() -> None:
    """Both engines give equal verdicts on equal JSON."""
    xgrammar = pytest.importorskip("xgrammar")
    info = xgrammar.TokenizerInfo([bytes([i]) for i in range(256)] + [b"</s>"], stop_token_ids=[256])
    compiler = xgrammar.GrammarCompiler(info, cache_enabled=False)
    seen = 0
    for spec, inside, outside in CASES:
        if "structures" in spec:
            continue
        try:
            theirs = compiler.compile_structural_tag(json.dumps(wrapped(spec)))
        except RuntimeError:
            continue
        for text, expected in [*((t, True) for t in inside), *((t, False) for t in outside)]:
            matcher = xgrammar.GrammarMatcher(theirs, terminate_without_stop_token=False)
            accepted = matcher.accept_string(text) and matcher.accept_token(256)
            assert accepted == expected, (spec, text)
            seen += 1
    assert seen > 40


PLACE = closed({"city": {"type": "string"}, "days": {"type": "integer"}}, ["city"])
NOTHING = {"type": "object", "additionalProperties": False}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": parameters}}
    for name, parameters in (("weather", PLACE), ("time", NOTHING))
]
J = '{"city": "Rome", "days": 2}'
CALLS = {
    "json": '{"name": "weather", "arguments": %s}' % J,
    "json-compact": '{"name":"weather","arguments":%s}' % J,
    "llama3": '{"name": "weather", "parameters": %s}' % J,
    "hermes": '<tool_call>\n{"name": "weather", "arguments": %s}\n</tool_call>' % J,
    "qwen": '<tool_call>\n{"name": "weather", "arguments": %s}\n</tool_call>' % J,
    "mistral": '[TOOL_CALLS][{"name": "weather", "arguments": %s}, {"name": "time", "arguments": {}}]' % J,
    "mistral-v3": '[TOOL_CALLS] [{"name": "weather", "arguments": %s}]' % J,
    "mistral-v11": "[TOOL_CALLS]weather[ARGS]%s" % J,
    "deepseek-v3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n%s\n```<｜tool▁call▁end｜>"
    "<｜tool▁calls▁end｜>" % J,
    "deepseek-v3.1": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>%s<｜tool▁call▁end｜><｜tool▁calls▁end｜>" % J,
    "deepseek-v3.2": f'<{D}function_calls>\n<{D}invoke name="weather">\n<{D}parameter name="city" string="true">Rome</{D}parameter>\n'
    f"</{D}invoke>\n</{D}function_calls>",
    "kimi-k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>%s<|tool_call_end|>"
    "<|tool_calls_section_end|>" % J,
    "kimi-k3": '<|open|>tools<|sep|><|open|>call tool="weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Rome'
    "<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
    "qwen3-coder": "<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
    "</function>\n</tool_call>",
    "minimax": '<minimax:tool_call>\n<invoke name="weather">\n<parameter name="city">Rome</parameter>\n</invoke>\n</minimax:tool_call>',
    "minimax-m3": ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="weather">]<]minimax[>[<city>Rome]<]minimax[>[</city>'
    "]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
    "glm": "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n</tool_call>",
    "seed-oss": "<seed:tool_call>\n<function=weather>\n<parameter=city>Rome</parameter>\n</function>\n</seed:tool_call>",
    "step3": '<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="weather">\n'
    '<steptml:parameter name="city">Rome</steptml:parameter>\n</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>',
    "granite": '<|tool_call|>[{"name": "weather", "arguments": %s}]' % J,
    "granite-3.1": '<tool_call>[{"name": "weather", "arguments": %s}, {"name": "time", "arguments": {}}]' % J,
    "phi4": 'functools[{"name": "weather", "arguments": %s}]' % J,
    "nemotron": '<TOOLCALL>[{"name": "weather", "arguments": %s}]</TOOLCALL>' % J,
    "functionary": "<function=weather>%s</function>" % J,
    "command-r": '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "weather", "parameters": %s}\n]<|END_ACTION|>' % J,
    "harmony": "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>%s" % J,
}  # fmt: skip
G = "｜GCML｜"
P = "<|plamo:%s:plamo|>"
N = '{"name": "weather", "arguments": %s}' % J
CALLS |= {
    "deepseek-v4": CALLS["deepseek-v3.2"].replace("function_calls", "tool_calls"),
    "deepseek-v4.1": f'<{D} calls>\n<{D} invoke name="weather">\n<{D} parameter name="city" string="true">Rome</{D} parameter>\n'
    f"</{D} invoke>\n</{D} calls>",
    "gigachat-3.5": f'<{G}tool_calls>\n<{G}invoke name="weather">\n<{G}parameter name="city" string="true">Rome</{G}parameter>\n'
    f"</{G}invoke>\n</{G}tool_calls>",
    "gigachat-3": "<|function_call|>" + N,
    "mimo": "<tool_call><function=weather><parameter=city>Rome</parameter><parameter=days>2</parameter></function></tool_call>",
    "dots": '<dots_function_call>\n<invoke name="weather">\n<parameter name="city">Rome</parameter>\n</invoke>\n</dots_function_call>',
    "minicpm5": '<function name="weather"><param name="city"><![CDATA[Rome]]></param></function>',
    "glm-4.7": "<tool_call>weather<arg_key>city</arg_key><arg_value>Rome</arg_value></tool_call>",
    "iquest-q1": "<iquest_tool_call>weather<arg_key>city</arg_key><arg_value>Rome</arg_value></iquest_tool_call>",
    "hunyuan": f"<tool_calls>[{N}]</tool_calls>",
    "hy-v3": "<tool_calls>\n<tool_call>weather<tool_sep>\n<arg_key>city</arg_key><arg_value>Rome</arg_value>\n</tool_call>\n</tool_calls>",
    "hy-v4": "<tool_calls><tool_call>weather<arg_key>city</arg_key><arg_value>Rome</arg_value></tool_call></tool_calls>",
    "k2-horizon": "<ifm|tool_calls><ifm|tool_call>weather<ifm|arg_key>city</ifm|arg_key><ifm|arg_value>Rome</ifm|arg_value>"
    "</ifm|tool_call></ifm|tool_calls>",
    "granite-20b": "<function_call> " + N,
    "exaone": f"<tool_call>{N}</tool_call>",
    "longcat": f"<longcat_tool_call>\n{N}\n</longcat_tool_call>",
    "internlm": f"<|action_start|><|plugin|>\n{N.replace('arguments', 'parameters')}<|action_end|>",
    "apertus": '<|tools_prefix|>[{"weather": %s}, {"time": {}}]<|tools_suffix|>' % J,
    "xlam": f"[{N}]",
    "inkling": '<|message_model|><|content_invoke_tool_json|>{"name":"weather","args":%s}<|end_message|>' % J,
    "plamo3": P % "begin_tool_requests"
    + P % "begin_tool_request"
    + P % "begin_tool_name"
    + "weather"
    + P % "end_tool_name"
    + P % "begin_tool_arguments"
    + "<|plamo:constrain|>json<|plamo:msg|>"
    + J
    + P % "end_tool_arguments"
    + P % "end_tool_request"
    + P % "end_tool_requests",
    "gemma-4": '<|tool_call>call:weather{city:<|"|>Rome<|"|>,days:2}<tool_call|>',
    "functiongemma": "<start_function_call>call:weather{city:<escape>Rome<escape>,days:2}<end_function_call>",
    "lfm2": '<|tool_call_start|>[weather(city="Rome", days=2), time()]<|tool_call_end|>',
    "olmo3": '<function_calls>weather(city="Rome", days=2)\ntime()</function_calls>',
}
ALIASES = {
    "hermes": "granite4 trinity", "qwen3-coder": "step3.5 step5 granite-4.2 nanbeige", "glm-4.7": "ling3 spark2.5", "glm": "poolside",
    "hunyuan": "jamba",
}  # fmt: skip
CALLS |= {other: CALLS[style] for style, others in ALIASES.items() for other in others.split()}
CALLS |= {
    "ernie": CALLS["hermes"],
    "nemotron-v3": CALLS["qwen3-coder"],
    "gpt-oss": CALLS["harmony"],
    "cohere": CALLS["command-r"],
    "cohere-xml": '<cofl:tool_calls><cofl:tool_call id="0" name="weather"><cofl:value name="city" type="raw">Rome</cofl:value>'
    "</cofl:tool_call></cofl:tool_calls>",
}
CALLS |= {"pythonic": '[weather(city="Rome", days=2)]', "llama4-json": CALLS["llama3"]}
CALLS["llama4"] = CALLS["pythonic"]


@pytest.mark.parametrize("style", tool_styles.STYLES)
def test_tools(style) -> None:
    call = CALLS[style]
    auto = BYTES.tools(TOOLS, style=style)
    assert harness.verdict(auto, "no call") and harness.verdict(auto, call)
    assert harness.verdict(auto, "so: " + call)  # for the style of Python calls, the whole reply is text
    assert not harness.verdict(auto, call.replace("weather", "wether"))
    assert not harness.verdict(auto, call.replace("city", "town"))
    required = BYTES.tools(TOOLS, "required", style=style)
    assert harness.verdict(required, call) and not harness.verdict(required, "no call")
    none = BYTES.tools(TOOLS, "none", style=style)
    assert harness.verdict(none, "no call") and not harness.verdict(none, call)
    named = BYTES.tools(TOOLS, {"type": "function", "function": {"name": "time"}}, style=style)
    assert not harness.verdict(named, call)
    thinks = dataclasses.replace(FAMILIES[tool_styles.STYLES[style].family], required=True, gap="")
    thinking = BYTES.tools(TOOLS, "required", style=style, reasoning=thinks)
    begin, end = thinks.start, thinks.end
    thought = "hm" if end in call else f"hm {call}"
    assert harness.verdict(thinking, f"{begin}{thought}{end}{call}") and not harness.verdict(thinking, call)


@pytest.mark.parametrize("style", ["hy-v3", "hy-v4"])
def test_marks_with_a_suffix(style: str) -> None:
    """A suffix of the model's marks is in every mark of the grammar, and a call without the suffix is plain
    text."""
    suffixed = f"{style}:6124c78e"
    call = re.sub(r"<(/?\w+)>", r"<\1:6124c78e>", CALLS[style])
    grammar = BYTES.tools(TOOLS, "required", style=suffixed)
    assert harness.verdict(grammar, call) and not harness.verdict(grammar, CALLS[style])
    (found,) = structgen.parse_tool_calls(call, style=suffixed, tools=TOOLS).calls
    assert (found.name, found.arguments) == ("weather", {"city": "Rome"})
    row = tool_styles.row_of(suffixed)
    assert row is not None
    thinking = BYTES.tools(TOOLS, "required", style=suffixed, reasoning=row.family)
    assert harness.verdict(thinking, f"hm</think>{call}</think:6124c78e>{call}")
    assert not harness.verdict(thinking, f"hm</think>{call}")
    template = f"{{% for %}}<tool_calls:6124c78e>{'<tool_sep:6124c78e>' if style == 'hy-v3' else ''}"
    assert style_of_template(template) == suffixed
    for wrong in ("hermes:6124c78e", f"{style}:", f"{style}:<", f"{style}:{'a' * 50}", 3):
        with pytest.raises(structgen.GrammarError, match="is no style"):
            BYTES.tools(TOOLS, style=wrong)
        with pytest.raises(ValueError, match="is no style"):
            structgen.parse_tool_calls(call, style=wrong)


@pytest.mark.parametrize("style", sorted(ELEMENT_STYLES))
def test_a_suffix_is_in_every_mark_of_elements_or_in_none(style: str) -> None:
    shape = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    for suffix in (":6124c78e", ":"):
        element = {"type": "json_schema", "style": style + suffix, "json_schema": shape}
        tag = {"type": "structural_tag", "format": element}
        if suffix == ":" or not style.startswith("glm"):
            with pytest.raises(structgen.GrammarError, match="is not supported"):
                BYTES.structural_tag(tag)
        else:
            text = BYTES.structural_tag(tag).matcher().shortest_completion().decode()
            assert text.count("<") == text.count(f"{suffix}>") == 4


def test_elements_of_a_list_have_no_names() -> None:
    """Items of a list have no names. A name once excluded every other reading of the text, and the item was
    lost."""
    item, named = '<cofl:value type="raw">a</cofl:value>', '<cofl:value name="n" type="raw">b</cofl:value>'
    for items, count in ((item * 2, 1), (item + named, 0), (named, 0)):
        text = CALLS["cohere-xml"].replace("Rome", items).replace('"raw">' + items, '"list">' + items)
        assert len(structgen.parse_tool_calls(text, style="cohere-xml").calls) == count


def test_words_that_json_lacks_are_no_arguments() -> None:
    """Python's json reads NaN, but JSON has no such word."""
    for word in ("NaN", "Infinity", "-Infinity"):
        text = CALLS["cohere-xml"].replace('type="raw">Rome', f'type="json">{word}')
        assert text != CALLS["cohere-xml"]
        assert not structgen.parse_tool_calls(text, style="cohere-xml").calls
        text = CALLS["glm"].replace("Rome", word)
        (call,) = structgen.parse_tool_calls(text, style="glm").calls
        assert word in call.arguments.values()


def test_a_line_is_a_call_where_the_host_reads_lines() -> None:
    """Some hosts read a call as one line. Python's splitlines() cuts at more characters than plain strings
    escape, so a call must not contain any of them."""
    tools = [{"name": "say", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}]
    for mark in "\x85\u2028\u2029":
        call = f'[say(text="a{mark}b")]'
        assert harness.verdict(BYTES.tools(tools, "required", style="pythonic"), call)
        lines = f'<function_calls>say(text="a{mark}b")</function_calls>'
        olmo3 = BYTES.tools(tools, "required", style="olmo3")
        assert not harness.verdict(olmo3, lines) and harness.verdict(olmo3, lines.replace(mark, "\\n"))


def test_the_docstring_names_every_style() -> None:
    told = structgen.Compiler.tools.__doc__ or ""
    assert [style for style in tool_styles.STYLES if f'"{style}"' not in told] == []


def test_marks_may_be_special_tokens() -> None:
    found = COMPILER.tools(TOOLS, "required", style="hermes")
    matcher = found.matcher()
    assert matcher.accept_token(257) and matcher.accept_bytes('\n{"name": "time", "arguments": {}}\n')
    assert matcher.accept_token(258) and matcher.is_accepting()
    free = COMPILER.tools(TOOLS, style="hermes").matcher()
    assert free.accept_bytes("text") and free.accept_token(257) and not free.accept_bytes("x")


TOOL = {
    "type": "tag",
    "begin": {"type": "token", "token": "<tool_call>"},
    "content": INTEGER,
    "end": {"type": "token", "token": 258},
}
TOKENS = [
    ({"type": "token", "token": 259}, [[259]], [[], [257], [259, 259], list(b"a")]),
    (TOOL, [[257, *b"12", 258]], [[257, *b"x", 258], [*b"<tool_call>1", 258], [257, *b"1"]]),
    ({"type": "exclude_token", "exclude_tokens": [257]}, [[259], [258], list(b"a")], [[257], [259, 259], []]),
    ({"type": "any_tokens", "exclude_tokens": ["<tool_call>"]}, [[], [259, *b"a", 258]], [[257], [*b"a", 257]]),
    (
        {"type": "token_triggered_tags", "trigger_tokens": [257], "tags": [TOOL]},
        [[], list(b"text"), [*b"a", 257, *b"1", 258, *b"b", 257, *b"2", 258], [259, *b"a"]],
        [[257], [257, *b"x", 258], [*b"a", 257, *b"1"]],
    ),
    (
        {"type": "token_triggered_tags", "trigger_tokens": [257], "tags": [TOOL], "at_least_one": True, "stop_after_first": True},
        [[257, *b"1", 258]],
        [[], list(b"a"), [257, *b"1", 258, *b"a"], [257, *b"1", 258] * 2],
    ),
    (
        {"type": "token_dispatch", "rules": [[257, INTEGER], ["[TOOL_CALLS]", {"type": "const_string", "value": "x"}]]},
        [[], [257, *b"1"], [*b"a", 259, *b"x", 257, *b"2"]],
        [[257, *b"x"], [259], [259, *b"y"]],
    ),
    (
        {"type": "token_dispatch", "rules": [[257, INTEGER]], "loop": False, "exclude_tokens": [259]},
        [list(b"a"), [*b"a", 257, *b"1"]],
        [[259], [257, *b"1", 257, *b"1"]],
    ),
    ({"type": "json_schema", "json_schema": {"type": "array"}, "max_whitespace_cnt": 1}, [list(b"[ ]"), list(b"[]")], [list(b"[  ]")]),
]  # fmt: skip


def has_tokens(grammar: structgen.CompiledGrammar, inside: list, outside: list) -> None:
    def verdict(tokens: list[int]) -> bool:
        matcher = grammar.matcher()
        return matcher.accept_tokens(tokens) and matcher.is_accepting()

    assert [t for t in inside if not verdict(t)] == []
    assert [t for t in outside if verdict(t)] == []


@pytest.mark.parametrize("spec, inside, outside", TOKENS)
def test_tokens(spec, inside, outside) -> None:
    has_tokens(COMPILER.structural_tag(wrapped(spec)), inside, outside)


def test_requests_with_one_tag_share_a_grammar() -> None:
    """A tag as text and as a dict gives one grammar. Other options, or a dict that was changed, give another
    grammar."""
    made = structgen.Compiler(BYTES.vocabulary)
    content = {"type": "json_schema", "json_schema": {"type": "integer"}}
    spec = wrapped({"type": "tag", "begin": "<a>", "content": content, "end": "</a>"})
    first = made.structural_tag(json.dumps(spec))
    assert made.structural_tag(json.dumps(spec)) is first
    assert made.structural_tag(json.loads(json.dumps(spec))) is made.structural_tag(spec)
    assert made.structural_tag(json.dumps(spec), numbers="any") is not first
    content["json_schema"] = {"type": "boolean"}
    assert harness.verdict(made.structural_tag(spec), "<a>true</a>")


def test_max_tokens() -> None:
    words = structgen.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b"ab", b"x</t>", b""], 258)
    for kind in ("any_text", "any_tokens"):
        content = {"type": kind, "max_tokens": 2}
        spec = {"type": "tag", "begin": "<t>", "content": content, "end": "</t>"}
        found = structgen.Compiler(words).structural_tag(wrapped(spec))

        def verdict(tokens: list[int], found=found) -> bool:
            matcher = found.matcher()
            return matcher.accept_tokens([*b"<t>", *tokens]) and matcher.is_accepting()

        assert verdict(list(b"</t>")) and verdict([256, 256, *b"</t>"]) and verdict([256, 257]), kind
        assert not verdict([256, 256, 257]) and not verdict(list(b"abc</t>")), kind
    none = {"type": "sequence", "elements": [{"type": "any_text", "max_tokens": 0}, INTEGER]}
    found = structgen.Compiler(words).structural_tag(wrapped(none))
    assert harness.verdict(found, "12") and not harness.verdict(found, "a12")


ORDINARY = structgen.Compiler(
    structgen.Vocabulary.from_bytes(
        [bytes([i]) for i in range(256)] + [b"ab", b"abc", b"bc", b"<c>", b"", b""], 260, {"<s>": 261}
    )
)
AB = {"type": "token", "token": "ab"}
EXACT = [  # formats of ordinary tokens, whose verdict depends on how the text is cut into tokens
    (AB, [[256]], [[97, 98], [257], [97], []]),
    ({"type": "sequence", "elements": [AB, {"type": "const_string", "value": "c"}]}, [[256, 99]], [[257], [97, 98, 99], [97, 258]]),
    ({"type": "sequence", "elements": [{"type": "const_string", "value": "a"}, {"type": "token", "token": "b"}, {"type": "token", "token": 99}]}, [[97, 98, 99]], [[256, 99], [97, 258], [257]]),
    ({"type": "star", "content": AB}, [[], [256], [256, 256]], [[97, 98], [256, 97, 98]]),
    ({"type": "exclude_token", "exclude_tokens": ["ab", "<s>"]}, [[257], [97], [258], [0x80]], [[256], [261], [97, 98], []]),
    ({"type": "exclude_token", "exclude_tokens": []}, [[256], [261], [97]], [[], [97, 98]]),
    ({"type": "any_tokens", "exclude_tokens": ["ab"]}, [[], [97, 98], [257, 258], [261, 97]], [[256], [97, 256], [257, 256]]),
    ({"type": "any_tokens", "exclude_tokens": ["ab"], "max_tokens": 2}, [[], [97, 98]], [[97, 98, 99], [256]]),
    (
        {"type": "tag", "begin": AB, "content": {"type": "any_tokens"}, "end": {"type": "token", "token": "<c>"}},
        [[256, 259], [256, 97, *b"<c>", 259]],
        [[97, 98, 259], [256, *b"<c>"], [256, 259, 97, 259]],
    ),
    (
        {"type": "token_triggered_tags", "trigger_tokens": [256], "tags": [{"type": "tag", "begin": AB, "content": INTEGER, "end": "."}]},
        [[], [97, 98], [97, 256, *b"12."], [256, *b"1.", 257, 256, *b"2."]],
        [[256], [256, 97], [256, *b"1"]],
    ),
    (
        {"type": "token_dispatch", "rules": [["ab", INTEGER], ["<s>", {"type": "const_string", "value": "x"}]]},
        [[97, 98], [256, *b"1"], [261, *b"x"], [256, *b"1", 97, 261, *b"x"]],
        [[256, *b"x"], [261, *b"1"]],
    ),
]  # fmt: skip


@pytest.mark.parametrize("spec, inside, outside", EXACT)
def test_ordinary_tokens(spec, inside, outside) -> None:
    """A mask allows a token exactly if `accept_token` accepts it, and no walk ends before the text may
    end."""
    grammar = ORDINARY.structural_tag(wrapped(spec))
    has_tokens(grammar, inside, outside)
    for tokens in inside:
        matcher = grammar.matcher()
        for token in [*tokens, None]:
            mask = oracle.mask_of(matcher, 262)
            assert [t for t in range(262) if bool(mask[t]) != matcher.fork().accept_token(t)] == []
            assert mask.any() and matcher.is_accepting() == bool(mask[260])
            twin = matcher.fork()
            for _ in range(40):
                if twin.is_accepting():
                    break
                needed = twin.tokens_needed()
                row = oracle.mask_of(twin, 262, needed)
                assert row.any() and twin.accept_token(int(row.argmax())) and twin.tokens_needed() < needed
            assert twin.is_accepting()
            if token is not None:
                assert matcher.accept_token(token)


def test_end_token_closes() -> None:
    for content in (
        {"type": "any_tokens"},
        {"type": "token_triggered_tags", "trigger_tokens": [259], "tags": [TOOL]},
    ):
        if content["type"] != "any_tokens":
            content["tags"] = [{**TOOL, "begin": {"type": "token", "token": 259}}]
        spec = {"type": "tag", "begin": "b", "content": content, "end": {"type": "token", "token": 258}}
        matcher = COMPILER.structural_tag(wrapped(spec)).matcher()
        assert (
            matcher.accept_tokens([*b"bx", 258]) and matcher.is_accepting() and not matcher.accept_token(258)
        )


SPELLED = ['{"n":1.0}', '{"n":1e2}', '{"n":-0}', '{"s":"\\u0041"}', '{"s":"a\\/b"}', '{"\\u0073":"a"}']
WRITTEN = ['{"n":1}', '{"n":-12}', '{"s":"A\\n\\""}', '{"s":"\u00e9","n":0}']


def test_what_programs_read_is_spelled_in_one_way() -> None:
    """Tools, structural tags and `response_format` allow one spelling of each value. A schema alone allows
    every spelling of JSON."""
    schema = closed({"s": {"type": "string"}, "n": {"type": "integer"}}, ())
    spec = wrapped({"type": "json_schema", "json_schema": schema, "any_order": True})
    tool = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    shape = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    lark = f"start: %json {json.dumps(schema)}"
    every: dict[str, Any] = {"numbers": "any", "strings": "any"}
    one: dict[str, Any] = {"numbers": "plain", "strings": "plain"}

    def call(found: structgen.CompiledGrammar, text: str) -> bool:
        return harness.verdict(found, f'<tool_call>\n{{"name": "f", "arguments": {text}}}\n</tool_call>')

    narrow = [
        (BYTES.structural_tag(spec), harness.verdict),
        (BYTES.tools(tool, "required"), call),
        (BYTES.json_schema(shape, property_order="any"), harness.verdict),
        (BYTES.json_schema(schema, property_order="any", **one), harness.verdict),
    ]
    wide = [
        (BYTES.structural_tag(spec, **every), harness.verdict),
        (BYTES.tools(tool, "required", **every), call),
        (BYTES.json_schema(shape, property_order="any", **every), harness.verdict),
        (BYTES.json_schema(schema, property_order="any"), harness.verdict),
    ]
    if importlib.util.find_spec("lark") is not None:
        narrow.append((BYTES.lark(lark, **one), harness.verdict))
        wide.append((BYTES.lark(lark), harness.verdict))
    in_order = [t for t in WRITTEN if t.count(":") == 1]
    for found, verdict in narrow:
        assert [t for t in in_order if not verdict(found, t)] == []
        assert [t for t in SPELLED if verdict(found, t)] == []
    for found, verdict in wide:
        assert [t for t in (*in_order, *SPELLED) if not verdict(found, t)] == []


STYLES: dict[str, tuple[str, ...]] = {
    "whitespace": ("flexible", "compact", "one-blank", "spaced", "pretty", r"[ \t]{0,2}"),
    "property_order": ("schema", "any"),
    "numbers": ("any", "plain", "canonical"),
    "strings": ("any", "plain"),
    "formats": ("enforce", "annotate"),
}


def spelled() -> list[str]:
    """Returns an object in many spellings: blanks, orders, numbers, escapes, a valid date and an invalid one."""
    members = ['"d"%s"2026-01-31"', '"d"%s"x"', '"n"%s1.0', '"n"%s-1', '"n"%s1e2', '"\\u006e"%s5']
    texts = []
    for gap, colon, comma in (
        ("", ":", ","),
        ("", ": ", ", "),
        (" ", ":", ","),
        ("\n  ", ": ", ",\n  "),
        ("\t\t", ":", ","),
    ):
        for some in ([], *itertools.permutations(members, 1), *itertools.permutations(members, 2)):
            inner = comma.join(member % colon for member in some)
            texts.append("{" + (gap + inner + gap.rstrip(" ") if some else gap) + "}")
    return texts


@pytest.mark.parametrize("seed", range(30))
def test_schemas_within_are_written_as_a_schema_alone(seed: int) -> None:
    """A schema inside a grammar has the spelling that it has alone. The test tries random options in tags,
    tools, Lark, the kinds of hosts and serialized grammars."""
    chance = random.Random(seed)
    how: Any = {name: chance.choice(values) for name, values in STYLES.items()}
    schema = closed({"d": {"type": "string", "format": "date"}, "n": {"type": "number"}}, ())
    alone = BYTES.json_schema(schema, **how)
    tag = wrapped(
        {"type": "tag", "begin": "<", "content": {"type": "json_schema", "json_schema": schema}, "end": ">"}
    )
    tool = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    call = '{"name":"f","arguments":%s}'
    within = [
        (BYTES.structural_tag(tag, **how), "<%s>"),
        (BYTES.compile("structural_tag", json.dumps(tag), **how), "<%s>"),
        (BYTES.tools(tool, "f", style="json-compact", **how), call),
        (BYTES.deserialize(BYTES.structural_tag(tag, **how).serialize()), "<%s>"),
        (pickle.loads(pickle.dumps(BYTES.tools(tool, "f", style="json-compact", **how))), call),
    ]
    if importlib.util.find_spec("lark") is not None:
        lark = f'start: "<" %json {json.dumps(schema)} ">"'
        within += [(BYTES.lark(lark, **how), "<%s>"), (BYTES.compile("lark", lark, **how), "<%s>")]
    texts = spelled()
    taken = [harness.verdict(alone, text) for text in texts]
    assert any(taken) and not all(taken)
    for found, around in within:
        assert [harness.verdict(found, around % text) for text in texts] == taken


FLAT = [name for name, row in tool_styles.STYLES.items() if not row.parameters.startswith(("python", "json"))
        and not ELEMENT_STYLES[row.parameters].nested]  # fmt: skip


@pytest.mark.parametrize(
    "style", [n for n, row in tool_styles.STYLES.items() if row.parameters == "json"] + FLAT
)
def test_every_option_holds_in_calls_of_every_style(style: str) -> None:
    """An option of JSON holds in calls of every style: JSON arguments, and JSON inside elements, are spelled
    as a schema alone."""
    schema = closed({"d": {"type": "string", "format": "date"}, "n": {"type": "number"}}, ())
    flat, texts = style in FLAT, spelled()
    parameters = {"type": "object", "properties": {"city": schema, "days": True}} if flat else schema
    tools = [{"type": "function", "function": {"name": "weather", "parameters": parameters}}, TOOLS[1]]
    call = CALLS[style]
    if flat:
        call = call.replace('string="true"', 'string="false"').replace('type="string"', 'type="object"')
    for option, values in STYLES.items():
        for value in values:
            how: Any = {option: value}
            if flat:  # the string must escape the characters that it cannot hold
                how["strings"] = "any"
            plain: Any = {"numbers": "plain", "strings": "plain", **how}
            alone = BYTES.json_schema(schema, **plain)
            found = BYTES.tools(tools, "required", style=style, **how)
            taken = [harness.verdict(alone, text) for text in texts]
            assert any(taken) and not all(taken)
            written = [call.replace("Rome" if flat else J, text) for text in texts]
            assert [harness.verdict(found, text) for text in written] == taken, how


STRICT: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
MIXED = [
    {"type": "function", "function": {"name": "held", "parameters": STRICT, "strict": True}},
    {"type": "function", "function": {"name": "free", "parameters": STRICT, "strict": False}},
]
RIGHT, WRONG, NO_CALL = '{"n": 1}', '{"m": [true]}', "<tool_call>\nno call"


@pytest.mark.parametrize("level", tool_styles.STRICTNESS)
@pytest.mark.parametrize("choice", ["auto", "required", "free", "held", "none"])
@pytest.mark.parametrize("parallel", [True, False])
def test_strictness(level: Any, choice: str, parallel: bool) -> None:
    """The calls that each level of strictness accepts, by the choice of tools and by tools that ask for
    strict arguments."""

    def call(name: str, arguments: str) -> str:
        return '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>' % (name, arguments)

    for tools, loose in ((MIXED, False), (MIXED[1:], True)):
        if loose and choice == "held":
            continue
        found = BYTES.tools(tools, choice, strictness=level, parallel=parallel)
        any_text = level == "auto" and choice == "auto" and loose
        called = choice != "none"
        expected = {
            "words": choice in ("auto", "none"),
            NO_CALL: any_text,
            call("free", RIGHT): called and choice != "held",
            call("free", WRONG): called and choice != "held" and level != "parameter",
            call("held", RIGHT): any_text or (called and choice != "free" and not loose),
            call("held", WRONG): any_text,
            call("other", RIGHT): any_text,
            call("free", "3"): any_text,
            call("free", RIGHT) * 2: any_text or (parallel and choice in ("auto", "required")),
        }
        assert {text: harness.verdict(found, text) for text in expected} == expected


@pytest.mark.parametrize("style", [n for n, row in tool_styles.STYLES.items() if row.parameters != "python"])
def test_arguments_that_are_not_held_are_any_object_in_every_style(style: str) -> None:
    grammar = BYTES.tools(MIXED[1:], "required", style=style, strictness="function")
    others = 0
    for seed in range(8):
        text = instances.walk(Seeded(seed), grammar.matcher(), 60).decode(errors="replace")
        reply = structgen.parse_tool_calls(text, style=style, tools=[{"name": "free", "parameters": {}}])
        assert reply.calls and all(isinstance(call.arguments, dict) for call in reply.calls), text
        others += any("n" not in call.arguments for call in reply.calls)
    assert others


def test_a_call_is_offered_only_where_it_can_be_completed() -> None:
    """Free text may end anywhere. A call that the remaining tokens cannot complete is not begun."""
    found = COMPILER.tools(MIXED[:1], style="hermes")
    least = COMPILER.tools(MIXED[:1], "required", style="hermes").matcher().tokens_needed()
    row = structgen.allocate_bitmask(1, COMPILER.vocabulary.vocab_size)
    for left in range(1, least + 3):
        matcher = found.matcher()
        matcher.fill_bitmask(row, max_tokens=left)
        allowed = np.unpackbits(row.view(np.uint8), bitorder="little")
        assert bool(allowed[257]) == (left >= least), (left, least)  # the token <tool_call>
        assert allowed[ord("a")] == (left > 1)


def test_a_level_that_is_none() -> None:
    with pytest.raises(
        structgen.GrammarError, match="there is no strictness 'funktion'; did you mean 'function'"
    ):
        BYTES.tools(TOOLS, strictness="funktion")  # type: ignore[arg-type]


@pytest.mark.parametrize("field", [{"style": "qwen_xml"}, {"excludes": ["bad"]}])
def test_strings_have_escapes_where_a_text_is_kept_out_of_them(field) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array"}}}
    found = BYTES.structural_tag(wrapped({"type": "json_schema", "json_schema": schema, **field}))
    text = "<parameter=a>%s</parameter>" if "style" in field else '{"a":%s}'
    assert harness.verdict(found, text % '["b\\u0061d<\\/parameter>",1]')
    assert not harness.verdict(found, text % "[1e2]")


def test_a_spelling_that_is_none() -> None:
    with pytest.raises(ValueError, match="numbers is 'any', 'plain' or 'canonical', not 'all'"):
        BYTES.tools(TOOLS, numbers="all")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="strings is 'any' or 'plain', not 'all'"):
        BYTES.structural_tag({"type": "any_text"}, strings="all")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="property_order is 'schema' or 'any', not 'all'"):
        BYTES.tools(TOOLS, property_order="all")  # type: ignore[arg-type]


def test_excluded_texts_of_a_schema() -> None:
    schema = {"type": "object", "properties": {"s": {"type": "string"}, "a<": {"enum": ["<|x|>", "y"]}}}
    spec = {"type": "json_schema", "json_schema": schema, "excludes": ["<|", "bad"]}
    found = BYTES.structural_tag(wrapped(spec))
    inside = ['{"s":"a"}', '{"s":"<\\u007c"}', '{"s":"b\\u0061d"}', '{"s":"","a<":"\\u003c|x|>"}', '{"z<":1}']
    outside = ['{"s":"<|"}', '{"s":"bad"}', '{"s":"","a<":"<|x|>"}', '{"z<|":1}', '{"z":["<|"]}']
    assert [t for t in inside if not harness.verdict(found, t)] == []
    assert [t for t in outside if harness.verdict(found, t)] == []
    raw = BYTES.structural_tag(wrapped({**spec, "style": "deepseek_xml"}))
    element = f'<{D}parameter name="%s" string="%s">%s</{D}parameter>'
    assert harness.verdict(raw, element % ("s", "true", "b a d <"))
    assert not harness.verdict(raw, element % ("s", "true", "a <| b"))
    assert harness.verdict(raw, element % ("q", "false", '["<"]'))
    assert not harness.verdict(raw, element % ("q", "false", '["<|"]'))
    assert not harness.verdict(raw, element % ("q<|", "false", "1"))


def test_built_in_tags_of_xgrammar() -> None:
    """xgrammar's tag for each family of models compiles here, and structgen's texts match xgrammar's
    grammar."""
    xgrammar = pytest.importorskip("xgrammar")
    built_in = pytest.importorskip("xgrammar.builtin_structural_tag")
    info = xgrammar.TokenizerInfo([bytes([i]) for i in range(256)] + [b"</s>"], stop_token_ids=[256])
    compiler = xgrammar.GrammarCompiler(info, cache_enabled=False)
    with open(built_in.__file__, encoding="utf-8") as file:
        families = re.findall(r'@register_model_structural_tag\("([^"]+)"\)', file.read())
    seen = 0
    for family in families:
        for choice in ("auto", "required"):
            try:
                tag = built_in.get_model_structural_tag(family, tools=TOOLS, tool_choice=choice)
            except (TypeError, ValueError):
                continue
            text = tag.model_dump_json()
            ours, theirs = BYTES.structural_tag(text), compiler.compile_structural_tag(text)
            for seed in range(4):
                found = instances.walk(Seeded(seed), ours.matcher(), 20 * seed)
                matcher = xgrammar.GrammarMatcher(theirs, terminate_without_stop_token=False)
                assert matcher.accept_string(found) and matcher.accept_token(256), (family, found)
                seen += 1
    assert seen > 80


def test_every_field_of_xgrammar_is_known() -> None:
    """structgen supports or refuses every field, and ignores none."""
    tags = pytest.importorskip("xgrammar.structural_tag")
    from structgen.frontend.structural_tag import KINDS

    seen = 0
    for model in vars(tags).values():
        fields = getattr(model, "model_fields", {})
        kind = getattr(fields.get("type"), "default", None)
        if isinstance(kind, str) and kind in KINDS:
            seen += 1
            assert set(fields) - {"type"} <= set(KINDS[kind].fields), kind
    assert seen >= 20


ERRORS = [
    ({"type": "tagg"}, "'tagg' is no format; did you mean 'tag'? (at #/format)"),
    (
        {"type": "sequence", "elements": [{"type": "const_string"}]},
        "'value' must be a text (at #/format/elements/0)",
    ),
    ({**TAG_A, "contnet": 1}, "'contnet' is no field of this format; did you mean 'content'? (at #/format)"),
    ({"type": "any_text", "max_tokens": -1}, "'max_tokens' is a number of tokens (at #/format)"),
    (
        {"type": "json_schema", "style": "qwen_xml", "json_schema": True, "excludes": [" <"]},
        "' <' begins or ends with a blank and cannot be excluded in qwen_xml (at #/format)",
    ),
    (
        {"type": "json_schema", "json_schema": True, "excludes": ["12"]},
        "'12' cannot be excluded: it occurs in escapes, and a text may need those",
    ),
    (
        {"type": "json_schema", "json_schema": True, "max_whitespace_cnt": -1},
        "'max_whitespace_cnt' is a number of blanks (at #/format)",
    ),
    (
        {"type": "triggered_tags", "triggers": ["<c>"], "tags": [TAG_A]},
        "the tag begins with '<a>', but no trigger does (at #/format/tags/0)",
    ),
]


@pytest.mark.parametrize("spec, message", ERRORS)
def test_errors(spec, message) -> None:
    with pytest.raises(errors.GrammarError) as caught:
        BYTES.structural_tag(wrapped(spec))
    assert caught.value.message == message
    with pytest.raises(errors.GrammarError, match="did you mean 'weather'"):
        BYTES.tools(TOOLS, "wether")
    with pytest.raises(errors.GrammarError, match="is no style"):
        BYTES.tools(TOOLS, style="lama3")
