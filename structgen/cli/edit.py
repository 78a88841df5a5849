"""`structgen edit FILE --at /pointer --schema FILE`: a model writes one value of a document anew.

In: a document, a constraint on the whole document, a place. Out: the document with another value at the
place, on standard output; the rest is equal byte for byte. Cost: loading the model, a compile, a forward pass
for each token.
"""

from __future__ import annotations

import argparse
import sys

from structgen.json_options import WRITTEN

from . import common


def add_parser(commands: common.Commands) -> None:
    parser = commands.add_parser(
        "edit",
        help="one value of a document, written anew by a model",
        description="Writes one value of a JSON document, or a stretch of any text, anew. Everything else "
        "stays as it is, and the whole fits the constraint.",
    )
    parser.add_argument("file", metavar="FILE", help="the document, or -")
    place = parser.add_mutually_exclusive_group(required=True)
    place.add_argument("--at", metavar="POINTER", help="a JSON pointer: /customer/city")
    place.add_argument("--span", metavar="BEGIN:END", help="characters, counted from 0")
    parser.add_argument("--instruction", default="", metavar="TEXT", help="what is to become of it")
    common.add_model_option(parser)
    common.add_drawing_options(parser, None, "0 is greedy (default: 0)", max_tokens=64)
    common.add_constraint_options(parser, dict.fromkeys(WRITTEN))
    parser.set_defaults(run=run)


def _span(text: str) -> tuple[int, int]:
    try:
        begin, end = text.split(":")
        return int(begin), int(end)
    except ValueError:
        raise common.Failure(f"--span is BEGIN:END in characters, not {text!r:.60}") from None


def run(options: argparse.Namespace) -> int:
    from structgen.generation.editing import edit

    inputs = common.Inputs()
    wanted = common.needed(options, inputs, "edit")
    document = inputs.read(options.file, "document")
    where = options.at if options.at is not None else _span(options.span)
    lm = common.load_model(options.model)
    more = common.given(options, "temperature", "seed")
    how = {name: value for name, value in common.json_options(options).items() if value is not None}
    if how["property_order"] == "schema":
        del how["property_order"]  # the order of the document's keys counts
    try:
        done = edit(
            lm, document, where, instruction=options.instruction, max_tokens=options.max_tokens,
            schema=wanted, **how, **more,
        )  # fmt: skip
    except (LookupError, ValueError) as error:
        if isinstance(error, LookupError) or str(error).startswith("edit:"):
            raise common.Failure(
                f"{common.called(options.file)}: {error.args[0].removeprefix('edit: ')}"
            ) from None
        raise
    common.note(f"{done.old} -> {done.written}")
    for warning in done.warnings:
        common.note(f"structgen: warning: {warning}")
    sys.stdout.write(done.text)
    return common.OK
