"""Engines that misbehave on purpose. `tests/test_bench.py` names them as `tests.bench_engines:bad`."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

from structgen.maskbench.engines.base import Refused, Sequence, row_of

_EVER = 3600.0  # seconds; the test ends the process long before


class Grammar:
    unenforced: tuple[str, ...] = ()

    def __init__(self, how: str, size: int) -> None:
        self._how = how
        self._row = row_of(size)
        self._row[:] = -1

    def sequence(self) -> Sequence:
        def accept(_token: int) -> bool:
            if self._how == "raise":
                raise RuntimeError("broken on purpose")
            return self._how != "stubborn"

        return Sequence(lambda: None, accept, self._row)


class Bad:
    """The engine takes its fault from the title of the schema: hang, crash, grow, refuse, raise or stubborn.
    With any other title it allows all tokens."""

    name = "tests.bench_engines:bad"
    version = "1"
    notes = ("made for tests",)

    def __init__(self, size: int) -> None:
        self._size = size

    def compile(self, schema: str) -> Grammar:
        document: Any = json.loads(schema)
        how = document.get("title", "") if isinstance(document, dict) else ""
        print("noise that belongs into the log")
        if how == "hang":
            time.sleep(_EVER)
        if how == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if how == "exit":
            os._exit(3)
        if how == "grow":
            held = []
            for _ in range(400):
                held.append(bytearray(b"x" * (4 << 20)))
                time.sleep(0.02)
            time.sleep(_EVER)  # Holds 1.6 GB until the supervisor measures the memory.
        if how == "refuse":
            raise Refused('Unimplemented keys: ["not"]')
        return Grammar(how, self._size)


def bad(tokens: Any) -> Bad:
    return Bad(len(tokens.text))


bad.version = "1"  # type: ignore[attr-defined]


def plain(tokens: Any) -> Any:
    """structgen behind an adapter that takes no number of tokens left."""
    from structgen.maskbench.engines.structgen import Engine

    class Grammar:
        unenforced: tuple[str, ...] = ()

        def __init__(self, compiled: Any) -> None:
            self._compiled = compiled

        def sequence(self) -> Sequence:
            made = self._compiled.sequence()
            return Sequence(made.fill, made.accept, made.row)

    class Plain:
        name = "tests.bench_engines:plain"
        version = "1"
        notes: tuple[str, ...] = ()

        def __init__(self) -> None:
            self._engine = Engine(tokens)

        def compile(self, schema: str) -> Grammar:
            return Grammar(self._engine.compile(schema))

    return Plain()


plain.version = "1"  # type: ignore[attr-defined]


def giving_up(tokens: Any) -> Any:
    """The matcher allows only the end of the text and reports that it failed."""
    row = row_of(len(tokens.text))
    row[tokens.eos >> 5] = 1 << (tokens.eos & 31)

    class Grammar:
        unenforced: tuple[str, ...] = ()

        def sequence(self) -> Sequence:
            return Sequence(lambda: None, lambda _token: True, row, lambda: "lexer error: too much\nmore")

    class GivingUp:
        name = "tests.bench_engines:giving_up"
        version = "1"
        notes: tuple[str, ...] = ()

        def compile(self, schema: str) -> Grammar:
            return Grammar()

    return GivingUp()


def unloadable(tokens: Any) -> Bad:
    raise OSError("no licence file")
