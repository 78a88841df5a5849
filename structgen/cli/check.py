"""`structgen check SCHEMA [TEXT...]`: does the engine take this text, and where does it stop?

In: a schema or another constraint, and texts. Out: one line a text; for a rejected one its place, the text
around it, the keywords that forbid it and what could stand there. Without texts only the schema is compiled.
Cost: a compile, then about a microsecond a byte; a rejection some hundred small compiles.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from structgen import CompiledGrammar, Compiler
from structgen.constraints import Constraint

from .common import (
    OK,
    REJECTED,
    Commands,
    Failure,
    Inputs,
    add_constraint_options,
    allowed_here,
    called,
    constraint,
    json_options,
    note,
    place,
    plural,
    stand_at,
    vocabulary,
)

_BLANKS = b" \t\n\r"


def add_parser(commands: Commands) -> None:
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
    add_constraint_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    inputs = Inputs()
    wanted, files = constraint(options, inputs), list(options.files)
    if wanted is None:
        if not files:
            raise Failure("check needs a schema: a file, or an option such as --regex")
        wanted = constraint(options, inputs, files.pop(0))
        assert wanted is not None
    wanted.warn()
    compiler = Compiler(vocabulary(None))
    grammar = wanted.compile(compiler, json_options(options))
    name = wanted.name or f"--{wanted.param}"
    for entry in grammar.report:
        note(f"{name}: not enforced: {entry}")
    for warning in grammar.warnings:
        note(f"{name}: {warning}")
    if not files:
        print(f"{name}: compiled ({plural(len(grammar.report), 'remark')})")
    status = OK
    is_json = grammar._options is not None
    for file, data in texts(files, inputs, is_json):
        found = explain(grammar, data, causes=is_json)
        print(f"{file}: {found or 'accepted'}")
        if found:
            status = REJECTED
            if is_json and options.order == "schema" and in_any_order(compiler, wanted, data, options):
                note(f"{file}: accepted with --order any: only the order of its keys differs")
    return status


def texts(files: list[str], inputs: Inputs, is_json: bool) -> Iterator[tuple[str, bytes]]:
    """Each text with its name. Of a .jsonl file every line is a text: "answers.jsonl:3"."""
    for file in files:
        data = inputs.read(file, "instance").encode()
        if file.endswith((".jsonl", ".ndjson")):
            for number, line in enumerate(data.splitlines(), 1):
                if line.strip():
                    yield f"{called(file)}:{number}", line.strip(_BLANKS)
        else:
            yield (
                called(file),
                data.strip(_BLANKS) if is_json else data.removesuffix(b"\n").removesuffix(b"\r"),
            )


def explain(grammar: CompiledGrammar, data: bytes, causes: bool = True) -> str:
    """Empty if the text is accepted, else where and (of a JSON Schema) why not."""
    matcher, length = stand_at(grammar, data)
    if length == len(data) and matcher.is_accepting():
        return ""
    at = place(data, length)
    what = f"rejected at {at}" if length < len(data) else f"incomplete: the text ends at {at}"
    lines = [what]
    found = grammar.explain(data) if causes else None
    if found is not None and found.instance:
        lines.append(f"  in       #{found.instance}")
    lines.append(f"  after    {at.before}" if at.before else "  after    (the start of the text)")
    if length < len(data):
        lines.append(f"  found    {at.after}")
    if found is not None:
        if found.kind != "keyword":
            lines.append(f"  because  {found.problem}")
        told = [line for cause in found.causes for line in cause.lines()]
        lines += [
            f"  {'because' if i == 0 and found.kind == 'keyword' else '':9}{c}" for i, c in enumerate(told)
        ]
    lines.append(f"  allowed  {allowed_here(matcher)}")
    return "\n".join(lines)


def in_any_order(compiler: Compiler, wanted: Constraint, data: bytes, options: argparse.Namespace) -> bool:
    free = wanted.compile(compiler, {**json_options(options), "property_order": "any"})
    matcher, length = stand_at(free, data)
    return length == len(data) and matcher.is_accepting()
