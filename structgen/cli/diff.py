"""`structgen diff OLD NEW`: whether a change of a schema, an API or a tool list breaks somebody.

In: two files of one kind. Out: a table with witnesses, or JSON. Exit status 0 if nothing breaks, 1 if
something does, 2 if something is not decided or cannot be read. Cost: two containments a schema.
"""

from __future__ import annotations

import argparse
import dataclasses
import json

from .common import OK, REJECTED, USAGE, Commands, Inputs, add_document_options, called, note, parsed, plural
from .common import registry as read_registry


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "diff",
        help="whether a change of a schema or an API breaks somebody, and which document",
        description="Compares two JSON Schemas, OpenAPI 3.x descriptions or MCP tool lists, each operation "
        "by itself. Exit status 1 where something breaks, 2 where it is not decided.",
    )
    parser.add_argument("old", metavar="OLD", help="a JSON file, or -")
    parser.add_argument("new", metavar="NEW", help="a JSON file, or -")
    parser.add_argument(
        "--direction",
        choices=("request", "response", "both"),
        default="both",
        help="who is asked about: those that send, those that read, or both (default)",
    )
    parser.add_argument("--json", action="store_true", help="a JSON list of all rows, safe ones too")
    add_document_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from structgen.diffing import diff

    inputs, shared, sides, near = Inputs(), read_registry(options) or {}, [], []
    for file in (options.old, options.new):
        text, documents = inputs.schema(file, "document")
        near.append(documents)
        sides.append(parsed(text, called(file)))
    own = {
        name: {**held, **shared} for name, held in zip(("old_registry", "new_registry"), near, strict=True)
    }
    rows = diff(*sides, direction=options.direction, draft=options.draft, registry=shared or None, **own)
    if options.json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], ensure_ascii=False, indent=2))
    for row in rows if not options.json else ():
        if row.breaks is False:
            continue
        verdict = "BREAKS" if row.breaks else "unknown"
        print(f"{verdict:7}  {row.direction:8}  {row.place}".rstrip())
        if row.witness is not None:
            print(f"    document  {row.witness}\n    refused by  #{row.pointer}")
        elif row.reason:
            print(
                f"    {row.reason}" + (f" (keyword '{row.keyword}' at #{row.pointer})" if row.keyword else "")
            )
    broken, open_ = (sum(row.breaks is verdict for row in rows) for verdict in (True, None))
    note(f"{plural(len(rows), 'schema')} compared, {broken} breaking, {open_} not decided")
    return USAGE if open_ and not broken else REJECTED if broken else OK
