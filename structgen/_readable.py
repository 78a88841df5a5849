"""Shows bytes and places of a text to people, and says in words what a matcher allows next.

In: bytes, offsets, a matcher. Out: short strings. Cost: a few steps of the matcher for each of at most a
dozen continuations.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .matcher import Matcher

_SHOWN = 60  # characters of the text before and after a place
_CHOICES = 12  # continuations that are spelled out before ranges of bytes take over
_SPELLED = 40  # bytes of one continuation


def visible(data: bytes) -> str:
    """Returns bytes as one line of text. Control characters and bytes outside UTF-8 are escaped."""
    text = data.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def table_html(title: str, text: str, rows: Mapping[str, str]) -> str:
    """Returns the HTML of an object in a notebook: a title, a preformatted text, and a table of names and
    values."""
    cells = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th>'
        f'<td style="text-align:left"><code>{html.escape(value)}</code></td></tr>'
        for name, value in rows.items()
    )
    shown = f'<pre style="white-space:pre-wrap">{html.escape(text)}</pre>' if text else ""
    return f"<div><b>{html.escape(title)}</b>{shown}<table>{cells}</table></div>"


def quoted(data: bytes) -> str:
    """Returns a text in back quotes for a list. JSON's own quotes stay readable in them."""
    return f"`{visible(data)}`"


@dataclass(frozen=True, slots=True)
class Place:
    """A byte offset of a text as people count: line and column from 1, and what stands around it."""

    offset: int
    line: int
    column: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column} (byte {self.offset})"


def place(data: bytes, offset: int) -> Place:
    start = data.rfind(b"\n", 0, offset) + 1
    # A place inside a character counts as that character's column.
    column = len(data[start:offset].decode("utf-8", "ignore")) + 1
    before = visible(data[max(0, offset - 4 * _SHOWN) : offset].lstrip(bytes(range(0x80, 0xC0))))
    after = visible(data[offset : offset + 4 * _SHOWN])
    if len(before) > _SHOWN or offset > 4 * _SHOWN:
        before = "..." + before[-_SHOWN:]
    if len(after) > _SHOWN or offset + 4 * _SHOWN < len(data):
        after = after[:_SHOWN] + "..."
    return Place(offset, data.count(b"\n", 0, offset) + 1, column, before, after)


def allowed_here(matcher: Matcher) -> str:
    """Returns the bytes that may come next, for people: continuations if they are few, ranges of bytes if
    they are many."""
    live = matcher.live_bytes()
    blanks = bytes(b for b in live if b in b" \t\n\r")
    others = bytes(b for b in live if b not in b" \t\n\r")
    parts = ["the end of the text"] if matcher.is_accepting() else []
    if len(others) <= _CHOICES:
        spelled = spellings(matcher, _plain(others))
        parts += [quoted(text) for text in spelled if len(text) > 1]
        parts += ranges(text[0] for text in spelled if len(text) == 1)
    else:
        parts += ranges(others)
    if blanks:
        parts.append("whitespace" if parts else f"whitespace ({visible(blanks)})")
    return ", ".join(parts) if parts else "nothing"


def spellings(matcher: Matcher, first: bytes) -> list[bytes]:
    """Returns each first byte with the text that must follow it. If few bytes may follow an opening quote,
    each of them is shown behind the quote.

    A character of a string can also be written as an escape. The escape is not shown as a choice.
    """
    found: list[bytes] = []
    for byte in first:
        ahead = matcher.fork()
        ahead.accept_bytes(bytes([byte]))
        text = bytes([byte]) + _forced(ahead)
        live = _plain(ahead.live_bytes())
        opens = bool(live.strip(b" \t\n\r,:]}"))  # a string, not the end of one
        if text == b'"' and opens and len(live) <= _CHOICES:
            found += [b'"' + rest for rest in spellings(ahead, live)]
        else:
            found.append(text)
    return found


def _plain(live: bytes) -> bytes:
    return live.replace(b"\\", b"") or live


def _forced(matcher: Matcher) -> bytes:
    """Moves the matcher over the text that must come next, and returns that text. Escapes do not count."""
    text = b""
    while not matcher.is_accepting() and len(text) < _SPELLED:
        live = _plain(matcher.live_bytes())
        if len(live) != 1:
            return text
        matcher.accept_bytes(live)
        text += live
    return text if len(text) < _SPELLED else text + b"..."


def ranges(values: Iterable[int]) -> list[str]:
    """`0`-`9`, `a`-`z`, and bytes that are no ASCII text as 0x80-0xFF."""
    found: list[tuple[int, int]] = []
    for value in sorted(values):
        if found and found[-1][1] == value - 1 and _kind(value) == _kind(found[-1][0]):
            found[-1] = (found[-1][0], value)
        else:
            found.append((value, value))
    parts = []
    for low, high in found:
        ends = [_name(low)] if low == high else [_name(low), _name(high)]
        parts += ends if high == low + 1 else ["-".join(ends)]
    return parts


def _kind(byte: int) -> int:
    return 0 if byte < 0x20 or byte == 0x7F else 1 if byte < 0x80 else 2


def _name(byte: int) -> str:
    return f"`{chr(byte)}`" if _kind(byte) == 1 else f"0x{byte:02X}"
