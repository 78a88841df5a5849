"""The command line: runs one sub-command, and turns every failure into one readable line."""

from __future__ import annotations

import argparse
import dis
import importlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import structgen
from structgen._extras import missing
from structgen.errors import DoubtfulAnswer, GrammarError, StructgenError, UnsatisfiableSchema
from structgen.linting import SchemaWarning

from .common import OK, REJECTED, USAGE, Failure, forget_warnings, one_line, warn_once

# The shell's convention for a process that a signal ended: 128 + SIGINT, 128 + SIGPIPE.
INTERRUPTED, BROKEN_PIPE = 130, 141

# Modules of this package.
_COMMANDS = (
    *("generate", "sample", "search", "serve", "playground", "check", "compile", "mask", "infill", "edit"),
    *("lint", "diff", "examples", "trace", "corpus", "bench", "grammar"),
)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors have two lines: the command for help, and the mistake. (argparse prints every
    option.) Options cannot be abbreviated: `--n` is no short form of `--numbers`."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(allow_abbrev=False, **arguments)

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"usage: {self.prog} --help\n{self.prog}: {message}\n")


def parser(command: str = "") -> argparse.ArgumentParser:
    """Returns the parser of one sub-command, or of all. For one, the modules of the others are not
    imported."""
    top = _Parser(
        prog="structgen",
        description="Grammars and JSON Schemas as exact token masks: generate, sample, check.",
        epilog="`-` reads standard input. Exit status: 0 ok, 1 rejected, 2 usage or unsupported.",
    )
    top.add_argument("--version", action="version", version=f"structgen {structgen.__version__}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in (command,) if command in _COMMANDS else _COMMANDS:
        importlib.import_module(f".{name}", __package__).add_parser(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status. It prints no traceback unless STRUCTGEN_TRACEBACK is
    set."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        options = parser(given[0] if given else "").parse_args(given)
        with warnings.catch_warnings():
            _told_once(getattr(options, "strict", False))
            status: int = options.run(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader of the output has closed the pipe, so standard output must not be flushed again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("STRUCTGEN_TRACEBACK"):
            raise
        text, status = explain(error)
        print(f"structgen: {text}", file=sys.stderr)
        return status


def _told_once(strict: bool) -> None:
    """Prints warnings about schemas on standard error, each once. With --strict they are errors."""
    warnings.simplefilter("error" if strict else "always", SchemaWarning)
    warnings.simplefilter("ignore", DoubtfulAnswer)  # commands report this warning together with the result
    others = warnings.showwarning
    forget_warnings()

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, SchemaWarning):
            others(message, category, *place, **more)
        else:
            warn_once(str(message))

    warnings.showwarning = show


def _said(error: Exception) -> bool:
    """Returns whether this package raised the error itself, to refuse an argument."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not trace.tb_frame.f_globals.get("__name__", "").startswith("structgen."):
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def explain(error: Exception) -> tuple[str, int]:
    """Returns one line for an exception, and the exit status that it means."""
    if isinstance(error, Failure):
        return str(error), USAGE
    if isinstance(error, UnsatisfiableSchema):
        return f"{error.message} (at #{error.pointer})", REJECTED
    if isinstance(error, GrammarError):
        return one_line(str(error)), USAGE
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror, USAGE
    if isinstance(error, (RecursionError, MemoryError)):
        return f"the input is too deep or too large ({type(error).__name__})", USAGE
    if isinstance(error, ImportError):
        error = missing(error, "")
    if isinstance(error, SchemaWarning):
        return f"{error} (--strict makes warnings errors)", USAGE
    known = isinstance(error, (StructgenError, ValueError, ImportError)) or type(error).__module__.startswith(
        "structgen."
    )
    known = known or (isinstance(error, TypeError) and _said(error))
    text = one_line(str(error)) or type(error).__name__
    return text if known else f"unexpected {type(error).__name__}: {text}", USAGE


__all__ = ["OK", "REJECTED", "USAGE", "main", "parser"]
