"""`structgen infill TEXT --schema FILE`: what fits into the holes of a text?

In: a constraint, and a text with one `<HOLE>` or more. Out: a whole text, for one hole the shortest,
and on standard error what may come first in it; or that nothing fits, and the byte. No model is asked:
`sg.generate(grammar=grammar.infill(prefix, suffix))` is for that. Cost: a compile, then milliseconds.
"""

from __future__ import annotations

import argparse

from structgen import CompiledGrammar, Compiler, Gap, UnsatisfiableInfill

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
    quoted,
    vocabulary,
)

_MARK = "<HOLE>"


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "infill",
        help="what fits into the holes of a text",
        description=f"Finds what fits where a text says {_MARK}, and prints a whole text. Exit status 1 if "
        "nothing fits.",
    )
    parser.add_argument("file", metavar="TEXT", help=f"a file with {_MARK} in it, or -")
    parser.add_argument(
        "--mark", default=_MARK, metavar="TEXT", help=f"what stands for a hole (default: {_MARK})"
    )
    add_constraint_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    inputs = Inputs()
    wanted = constraint(options, inputs)
    if wanted is None:
        raise Failure("infill needs a constraint: --schema, or another option that says what the text is")
    if not options.mark:
        raise Failure("--mark is empty")
    text = inputs.read(options.file, "text").removesuffix("\n")
    parts = text.split(options.mark)
    if len(parts) < 2:
        raise Failure(f"{called(options.file)} has no {options.mark}")
    told = wanted.warn()
    grammar = wanted.compile(Compiler(vocabulary(None)), json_options(options))
    wanted.warn_of(grammar, told)
    return one(grammar, *parts) if len(parts) == 2 else several(grammar, parts)


def one(grammar: CompiledGrammar, prefix: str, suffix: str) -> int:
    try:
        matcher = grammar.infill(prefix, suffix).matcher()
    except UnsatisfiableInfill as error:
        part = (prefix if error.part == "prefix" else suffix).encode()
        at = place(part, error.offset or 0)
        print(f"nothing fits: {error}")
        print(f"  after    {at.before}" if at.before else f"  after    (the start of the {error.part})")
        print(f"  found    {at.after}" if at.after else f"  found    (the end of the {error.part})")
        return REJECTED
    shortest = matcher.shortest_completion()
    note(f"allowed  {allowed_here(matcher)}")
    note(f"shortest {quoted(shortest)}")
    print((prefix.encode() + shortest + suffix.encode()).decode("utf-8", "replace"))
    return OK


def several(grammar: CompiledGrammar, parts: list[str]) -> int:
    found = grammar.can_complete([part for text in parts for part in (Gap(), text)][1:])
    if found.verdict is None:
        raise Failure("whether a text fits is too much to tell")
    print(found.text.decode("utf-8", "replace") if found else "nothing fits")
    return OK if found else REJECTED
