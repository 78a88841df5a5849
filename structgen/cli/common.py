"""Functions that sub-commands share: reading input, options of a schema, vocabularies, readable bytes.

Enters: flags and files. Leaves: a `Constraint`, a model, a vocabulary, or a `Failure` in one line. Cost: that
of the files; torch and transformers are loaded only for a model that needs them.

The problem. Many commands take the same constraints, and a mistake in any of them has to be one line and no
traceback. Flags and the arguments of Python must not drift apart.

The idea. `add_constraint_options` adds the flags, and `constraint` reads them into the `Constraint` that
`sg.generate` uses. For the flags `--regex "[0-9]+" --max-bytes 4` it is a pattern with the condition
`max_bytes(4)`.

The flags of JSON are made from the fields of `JsonOptions` (`add_schema_options`): a new option of JSON is a
flag without a line here.

Invariants.
- A mistake of the user is a `Failure`; it names the file, `-` as standard input.
- Standard input is read once, for one purpose (`Inputs`).
- Results go to standard output; `note` writes progress and remarks to standard error.
- A warning is printed once for each command that runs (`warn_once`).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import enum
import functools
import importlib
import json
import logging
import operator
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from structgen._readable import Place, allowed_here, place, quoted, ranges, spellings, visible
from structgen._siblings import beside, in_folder
from structgen.conditions import Condition, containing, max_bytes, min_bytes, without
from structgen.constraints import Constraint, constraint_of
from structgen.frontend.tools import STRICTNESS
from structgen.json_options import JSON_NAMES, JsonOptions
from structgen.kinds import TOOL_OPTIONS

if TYPE_CHECKING:
    from structgen import CompiledGrammar, Compiler, Matcher, Vocabulary
    from structgen.lm.base import LanguageModel

OK, REJECTED, USAGE = 0, 1, 2

__all__ = [
    "OK", "REJECTED", "USAGE", "Commands", "Failure", "Inputs", "Place", "add_asking_options",
    "add_constraint_options", "add_document_options", "add_drawing_options", "add_model_option",
    "add_registry_option", "add_tokenizer_option", "allowed_here", "byte_vocabulary", "called", "compiled",
    "constraint", "failing", "given", "json_options", "load_model", "milliseconds", "needed", "note",
    "one_line", "parsed", "place", "plural", "print_record", "quoted", "ranges", "registry", "spellings",
    "stand_at", "taken", "visible", "vocabulary", "writable",
]  # fmt: skip


class Failure(Exception):
    """A mistake of the user, in one line."""


def one_line(text: str) -> str:
    """Returns the first line of a message. The other lines show a source line and a caret, which need a
    terminal."""
    return text.strip().split("\n")[0].strip()


def note(text: str) -> None:
    """Prints progress or a remark to standard error."""
    print(text, file=sys.stderr, flush=True)


_warned: set[str] = set()  # the warnings that the running command has printed


def forget_warnings() -> None:
    _warned.clear()


def warn_once(text: str, place: str = "") -> None:
    """Prints a warning once for each command, because each result repeats the warnings of its schema."""
    if text not in _warned and place + text not in _warned:
        _warned.add(place + text)
        note(f"structgen: warning: {place}{text}")


def called(name: str) -> str:
    """Returns a file's name for messages."""
    return "standard input" if name == "-" else name


@contextlib.contextmanager
def failing(what: str) -> Iterator[None]:
    """Turns an OSError of the body into the Failure "cannot WHAT: the reason"."""
    try:
        yield
    except OSError as error:
        raise Failure(f"cannot {what}: {error.strerror or error}") from None


class Inputs:
    """Reads files by name. `-` is standard input, which can be read once."""

    def __init__(self) -> None:
        self._taken = ""

    def read(self, name: str, what: str) -> str:
        """Returns the text of a file. Failure: it is missing, a folder or not UTF-8, or `-` is used twice."""
        if name == "-" and self._taken:
            raise Failure(f"standard input is read once: it is the {self._taken} already")
        shown = f"the {what} {called(name)}"
        with failing(f"read {shown}"):
            if name != "-":
                data = Path(name).read_bytes()
            else:
                self._taken = what
                data = sys.stdin.buffer.read()
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise Failure(f"{shown} is not UTF-8 (byte {error.start})") from None

    def schema(self, name: str, what: str = "schema") -> tuple[str, dict[str, Any]]:
        """Returns the text of a file, and the documents beside it that it refers to."""
        text = self.read(name, what)
        return text, beside(name, text) if os.path.exists(name) else {}


def add_asking_options(parser: argparse.ArgumentParser) -> None:
    """Adds the flags for one prompt and the model that reads it."""
    parser.add_argument("--prompt", required=True, metavar="TEXT", help="one request in plain words")
    add_model_option(parser)


def add_drawing_options(
    parser: argparse.ArgumentParser,
    temperature: float | None = 1.0,
    how: str = "(default: 1)",
    seed: int | None = None,
    max_tokens: int = 256,
) -> None:
    """Adds the flags for drawing tokens, with these defaults. `how` is the help text about 0 and no value."""
    parser.add_argument(
        "--max-tokens", type=int, default=max_tokens, metavar="N", help=f"of a text (default: {max_tokens})"
    )
    parser.add_argument("--temperature", type=float, default=temperature, metavar="T", help=how)
    parser.add_argument("--seed", type=int, default=seed, help="repeats the draws")


def add_model_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="PATH", help="a folder or hub id (default: the embedded model)")


def add_constraint_options(
    parser: argparse.ArgumentParser, defaults: Mapping[str, Any] | None = None
) -> None:
    """Adds the flags for constraints, with the options of JSON. `constraint` reads them.

    Args:
        defaults: the defaults of options of JSON that differ from those of `JsonOptions`. None as a default
            lets the
            command choose, as `sg.edit` chooses from the document.
    """
    group = parser.add_argument_group("what the text must be (one of these)")
    group.add_argument("--schema", metavar="FILE", help="a JSON Schema: a file, -, or the JSON itself")
    group.add_argument("--type", metavar="MODULE:NAME", help="a Python type, such as orders:Order")
    group.add_argument("--regex", metavar="PATTERN", help="a pattern that the whole text matches")
    group.add_argument("--choice", metavar="TEXT", nargs="+", help="one of these texts")
    group.add_argument("--gbnf", metavar="FILE", help="a grammar in GBNF, or -")
    group.add_argument("--lark", metavar="FILE", help="a Lark grammar, or -")
    group.add_argument("--grammar", metavar="FILE", help="a grammar in either dialect, or -")
    group.add_argument(
        "--tools",
        metavar="FILE",
        help="a JSON list of tools as OpenAI writes them, what an MCP client lists, or -",
    )
    group.add_argument("--response-format", metavar="FILE", help="OpenAI's object of that name, or -")
    group = parser.add_argument_group("what the whole text must meet, too")
    group.add_argument("--without", metavar="TEXT", nargs="+", help="none of these occurs in it")
    group.add_argument("--containing", metavar="TEXT", nargs="+", help="one of these occurs in it")
    group.add_argument("--max-bytes", metavar="N", type=int, help="it has at most so many bytes")
    group.add_argument("--min-bytes", metavar="N", type=int, help="it has at least so many bytes")
    group = parser.add_argument_group("options of --tools")
    group.add_argument("--tool-choice", metavar="CHOICE", help="auto (the default), required, none or a name")
    group.add_argument("--tool-style", metavar="STYLE", help="how calls are written (default: as the model)")
    group.add_argument(
        "--parallel-tool-calls",
        action=argparse.BooleanOptionalAction,
        help="several calls (the default) or one",
    )
    add_strictness(group)
    add_schema_options(parser, {"numbers": "any", "strings": "any", **(defaults or {})})


def add_strictness(group: Any, default: str | None = None) -> None:
    """Adds the flag for the argument `strictness` of `Compiler.tools`."""
    group.add_argument(
        "--tool-strictness",
        choices=STRICTNESS,
        default=default,
        help="how far calls are held: to their functions' parameters (the default), to the form of a call, "
        "or as each tool's `strict` says",
    )


def condition(options: argparse.Namespace) -> Condition | None:
    """Returns the conjunction of --without, --containing, --max-bytes and --min-bytes; None if none is
    given."""
    parts: list[Condition] = []
    if options.without:
        parts.append(without(*options.without))
    if options.containing:
        parts.append(containing(*options.containing))
    if options.max_bytes is not None:
        parts.append(max_bytes(options.max_bytes))
    if options.min_bytes is not None:
        parts.append(min_bytes(options.min_bytes))
    return functools.reduce(operator.and_, parts) if parts else None


_FILES = ("schema", "gbnf", "lark", "grammar", "tools", "response_format")


def constraint(options: argparse.Namespace, inputs: Inputs, schema: str | None = None) -> Constraint | None:
    """Returns the constraint that the options name; None if they name none.

    Args:
        schema: a file that takes the place of --schema.

    Raises:
        Failure: two constraints, a file that cannot be read, an unknown type.
    """
    given: dict[str, Any] = {name: getattr(options, name) for name in (*_FILES, "regex", "choice", "type")}
    if schema is not None:
        given["schema"] = schema
    wanted = [name for name, value in given.items() if value is not None]
    if len(wanted) > 1:
        flags = " and ".join("--" + name.replace("_", "-") for name in wanted)
        raise Failure(f"one constraint at a time, not {flags}")
    try:
        met = condition(options)
    except (TypeError, ValueError) as error:
        raise Failure(str(error)) from None
    if not wanted and (hasattr(options, "file") or hasattr(options, "files")):
        return None  # the schema is a positional argument of the command
    if wanted == ["type"]:
        return constraint_of({"schema": python_type(given["type"]), "condition": met})
    name = ""
    more: dict[str, Any] = {name: getattr(options, name) for name in TOOL_OPTIONS}
    more["condition"] = met
    for kind in _FILES:
        value = given.pop(kind)
        if value is None:
            continue
        if kind != "schema" or not (value.lstrip().startswith("{") or value in ("true", "false")):
            name, value = called(value), inputs.read(value, kind.replace("_", " "))
        if kind in ("tools", "response_format"):
            value = parsed(value, name)
        more[kind] = value
    given.pop("type")
    try:
        found = constraint_of({**given, **more})
    except (TypeError, ValueError) as error:
        raise Failure(f"{name}: {error}" if name else str(error)) from None
    if found is None:
        return None
    file = next((f for f in (options.schema, schema) if f is not None and os.path.exists(f)), None)
    try:
        documents = beside(file, found.value) if file is not None and isinstance(found.value, str) else {}
    except ValueError as error:
        raise Failure(str(error)) from None
    return replace(found, name=name, documents=documents)


def needed(options: argparse.Namespace, inputs: Inputs, command: str, *schema: str | None) -> Constraint:
    """As `constraint`, for a command. `schema`: its positional argument, where it has one. Failure: the
    options name no constraint."""
    found = constraint(options, inputs, *schema)
    if found is None:
        ways = "a schema: a file, or an option such as --regex"
        ways = ways if schema else "--schema, or another option that says what the text must be"
        raise Failure(f"{command} needs {ways}")
    return found


def compiled(wanted: Constraint, compiler: Compiler, options: argparse.Namespace) -> CompiledGrammar:
    """Compiles a constraint, and prints its warnings."""
    told = wanted.warn()
    grammar = wanted.compile(compiler, json_options(options))
    wanted.warn_of(grammar, told)
    return grammar


def taken(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """These options as a dict from name to value, for the arguments of a call."""
    return {name: getattr(options, name) for name in names}


def given(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """As `taken`, without the options that are None."""
    return {name: value for name, value in taken(options, *names).items() if value is not None}


def writable(name: str | None, what: str = "") -> None:
    """Raises a Failure if the folder of a file to write does not exist."""
    if name is not None and not Path(name).absolute().parent.is_dir():
        raise Failure(f"cannot write {what}{name}: no such folder")


def plain(value: Any) -> Any:
    """Returns a value of a Python type in a form that JSON has, for `json.dumps(default=)`."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, enum.Enum):
        return value.value
    return list(value) if isinstance(value, set | frozenset | tuple) else str(value)


def print_record(fields: Mapping[str, Any], file: TextIO | None = None) -> None:
    """Prints a line of JSON and flushes it."""
    print(json.dumps(fields, ensure_ascii=False, default=plain), file=file, flush=True)


def parsed(text: str, name: str) -> Any:
    """Returns the JSON value of a file. Failure: it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Failure(f"{name}: invalid JSON: {error}") from None


def python_type(name: str) -> Any:
    """Returns the object that MODULE:NAME names. The working folder is searched first. Failure: there is no
    such object."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise Failure(f"a Python object is named MODULE:NAME, such as orders:Order, not {name!r}")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise Failure(f"cannot import the module {module} of {name}: {error}") from None
    finally:
        sys.path.pop(0)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise Failure(f"the module {module} has no {attribute}")
        found = getattr(found, part)
    return found


def json_options(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the options of JSON by the names of `Compiler.json_schema`."""
    return {name: registry(options) if name == "registry" else getattr(options, name) for name in JSON_NAMES}


def add_document_options(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of commands that read schemas without generating."""
    parser.add_argument(
        "--draft", help="4, 6, 7, 2019-09 or 2020-12 (default: what $schema says, or 2020-12)"
    )
    add_registry_option(parser)


def add_tokenizer_option(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--tokenizer",
        default=default,
        help=f"embedded, bytes, a file, a folder or a hub name (default: {default})",
    )


def add_registry_option(parser: Any) -> None:
    parser.add_argument(
        "--registry",
        metavar="DIR|FILE",
        action="append",
        help="documents for $ref, by $id and by name; files beside a schema are found without it",
    )


def registry(options: argparse.Namespace) -> dict[str, Any] | None:
    """Returns the documents of --registry; None if it is not given. Failure: a document cannot be read."""
    found: dict[str, Any] = {}
    for name in options.registry or ():
        with failing(f"read the registry {name}"):
            try:
                found |= in_folder(name)
            except ValueError as error:
                raise Failure(str(error)) from None
    return found or None


def add_schema_options(parser: argparse.ArgumentParser, defaults: Mapping[str, Any]) -> None:
    """Adds flags for the options of `Compiler.json_schema` that have a help text."""
    group = parser.add_argument_group("schema options")
    for option in fields(JsonOptions):
        if "help" not in option.metadata:
            continue
        default = defaults.get(option.name, option.default)
        help = option.metadata["help"]
        if "(default" not in help:
            help += f" (default: {default or 'chosen from the document'})"
        group.add_argument(
            option.metadata.get("name", "--" + option.name.replace("_", "-")),
            dest=option.name,
            default=default,
            choices=option.metadata.get("values"),
            type=option.metadata.get("type", str),
            metavar=option.metadata.get("metavar"),
            help=help,
        )
    add_registry_option(group)
    group.add_argument("--strict", action="store_true", help="what `structgen lint` warns of is an error")


def load_model(name: str | None) -> LanguageModel:
    """Returns the model. LanguageModelError: the model does not exist or is damaged."""
    from structgen.lm.load import language_model

    if name is not None and name != "embedded":
        _quiet()
    return language_model(name)


def _quiet() -> None:
    """Keeps the advice and the progress bars of transformers off the terminal."""
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        from transformers.utils import logging as theirs
    except ImportError:
        return  # loading the model gives the error
    theirs.set_verbosity_error()  # type: ignore[no-untyped-call, unused-ignore]
    theirs.disable_progress_bar()  # type: ignore[no-untyped-call, unused-ignore]


def byte_vocabulary() -> Vocabulary:
    """Returns a vocabulary with one token for each byte, so that results do not depend on a tokenizer."""
    from structgen import Vocabulary

    return Vocabulary.from_bytes([bytes([b]) for b in range(256)] + [b""], eos_token_ids=256)


def vocabulary(name: str | None) -> Vocabulary:
    """Returns the vocabulary of a name.

    `bytes` (or None), `embedded`, or a tokenizer file, a folder or a hub name.
    """
    from structgen import Vocabulary

    if name is None or name == "bytes":
        return byte_vocabulary()
    if name == "embedded":
        from structgen.lm import embedded

        return Vocabulary.from_file(embedded.path())
    if Path(name).exists():
        return Vocabulary.from_file(name)
    if name.endswith((".json", ".model", ".tiktoken")) or name.startswith((".", "/", "~")):
        raise Failure(f"cannot read the tokenizer {name}: no such file")
    return Vocabulary.from_huggingface(name)


def stand_at(grammar: CompiledGrammar, data: bytes) -> tuple[Matcher, int]:
    """Returns a matcher after the longest prefix that the grammar takes, and that prefix's length."""
    matcher = grammar.matcher()
    length = matcher.validate_bytes(data)
    matcher.accept_bytes(data[:length])
    return matcher, length


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.1f} us"


def plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


# argparse names the type of add_subparsers() privately.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
