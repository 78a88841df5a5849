"""Reads the brackets, keys and scalars of a JSON text with their places. The text may break off anywhere.

Enters: a text. Leaves: `JsonSpan`s in their order, and the path of the value at hand. Cost: linear in the
text, and no recursion: a text may nest as deeply as it likes.

`explain`, the editors' places, `sg.edit` and streams of values read JSON with this one scanner. It checks no
more than it needs to go on: whoever asks for valid JSON parses the text as well. Example: `{"a": [1, tr` is

    open {   path []          key "a"   path ["a"]       open [   path ["a"]
    value 1  path ["a", 0]    value tr  path ["a", 1], not whole

Two readers of JSON do not use this scanner. `frontend.tool_calls` looks for the end of one object in pieces
of a text. `drafters.schema_order` keeps a reader's state for each branch of a draft tree; a loop over one
text has only one state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Literal, NamedTuple

_BLANKS = re.compile(r"[ \t\n\r:]*")
_SCALAR = re.compile(r"-?[0-9.eE+-]+|[A-Za-z]+|-")


def no_constant(name: str) -> None:
    """Refuses the words that Python reads and JSON lacks: `json.loads(text, parse_constant=no_constant)`."""
    raise ValueError(f"{name} is no JSON value")


class JsonSpan(NamedTuple):
    """A bracket, a key, or a value that is no container: the characters from `begin` to `end`.

    `text` is the bracket itself, the decoded characters of a key or a string, or the word of another scalar
    as written. `whole` is False if the text breaks off inside the key or string; `text` then has the
    characters behind the quote. `whole` is also False for a number or a word at the end of the text,
    because more characters may follow.
    """

    kind: Literal["open", "close", "key", "string", "word"]
    begin: int
    end: int
    text: str
    whole: bool = True


class Scan:
    """One pass over a text.

    Attributes:
        path: the keys and indices of the current value: of the container that opens or closes, of the member
            that a key begins, or of a scalar. At the end of the text it is the path of what comes next. Its
            last element is None if a key comes next.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.path: list[str | int | None] = []

    def __iter__(self) -> Iterator[JsonSpan]:
        """Yields the spans. It stops at the end of the text, or where the text is no beginning of JSON."""
        text, path, at = self.text, self.path, 0
        while (at := _BLANKS.match(text, at).end()) < len(text):  # type: ignore[union-attr]
            begin, char = at, text[at]
            at += 1
            if char == ",":
                if path:
                    last = path[-1]
                    path[-1] = last + 1 if isinstance(last, int) else None
            elif char in "{[":
                yield JsonSpan("open", begin, at, char)
                path.append(None if char == "{" else 0)
            elif char in "}]":
                if not path:
                    return
                path.pop()
                yield JsonSpan("close", begin, at, char)
            elif char == '"':
                is_key = bool(path) and path[-1] is None
                try:
                    found, at = scanstring(text, at, False)
                    whole = True
                except ValueError:
                    found, at, whole = text[at:], len(text), False
                if is_key:
                    path[-1] = found
                yield JsonSpan("key" if is_key else "string", begin, at, found, whole)
            else:
                match = _SCALAR.match(text, begin)
                if match is None or (path and path[-1] is None):
                    return
                at = match.end()
                yield JsonSpan("word", begin, at, match.group(), at < len(text))
