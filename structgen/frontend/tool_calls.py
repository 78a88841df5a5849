r"""Tool calls read back from the text that a model wrote in one of the styles of `tools.py`.

Enters: the text as it grows; its special tokens are written as their names. Leaves: free text and calls, in
order. In streams also: the beginnings of calls, and the JSON of their arguments as far as it is known.
Cost: linear in the text for JSON arguments. If a style does not say what kind a value is, the readings of the
value are tried against the schema of the function, at most 256 of them.

The problem. A server has to stream an answer while it grows, and a piece may end in the middle of a mark.
Free text that was handed out cannot be taken back. Some styles write `12` for the number and for the string.

The idea. `CallReader.feed` hands out what is certain and keeps the rest. With the style "hermes":

    Hi <tool                                       "Hi "; `<tool` may begin a mark (`overlap`)
    _call>\n{"name": "f", "argum                   nothing: this can still become a call (`_possible`)
    ents": {"x": 1}                                nothing: the end of the call is missing
    }\n</tool_call> bye                            Call("f", '{"x": 1}'), " bye"

With `stream=True` the third piece already gives `Begun("f")` and `Part('{"x": 1}')`: `_Growing` counts
brackets outside strings, so it knows where the object ends without the end mark.

Arguments that are written as XML elements are read with a pattern made from the style's row. Each value has
readings, the likeliest first: `12` is read as the number, then as the string. All combinations of readings
are tried against the function's schema (`accepts`), and the first accepted combination counts. If the schema
accepts none, the first combination counts.

Invariants.
- The grammar made the text, so a complete call is well-formed. If the text was cut off, an incomplete call
  stays text. In a stream the beginning of this call has been sent already, so the call is not given as text.
- In styles that write a bare list (`Style.whole`), and with arguments alone, the whole answer is either calls
  or text. Calls in Python syntax are given at the end of the text or of the section; arguments alone may be
  streamed.

Rejected: one pattern for each name. With 500 names it took a server half a second in each request.
"""

from __future__ import annotations

import functools
import html
import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from .._json_scan import no_constant
from ..errors import GrammarError, StructgenError
from . import elements
from .python_calls import calls_of
from .source import meant, overlap
from .tool_lists import listed
from .tools import ARGUMENTS, STYLES, Style, described, row_of

if TYPE_CHECKING:
    from ..compiler import Compiler

Accepts = Callable[[str, str], bool]  # a function's name and JSON text: does its schema take the text?
_READINGS = 256
_M3 = "]<]minimax[>["


@dataclass(frozen=True, slots=True)
class Call:
    """One call; `arguments` is JSON text."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Begun:
    """The beginning of a call. `Part`s follow, then the `Call`, unless the text is cut off."""

    name: str


@dataclass(frozen=True, slots=True)
class Part:
    """The next characters of the arguments."""

    text: str


Item = str | Call | Begun | Part


# A mark in a chat template, and the style that its model writes. The first mark that occurs counts.
# Recipe, tool style 3: a text that only its chat templates have, above each mark that occurs in it.
_TEMPLATES = (
    ("func_name1(params_name1", "pythonic"),
    ("<｜DSML｜ calls>", "deepseek-v4.1"),
    ("<｜DSML｜tool_calls>", "deepseek-v4"),
    ("｜GCML｜", "gigachat-3.5"),
    ("<|function_call|>", "gigachat-3"),
    ("<dots_function_call>", "dots"),
    ("<iquest_tool_call>", "iquest-q1"),
    ("<ifm|tool_call>", "k2-horizon"),
    ("<longcat_tool_call>", "longcat"),
    ("<|plugin|>", "internlm"),
    ("<|tools_prefix|>", "apertus"),
    ("<|content_invoke_tool_json|>", "inkling"),
    ("<|plamo:begin_tool_request", "plamo3"),
    ("<|tool_call>call:", "gemma-4"),
    ("<start_function_call>", "functiongemma"),
    ("<|tool_call_start|>", "lfm2"),
    ("<function_calls>", "olmo3"),
    ("<tool_sep>", "hy-v3"),
    ('<function name="', "minicpm5"),
    ("<function_call>", "granite-20b"),
    ("]<]minimax[>[", "minimax-m3"),
    ("<minimax:tool_call>", "minimax"),
    ("｜DSML｜", "deepseek-v3.2"),
    ("<|open|>", "kimi-k3"),
    ("<steptml:", "step3"),
    ("<seed:tool_call>", "seed-oss"),
    ("<cofl:value", "cohere-xml"),
    ("<|START_ACTION|>", "command-r"),
    ("<|channel|>", "harmony"),
    ("<TOOLCALL>", "nemotron"),
    ("functools[", "phi4"),
    ("<|tool_call|>", "granite"),
    ("<|tool_calls_section_begin|>", "kimi-k2"),
    ("</arg_key><arg_value>", "glm-4.7"),
    ("<arg_key>", "glm"),
    ("<tool_calls>", "hunyuan"),
    ("<tool_call><function=", "mimo"),
    ("<function=", "qwen3-coder"),
    ('<tool_call>{"name"', "exaone"),
    ("<tool_call>", "hermes"),
    ("[ARGS]", "mistral-v11"),
    ("[TOOL_CALLS]", "mistral"),
    ("<|python_tag|>", "llama3"),
    ("Environment: ipython", "llama3"),
)


def style_of_template(template: str | None) -> str:
    """Returns the style of a model by its chat template."""
    text = template or ""
    if "<｜tool▁calls▁begin｜>" in text:
        return "deepseek-v3" if "```json" in text else "deepseek-v3.1"
    if marked := re.search(r"<tool_calls:([0-9A-Za-z]+)>", text):
        return f"{'hy-v3' if '<tool_sep' in text else 'hy-v4'}:{marked[1]}"
    return next((style for mark, style in _TEMPLATES if mark in text), "hermes")


class CallReader:
    """Reads a growing text.

    Args:
        style: a style, as `tools.row_of` takes it; or `tools.ARGUMENTS`, where `names` has one name.
        names: the functions that may be called; None: any name.
        accepts: whether the schema of a function accepts arguments. This decides between readings.
        stream: whether a call with JSON arguments is given piece by piece while it grows. If such a call is
            cut off, its text is not given again.
    """

    def __init__(self, style: str, names: list[str] | None, accepts: Accepts, stream: bool = False) -> None:
        self._alone = style == ARGUMENTS
        self._style: Style = Style("", "") if self._alone else known_row(style)
        self._accepts = accepts
        row = self._style
        self._mark = row.open or row.trigger
        # The names as calls have them, longest first, and what each stands for.
        self._meant = {row.written(name): name for name in names or ()}
        self._names = None if names is None else tuple(sorted(self._meant, key=len, reverse=True))
        self._text = ""
        self._inside = False  # between the marks of a section
        self._words = False  # the answer is free text, in a style where a whole answer is calls or text
        self._stream = stream and row.parameters == "json"
        self._open: _Growing | None = None
        self.calls: int = 0

    def feed(self, text: str) -> Iterator[Item]:
        """Adds text. Yields what is certain so far: free text, and calls that are complete."""
        self._text += text
        return self._read(last=False)

    def finish(self) -> Iterator[Item]:
        """Ends the text and gives the rest of it."""
        yield from self._read(last=True)
        if self._text:
            yield self._cut()

    def _cut(self, count: int | None = None) -> str:
        """Takes the first characters of the unread text, or all of it."""
        count = len(self._text) if count is None else count
        out, self._text = self._text[:count], self._text[count:]
        return out

    def _python(self, last: bool) -> Iterator[Item]:
        """Reads an answer that is a list of Python's calls as a whole."""
        if last and (found := calls_of(self._text, self._names)) is not None:
            self._text = ""
            self.calls += len(found)
            yield from (Call(name, arguments) for name, arguments in found)

    def _python_section(self) -> list[Call] | None:
        """Takes the section of Python's calls at the beginning of the text; None: no whole one is there."""
        row = self._style
        end = self._text.find(row.close, len(row.open))
        body = self._text[len(row.open) : end]
        if row.separator == "\n":  # a line that ends a call; line breaks may stand inside of a call, too
            body = re.sub(r"\)[ \t\r]*\n\s*(?=\S)", "), ", body)
        found = calls_of(f"[{body}]", self._names) if end >= 0 else None
        if found is None:
            return None
        self._text = self._text[end + len(row.close) :]
        self.calls += len(found)
        return [Call(name, arguments) for name, arguments in found]

    def _arguments(self, last: bool) -> Iterator[Item]:
        """Reads an answer that is the arguments of the only function."""
        if self._open is None and not self.calls and self._names is not None and len(self._names) == 1:
            self._open = _Growing(self._names[0])
        if self._open is None:
            return
        if self._stream:
            yield from self._grow(last)
        elif last and isinstance(_json(self._text)[0], dict):
            self.calls += 1
            yield Call(self._open.name, self._cut())

    def _read(self, last: bool) -> Iterator[Item]:
        if self._alone:
            yield from self._arguments(last)
            return
        python = self._style.parameters == "python"
        if self._style.whole and not self.calls and not self._inside and self._open is None:
            self._words = self._words or self._text.lstrip()[:1] not in ("", "[")
            if self._words and self._text:
                yield self._cut()
                return
        if self._style.whole and python:
            yield from self._python(last)
            return
        while self._text or self._open is not None:
            if self._open is not None:
                yield from self._grow(last)
                if self._open is not None:
                    return
                continue
            if not self._inside:
                at = self._text.find(self._mark)
                keep = 0 if last or at >= 0 else overlap(self._text, self._mark)
                before = self._cut(at if at >= 0 else len(self._text) - keep)
                if before:
                    yield before
                if at < 0:
                    return
                if python:
                    if (found := self._python_section()) is not None:
                        yield from found
                        continue
                    if self._style.close not in self._text and not last:
                        return
                    yield self._cut(len(self._mark))
                    continue
                if self._style.open:
                    self._cut(len(self._mark))
                    self._inside = True
                    continue
            elif self._skip_between():
                continue
            if self._stream and self._starts():
                continue
            one = self._call(last)
            if one is not None:
                call, end = one
                self._cut(end)
                if self._style.end and not self._inside:
                    self._text = self._text.lstrip("\n")
                self.calls += 1
                yield call
            elif self._inside or self._possible():
                return
            else:  # the mark begins no call: it is text
                yield self._cut(len(self._mark))

    def _skip_between(self) -> bool:
        """Skips the end of the section or a separator. Returns False if neither stands here."""
        row = self._style
        if row.close and self._text.startswith(row.close):
            self._cut(len(row.close))
            self._inside = False
            return True
        between = bool(row.separator and self.calls and self._text.startswith(row.separator))
        if between:
            self._cut(len(row.separator))
        return between

    def _possible(self) -> bool:
        """Returns whether the unread text can still become a call."""
        if self._begin.match(self._text) is not None:
            return True
        fixed = self._style.begin.partition("{index}")[0]
        if self._names is None:
            return fixed.partition("{name}")[0].startswith(self._text)
        return any(fixed.replace("{name}", name).startswith(self._text) for name in self._names)

    def _starts(self) -> bool:
        """Opens the call at the beginning of the text, if its arguments are an object; else False."""
        match = self._begin.match(self._text)
        if match is None or self._text[match.end() : match.end() + 1] != "{":
            return False
        self._cut(match.end())
        self._open = _Growing(self._name(match))
        return True

    def _name(self, match: re.Match[str]) -> str:
        return self._meant.get(match["name"], match["name"])

    @property
    def _begin(self) -> re.Pattern[str]:
        return _beginning(self._style.begin, self._names)

    def _grow(self, last: bool) -> Iterator[Item]:
        """Gives what the open call got, and the call itself once its object and the end mark were read.

        The end of the text closes the call, too.
        """
        call = self._open
        assert call is not None
        if not call.begun:
            call.begun = True
            yield Begun(call.name)
        count = call.read(self._text)
        if count:
            yield Part(self._cut(count))
        end = self._style.end
        if not call.complete:
            if last:
                self._open = None
            return
        if not last and not self._text.startswith(end) and end.startswith(self._text):
            return
        if self._text.startswith(end):
            self._cut(len(end))
            if end and not self._style.open:
                self._text = self._text.lstrip("\n")
        self.calls += 1
        self._open = None
        yield Call(call.name, "".join(call.parts))

    def _call(self, last: bool) -> tuple[Call, int] | None:
        """Returns the call at the beginning of the text and the place behind the call; None: there is no
        complete call."""
        row = self._style
        match = self._begin.match(self._text)
        if match is None:
            return None
        name, start = self._name(match), match.end()
        if row.parameters == "json":
            if not last and row.end and row.end not in self._text[start:]:
                return None
            try:
                _, end = json.JSONDecoder(strict=False).raw_decode(self._text, start)
            except (ValueError, RecursionError):
                return None
            if not self._text.startswith(row.end, end):
                return None
            return Call(name, self._text[start:end]), end + len(row.end)
        end = self._text.find(row.end, start)
        if end < 0:
            return None
        arguments = self._elements(name, self._text[start:end])
        return None if arguments is None else (Call(name, arguments), end + len(row.end))

    # ---- arguments as elements ----

    def _elements(self, name: str, body: str) -> str | None:
        row = elements.row_of(self._style.parameters)
        assert row is not None
        if row.ends[0]:
            value = _delimited_members(body, row.ends[0])
            return None if value is None else json.dumps(value, ensure_ascii=False)
        if not row.nested:
            members = _flat_members(self._style.parameters, body)
            if members is None:
                return None
            candidates: Iterator[Any] = _objects(members)
        else:
            candidates = iter(_cofl_values(body)) if row.item_close == _COFL_END else _nested_values(body)
        first: str | None = None
        for value in itertools.islice(candidates, _READINGS):
            text = json.dumps(value, ensure_ascii=False)
            if first is None:
                first = text
            if self._accepts(name, text):
                return text
        return first


class _Growing:
    """A JSON object that is read piece by piece."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parts: list[str] = []
        self.begun = False
        self._depth = 0
        self._in_string = False
        self._escaped = False

    @property
    def complete(self) -> bool:
        return bool(self.parts) and self._depth == 0

    def read(self, text: str) -> int:
        """Takes the characters of the text that belong to the object, and returns their number."""
        if self.complete:
            return 0
        count = len(text)
        for i, char in enumerate(text):
            if self._escaped:
                self._escaped = False
            elif self._in_string:
                self._escaped = char == "\\"
                self._in_string = char != '"'
            elif char == '"':
                self._in_string = True
            elif char in "{[":
                self._depth += 1
            elif char in "}]":
                self._depth -= 1
                if self._depth == 0:
                    count = i + 1
                    break
        if count:
            self.parts.append(text[:count])
        return count


_ANY_NAME = r'[^"\\<>\s\x00-\x1f]+?'


@functools.lru_cache(maxsize=64)
def _beginning(begin: str, names: tuple[str, ...] | None) -> re.Pattern[str]:
    """Returns the pattern of the beginning of a call.

    `names` are sorted, longest first; None: any name without blanks, quotes, backslashes and angle brackets.
    """
    written = _ANY_NAME if names is None else "|".join(map(re.escape, names))
    if names is None and begin.endswith("{name}"):
        written += r"(?=[\s<]|$)"
    pattern = re.escape(begin).replace(r"\{index\}", "[0-9]+")  # first: a name may hold the mark
    return re.compile(pattern.replace(r"\{name\}", f"(?P<name>{written})"))


def _flat_members(style: str, body: str) -> list[tuple[str, list[Any]]] | None:
    """Returns the key and the readings of each member, the likeliest reading first, or None if the text has
    another style."""
    row = elements.row_of(style)
    assert row is not None
    before, _, after = row.after.partition("{kind}")
    has_kind = "{kind}" in row.after
    kind = f"{re.escape(before)}(?P<kind>[a-z]*){re.escape(after)}" if has_kind else _loose(row.after)
    element = re.compile(
        rf"\s*{re.escape(row.before)}(?P<key>.*?){re.escape(row.middle)}{kind}(?P<value>.*?)"
        rf"{re.escape(row.close)}\s*",
        re.DOTALL,
    )
    members: list[tuple[str, list[Any]]] = []
    at = 0
    while at < len(body):
        match = element.match(body, at)
        if match is None:
            return None if body[at:].strip() else members
        key = match["key"]
        if row.entities:
            key = key.replace("&quot;", '"').replace("&amp;", "&")
        text = match["value"]
        raw = text.removeprefix("\n").removesuffix("\n") if row.newlines else text
        values: list[Any] = []
        said = match["kind"] if has_kind else None
        if said is None or said != row.kinds[0]:
            value, fine = _json(text)
            if fine and not isinstance(value, str):
                values.append(value)
        if said is None or said == row.kinds[0] or not values:
            values.append(raw)
        members.append((key, values))
        at = match.end()
    return members


def _delimited_members(body: str, mark: str) -> dict[str, Any] | None:
    """Returns the members of ``city:MARKRomeMARK,days:[1,2]``, or None if the text has another style."""
    parts = body.split(mark)
    parts[1::2] = map(json.dumps, parts[1::2])
    parts[::2] = [re.sub(r"[^\s:,{}\[\]]+(?=\s*:)", lambda key: json.dumps(key[0]), p) for p in parts[::2]]
    value, fine = _json("{" + "".join(parts) + "}")
    return value if fine and isinstance(value, dict) and len(parts) % 2 else None


def _loose(after: str) -> str:
    """Returns the pattern of the text after a key. A line break at its beginning may be left out."""
    return "\n?" + re.escape(after[1:]) if after.startswith("\n") else re.escape(after)


def _json(text: str) -> tuple[Any, bool]:
    try:
        return json.loads(text, parse_constant=no_constant), True
    except (ValueError, RecursionError):
        return None, False


def _nested_values(body: str) -> Iterator[Any]:
    """Returns the readings of nested elements of MiniMax M3, which stand for members and items."""
    tokens = re.split(rf"({re.escape(_M3)}</?[^>]*>)", body)
    try:
        tree, _ = _tree([t for t in tokens if t], 0, None)
    except (ValueError, RecursionError):
        return
    yield from _readings(tree, top=True)


_COFL_END = "</cofl:value>"
_COFL = re.compile(r'\s*(?:<cofl:value(?: name="([^"]*)")? type="(raw|json|list|dict)">|(</cofl:value>)|$)')


def _cofl_values(body: str) -> list[Any]:
    """Returns the reading of Cohere's elements, which stand for members and items; none: another style."""

    def inside(at: int, kind: str) -> tuple[Any, int]:
        """Returns the value of an element, and the place behind the element."""
        if kind in ("raw", "json"):
            end = body.index(_COFL_END, at)
            text = body[at:end]
            return text if kind == "raw" else json.loads(text, parse_constant=no_constant), end + len(
                _COFL_END
            )
        members: list[tuple[str | None, Any]] = []
        while True:
            mark = _COFL.match(body, at)
            if mark is None:
                raise ValueError("text between elements")
            if mark[2] is None:
                names = [name for name, _ in members]
                if any((name is None) != (kind == "list") for name in names) or bool(mark[3]) == (
                    kind == "top"
                ):
                    raise ValueError("a name too few or too many, or an element without an end")
                values = [value for _, value in members]
                read = values if kind == "list" else dict(zip(names, values, strict=True))
                return read, mark.end()
            value, at = inside(mark.end(), mark[2])
            members.append((mark[1] and html.unescape(mark[1]), value))

    try:
        return [inside(0, "top")[0]]
    except (ValueError, RecursionError):
        return []


def _objects(members: list[tuple[str, list[Any]]]) -> Iterator[dict[str, Any]]:
    """Returns the objects of every choice among the readings of each key."""
    keys = [key for key, _ in members]
    for values in itertools.product(*(values for _, values in members)):
        yield dict(zip(keys, values, strict=True))


_Tree = tuple[str, list[tuple[str, Any]]]  # the text, and elements (name, tree)


def _tree(tokens: list[str], at: int, name: str | None) -> tuple[_Tree, int]:
    text = ""
    children: list[tuple[str, _Tree]] = []
    while at < len(tokens):
        token = tokens[at]
        if token.startswith(f"{_M3}</"):
            if token != f"{_M3}</{name}>":
                raise ValueError(token)
            return (text, children), at + 1
        if token.startswith(_M3):
            child = token[len(_M3) + 1 : -1]
            tree, at = _tree(tokens, at + 1, child)
            children.append((child, tree))
            continue
        text += token
        at += 1
    if name is not None:
        raise ValueError("an element has no end")
    return (text, children), at


def _readings(tree: _Tree, top: bool = False) -> Iterator[Any]:
    text, children = tree
    if children or top:
        options = [list(itertools.islice(_readings(child), 8)) for _, child in children]
        names = [name for name, _ in children]
        if not top and all(name == "item" for name in names):
            yield from (list(values) for values in itertools.product(*options))
        if len(set(names)) == len(names):
            yield from _objects(list(zip(names, options, strict=True)))
        return
    value, fine = _json(text)
    if fine and not isinstance(value, str):
        yield value
    yield text
    if not text.strip():
        yield {}
        yield []


# ---- replies: calls with arguments of Python ----


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model made: the function's name, and its arguments by name.

    The arguments of a Python function have the types of its signature.
    """

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolReply:
    """An answer where tools may be called: the free text of the model, and its calls in order."""

    text: str
    calls: list[ToolCall]


def parse_tool_calls(text: str, *, style: str = "hermes", tools: Any = None) -> ToolReply:
    """Returns the calls in a model's text, and the free text around them: the inverse of `Compiler.tools`.

    Texts of models without a grammar are read, too: an incomplete call stays text.

    Args:
        text: the text, with its special tokens written as their names.
        style: as in `Compiler.tools`.
        tools: as in `Compiler.tools`. A call of another name is then text, and arguments of Python functions
        have the types of their signatures. If a style does not write the type of a value, the function's
        schema decides. None: every name is a function's, and a value that
            can be read as JSON is.

    Raises:
        ValueError: an unknown style. GrammarError: the tools are not valid, or a Python function does not
            take the arguments of a call.
    """
    from ..checking import bytes_compiler

    if not isinstance(text, str):
        raise TypeError(f"a text is a str, not {text!r:.60}")
    known_row(style)
    return reply(text, style, tools, bytes_compiler())


def known_row(style: str) -> Style:
    """Returns the row of a style. Raises a ValueError if the style is unknown."""
    row = row_of(style)
    if row is None:
        raise ValueError(f"{style!r} is no style{known_or_meant(style)}")
    return row


def known_or_meant(style: str) -> str:
    """Returns the end of an error about an unknown style."""
    return meant(str(style), STYLES) or f"; known: {', '.join(STYLES)}"


def reply(text: str, style: str, tools: Any, compiler: Compiler) -> ToolReply:
    """`parse_tool_calls` with a compiler, which decides between the readings of arguments."""
    known = None if tools is None else {described(tool)["function"]["name"]: tool for tool in listed(tools)}

    def accepts(name: str, arguments: str) -> bool:
        if known is None:
            return True
        try:
            schema = described(known[name])["function"]["parameters"]
            return compiler.json_schema(schema, property_order="any")._holds(arguments)
        except (StructgenError, ValueError, RecursionError):
            return False

    reader = CallReader(style, None if known is None else list(known), accepts)
    words, calls = "", []
    for item in (*reader.feed(text), *reader.finish()):
        if isinstance(item, str):
            words += item
        elif isinstance(item, Call):
            if known is None:
                arguments = json.loads(item.arguments, strict=False)
            else:
                arguments = _arguments_of(known[item.name], item)
            calls.append(ToolCall(item.name, arguments))
    return ToolReply(words, calls)


def _arguments_of(tool: Any, call: Call) -> dict[str, Any]:
    from .python_types import parser_of_arguments

    try:
        return cast(dict[str, Any], parser_of_arguments(tool)(call.arguments))
    except StructgenError:
        raise
    except ValueError as error:  # pydantic's error about a call that no grammar held to the signature
        found: list[Any] = getattr(error, "errors", list)()
        words = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in found[:3]) or str(error)
        raise GrammarError(f"a call of {call.name!r} has arguments that it does not take: {words}") from None


def partial_reply(
    style: str, tools: list[Any], arguments: Callable[[str], dict[str, Any]]
) -> Callable[[str], ToolReply]:
    """Returns a function from the beginning of a text with calls to the reply as far as it is known.

    Args:
        tools: the tools that may be called.
        arguments: reads the beginning of a call's arguments.
    """
    names = [described(tool)["function"]["name"] for tool in tools]

    def read(text: str) -> ToolReply:
        words, calls, parts = "", [], ""
        for item in CallReader(style, names, lambda name, text: True, True).feed(text):
            if isinstance(item, str):
                words += item
            elif isinstance(item, Begun):
                calls.append(ToolCall(item.name, {}))
                parts = ""
            elif isinstance(item, Part):
                parts += item.text
                calls[-1] = ToolCall(calls[-1].name, arguments(parts))
            elif parts:
                parts = ""
            else:
                calls.append(ToolCall(item.name, arguments(item.arguments)))
        return ToolReply(words, calls)

    return read
