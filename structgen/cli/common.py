"""What the sub-commands share: reading input, options of a schema, vocabularies, readable bytes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structgen._readable import Place, allowed_here, place, quoted, ranges, spellings, visible
from structgen.errors import GrammarError

if TYPE_CHECKING:
    from structgen import CompiledGrammar, Compiler, Matcher, Vocabulary

OK, REJECTED, USAGE = 0, 1, 2

__all__ = [
    "OK", "REJECTED", "USAGE", "Commands", "Failure", "Inputs", "Place", "add_schema_options", "allowed_here",
    "byte_vocabulary", "called", "compile_schema", "milliseconds", "note", "one_line", "place", "plural",
    "quoted", "ranges", "spellings", "stand_at", "told", "visible", "vocabulary",
]  # fmt: skip


class Failure(Exception):
    """A mistake of the user, told in one line."""


def one_line(text: str) -> str:
    """The first line; the lines under it (a source line and its caret) need the width of a terminal."""
    return text.strip().split("\n")[0].strip()


def note(text: str) -> None:
    """Progress and remarks: standard error."""
    print(text, file=sys.stderr, flush=True)


def called(name: str) -> str:
    """A file's name as messages say it."""
    return "standard input" if name == "-" else name


class Inputs:
    """Files by name, `-` as standard input, which can be read once."""

    def __init__(self) -> None:
        self._taken = ""

    def read(self, name: str, what: str) -> str:
        """The text of a file. Failure: missing, a folder, not UTF-8, standard input used twice."""
        shown = called(name)
        try:
            if name != "-":
                data = Path(name).read_bytes()
            else:
                if self._taken:
                    raise Failure(f"standard input is read once: it is the {self._taken} already")
                self._taken = what
                data = sys.stdin.buffer.read()
        except OSError as error:
            raise Failure(f"cannot read the {what} {shown}: {error.strerror or error}") from None
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise Failure(f"the {what} {shown} is not UTF-8 (byte {error.start})") from None


def add_schema_options(
    parser: argparse.ArgumentParser, whitespace: str = "flexible", numbers: str = "any", strings: str = "any"
) -> None:
    """The options of `Compiler.json_schema`, but for those that only a program needs."""
    group = parser.add_argument_group("schema options")
    group.add_argument(
        "--order", choices=("schema", "any"), default="schema", help="order of keys (default: the schema's)"
    )
    group.add_argument("--draft", help="4, 6, 7, 2019-09 or 2020-12 (default: what $schema says, or 2020-12)")
    group.add_argument(
        "--formats", choices=("enforce", "annotate"), default="enforce", help="(default: enforce)"
    )
    group.add_argument(
        "--extra-keys",
        choices=("allow", "forbid"),
        default="allow",
        help="forbid closes objects whose schema names members and says nothing of others (default: allow)",
    )
    group.add_argument(
        "--numbers",
        choices=("any", "canonical"),
        default=numbers,
        help=f"every spelling, or one without exponent that every reader takes (default: {numbers})",
    )
    group.add_argument(
        "--strings",
        choices=("any", "plain"),
        default=strings,
        help=f"every escape, or only those that JSON writers write (default: {strings})",
    )
    group.add_argument(
        "--whitespace",
        default=whitespace,
        metavar="MODE",
        help="flexible, compact, one-blank, spaced, pretty, or a regex of what may stand in a gap "
        f"(default: {whitespace})",
    )


def compile_schema(compiler: Compiler, text: str, name: str, options: argparse.Namespace) -> CompiledGrammar:
    """The schema's grammar; errors say which file they are about, and where in it."""
    try:
        return compiler.json_schema(
            text,
            property_order=options.order,
            draft=options.draft,
            formats=options.formats,
            whitespace=options.whitespace,
            numbers=options.numbers,
            strings=options.strings,
            extra_keys=options.extra_keys,
        )
    except GrammarError as error:
        raise told(error, text, name) from None


def told(error: GrammarError, text: str, name: str) -> GrammarError:
    """The same error with the file's name and, where the schema is not JSON, the line and column in front."""
    where = called(name)
    if error.message.startswith("invalid JSON") and error.offset is not None:
        error.located(text)
        where += f":{error.line}:{error.column}"
        error.line = None  # said already
    error.message = f"{where}: {error.message}"
    return error


def byte_vocabulary() -> Vocabulary:
    """A token a byte: what is allowed then depends on no tokenizer."""
    from structgen import Vocabulary

    return Vocabulary.from_bytes([bytes([b]) for b in range(256)] + [b""], eos_token_ids=256)


def vocabulary(name: str | None) -> Vocabulary:
    """None or `bytes`: bytes; `embedded`: the embedded model's; else a tokenizer file, folder or hub name."""
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
    """A matcher after the longest prefix that the grammar takes, and that prefix's length."""
    matcher = grammar.matcher()
    length = matcher.validate_bytes(data)
    matcher.accept_bytes(data[:length])
    return matcher, length


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.1f} us"


def plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


Commands: Any = Any  # argparse names the type of add_subparsers() privately
