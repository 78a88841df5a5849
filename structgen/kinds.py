"""The kinds of constraints, a row for each kind. Calls, commands, requests and saved files share the rows.

Enters: a kind's name and a value: a text, an object or a Python type. Leaves: a grammar, or an error about
the value. Cost: that of the compile.

A kind has several names. `sg.generate(choice=...)` is an argument, `Compiler.compile("choice", ...)` is what
serving engines send between processes, `guided_choice` is a field of a request. A program gives Python's
objects, which `check` inspects. A request gives JSON, which `read` turns into the same value. `compile` makes
the grammar in both cases. An example: `choice` takes an Enum from a program and '["yes", "no"]' from a
request.

Answers of a server are read by programs: numbers and strings are plain and gaps narrow in `compile_kind`
unless the caller says otherwise. JSON's whole language lets a model sample `15.000000...`, 32 blanks, or
`"\\u0078"` for `"x"`.
"""

from __future__ import annotations

import enum
import json
import os
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import GrammarError
from .frontend.source import is_ebnf, meant
from .frontend.tool_lists import listed
from .frontend.tools import Strictness
from .grammar import CompiledGrammar
from .json_options import JSON_NAMES, SENT_NAMES, SERVED, STYLE_NAMES, style_in
from .templates import Template

if TYPE_CHECKING:
    from .compiler import Compiler

__all__ = [
    "ALIASES",
    "ARGUMENTS",
    "KINDS",
    "TOOL_OPTIONS",
    "Kind",
    "Strictness",
    "compile_kind",
    "response_format",
]

TOOL_OPTIONS = ("tool_choice", "tool_style", "parallel_tool_calls", "tool_strictness")
KindOptions = dict[str, Any]  # the options of JsonOptions, `on_limit`, and TOOL_OPTIONS for tools
_OPTIONS = {*JSON_NAMES, "on_limit"}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of constraint.

    Attributes:
        compile: makes the grammar of a value. Options of other kinds have no effect.
        read: the value that a request's text or JSON stands for. GrammarError: it stands for no value.
        argument: the argument of `sg.generate`; None if only requests can name this kind.
        check: raises TypeError or ValueError if a program gives the argument an unsuitable value.
        fields: the fields of a request to the server.
        options: the kind's options beside those of JSON.
        saved: the options that a saved compiler may name; empty if grammars of this kind are not saved.
    """

    compile: Callable[[Compiler, Any, KindOptions], CompiledGrammar]
    read: Callable[[Any], Any]
    argument: str | None = None
    check: Callable[[Any], None] = lambda value: None
    fields: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    saved: frozenset[str] = frozenset()


def compile_kind(compiler: Compiler, name: str, value: Any, options: KindOptions) -> CompiledGrammar:
    """See `Compiler.compile`."""
    kind = KINDS.get(ALIASES.get(name, name)) if isinstance(name, str) else None
    if kind is None:
        known = [*KINDS, *ALIASES]
        raise ValueError(f"unknown kind {name!r}{meant(str(name), known)}; known: {', '.join(known)}")
    unknown = sorted(options.keys() - _OPTIONS - set(kind.options))
    if unknown and kind is not KINDS["json_schema"]:  # json_schema() itself suggests the nearest name.
        raise TypeError(f"a constraint of kind '{name}' takes no option {unknown[0]!r}")
    return kind.compile(compiler, kind.read(value), {**SERVED, **options})


# ---- JSON ----


def _read_schema(value: Any) -> Any:
    if value is None:  # In Python None is a type; in a request it means that the field is missing.
        raise GrammarError(
            "there is no schema: a constraint of kind 'json_schema' is a JSON text or an object"
        )
    return value


def _check_schema(value: Any) -> None:
    if isinstance(value, str):
        try:
            json.loads(value)
        except RecursionError:
            return
        except ValueError:
            _no_document(value)
    elif isinstance(value, re.Pattern):
        raise TypeError(f"schema= takes a JSON Schema, not a pattern: give regex={value.pattern!r:.60}")


def _no_document(value: str) -> None:
    """Raises ValueError if a text that is not JSON is probably meant as something else, such as a file
    name."""
    text = value.strip()
    if text[:1] in tuple('{["') or text in ("true", "false"):
        return  # The text is broken JSON; the compiler's error names the place.
    short = len(value) < 4096 and "\n" not in value
    if short and (os.path.exists(value) or value.endswith((".json", ".yaml", ".yml"))):
        raise ValueError(
            f"schema={value!r:.80} is a text, not a file: give schema=pathlib.Path({value!r:.80})"
        )
    if "::=" in value:
        raise ValueError("schema= takes JSON, and this is a grammar: give it as gbnf= or grammar=")


def _read_nothing(value: Any) -> None:
    if value not in (None, "", {}, "{}", True):
        raise GrammarError(f"json_object takes no text (it stands for any object), not {value!r:.60}")


def _any_object(compiler: Compiler, value: None, options: KindOptions) -> CompiledGrammar:
    return compiler.json_schema({"type": "object"}, **options)


def _read_json(value: Any) -> Any:
    if not isinstance(value, str | bytes):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"invalid JSON: {error}") from None


def _check_format(value: Any) -> None:
    if isinstance(value, str | os.PathLike):
        raise TypeError(
            f'response_format= takes OpenAI\'s object {{"type": "json_schema", ...}} or a Python type, '
            f"not {value!r:.60}"
        )
    if isinstance(value, dict) and value.get("type") not in _FORMATS:
        raise GrammarError(
            f"the type of response_format= {_no_format(value)}. A JSON Schema by itself is schema="
        )


_FORMATS = ("text", "json_object", "json_schema", "structural_tag", "grammar", "regex")


def _no_format(spec: dict[str, Any]) -> str:
    kind = spec.get("type")
    said = "is missing" if kind is None else f"is no {kind!r:.80}"
    return f"{said}; known: {', '.join(_FORMATS)}"


def response_format(spec: dict[str, Any], field: str = "response_format") -> tuple[str, Any] | None:
    """Returns the kind and the value that OpenAI's object asks for. Forms of llama.cpp and other servers are
    read, too.

    Args:
        field: the name of the object in errors.

    Returns:
        None if the object allows any text.

    Raises:
        GrammarError: the object is malformed; `pointer` leads from the object to the wrong member.
    """
    kind = spec.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        given = spec.get("schema")  # llama.cpp takes a schema here.
        return ("json_object", None) if given is None else ("json_schema", given)
    if kind == "structural_tag":
        return kind, spec
    if kind in ("grammar", "regex"):
        text = spec.get(kind, spec.get("pattern"))
        if not isinstance(text, str):
            raise _wrong(field, f"/{kind}", "must be a text")
        return kind, text
    if kind != "json_schema":
        raise _wrong(field, "/type", _no_format(spec))
    inner = spec.get("json_schema", spec)
    if not isinstance(inner, dict) or not isinstance(inner.get("schema"), (dict, bool)):
        given = isinstance(inner, dict) and "schema" in inner
        # /v1/responses has the schema itself in `text.format`.
        nested = "json_schema" in spec or ("schema" not in spec and field == "response_format")
        place = "/json_schema/schema" if nested else "/schema"
        raise _wrong(field, place, "must be an object or a boolean" if given else "is missing")
    return kind, inner["schema"]


def _wrong(field: str, pointer: str, words: str) -> GrammarError:
    error = GrammarError(f"'{field}{pointer.replace('/', '.')}' {words}")
    error.pointer = pointer
    return error


def _of_format(compiler: Compiler, value: Any, options: KindOptions) -> CompiledGrammar:
    if not isinstance(value, dict):
        return compiler.json_schema(value, **options)
    found = response_format(value) or ("regex", "(?s:.*)")
    return KINDS[found[0]].compile(compiler, found[1], options)


# ---- texts ----


def _read_text(kind: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, str):
            raise GrammarError(f"a constraint of kind '{kind}' is a text, not {type(value).__name__}")
        return value

    return read


def _check_text(argument: str, takes: str) -> Callable[[Any], None]:
    def check(value: Any) -> None:
        if isinstance(value, CompiledGrammar) and argument != "grammar":
            raise TypeError(f"{argument}= takes {takes}; a compiled grammar is grammar=")
        if isinstance(value, Template) and argument == "grammar":
            return
        if not isinstance(value, str | os.PathLike | CompiledGrammar):
            raise TypeError(f"{argument}= takes {takes}, not {value!r:.60}")

    return check


def _check_regex(value: Any) -> None:
    if not isinstance(value, str | re.Pattern | os.PathLike):
        raise TypeError(f"regex= takes a pattern, a text: r'[0-9]+', not {value!r:.60}")


def _by(method: str, styled: bool = False) -> Callable[[Compiler, Any, KindOptions], CompiledGrammar]:
    """Returns a `Kind.compile` that calls a method of `Compiler`. `styled`: the method takes options of
    JSON."""

    def compiled(compiler: Compiler, value: Any, options: KindOptions) -> CompiledGrammar:
        style = style_in(options) if styled else {}
        made: CompiledGrammar = getattr(compiler, method)(value, on_limit=options.get("on_limit"), **style)
        return made

    return compiled


_regex, _gbnf, _lark, _tag = _by("regex"), _by("gbnf"), _by("lark", True), _by("structural_tag", True)


def _grammar(compiler: Compiler, value: Any, options: KindOptions) -> CompiledGrammar:
    if isinstance(value, Template):
        return value.compile(compiler)
    return (_gbnf if is_ebnf(value) else _lark)(compiler, value, options)


def _read_choice(value: Any) -> Any:
    given = value
    if isinstance(value, str | bytes):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, list | tuple):
        raise GrammarError(
            f'a choice is a list of texts, or that list as JSON: ["yes", "no"], not {given!r:.60}'
        )
    for text in value:
        if not isinstance(text, str):
            raise GrammarError(f'a choice is made of a list of texts: ["yes", "no"], not {given!r:.60}')
    return value


def _check_choice(value: Any) -> None:
    if isinstance(value, type) and issubclass(value, enum.Enum):
        if not list(value) or not all(isinstance(member.value, str) for member in value):
            raise TypeError(
                f"choice= takes an Enum whose values are texts, not {value.__name__}: use schema="
            )
        return
    texts = typing.get_args(value) if typing.get_origin(value) is typing.Literal else value
    if isinstance(texts, str | bytes | os.PathLike | Mapping) or not hasattr(texts, "__iter__"):
        raise TypeError(f'choice= takes a list of texts: ["yes", "no"], not {value!r:.60}')
    if not isinstance(texts, Sequence | set | frozenset | dict):
        raise TypeError(
            f'choice= takes a list of texts: ["yes", "no"], not {value!r:.60}; list(...) makes one'
        )
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(
                f'choice= takes a list of texts: ["yes", "no"], and {text!r:.60} is none; '
                'schema={"enum": [...]} takes other values'
            )


def _choice(compiler: Compiler, value: Any, options: KindOptions) -> CompiledGrammar:
    if isinstance(value, type):
        value = [member.value for member in typing.cast(Any, value)]
    return compiler.choice(typing.get_args(value) or value, on_limit=options.get("on_limit"))


# ---- tools and tags ----


def _check_tools(value: Any) -> None:
    hint = (
        "; put it into a list" if callable(value) or (isinstance(value, Mapping) and "name" in value) else ""
    )
    if hint or isinstance(value, str | bytes):
        raise TypeError(
            f"tools= takes a list of functions, OpenAI's objects or MCP's tools, not {value!r:.60}{hint}"
        )
    if not listed(value):
        raise ValueError("tools= is empty: leave it out, or give a function")


def _tools(compiler: Compiler, value: Any, options: KindOptions) -> CompiledGrammar:
    given = {name: options.get(name) for name in TOOL_OPTIONS}
    return compiler.tools(
        value,
        "auto" if given["tool_choice"] is None else given["tool_choice"],
        style=given["tool_style"] or "hermes",
        parallel=given["parallel_tool_calls"] is not False,
        strictness=given["tool_strictness"] or "parameter",
        reasoning=options.get("reasoning"),
        extra_keys=options.get("extra_keys"),
        digits=options.get("digits"),
        on_limit=options.get("on_limit"),
        **style_in(options),
    )


_OUTPUTS = "structured_outputs"  # vLLM's field, whose members are the kinds

# Recipe, dialect 3: a row.
KINDS: dict[str, Kind] = {
    "json_schema": Kind(
        lambda compiler, value, options: compiler.json_schema(value, **options),
        _read_schema,
        "schema",
        _check_schema,
        (f"{_OUTPUTS}.json", "guided_json", "json_schema"),
        saved=frozenset({*SENT_NAMES, "on_limit"}),
    ),
    "json_object": Kind(_any_object, _read_nothing, fields=(f"{_OUTPUTS}.json_object",)),
    "regex": Kind(
        _regex,
        _read_text("regex"),
        "regex",
        _check_regex,
        (f"{_OUTPUTS}.regex", "guided_regex"),
        saved=frozenset({"on_limit"}),
    ),
    "choice": Kind(_choice, _read_choice, "choice", _check_choice, (f"{_OUTPUTS}.choice", "guided_choice")),
    "gbnf": Kind(
        _gbnf,
        _read_text("gbnf"),
        "gbnf",
        _check_text("gbnf", "the text of a grammar in GBNF, or a Path to one"),
        saved=frozenset({"root", "on_limit"}),
    ),
    "lark": Kind(
        _lark,
        _read_text("lark"),
        "lark",
        _check_text("lark", "the text of a Lark grammar, or a Path to one"),
        saved=frozenset({"start", "lexer", *STYLE_NAMES, "on_limit"}),
    ),
    "grammar": Kind(
        _grammar,
        _read_text("grammar"),
        "grammar",
        _check_text(
            "grammar", "a compiled grammar, a template, the text of a grammar in GBNF or Lark, or a Path"
        ),
        (f"{_OUTPUTS}.grammar", "guided_grammar", "grammar"),
    ),
    "structural_tag": Kind(_tag, lambda value: value, fields=(f"{_OUTPUTS}.structural_tag",)),
    "tools": Kind(_tools, _read_json, "tools", _check_tools, options=TOOL_OPTIONS),
    "response_format": Kind(
        _of_format, _read_json, "response_format", _check_format, ("response_format", "text.format")
    ),
}
# Other names that hosts use for kinds.
ALIASES = {"json": "json_schema", "ebnf": "gbnf"}
# Each argument that names a constraint, and its kind. A call takes one of these arguments.
ARGUMENTS = {kind.argument: name for name, kind in KINDS.items() if kind.argument is not None}
