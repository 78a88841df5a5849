"""Streams: the tokens of `sg.generate`, partial values that only grow, and no work after a client leaves."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import json
import random
import threading
import time
from collections.abc import Sequence
from datetime import date
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import TypedDict

import structgen as sg
from oracles import closed
from oracles.harness import cases
from oracles.speculative import SCHEMA, TableModel
from oracles.tasks import Context
from structgen.cli import main
from structgen.generation.partial import IncompleteString, Unknown, partial_json, plain, typed

TEXT = "Maria Lopez ordered 3 oak chairs and 2 desk lamps, ship to Lisbon"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


# ---- partial values ----


def begins(part: Any, whole: Any, last: bool = True) -> bool:
    """Returns whether `part` is the value of a beginning of `whole`: only its last member or item may be
    incomplete."""
    if isinstance(part, IncompleteString):
        return last and isinstance(whole, str) and whole.startswith(part)
    if isinstance(part, dict) and isinstance(whole, dict):
        keys = list(whole)[: len(part)]
        return list(part) == keys and all(
            begins(part[k], whole[k], last and i == len(part) - 1) for i, k in enumerate(keys)
        )
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(
            begins(p, w, last and i == len(part) - 1)
            for i, (p, w) in enumerate(zip(part, whole, strict=False))
        )
    return type(part) is type(whole) and (part == whole or part != part)


def known(value: Any) -> int:
    """Returns the number of known leaves of a value."""
    if isinstance(value, dict):
        return 1 + sum(known(v) for v in value.values())
    if isinstance(value, list):
        return 1 + sum(known(v) for v in value)
    return 1 + len(value) if isinstance(value, str) else 1


@settings(max_examples=cases(150), deadline=None)
@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_every_beginning_of_a_text_is_a_beginning_of_its_value(
    value: Any, ascii: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii, indent=indent)
    before = 0
    for end in range(len(text) + 1):
        found = partial_json(text[:end])
        if found is Unknown:
            assert before == 0
            continue
        found = plain(found)
        assert begins(found, value), (text[:end], found)
        assert known(found) >= before, (text[:end], found)
        before = known(found)
    if isinstance(value, (dict, list, str)):
        assert plain(partial_json(text)) == value


@settings(max_examples=cases(150), deadline=None)
@given(VALUES)
def test_as_much_is_known_as_another_reader_knows(value: Any) -> None:
    """jiter, pydantic's reader, also reads beginnings of JSON. Here at least as much is known as jiter knows.
    Texts that end within a number are skipped: jiter takes `1` for 1, here it is unknown, because it may
    become 12."""
    core = pytest.importorskip("pydantic_core")
    text = json.dumps(value)
    for end in range(1, len(text) + 1):
        if text[end - 1] in "0123456789.eE+-":
            continue
        try:
            theirs = core.from_json(text[:end], allow_partial="trailing-strings")
        except ValueError:
            continue
        ours = partial_json(text[:end])
        if isinstance(theirs, (dict, list)):
            assert ours is not Unknown and known(plain(ours)) >= known(theirs), text[:end]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", Unknown),
        ("  ", Unknown),
        ('{"a": [], "": {"x": 1}, "a": [], "b', {"a": [], "": {"x": 1}}),  # a repeated key, out of order
        ('{"": {}, "a": 1, "": [2]', {"": [2], "a": 1}),
        ("1", Unknown),
        ("tru", Unknown),
        ("true", True),
        ('"a', IncompleteString("a")),
        ('"a\\', IncompleteString("a")),
        ('"a\\\\', IncompleteString("a\\")),
        ('"a\\u00', IncompleteString("a")),
        ('"a\\ud83d', IncompleteString("a")),
        ('"a\\ud83d\\ude0', IncompleteString("a")),
        ('"a\\ud83d\\ude00', IncompleteString("a😀")),
        ('"a\\\\u00', IncompleteString("a\\u00")),
        ('{"a', {}),
        ('{"a": 12', {}),
        ('{"a": 12,', {"a": 12}),
        ('{"a": [1, -', {"a": [1]}),
        ('{"a": nul', {}),
        ('{"a": null', {"a": None}),
        ('[{"a": {"b": "c"}}, ', [{"a": {"b": "c"}}]),
    ],
)
def test_what_is_known(text: str, value: Any) -> None:
    found = partial_json(text)
    assert (found if found is Unknown else plain(found)) == value
    if isinstance(value, IncompleteString):
        assert isinstance(found, IncompleteString) and "..." in repr(found)


def test_deep_beginnings_need_no_stack() -> None:
    text = '{"a":[' * 20_000
    found = partial_json(text)
    for _ in range(20_000):
        found = found["a"][0] if found["a"] else found
    assert partial_json("[" * 100_000 + "]" * 50_000) is not Unknown


class Kind(enum.Enum):
    CHAIR = "chair"
    LAMP = "lamp"


class Point(NamedTuple):
    x: int
    y: str


class Note(TypedDict):
    words: str
    when: date


@dataclasses.dataclass(frozen=True, slots=True)
class Cat:
    pet: Literal["cat"]
    lives: int


@dataclasses.dataclass
class Dog:
    pet: Literal["dog"]
    tricks: list[str]


def test_partial_values_have_the_type() -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")

    class Item(pydantic.BaseModel):
        kind: Kind
        count: int = pydantic.Field(alias="howMany")
        pet: Cat | Dog | None = None

    class Order(pydantic.BaseModel):
        who: str
        when: date
        items: list[Item]
        note: Note
        at: Point

    text = (
        '{"who":"Ana","when":"2027-03-05","items":[{"kind":"lamp","howMany":2,"pet":{"pet":"dog","tricks":["sit"]}}],'
        '"note":{"words":"soon","when":"2027-03-06"},"at":[1,"a"]}'
    )
    make = typed(Order)

    def at(mark: str) -> Any:
        return make(partial_json(text[: text.index(mark) + len(mark)]))

    assert at("{").who is None
    assert isinstance(at('"An').who, IncompleteString) and at('"An').who == "An"
    order = at('"2027-03-05"')
    assert isinstance(order, Order) and order.when == date(2027, 3, 5) and order.items is None
    assert at('"items":[').items == []
    item = at('"kind":"lamp",').items[0]
    assert isinstance(item, Item) and item.kind is Kind.LAMP and item.count is None
    item = at('"tricks":["si').items[0]
    assert item.count == 2 and isinstance(item.pet, Dog) and item.pet.tricks == ["si"]
    note = at('"words":"so').note
    assert note == {"words": "so"}
    assert at('"at":[1,').at == Point(1, None)  # type: ignore[arg-type]
    assert make(partial_json(text)) == Order.model_validate_json(text)


# ---- streams ----


@pytest.mark.parametrize("speculate", [None, "auto"])
@pytest.mark.parametrize("stop", [None, "lamps"])
def test_a_stream_has_the_tokens_of_the_call(speculate: Any, stop: str | None) -> None:
    schema = closed({"customer": {"type": "string"}, "product": {"type": "string"}})
    options: dict[str, Any] = {"speculate": speculate, "stop": stop, "temperature": 0.8, "seed": 3}
    want = sg.generate(None, TEXT, schema, **options)
    events = list(sg.stream(None, TEXT, schema, **options))
    assert [e.token for e in events] == want.tokens
    assert "".join(e.text for e in events) == want.text == events[-1].so_far
    texts = [e.text for e in events]  # an event keeps its own beginning, whatever follows
    assert [e.so_far for e in events] == ["".join(texts[: i + 1]) for i in range(len(texts))]
    assert [e.logprob for e in events] == pytest.approx(want.logprobs, abs=1e-4)
    assert all(e.result is None for e in events[:-1])
    result = events[-1].result
    assert result is not None and result.value == want.value and result.finish_reason == want.finish_reason
    assert events[-1].value == want.value
    if stop is None:
        for event in events[:-1]:
            assert begins(event.value, want.value) or event.value is None


def test_the_texts_of_a_stream_are_those_of_n() -> None:
    options: dict[str, Any] = {"n": 3, "temperature": 1.3, "seed": 7}
    want = sg.generate(TableModel(), "go", SCHEMA, **options)
    with sg.stream(TableModel(), "go", SCHEMA, **options) as stream:
        first = next(stream)
        assert first.index == 0 and first.value is None or first.value == {}
        assert [r.tokens for r in stream.results] == [r.tokens for r in want]
        assert stream.result.text == want[0].text
        assert list(stream) == []


def test_characters_come_whole() -> None:
    """A character of several bytes in several tokens appears with its last token."""
    events = list(sg.stream(None, "x", choice=["größe 😀 ok"]))
    assert "".join(e.text for e in events) == "größe 😀 ok"
    assert all("\ufffd" not in e.text for e in events)
    assert isinstance(events[0].value, IncompleteString) and events[-1].value == "größe 😀 ok"


class Slow(TableModel):
    """A model that counts its forward passes."""

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()

    def logprobs(self, contexts: Sequence[Context]) -> np.ndarray:
        self.began.set()
        time.sleep(0.01)
        return super().logprobs(contexts)


def test_leaving_a_stream_ends_the_work() -> None:
    lm = Slow()
    with sg.stream(lm, "go", regex="a{50}") as stream:
        for _ in range(3):
            next(stream)
    assert len(lm.calls) == 3 and list(stream) == []
    for event in sg.stream(lm, "go", regex="a{50}"):
        if len(event.so_far) == 2:
            break
    time.sleep(0.05)
    assert len(lm.calls) == 5


def test_cancelling_a_task_ends_the_work() -> None:
    async def go(lm: Slow, streaming: bool) -> None:
        async def work() -> None:
            if streaming:
                async for _ in sg.astream(lm, "go", regex="a{500}", max_tokens=600):
                    pass
            else:
                await sg.agenerate(lm, "go", regex="a{500}", max_tokens=600)

        task = asyncio.create_task(work())
        await asyncio.to_thread(lm.began.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for streaming in (True, False):
        lm = Slow()
        asyncio.run(go(lm, streaming))
        time.sleep(0.05)
        calls = len(lm.calls)
        assert calls < 20
        time.sleep(0.1)
        assert len(lm.calls) == calls


def test_many_tasks_share_a_model() -> None:
    """Many tasks of asyncio use one model at once. Each answer equals that of a call alone."""
    prompts = [f"{name} ordered {i} oak chairs" for i, name in enumerate(("Ana", "Bo", "Cy", "Di"), 2)]
    schema = {"type": "object", "properties": {"customer": {"type": "string"}}, "required": ["customer"]}
    want = [sg.generate(None, p, schema, max_tokens=40).tokens for p in prompts]

    async def one(prompt: str) -> list[int]:
        return [e.token async for e in sg.astream(None, prompt, schema, max_tokens=40)]

    async def everything() -> list[list[int]]:
        return await asyncio.gather(*map(one, prompts))

    assert asyncio.run(everything()) == want


def test_errors_of_a_stream() -> None:
    with pytest.raises(TypeError, match="regex="):
        sg.stream(None, "x", regex=3)  # raises before the model is asked
    with pytest.raises(ValueError, match="takes no retries"):
        sg.stream(None, "x", {"type": "integer"}, retries=2)

    async def first() -> Any:
        return await anext(sg.astream(None, "x", regex="("))

    with pytest.raises(sg.GrammarError, match="not closed"):
        asyncio.run(first())


def test_tool_calls_grow() -> None:
    pytest.importorskip("pydantic", reason="pydantic is not installed: it is in the extra types")

    def weather(city: str) -> None: ...

    seen = [e.value for e in sg.stream(None, "the weather in Oslo", tools=[weather], tool_choice="required")]
    cities = [v.calls[0].arguments.get("city") for v in seen if v is not None and v.calls]
    cities = [c for c in cities if c is not None]
    assert isinstance(cities[0], IncompleteString) and cities[-1] == seen[-1].calls[0].arguments["city"]
    assert all(str(cities[-1]).startswith(c) for c in cities)


def test_the_command_shows_the_text_as_it_comes(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(
        ["generate", "--stream", "--prompt", "The number is 555-0199", "--regex", "[0-9]{3}-[0-9]{4}"]
    )
    assert (status, capsys.readouterr().out) == (0, "555-0199\n")
    for more in (["-n", "2"], ["--output", "-"]):
        assert main(["generate", "--stream", "--prompt", "x", "--regex", "a", *more]) == 2
        assert "--stream shows one text" in capsys.readouterr().err


def test_random_ends_of_streams_leave_the_model_usable() -> None:
    draws = random.Random(1)
    want = sg.generate(None, TEXT, {"type": "array", "items": {"type": "string"}}, max_tokens=30).tokens
    for _ in range(10):
        stream = sg.stream(None, TEXT, {"type": "array", "items": {"type": "string"}}, max_tokens=30)
        for _ in range(draws.randrange(1, 8)):
            next(stream, None)
        stream.close()
    assert (
        sg.generate(None, TEXT, {"type": "array", "items": {"type": "string"}}, max_tokens=30).tokens == want
    )
