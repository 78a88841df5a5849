"""The library of grammars: real languages under ``grammars/``, each with accepted and rejected texts.

In: a name. Out: its text, its cases. Cost: reading a small file.

The folder stands at the top of the repository; pyproject.toml maps it into wheels as ``structgen/grammars``.
In an editable install and without an install it is read where it stands.
"""

from __future__ import annotations

import importlib.resources
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import GrammarError, StructgenError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


@dataclass(frozen=True, slots=True)
class LibraryGrammar:
    """`text` is GBNF or Lark, `about` is its first comment. `accepted` and `rejected` are example texts."""

    name: str
    dialect: str
    about: str
    text: str
    accepted: tuple[str, ...]
    rejected: tuple[str, ...]


@cache
def folder() -> Traversable:
    """Returns the folder of the grammars: in the package, else in the checkout. StructgenError: neither has
    one."""
    checkout: Traversable = Path(__file__).resolve().parents[1] / "grammars"
    for place in (importlib.resources.files("structgen") / "grammars", checkout):
        if place.is_dir():
            return place
    raise StructgenError("the library of grammars is missing from the package: install structgen-engine anew")


def names() -> list[str]:
    """Returns every grammar of the library."""
    found = (entry.name.rpartition(".") for entry in folder().iterdir())
    return sorted(stem for stem, _, ending in found if ending in ("lark", "gbnf"))


def load(name: str) -> LibraryGrammar:
    """Returns the grammar of that name, with its cases.

    Raises:
        GrammarError: the library has no grammar of that name.
    """
    for dialect in ("lark", "gbnf"):
        path = folder() / f"{name}.{dialect}"
        if name in names() and path.is_file():
            text = path.read_text(encoding="utf-8")
            cases = json.loads((folder() / f"{name}.cases.json").read_text(encoding="utf-8"))
            comment = []
            for line in text.splitlines():
                if not line.startswith(("#", "//")):
                    break
                comment.append(line.lstrip("#/ "))
            about = " ".join(comment)
            return LibraryGrammar(
                name, dialect, about, text, tuple(cases["accepted"]), tuple(cases["rejected"])
            )
    from .frontend.source import meant

    raise GrammarError(
        f"the library has no grammar '{name}'{meant(name, names())}; it has {', '.join(names())}"
    )
