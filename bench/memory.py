"""Measures resident memory while every schema goes through one compiler.

Enters: MaskBench schemas and their instances. Leaves: a line after every so many schemas: the resident memory
above that before the first schema, the bytes that the compiler and its grammars report, and the free bytes
that malloc holds. Cost: about two minutes for all 5,605 schemas.

    python -m bench.memory --every 500 [--rounds 2] [--cache-bytes 268435456]
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import sys

import numpy as np

import structgen
from oracles import data
from structgen import errors


class Mallinfo(ctypes.Structure):
    """glibc's `struct mallinfo2`."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks",
            "keepcost",
        )
    ]  # fmt: skip


def resident() -> int:
    """Returns bytes of resident memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def heap() -> tuple[int, int]:
    """Returns (bytes in use, bytes free but kept); mapped blocks count as in use."""
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = Mallinfo
    found = libc.mallinfo2()
    return found.uordblks + found.hblkhd, found.fordblks


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.memory", description=__doc__.split("\n")[0])
    parser.add_argument("--every", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=1, help="times through all the schemas")
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--cache-bytes", type=int, default=256 << 20)
    parser.add_argument("--trim", action="store_true", help="give free heap back before each line")
    options = parser.parse_args(arguments)
    data.require("maskbench")
    names = data.select(data.maskbench_names(), stride=options.stride)
    if not names:
        parser.error(f"no schemas in {data.root() / 'maskbench'}")
    tokens = data.tekken()
    vocabulary = structgen.Vocabulary.from_bytes(
        tokens.text, eos_token_ids=[tokens.eos], special_token_ids=tokens.special
    )
    tokens.encode("warm")
    mask = structgen.allocate_bitmask(1, vocabulary.vocab_size)
    compiler = structgen.Compiler(vocabulary, cache_bytes=options.cache_bytes)
    compiler.json_schema({}).matcher().fill_bitmask(mask)
    gc.collect()
    base, (base_used, _) = resident(), heap()
    print(f"vocabulary and Python: {base / 1e6:.0f} MB; cache_bytes: {options.cache_bytes / 1e6:.0f} MB")
    titles = ("resident", "heap used", "heap free", "accounted", "grammars")
    print(f"{'schemas':>8}" + "".join(f"{title:>11}" for title in titles) + "  (MB)")
    for done, name in enumerate(names * options.rounds, 1):
        case = data.maskbench_case(name)
        try:
            grammar = compiler.json_schema(case.schema)
        except errors.StructgenError:
            grammar = None
        if grammar is not None:
            for instance in case.instances:
                walk(grammar, [*tokens.encode(instance.text), tokens.eos], mask)
        if done % options.every == 0 or done == len(names) * options.rounds:
            if options.trim:
                gc.collect()
                ctypes.CDLL(None).malloc_trim(0)
            used, free = heap()
            columns = (resident() - base, used - base_used, free, compiler.byte_size)
            print(
                f"{done:>8}"
                + "".join(f"{value / 1e6:>11.1f}" for value in columns)
                + f"{len(compiler._grammars):>11}",
                flush=True,
            )
    return 0


def walk(grammar: structgen.CompiledGrammar, ids: list[int], mask: np.ndarray) -> None:
    matcher = grammar.matcher()
    for token in ids:
        try:
            matcher.fill_bitmask(mask)
        except errors.StructgenError:
            return
        if not matcher.accept_token(token):
            return


if __name__ == "__main__":
    sys.exit(main())
