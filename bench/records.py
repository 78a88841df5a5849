"""Helpers for runs that write one record for each case (`--out FILE`) and print tables of the records
(`--report FILE`).

Input: a parser of a command line. Output: the parser's two options, the stream for a run's lines of JSON, and
the records of a file.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable
from typing import Any

from structgen.maskbench import engines


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", help="write records here (default: standard output)")
    parser.add_argument("--report", metavar="FILE", help="read records and print the tables")


def reported(options: argparse.Namespace, report: Callable[[list[dict[str, Any]]], None]) -> bool:
    """Prints the tables of `--report` and says whether it was given."""
    if options.report:
        with open(options.report, encoding="utf-8") as stream:
            report([json.loads(line) for line in stream])
    return bool(options.report)


def engine_names(parser: argparse.ArgumentParser, names: str) -> list[str]:
    """Returns the engines of a comma-separated list. An unknown name ends the program."""
    out = names.split(",")
    for name in out:
        try:
            engines.check(name)
        except ValueError as error:
            parser.error(str(error))
    return out


def print_versions(rows: list[dict[str, Any]]) -> None:
    versions = {row["engine"]: row["version"] for row in rows if "version" in row}
    print("\n" + ", ".join(f"{name} {version}" for name, version in versions.items()))


def out(options: argparse.Namespace) -> contextlib.AbstractContextManager[Any]:
    """Returns the output stream. Closing it leaves standard output open."""
    return open(options.out, "w", encoding="utf-8") if options.out else contextlib.nullcontext(sys.stdout)
