r"""The extensions of Lark's grammar language, found in the text and put out of Lark's way.

In: a grammar's text. Out: text that Lark's own loader reads, in which every extension is a string literal of
private characters; what the literals stand for; attributes of rules; a map back to the places in the text.
Cost: linear in the text.

    %json {...}  %regex {...}  %lark {...}   a schema, a span of a text, a grammar inside the grammar
    <|name|>  <[12,15-18]>                   tokens that are no text
    A & B   ~A                               terminals: both, anything but; ``&`` binds closer than ``|``
    a{2} a{2,} a{2,5}                        repetition, besides Lark's own ``~``
    name[lazy, capture="x", stop="\n"]: ...  attributes
    name::_: ... %if ...   name::set_bit(1)  a rule with a parameter; see `parametric`
    @name                                    a grammar that was given under that name
    a-name                                   a hyphen in a name; Lark sees another name
    %llguidance {...}  %grammar_options {...}   options

The problem. The dialect itself is read by Lark's own loader, which refuses all of these.

The idea. `scan` cuts the text into strings, patterns, comments and extensions. An extension becomes a literal
with its number between U+E000 and U+E001; Lark carries it through as a terminal, and rules.py and
terminals.py look it up:

    start[lazy, capture="x"]: "a"{2,3} <|im_end|>        start: "#0" "a" "#1" "#2"
    my-name: ~"b"                                        my_name: "#3" "b"

    #0 the attributes of `start`    #1 the count (2, 3)    #2 the token <|im_end|>    #3 "anything but"

(`#0` stands for the literal number 0.) What is said about a rule in front of its colon comes to stand behind
the colon. So it stays with the rule, whatever names Lark gives to rules that are imported.

Invariants.
- A place in the new text leads back to one in the original (`Scanned.place`), so errors name the user's place
  and name.
- Strings, patterns and comments are never searched for extensions.
- A name with a hyphen becomes a name that nothing else in the text has.
- Brackets nest at most `_NESTING` levels.

Rejected. Handing all lines to Lark: its lexer takes quadratic time for runs of empty lines (64 kB took 4.0
s), so only one of them goes there.
"""

from __future__ import annotations

import bisect
import json
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

from .. import source
from . import parametric

_OPEN, _CLOSE = "\ue000", "\ue001"
PLACEHOLDER = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_PART = re.compile(
    r"""(?P<comment>//[^\n]*|\#[^\n]*)
    |(?P<string>"(?:\\.|[^"\\\n])*"i?)
    |(?P<regexp>/(?!/)(?:\\/|\\\\|[^/])*?/[imslux]*)
    |(?P<percent>%(?:json|regex|lark|llguidance|grammar_options)\b)
    |(?P<condition>%if\b)
    |(?P<ids><\[[^\]\n]*\]>)
    |(?P<token><[^<>\s"]+>)
    |(?P<both>&)
    |(?P<negate>~(?!\s*[+\-]?\d))
    |(?P<count>\{\s*\d*\s*(?:,\s*\d*\s*)?\})
    |(?P<reference>@[\w./\-]+)
    |(?P<call>\b_?[a-z]\w*(?:-\w+)*::)
    |(?P<hyphen>\b_?[A-Za-z]\w*(?:-\w+)+)
    |(?P<line>\n)""",
    re.VERBOSE,
)
_BRACKETS = re.compile(r"[(\[{}\])]")
_NESTING = 100  # the most levels of brackets
_HEAD = re.compile(
    r"[ \t]*[?!]{0,2}(?P<name>_?[a-z][_a-z0-9]*(?:-[_a-z0-9]+)*)(?P<priority>\.[+\-]?\d+)?"
    r"(?P<parameter>::_(?=\s*[\[:]))?(?P<open>[ \t]*\[)?"
)
_ATTRIBUTE = re.compile(
    r"""\s*(?P<name>[a-z_]+)\s*(?:=\s*(?:(?P<string>"(?:\\.|[^"\\\n])*"i?)|(?P<regexp>/(?!/)(?:\\/|\\\\|[^/])*?/[imslux]*)
    |(?P<number>[+\-]?[0-9.]+)|(?P<token><[^<>\s"]+>)|(?P<terminal>_?[A-Z][\w\-]*)))?\s*(?P<end>[,\]])""",
    re.VERBOSE,
)
_COLON = re.compile(r"\s*:")
_KNOWN = ("lazy", "capture", "stop", "suffix", "stop_capture", "max_tokens", "max_chars", "temperature")
# Options of a grammar, each with the values that are accepted.
_OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "llguidance": {
        "no_forcing": (True, False),  # has no effect: it is about how forced text is cut into tokens
        "allow_invalid_utf8": (False,),
        "skip_repetition": ("once",),
    },
    "grammar_options": {"allow_initial_skip": (True, False)},
}


@dataclass(frozen=True, slots=True)
class Extension:
    # empty, json, regex, lark, token, ids, reference, call, both, negate, count, condition, rule
    kind: str
    value: Any
    at: int  # the place in the original text
    origin: Scanned  # the grammar that it stands in

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        self.origin.fail(message, self.at if at is None else at)


@dataclass(frozen=True, slots=True)
class Given:
    """The text between a rule's name and its colon, as read."""

    name: str  # the rule's name, as written
    attributes: dict[str, tuple[str, str, int]]  # name -> kind of the value, its text, its place
    parametric: bool  # the rule has a parameter


@dataclass(slots=True)
class Scanned:
    """The text for Lark, and what was taken out of it.

    Attributes and parameters of a rule are an extension in its first alternative.
    """

    original: str
    file: str = ""  # the name of an imported file
    text: str = ""
    extensions: list[Extension] = field(default_factory=list)
    heads: set[str] = field(default_factory=set)  # rules with attributes or a parameter
    options: dict[str, Any] = field(default_factory=dict)
    spelled: dict[str, str] = field(default_factory=dict)  # names with hyphens -> what Lark sees
    _starts: list[int] = field(default_factory=list)  # in `text`
    _places: list[int] = field(default_factory=list)  # in `original`

    def place(self, at: int) -> int:
        """The offset in the original text of an offset in the new one."""
        i = bisect.bisect_right(self._starts, at) - 1
        if i < 0:
            return 0
        return min(self._places[i] + at - self._starts[i], len(self.original))

    def fail(self, message: str, at: int) -> NoReturn:
        for written, name in self.spelled.items():
            message = re.sub(rf"\b{name}\b", written, message)
        source.fail(f"{self.file}: {message}" if self.file else message, self.original, at)

    def written(self, name: str) -> str:
        """A name as it is written in the grammar's text."""
        return next((w for w, n in self.spelled.items() if n == name), name)

    def name(self, written: str) -> str:
        """The name that Lark gets instead: without hyphens, and different from all other names."""
        if "-" not in written:
            return written
        if written not in self.spelled:
            taken = {*re.findall(r"\w+", self.original), *self.spelled.values()}
            name = written.replace("-", "_")
            while name in taken:
                name += "_"
            self.spelled[written] = name
        return self.spelled[written]


def scan(text: str, parent: Scanned | None = None, file: str = "") -> Scanned:
    """Takes the extensions out of a text.

    Args:
        parent: the grammar that imports this one. Both have one list of extensions.
        file: the name of the imported file.

    Raises:
        GrammarError: an extension is not well-formed.
    """
    found = Scanned(text, file)
    if parent is not None:
        found.extensions = parent.extensions
    if _OPEN in text or _CLOSE in text:
        at = min(i for i in (text.find(_OPEN), text.find(_CLOSE)) if i >= 0)
        source.fail("the private characters U+E000 and U+E001 cannot be used; write \\ue000", text, at)
    out: list[str] = []
    size = at = depth = 0

    def put(piece: str, where: int) -> None:
        nonlocal size
        found._starts.append(size)
        found._places.append(where)
        out.append(piece)
        size += len(piece)

    def extend(kind: str, value: Any, where: int) -> None:
        put(f' "{_OPEN}{len(found.extensions)}{_CLOSE}" ', where)
        found.extensions.append(Extension(kind, value, where, found))

    def plain(begin: int, end: int) -> None:
        """Puts a stretch of the text as it is."""
        nonlocal depth
        for bracket in _BRACKETS.finditer(text, begin, end):
            depth = depth + 1 if bracket[0] in "([{" else max(0, depth - 1)
            if depth > _NESTING:
                source.fail(f"brackets nest deeper than {_NESTING} levels", text, bracket.start())
        put(text[begin:end], begin)

    line = True
    blank = False  # only blanks since the last line break that was put
    while at < len(text):
        if line:
            line = False
            head = _HEAD.match(text, at)
            if head is not None and (head["open"] or head["parameter"]):
                colon = _COLON.match(text, head.end())
                read: tuple[Values, int] | None = None if colon is None else ({}, colon.end())
                if head["open"]:
                    read = _attributes(found, head)
                if read is not None:
                    attributes, at_end = read
                    name = found.name(head["name"])
                    if name in found.heads:
                        found.fail(f"'{head['name']}' is defined twice", head.start("name"))
                    found.heads.add(name)
                    put(text[at : head.start("name")] + name + (head["priority"] or "") + ":", at)
                    given = Given(head["name"], attributes, head["parameter"] is not None)
                    extend("rule", given, head.start("name"))
                    for end in ("stop", "suffix"):  # Lark drops terminals without a use
                        if attributes.get(end, ("",))[0] == "terminal":
                            put(f" {found.name(attributes[end][1])} ", attributes[end][2])
                    at, blank = at_end, False
                    continue
        match = _PART.search(text, at)
        if match is None:
            plain(at, len(text))
            break
        if match.start() > at:
            plain(at, match.start())
            blank = blank and not text[at : match.start()].strip()
        blank = blank and match.lastgroup in ("comment", "line")
        at, kind = match.end(), match.lastgroup
        start = match.start()
        piece = match[0]
        if kind == "string" and piece.startswith('""'):
            extend("empty", None, start)  # Lark refuses an empty literal
        elif kind in ("string", "regexp"):
            put(piece, start)
        elif kind == "line":
            # Of several empty lines one is put: Lark's lexer takes quadratic time for them.
            if not blank:
                put(piece, start)
            line = blank = True
        elif kind == "comment":
            pass
        elif kind == "percent":
            at = _percent(found, piece[1:], start, at, extend)
        elif kind == "reference":
            extend("reference", piece[1:], start)
        elif kind == "hyphen":
            put(found.name(piece), start)
        elif kind == "call":
            name = found.name(piece[:-2])
            value, at = parametric.value(text, at)
            put(f" ({name}", start)
            extend("call", value, start)
            put(") ", start)
        elif kind == "condition":
            test, at = parametric.condition(text, at)
            extend("condition", test, start)
        elif kind == "count":
            low, comma, high = piece[1:-1].partition(",")
            least, most = low.strip(), high.strip()
            if not least and not most:
                source.fail("expected {m}, {m,} or {m,n}", text, start)
            if max(len(least), len(most)) > 10 or max(int(least or 0), int(most or 0)) > source.MOST:
                source.fail(source.TOO_MANY, text, start)
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
        value = text[at:end]  # unparsed, because the core reads numbers as text
    if kind not in _OPTIONS:
        extend(kind, value, start)
        return end
    if not isinstance(value, dict):
        source.fail(f"%{kind} is followed by {{...}}", text, start)
    for name, given in value.items():
        known = _OPTIONS[kind].get(name)
        if known is None:
            hint = source.meant(name, _OPTIONS[kind])
            source.fail(f"'{name}' is no option of %{kind} that is known{hint}", text, start)
        if not any(given is k or (isinstance(k, str) and given == k) for k in known):
            kept = " or ".join(json.dumps(k) for k in known)
            source.fail(f"'{name}' is {kept} here, not {json.dumps(given)[:40]}", text, start)
        found.options[name] = given
    return end


def closing(text: str, at: int) -> int:
    """The place of the brace that closes the one at `at`.

    Braces in strings, patterns and comments do not count.
    """
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


Values = dict[str, tuple[str, str, int]]  # attributes: name -> kind of the value, its text, its place


def _attributes(found: Scanned, head: re.Match[str]) -> tuple[Values, int] | None:
    """Reads the list ``[...]`` after a rule's name.

    Returns it and the place after the colon; None if it is none.
    """
    text, at = found.original, head.end()
    values: Values = {}
    while True:
        match = _ATTRIBUTE.match(text, at)
        if match is None:
            return None
        key = match["name"]
        if key not in _KNOWN:
            hint = source.meant(key, _KNOWN)
            source.fail(f"'{key}' is no attribute of a rule{hint}", text, match.start("name"))
        value = ("nothing", "", match.start("name"))
        for kind in ("string", "regexp", "token", "number", "terminal"):
            if match[kind] is not None:
                value = (kind, match[kind], match.start(kind))
        values[key] = value
        at = match.end()
        if match["end"] == "]":
            break
    colon = _COLON.match(text, at)
    return None if colon is None else (values, colon.end())
