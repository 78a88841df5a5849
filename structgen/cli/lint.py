"""`structgen lint SCHEMA...`: probable mistakes in schemas.

In: schemas. Out: a line for each finding. Exit status 2 if a schema cannot be used, 1 if there are warnings
and --strict is given. Cost: a walk over each schema, and at most two seconds of compiles for each.
"""

from __future__ import annotations

import argparse

from .common import (
    OK,
    REJECTED,
    USAGE,
    Commands,
    Inputs,
    add_document_options,
    called,
    note,
    plural,
    registry,
)


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "lint",
        help="what is probably not meant in a schema",
        description="Looks for unknown keywords, keywords that never apply, values of the wrong type, "
        "branches that nothing reaches, parts that nothing satisfies, and more. Exit status 2 for errors, 1 "
        "for warnings with --strict.",
    )
    parser.add_argument("files", metavar="SCHEMA", nargs="+", help="a JSON Schema file, or -")
    parser.add_argument("--no-hints", action="store_true", help="only errors and warnings")
    parser.add_argument("--strict", action="store_true", help="exit status 1 where there are warnings")
    parser.add_argument(
        "--for",
        dest="provider",
        metavar="PROVIDER",
        help="openai, anthropic, gemini, mistral, llguidance, llama.cpp or vllm-xgrammar: what it "
        "refuses, drops or rewrites, too",
    )
    add_document_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from structgen.errors import GrammarError
    from structgen.linting import lint
    from structgen.providers import lint_for

    inputs, status, documents = Inputs(), OK, registry(options) or {}
    counts = {"error": 0, "warning": 0, "hint": 0}
    for file in options.files:
        text, near = inputs.schema(file)
        try:
            given = {"draft": options.draft, "registry": {**near, **documents} or None}
            found = lint(text, **given)
            if options.provider is not None:
                found += lint_for(text, options.provider, **given)
        except GrammarError as error:
            print(f"{called(file)}: error: {error.message}")
            counts["error"] += 1
            continue
        for finding in found:
            counts[finding.level] += 1
            if finding.level != "hint" or not options.no_hints:
                print(f"{called(file)}: {finding}")
    if counts["error"]:
        status = USAGE
    elif counts["warning"] and options.strict:
        status = REJECTED
    note(", ".join(plural(n, level) for level, n in counts.items()))
    return status
