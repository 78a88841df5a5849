"""Compares a compiler that a second process read with `Compiler.load` to a new compiler.

Enters: MaskBench schemas with two or more texts that are instances (`oracles.data`), tekken's vocabulary.
One text of each schema is read by `warm` and saved; another is decoded in fresh processes. Leaves: the bytes
of the file, milliseconds of loading, and CPU microseconds: to the first mask (the compile included) and
between masks. Cost: seconds.

    python -m bench.saved [--count 400] [--repeat 3]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import structgen
from oracles import data

QUANTILES = (0.5, 0.9, 0.99, 1.0)

# Prints JSON: milliseconds of loading (clock and CPU), microseconds to first masks, microseconds of later
# masks.
_CHILD = r"""
import json, sys, time
how, words, saved, cases = sys.argv[1:]
import structgen as sg
vocabulary = sg.Vocabulary.load(words)
mask = sg.allocate_bitmask(1, vocabulary.vocab_size)
sg.Compiler(vocabulary).json_schema("{}").prepare()
began = time.perf_counter(), time.process_time()
if how == "load":
    compiler = sg.Compiler.load(saved, vocabulary)
else:
    compiler = sg.Compiler(vocabulary)
took = [1e3 * (now - then) for now, then in zip((time.perf_counter(), time.process_time()), began)]
first, masks, kept = [], [], []
for schema, tokens in json.load(open(cases)):
    then = time.process_time_ns()
    grammar = compiler.json_schema(schema)
    matcher = grammar.matcher()
    matcher.fill_bitmask(mask)
    first.append((time.process_time_ns() - then) / 1e3)
    kept.append(grammar)
    for token in tokens:
        then = time.process_time_ns()
        assert matcher.accept_token(token)
        matcher.fill_bitmask(mask)
        masks.append((time.process_time_ns() - then) / 1e3)
print(json.dumps([took, first, masks, compiler.byte_size]))
"""


def cases(
    vocabulary: structgen.Vocabulary, count: int
) -> list[tuple[str, structgen.CompiledGrammar, str, list[int]]]:
    """Returns for each schema its text, its grammar, a text for `warm`, and the tokens of another text."""
    compiler, found = structgen.Compiler(vocabulary), []
    for name in data.select(data.maskbench_names(), count=count, seed=0):
        case = data.maskbench_case(name)
        texts = [instance.text for instance in case.instances if instance.valid]
        if len(texts) < 2:
            continue
        try:
            grammar = compiler.json_schema(case.schema)
            new = vocabulary.encode(texts[1])
            if grammar.matcher().validate_tokens(new) == len(new):
                found.append((case.schema, grammar, texts[0], new))
        except structgen.StructgenError:
            continue
    return found


def line(name: str, values: list[float]) -> str:
    found = sorted(values)
    at = [found[min(len(found) - 1, int(len(found) * q))] for q in QUANTILES]
    return f"  {name:<28}" + "".join(f"{x:>10.1f}" for x in (*at, sum(found) / len(found)))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.saved", description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args(arguments)
    data.require("maskbench")
    tokens = data.tekken()
    built = structgen.Vocabulary.from_bytes(tokens.text, tokens.eos, tokens.special)
    with tempfile.TemporaryDirectory() as folder:
        words, saved, texts = (str(Path(folder) / name) for name in ("words", "compiler", "cases"))
        built.save(words)
        vocabulary = structgen.Vocabulary.load(words)
        compiler = structgen.Compiler(vocabulary)
        chosen = cases(vocabulary, options.count)
        held = []  # keeps the grammars alive until the save
        for schema, _, text, _ in chosen:
            held.append(compiler.json_schema(schema))
            held[-1].warm([text])
        written = compiler.save(saved)
        Path(texts).write_text(json.dumps([(schema, new) for schema, _, _, new in chosen]))
        size, schemas = Path(saved).stat().st_size, sum(len(schema) for schema, *_ in chosen)
        print(f"{written} grammars, {schemas:,} bytes of schemas: the file has {size:,} bytes")
        heads = ("p50", "p90", "p99", "max", "mean")
        print(f"  {'CPU microseconds':<28}" + "".join(f"{h:>10}" for h in heads))
        for how in ("new", "load"):
            runs = []
            for _ in range(options.repeat):
                command = [sys.executable, "-c", _CHILD, how, words, saved, texts]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                runs.append(json.loads(done.stdout))
            took, first, masks, size = sorted(runs, key=lambda run: sum(run[2]))[len(runs) // 2]
            print(f"{how}: {took[0]:.0f} ms wall, {took[1]:.0f} ms CPU; {size / 1e6:.1f} MB at the end")
            print(line("first mask, with compiling", first))
            print(line("mask of a new text", masks), len(masks))
    return 0


if __name__ == "__main__":
    sys.exit(main())
