"""Measures `fill_bitmasks`: masks per second over 1 to 512 matchers, with 1 and 2 threads.

Enters: MaskBench schemas. Leaves: a table for matchers of one grammar and of many grammars. *known* means
that every mask was computed before, so no lock is taken. *new* means grammars that were not used yet, so
masks are computed. As many threads compile new grammars as fill masks: if a compiler is busy, another thread
gets a second set of automata, and the two sets do not wait for each other. Cost: about a minute.

    python -m bench.batch [--sizes 1,8,64,512] [--threads 1,2]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import structgen
from oracles import data
from structgen import errors

Walked = tuple[structgen.CompiledGrammar, list[int]]


def walked(compiler: structgen.Compiler, tokens: data.Tokens, count: int, threads: int = 1) -> list[Walked]:
    """Grammars with a valid text of each, compiled by the given number of threads."""
    cases = (data.maskbench_case(name) for name in data.sample(data.maskbench_names(), 4 * count))
    texts = ((c, [i.text for i in c.instances if i.valid and len(i.text) < 4000]) for c in cases)
    chosen = [(case.schema, valid[0]) for case, valid in texts if valid][: count + count // 8]

    def compiled(schema: str) -> structgen.CompiledGrammar | None:
        try:
            return compiler.json_schema(schema)
        except errors.StructgenError:
            return None

    with ThreadPoolExecutor(threads) as pool:
        grammars = list(pool.map(compiled, (schema for schema, _ in chosen)))
    found = zip(grammars, chosen, strict=True)
    return [(grammar, tokens.encode(text)) for grammar, (_, text) in found if grammar is not None][:count]


def at_random_places(grammars: list[Walked], size: int, seed: int = 0) -> list[structgen.Matcher]:
    """`size` matchers over the grammars in turn, each at a random place of its text."""
    random = np.random.default_rng(seed)
    matchers = []
    for i in range(size):
        grammar, ids = grammars[i % len(grammars)]
        matcher = grammar.matcher()
        for token in ids[: random.integers(0, len(ids) + 1)]:
            if not matcher.accept_token(token):
                break
        matchers.append(matcher)
    return matchers


def rate(call: Callable[[], None], size: int, least: float = 0.3) -> float:
    """Returns masks per second: the best of five repetitions of `least` / 5 seconds."""
    best = 0.0
    for _ in range(5):
        count, start = 0, time.perf_counter()
        while (spent := time.perf_counter() - start) < least / 5:
            call()
            count += 1
        best = max(best, count * size / spent)
    return best


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.batch", description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="1,2,4,8,16,32,64,128,256,512")
    parser.add_argument("--threads", default="1,2")
    options = parser.parse_args(arguments)
    sizes = [int(n) for n in options.sizes.split(",")]
    threads = [int(n) for n in options.threads.split(",")]
    data.require("maskbench")
    tokens = data.tekken()
    vocabulary = structgen.Vocabulary.from_bytes(
        tokens.text, eos_token_ids=[tokens.eos], special_token_ids=tokens.special
    )
    mask = structgen.allocate_bitmask(max(sizes), vocabulary.vocab_size)
    titles = [f"{what}, {n} threads" for what in ("known", "new") for n in threads]
    for label, count in (("one grammar", 1), ("many grammars", max(sizes))):
        print(f"{label}: thousand masks a second")
        print(f"{'matchers':>10}" + "".join(f"{title:>18}" for title in titles))
        for size in sizes:
            line = []
            compiler = structgen.Compiler(vocabulary, cache_bytes=1 << 30)
            grammars = walked(compiler, tokens, min(count, size))
            matchers = at_random_places(grammars, size)
            structgen.fill_bitmasks(matchers, mask)
            for n in threads:
                line.append(rate(lambda m=matchers, n=n: structgen.fill_bitmasks(m, mask, n), size))
            for n in threads:
                fresh = structgen.Compiler(vocabulary, cache_bytes=1 << 30)
                new = at_random_places(walked(fresh, tokens, min(count, size), n), size)
                start = time.perf_counter()
                structgen.fill_bitmasks(new, mask, n)
                line.append(size / (time.perf_counter() - start))
            print(f"{size:>10}" + "".join(f"{value / 1e3:>18.1f}" for value in line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
