"""Makes random walks under a budget and checks that every document ends whole.

In: MaskBench schemas (`oracles.data`). Out: for each factor of the fewest tokens, the number of walks, of
walks that were cut off, and of texts that the grammar of the schema refuses; the schemas whose fewest tokens
were not found. Cost: a few seconds for each schema at 131k tokens; `--vocabulary bytes` is ten times faster.
The last line is the memory of the process. A schema that made the memory grow by more than 100 MB is named.

    python -m bench.budget --count 200
    python -m bench.budget --costs --count 42      a table of what a mask costs, see `bench.budget_costs`
"""

from __future__ import annotations

import argparse
import random
import resource
import time

import numpy as np

import structgen
from oracles import data
from structgen import errors

from . import budget_costs

FACTORS = (1.0, 1.2, 2.0)
SLOW = 0.5  # a mask that takes more seconds gets a line


def walk(
    grammar: structgen.CompiledGrammar, budget: int, source: random.Random, size: int, steps: list[float]
) -> tuple[bool, bytes]:
    """Walks at random for at most `budget` tokens. Returns whether the text is whole, and the text. `steps`
    takes the CPU seconds of each mask."""
    matcher = grammar.matcher()
    mask = structgen.allocate_bitmask(1, size)
    text = b""
    for left in range(budget, 0, -1):
        try:
            began = time.process_time()
            matcher.fill_bitmask(mask, 0, left)
            steps.append(time.process_time() - began)
        except errors.UnsatisfiableBudget:
            return False, text
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        if not len(allowed):
            return False, text
        token = int(allowed[source.randrange(len(allowed))])
        assert matcher.accept_token(token)
        if matcher.is_terminated():
            return True, text
        text += grammar.vocabulary.token_bytes(token)
    return False, text


def memory() -> int:
    """Returns the largest memory of the process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--vocabulary", default="tekken", choices=("tekken", "bytes"))
    parser.add_argument("--longest", type=int, default=300, help="tokens above the minimum at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="these schemas, by name")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this long")
    parser.add_argument("--costs", action="store_true", help="print a table of CPU microseconds a mask")
    parser.add_argument("--draw", nargs="*", default=["token", "byte"], choices=("token", "byte"))
    options = parser.parse_args(arguments)
    data.require("maskbench")
    if options.vocabulary == "tekken":
        tokens = data.tekken()
        texts = list(tokens.text)
        vocabulary = structgen.Vocabulary.from_bytes(tokens.text, tokens.eos, tokens.special)
    else:
        texts = [*(bytes([i]) for i in range(256)), b""]
        vocabulary = structgen.Vocabulary.from_bytes(texts, 256)
    names = options.only or data.select(data.maskbench_names(), count=options.count, seed=options.seed)
    if options.costs:
        for draw in options.draw:
            budget_costs.table(vocabulary, texts, names, draw)
        return
    compiler = structgen.Compiler(vocabulary)
    walks, cut, wrong, unknown, refused, spent = dict.fromkeys(FACTORS, 0), 0, 0, 0, 0, 0.0
    began = time.monotonic()
    seen, held, previous = 0, memory(), ""
    steps: list[float] = []
    print(f"{held} MB before the first schema")
    for name in names:
        schema = data.maskbench_case(name).schema
        if time.monotonic() - began > options.seconds:
            break
        if memory() > held + 100:
            print(
                f"{memory()} MB after {seen} schemas, {memory() - held} more than before {previous}",
                flush=True,
            )
        held, previous = memory(), name
        seen += 1
        try:
            grammar = compiler.json_schema(schema)
        except structgen.StructgenError:
            refused += 1
            continue
        try:
            least = grammar.matcher().tokens_needed()
        except structgen.StructgenError as error:
            unknown += 1
            print(f"{name}: {error}", flush=True)
            continue
        for factor in FACTORS:
            budget = min(max(least, int(least * factor)), least + options.longest)
            before = len(steps)
            try:
                source = random.Random(f"{options.seed} {name} {factor}")
                whole, text = walk(grammar, budget, source, len(vocabulary), steps)
            except structgen.StructgenError as error:
                print(f"{name} at {factor}: {error}", flush=True)
                whole, text = False, b""
            walks[factor] += 1
            if max(steps[before:], default=0) > SLOW:
                print(f"{name} at {factor}: {max(steps[before:]):.1f} s for one mask", flush=True)
            if not whole:
                cut += 1
                print(f"{name} at {factor}: cut off after {text[:80]!r}", flush=True)
                continue
            check = grammar.matcher()
            if not (check.accept_bytes(text) and check.is_accepting()):
                wrong += 1
    spent = time.monotonic() - began
    print(f"{seen} schemas, {refused} refused, {unknown} whose minimum was not found, {spent:.0f} s")
    print(f"{memory()} MB at the most, {compiler._core.byte_size >> 20} MB counted by the compiler")
    steps.sort()
    if steps:
        at = [steps[min(len(steps) - 1, int(len(steps) * q))] * 1e3 for q in (0.5, 0.9, 0.99, 0.999, 1.0)]
        print(f"{len(steps)} masks, ms at p50 p90 p99 p99.9 max: " + " ".join(f"{x:.2f}" for x in at))
    each = ", ".join(f"{n} at {f}x" for f, n in walks.items())
    print(f"walks {each}: {cut} cut off, {wrong} not accepted")


if __name__ == "__main__":
    main()
