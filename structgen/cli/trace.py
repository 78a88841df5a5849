"""`structgen trace`: shows why each token of a text was chosen.

In: a prompt and a constraint. Out: a table with one token in each line, coloured if standard output is a
terminal and rich is installed; with --html one page. Cost: that of `structgen generate`.
"""

from __future__ import annotations

import argparse
import sys

from structgen.json_options import WRITTEN

from . import common


def add_parser(commands: common.Commands) -> None:
    parser = commands.add_parser(
        "trace",
        help="how each token of a text came about",
        description="Generates a text and shows for each token the model's probability, the one after the "
        "mask, what is allowed and what else there was. Exit status 1 if the text was cut off.",
    )
    common.add_asking_options(parser)
    common.add_drawing_options(parser, 0.0, "0 is greedy (the default)")
    parser.add_argument(
        "--html", metavar="FILE", help="write one page that loads nothing, instead of the table"
    )
    common.add_constraint_options(parser, WRITTEN)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from structgen.generation import trace

    wanted = common.constraint(options, common.Inputs())
    common.writable(options.html)
    found = trace(
        common.load_model(options.model),
        options.prompt,
        wanted,
        **common.taken(options, "max_tokens", "temperature", "seed"),
        **common.json_options(options),
    )
    if options.html is not None:
        found.save(options.html)
    elif sys.stdout.isatty() and (table := _coloured(found)) is not None:
        from rich.console import Console

        Console().print(table)
    else:
        print(found)
    common.note(f"{found!r}")
    for warning in found.result.warnings:
        common.warn_once(warning)
    return common.OK if found.result.finish_reason == "stop" else common.REJECTED


def _coloured(found: object) -> object | None:
    from structgen.errors import MissingDependency

    try:
        return found.rich()  # type: ignore[attr-defined, no-any-return]
    except MissingDependency:
        return None
