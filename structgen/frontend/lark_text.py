"""The extensions of Lark's grammar language, found in the text and put out of Lark's way.

In: a grammar's text. Out: text that Lark's own loader reads, in which every extension is a string literal of
private characters; what the literals stand for; attributes of rules; a map back to the places in the text.
Cost: linear in the text.

    %json {...}  %regex {...}  %lark {...}   a schema, a span of a text, a grammar inside the grammar
    <|name|>  <[12,15-18]>                   tokens that are no text
    A & B   ~A                               terminals: both, anything but; ``&`` binds closer than ``|``
    a{2} a{2,} a{2,5}                        repetition, besides Lark's own ``~``
    name[lazy, capture="x", stop="\\n"]: ...  attributes
"""

from __future__ import annotations

import bisect
import json
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

from . import source

_OPEN, _CLOSE = "\ue000", "\ue001"
PLACEHOLDER = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_PART = re.compile(
    r"""(?P<comment>//[^\n]*|\#[^\n]*)
    |(?P<string>"(?:\\.|[^"\\\n])*"i?)
    |(?P<regexp>/(?!/)(?:\\/|\\\\|[^/])*?/[imslux]*)
    |(?P<percent>%(?:json|regex|lark|llguidance)\b)
    |(?P<ids><\[[^\]\n]*\]>)
    |(?P<token><[^<>\s"]+>)
    |(?P<both>&)
    |(?P<negate>~(?!\s*[+\-]?\d))
    |(?P<count>\{\s*\d*\s*(?:,\s*\d*\s*)?\})
    |(?P<reference>@[\w./\-]+)
    |(?P<line>\n)""",
    re.VERBOSE,
)
_HEAD = re.compile(r"[ \t]*[?!]{0,2}(_?[a-z][_a-z0-9]*)(?:\.[+\-]?\d+)?(?P<open>[ \t]*\[)")
_ATTRIBUTE = re.compile(
    r"""\s*(?P<name>[a-z_]+)\s*(?:=\s*(?:(?P<string>"(?:\\.|[^"\\\n])*"i?)|(?P<regexp>/(?!/)(?:\\/|\\\\|[^/])*?/[imslux]*)
    |(?P<number>[+\-]?[0-9.]+)|(?P<token><[^<>\s"]+>)))?\s*(?P<end>[,\]])""",
    re.VERBOSE,
)
_KNOWN = ("lazy", "capture", "stop", "suffix", "stop_capture", "max_tokens", "temperature")


@dataclass(frozen=True, slots=True)
class Extension:
    kind: str  # json, regex, lark, token, ids, both, negate, count
    value: Any
    at: int  # where in the text


@dataclass(slots=True)
class Scanned:
    """The text for Lark, and what was taken out of it."""

    original: str
    text: str = ""
    extensions: list[Extension] = field(default_factory=list)
    # by rule, by name: kind of value, its text, its place
    attributes: dict[str, dict[str, tuple[str, str, int]]] = field(default_factory=dict)
    _starts: list[int] = field(default_factory=list)  # in `text`
    _places: list[int] = field(default_factory=list)  # in `original`

    def place(self, at: int) -> int:
        """The offset in the original text of an offset in the new one."""
        i = bisect.bisect_right(self._starts, at) - 1
        if i < 0:
            return 0
        return min(self._places[i] + at - self._starts[i], len(self.original))

    def fail(self, message: str, at: int) -> NoReturn:
        source.fail(message, self.original, at)


def scan(text: str) -> Scanned:
    """Raises GrammarError for an extension that is not well-formed."""
    found = Scanned(text)
    if _OPEN in text or _CLOSE in text:
        at = min(i for i in (text.find(_OPEN), text.find(_CLOSE)) if i >= 0)
        source.fail("the private characters U+E000 and U+E001 cannot be used; write \\ue000", text, at)
    out: list[str] = []
    size = at = 0

    def put(piece: str, where: int) -> None:
        nonlocal size
        found._starts.append(size)
        found._places.append(where)
        out.append(piece)
        size += len(piece)

    def extend(kind: str, value: Any, where: int) -> None:
        put(f' "{_OPEN}{len(found.extensions)}{_CLOSE}" ', where)
        found.extensions.append(Extension(kind, value, where))

    line = True
    while at < len(text):
        if line:
            line = False
            head = _HEAD.match(text, at)
            if head is not None and (end := _attributes(found, head)) is not None:
                put(text[at : head.start("open")], at)
                at = end
                continue
        match = _PART.search(text, at)
        if match is None:
            put(text[at:], at)
            break
        if match.start() > at:
            put(text[at : match.start()], at)
        at, kind = match.end(), match.lastgroup
        start = match.start()
        piece = match[0]
        if kind in ("string", "regexp"):
            put(piece, start)
        elif kind == "line":
            put(piece, start)
            line = True
        elif kind == "comment":
            pass
        elif kind == "percent":
            at = _percent(found, piece[1:], start, at, extend)
        elif kind == "reference":
            source.fail("references to other grammars are not supported; write %lark {...}", text, start)
        elif kind == "count":
            low, comma, high = piece[1:-1].partition(",")
            least, most = low.strip(), high.strip()
            if not least and not most:
                source.fail("expected {m}, {m,} or {m,n}", text, start)
            bounds = int(least or 0), int(most) if most else (-1 if comma else int(least))
            if 0 <= bounds[1] < bounds[0]:
                source.fail(f"{piece} asks for at least {least} and at most {most}", text, start)
            extend("count", bounds, start)
        elif kind == "ids":
            extend("ids", piece[2:-2], start)
        else:
            extend(str(kind), piece, start)
    found.text = "".join(out)
    return found


def _percent(found: Scanned, kind: str, start: int, at: int, extend: Any) -> int:
    text = found.original
    while at < len(text) and text[at].isspace():
        at += 1
    if text[at : at + 1] not in ("{", "[", "t", "f"):
        source.fail(f"%{kind} is followed by {{...}}", text, start)
    if kind == "lark":
        end = closing(text, at)
        extend("lark", text[at + 1 : end], at + 1)
        return end + 1
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
    except json.JSONDecodeError as error:
        source.fail(f"%{kind} is not JSON: {error.msg}", text, error.pos)
    except RecursionError:
        source.fail(f"%{kind} nests too deeply", text, start)
    if kind == "json":
        value = text[at:end]  # as written: the core reads numbers as text
    if kind != "llguidance":  # its header of options has nothing for us
        extend(kind, value, start)
    return end


def closing(text: str, at: int) -> int:
    """Where the brace at `at` is closed, texts, patterns and comments aside."""
    depth, here = 0, at
    pattern = re.compile(
        _PART.pattern.split("|(?P<percent>")[0] + r"|(?P<open>[{])|(?P<close>[}])", re.VERBOSE
    )
    for match in pattern.finditer(text, at):
        here = match.start()
        depth += (match.lastgroup == "open") - (match.lastgroup == "close")
        if depth == 0 and match.lastgroup == "close":
            return here
    source.fail("this brace is never closed", text, at)


def _attributes(found: Scanned, head: re.Match[str]) -> int | None:
    """Reads ``[...]`` after a rule's name; None where it is no list of attributes."""
    text, at = found.original, head.end()
    name = head[1]
    values: dict[str, tuple[str, str, int]] = {}
    while True:
        match = _ATTRIBUTE.match(text, at)
        if match is None:
            return None
        key = match["name"]
        if key not in _KNOWN:
            hint = source.meant(key, _KNOWN)
            source.fail(f"'{key}' is no attribute of a rule{hint}", text, match.start("name"))
        value = ("nothing", "", match.start("name"))
        for kind in ("string", "regexp", "token", "number"):
            if match[kind] is not None:
                value = (kind, match[kind], match.start(kind))
        values[key] = value
        at = match.end()
        if match["end"] == "]":
            break
    rest = text[at:].lstrip(" \t")
    if not rest.startswith(":"):
        return None
    if name in found.attributes:
        source.fail(f"'{name}' is defined twice", text, head.start(1))
    found.attributes[name] = values
    return at
