"""Texts with one tool call, drawn from structgen's grammar of a style. The tests compare hosts' parsers on
them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import structgen as sg

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Rome", "New York", "Sao Paulo"]},
        "days": {"type": "integer", "enum": [1, 2, 30]},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
AT = {
    "type": "object",
    "properties": {"lat": {"enum": [1.5, -2]}, "label": {"enum": ["north, }east", "5x"]}},
    "required": ["lat", "label"],
    "additionalProperties": False,
}
TAGS = {"type": "array", "items": {"enum": ["a b", "x"]}, "minItems": 1, "maxItems": 2}
MORE = {"hot": {"type": "boolean"}, "tags": TAGS, "at": AT}
NESTED = {**SCHEMA, "properties": {**SCHEMA["properties"], **MORE}}  # type: ignore[dict-item]


def tools(schema: dict[str, Any]) -> list[dict[str, Any]]:
    names = ("weather", "time_in", "lookup")
    return [{"type": "function", "function": {"name": name, "parameters": schema}} for name in names]


TOOLS = tools(SCHEMA)


def drawn(
    style: str, count: int = 10, tools: list[dict[str, Any]] = TOOLS
) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Yields texts and the calls that structgen's reader finds in each. Blanks stand only where the grammar
    requires one."""
    compiler = sg.Compiler(sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], 256))
    grammar = compiler.tools(tools, "required", style=style, parallel=False)
    chance = random.Random(style)
    for _ in range(count):
        matcher, text = grammar.matcher(), b""
        while not (matcher.is_accepting() and chance.random() < 0.5) and len(text) < 2000:
            live = matcher.live_bytes()
            if not live:
                break
            byte = bytes([chance.choice([b for b in live if b not in b" \n\r\t"] or list(live))])
            assert matcher.accept_bytes(byte)
            text += byte
        written = text.decode()
        calls = sg.parse_tool_calls(written, style=style, tools=tools).calls
        assert len(calls) == 1, written
        yield written, [(call.name, call.arguments) for call in calls]
