"""`structgen grammar list|show|test`: shows the library of grammars, and tests texts against any grammar.

In: the name of a library grammar or a file in Lark or GBNF, and texts. Out: a line for each grammar or text.
Cost: a compile, then about a microsecond for each byte.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from structgen import Compiler, library
from structgen.errors import GrammarError

from .check import explain, tell
from .common import OK, REJECTED, Commands, Inputs, called, note, plural, vocabulary


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "grammar",
        help="the library of grammars; texts against a grammar",
        description="Lists the library's grammars, shows one, or tests texts against one.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = actions.add_parser("list", help="the grammars of the library")
    listed.set_defaults(run=list_all)
    shown = actions.add_parser("show", help="the text of a grammar")
    shown.add_argument("name", metavar="NAME")
    shown.set_defaults(run=show)
    tested = actions.add_parser(
        "test",
        help="texts against a grammar; without texts, a library grammar's own cases",
        description="Exit status 1 if a text is rejected, or a case of the library has the wrong verdict.",
    )
    tested.add_argument("grammar", metavar="GRAMMAR", help="a library grammar's name, a file, or -")
    tested.add_argument("texts", metavar="TEXT", nargs="*", help="a file with a text, or -")
    tested.set_defaults(run=test)


def list_all(options: argparse.Namespace) -> int:
    for name in library.names():
        entry = library.load(name)
        print(f"{name:18}  {entry.dialect}  {entry.about.split('. ')[0].rstrip('.')}")
    return OK


def show(options: argparse.Namespace) -> int:
    print(library.load(options.name).text, end="")
    return OK


def test(options: argparse.Namespace) -> int:
    inputs = Inputs()
    known = options.grammar in library.names() and not Path(options.grammar).exists()
    text = library.load(options.grammar).text if known else inputs.read(options.grammar, "grammar")
    try:
        grammar = Compiler(vocabulary(None)).grammar(text)
    except GrammarError as error:
        error.message = f"{called(options.grammar)}: {error.message}"
        raise
    for warning in grammar.warnings:
        note(f"{called(options.grammar)}: {warning}")
    status = OK
    for name in options.texts:
        found = explain(grammar, inputs.read(name, "text").encode(), causes=False)
        tell(called(name), found)
        status = REJECTED if found else status
    if options.texts:
        return status
    if not known:
        print(f"{called(options.grammar)}: compiled")
        return OK
    entry = library.load(options.grammar)
    for case in entry.accepted:
        if found := explain(grammar, case.encode(), causes=False):
            print(f"{entry.name}: should be accepted: {case!r}\n{found}")
            status = REJECTED
    for case in entry.rejected:
        if not explain(grammar, case.encode(), causes=False):
            print(f"{entry.name}: should be rejected: {case!r}")
            status = REJECTED
    if status == OK:
        print(f"{entry.name}: {plural(len(entry.accepted) + len(entry.rejected), 'case')} as they should be")
    return status
