"""`structgen compile SCHEMA...`: which keywords are enforced, which are only annotations, and what compiling
costs.

In: schemas. Out: a block of lines for each. A schema that cannot be compiled gives one line, and the others
are still compiled. Each schema gets a compiler of its own, so that no schema gains from an earlier one. The
vocabulary's tables are made before the clock starts, because a process makes them once.
"""

from __future__ import annotations

import argparse
import time

from structgen import CompiledGrammar, Compiler, allocate_bitmask
from structgen.constraints import Constraint
from structgen.errors import GrammarError
from structgen.kinds import TOOL_OPTIONS

from . import common


def add_parser(commands: common.Commands) -> None:
    parser = commands.add_parser(
        "compile",
        help="what is enforced, what is annotation, timings",
        description="Compiles schemas and reports which keywords constrain nothing. A keyword that is not "
        "listed is enforced exactly; one that could not be is an error. Exit status 2 on an error.",
    )
    parser.add_argument("files", metavar="SCHEMA", nargs="*", help="a JSON Schema file, or -")
    common.add_tokenizer_option(parser, "bytes")
    common.add_constraint_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from .main import explain

    inputs = common.Inputs()
    tokens = common.vocabulary(options.tokenizer)
    # makes the vocabulary's tables, which a process makes once
    measure(Compiler(tokens), Constraint("schema", True), options)
    status = common.OK
    shared = common.constraint(options, inputs)
    schemas = [common.needed(_plain(options), inputs, "compile", file) for file in options.files]
    if shared is not None or not schemas:
        schemas.insert(0, shared or common.needed(options, inputs, "compile", None))
    for wanted in schemas:
        told = wanted.warn()
        name = wanted.name or f"--{wanted.param}"
        try:
            grammar, compiled, first = measure(Compiler(tokens), wanted, options)
        except GrammarError as error:
            line, code = explain(error)
            common.note(f"structgen: {line}")
            status = max(status, code)
            continue
        wanted.warn_of(grammar, told)
        print(f"{name}: compiled in {common.milliseconds(compiled)}, first mask {common.milliseconds(first)}")
        print(f"  vocabulary  {tokens.vocab_size} ids ({options.tokenizer})")
        for warning in grammar.warnings:
            print(f"  warning     {warning}")
        if grammar.report:
            print("  enforced    every keyword but these:")
            for entry in grammar.report:
                print(f"    {entry}")
        else:
            print("  enforced    every keyword")
    return status


def _plain(options: argparse.Namespace) -> argparse.Namespace:
    """Returns the options without a constraint, because each file is a constraint."""
    kinds = ("schema", "type", "regex", "choice", "gbnf", "lark", "grammar", "tools", "response_format")
    return argparse.Namespace(**{**vars(options), **dict.fromkeys((*kinds, *TOOL_OPTIONS))})


def measure(
    compiler: Compiler, wanted: Constraint, options: argparse.Namespace
) -> tuple[CompiledGrammar, float, float]:
    """Returns the grammar, seconds to compile it, and seconds of its first mask."""
    mask = allocate_bitmask(1, compiler.vocabulary.vocab_size)
    start = time.perf_counter()
    grammar = wanted.compile(compiler, common.json_options(options))
    middle = time.perf_counter()
    grammar.matcher().fill_bitmask(mask)
    return grammar, middle - start, time.perf_counter() - middle
