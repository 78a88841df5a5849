"""The library of grammars: real languages under ``grammars/``, each with accepted and rejected texts.

In: a name. Out: its text, its cases. Cost: reading a small file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from .errors import GrammarError

_FOLDER = Path(__file__).parent / "grammars"


@dataclass(frozen=True, slots=True)
class LibraryGrammar:
    """`text` is GBNF or Lark; `about` its first comment; `accepted` and `rejected` are example texts."""

    name: str
    dialect: str
    about: str
    text: str
    accepted: tuple[str, ...]
    rejected: tuple[str, ...]


def names() -> list[str]:
    """Every grammar of the library."""
    return sorted(p.stem for p in _FOLDER.iterdir() if p.suffix in (".lark", ".gbnf"))


def load(name: str) -> LibraryGrammar:
    """GrammarError: there is no such grammar."""
    for dialect in ("lark", "gbnf"):
        path = _FOLDER / f"{name}.{dialect}"
        if name in names() and path.is_file():
            text = path.read_text(encoding="utf-8")
            cases = json.loads((_FOLDER / f"{name}.cases.json").read_text(encoding="utf-8"))
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
