"""`structgen check SCHEMA [TEXT...]`: whether the engine accepts a text, and where a refused text stops.

In: a schema or another constraint, and texts. Out: one line for each text. For a refused text: its place, the
text around it, the keywords that forbid it, and what could stand there, in colours in a terminal (extra
`display`). Without texts only the schema is compiled. Cost: a compile, then about a microsecond for each
byte; for a refusal some hundred small compiles.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from structgen import CompiledGrammar, Compiler
from structgen.constraints import Constraint

from . import common
from .common import place

if TYPE_CHECKING:
    from rich.text import Text

_BLANKS = b" \t\n\r"


def add_parser(commands: common.Commands) -> None:
    parser = commands.add_parser(
        "check",
        help="does the engine accept this text; where does it stop",
        description="Checks texts against a schema exactly as generation would. Whitespace around JSON and a "
        "line break at the end of other texts are left out. Exit status 1 if one is rejected.",
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="a JSON Schema, unless an option says what texts must be; then files with a text each (a .jsonl "
        "file has one a line), or -",
    )
    common.add_constraint_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    inputs = common.Inputs()
    wanted, files = common.constraint(options, inputs), list(options.files)
    if wanted is None:
        wanted = common.needed(options, inputs, "check", files.pop(0) if files else None)
    if not files and options.choice and (options.choice[-1] == "-" or os.path.isfile(options.choice[-1])):
        last = options.choice[-1]
        raise common.Failure(
            f"--choice takes {last!r} as a text; name files first: check {last} --choice ..."
        )
    compiler = Compiler(common.vocabulary(None))
    grammar = common.compiled(wanted, compiler, options)
    name = wanted.name or f"--{wanted.param}"
    for entry in grammar.report:
        common.note(f"{name}: not enforced: {entry}")
    for warning in grammar.warnings:
        common.note(f"{name}: {warning}")
    if not files:
        print(f"{name}: compiled ({common.plural(len(grammar.report), 'remark')})")
    status = common.OK
    is_json = grammar._options is not None
    for file, data in texts(files, inputs, is_json):
        found = explain(grammar, data, causes=is_json)
        tell(file, found)
        if found:
            status = common.REJECTED
            if (
                is_json
                and options.property_order == "schema"
                and in_any_order(compiler, wanted, data, options)
            ):
                common.note(f"{file}: accepted with --order any: only the order of its keys differs")
    return status


def texts(files: list[str], inputs: common.Inputs, is_json: bool) -> Iterator[tuple[str, bytes]]:
    """Returns each text with its name. Every line of a .jsonl file is a text with a name such as
    "answers.jsonl:3"."""
    for file in files:
        data = inputs.read(file, "instance").encode()
        if file.endswith((".jsonl", ".ndjson")):
            for number, line in enumerate(data.splitlines(), 1):
                if line.strip():
                    yield f"{common.called(file)}:{number}", line.strip(_BLANKS)
        else:
            yield (
                common.called(file),
                data.strip(_BLANKS) if is_json else data.removesuffix(b"\n").removesuffix(b"\r"),
            )


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a text is not accepted.

    Attributes:
        what: the fact and the place. before, after: the text around the place.
        rows: further facts, each with its label.
    """

    what: str
    before: str
    after: str
    rows: list[tuple[str, str]]

    def __str__(self) -> str:
        found = [("after", self.before or "(the start of the text)"), ("found", self.after)]
        rows = [row for row in (*self.rows[:1], *found, *self.rows[1:]) if row[1]]
        return "\n".join([self.what, *(f"  {label:8} {words}" for label, words in rows)])

    def coloured(self, name: str) -> Text:
        """Returns the refusal for a terminal: the text in one line, and a caret below the place."""
        from rich.cells import cell_len
        from rich.text import Text

        shown = Text(f"{name}: ")
        shown.append(self.what, "bold red")
        caret = " " * (11 + cell_len(self.before)) + "^"
        place = [("text", f"{self.before}\0{self.after}\n{caret}")]
        for label, words in (*self.rows[:1], *place, *self.rows[1:]):
            if not words:
                continue
            shown.append(f"\n  {label:8} ", "dim")
            before, mark, after = words.partition("\0")
            shown.append(before, "green" if mark or label == "allowed" else "")
            shown.append(after, "red")
        return shown


def explain(grammar: CompiledGrammar, data: bytes, causes: bool = True) -> Refusal | None:
    """Returns the place where a text is refused and, for a JSON Schema, the reason; None if the text is
    accepted."""
    matcher, length = common.stand_at(grammar, data)
    if length == len(data) and matcher.is_accepting():
        return None
    at = place(data, length)
    what = f"rejected at {at}" if length < len(data) else f"incomplete: the text ends at {at}"
    found = grammar.explain(data) if causes else None
    rows = [("in", f"#{found.instance}" if found is not None and found.instance else "")]
    if found is not None:
        if found.kind != "keyword":
            rows.append(("because", found.problem))
        told = [line for cause in found.causes for line in cause.lines()]
        rows += [("because" if i == 0 and found.kind == "keyword" else "", c) for i, c in enumerate(told)]
    rows.append(("allowed", common.allowed_here(matcher)))
    return Refusal(what, at.before, at.after if length < len(data) else "", rows)


def tell(name: str, found: Refusal | None) -> None:
    """Prints the report of one text, in colours if the output is a terminal and rich is installed."""
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.text import Text
        except ImportError:
            pass
        else:
            shown = found.coloured(name) if found else Text.assemble(f"{name}: ", ("accepted", "green"))
            Console(highlight=False, soft_wrap=True).print(shown)
            return
    print(f"{name}: {found or 'accepted'}")


def in_any_order(compiler: Compiler, wanted: Constraint, data: bytes, options: argparse.Namespace) -> bool:
    free = wanted.compile(compiler, {**common.json_options(options), "property_order": "any"})
    matcher, length = common.stand_at(free, data)
    return length == len(data) and matcher.is_accepting()
