"""`structgen infill TEXT --schema FILE`: what fits into the holes of a text.

In: a constraint, and a text with one `<HOLE>` or more. Out: a whole text. Each hole is as short as the others
allow, and has no control characters if possible. For a single hole, standard error says what may come first
in it. If nothing fits, the message names the byte. The command uses no model;
`sg.generate(grammar=grammar.infill(prefix, suffix))` does. Cost: a compile, then milliseconds.
"""

from __future__ import annotations

import argparse
import contextlib
import re

from structgen import (
    BudgetExceeded,
    CompiledGrammar,
    Compiler,
    Gap,
    Regex,
    SchemaTooComplex,
    UnsatisfiableCondition,
    UnsatisfiableInfill,
)

from . import common

_MARK = "<HOLE>"
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_READABLE = Regex(r"[^\x00-\x1f\x7f]*")


def add_parser(commands: common.Commands) -> None:
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
    common.add_constraint_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    inputs = common.Inputs()
    wanted = common.needed(options, inputs, "infill")
    if not options.mark:
        raise common.Failure("--mark is empty")
    text = inputs.read(options.file, "text").removesuffix("\n")
    parts = text.split(options.mark)
    if len(parts) < 2:
        raise common.Failure(f"{common.called(options.file)} has no {options.mark}")
    grammar = common.compiled(wanted, Compiler(common.vocabulary(None)), options)
    return one(grammar, *parts) if len(parts) == 2 else several(grammar, parts)


def _shortest(middle: CompiledGrammar) -> bytes:
    """Returns a shortest text of a hole without control characters; if there is none, a shortest text."""
    found = middle.matcher().shortest_completion()
    if _CONTROL.search(found):
        with contextlib.suppress(UnsatisfiableCondition, SchemaTooComplex, BudgetExceeded):
            return (middle & _READABLE).matcher().shortest_completion()
    return found


def one(grammar: CompiledGrammar, prefix: str, suffix: str) -> int:
    try:
        middle = grammar.infill(prefix, suffix)
    except UnsatisfiableInfill as error:
        part = (prefix if error.part == "prefix" else suffix).encode()
        at = common.place(part, error.offset or 0)
        print(f"nothing fits: {error}")
        print(f"  after    {at.before}" if at.before else f"  after    (the start of the {error.part})")
        print(f"  found    {at.after}" if at.after else f"  found    (the end of the {error.part})")
        return common.REJECTED
    shortest = _shortest(middle)
    common.note(f"allowed  {common.allowed_here(middle.matcher())}")
    common.note(f"shortest {common.quoted(shortest)}")
    print((prefix.encode() + shortest + suffix.encode()).decode("utf-8", "replace"))
    return common.OK


def several(grammar: CompiledGrammar, parts: list[str]) -> int:
    found = grammar.can_complete([part for text in parts for part in (Gap(), text)][1:])
    if found.verdict is None:
        raise common.Failure("whether a text fits was not decided within the limit of work")
    if not found:
        print("nothing fits")
        return common.REJECTED
    # `can_complete` finds some text. Each hole is then filled again while the other holes keep their texts.
    fixed = [part.encode() for part in parts]
    cut = re.fullmatch(b"(.*?)".join(map(re.escape, fixed)), found.text, re.DOTALL)
    assert cut is not None
    holes = list(cut.groups())

    def written(start: int, end: int) -> bytes:
        return fixed[start] + b"".join(map(bytes.__add__, holes[start:end], fixed[start + 1 : end + 1]))

    for at in range(len(holes)):
        with contextlib.suppress(SchemaTooComplex, BudgetExceeded):
            holes[at] = _shortest(grammar.infill(written(0, at), written(at + 1, len(holes))))
    print(written(0, len(holes)).decode("utf-8", "replace"))
    return common.OK
