"""Types that the checkers infer for a call. `tests/test_types.py` runs mypy and pyright on this file; no test
executes the file."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_type

import structgen as sg


@dataclass
class Order:
    product: str
    quantity: int


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def weather(city: str) -> str:
    return city


assert_type(sg.generate(None, "x", Order), sg.Result[Order])
assert_type(sg.generate(None, "x", Order).value, Order)
assert_type(sg.generate(None, "x", Order).value.quantity, int)
assert_type(sg.generate(None, "x", list[int]), sg.Result[list[int]])
assert_type(sg.generate(None, "x", schema=Order, max_tokens=9), sg.Result[Order])
assert_type(sg.generate(None, "x", Order, n=3, temperature=0.5), list[sg.Result[Order]])
assert_type(sg.generate(None, "x", {"type": "object"}), sg.Result[Any])
assert_type(sg.generate(None, "x", '{"type": "object"}'), sg.Result[Any])
assert_type(sg.generate(None, "x", Path("order.json"), n=2), list[sg.Result[Any]])
assert_type(sg.generate(None, "x", regex="[0-9]+"), sg.Result[str])
assert_type(sg.generate(None, "x", regex="[0-9]+", n=2), list[sg.Result[str]])
assert_type(sg.generate(None, "x", choice=["yes", "no"]), sg.Result[str])
assert_type(sg.generate(None, "x", choice=Colour), sg.Result[Colour])
assert_type(sg.generate(None, "x", gbnf='root ::= "a"'), sg.Result[str])
assert_type(sg.generate(None, "x", lark='start: "a"'), sg.Result[str])
assert_type(sg.generate(None, "x"), sg.Result[str])
assert_type(sg.generate(None, "x", tools=[weather]), sg.Result[sg.ToolReply])
assert_type(sg.generate(None, "x", tools=[weather]).value.calls[0].name, str)
assert_type(sg.generate(None, "x", grammar='root ::= "a"'), sg.Result[Any])
assert_type(sg.generate(None, "x", response_format={"type": "json_object"}), sg.Result[Any])


async def later() -> None:
    assert_type(await sg.agenerate(None, "x", Order), sg.Result[Order])
    assert_type(await sg.agenerate(None, "x", Order, n=2), list[sg.Result[Order]])
    assert_type(await sg.agenerate(None, "x", regex="a"), sg.Result[str])
    async for event in sg.astream(None, "x", Order):
        assert_type(event.value, Order | None)
        assert_type(event.result, sg.Result[Order] | None)


for event in sg.stream(None, "x", Order):
    assert_type(event.value, Order | None)
with sg.stream(None, "x", choice=Colour) as stream:
    assert_type(stream.result.value, Colour)
assert_type(sg.stream(None, "x", regex="a"), sg.Stream[str])
assert_type(sg.stream(None, "x", tools=[weather]).result, sg.Result[sg.ToolReply])
assert_type(sg.stream(None, "x", {"type": "object"}, n=3), sg.Stream[Any])
for found in sg.generate_many(None, ["x"], Order, progress=True):
    if isinstance(found, sg.Failed):
        assert_type(found.error, Exception)
    else:
        assert_type(found.value, Order)
for text in sg.generate_many(None, ["x"], regex="a", batch=4):
    assert_type(text, sg.Result[str] | sg.Failed)
assert_type(sg.search(None, "x", Order, n=3, forwards=10), sg.Searched)
assert_type(sg.search(None, "x", Order)[0].certified, bool)
