"""Python types go in, values of the type come out."""

from __future__ import annotations

import dataclasses
import enum
from typing import Literal

import pydantic
import pytest

import structgen as sg


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(pydantic.BaseModel):
    x: int
    y: int = 0
    colour: Colour = Colour.RED


@dataclasses.dataclass
class Pair:
    left: str
    right: list[float]


def add(a: int, b: Literal["x", "y"]) -> int:
    return a


@pytest.fixture(scope="module")
def compiler() -> sg.Compiler:
    vocabulary = sg.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], eos_token_ids=[256])
    return sg.Compiler(vocabulary)


def accepts(grammar: sg.CompiledGrammar, text: str) -> bool:
    m = grammar.matcher()
    return m.accept_bytes(text) and m.is_accepting()


@pytest.mark.parametrize(
    ("kind", "good", "value", "bad"),
    [
        (Point, '{"x": 1, "colour": "blue"}', Point(x=1, colour=Colour.BLUE), '{"x": "1"}'),
        (Pair, '{"left": "a", "right": [1.5]}', Pair("a", [1.5]), '{"left": "a"}'),
        (Colour, '"red"', Colour.RED, '"green"'),
        (Literal["a", 3], "3", 3, "4"),
        (list[int], "[1, 2]", [1, 2], '["a"]'),
        (int | None, "null", None, '"x"'),
        (dict[str, bool], '{"a": true}', {"a": True}, '{"a": 1}'),
        (add, '{"a": 1, "b": "x"}', {"a": 1, "b": "x"}, '{"a": 1, "b": "z"}'),
    ],
)
def test_types(compiler: sg.Compiler, kind: object, good: str, value: object, bad: str) -> None:
    grammar = compiler.json_schema(kind)
    assert accepts(grammar, good)
    assert not accepts(grammar, bad)
    assert grammar.parse(good) == value


def test_response_format(compiler: sg.Compiler) -> None:
    inner = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    grammar = compiler.json_schema({"type": "json_schema", "json_schema": {"name": "n", "schema": inner}})
    assert accepts(grammar, '{"a": 1}')
    assert not accepts(grammar, "{}")
    assert accepts(compiler.json_schema({"type": "json_object"}), '{"z": 1}')


@pytest.mark.parametrize("schema", [3, None, [1], 2.5, object()])
def test_no_schema(compiler: sg.Compiler, schema: object) -> None:
    with pytest.raises(sg.GrammarError):
        compiler.json_schema(schema)
