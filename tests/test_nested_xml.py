"""Arguments written as nested elements: allowed texts, their values, and xgrammar's verdicts."""

# ruff: noqa: E501  (tables: a case is a line)
from __future__ import annotations

import itertools
import json
import random
import re
from decimal import Decimal, InvalidOperation
from typing import Any

import jsonschema
import numpy as np
import pytest

import structgen
from oracles import harness
from oracles.strategies import Seeded
from oracles.tool_styles import delimited
from structgen import errors

BYTES = structgen.Compiler(structgen.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], 256))
M3, COHERE = STYLES = ("minimax_m3_xml", "cohere_xml")
GEMMA = "gemma"
N = "]<]minimax[>["


def tag(schema: Any, style: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "structural_tag",
        "format": {"type": "json_schema", "style": style, "json_schema": schema, **fields},
    }


def grammar(schema: Any, style: str, **fields: Any) -> Any:
    """Returns a grammar with every JSON spelling of numbers, like xgrammar's."""
    return BYTES.structural_tag(tag(schema, style, **fields), numbers="any")


def m(name: str, text: str) -> str:
    """Returns an element in the format of MiniMax M3."""
    return f"{N}<{name}>{text}{N}</{name}>"


def c(name: str | None, kind: str, text: str) -> str:
    """Returns an element in the format of Cohere's models."""
    head = "" if name is None else f' name="{name}"'
    return f'<cofl:value{head} type="{kind}">{text}</cofl:value>'


def object_of(required: list[str] | None = None, /, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or []}


INT, TEXT = {"type": "integer"}, {"type": "string"}
NODE = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/node"}},
    "$defs": {"node": object_of(["v"], v=INT, kids={"type": "array", "items": {"$ref": "#/$defs/node"}})},
}
CASES: list[tuple[dict[str, Any], str, list[str], list[str]]] = [
    (object_of(["a"], a=TEXT, n=INT), M3, [m("a", ""), m("a", "1 < 2") + "\n" + m("n", "3"), "  " + m("a", "\n") + "\n"], ["", m("n", "3"), m("n", "3") + m("a", ""), m("a", "x" + N), m("a", "x") * 2, m("b", "x"), m("a", "") + m("n", " 3"), m("a", "") + " " * 5]),
    (object_of(["a"], a=TEXT, n=INT), COHERE, [c("a", "raw", ""), c("a", "raw", "1 < 2") + "\n" + c("n", "json", " 3\n")], ["", c("n", "json", "3"), c("a", "json", '"x"'), c("a", "raw", "x</cofl:value>"), c("a", "raw", "") + c("n", "raw", "3")]),
    (object_of(o=object_of(["x"], x={"type": "number"})), M3, ["", m("o", m("x", "2.5")), m("o", " " + m("x", "0") + "\n")], [" ", m("o", ""), m("o", "{}"), m("x", "2")]),
    (object_of(o=object_of(["x"], x={"type": "number"})), COHERE, ["", " ", c("o", "dict", "\n" + c("x", "json", "2.5") + "\n")], [c("o", "dict", ""), c("o", "json", '{"x": 2.5}')]),
    (object_of(l={"type": "array", "items": TEXT}), M3, [m("l", ""), m("l", m("item", "a") + " " + m("item", "") + "\n")], [m("l", " "), m("l", "[]"), m("l", m("x", "a"))]),
    (object_of(l={"type": "array", "items": TEXT}), COHERE, [c("l", "list", ""), c("l", "list", "\n" + c(None, "raw", "a") + c(None, "raw", "") + " ")], [c("l", "list", c(None, "raw", "a") + " " + c(None, "raw", "b")), c("l", "list", c("x", "raw", "a"))]),
    (NODE, M3, [m("tree", m("v", "1") + m("kids", m("item", m("v", "2")) + m("item", m("v", "3") + m("kids", ""))))], [m("tree", m("kids", "")), m("tree", m("v", "1") + m("kids", m("item", "")))]),
    (NODE, COHERE, [c("tree", "dict", c("v", "json", "1") + c("kids", "list", c(None, "dict", c("v", "json", "2"))))], [c("tree", "dict", c("kids", "list", ""))]),
    (object_of(u={"anyOf": [INT, {"type": "null"}, object_of(["z"], z={"type": "boolean"})]}), M3, [m("u", "5"), m("u", "null"), m("u", m("z", "true"))], [m("u", "x"), m("u", "")]),
    (object_of(u={"type": ["integer", "string"]}), COHERE, [c("u", "json", "5"), c("u", "raw", "5"), c("u", "raw", "x")], [c("u", "json", "x"), c("u", "dict", "")]),
    (object_of(e={"enum": ["x", "y z", 1, None, [1, "b"], {"k": True}]}), M3, [m("e", "x"), m("e", "y z"), m("e", "1"), m("e", "null"), m("e", m("item", "1") + m("item", "b")), m("e", m("k", "true"))], [m("e", "y"), m("e", '"x"'), m("e", "2"), m("e", m("item", "1"))]),
    (object_of(e={"enum": ["x", 1, {"k": True}]}), COHERE, [c("e", "raw", "x"), c("e", "json", "1"), c("e", "dict", c("k", "json", "true"))], [c("e", "json", '"x"'), c("e", "raw", "1"), c("e", "json", '{"k":true}'), c("e", "dict", "")]),
    (object_of(l={"type": "array", "items": INT, "minItems": 2, "maxItems": 3}), M3, [m("l", m("item", "1") * 2), m("l", m("item", "1") * 3)], [m("l", ""), m("l", m("item", "1")), m("l", m("item", "1") * 4)]),
    (object_of(l={"type": "array", "prefixItems": [TEXT, INT], "items": False}), M3, [m("l", ""), m("l", m("item", "a")), m("l", m("item", "a") + m("item", "1"))], [m("l", m("item", "a") * 2), m("l", m("item", "a") + m("item", "1") * 2)]),
    (object_of(l={"type": "array", "prefixItems": [TEXT], "items": INT, "minItems": 2, "maxItems": 3}), COHERE, [c("l", "list", c(None, "raw", "") + c(None, "json", "1") * 2)], [c("l", "list", c(None, "raw", "")), c("l", "list", c(None, "raw", "") + c(None, "json", "1") * 3)]),
    ({**object_of(a=INT, b=INT, d=INT), "minProperties": 1, "maxProperties": 2}, M3, [m("a", "1"), m("b", "1") + m("d", "2")], ["", m("a", "1") + m("b", "1") + m("d", "1")]),
    ({**object_of(["b"], a=INT, b=INT, d=INT), "minProperties": 2}, COHERE, [c("a", "json", "1") + c("b", "json", "1"), c("b", "json", "1") + c("d", "json", "1")], [c("b", "json", "1"), c("a", "json", "1") + c("d", "json", "1")]),
    ({**object_of(a=INT), "additionalProperties": {"type": "boolean"}}, COHERE, [c("a", "json", "1") + c("b", "json", "true"), c("&lt;é&quot;", "json", "true"), c("ab", "json", "true"), c("b", "json", "true") + c("a", "json", "1")], [c("a", "json", "true"), c("b", "json", "1"), c("", "json", "true"), c("<", "json", "true"), c("b", "json", "true") * 2]),
    ({**object_of(a=INT), "additionalProperties": True, "minProperties": 2, "maxProperties": 3}, COHERE, [c("a", "json", "1") + c("b", "raw", "x"), "".join(c(x, "list", c(None, "dict", c("y", "raw", ""))) for x in "xyz")], [c("a", "json", "1"), "".join(c(x, "json", "1") for x in "wxyz"), c("x", "raw", "") * 2]),
    (object_of(o={"type": "object"}, l={"type": "array"}, v={}), COHERE, [c("o", "dict", c("x y", "raw", "t")) + c("l", "list", c(None, "json", "1") + c(None, "list", "")) + c("v", "json", "-1e5"), c("v", "dict", " ")], [c("o", "json", "{}"), c("v", "json", "x")]),
    ({"type": "object"}, M3, ["", m("a", "1") + m("b", m("item", "x"))], [" ", m("a", "1") * 2, m("a", "1").replace("/a", "/b"), m("/a", "1"), m("", "1")]),
    (object_of(**{'a<b&"c{d}': INT}), COHERE, [c("a&lt;b&amp;&quot;c{d}", "json", "1")], [c('a<b&"c{d}', "json", "1")]),
    (object_of(**{'a<b&"c{d}': INT}), M3, [m('a<b&"c{d}', "1")], [m("a", "1")]),
    (object_of(s={"type": "string", "pattern": "^[a-c]+$", "minLength": 2}, t={"type": "string", "pattern": "b", "maxLength": 3}), M3, [m("s", "abc"), m("t", "xby")], [m("s", "a"), m("s", "abd"), m("t", "xxby"), m("t", "x")]),
    (object_of(s={"type": "string", "maxLength": 20}), COHERE, [c("s", "raw", "x" * 20)], [c("s", "raw", "x" * 21), c("s", "raw", "a</cofl:value>b")]),
    (object_of(n={"type": "integer", "minimum": 3, "maximum": 12}), M3, [m("n", "3"), m("n", "12")], [m("n", "2"), m("n", "13")]),
    (object_of(n={"oneOf": [TEXT, {"type": "null"}]}, k={"oneOf": [object_of(["t"], t={"const": "a"}), object_of(["t"], t={"const": "b"}, v=INT)]}), COHERE, [c("n", "json", "null"), c("k", "dict", c("t", "raw", "b") + c("v", "json", "1"))], [c("k", "dict", c("t", "raw", "a") + c("v", "json", "1"))]),
    ({"anyOf": [object_of(["a"], a=INT), object_of(["b"], b=INT)]}, M3, [m("a", "1"), m("b", "1"), m("a", "1") + m("b", "1")], ["", m("c", "1")]),
    (object_of(a={"allOf": [INT], "description": "x"}, gone=False), M3, [m("a", "1"), ""], [m("gone", "")]),
    (object_of(f={"type": "string", "format": "nobody-knows"}), M3, [m("f", "x")], []),
    (object_of(a={"not": INT}), M3, [m("a", "x"), m("a", "1.5"), m("a", m("item", "1"))], []),
    (object_of(a={"type": ["integer", "boolean"], "not": {"const": 1}}), COHERE, [c("a", "json", "2"), c("a", "json", "true")], [c("a", "json", "1"), c("a", "raw", "x")]),
    (object_of(a={}), M3, [m("a", "x"), m("a", m("b", "1"))], [m("a", "x" + N)]),
    (object_of(a={"type": "array"}), M3, [m("a", ""), m("a", m("item", "x") + m("item", m("item", "1")))], [m("a", "x")]),
    ({**object_of(a=INT), "additionalProperties": INT}, M3, [m("b", "1") + m("c d", "2")], [m("b", "x"), m("b", "1") * 2, f"{N}<b>1{N}</c>", m("a>", "1")]),
    ({**object_of(a=INT), "patternProperties": {"^x": INT}}, COHERE, [c("xy", "json", "1")], [c("y", "json", "1"), c("xy", "raw", "1")]),
    (object_of(a={"type": "string", "format": "date"}), COHERE, [c("a", "raw", "2024-02-29")], [c("a", "raw", "2023-02-29")]),
    (object_of(a={"allOf": [INT, {"minimum": 2}]}), COHERE, [c("a", "json", "2")], [c("a", "json", "1")]),
    (object_of(a={"oneOf": [{"type": "integer", "minimum": 3}, {"type": "number", "maximum": 5}]}), COHERE, [c("a", "json", "1"), c("a", "json", "7")], [c("a", "json", "4"), c("a", "json", "7.5")]),
    (object_of(a={"anyOf": [INT, TEXT], "minimum": 3}), M3, [m("a", "3")], []),
    ({**object_of(["b"], a=INT, b=INT), "dependentRequired": {"b": ["a"]}}, M3, [m("a", "1") + m("b", "1")], [m("b", "1")]),
    (object_of(o={"type": "object", "additionalProperties": TEXT, "propertyNames": {"maxLength": 1}}), COHERE, [c("o", "dict", c("<", "raw", "").replace('"<"', '"&lt;"'))], [c("o", "dict", c("xy", "raw", ""))]),
    (object_of(l={"type": "array", "contains": {"const": 3}, "items": INT}), M3, [m("l", m("item", "1") + m("item", "3"))], [m("l", m("item", "1")), m("l", "")]),
    (object_of(["b"], a=INT), COHERE, [c("b", "raw", "x")], [c("a", "json", "1")]),
]  # fmt: skip

ERRORS = [
    (object_of(a={"type": "array", "items": INT, "uniqueItems": True}), COHERE, "'uniqueItems' cannot be written in cohere_xml"),
    (object_of(a={"type": "string", "pattern": "(a)\\1"}), M3, "back-references are not regular"),
    (object_of(a={"type": "int"}), M3, "unknown type 'int' (keyword 'type' at #/properties/a)"),
    (object_of(a={"$ref": "other.json"}), M3, "reference 'other.json' cannot be resolved"),
    ({"$ref": "#"}, M3, "reference '#' leads back to its own schema"),
    (object_of(["a"], a=False), M3, "no value satisfies this schema (at #/properties/a)"),
    (object_of(["a>b"], **{"a>b": INT}), M3, "a key that must be there cannot be written in this style"),
    (object_of(["o"], o=object_of(["/x"], **{"/x": INT})), M3, "a key that must be there cannot be written in this style"),
    (object_of(["a"], a={"const": "x" + N}), M3, "a string that must be there holds what ends a value in this style"),
    (object_of(["a"], a={"type": "array", "prefixItems": [{"const": "</cofl:value>"}], "minItems": 1}), COHERE, "a string that must be there holds what ends a value in this style"),
    ({**object_of(a=INT), "minProperties": 2}, COHERE, "no value satisfies this schema (at #)"),
    ({"type": "array", "items": INT}, COHERE, "parameters outside JSON need an object schema (at #)"),
]  # fmt: skip


@pytest.mark.parametrize("schema, style, inside, outside", CASES)
def test_cases(schema, style, inside, outside) -> None:
    found = grammar(schema, style)
    assert [t for t in inside if not harness.verdict(found, t)] == []
    assert [t for t in outside if harness.verdict(found, t)] == []
    assert found.warnings == ()


@pytest.mark.parametrize("schema, style, message", ERRORS)
def test_what_cannot_be_written_is_named(schema, style, message) -> None:
    with pytest.raises(errors.GrammarError, match=re.escape(message)):
        grammar(schema, style)


def test_what_cannot_be_written_is_left_out_where_it_may_be() -> None:
    """A text that contains a mark of the format cannot be written as an element. An optional key or a
    constant with such a text is omitted; other keys and values stay."""
    names = object_of(**{"a>b": INT, "/c": INT, "d": INT})
    assert [t for t in (m("a>b", "1"), m("/c", "1")) if harness.verdict(grammar(names, M3), t)] == []
    assert harness.verdict(grammar(names, M3), m("d", "1"))
    inner = object_of(["o"], o=object_of(a={"enum": ["x", "x" + N, "</cofl:value>"]}))
    assert harness.verdict(grammar(inner, M3), m("o", m("a", "</cofl:value>")))
    assert not harness.verdict(grammar(inner, M3), m("o", m("a", "x" + N)))
    assert harness.verdict(grammar(inner, COHERE), c("o", "dict", c("a", "raw", "x" + N)))
    assert not harness.verdict(grammar(inner, COHERE), c("o", "dict", c("a", "raw", "</cofl:value>")))


def test_hostile_schemas_end() -> None:
    deep: Any = INT
    for _ in range(300):
        deep = {"type": "array", "items": deep}
    chain = {f"d{i}": object_of(x={"$ref": f"#/$defs/d{i + 1}"}) for i in range(500)} | {"d500": INT}
    wide = object_of(**{f"p{i}": INT for i in range(300)})
    for style in STYLES:
        with harness.cpu_limit(20):
            assert harness.verdict(grammar(object_of(a=deep), style), "")
            assert harness.verdict(grammar({"$ref": "#/$defs/d0", "$defs": chain}, style), "")
            counted = grammar({**wide, "maxProperties": 200}, style)
            one = {M3: m("p7", "1"), COHERE: c("p7", "json", "1")}[style]
            assert harness.verdict(counted, one) and not harness.verdict(counted, one * 2)
        with pytest.raises(errors.GrammarError):
            grammar({**wide, "minProperties": 10**12}, style)
        with pytest.raises(errors.GrammarError, match="style"):
            BYTES.structural_tag(
                tag(wide, style) | {"format": tag(wide, style)["format"] | {"style": [style]}}
            )


def test_blanks_can_be_bounded() -> None:
    schema = object_of(a=INT)
    for style, element in ((M3, m("a", "1")), (COHERE, c("a", "json", "1"))):
        found = grammar(schema, style, max_whitespace_cnt=1)
        assert harness.verdict(found, f" {element}\n") and not harness.verdict(found, f"  {element}")
        assert not harness.verdict(grammar(schema, style, max_whitespace_cnt=0), f" {element}")
    # the flat styles read the field `max_whitespace_cnt`, too
    flat = grammar(schema, "minimax_xml", max_whitespace_cnt=1)
    assert harness.verdict(flat, '\n<parameter name="a"> 1\n</parameter>')
    assert not harness.verdict(flat, '<parameter name="a">  1</parameter>')


def test_excluded_texts_stand_in_no_string_and_no_key() -> None:
    schema = object_of(o={"type": "object", "additionalProperties": TEXT})
    for style, element in (
        (M3, lambda key, value: m("o", m(key, value))),
        (COHERE, lambda key, value: c("o", "dict", c(key, "raw", value))),
    ):
        found = grammar(schema, style, excludes=["xy"])
        assert harness.verdict(found, element("yx", "x y"))
        assert not harness.verdict(found, element("xy", "")) and not harness.verdict(
            found, element("a", "xy")
        )


def test_the_marker_may_be_a_special_token() -> None:
    vocabulary = structgen.Vocabulary.from_bytes(
        [bytes([i]) for i in range(256)] + [b"", b""],
        eos_token_ids=256,
        special_token_ids={"</s>": 256, N: 257},
    )
    matcher = structgen.Compiler(vocabulary).structural_tag(tag(object_of(["a"], a=TEXT), M3)).matcher()
    ids = [257, *b"<a>", *b"x < y", 257, *b"</a>", 256]
    assert matcher.validate_tokens(ids) == len(ids)
    assert matcher.validate_tokens([257, *b"<a>", 257, *b"<a>"]) == 6
    assert matcher.validate_tokens([*N.encode(), *b"<a>x", 257, *b"</a>", 256]) == len(N) + 10


def test_each_tool_has_its_own_rules() -> None:
    tools = [
        {"name": "one", "parameters": object_of(["o"], o=object_of(["x"], x=INT))},
        {"name": "two", "parameters": object_of(["o"], o=object_of(["y"], y=TEXT))},
    ]
    found = BYTES.tools(tools, "required", style="minimax-m3")

    def call(name: str, arguments: str) -> str:
        return f'{N}<tool_call>\n{N}<invoke name="{name}">{arguments}{N}</invoke>\n{N}</tool_call>'

    assert harness.verdict(found, call("one", m("o", m("x", "1"))))
    assert harness.verdict(found, call("two", m("o", m("y", "z"))))
    assert not harness.verdict(found, call("two", m("o", m("x", "1"))))


# ---- random schemas


class Maker:
    """Makes random schemas, values of these schemas, and the values' texts. `rich` adds schemas that xgrammar
    cannot express.

    `spaced`: whether a key may hold a blank. Gemma's format has no such keys.
    """

    def __init__(self, seed: int, numbers: bool = True, rich: bool = False, spaced: bool = True) -> None:
        self.random = random.Random(seed)
        self.names = ["a", "b", "ab", "c d" if spaced else "c_d", "é"]
        self.numbers = numbers
        self.rich = rich

    def schema(self, depth: int = 3) -> dict[str, Any]:
        pick = self.random.random
        kinds = ["string", "boolean", "null", "enum", *(["integer", "number"] if self.numbers else [])]
        kinds += ["object", "array", "any of"] * 2 if depth else []
        kinds += ["condition", "negation", "map"] * 2 if self.rich and depth else []
        kind = self.random.choice(kinds)
        if kind == "object":
            return self.object(depth - 1)
        if kind == "array":
            bounds = {"minItems": 1} if pick() < 0.3 else {}
            bounds |= {"maxItems": 2} if pick() < 0.3 else {}
            return {"type": "array", "items": self.schema(depth - 1), **bounds}
        if kind == "condition":
            return {
                "if": self.schema(depth - 1),
                "then": self.schema(depth - 1),
                "else": self.schema(depth - 1),
            }
        if kind == "negation":
            return {"allOf": [self.schema(depth - 1), {"not": self.schema(depth - 1)}]}
        if kind == "map":
            return {
                "type": "object",
                "patternProperties": {"^a": self.schema(depth - 1)},
                "additionalProperties": self.schema(depth - 1),
                "maxProperties": 3,
            }
        if kind == "any of":
            return {"anyOf": [self.schema(depth - 1) for _ in range(2)]}
        if kind == "enum":
            pool = ["x", "y z", "xy", True, None, *([1, 20] if self.numbers else [])]
            return {"enum": self.random.sample(pool, 3)}
        return {"type": kind}

    def object(self, depth: int) -> dict[str, Any]:
        names = self.random.sample(self.names, self.random.randint(1, 3))
        made = object_of(
            [n for n in names if self.random.random() < 0.5], **{n: self.schema(depth) for n in names}
        )
        return made | {"additionalProperties": False}

    def value(self, schema: dict[str, Any], most: int = 3) -> Any:
        if "anyOf" in schema:
            return self.value(self.random.choice(schema["anyOf"]), most)
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        kind = schema["type"]
        if kind == "object":
            return {
                n: self.value(s, most)
                for n, s in schema["properties"].items()
                if n in schema["required"] or self.random.random() < 0.6
            }
        if kind == "array":
            least = schema.get("minItems", 0)
            return [
                self.value(schema["items"], most)
                for _ in range(self.random.randint(least, max(least, schema.get("maxItems", most))))
            ]
        texts = ["", "x", "a < b", "1", "]<]", "</cofl", "é\n"]
        values = {
            "string": texts,
            "boolean": [True, False],
            "null": [None],
            "integer": [0, 7, 45],
            "number": [3, 2.5],
        }
        return self.random.choice(values[kind])

    def blank(self) -> str:
        return self.random.choice(["", "", "", " ", "\n", " \n"])

    def text(self, value: Any, style: str) -> str:
        """Returns the value in the style's format, with blanks where a reader skips them."""
        if style == GEMMA:
            return delimited(value, '<|"|>')[1:-1]
        blank = self.blank
        if isinstance(value, dict):
            parts = [blank() + self.element(n, v, style) for n, v in value.items()]
            return "".join(parts) + (blank() if parts or style == COHERE else "")
        if isinstance(value, list):
            parts = [self.element(None, v, style) for v in value]
            between = [blank() if style == M3 else "" for _ in parts]
            return "".join(map("".join, zip(between, parts, strict=True))) + (blank() if parts or style == COHERE else "")  # fmt: skip
        return value if isinstance(value, str) else json.dumps(value)

    def element(self, name: str | None, value: Any, style: str) -> str:
        text = self.text(value, style)
        if style == M3:
            return m(name or "item", text)
        kind = {dict: "dict", list: "list", str: "raw"}.get(type(value), "json")
        padded = kind in ("json", "list")
        return c(name, kind, self.blank() + text + self.blank() if padded else text)

    def spoiled(self, text: str) -> str:
        """Returns a mutation of the text."""
        at = self.random.randrange(len(text) + 1)
        match self.random.randrange(6):
            case 0:
                return text[:at]
            case 1:
                return text[:at] + text[at + 1 :]
            case 2:
                return text[:at] + self.random.choice('x<>"/[]') + text[at:]
            case 3:
                kinds = ["raw", "json", "dict", "list", "a", "b", "item", "x", "true", "null"]
                words = [w for w in re.finditer(r"\w+", text) if w[0] in kinds]
                if not words:
                    return text + "x"
                word = self.random.choice(words)
                return text[: word.start()] + self.random.choice(kinds) + text[word.end() :]
            case 4:
                parts = re.split(r"(?<=>)", text)
                i = self.random.randrange(len(parts))
                return "".join(parts[:i] + parts[i + 1 :])
            case _:
                parts = re.split(r"(?<=>)", text)
                i = self.random.randrange(len(parts))
                return "".join([*parts[: i + 1], *parts[i:]])


def number(text: str) -> float:
    """Returns a JSON number with a fraction or an exponent. A number too large for a float becomes a similar
    one that fits."""
    try:
        found = Decimal(text)
    except InvalidOperation:  # the exponent is too long
        return 0.5 if "-" in text.lower().partition("e")[2] else 10**300
    if found != 0 and abs(found.adjusted()) > 300:
        return 0.5 if found.adjusted() < 0 else 10**300
    return float(found)


def read_cohere(text: str) -> Any:
    """Returns a parser of Cohere's format without a schema: reads the members of an object."""
    mark = re.compile(r'<cofl:value(?: name="([^"]*)")? type="(\w+)">')

    def members(at: int, named: bool) -> tuple[list[tuple[str, Any]], int]:
        found = []
        while True:
            after = re.compile(r"[ \n\r\t]*").match(text, at).end()  # type: ignore[union-attr]
            begin = mark.match(text, after)
            if begin is None:
                return found, after
            assert (begin[1] is not None) == named
            name = begin[1] or ""
            for char, written in (("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("&", "&amp;")):
                name = name.replace(written, char)
            if begin[2] in ("raw", "json"):
                end = text.index("</cofl:value>", begin.end())
                content = text[begin.end() : end]
                value: Any = content if begin[2] == "raw" else json.loads(content, parse_float=number)
            else:
                inner, end = members(begin.end(), begin[2] == "dict")
                value = dict(inner) if begin[2] == "dict" else [v for _, v in inner]
            assert text.startswith("</cofl:value>", end)
            found.append((name, value))
            at = end + len("</cofl:value>")

    found, end = members(0, True)
    assert end == len(text)
    assert len(dict(found)) == len(found)
    return dict(found)


def read_gemma(text: str) -> Any:
    """Returns a parser of Gemma's format without a schema: reads the members of an object."""
    mark, text = '<|"|>', "{" + text + "}"

    def value(at: int) -> tuple[Any, int]:
        if text.startswith(mark, at):
            end = text.index(mark, at + len(mark))
            return text[at + len(mark) : end], end + len(mark)
        if text[at] not in "{[":
            end = re.compile(r"[^,\]}]+").match(text, at).end()  # type: ignore[union-attr]
            return json.loads(text[at:end], parse_float=number), end
        close, found, at = "}" if text[at] == "{" else "]", [], at + 1
        while text[at] != close:
            key = ""
            if close == "}":
                key, at = text[at : text.index(":", at)], text.index(":", at) + 1
            inner, at = value(at)
            found.append((key, inner))
            at += text[at] == ","
        assert len(dict(found)) == len(found) or close == "]"
        return dict(found) if close == "}" else [v for _, v in found], at + 1

    found, end = value(0)
    assert end == len(text)
    return found


TYPED = {COHERE: read_cohere, GEMMA: read_gemma}  # styles that write the types of values


@pytest.mark.parametrize("style", [*STYLES, GEMMA])
def test_values_can_be_written_and_nothing_leads_nowhere(style) -> None:
    """Texts of random values are accepted, and a random walk over the masks reaches no dead end. In a style
    that writes types, jsonschema judges the value read back from the walk's text, and finds an instance."""
    walked = 0
    for seed in harness.seeds(40):
        make = Maker(seed, spaced=style != GEMMA)
        schema = make.object(2)
        found = grammar(schema, style)
        for _ in range(4):
            value = make.value(schema)
            text = make.text(value, style)
            assert harness.verdict(found, text), (seed, text)
            if style in TYPED:
                assert TYPED[style](text) == value
        matcher = found.matcher()
        tokens = []
        for token, mask in itertools.islice(
            harness.walk(Seeded(seed), matcher, 257, [256], 600, finish=400), 600
        ):
            assert bool(mask[token])
            tokens.append(token)
        if tokens[-1:] == [256]:
            walked += 1
            if style in TYPED:
                text = bytes(tokens[:-1]).decode()
                assert jsonschema.Draft202012Validator(schema).is_valid(TYPED[style](text)), (seed, text)
    assert walked > harness.cases(30)


@pytest.mark.parametrize("style", TYPED)
def test_every_keyword_holds_in_elements(style: str) -> None:
    """Random schemas have conditions, negations and patterns of names, in a style that writes types. A random
    walk writes an instance. An instance of another schema is accepted if and only if it is an instance of
    this schema, too.
    """
    counts = {True: 0, False: 0, "walked": 0}
    for seed in harness.seeds(200):
        make = Maker(seed, rich=True, spaced=style != GEMMA)
        schema = make.object(2)
        judge = jsonschema.Draft202012Validator(schema)
        try:
            found = grammar(schema, style)
        except errors.UnsatisfiableSchema:
            continue
        for other in range(6):
            plain = Maker(seed * 100 + other, spaced=style != GEMMA)
            value = plain.value(plain.object(2))
            valid = judge.is_valid(value)
            names = schema["properties"]
            ordered = dict(
                sorted(
                    value.items(), key=lambda member: [*names].index(member[0]) if member[0] in names else 99
                )
            )
            if harness.verdict(found, make.text(ordered, style)) != valid:
                assert valid and any(isinstance(v, dict | list) for v in value.values()), (
                    seed,
                    schema,
                    value,
                )
                continue  # the inner keys are in another order than in the schema
            counts[valid] += 1
        matcher, tokens = found.matcher(), []
        for token, _ in harness.walk(Seeded(seed), matcher, 257, [256], 600, finish=400):
            tokens.append(token)
        if tokens[-1:] == [256]:
            counts["walked"] += 1
            assert judge.is_valid(TYPED[style](bytes(tokens[:-1]).decode())), (seed, schema)
    assert min(counts.values()) > harness.cases(20), counts


@pytest.mark.parametrize("style", [*STYLES, GEMMA])
def test_masks_are_what_may_be_accepted(style) -> None:
    for seed in range(6):
        make = Maker(seed, spaced=style != GEMMA)
        schema = make.object(2)
        text = make.text(make.value(schema), style).encode()
        matcher = grammar(schema, style).matcher()
        for byte in text:
            mask = np.zeros((257 + 31) // 32, np.int32)
            matcher.fill_bitmask(mask)
            bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[:257]
            for token in range(257):
                assert bool(bits[token]) == matcher.fork().accept_token(token), (seed, token)
            assert matcher.accept_token(byte)


@pytest.mark.parametrize("style", STYLES)
def test_xgrammar_gives_the_same_verdicts(style) -> None:
    """Both engines judge texts of random values and mutations of these texts. The schemas avoid the intended
    differences, which `test_where_xgrammar_differs` lists."""
    xgrammar = pytest.importorskip("xgrammar", reason="xgrammar is not installed (the extra `bench`)")
    info = xgrammar.TokenizerInfo([bytes([i]) for i in range(256)] + [b"</s>"], stop_token_ids=[256])
    compiler = xgrammar.GrammarCompiler(info, cache_enabled=False)
    counts = {True: 0, False: 0}
    for seed in harness.seeds(60):
        make = Maker(seed)
        schema = make.object(2)
        ours = grammar(schema, style)
        theirs = compiler.compile_structural_tag(json.dumps(tag(schema, style)))
        for _ in range(12):
            text = make.text(make.value(schema), style)
            for candidate in (text, make.spoiled(text)):
                matcher = xgrammar.GrammarMatcher(theirs)
                expected = matcher.accept_string(candidate) and matcher.accept_token(256)
                assert harness.verdict(ours, candidate) == expected, (seed, schema, candidate)
                counts[expected] += 1
    assert min(counts.values()) > harness.cases(400), counts


# (schema, style, text, structgen's verdict, xgrammar's verdict or None if it refuses the schema), with
# reasons
DIFFERENT = [
    # xgrammar drops the constraint without an error
    (object_of(a={"type": "integer", "not": {"const": 1}}), COHERE, c("a", "json", "1"), False, True),
    (object_of(a={"type": "array", "items": INT, "uniqueItems": True}), M3, m("a", m("item", "1") * 2), None, True),
    (object_of(a={"allOf": [INT, {"minimum": 3}]}), COHERE, c("a", "raw", "x"), False, True),
    (object_of(["a", "z"], a=INT), COHERE, c("a", "json", "1"), False, True),
    # an array of anything: xgrammar takes the empty one only
    (object_of(a={"type": "array"}), COHERE, c("a", "list", c(None, "json", "1")), True, False),
    # `prefixItems` does not require all of its items
    (object_of(a={"type": "array", "prefixItems": [TEXT, INT]}), COHERE, c("a", "list", c(None, "raw", "x")), True, False),
    # a fixed or bounded string may have no more blanks around it than a free string
    (object_of(a={"enum": ["x"]}), COHERE, c("a", "raw", " x "), False, True),
    # the string cannot hold the closing mark, where a reader would stop
    (object_of(a={"type": "string", "maxLength": 30}), COHERE, c("a", "raw", "</cofl:value>"), False, True),
    # structgen enforces a pattern or a length of strings
    (object_of(a={"type": "string", "pattern": "^x+$"}), M3, m("a", "xx"), True, None),
    # an integer is a number without a fraction, in every spelling
    (object_of(a=INT), M3, m("a", "1.0"), True, False),
    # at most four blanks in a row by default
    (object_of(a=INT), M3, " " * 5 + m("a", "1"), False, True),
]  # fmt: skip


@pytest.mark.parametrize("schema, style, text, ours, theirs", DIFFERENT)
def test_where_xgrammar_differs(schema, style, text, ours, theirs) -> None:
    try:
        assert harness.verdict(grammar(schema, style), text) == ours
    except errors.GrammarError:
        assert ours is None
    xgrammar = pytest.importorskip("xgrammar", reason="xgrammar is not installed (the extra `bench`)")
    info = xgrammar.TokenizerInfo([bytes([i]) for i in range(256)] + [b"</s>"], stop_token_ids=[256])
    try:
        compiled = xgrammar.GrammarCompiler(info).compile_structural_tag(json.dumps(tag(schema, style)))
    except RuntimeError:
        assert theirs is None
        return
    matcher = xgrammar.GrammarMatcher(compiled)
    assert (matcher.accept_string(text) and matcher.accept_token(256)) == theirs
