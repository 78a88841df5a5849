"""Texts of a server: stop strings across borders of tokens, and tool calls in every style, read back."""

from __future__ import annotations

import json
import random

import pytest

from oracles.tool_styles import ARGUMENTS, SCHEMA, written

pytest.importorskip("fastapi", reason="fastapi is not installed: it is in the extra serve")

from structgen._text import TextStream
from structgen.frontend.tool_calls import Begun, Call, CallReader, Part, style_of_template
from structgen.frontend.tools import ARGUMENTS as ALONE
from structgen.frontend.tools import STYLES as ALL

# tests/test_python_calls.py tests calls in Python, which are whole answers.
STYLES = {name: row for name, row in ALL.items() if row.parameters != "python"}


def cut_off(text: str, stops: list[str], keep: bool) -> tuple[str, str | None]:
    """Returns the expected output of a stream: the text before the stop string that is complete first, and
    that stop string."""
    data = text.encode()
    for end in range(1, len(data) + 1):
        ending = [s for s in stops if data[:end].endswith(s.encode())]
        if ending:
            longest = max(ending, key=lambda s: len(s.encode()))
            at = end if keep else end - len(longest.encode())
            return data[:at].decode("utf-8", "replace"), longest
    return text, None


@pytest.mark.parametrize("seed", range(300))
def test_stop_strings_wherever_tokens_end(seed: int) -> None:
    chance = random.Random(seed)
    alphabet = chance.choice(["ab", "abc", "aé", "ab\n", "🙂a"])
    text = "".join(chance.choices(alphabet, k=chance.randint(0, 30)))
    stops = ["".join(chance.choices(alphabet, k=chance.randint(1, 4))) for _ in range(chance.randint(0, 3))]
    keep = chance.random() < 0.3
    stream, shown, data = TextStream(stops, keep), "", text.encode()
    wanted, stop = cut_off(text, stops, keep)
    at = 0
    while at < len(data) and stream.stopped_by is None:
        size = chance.randint(1, 5)
        shown += stream.feed(data[at : at + size])
        at += size
        assert wanted.startswith(shown), "what was shown would have to be taken back"
    if stream.stopped_by is None:
        shown += stream.finish()
    assert (shown, stream.stopped_by) == (wanted, stop)


def test_broken_utf8_is_replaced_at_the_end_alone() -> None:
    stream = TextStream()
    assert stream.feed(b"\xf0\x9f\x99") == ""
    assert stream.feed(b"\x82") == "🙂"
    assert stream.feed(b"\xc3") + stream.finish() == "�"


# ---- tool calls ----


def accepts(name: str, text: str) -> bool:
    import jsonschema

    return jsonschema.Draft202012Validator(SCHEMA).is_valid(json.loads(text))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("seed", range(12))
def test_calls_are_read_back(style: str, seed: int) -> None:
    chance = random.Random(f"{style} {seed}")
    names = ["weather", "time", "weather_now"]
    calls = [(chance.choice(names), chance.choice(ARGUMENTS)) for _ in range(chance.randint(1, 3))]
    if style == "minimax-m3":  # this style writes an empty list and an empty text alike
        calls = [(name, {k: v for k, v in a.items() if k != "deep"}) for name, a in calls]
    before = chance.choice(["", "Let me see: <tool <|x [TOOL {\n"][: 2 - STYLES[style].whole])
    text = before + written(style, calls)
    reader = CallReader(style, names, accepts)
    items: list = []
    at = 0
    while at < len(text):
        size = chance.choice([1, 2, 7, 30])
        items += reader.feed(text[at : at + size])
        at += size
    items += reader.finish()
    found = [item for item in items if isinstance(item, Call)]
    assert [(c.name, json.loads(c.arguments)) for c in found] == calls
    assert "".join(item for item in items if isinstance(item, str)).strip() == before.strip()


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("seed", range(8))
def test_calls_that_are_told_as_they_grow(style: str, seed: int) -> None:
    """A stream of a call sends its arguments in parts. Wherever the text is cut, the parts join to the
    arguments, and arguments in JSON are sent without delay."""
    chance = random.Random(f"growing {style} {seed}")
    names = ["weather", "time", "weather_now"]
    calls = [(chance.choice(names), chance.choice(ARGUMENTS)) for _ in range(chance.randint(1, 3))]
    if style == "minimax-m3":
        calls = [(name, {k: v for k, v in a.items() if k != "deep"}) for name, a in calls]
    before = chance.choice(["", "Let me see: <tool <|x [TOOL {\n"][: 2 - STYLES[style].whole])
    text = before + written(style, calls)
    whole = CallReader(style, names, accepts)
    plain = [item for item in [*whole.feed(text), *whole.finish()] if isinstance(item, Call)]
    inside = [False] * len(text)  # whether a character belongs to a call's arguments
    at = len(before) + len(STYLES[style].open)
    for number, (name, arguments) in enumerate(calls):
        body = json.dumps(arguments)
        at += len(STYLES[style].begin.replace("{name}", name).replace("{index}", str(number)))
        inside[at : at + len(body)] = [True] * len(body)
        at += len(body) + len(STYLES[style].end) + len(STYLES[style].separator)
    reader = CallReader(style, names, accepts, stream=True)
    items: list = []
    at = 0
    while at < len(text):
        size = chance.choice([1, 1, 2, 7, 30])
        items += reader.feed(text[at : at + size])
        at += size
        if STYLES[style].parameters == "json":
            # The parts hold everything that was read of the arguments.
            told = "".join(item.text for item in items if isinstance(item, Part))
            assert told == "".join(c for i, c in enumerate(text[:at]) if inside[i])
    items += reader.finish()
    assert [item for item in items if isinstance(item, Call)] == plain
    assert [(c.name, json.loads(c.arguments)) for c in plain] == calls
    assert "".join(item for item in items if isinstance(item, str)).strip() == before.strip()
    growing: list | None = None
    for item in items:
        if isinstance(item, Begun):
            assert growing is None
            growing = [item.name, ""]
        elif isinstance(item, Part):
            assert growing is not None
            growing[1] += item.text
        elif isinstance(item, Call) and STYLES[style].parameters == "json":
            assert growing == [item.name, item.arguments]
            growing = None
    assert growing is None


@pytest.mark.parametrize("style", [name for name, row in STYLES.items() if row.parameters == "json"])
def test_what_was_told_of_a_call_that_is_cut_off(style: str) -> None:
    arguments = {"city": 'a "}" {', "days": 3}
    text = written(style, [("weather", arguments)])
    start = text.index(json.dumps(arguments))
    stop = start + len(json.dumps(arguments))
    for end in range(len(text)):
        reader = CallReader(style, ["weather"], accepts, stream=True)
        items = [*reader.feed(text[:end]), *reader.finish()]
        parts = "".join(item.text for item in items if isinstance(item, Part))
        if end > start:
            assert items[0] == Begun("weather") and parts == text[start : min(end, stop)]
            assert (Call("weather", parts) in items) == (end >= stop)
        else:
            assert not parts and all(isinstance(item, str) for item in items)


@pytest.mark.parametrize("style", STYLES)
def test_a_call_that_is_cut_off_stays_text(style: str) -> None:
    whole = written(style, [("weather", {"city": "Rome"})])
    for end in range(len(whole)):
        reader = CallReader(style, ["weather"], accepts)
        items = [*reader.feed(whole[:end]), *reader.finish()]
        calls = [item for item in items if isinstance(item, Call)]
        if not calls:
            assert "".join(items).strip() in whole
        else:
            assert json.loads(calls[0].arguments) == {"city": "Rome"}


def test_arguments_alone() -> None:
    """The answer has only the arguments of the one function. A text that is cut off is reported as in other
    styles."""
    text = json.dumps({"city": 'a "}" {', "days": [{}]})
    for size in (1, 3, len(text)):
        reader = CallReader(ALONE, ["weather"], accepts, stream=True)
        items = [item for i in range(0, len(text), size) for item in reader.feed(text[i : i + size])]
        items += reader.finish()
        assert items[0] == Begun("weather") and items[-1] == Call("weather", text)
        assert "".join(item.text for item in items if isinstance(item, Part)) == text
    for end in range(len(text) + 1):
        reader = CallReader(ALONE, ["weather"], accepts)
        items = [*reader.feed(text[:end]), *reader.finish()]
        assert items == ([Call("weather", text)] if end == len(text) else [text[:end]] if end else [])


def test_free_text_streams_up_to_a_mark() -> None:
    reader = CallReader("hermes", ["f"], accepts)
    assert list(reader.feed("see <b>")) == ["see <b>"]
    assert list(reader.feed(" <tool_")) == [" "]
    assert list(reader.feed("box>")) == ["<tool_box>"]


@pytest.mark.parametrize(
    ("template", "style"),
    [
        (None, "hermes"),
        ("... <tool_call>\n{...", "hermes"),
        ("<tool_call>\n<function=x>", "qwen3-coder"),
        ("[TOOL_CALLS] [ARGS]", "mistral-v11"),
        ("[TOOL_CALLS] [", "mistral"),
        ("<｜tool▁calls▁begin｜> ```json", "deepseek-v3"),
        ("<｜tool▁calls▁begin｜>", "deepseek-v3.1"),
        ("<|python_tag|>", "llama3"),
        ("<tool_call>{name}<arg_key>", "glm"),
        ("<arg_key>{k}</arg_key><arg_value>{v}", "glm-4.7"),
        ("<|tool_call>call:{name}", "gemma-4"),
        ("<|tool_call|>[", "granite"),
        ("<｜DSML｜tool_calls>", "deepseek-v4"),
        ("<｜DSML｜function_calls>", "deepseek-v3.2"),
        ("<tool_calls>[{", "hunyuan"),
        ("<|tool_call_start|>[", "lfm2"),
    ],
)
def test_the_style_by_the_chat_template(template: str | None, style: str) -> None:
    assert style_of_template(template) == style
