"""Texts with one tool call, drawn from our grammar of a style, for comparisons with the hosts' readers."""

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
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": name, "parameters": SCHEMA}}
    for name in ("weather", "time_in", "lookup")
]


def drawn(style: str, count: int = 10) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Texts and what our own reader finds in them. Blanks are written only where nothing else may stand."""
    compiler = sg.Compiler(sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], 256))
    grammar = compiler.tools(TOOLS, "required", style=style, parallel=False)
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
        calls = sg.parse_tool_calls(written, style=style, tools=TOOLS).calls
        assert len(calls) == 1, written
        yield written, [(call.name, call.arguments) for call in calls]
