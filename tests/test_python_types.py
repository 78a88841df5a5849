"""Python types as constraints: results have the type. The forms of a request in OpenAI's API are tested,
too."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import typing
import uuid
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, Optional, TypedDict, Union

import numpy as np
import pydantic
import pytest

import structgen as sg
from oracles.harness import verdict
from oracles.strategies import Seeded


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(pydantic.BaseModel):
    x: int
    y: int = 0
    colour: Colour = Colour.RED


class Tree(pydantic.BaseModel):
    value: int
    children: list[Tree] = []


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    name: Annotated[str, pydantic.Field(min_length=2, max_length=4, pattern="^[a-z]+$")]
    size: Annotated[float, pydantic.Field(ge=0, multiple_of=0.5)] = 1
    tag: str = pydantic.Field(default="", alias="Tag")


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    good: bool


Pet = Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]


@dataclasses.dataclass
class Pair:
    left: str
    right: list[float]


class Studio(TypedDict):
    city: str


class Film(TypedDict):
    title: str
    year: NotRequired[int]
    studio: NotRequired[Studio]


class Spot(NamedTuple):
    row: int
    name: str = "x"


UserId = NewType("UserId", int)


def add(a: int, b: Literal["x", "y"]) -> int:
    raise AssertionError("the function is not called")


async def book(when: datetime.date, who: Point, *, level: Level = Level.LOW) -> None:
    raise AssertionError("the function is not called")


class Service:
    def call(self, colour: Colour, count: int = 1) -> None:
        raise AssertionError("the method is not called")


@pytest.fixture(scope="module")
def compiler() -> sg.Compiler:
    vocabulary = sg.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b""], eos_token_ids=[256])
    return sg.Compiler(vocabulary)


ID = uuid.UUID("123e4567-e89b-12d3-a456-426614174000")
CASES: list[tuple[Any, str, Any, str]] = [
    (Point, '{"x": 1, "colour": "blue"}', Point(x=1, colour=Colour.BLUE), '{"x": "1"}'),
    (
        Tree,
        '{"value": 1, "children": [{"value": 2}]}',
        Tree(value=1, children=[Tree(value=2)]),
        '{"children": []}',
    ),
    (Strict, '{"name": "abc", "size": 1.5}', Strict(name="abc", size=1.5), '{"name": "abc", "other": 1}'),
    (Strict, '{"name": "abc", "Tag": "t"}', Strict(name="abc", Tag="t"), '{"name": "abc", "tag": "t"}'),
    (Pet, '{"kind": "dog", "good": true}', Dog(kind="dog", good=True), '{"kind": "dog", "lives": 9}'),
    (list[Pet], '[{"kind": "cat", "lives": 9}]', [Cat(kind="cat", lives=9)], '[{"kind": "cow", "lives": 9}]'),
    (Pair, '{"left": "a", "right": [1.5]}', Pair("a", [1.5]), '{"left": "a"}'),
    (Film, '{"title": "a"}', {"title": "a"}, '{"title": "a", "year": "b"}'),
    (
        Film,
        '{"title": "a", "studio": {"city": "b"}}',
        {"title": "a", "studio": {"city": "b"}},
        '{"title": "a", "studio": {}}',
    ),
    (Spot, '[1, "a"]', Spot(1, "a"), '["a", 1]'),
    (Colour, '"red"', Colour.RED, '"green"'),
    (Level, "2", Level.HIGH, "3"),
    (Literal["a", 3], "3", 3, "4"),
    (list[int], "[1, 2]", [1, 2], '["a"]'),
    (set[int], "[1, 2]", {1, 2}, "[1, 1]"),
    (frozenset[str], '["a"]', frozenset("a"), '["a", "a"]'),
    (tuple[int, str], '[1, "a"]', (1, "a"), "[1]"),
    (tuple[int, ...], "[1, 2, 3]", (1, 2, 3), '[1, "a"]'),
    (dict[str, bool], '{"a": true}', {"a": True}, '{"a": 1}'),
    (dict[int, str], '{"-12": "a"}', {-12: "a"}, '{"x": "a"}'),
    (dict[Colour, int], '{"red": 1}', {Colour.RED: 1}, '{"green": 1}'),
    (int | None, "null", None, '"x"'),
    (Optional[int], "7", 7, '"x"'),  # noqa: UP045 (the older spelling is what is tested)
    (Union[int, list[str]], '["a"]', ["a"], "[1]"),  # noqa: UP007
    (Annotated[int, pydantic.Field(gt=5)], "6", 6, "5"),
    (UserId, "3", 3, '"3"'),
    (bool, "true", True, "1"),
    (None | str, '"a"', "a", "1"),
    (Any, '{"a": [1]}', {"a": [1]}, "{]"),
    (datetime.date, '"2024-02-29"', datetime.date(2024, 2, 29), '"2023-02-29"'),
    (datetime.timedelta, '"P1DT2H"', datetime.timedelta(days=1, hours=2), '"P"'),
    (uuid.UUID, f'"{ID}"', ID, '"123"'),
    (decimal.Decimal, '"1.25"', decimal.Decimal("1.25"), '"x"'),
    (pydantic.TypeAdapter(list[int]), "[1]", [1], "[true]"),
    (add, '{"a": 1, "b": "x"}', {"a": 1, "b": "x"}, '{"a": 1, "b": "z"}'),
    (Service().call, '{"colour": "red"}', {"colour": Colour.RED, "count": 1}, '{"self": 1, "colour": "red"}'),
    (
        book,
        '{"when": "2024-02-29", "who": {"x": 1}, "level": 2}',
        {"when": datetime.date(2024, 2, 29), "who": Point(x=1), "level": Level.HIGH},
        '{"when": "2024-02-29"}',
    ),
]


# An address in a test's name would differ between the processes that run the tests.
NAMES = [str(getattr(case[0], "__qualname__", case[0])).split(" at 0x")[0][-40:] for case in CASES]


@pytest.mark.parametrize(("kind", "good", "value", "bad"), CASES, ids=NAMES)
def test_types(compiler: sg.Compiler, kind: Any, good: str, value: Any, bad: str) -> None:
    grammar = compiler.json_schema(kind)
    assert verdict(grammar, good)
    assert not verdict(grammar, bad)
    assert grammar.parse(good) == value
    assert type(grammar.parse(good)) is type(value)


@pytest.mark.parametrize("kind", [c[0] for c in CASES], ids=NAMES)
def test_whatever_is_generated_parses_back(compiler: sg.Compiler, kind: Any) -> None:
    grammar = compiler.json_schema(kind, whitespace="compact", numbers="canonical")
    mask = sg.allocate_bitmask(1, 257)
    for seed in range(6):
        source = Seeded(seed)
        matcher = grammar.matcher()
        text = b""
        for step in range(400):
            matcher.fill_bitmask(mask, 0, None if step < 12 else max(60, matcher.tokens_needed()))
            allowed = np.flatnonzero(np.unpackbits(np.asarray(mask).view(np.uint8), bitorder="little"))
            token = int(source.pick([t for t in allowed if t < 0x7F or t == 256] or list(allowed)))
            if step > 30:
                text += matcher.shortest_completion()
                break
            matcher.accept_token(token)
            if matcher.is_terminated():
                break
            text += bytes([token])
        if kind in (datetime.date, datetime.timedelta, book) or b"\\" in text:
            continue  # Python's dates have the years 1 to 9999, and its durations at most 10**9 days
        grammar.parse(text)


def test_response_format(compiler: sg.Compiler) -> None:
    inner = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    wrapped = {"type": "json_schema", "json_schema": {"name": "n", "schema": inner, "strict": True}}
    # the form of `text.format` in the Responses API
    flat = {"type": "json_schema", "name": "n", "schema": inner}
    for shape in (wrapped, flat):
        grammar = compiler.json_schema(shape)
        assert verdict(grammar, '{"a": 1}') and not verdict(grammar, "{}")
        assert grammar.parse('{"a": 1}') == {"a": 1}
    assert verdict(compiler.json_schema({"type": "json_object"}), '{"z": 1}')
    assert not verdict(compiler.json_schema({"type": "json_object"}), "[1]")
    with pytest.raises(sg.GrammarError, match="no 'schema'"):
        compiler.json_schema({"type": "json_schema", "json_schema": {"name": "n"}})


WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"$ref": "#/$defs/unit"}},
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"unit": {"enum": ["C", "F"]}},
}


@pytest.mark.parametrize(
    "weather",
    [
        {"type": "function", "function": {"name": "weather", "parameters": WEATHER, "strict": True}},
        {"type": "function", "name": "weather", "parameters": WEATHER},
        {"name": "weather", "description": "of a city", "parameters": WEATHER},
    ],
)
def test_tools(compiler: sg.Compiler, weather: dict) -> None:
    clock = {"type": "function", "function": {"name": "clock"}}
    both = compiler.json_schema([weather, clock, book])
    good = '{"name": "weather", "arguments": {"city": "Rome", "unit": "C"}}'
    assert verdict(both, good) and both.parse(good)["arguments"] == {"city": "Rome", "unit": "C"}
    assert verdict(both, '{"name": "clock", "arguments": {}}')
    for bad in (
        '{"name": "weather", "arguments": {}}',
        '{"name": "weather", "arguments": {"city": "Rome", "unit": "K"}}',
        '{"name": "clock", "arguments": {"city": "Rome"}}',
        '{"name": "other", "arguments": {}}',
        '{"name": "clock"}',
    ):
        assert not verdict(both, bad), bad
    call = '{"name": "book", "arguments": {"when": "2024-02-29", "who": {"x": 1}}}'
    assert verdict(both, call)
    assert both.parse(call)["arguments"]["who"] == Point(x=1)
    if "type" in weather:
        assert verdict(compiler.json_schema(weather), good)


@pytest.mark.parametrize(
    "given",
    [[{"type": "function"}], [{"name": "a"}, {"name": "a"}], [{"name": "a", "parameters": 3}], [1], [[]]],
)
def test_no_tools(compiler: sg.Compiler, given: list) -> None:
    with pytest.raises(sg.GrammarError):
        compiler.json_schema(given)


@pytest.mark.parametrize("schema", [3, [1], 2.5, object(), [], typing.Callable[[int], int], "later"])
def test_no_schema(compiler: sg.Compiler, schema: object) -> None:
    with pytest.raises(sg.GrammarError):
        compiler.json_schema(schema)


def test_a_type_that_is_not_there_yet(compiler: sg.Compiler) -> None:
    def later(a: Missing) -> None:  # type: ignore[name-defined]  # noqa: F821
        ...

    with pytest.raises(sg.GrammarError, match="later"):
        compiler.json_schema(later)


def test_the_schema_of_a_type_is_explained(compiler: sg.Compiler) -> None:
    found = compiler.json_schema(Point).explain(json.dumps({"x": 1.5}))
    assert found is not None and found.causes[0].pointer == "/properties/x/type"


def test_functions_are_tools_in_every_style(compiler: sg.Compiler) -> None:
    for style in ("hermes", "qwen3-coder"):
        grammar = compiler.tools([add], "required", style=style)
        text = {
            "hermes": '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": "x"}}\n</tool_call>',
            "qwen3-coder": "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\nx\n"
            "</parameter>\n</function>\n</tool_call>",
        }[style]
        matcher = grammar.matcher()
        read = matcher.validate_bytes(text)
        assert read == len(text), (style, text[read:])
        assert not grammar.matcher().accept_bytes(text.replace("add", "sub"))


@pytest.mark.parametrize("texts", ["abc", b"abc", [1, 2], [b"a"], []])
def test_a_choice_is_a_list_of_texts(compiler: sg.Compiler, texts: Any) -> None:
    with pytest.raises((TypeError, sg.GrammarError), match="choice"):
        compiler.choice(texts)


def test_what_only_parsing_tells_is_reported_for_new_paths_too(compiler: sg.Compiler) -> None:
    for kind in (pydantic.NewPath, pydantic.FilePath, pydantic.DirectoryPath):
        assert [e.keyword for e in compiler.json_schema(kind).report] == ["x-file"]


def test_a_pattern_that_pydantic_refuses_is_an_error_of_structgens(compiler: sg.Compiler) -> None:
    with pytest.raises(sg.GrammarError, match="no JSON Schema.*: look-around, .* is not supported$"):
        compiler.json_schema(Annotated[str, pydantic.Field(pattern=r"^(?=a).*z$")])


def test_bounds_of_a_type_that_exclude_each_other_are_named() -> None:
    with pytest.raises(sg.UnsatisfiableSchema, match="#/maximum: 3 and #/minimum: 5 exclude each other"):
        sg.generate(None, "x", Annotated[int, pydantic.Field(ge=5, le=3)])


@pytest.mark.parametrize("make", [dataclasses.dataclass, pydantic.dataclasses.dataclass])
def test_a_field_that_is_not_given_is_not_written(compiler: sg.Compiler, make: Any) -> None:
    class Box:
        width: int
        area: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            self.area = self.width**2

    grammar = compiler.json_schema(make(Box), whitespace="compact")
    assert grammar.parse('{"width":3}').area == 9
    assert not grammar.matcher().accept_bytes('{"width":3,')
