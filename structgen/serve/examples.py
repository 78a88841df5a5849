"""The examples of the playground: the schemas of `examples/`, some further examples, and the grammar library.

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


@cache
def folder() -> Traversable:
    """Returns the folder `examples/`: in the package, else in the checkout."""
    packaged: Traversable = importlib.resources.files("structgen") / "examples"
    return packaged if packaged.is_dir() else Path(__file__).resolve().parents[2] / "examples"


@cache
def examples() -> list[dict[str, Any]]:
    """Returns the examples.

    Each has `name`, `group`, `kind`, `text`, `prompt`, `document`, and settings where they matter. The page
    begins with the first example, and generates from it.
    """
    written: dict[str, Any] = json.loads((folder() / "server" / "playground.json").read_text("utf-8"))
    for one in written["examples"]:
        if not isinstance(one["text"], str):
            one["text"] = json.dumps(one["text"], indent=2)
    first, *more = written["examples"]
    return [
        {"group": "What this is about", **first},
        *_schemas(written["documents"]),
        *({"group": "More", **one} for one in more),
        *_library(written["prompt of grammars"]),
    ]


def _schemas(documents: dict[str, str]) -> list[dict[str, Any]]:
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
                "document": documents.get(name, "{"),
            }
        )
    # Speculation gains most for an answer whose text is mostly forced.
    return [*found, {**found[0], "name": "Order, several tokens a forward", "speculate": True}]


def _library(prompt: str) -> list[dict[str, Any]]:
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
                "prompt": prompt,
                "document": documents[0],
                "temperature": 1.0,
                "max_tokens": 60,
            }
        )
    return found
