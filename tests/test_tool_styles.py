"""Arguments of tool calls as elements: a reader of each style is the inverse of the grammar.

A text is accepted exactly if one of its readings is an instance of the schema, for random schemas of every
draft and keyword. The judge of the differential tests decides, with jsonschema as a second oracle. Walks
through the masks end in texts that the reader reads to an instance.
"""

# ruff: noqa: E501  (tables: a case is a line)

from __future__ import annotations

import collections

import pytest

import structgen
from oracles import harness, oracle
from oracles.differential import check
from oracles.differential.judge import Judge
from oracles.strategies import Seeded, Source
from oracles.tool_calls import COMPILER, accepted, grammar, one
from oracles.tool_styles import STYLE_READERS
from structgen import errors

FIRST = 71_000_000


@pytest.mark.parametrize("family", check.FAMILIES)
def test_family(family) -> None:
    tally: collections.Counter[str] = collections.Counter()
    for seed in range(FIRST, FIRST + harness.cases(36)):
        try:
            one(family, Seeded(seed), tally)
        except BaseException as error:
            error.add_note(f"{family}, seed {seed}")
            raise
    print(family, dict(tally))
    assert tally["valid"] > 5 and tally["walked"] > 5, tally
    assert tally["too complex"] <= 1 + tally["schemas"] // 50, tally


def element(style: str, key: str, value: object, kind: str = "") -> str:
    kinds = STYLE_READERS[style].kinds
    kind = kind or kinds.get("string" if isinstance(value, str) else "number", "")
    written = STYLE_READERS[style].written.replace("{kind}", kind)
    return written.replace("{key}", key).replace("{value}", str(value))


def of(value: object, **more: object) -> dict:
    return {"type": "object", "properties": {"v": value}, "required": ["v"], **more}


STRINGS = [  # schema of v, raw texts that are instances, other raw texts
    ({"type": "string", "minLength": 2}, ["hi", '"hi"', "é€"], ["h", ""]),
    ({"type": "string", "maxLength": 2}, ["hi", "", "€€"], ["hi "]),
    ({"type": "string", "pattern": "^[a-z]+$"}, ["hi"], ['"hi"', "Hi", ""]),
    ({"type": "string", "format": "date"}, ["2020-02-29"], ["2021-02-29", '"2020-02-29"']),
    ({"type": "string", "format": "email", "minLength": 7}, ["ab@cd.ef"], ["a@b.c", "abcdefgh"]),
    ({"const": "hi"}, ["hi"], ['"hi"', "h", "hi "]),
    ({"$ref": "#/$defs/s"}, ["hi"], ["higher"]),
    ({"allOf": [{"type": "string"}, {"pattern": "i$"}]}, ["hi"], ["ha"]),
    ({"type": "string", "not": {"enum": ["no"]}}, ["hi", "non"], ["no"]),
    ({"type": "string", "oneOf": [{"maxLength": 2}, {"pattern": "x"}]}, ["hi", "axis"], ["ax", "high"]),
]


@pytest.mark.parametrize("style", STYLE_READERS)
@pytest.mark.parametrize("schema, inside, outside", STRINGS)
def test_strings_are_raw(style, schema, inside, outside) -> None:
    found = grammar(of(schema, **{"$defs": {"s": {"type": "string", "maxLength": 4}}}), style)
    assert [t for t in inside if not accepted(found, element(style, "v", t))] == []
    assert [t for t in outside if accepted(found, element(style, "v", t))] == []
    if STYLE_READERS[style].newlines:
        assert [t for t in inside if not accepted(found, element(style, "v", f"\n{t}\n"))] == []
        assert [t for t in outside if accepted(found, element(style, "v", f"\n{t}\n"))] == []


@pytest.mark.parametrize("style", STYLE_READERS)
def test_strings_or_others(style) -> None:
    """The parameter may be null or a string, or it is an enumeration of several types. Its text is read by
    the schema."""
    null = STYLE_READERS[style].kinds.get("null", "")
    optional = grammar(of({"anyOf": [{"type": "string", "minLength": 5}, {"type": "null"}]}), style)
    assert accepted(optional, element(style, "v", "Paris")) and accepted(
        optional, element(style, "v", "null", null)
    )
    assert not accepted(optional, element(style, "v", "Rom"))
    assert not accepted(optional, element(style, "v", "5", STYLE_READERS[style].kinds.get("number", "")))
    mixed = grammar(of({"enum": ["a", 12, None, [1]]}), style)
    assert accepted(mixed, element(style, "v", "a")) and accepted(mixed, element(style, "v", 12))
    assert accepted(mixed, element(style, "v", " [ 1 ] ", STYLE_READERS[style].kinds.get("array", "")))
    assert not accepted(mixed, element(style, "v", '"a"')) and not accepted(mixed, element(style, "v", 13))
    if null:  # the schema's kind decides how the text is read
        assert not accepted(optional, element(style, "v", "Paris", null))
        assert not accepted(mixed, element(style, "v", "12"))


OBJECTS = [  # schema, keys that form an instance (each with the value 1), other keys
    ({"required": ["b"]}, ["b", "ab"], ["", "a"]),
    ({"not": {"required": ["a"]}}, ["", "b"], ["a", "ab"]),
    ({"dependentRequired": {"a": ["b"]}}, ["", "b", "ab"], ["a"]),
    ({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}, ["ab", "c"], ["a", "b"]),
    ({"minProperties": 2}, ["ab", "abc"], ["", "a"]),
    ({"maxProperties": 1}, ["", "a"], ["ab"]),
    ({"$ref": "#/$defs/t"}, ["", "a"], ["b", "ab"]),
    ({"allOf": [{"$ref": "#/$defs/t"}, {"minProperties": 1}]}, ["a"], ["", "b"]),
    ({"patternProperties": {"^a": False}}, ["", "b"], ["a", "ab"]),
    ({"patternProperties": {"^a": True}, "additionalProperties": False}, ["", "a"], ["b"]),
    ({"propertyNames": {"maxLength": 0}}, [""], ["a"]),
    ({"additionalProperties": {"type": "string", "pattern": "^x"}}, [""], ["a"]),
    ({"properties": {"a": True}, "unevaluatedProperties": False}, ["", "a"], ["b"]),
    ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, ["a", "b", "ab"], ["", "c"]),
    ({"dependentSchemas": {"a": {"maxProperties": 1}}}, ["a", "bc"], ["ab"]),
    ({"properties": {"a": {"const": 2}}}, ["b"], ["a"]),
    (True, ["", "a", "xyz"], []),
]  # fmt: skip


@pytest.mark.parametrize("style", STYLE_READERS)
@pytest.mark.parametrize("schema, inside, outside", OBJECTS)
def test_every_keyword_of_objects(style, schema, inside, outside) -> None:
    closed = {"properties": {"a": True}, "additionalProperties": False}
    found = grammar({**schema, "$defs": {"t": closed}} if isinstance(schema, dict) else schema, style)
    for keys, expected in [*((k, True) for k in inside), *((k, False) for k in outside)]:
        assert accepted(found, "".join(element(style, k, 1) for k in keys)) == expected, keys


@pytest.mark.parametrize("style", STYLE_READERS)
def test_order_and_repetition(style) -> None:
    schema = {"properties": {"b": {"type": "integer"}, "a": {"type": "integer"}}}
    ab, ba = (element(style, x, 1) + element(style, y, 2) for x, y in ("ab", "ba"))
    found = grammar(schema, style)
    assert accepted(found, ba) and not accepted(found, ab)
    free = grammar(schema, style, any_order=True)
    assert accepted(free, ab) and accepted(free, ba)
    for grammar_of in (found, free):
        assert not accepted(grammar_of, element(style, "b", 1) * 2)
        assert not accepted(grammar_of, element(style, "x", 1) * 2)


def test_keys_as_they_are_written() -> None:
    kimi = grammar(
        {"required": ['a"&b'], "additionalProperties": False, "properties": {'a"&b': True}}, "kimi_k3_xml"
    )
    assert accepted(kimi, element("kimi_k3_xml", "a&quot;&amp;b", 1))
    assert not accepted(kimi, element("kimi_k3_xml", 'a"&b', 1))
    free = grammar({"minProperties": 2}, "kimi_k3_xml")
    pair = [element("kimi_k3_xml", key, 1) for key in ("a&quot;", "a&amp;", "a&", "&amp;quot;")]
    assert accepted(free, pair[0] + pair[1]) and accepted(free, pair[0] + pair[3])
    assert not accepted(free, pair[0] + pair[0]) and not accepted(free, pair[0] + pair[2])
    glm = grammar(of({"type": "integer"}), "glm_xml")
    assert accepted(glm, element("glm_xml", "v", 1)) and accepted(
        glm, element("glm_xml", "v", 1).replace("\n", "")
    )
    with pytest.raises(errors.UnsatisfiableSchema, match="a key that must be there cannot be written"):
        COMPILER.structural_tag(
            {"type": "json_schema", "style": "qwen_xml", "json_schema": {"required": ["a>b"]}}
        )
    marked = of({"const": "a</parameter>"})
    with pytest.raises(errors.UnsatisfiableSchema, match="a string that must be there holds"):
        COMPILER.structural_tag({"type": "json_schema", "style": "qwen_xml", "json_schema": marked})
    with pytest.raises(errors.UnsatisfiableSchema, match="parameters outside JSON need an object schema"):
        COMPILER.structural_tag(
            {"type": "json_schema", "style": "glm_xml", "json_schema": {"type": "string"}}
        )
    assert accepted(grammar({"properties": {"a>b": {}}}, "qwen_xml"), "")


def test_json_in_a_value_never_closes_it() -> None:
    found = grammar(of({"type": "array", "items": {"type": "string"}}), "minimax_xml")
    assert accepted(found, element("minimax_xml", "v", r'["<\/parameter>", "</b>"]'))
    assert not accepted(found, element("minimax_xml", "v", '["</parameter>"]'))
    names = grammar(of({"type": "object", "properties": {"</parameter>": {}}}), "minimax_xml")
    assert accepted(names, element("minimax_xml", "v", r'{"<\/parameter>": 1, "x": 2}'))
    assert not accepted(names, element("minimax_xml", "v", '{"</parameter>": 1}'))
    assert not accepted(names, element("minimax_xml", "v", r'{"<\/parameter>": 1, "\u003c/parameter>": 2}'))


def test_marks_may_be_special_tokens() -> None:
    names = ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
    tokens = [bytes([i]) for i in range(256)] + [b""] * 5
    special = {name: 257 + i for i, name in enumerate(names)}
    vocabulary = structgen.Vocabulary.from_bytes(tokens, 256, special_token_ids=special)
    schema = {"properties": {"v": {"type": "string", "maxLength": 3}}, "minProperties": 2, "maxProperties": 2}
    found = grammar(schema, "glm_xml", structgen.Compiler(vocabulary))
    matcher = found.matcher()
    assert matcher.accept_tokens(
        [257, *b"v", 258, *b"\n", 259, *b"abc", 260, *b"\n", 257, *b"free", 258, 259]
    )
    twin = matcher.fork()
    assert matcher.accept_tokens([*b"1", 260]) and matcher.is_accepting()
    assert twin.accept_bytes("x</arg_value>") and twin.is_accepting()
    twice = found.matcher()
    assert twice.accept_tokens([257, *b"x", 258, 259, *b"1", 260, 257]) and not twice.accept_tokens(
        [*b"x", 258]
    )


PIECES = [b"<par", b"<parameter=", b"ameter=a>", b">x</par", b"er>\n<parameter=b>", b'="a">', b'"v">1', b"</parameter>",
          b"/parameter>\n", b'["</', b'x"]</', b"ab", b"12", b"null</", b"</arg_value>\n<arg_key>", b"</arg_key>\n<"]  # fmt: skip


def mask_law(source: Source) -> None:
    """Each bit of a mask equals `accept_token` on a fork, also for tokens that span a mark's border. Random
    walks end in instances."""
    words = [bytes([i]) for i in range(256)] + PIECES + [b""]
    end = len(words) - 1
    compiler = structgen.Compiler(structgen.Vocabulary.from_bytes(words, end))
    schema = {"type": "object", "properties": {"a": source.pick(MEMBERS), "b": source.pick(MEMBERS)}}
    schema |= source.pick(({}, {"required": ["b"]}, {"additionalProperties": False}, {"minProperties": 1}))
    name = source.pick(("qwen_xml", "minimax_xml", "glm_xml"))
    matcher = grammar(schema, name, compiler).matcher()
    text = b""
    for token, mask in harness.walk(source, matcher, len(words), [end], 40, finish=0):
        for t in range(len(words)):
            if t >= 128 and t < 256:
                continue
            assert bool(mask[t]) == matcher.fork().accept_token(t), (name, schema, text, words[t])
        text += words[token]
    if token != end:
        text += matcher.shortest_completion()
    judge = Judge(schema, 2020)
    try:
        readings = list(STYLE_READERS[name].readings(text.decode()))
    except UnicodeDecodeError:
        return
    assert any(judge.accepts_value(value) for value in readings), (name, schema, text)


MEMBERS = [
    {"type": "string"},
    {"type": "string", "pattern": "^[a-z]*$"},
    {"type": "string", "maxLength": 3},
    {"enum": ["x", "ab", 12, None]},
    {"type": ["string", "null"], "minLength": 2},
    {"type": "array", "items": {"enum": ["x", "</"]}},
    {"type": "integer"},
    {},
]


def test_masks() -> None:
    harness.seeded(mask_law, 8)


def test_tools_without_parameters_take_none() -> None:
    for style, call in (
        ("hermes", '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>'),
        ("qwen3-coder", "<tool_call>\n<function=f>\n%s</function>\n</tool_call>"),
    ):
        found = COMPILER.tools([{"type": "function", "function": {"name": "f"}}], "required", style=style)
        none, some = ("{}", '{"a": 1}') if style == "hermes" else ("", "<parameter=a>\n1\n</parameter>\n")
        assert harness.verdict(found, call % none) and not harness.verdict(found, call % some)


@pytest.mark.parametrize("style", ["qwen_xml", "kimi_k3_xml"])
def test_thousands_of_parameters(style) -> None:
    schema = {
        "properties": {f"p{i}": {"type": "integer"} for i in range(8_000)},
        "additionalProperties": False,
    }
    found = grammar(schema, style)
    one, two, other = (element(style, key, 1) for key in ("p17", "p7998", "q"))
    assert accepted(found, one + two) and not accepted(found, two + one) and not accepted(found, one + one)
    assert not accepted(found, other) and not accepted(found, element(style, "p17", "x"))
    matcher = found.matcher()
    at = one.index("p17")
    assert matcher.accept_bytes(one[:at])
    for byte in "p1799":
        mask = oracle.mask_of(matcher, 257)
        assert [t for t in range(257) if bool(mask[t]) != matcher.fork().accept_token(t)] == []
        assert matcher.accept_bytes(byte)
    assert matcher.accept_bytes(matcher.shortest_completion()) and matcher.is_accepting()
    required = grammar({**schema, "required": ["p3", "p7999"]}, style).matcher()
    text = required.shortest_completion().decode()
    assert [list(value) for value in STYLE_READERS[style].readings(text)][0] == ["p3", "p7999"]
