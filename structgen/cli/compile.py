"""`structgen compile SCHEMA...`: what is enforced, what is annotation only, and what compiling costs.

In: schemas. Out: a block of lines each. A schema that cannot be compiled is one line, and the others are
still compiled. Each schema gets a compiler of its own, so that none profits from the one before; the tables
of the vocabulary, which a process makes once, are made before the clock starts.
"""

from __future__ import annotations

import argparse
import time

from structgen import CompiledGrammar, Compiler, allocate_bitmask
from structgen.errors import GrammarError

from .common import (
    OK,
    Commands,
    Inputs,
    add_schema_options,
    called,
    compile_schema,
    milliseconds,
    note,
    vocabulary,
)


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "compile",
        help="what is enforced, what is annotation, timings",
        description="Compiles schemas and reports which keywords constrain nothing. A keyword that is not "
        "listed is enforced exactly; one that could not be is an error. Exit status 2 on an error.",
    )
    parser.add_argument("schemas", metavar="SCHEMA", nargs="+", help="a JSON Schema file, or -")
    parser.add_argument(
        "--tokenizer", default="bytes", help="bytes (the default), embedded, a file, a folder or a hub name"
    )
    add_schema_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from .main import explain

    inputs = Inputs()
    tokens = vocabulary(options.tokenizer)
    measure(Compiler(tokens), "true", "", options)  # the vocabulary's own tables, once a process
    status = OK
    for name in options.schemas:
        text = inputs.read(name, "schema")
        try:
            grammar, compiled, first = measure(Compiler(tokens), text, name, options)
        except GrammarError as error:
            line, code = explain(error)
            note(f"structgen: {line}")
            status = max(status, code)
            continue
        print(f"{called(name)}: compiled in {milliseconds(compiled)}, first mask {milliseconds(first)}")
        print(f"  vocabulary  {tokens.vocab_size} ids ({options.tokenizer})")
        if grammar.report:
            print("  enforced    every keyword but these:")
            for entry in grammar.report:
                print(f"    {entry}")
        else:
            print("  enforced    every keyword")
    return status


def measure(
    compiler: Compiler, text: str, name: str, options: argparse.Namespace
) -> tuple[CompiledGrammar, float, float]:
    """The grammar, seconds to compile it, and seconds of its first mask."""
    mask = allocate_bitmask(1, compiler.vocabulary.vocab_size)
    start = time.perf_counter()
    grammar = compile_schema(compiler, text, name, options)
    middle = time.perf_counter()
    grammar.matcher().fill_bitmask(mask)
    return grammar, middle - start, time.perf_counter() - middle
