"""The examples of the playground: schemas of `examples/`, some more, the grammar library.

Enters: nothing. Leaves: a list of examples. Cost: some thirty small files, read once.

The folder stands at the top of the repository; pyproject.toml maps it into wheels as ``structgen/examples``.
"""

from __future__ import annotations

import importlib.resources
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import library

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_PROMPT = "Ana ordered 2 lamps, ship to Porto"
_DOCUMENTS = {
    "order": '{\n  "customer": "Maria Lopez",\n  "items": [\n    {"product": "chairs", "quantity": "three"}\n'
    '  ],\n  "city": "Lisbon",\n  "date": "2027-03-05",\n  "express": false\n}',
    "event": '{"title": "Budget", "date": "2026-02-30", "time": "15:00", "place": null, "guests": []}',
    "person": '{"name": "Ada Lindqvist", "age": 34, "job": null, "city": "Bergen", "email": "ada.l@"}',
}
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "date": {"type": ["string", "null"], "format": "date"},
                },
                "required": ["city", "date"],
                "additionalProperties": False,
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "set_timer",
            "parameters": {
                "type": "object",
                "properties": {"minutes": {"type": "integer"}},
                "required": ["minutes"],
                "additionalProperties": False,
            },
        },
    },
]
_EXPRESSION = """root ::= sum
sum  ::= term (("+" | "-") term)*
term ::= number | "(" sum ")"
number ::= [1-9] [0-9]{0,2}
"""
_LIMITS = {
    "type": "object",
    "properties": {
        "customer": {"type": "string", "maxLength": 8},
        "quantity": {"type": "integer", "minimum": 10},
        "city": {"enum": ["Porto", "Leiria", "Faro"]},
        "date": {"type": "string", "format": "date"},
    },
    "required": ["customer", "quantity", "city", "date"],
    "additionalProperties": False,
}
_WRITTEN: list[dict[str, Any]] = [
    {
        "name": "Limits against the model's will",
        "kind": "schema",
        "text": json.dumps(_LIMITS, indent=2),
        "prompt": "Maria Lopez ordered 3 oak chairs, ship to Lisbon by 5 March 2027",
        "document": '{"customer": "Maria Lopez", "quantity": 12, "city": "Porto", "date": "2027-03-05"}',
        "max_tokens": 64,
    },
    {
        "name": "Date (regex)",
        "kind": "regex",
        "text": r"(?P<year>20\d\d)-(?P<month>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01])",
        "prompt": "Schedule a budget meeting on 12 June 2026 at 3 pm with Ana, Tom and Lucy",
        "document": "2026-13-01",
        "max_tokens": 24,
    },
    {
        "name": "Sums in brackets (GBNF)",
        "kind": "grammar",
        "text": _EXPRESSION,
        "prompt": "Start a timer for 12 minutes",
        "document": "(1+20)-(3+",
        "temperature": 1.0,
        "max_tokens": 40,
    },
    {
        "name": "Tool calls",
        "kind": "tools",
        "text": json.dumps(_TOOLS, indent=2),
        "tool_choice": "required",
        "prompt": "How is the weather in Porto on 2026-07-14?",
        "document": '{"name":"get_weather","arguments":{"city":7',
    },
    {
        "name": "The model's own distribution (cars)",
        "kind": "schema",
        "text": json.dumps(
            {
                "type": "object",
                "properties": {
                    "customer": {"type": "string"},
                    "city": {"enum": ["Porto", "Lisbon", "Rome", None]},
                },
                "required": ["customer", "city"],
                "additionalProperties": False,
            },
            indent=2,
        ),
        "prompt": "Ana or Tom, two lamps, to Porto or Rome",
        "document": '{"customer":"Ana","city":"Oslo"}',
        "method": "cars",
        "temperature": 1.0,
        "n": 40,
        "max_tokens": 48,
    },
]


@cache
def folder() -> Traversable:
    """The folder `examples/`: in the package, else in the checkout."""
    packaged: Traversable = importlib.resources.files("structgen") / "examples"
    return packaged if packaged.is_dir() else Path(__file__).resolve().parents[2] / "examples"


@cache
def examples() -> list[dict[str, Any]]:
    """Each has `name`, `group`, `kind`, `text`, `prompt`, `document`, and settings where they matter.

    The page begins with the first, and generates from it.
    """
    first, *more = _WRITTEN
    return [
        {"group": "What this is about", **first},
        *_schemas(),
        *({"group": "More", **one} for one in more),
        *_library(),
    ]


def _schemas() -> list[dict[str, Any]]:
    lines = (folder() / "requests.jsonl").read_text("utf-8").splitlines()
    prompts: dict[str, str] = {}
    for line in lines:
        request = json.loads(line)
        prompts.setdefault(request["schema"], request["prompt"])
    found = []
    for file, prompt in prompts.items():
        name = file.partition(".")[0]
        text = (folder() / file).read_text("utf-8").rstrip()
        found.append(
            {
                "name": name.capitalize(),
                "group": "Schemas of examples/",
                "kind": "schema",
                "text": text,
                "prompt": prompt,
                "document": _DOCUMENTS.get(name, "{"),
            }
        )
    # The speculation is worth seeing where most of the text is known beforehand.
    return [*found, {**found[0], "name": "Order, several tokens a forward", "speculate": True}]


def _library() -> list[dict[str, Any]]:
    found = []
    for name in library.names():
        grammar = library.load(name)
        documents = [text for text in grammar.rejected if text]
        found.append(
            {
                "name": name.replace("_", " "),
                "group": "Grammar library",
                "kind": "grammar",
                "about": grammar.about,
                "text": grammar.text,
                "prompt": _PROMPT,
                "document": documents[0],
                "temperature": 1.0,
                "max_tokens": 60,
            }
        )
    return found
