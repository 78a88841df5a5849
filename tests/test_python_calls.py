"""Tool calls as Python calls: accepted by the grammar, and read by `parse_tool_calls` and by Python
itself."""

from __future__ import annotations

import ast
import itertools
import json
import random
from typing import Any

import pytest

import structgen as sg
from oracles.differential import instances, schemas
from oracles.harness import verdict
from oracles.strategies import Seeded
from structgen.frontend.python_calls import calls_of
from structgen.frontend.tool_calls import Call, CallReader, style_of_template

jsonschema = pytest.importorskip("jsonschema")
BYTES = sg.Compiler(sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], 256))
INNER = {"type": "object", "properties": {"x": {"type": "string"}, "next": {"$ref": "#/$defs/inner"}}}
PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 9},
        "days": {"type": "integer", "minimum": 1, "maximum": 20},
        "hot": {"type": "boolean", "description": "or not"},
        "some": {"anyOf": [{"type": "array", "items": {"type": "number"}, "maxItems": 3}, {"type": "null"}]},
        "mixed": {"enum": ["a", 3, True, None]},
        "either": {"type": ["string", "boolean"], "maxLength": 3},
        "inner": {"$ref": "#/$defs/inner"},
        "unit": {"anyOf": [{"$ref": "#/properties/hot"}, {"const": "none"}]},
    },
    "required": ["hot", "days"],
    "$defs": {"inner": INNER},
}
FREE = {"type": "object", "properties": {k: PARAMETERS["properties"][k] for k in ("city", "days", "hot")}}  # type: ignore[index]
SCHEMAS = {"weather": PARAMETERS, "look": FREE, "time": {"type": "object", "properties": {}}}
TOOLS = [{"type": "function", "function": {"name": n, "parameters": s}} for n, s in SCHEMAS.items()]
GRAMMAR = BYTES.tools(TOOLS, "required", style="pythonic")
AUTO = BYTES.tools(TOOLS, "auto", style="llama4")


SECTIONS = {
    "lfm2": ("<|tool_call_start|>[", ", ", "]<|tool_call_end|>"),
    "olmo3": ("<function_calls>", "\n", "</function_calls>"),
}


@pytest.mark.parametrize("style", SECTIONS)
def test_calls_in_a_section(style: str) -> None:
    """Some styles put calls between two marks. Such calls are read like calls without marks, with text around
    them and in streamed pieces. No string may hold a mark."""
    begin, separator, end = SECTIONS[style]
    grammar = BYTES.tools(TOOLS, style=style)
    for seed in range(20):
        text = instances.walk(Seeded(seed), GRAMMAR.matcher(), 60).decode()
        calls = sg.parse_tool_calls(text, style="pythonic", tools=TOOLS).calls
        texts = [ast.unparse(node) for node in ast.parse(text, mode="eval").body.elts]  # type: ignore[attr-defined]
        section = begin + separator.join(texts) + end
        assert sg.parse_tool_calls(f"so: {section} or", style=style, tools=TOOLS) == sg.ToolReply(
            "so:  or", calls
        )
        reader = CallReader(style, list(SCHEMAS), lambda _name, _text: True)
        cut = Seeded(seed).integer(0, len(section))
        items = [*reader.feed(section[:cut]), *reader.feed(section[cut:]), *reader.finish()]
        assert [(c.name, json.loads(c.arguments)) for c in items if isinstance(c, Call)] == [
            (c.name, c.arguments) for c in calls
        ]
    for seed in range(20):
        text = instances.walk(
            Seeded(seed), BYTES.tools(TOOLS, "required", style=style).matcher(), 60
        ).decode()
        reply = sg.parse_tool_calls(text, style=style, tools=TOOLS)
        assert reply.calls
        for call in reply.calls:
            jsonschema.Draft202012Validator(SCHEMAS[call.name]).validate(call.arguments)
    assert accepted(grammar, f'so: {begin}look(city="a"){end}')
    assert not accepted(grammar, f'{begin}look(city="{end.lstrip("]")}"){end}')
    assert sg.parse_tool_calls(f"{begin}look(", style=style).text == f"{begin}look("


def accepted(grammar: sg.CompiledGrammar, text: str) -> bool:
    return verdict(grammar, text.encode())


def written(calls: list[tuple[str, dict[str, Any]]]) -> str:
    """Returns the calls as Python source: values are written as JSON if the JSON is Python."""

    def value(v: Any) -> str:
        return str(v) if v is None or isinstance(v, bool) else json.dumps(v, ensure_ascii=False)

    texts = [f"{name}({', '.join(f'{k}={value(v)}' for k, v in a.items())})" for name, a in calls]
    return f"[{', '.join(texts)}]"


def test_texts_of_the_grammar_are_python_and_instances() -> None:
    calls = 0
    for seed in range(120):
        text = instances.walk(Seeded(seed), GRAMMAR.matcher(), 60).decode()
        reply = sg.parse_tool_calls(text, style="pythonic", tools=TOOLS)
        tree: Any = ast.parse(text, mode="eval").body
        assert len(tree.elts) == len(reply.calls) > 0 and not reply.text
        for node, call in zip(tree.elts, reply.calls, strict=True):
            # Python's own reader takes no name but True, False and None
            values = {word.arg: ast.literal_eval(word.value) for word in node.keywords}
            assert (node.func.id, values) == (call.name, call.arguments)
            jsonschema.Draft202012Validator(SCHEMAS[call.name]).validate(call.arguments)
            calls += 1
    assert calls > 150


def test_calls_that_are_written_are_read_and_taken_exactly_if_they_are_valid() -> None:
    """Compared with jsonschema, for every choice of parameters and for right and wrong values."""
    chance = random.Random(5)
    values: dict[str, list[Any]] = {
        "city": ["", 'R"\\o\n', "é€🙂", "far too long", 3],
        "days": [1, 20, 0, 21, "3", True],
        "hot": [True, False, None, "True"],
        "some": [[], [1, 2.5], None, [1, 2, 3, 4], [None], True],
        "mixed": ["a", 3, True, None, False, 4],
        "either": ["abc", True, False, "abcd", None],
        "inner": [{}, {"x": "a", "next": {"x": ""}}, {"x": 3}, {"next": []}],
        "unit": [True, "none", None, "some"],
    }
    order = ["days", "hot", *(k for k in values if k not in ("days", "hot"))]
    good = bad = 0
    for _ in range(1500):
        keys = [key for key in order if chance.random() < (0.9 if key in ("days", "hot") else 0.3)]
        arguments = {key: chance.choice(values[key][: chance.choice([2, 9])]) for key in keys}
        text = written([("weather", arguments)])
        (call,) = sg.parse_tool_calls(text, style="pythonic", tools=TOOLS).calls
        assert call.arguments == arguments
        valid = jsonschema.Draft202012Validator(PARAMETERS).is_valid(arguments)
        assert accepted(GRAMMAR, text) == valid, text
        good, bad = good + valid, bad + (not valid)
    assert good > 200 and bad > 200


def test_parameters_of_which_none_is_required() -> None:
    for keys in itertools.chain.from_iterable(
        itertools.permutations(("city", "days", "hot"), n) for n in range(4)
    ):
        text = written([("look", {k: {"city": "a", "days": 2, "hot": True}[k] for k in keys})])
        assert accepted(GRAMMAR, text) == (sorted(keys) == list(keys)), text


def test_a_whole_answer_is_calls_or_text() -> None:
    for text in ("", "It is [x] hot.", "no\n[time()]"):
        assert accepted(AUTO, text) and not accepted(GRAMMAR, text)
        assert sg.parse_tool_calls(text, style="pythonic") == sg.ToolReply(text, [])
    for text in ("[time()]", "[time(), time()]"):
        assert accepted(AUTO, text) and accepted(GRAMMAR, text)
    for text in ("[", "[]", "[x]", "[time()] and", "[time()", "[ time()]", "[time(),time()]", "[time(1)]"):
        assert not accepted(AUTO, text) and not accepted(GRAMMAR, text)
    one = BYTES.tools(TOOLS, "auto", style="pythonic", parallel=False)
    assert accepted(one, "[time()]") and not accepted(one, "[time(), time()]")
    none = BYTES.tools(TOOLS, "none", style="pythonic")
    assert accepted(none, "hot [x]") and not accepted(none, "[time()]")
    only = BYTES.tools(TOOLS, "time", style="pythonic")
    assert accepted(only, "[time()]") and not accepted(only, "[look()]") and not accepted(only, "a")


def test_texts_that_are_no_calls_stay_text() -> None:
    chance = random.Random(1)
    pieces = [
        *("[", "]", "time(", "look(", ")", ", ", "days=", "3", '"', "'", "\\d", "None", "true", "{", "}"),
        *("é", "\n"),
    ]
    for _ in range(2000):
        text = "".join(chance.choices(pieces, k=chance.randint(0, 9)))
        for tools in (TOOLS, None):
            reply = sg.parse_tool_calls(text, style="pythonic", tools=tools)
            assert reply.calls or reply.text == text
    for text in (
        *("[f(*a)]", "[f(**a)]", "[f(a=b)]", "[f.g()]", "[f(a=1+1)]", "[f(a={1: f()})]", "[" * 5000),
        "[f(a=1j)]",
    ):
        assert not sg.parse_tool_calls(text, style="pythonic").calls, text
    assert sg.parse_tool_calls("[f(a=[true, null], b=-1)]", style="pythonic").calls[0].arguments == {
        "a": [True, None], "b": -1
    }  # fmt: skip
    for end in range(len("[time(), look()]")):
        assert not sg.parse_tool_calls("[time(), look()]"[:end], style="pythonic").calls


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"type": "object", "properties": {"a b": {"type": "string"}}}, "'a b' is no name of Python"),
        ({"type": "object", "properties": {"if": {"type": "string"}}}, "'if' is no name of Python"),
        ({"type": "array"}, "no schema of an object"),
    ],
)  # fmt: skip
def test_functions_that_cannot_be_written_are_refused(parameters: Any, words: str) -> None:
    with pytest.raises(sg.UnsupportedSchema, match=words):
        BYTES.tools([{"function": {"name": "f", "parameters": parameters}}], style="pythonic")


CONSTANTS: list[Any] = [True, False, None]
DEEP: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({}, [True, [None, {"a": False}], "True", "None, true"], []),
    ({"type": "array", "items": {"type": "boolean"}}, [[], [True, False]], [True, [None], [0]]),
    ({"type": "array", "uniqueItems": True}, [CONSTANTS, [0, False, None]], [[True, True], [None, 1, None]]),
    ({"type": "object"}, [{}, {"x": None, "y": [True]}], [None, []]),
    ({"type": "boolean", "not": {"const": True}}, [False], [True, None]),
    ({"enum": [[True, None], {"k": False}]}, [[True, None], {"k": False}], [[None, True], {"k": None}]),
    ({"contains": {"const": None}, "type": "array"}, [[None], [True, None]], [[], [True]]),
    ({"$ref": "#/$defs/tree"}, [None, {"left": None, "right": {"left": True}}], [True, {"left": []}]),
]
DEFINITIONS = {
    "tree": {
        "type": ["object", "null"],
        "properties": {
            "left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"const": True}]},
            "right": {"$ref": "#/$defs/tree"},
        },
        "additionalProperties": False,
    }
}  # fmt: skip


@pytest.mark.parametrize("case", range(len(DEEP)))
def test_constants_inside_of_lists_and_objects_are_pythons(case: int) -> None:
    part, right, wrong = DEEP[case]
    schema = {"type": "object", "properties": {"a": part}, "required": ["a"], "$defs": DEFINITIONS}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    grammar = BYTES.tools(tools, "required", style="pythonic", extra_keys="allow")
    for value in (*right, *wrong):
        text = f"[f(a={value!r})]".replace("'", '"')
        assert accepted(grammar, text) == (
            value in right and jsonschema.Draft202012Validator(part | {"$defs": DEFINITIONS}).is_valid(value)
        ), text
        if value in right:
            (call,) = sg.parse_tool_calls(text, style="pythonic", tools=tools).calls
            assert call.arguments == {"a": value}
    if any(constant in json.dumps(right) for constant in ("true", "false", "null")):
        assert not accepted(grammar, f"[f(a={json.dumps(right[0])})]") or json.dumps(right[0]) == repr(
            right[0]
        )


def test_keywords_of_all_parameters_together_are_kept() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}},
        "minProperties": 1,
        "dependentRequired": {"a": ["b"]},
        "patternProperties": {"^x": {"type": "null"}},
        "additionalProperties": False,
    }
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    grammar = BYTES.tools(tools, "required", style="pythonic")
    taken = ("b=True", "a=1, b=False", "b=True, x_1=None", "x=None, xy=None")
    for text in taken:
        assert accepted(grammar, f"[f({text})]"), text
    for text in (
        *("", "a=1", "c=1", "x-y=None", "x=None, x=None", "b=true", "b=True,", "b=True x=None", "if=1"),
    ):
        assert not accepted(grammar, f"[f({text})]"), text


def test_texts_of_random_schemas_are_python_and_instances() -> None:
    """A tool's one parameter has a random schema of the differential run (family `general`, without `$ref`).
    Each drawn call is valid Python, and its argument is an instance of the schema."""
    seen = 0
    for seed in range(150):
        source = Seeded(seed)
        part = schemas.general(source, 2020)
        if not isinstance(part, dict) or "$ref" in json.dumps(part):
            continue
        tools = [{"function": {"name": "f", "parameters": {"properties": {"a": part}, "required": ["a"]}}}]
        try:
            grammar = BYTES.tools(tools, "required", style="pythonic", extra_keys="allow")
        except sg.StructgenError:
            continue
        for _ in range(3):
            text = instances.walk(source, grammar.matcher(), 60).decode()
            (call,) = ast.parse(text, mode="eval").body.elts  # type: ignore[attr-defined]
            value = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
            assert jsonschema.Draft202012Validator(part).is_valid(value["a"]), (seed, part, text)
            seen += 1
    assert seen > 200


@pytest.mark.parametrize("properties", [5, ["a"], None])
def test_properties_that_are_no_object_are_named(properties: Any) -> None:
    tool = {"function": {"name": "f", "parameters": {"type": "object", "properties": properties}}}
    grammar = BYTES.tools([tool], "required", style="pythonic", extra_keys="allow")
    assert [entry.keyword for entry in grammar.report] == ["properties"]
    assert accepted(grammar, "[f(a=1)]")


def test_a_tag_in_python_writes_no_name_that_python_does_not_have() -> None:
    schema = {"type": "object", "properties": {"a b": {}, "if": {}, "ok": {}, "\u00b5m": {}}}
    form = {"type": "json_schema", "json_schema": schema, "style": "python"}
    grammar = BYTES.structural_tag({"type": "structural_tag", "format": form})
    assert accepted(grammar, "ok=1, \u00b5m=None") and accepted(grammar, "")
    assert not accepted(grammar, "a b=1") and not accepted(grammar, "if=1")


def test_templates_and_names() -> None:
    assert style_of_template("... [func_name1(params_name1=params_value1, ...)] <|python_tag|>") == "pythonic"
    with pytest.raises(sg.UnsupportedSchema, match="is no name of Python"):
        BYTES.tools([{"function": {"name": "a-b"}}], style="pythonic")


def test_names_come_back_as_they_are_written() -> None:
    """Python reads the NFKC form of a name: `size_\u03bcm` for `size_\u00b5m`."""
    names = ("size_\u00b5m", "\ufb01nd", "x\u0301", "\U0001d49c")
    for name in names:
        schema = {"type": "object", "properties": {other: {"type": "integer"} for other in names}}
        tool = {"type": "function", "function": {"name": name, "parameters": schema}}
        text = f"[{name}({', '.join(f'{other}={i}' for i, other in enumerate(names))}), \n {name}()]"
        found = sg.parse_tool_calls(text, style="pythonic", tools=[tool]).calls
        assert [call.name for call in found] == [name, name]
        assert found[0].arguments == {other: i for i, other in enumerate(names)}
        assert verdict(BYTES.tools([tool], "required", style="pythonic"), text.replace("\n ", ""))
    one = {"type": "object", "properties": {"size_\u00b5m": {}, "size_\u03bcm": {}}}
    with pytest.raises(sg.UnsupportedSchema, match="one name of Python"):
        tool = {"type": "function", "function": {"name": "f", "parameters": one}}
        BYTES.tools([tool], style="pythonic")


def test_halves_of_characters_can_be_sent() -> None:
    """A pair of JSON escapes is one character. A lone surrogate stays an escape."""
    (call,) = sg.parse_tool_calls(r'[f(a="\ud83d\ude00", b="\ud800", c="\u00e9")]', style="pythonic").calls
    assert call.arguments == {"a": "\U0001f600", "b": "\ud800", "c": "\u00e9"}
    (_, arguments) = calls_of(r'[f(a="\ud800")]', None)[0]
    assert arguments.encode() and json.loads(arguments) == {"a": "\ud800"}
