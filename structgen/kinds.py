"""Constraints as hosts send them: a kind's name and a text.

Enters: a kind, a text (or the object that it is the JSON of), options of JSON. Leaves: a grammar, or for
`check` the report of what constrains nothing. Cost: that of the compile.

Serving engines keep a request's constraint as such a pair, because it travels between processes. Answers of a
server are read by programs: numbers and strings are plain and gaps narrow here unless the caller says
otherwise. JSON's whole language lets a model sample `15.000000...`, 32 blanks, or `"\\u0078"` for `"x"`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .errors import GrammarError
from .frontend.source import is_ebnf, meant
from .json_options import JSON_NAMES, style_in

if TYPE_CHECKING:
    from .compiler import Compiler
    from .grammar import CompiledGrammar

__all__ = ["KINDS", "compile_kind"]

_OPTIONS = {*JSON_NAMES, "on_limit"}
_JSON = {"whitespace": "one-blank", "numbers": "plain", "strings": "plain"}


def compile_kind(compiler: Compiler, kind: str, text: Any, options: dict[str, Any]) -> CompiledGrammar:
    """See `Compiler.compile`."""
    found = KINDS.get(kind) if isinstance(kind, str) else None
    if found is None:
        raise ValueError(f"unknown kind {kind!r}{meant(str(kind), KINDS)}; known: {', '.join(KINDS)}")
    return found(compiler, text, options)


def _json_schema(compiler: Compiler, text: Any, options: dict[str, Any]) -> CompiledGrammar:
    if text is None:  # a type in Python; in a request a field that is missing
        raise GrammarError(
            "there is no schema: a constraint of kind 'json_schema' is a JSON text or an object"
        )
    return compiler.json_schema(text, **{**_JSON, **options})


def _json_object(compiler: Compiler, text: Any, options: dict[str, Any]) -> CompiledGrammar:
    if text not in (None, "", {}, "{}"):
        raise GrammarError(f"json_object takes no text (it stands for any object), not {text!r:.60}")
    return compiler.json_schema({"type": "object"}, **{**_JSON, **options})


def _choice(compiler: Compiler, text: Any, options: dict[str, Any]) -> CompiledGrammar:
    _no_options("choice", options)
    if isinstance(text, str | bytes):
        try:
            text = json.loads(text)
        except (ValueError, RecursionError):
            raise GrammarError(
                f'a choice is a list of texts, or that list as JSON: ["yes", "no"], not {text!r:.60}'
            ) from None
    if not isinstance(text, list | tuple):
        raise GrammarError(
            f'a choice is a list of texts, or that list as JSON: ["yes", "no"], not {text!r:.60}'
        )
    try:
        return compiler.choice(text, on_limit=options.get("on_limit"))
    except TypeError as error:  # of a request, not of a program
        raise GrammarError(str(error)) from None


def _plain(name: str, method: str) -> Callable[[Compiler, Any, dict[str, Any]], CompiledGrammar]:
    def made(compiler: Compiler, text: Any, options: dict[str, Any]) -> CompiledGrammar:
        _no_options(name, options)
        if not isinstance(text, str):
            raise GrammarError(f"a constraint of kind '{name}' is a text, not {type(text).__name__}")
        grammar: CompiledGrammar = getattr(compiler, method)(text, on_limit=options.get("on_limit"))
        return grammar

    return made


def _with_schemas(name: str) -> Callable[[Compiler, Any, dict[str, Any]], CompiledGrammar]:
    """A kind that may have JSON Schemas in it, which are written as a schema alone is."""

    def made(compiler: Compiler, text: Any, options: dict[str, Any]) -> CompiledGrammar:
        _no_options(name, options)
        if name != "structural_tag" and not isinstance(text, str):
            raise GrammarError(f"a constraint of kind '{name}' is a text, not {type(text).__name__}")
        if name == "grammar" and is_ebnf(text):
            return compiler.gbnf(text, on_limit=options.get("on_limit"))
        style = style_in({**_JSON, **options})
        compiled: CompiledGrammar = getattr(
            compiler, "structural_tag" if name == "structural_tag" else "lark"
        )(text, on_limit=options.get("on_limit"), **style)
        return compiled

    return made


def _no_options(kind: str, options: dict[str, Any]) -> None:
    """Hosts pass their JSON options along with every kind: those alone are taken. They mean something where
    schemas may stand in a grammar."""
    unknown = sorted(options.keys() - _OPTIONS)
    if unknown:
        raise TypeError(f"a constraint of kind '{kind}' takes no option {unknown[0]!r}")


# Recipe, dialect 3: a row.
KINDS: dict[str, Callable[[Compiler, Any, dict[str, Any]], CompiledGrammar]] = {
    "json_schema": _json_schema,
    "json": _json_schema,
    "json_object": _json_object,
    "regex": _plain("regex", "regex"),
    "choice": _choice,
    "gbnf": _plain("gbnf", "gbnf"),
    "ebnf": _plain("ebnf", "gbnf"),
    "lark": _with_schemas("lark"),
    "grammar": _with_schemas("grammar"),
    "structural_tag": _with_schemas("structural_tag"),
}
