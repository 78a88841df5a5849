r"""Finds the extensions of Lark's grammar language in a text, and replaces each of them by a literal that
Lark can read.

In: a grammar's text. Out: a text for Lark's own loader, in which a string literal of private characters
replaces each extension; the extension for each literal; attributes of rules; a map back to the places in
the text. Cost: linear in the text.

    %json {...}  %regex {...}  %lark {...}   a schema, a span of a text, a grammar inside the grammar
    <|name|>  <[12,15-18]>                   tokens that are no text
    A & B   ~A                               terminals: both, anything but; ``&`` binds closer than ``|``
    a{2} a{2,} a{2,5}                        repetition, besides Lark's own ``~``
    name[lazy, capture="x", stop="\n"]: ...  attributes
    name::_: ... %if ...   name::set_bit(1)  a rule with a parameter; see `parametric`
    @name                                    a grammar that was given under that name
    a-name                                   a hyphen in a name; Lark sees another name
    %llguidance {...}  %grammar_options {...}   options

The problem. Lark's own loader reads the dialect itself, but refuses all of these extensions.

The idea. `scan` cuts the text into strings, patterns, comments and extensions. An extension becomes a literal
with its number between U+E000 and U+E001; Lark carries it through as a terminal, and rules.py and
terminals.py look it up:

    start[lazy, capture="x"]: "a"{2,3} <|im_end|>        start: "#0" "a" "#1" "#2"
    my-name: ~"b"                                        my_name: "#3" "b"

    #0 the attributes of `start`    #1 the count (2, 3)    #2 the token <|im_end|>    #3 "anything but"

(`#0` stands for the literal number 0.) Attributes in front of a rule's colon become a literal behind the
colon. So they stay with the rule, even if Lark renames an imported rule.

Invariants.
- `Scanned.place` maps each place in the new text to a place in the original text, so errors have the user's
  places and names.
- Strings, patterns and comments are never searched for extensions.
- A name with a hyphen becomes a name that nothing else in the text has.
- Brackets nest at most `_NESTING` levels.

Rejected. Giving all lines to Lark: its lexer takes quadratic time for runs of empty lines (64 kB took 4.0
s), so one empty line replaces a run.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from .. import source
from . import parametric

_OPEN, _CLOSE = "\ue000", "\ue001"
PLACEHOLDER = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_PART = re.compile(
    r"""(?P<comment>//[^\n]*|\#[^\n]*)
    |(?P<string>"(?:\\.|[^"\\\n])*"i?)
    |(?P<regexp>/(?!/)(?:[^/\\]|\\[/\\]?+)*+/[imslux]*)
    |(?P<percent>%(?:json|regex|lark|llguidance|grammar_options)\b)
    |(?P<condition>%if\b)
    |(?P<ids><\[[^\]\n]*\]>)
    |(?P<token><[^<>\s"]+>)
    |(?P<both>&)
    |(?P<negate>~(?!\s*[+\-]?\d))
    |(?P<count>\{\s*+\d*+\s*+(?:,\s*+\d*+\s*+)?+\})
    |(?P<reference>@[\w./\-]+)
    |(?P<call>\b_?[a-z]\w*(?:-\w+)*::)
    |(?P<hyphen>\b_?[A-Za-z]\w*(?:-\w+)+)
    |(?P<line>\n)
    |(?P<slash>/)""",
    re.VERBOSE,
)
_BRACKETS = re.compile(r"[(\[{}\])]")
_NESTING = 100  # the most levels of brackets
_HEAD = re.compile(
    r"[ \t]*[?!]{0,2}(?P<name>_?[a-z][_a-z0-9]*(?:-[_a-z0-9]+)*)(?P<priority>\.[+\-]?\d+)?"
    r"(?P<parameter>::_(?=\s*[\[:]))?(?P<open>[ \t]*\[)?"
)
_ATTRIBUTE = re.compile(
    r"""\s*(?P<name>[a-z_]+)\s*(?:=\s*(?:(?P<string>"(?:\\.|[^"\\\n])*"i?)|(?P<regexp>/(?!/)(?:[^/\\]|\\[/\\]?+)*+/[imslux]*)
    |(?P<number>[+\-]?[0-9.]+)|(?P<token><[^<>\s"]+>)|(?P<terminal>_?[A-Z][\w\-]*)))?\s*(?P<end>[,\]])""",
    re.VERBOSE,
)
_COLON = re.compile(r"\s*:")
_KNOWN = ("lazy", "capture", "stop", "suffix", "stop_capture", "max_tokens", "max_chars", "temperature")
# Options of a grammar, each with the values that are accepted.
_OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "llguidance": {
        "no_forcing": (True, False),  # no effect here: in llguidance the option controls forced tokens
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
    origin: Scanned  # the grammar that contains the extension

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
    """The text for Lark, and the extensions that were taken out of the original text.

    Attributes and parameters of a rule are one extension in the rule's first alternative.
    """

    original: str
    file: str = ""  # the name of an imported file
    text: str = ""
    extensions: list[Extension] = field(default_factory=list)
    heads: set[str] = field(default_factory=set)  # rules with attributes or a parameter
    options: dict[str, Any] = field(default_factory=dict)
    spelled: dict[str, str] = field(default_factory=dict)  # name with hyphens -> the name that Lark gets
    _starts: list[int] = field(default_factory=list)  # the beginnings of pieces in `text`
    _places: list[int] = field(default_factory=list)  # the beginnings of the same pieces in `original`

    def place(self, at: int) -> int:
        """Returns the offset in the original text that belongs to an offset in the new text."""
        i = bisect.bisect_right(self._starts, at) - 1
        if i < 0:
            return 0
        return min(self._places[i] + at - self._starts[i], len(self.original))

    def fail(self, message: str, at: int) -> NoReturn:
        for written, name in self.spelled.items():
            message = re.sub(rf"\b{name}\b", written, message)
        source.fail(f"{self.file}: {message}" if self.file else message, self.original, at)

    def written(self, name: str) -> str:
        """Returns a name as it is written in the grammar's text."""
        return next((w for w, n in self.spelled.items() if n == name), name)

    def name(self, written: str) -> str:
        """Returns the name that Lark gets instead: without hyphens, and different from all other names."""
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
    found.text = _Scanner(found).run()
    return found


class _Scanner:
    """Makes one pass over a text, and writes its pieces and the literals of its extensions for Lark.

    Attributes:
        at: the place in the text.
        size: the length of the text written so far.
        depth: the number of open brackets.
        line: whether a line begins here.
        blank: whether only blanks came since the last line break that was written.
    """

    def __init__(self, found: Scanned) -> None:
        self.found = found
        self.text: str = found.original
        self.out: list[str] = []
        self.size = self.at = self.depth = 0
        self.line, self.blank = True, False

    def run(self) -> str:
        while self.at < len(self.text):
            if self.line:
                self.line = False
                if self.head():
                    continue
            part = _PART.search(self.text, self.at)
            self.plain(len(self.text) if part is None else part.start())
            if part is not None:
                self.at = part.end()
                self.blank = self.blank and part.lastgroup in ("comment", "line")
                _READ.get(str(part.lastgroup), _Scanner.extension)(self, part)
        return "".join(self.out)

    def put(self, piece: str, where: int) -> None:
        self.found._starts.append(self.size)
        self.found._places.append(where)
        self.out.append(piece)
        self.size += len(piece)

    def extend(self, kind: str, value: Any, where: int) -> None:
        self.put(f' "{_OPEN}{len(self.found.extensions)}{_CLOSE}" ', where)
        self.found.extensions.append(Extension(kind, value, where, self.found))

    def fail(self, message: str, at: int) -> NoReturn:
        source.fail(message, self.text, at)

    def slash(self, part: re.Match[str]) -> NoReturn:
        """Fails, because a regex that begins at this slash does not end. Lark would look for its end in
        exponential time."""
        self.fail("this regular expression does not end; a slash inside of one is \\/", part.start())

    def plain(self, end: int) -> None:
        """Writes the text up to a place unchanged."""
        begin, self.at = self.at, end
        if begin == end:
            return
        for bracket in _BRACKETS.finditer(self.text, begin, end):
            self.depth = self.depth + 1 if bracket[0] in "([{" else max(0, self.depth - 1)
            if self.depth > _NESTING:
                self.fail(f"brackets nest deeper than {_NESTING} levels", bracket.start())
        self.put(self.text[begin:end], begin)
        self.blank = self.blank and not self.text[begin:end].strip()

    def head(self) -> bool:
        """Reads a rule's name with attributes or a parameter. Returns False if none begins here."""
        head, found = _HEAD.match(self.text, self.at), self.found
        if head is None or not (head["open"] or head["parameter"]):
            return False
        colon = _COLON.match(self.text, head.end())
        read: tuple[Values, int] | None = None if colon is None else ({}, colon.end())
        if head["open"]:
            read = _attributes(found, head)
        if read is None:
            return False
        attributes, end = read
        name, at = found.name(head["name"]), head.start("name")
        if name in found.heads:
            found.fail(f"'{head['name']}' is defined twice", at)
        found.heads.add(name)
        self.put(self.text[self.at : at] + name + (head["priority"] or "") + ":", self.at)
        self.extend("rule", Given(head["name"], attributes, head["parameter"] is not None), at)
        for key in ("stop", "suffix"):  # Lark drops unused terminals, so the rule uses this one.
            if attributes.get(key, ("",))[0] == "terminal":
                self.put(f" {found.name(attributes[key][1])} ", attributes[key][2])
        self.at, self.blank = end, False
        return True

    # ---- the parts of `_PART` ----

    def extension(self, part: re.Match[str]) -> None:
        """Reads an extension whose value is its own text."""
        self.extend(str(part.lastgroup), part[0], part.start())

    def same(self, part: re.Match[str]) -> None:
        """Writes a part that Lark reads unchanged. Lark refuses an empty literal."""
        if part[0].startswith('""'):
            self.extend("empty", None, part.start())
        else:
            self.put(part[0], part.start())

    def comment(self, part: re.Match[str]) -> None:
        """Leaves out a comment."""

    def newline(self, part: re.Match[str]) -> None:
        """Writes one of several empty lines, because Lark's lexer takes quadratic time for many."""
        if not self.blank:
            self.put(part[0], part.start())
        self.line = self.blank = True

    def reference(self, part: re.Match[str]) -> None:
        self.extend("reference", part[0][1:], part.start())

    def hyphen(self, part: re.Match[str]) -> None:
        self.put(self.found.name(part[0]), part.start())

    def ids(self, part: re.Match[str]) -> None:
        self.extend("ids", part[0][2:-2], part.start())

    def call(self, part: re.Match[str]) -> None:
        value, self.at = parametric.value(self.text, self.at)
        self.put(f" ({self.found.name(part[0][:-2])}", part.start())
        self.extend("call", value, part.start())
        self.put(") ", part.start())

    def condition(self, part: re.Match[str]) -> None:
        test, self.at = parametric.condition(self.text, self.at)
        self.extend("condition", test, part.start())

    def count(self, part: re.Match[str]) -> None:
        low, comma, high = part[0][1:-1].partition(",")
        least, most = low.strip(), high.strip()
        if not least and not most:
            self.fail("expected {m}, {m,} or {m,n}", part.start())
        try:
            self.extend("count", source.bounds(least, comma, most), part.start())
        except ValueError as error:
            self.fail(str(error), part.start())

    def percent(self, part: re.Match[str]) -> None:
        kind, text, start = part[0][1:], self.text, part.start()
        while self.at < len(text) and text[self.at].isspace():
            self.at += 1
        at = self.at
        if text[at : at + 1] not in ("{", "[", "t", "f"):
            self.fail(f"%{kind} is followed by {{...}}", start)
        if kind == "lark":
            end = closing(text, at)
            self.extend("lark", text[at + 1 : end], at + 1)
            self.at = end + 1
            return
        try:
            value, self.at = json.JSONDecoder().raw_decode(text, at)
        except json.JSONDecodeError as error:
            self.fail(f"%{kind} is not JSON: {error.msg}", error.pos)
        except RecursionError:
            self.fail(f"%{kind} nests too deeply", start)
        if kind in _OPTIONS:
            self.options(kind, value, start)
        else:  # A schema stays text, because the core reads its numbers as text.
            self.extend(kind, text[at : self.at] if kind == "json" else value, start)

    def options(self, kind: str, value: Any, start: int) -> None:
        """Reads the options of a grammar. Raises a GrammarError if an option or its value is unknown."""
        if not isinstance(value, dict):
            self.fail(f"%{kind} is followed by {{...}}", start)
        for name, given in value.items():
            known = _OPTIONS[kind].get(name)
            if known is None:
                hint = source.meant(name, _OPTIONS[kind])
                self.fail(f"'{name}' is no option of %{kind} that is known{hint}", start)
            if not any(given is k or (isinstance(k, str) and given == k) for k in known):
                kept = " or ".join(json.dumps(k) for k in known)
                self.fail(f"'{name}' is {kept} here, not {json.dumps(given)[:40]}", start)
            self.found.options[name] = given


_READ: dict[str, Callable[[_Scanner, re.Match[str]], None]] = {
    "comment": _Scanner.comment,
    "string": _Scanner.same,
    "regexp": _Scanner.same,
    "percent": _Scanner.percent,
    "condition": _Scanner.condition,
    "ids": _Scanner.ids,
    "count": _Scanner.count,
    "reference": _Scanner.reference,
    "call": _Scanner.call,
    "hyphen": _Scanner.hyphen,
    "line": _Scanner.newline,
    "slash": _Scanner.slash,
}


def closing(text: str, at: int) -> int:
    """Returns the place of the brace that closes the one at `at`.

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

    Returns the attributes and the place behind the colon; None if the brackets are no list of attributes.
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
