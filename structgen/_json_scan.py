"""The brackets, keys and scalars of a JSON text, each with its place; the text may break off anywhere.

Enters: a text. Leaves: `JsonSpan`s in their order, and the path of the value at hand. Cost: linear in the
text, and no recursion: a text may nest as deeply as it likes.

`explain`, the editors' places, `sg.edit` and streams of values read JSON with this one scanner. It checks no
more than it needs to go on: whoever asks for valid JSON parses the text as well. Example: `{"a": [1, tr` is

    open {   path []          key "a"   path ["a"]       open [   path ["a"]
    value 1  path ["a", 0]    value tr  path ["a", 1], not whole

Two readers of JSON do not use it. `frontend.tool_calls` looks for the end of one object in pieces of a text,
and `drafters.schema_order` keeps a state for each branch of a draft tree, which a loop over one text has not.
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

    `text` is the bracket; the characters that a key or a string stands for; else the word as it is. `whole`
    is False where the text breaks off: in a key or a string, whose `text` is then what stands behind the
    quote, and behind a number or a word, because more digits may follow.
    """

    kind: Literal["open", "close", "key", "string", "word"]
    begin: int
    end: int
    text: str
    whole: bool = True


class Scan:
    """One pass over a text.

    Attributes:
        path: keys and indices of the value at hand: of the container that opens or closes, of a key's member,
            of a scalar. Behind the last part it is that of what comes next, where the last element is None if
            that is a key.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.path: list[str | int | None] = []

    def __iter__(self) -> Iterator[JsonSpan]:
        """Ends with the text, and where no JSON can go on."""
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
