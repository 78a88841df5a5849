r"""GBNF and EBNF: llama.cpp's grammars and xgrammar's, which differ in details and are read as one language.

In: text such as ``root ::= "(" [0-9]+ ("," [0-9]+){0,3} ")"``. Out: rules in a ``_core.GrammarBuilder``.
Cost: linear in the text.

Every rule is scannerless: characters are matched one by one, blanks only where the grammar says so.
    "text"  [a-z^]  [^\n]  .          literals, classes, any character; escapes \n \x41 \u4E2D \" \]
    a b   a | b   ( a )  a* a+ a? a{2} a{2,} a{2,5} a{,5}   # comment
    <name>  <[12]>  !<name>           a special token by name or id, anything but that token
    (= a)                             xgrammar's look-ahead: it speeds xgrammar up and constrains nothing
    Token(12)  ExcludeToken(12)  TagDispatch(("<t>", rule), stop_str=..., excludes=...)    of xgrammar, as are
    Regex("[a-z]+")  Substring("one ", "two")  TokenTagDispatch((12, rule), excludes=(13,))  a{2,-1}
    name[capture="x", lazy, max_tokens=5, max_chars=9, temperature=1] ::= ...

The problem. Two programs have a dialect each, hosts hand over either, and the text does not say which. A
grammar may come from a stranger.

The idea. The union of both dialects is one language, which one parser reads. The parser works by recursive
descent, with one method for each level (`rules`, `rule`, `choice`, `sequence`, `repeated`, `item`), and gives
nodes directly to the builder. There is no syntax tree. A rule that is used before it is defined gets its
number at the first use (`number`), and `rules` checks at the end that each has a definition. A rule has no
end mark: `next_rule` looks ahead for a name and `::=`.

`dispatch` makes free text with tags in it; structural tags use it, too. With

    root ::= TagDispatch(("<f>", num))         num ::= [0-9]+ ";"

the texts are `a < b`, `see <f>12; ok` and `<f>1;<f>2;`, but not `see <f>x`: after a tag its rule is the only
way on. For each tag there is the regex "text in which no tag or stop ends before this one does", and the
tag's node behind it.

Invariants.
- An error names the place in the text and, where there is one, the close name that was meant.
- Parentheses nest `source.DEPTH` levels at most, arguments of macros ten, and repetitions have a limit.
- Tokens that a grammar names are those tokens and not their texts (whole_tokens.py).

Rejected. Evaluating arguments of macros with Python's parser alone: it overflows the stack of a small thread
at 300 levels, so `_flat` looks at them first.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from .. import _core
from .._stack import roomy
from ..errors import GrammarError
from . import source
from .whole_tokens import WholeTokens

if TYPE_CHECKING:
    from ..vocabulary import Vocabulary

T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9_\-][A-Za-z0-9_.\-]*")
_ATTRIBUTES = re.compile(r"\[[^\]\n]*\](?=\s*::=)")
_ATTRIBUTE = re.compile(r'\s*([a-z_]+)\s*(?:=\s*("(?:\\.|[^"\\\n])*"|[^\s,\]"]+))?\s*([,\]])')
_KNOWN = ("capture", "lazy", "max_tokens", "max_chars", "temperature")
_BLANK = re.compile(r"(?:\s+|#[^\n]*|//[^\n]*)+")
_COUNT = re.compile(r"\{\s*+(\d*+)\s*+(,?+)\s*+(-1|\d*+)\s*+\}")
_TOKEN = re.compile(r"<\[([^\]\n]*)\]>|<[^<>\s\[\]][^<>\n]*>")
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "b": "\b", "a": "\a", "0": "\0"}
_HEX = {"x": 2, "u": 4, "U": 8}
_CALLS = (
    "Token", "ExcludeToken", "AnyTokens", "ExcludeTokens", "TagDispatch", "TokenTagDispatch",
    "Regex", "Substring",
)  # fmt: skip
_SHORTHANDS = {"d": [(48, 57)], "w": [(48, 57), (65, 90), (95, 95), (97, 122)], "s": [(9, 13), (32, 32)]}


# Recipe, dialect 1: a reader such as this one, which fills _core.GrammarBuilder.
@roomy
def build(text: str, vocabulary: Vocabulary, root: str = "root") -> tuple[_core.GrammarBuilder, int]:
    """Returns the grammar's nodes and the number of its first rule.

    Raises:
        GrammarError: with line, column and the likely fix.
    """
    b = _core.GrammarBuilder()
    return b, Parser(text, vocabulary, b).rules(root)


class Parser:
    """Parses the text by recursive descent. The methods return nodes of the builder."""

    def __init__(self, text: str, vocabulary: Vocabulary, builder: _core.GrammarBuilder) -> None:
        self.text = text
        self.vocabulary = vocabulary
        self.b = builder
        self.tokens: WholeTokens = WholeTokens(builder, vocabulary)
        self.at: int = 0
        self.depth: int = 0
        self.numbers: dict[str, int] = {}
        self.defined: dict[str, int] = {}  # name -> place of its definition
        self.used: dict[str, int] = {}  # name -> place of its first use

    def rules(self, root: str) -> int:
        self.blank()
        while self.at < len(self.text):
            self.rule()
            self.blank()
        for name, at in self.used.items():
            if name not in self.defined:
                hint = source.meant(name, self.defined)
                source.fail(f"rule '{name}' is not defined{hint}", self.text, at)
        if root not in self.defined:
            hint = source.meant(root, self.defined) or (
                f"; the first rule is '{next(iter(self.defined))}'" if self.defined else ""
            )
            source.fail(f"there is no rule '{root}' to start with{hint}", self.text, 0)
        return self.numbers[root]

    # ---- rules ----

    def rule(self) -> None:
        start = self.at
        match = _NAME.match(self.text, self.at)
        if match is None:
            self.fail(f"expected the name of a rule, found {self.found()}")
        name = match[0]
        self.at = match.end()
        attributes = _ATTRIBUTES.match(self.text, self.at)
        given = {}
        if attributes is not None:
            given = self.attributes(attributes.start() + 1, attributes.end())
        self.blank()
        if not self.text.startswith("::=", self.at):
            if self.text.startswith((":=", ":", "="), self.at):
                self.fail("expected '::=' after the name of a rule")
            self.fail(f"expected '::=' after '{name}', found {self.found()}")
        self.at += 3
        if name in self.defined:
            source.fail(f"rule '{name}' is defined twice", self.text, start)
        self.defined[name] = start
        body = self.choice()
        self.b.define(self.number(name), self.attributed(name, body, given))

    def attributes(self, at: int, end: int) -> dict[str, tuple[str, int]]:
        """Returns for each name its value as written ('' if there is none) and its place."""
        found: dict[str, tuple[str, int]] = {}
        while at < end:
            match = _ATTRIBUTE.match(self.text, at, end)
            if match is None:
                source.fail('expected an attribute: name, name=1 or name="text"', self.text, at)
            name = match[1]
            if name not in _KNOWN:
                hint = source.meant(name, _KNOWN) or "; ends of rules are written in the Lark dialect"
                source.fail(f"'{name}' is no attribute of a rule{hint}", self.text, match.start(1))
            if name in found:
                source.fail(f"'{name}' is given twice", self.text, match.start(1))
            found[name] = (match[2] or "", match.start(1))
            at = match.end()
        self.at = end
        return found

    def attributed(self, name: str, node: int, given: dict[str, tuple[str, int]]) -> int:
        counts = {}
        for kind in ("max_tokens", "max_chars"):
            if kind in given:
                value, at = given[kind]
                counts[kind] = source.limit_of(value)
                if counts[kind] < 0:
                    source.fail(f"'{kind}' is a whole number of at least 0", self.text, at)
        if "lazy" in given:
            if given["lazy"][0]:
                source.fail("'lazy' takes no value", self.text, given["lazy"][1])
            node = self.b.shortest(node)
        if "max_chars" in counts:
            node = source.at_most(self.b, node, counts["max_chars"])
        if "capture" in given:
            value, at = given["capture"]
            if value and not value.startswith('"'):
                source.fail("'capture' takes a name in quotes", self.text, at)
            try:
                label = str(ast.literal_eval(value)) if value else name
            except (SyntaxError, ValueError):
                source.fail(f"{value} cannot be read", self.text, at)
            if not label:
                source.fail("a capture has a name", self.text, at)
            node = self.b.capture(label, node)
        if "temperature" in given:
            source.temperature(self.b, name, *given["temperature"][:1], self.text, given["temperature"][1])
        if "max_tokens" in counts:
            inner = self.b.rule("")
            self.b.define(inner, node)
            at = len(self.text[: given["max_tokens"][1]].encode())
            node = self.b.limit(self.b.call(inner), counts["max_tokens"], name, at)
        return node

    def number(self, name: str) -> int:
        if name not in self.numbers:
            self.numbers[name] = self.b.rule(name)
        return self.numbers[name]

    def choice(self) -> int:
        self.depth += 1
        if self.depth > source.DEPTH:
            self.fail("parentheses nest too deeply")
        parts = [self.sequence()]
        while self.text.startswith("|", self.at):
            self.at += 1
            parts.append(self.sequence())
        self.depth -= 1
        return parts[0] if len(parts) == 1 else self.b.choice(parts)

    def sequence(self) -> int:
        parts: list[int] = []
        while True:
            self.blank()
            if self.at >= len(self.text) or self.text[self.at] in "|)" or self.next_rule():
                break
            start = self.at
            part = self.item()
            if part is None:
                continue
            parts.append(self.repeated(part, start))
        return parts[0] if len(parts) == 1 else self.b.sequence(parts)

    def next_rule(self) -> bool:
        """Returns whether another rule begins here: a name, perhaps with attributes, and '::='."""
        match = _NAME.match(self.text, self.at)
        if match is None:
            return False
        end = match.end()
        attributes = _ATTRIBUTES.match(self.text, end)
        if attributes is not None:
            return True
        blank = _BLANK.match(self.text, end)
        return self.text.startswith("::=", blank.end() if blank else end)

    def repeated(self, part: int, start: int) -> int:
        while True:
            mark = self.at
            self.blank()
            c = self.text[self.at : self.at + 1]
            if c and c in "*+?":
                self.at += 1
                part = self.b.repeat(part, int(c == "+"), 1 if c == "?" else -1)
                continue
            if c == "{":
                match = _COUNT.match(self.text, self.at)
                wrong = match is None or not (match[1] or match[3]) or (match[3] == "-1" and not match[2])
                if match is None or wrong:
                    self.fail("expected {m}, {m,} or {m,n}")
                try:
                    bounds = source.bounds(match[1], match[2], match[3])
                except ValueError as error:
                    self.fail(str(error))
                self.at = match.end()
                part = self.b.repeat(part, *bounds)
                continue
            self.at = mark
            return part

    # ---- items ----

    def item(self) -> int | None:
        c = self.text[self.at]
        if c == '"' or c == "'":
            return self.b.literal(self.string(c).encode("utf-8", "surrogatepass"))
        if c == "[":
            return self.char_class()
        if c == ".":
            self.at += 1
            return source.any_char(self.b)
        if c == "\\":
            return self.shorthand()
        if c == "(":
            start = self.at
            self.at += 1
            look_ahead = self.text.startswith("=", self.at)
            self.at += look_ahead
            inner = self.choice()
            if not self.text.startswith(")", self.at):
                if self.at < len(self.text):
                    self.fail(f"expected ')', found {self.found()}")
                source.fail("this parenthesis is never closed", self.text, start)
            self.at += 1
            return None if look_ahead else inner
        if c == "<" or (c == "!" and self.text.startswith("<", self.at + 1)):
            return self.token()
        match = _NAME.match(self.text, self.at)
        if match is not None:
            name = match[0]
            if name in _CALLS and self.text.startswith("(", match.end()):
                return self.call(name, match.end())
            self.used.setdefault(name, self.at)
            self.at = match.end()
            return self.b.call(self.number(name))
        if c in "*+?{":
            self.fail(f"nothing stands before '{c}' that could be repeated")
        if c == ")":
            self.fail("this parenthesis closes nothing")
        if c == "/":
            self.fail("a regex belongs to the Lark dialect; write a character class, or use compiler.lark")
        self.fail(f"expected a literal, a class, a rule or '(', found {self.found()}")

    def string(self, quote: str) -> str:
        start = self.at
        self.at += 1
        out: list[str] = []
        while True:
            c = self.text[self.at : self.at + 1]
            if c == "" or c == "\n":
                source.fail("this literal is never closed", self.text, start)
            self.at += 1
            if c == quote:
                return "".join(out)
            out.append(self.escape() if c == "\\" else c)

    def escape(self) -> str:
        """Returns the character that an escape stands for; the backslash was read already."""
        start = self.at - 1
        c = self.text[self.at : self.at + 1]
        self.at += 1
        if c in _HEX:
            digits = self.text[self.at : self.at + _HEX[c]]
            if c == "u" and digits.startswith("{"):
                end = self.text.find("}", self.at)
                if end < 0:
                    source.fail("\\u{ is not closed with }", self.text, start)
                digits = self.text[self.at + 1 : end]
                self.at = end + 1
            else:
                self.at += _HEX[c]
            if not re.fullmatch(r"[0-9A-Fa-f]{1,8}", digits) or (c != "u" and len(digits) < _HEX[c]):
                source.fail(f"\\{c} takes {_HEX[c]} hexadecimal digits", self.text, start)
            code = int(digits, 16)
            if 0xD800 <= code < 0xDC00 and self.text.startswith("\\u", self.at):
                low = self.text[self.at + 2 : self.at + 6]
                if re.fullmatch(r"[Dd][C-Fc-f][0-9A-Fa-f]{2}", low):
                    self.at += 6
                    code = 0x10000 + ((code - 0xD800) << 10) + int(low, 16) - 0xDC00
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                source.fail(f"U+{code:04X} is no character", self.text, start)
            return chr(code)
        if c in _SIMPLE:
            return _SIMPLE[c]
        if c == "" or c.isalnum():
            source.fail(f"\\{c} is no escape; a backslash itself is \\\\", self.text, start)
        return c

    def shorthand(self) -> int:
        c = self.text[self.at + 1 : self.at + 2]
        if c.lower() not in _SHORTHANDS or not c:
            self.fail(f"\\{c} stands in a literal or in a class")
        self.at += 2
        return self.b.chars(_SHORTHANDS[c.lower()], c.isupper())

    def char_class(self) -> int:
        start = self.at
        self.at += 1
        negated = self.text.startswith("^", self.at)
        self.at += negated
        ranges: list[tuple[int, int]] = []
        while True:
            c = self.text[self.at : self.at + 1]
            if c == "" or c == "\n":
                source.fail("this class is never closed; a line break in it is \\n", self.text, start)
            if c == "]":
                self.at += 1
                return self.b.chars(ranges, negated)
            if c == "\\" and self.text[self.at + 1 : self.at + 2] in ("d", "w", "s"):
                ranges += _SHORTHANDS[self.text[self.at + 1]]
                self.at += 2
                continue
            where = self.at
            low = self.class_char()
            high = low
            if self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self.class_char()
                if high < low:
                    source.fail(f"the range {chr(low)}-{chr(high)} is empty", self.text, where)
            ranges.append((low, high))

    def class_char(self) -> int:
        c = self.text[self.at]
        self.at += 1
        if c == "\\":
            c = self.escape()
        if 0xD800 <= ord(c) < 0xE000:
            self.fail("a lone surrogate is no character")
        return ord(c)

    # ---- tokens and triggers ----

    def token(self) -> int:
        start = self.at
        negated = self.text[self.at] == "!"
        self.at += negated
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            source.fail("expected a token: <name> or <[id]>", self.text, start)
        self.at = match.end()
        if match[1] is not None:
            ids = source.token_ids(match[1], self.vocabulary, self.text, start)
        else:
            ids = [source.named_token(match[0], self.vocabulary, self.text, start)]
        if not negated:
            return self.tokens.one_of(ids, match[0])
        if all(i in self.tokens.special for i in ids):
            return self.tokens.char_but(ids)
        return self.tokens.but(ids, f"!{match[0]}")

    def call(self, name: str, end: int) -> int:
        """Reads a macro of xgrammar. Its arguments are Python literals and names of rules."""
        start = self.at
        depth, at = 0, end
        quote = ""
        while at < len(self.text):
            c = self.text[at]
            if quote:
                at += c == "\\"
                quote = "" if c == quote else quote
            elif c in "\"'":
                quote = c
            else:
                depth += (c == "(") - (c == ")")
                if depth == 0:
                    break
            at += 1
        else:
            source.fail("this parenthesis is never closed", self.text, end)
        try:
            if not _flat(self.text[end : at + 1]):
                raise ValueError
            python = re.sub(r"\b(true|false)\b", lambda m: m[0].title(), self.text[end : at + 1])
            call = ast.parse("f" + python, mode="eval").body
            assert isinstance(call, ast.Call)
        except (SyntaxError, ValueError, AssertionError, RecursionError):
            source.fail(f"{name} takes literals and names of rules", self.text, start)
        self.at = at + 1
        if name == "TagDispatch":
            return self.tag_dispatch(call, start)
        if name == "TokenTagDispatch":
            return self.token_tag_dispatch(call, start)
        if name in ("Regex", "Substring"):
            texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            if len(texts) != len(call.args) or call.keywords or (name == "Regex" and len(texts) != 1):
                takes = "a pattern" if name == "Regex" else "texts"
                source.fail(f"{name} takes {takes} in quotes", self.text, start)
            if name == "Substring":
                return self.b.substring([source.sound(t) for t in texts], 0)
            try:
                return self.b.pattern(source.sound(texts[0]), ascii=True)
            except GrammarError as error:
                source.fail(f"in the pattern {texts[0]}: {error.message}", self.text, start)
        try:
            ids = [int(ast.literal_eval(a)) for a in call.args]
        except (ValueError, TypeError):
            source.fail(f"{name} takes token ids", self.text, start)
        for i in ids:
            if not 0 <= i < self.vocabulary.vocab_size:
                source.fail(f"token {i} is outside the vocabulary", self.text, start)
        if name == "Token":
            return self.tokens.one_of(ids, name)
        return self.tokens.but(ids, name) if name == "ExcludeToken" else self.tokens.any_but(ids, name)

    def pairs(self, call: ast.Call, takes: str, kind: type[T], at: int) -> list[tuple[T, int]]:
        """Returns the pairs of a macro: a tag or a token, and the node of a rule."""
        found: list[tuple[T, int]] = []
        for argument in call.args:
            match argument:
                case ast.Tuple(elts=[ast.Constant(value=tag), ast.Name(id=rule)]) if (
                    type(tag) is kind and tag != ""
                ):
                    self.used.setdefault(rule, at)
                    found.append((tag, self.b.call(self.number(rule))))
                case _:
                    source.fail(takes, self.text, at)
        return found

    def options(self, call: ast.Call, at: int) -> Iterator[tuple[str, Any]]:
        for keyword in call.keywords:
            try:
                yield keyword.arg or "**", ast.literal_eval(keyword.value)
            except ValueError:
                source.fail(f"{keyword.arg} takes a literal", self.text, at)

    def tag_dispatch(self, call: ast.Call, at: int) -> int:
        pairs = self.pairs(call, 'TagDispatch takes pairs such as ("<tag>", rule)', str, at)
        options = dict(self.options(call, at))
        stops = _texts(options.get("stop_str", ()))
        excludes = _texts(options.get("excludes", ()))
        loop = bool(options.get("loop_after_dispatch", True))
        ends = bool(options.get("stop_eos", not stops))
        return dispatch(self.b, pairs, excludes=excludes, loop=loop, stops=stops, may_end=ends or not stops)

    def token_tag_dispatch(self, call: ast.Call, at: int) -> int:
        """Reads xgrammar's TokenTagDispatch: any tokens; after a trigger token its rule follows, then any
        tokens again."""
        pairs = self.pairs(call, "TokenTagDispatch takes pairs such as (12, rule)", int, at)
        options: dict[str, Any] = {"loop_after_dispatch": True, "excludes": ()}
        for name, value in self.options(call, at):
            if name not in options:
                hint = source.meant(name, options)
                source.fail(f"'{name}' is no option of TokenTagDispatch{hint}", self.text, at)
            options[name] = value
        excluded = options["excludes"]
        excluded = list(excluded) if isinstance(excluded, (tuple, list)) else [excluded]
        for token in [*excluded, *(t for t, _ in pairs)]:
            if not isinstance(token, int) or not 0 <= token < self.vocabulary.vocab_size:
                source.fail(f"token {token} is outside the vocabulary", self.text, at)
        if both := {t for t, _ in pairs} & set(excluded):
            source.fail(f"token {min(both)} is a trigger and excluded", self.text, at)
        free = self.tokens.any_but([*excluded, *(t for t, _ in pairs)], "TokenTagDispatch")
        if not pairs:
            return free
        return self.tokens.dispatch(free, pairs, bool(options["loop_after_dispatch"]), "TokenTagDispatch")

    # ---- text ----

    def blank(self) -> None:
        match = _BLANK.match(self.text, self.at)
        if match is not None:
            self.at = match.end()

    def found(self) -> str:
        return f"'{self.text[self.at]}'" if self.at < len(self.text) else "the end of the text"

    def fail(self, message: str) -> NoReturn:
        source.fail(message, self.text, self.at)


# One piece of a macro's arguments: a string, a word, a sign or blanks.
_ARGUMENT = re.compile(
    r"""[bBrRuU]?("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\w+|[()\[\]{},=:-]|\s+""", re.DOTALL
)


def _flat(text: str) -> bool:
    """Returns whether arguments are only literals, names and brackets, at most ten levels deep.

    Python's parser recurses on the stack of the thread, and one of 256 kB overflows at 300 levels.
    """
    depth = at = 0
    before = ""
    while at < len(text):
        match = _ARGUMENT.match(text, at)
        if match is None:
            return False
        at, part = match.end(), match[0]
        if part.isspace():
            continue
        if part in ("not", "lambda", "if", "for", "await", "yield", "and", "or", "in", "is"):
            return False
        if part in "([{":
            depth += 1
            if depth > 10 or (before and before not in "([{,=:"):
                return False
        elif part in ")]}":
            depth -= 1
        elif part == "-" and (not before or before not in "([{,=:"):
            return False
        before = part
    return True


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(v) for v in value] if isinstance(value, (list, tuple)) else []


_MOST_MARKS = 1_000  # the most marks. Each is compared with all others; 1,000 marks take half a second.


def dispatch(
    b: _core.GrammarBuilder,
    pairs: list[tuple[str, int]],
    *,
    excludes: list[str] | None = None,
    loop: bool = True,
    stops: list[str] | None = None,
    may_end: bool = True,
    spell: source.Spell | None = None,
) -> int:
    """Returns the node of free text with tags in it. If a tag occurs in the free text, the tag's node
    follows, and then free text again.

    Args:
        pairs: each tag and its node. The tag that ends first counts; if several end there, the longest.
        excludes: texts that must not occur in the free text, and that must not begin in the free text and end
            in a tag. A tag or a stop may contain an excluded text.
        loop: False ends the text after the first tag's node.
        stops: texts that end the free text and the whole text.
        may_end: whether the free text may end without a stop.
        spell: makes the node of a tag, a stop or an excluded text; a literal by default.
    """
    tags = list(dict.fromkeys(tag for tag, _ in pairs))
    stops = stops or []
    excludes = excludes or []
    marks = [*tags, *stops, *excludes]
    if len(set(marks)) != len(marks):
        raise GrammarError("a tag cannot also be a stop or an excluded text")
    if len(marks) > _MOST_MARKS:
        raise GrammarError(
            f"{len(marks):,} tags, stops and excluded texts; at most {_MOST_MARKS:,} are read: "
            "give tags a common trigger"
        )
    nodes: dict[str, list[int]] = {}
    for tag, node in pairs:
        nodes.setdefault(tag, []).append(node)
    after = {tag: b.choice(found) for tag, found in nodes.items()}
    first = source.Marks(b, [*tags, *stops], spell)

    def up_to(mark: str) -> int:
        found = first.up_to(mark)
        if not excludes:
            return found
        across = source.across(mark, excludes) if mark in tags else []
        free = source.not_ending(b, source.without(b, excludes), across)
        return b.both([found, b.sequence([free, (spell or source.literal(b))(mark)])])

    def taken(again: list[int]) -> list[int]:
        return [b.sequence([up_to(tag), after[tag], *again]) for tag in tags]

    ending = [up_to(stop) for stop in stops]
    if may_end:
        ending.append(source.without(b, marks))
    if not loop:
        return b.choice([*taken([]), *ending])
    rest = b.rule("")
    b.define(rest, b.choice([*taken([b.call(rest)]), *ending]))
    return b.call(rest)
