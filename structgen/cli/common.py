"""What the sub-commands share: reading input, options of a schema, vocabularies, bytes made readable."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structgen.errors import GrammarError

if TYPE_CHECKING:
    from structgen import CompiledGrammar, Compiler, Matcher, Vocabulary

OK, REJECTED, USAGE = 0, 1, 2

_SHOWN = 60  # characters of the text before and after a place
_CHOICES = 12  # continuations that are spelled out before ranges of bytes take over
_SPELLED = 40  # bytes of one continuation


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


def add_schema_options(parser: argparse.ArgumentParser, whitespace: str = "flexible") -> None:
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
        "--whitespace",
        default=whitespace,
        metavar="MODE",
        help=f"flexible, compact, pretty, or a regex of what may stand in a gap (default: {whitespace})",
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


def visible(data: bytes) -> str:
    """Bytes on one line: text as it is, control characters and stray bytes escaped."""
    text = data.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def quoted(data: bytes) -> str:
    """One piece of text in a list: in back quotes, so that JSON's own quotes stay readable."""
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


def stand_at(grammar: CompiledGrammar, data: bytes) -> tuple[Matcher, int]:
    """A matcher after the longest prefix that the grammar takes, and that prefix's length."""
    matcher = grammar.matcher()
    length = matcher.validate_bytes(data)
    matcher.accept_bytes(data[:length])
    return matcher, length


def allowed_here(matcher: Matcher) -> str:
    """What may come next: continuations where they are few, ranges of bytes where they are many."""
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
    """Each first byte with the text that must follow it; an opening quote alone is opened up once more.

    A character of a string can also be written as an escape; that is no choice worth telling.
    """
    found: list[bytes] = []
    for byte in first:
        ahead = matcher.fork()
        ahead.accept_bytes(bytes([byte]))
        text = bytes([byte]) + _forced(ahead)
        live = _plain(ahead.live_bytes())
        if text == b'"' and len(live) <= _CHOICES:
            found += [b'"' + rest for rest in spellings(ahead, live)]
        else:
            found.append(text)
    return found


def _plain(live: bytes) -> bytes:
    return live.replace(b"\\", b"") or live


def _forced(matcher: Matcher) -> bytes:
    """Takes what must come next, escapes aside, and returns it."""
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


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.1f} us"


def plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


Commands: Any = Any  # argparse names the type of add_subparsers() privately
