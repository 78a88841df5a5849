"""`structgen examples SCHEMA`: texts for testing a validator.

In: a schema. Out: a line an example, or JSON lines. Cost: that of `sg.examples`.
"""

from __future__ import annotations

import argparse
import dataclasses
import warnings

from .common import OK, Commands, Inputs, add_document_options, note, print_record, registry, taken


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "examples",
        help="valid and invalid texts of a schema, for tests",
        description="The shortest value, a typical one, values drawn uniformly, boundaries, and near misses "
        "that are invalid by exactly one keyword.",
    )
    parser.add_argument("file", metavar="SCHEMA", help="a JSON Schema file, or -")
    parser.add_argument("-n", type=int, default=5, help="how many are drawn (default: 5)")
    parser.add_argument("--seed", type=int, default=0, help="of the draws (default: 0)")
    parser.add_argument("--max-bytes", type=int, metavar="N", help="of a text that is drawn")
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    add_document_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from structgen.testdata import ExamplesLeftOut, examples

    text, near = Inputs().schema(options.file)
    documents = {**near, **(registry(options) or {})}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ExamplesLeftOut)
        given = taken(options, "seed", "max_bytes", "draft")
        found = examples(text, options.n, registry=documents or None, **given)
    for one in told:
        note(f"structgen: {one.message}")
    for example in found:
        if options.json:
            print_record(dataclasses.asdict(example))
        else:
            about = f"#{example.pointer}" if example.pointer else ""
            valid = "valid" if example.valid else "invalid"
            print(f"{valid:7}  {example.kind:9}  {example.text}  {about}".rstrip())
    return OK
