"""Places in a text as an editor marks them.

Enters: an error of the engine with its place, and the text that a person typed. Leaves: `TextPlace`: line and
column from 1, and the span in UTF-16 units, which is how browsers count. Cost: one pass over the text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from .._json_scan import Scan
from .._pointers import pointer_of

if TYPE_CHECKING:
    from ..explain import Cause
    from .errors import ApiError

_MOST = 4 << 20  # the most characters of a JSON text in which places are looked up


@dataclass(frozen=True, slots=True)
class TextPlace:
    """`start` and `end` count UTF-16 units; `line` and `column` count from 1, in characters."""

    line: int
    column: int
    start: int
    end: int

    def told(self) -> dict[str, int]:
        return asdict(self)


def at(text: str, start: int, end: int | None = None) -> TextPlace:
    """Returns the place of a span of characters; by default one character, or an empty span at the end."""
    end = min(len(text), start + 1) if end is None else end
    line = text.count("\n", 0, start) + 1
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    return TextPlace(line, column, _units(text[:start]), _units(text[:end]))


def at_bytes(text: str, offset: int) -> TextPlace:
    """Returns the place of the character at a byte offset of the text's UTF-8 form."""
    return at(text, len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore")))


class Pointers:
    """The places of a JSON text by pointer. A text that is no JSON, or too large, has none."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[str, tuple[int, int]] = {}
        if len(text) <= _MOST:
            self._found = _spans(text)

    def place(self, pointer: str, keyword: str = "") -> TextPlace | None:
        """Returns the key that a JSON pointer leads to, or the keyword below it.

        A pointer into an array leads to the item. A pointer that goes further than the text leads to the last
        part that exists.
        """
        if keyword and (below := pointer + pointer_of((keyword,))) in self._found:
            pointer = below
        while pointer and pointer not in self._found:
            pointer = pointer.rpartition("/")[0]
        span = self._found.get(pointer)
        return None if span is None else at(self._text, *span)

    def below(self, ends: str) -> TextPlace | None:
        """Returns the first key whose pointer ends with `ends`. The pointer leads from a schema somewhere in
        the text."""
        span = next((span for pointer, span in self._found.items() if pointer.endswith(ends)), None)
        return None if span is None else at(self._text, *span)

    def told(self, pointer: str, keyword: str = "") -> dict[str, int] | None:
        place = self.place(pointer, keyword)
        return None if place is None else place.told()

    def causes(self, causes: Iterable[Cause]) -> list[dict[str, Any]]:
        """Returns the causes of an explanation as JSON, each with its place."""
        return [
            {
                "pointer": cause.pointer,
                "keyword": cause.keyword,
                "message": cause.message,
                "place": self.told(cause.pointer),
                "branches": [self.causes(branch) for branch in cause.branches],
            }
            for cause in causes
        ]


def of_error(error: ApiError, text: str) -> TextPlace | None:
    """Returns where in a constraint's text an error points: by line and column, by pointer, or by byte."""
    found = error.details
    line, offset, pointer = found.get("line"), found.get("offset"), found.get("pointer")
    if line is not None:
        lines = text.split("\n")
        if 1 <= line <= len(lines):
            start = sum(len(one) + 1 for one in lines[: line - 1]) + (found.get("column") or 1) - 1
            return at(text, min(start, len(text)))
    if pointer is not None:  # an offset beside a pointer counts in a pattern of the schema
        return Pointers(text).place(pointer, found.get("keyword") or "")
    return None if offset is None else at_bytes(text, offset)


def _units(text: str) -> int:
    return len(text) + sum(1 for c in text if ord(c) > 0xFFFF)


def _spans(text: str) -> dict[str, tuple[int, int]]:
    """Returns a dict of pointer -> the span of the member's key, or of the item's first part."""
    found: dict[str, tuple[int, int]] = {}
    scan = Scan(text)
    for part in scan:
        if part.kind != "close" and None not in scan.path[-1:]:
            pointer = pointer_of(scan.path)
            if part.kind == "key" or not (scan.path and isinstance(scan.path[-1], str)):
                found[pointer] = (part.begin, part.end)
    return found
