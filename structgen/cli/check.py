"""`structgen check SCHEMA [INSTANCE...]`: does the engine take this text, and where does it stop?

In: a schema and texts. Out: one line a text; for a rejected one its place, the text around it, the keywords
that forbid it and what could stand there. Without texts only the schema is compiled. Cost: a compile, then
about a microsecond a byte; a rejection some hundred small compiles.
"""

from __future__ import annotations

import argparse

from structgen import CompiledGrammar, Compiler

from .common import (
    OK,
    REJECTED,
    Commands,
    Inputs,
    add_schema_options,
    allowed_here,
    called,
    compile_schema,
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
        description="Checks texts against a schema exactly as generation would. Whitespace around a text is "
        "left out. Exit status 1 if one is rejected.",
    )
    parser.add_argument("schema", metavar="SCHEMA", help="a JSON Schema file, or -")
    parser.add_argument("instances", metavar="INSTANCE", nargs="*", help="a file with JSON text, or -")
    add_schema_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    inputs = Inputs()
    text = inputs.read(options.schema, "schema")
    compiler = Compiler(vocabulary(None))
    grammar = compile_schema(compiler, text, options.schema, options)
    for entry in grammar.report:
        note(f"{called(options.schema)}: not enforced: {entry}")
    if not options.instances:
        print(f"{called(options.schema)}: compiled ({plural(len(grammar.report), 'remark')})")
    status = OK
    for name in options.instances:
        data = inputs.read(name, "instance").encode().strip(_BLANKS)
        found = explain(grammar, data)
        print(f"{called(name)}: {found or 'accepted'}")
        if found:
            status = REJECTED
            if options.order == "schema" and in_any_order(compiler, text, data, options):
                note(f"{called(name)}: accepted with --order any: only the order of its keys differs")
    return status


def explain(grammar: CompiledGrammar, data: bytes, causes: bool = True) -> str:
    """Empty if the text is accepted, else where and (of a JSON Schema) why not."""
    matcher, length = stand_at(grammar, data)
    if length == len(data) and matcher.is_accepting():
        return ""
    at = place(data, length)
    what = f"rejected at {at}" if length < len(data) else f"incomplete: the text ends at {at}"
    lines = [what, f"  after    {at.before}" if at.before else "  after    (the start of the text)"]
    if length < len(data):
        lines.append(f"  found    {at.after}")
    found = grammar.explain(data) if causes else None
    if found is not None:
        if found.kind != "keyword":
            lines.append(f"  because  {found.problem}")
        told = [line for cause in found.causes for line in cause.lines()]
        lines += [
            f"  {'because' if i == 0 and found.kind == 'keyword' else '':9}{c}" for i, c in enumerate(told)
        ]
    lines.append(f"  allowed  {allowed_here(matcher)}")
    return "\n".join(lines)


def in_any_order(compiler: Compiler, text: str, data: bytes, options: argparse.Namespace) -> bool:
    free = argparse.Namespace(**{**vars(options), "order": "any"})
    matcher, length = stand_at(compile_schema(compiler, text, options.schema, free), data)
    return length == len(data) and matcher.is_accepting()
