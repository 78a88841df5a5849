"""Runs random cases of everything except plain schemas, each compared with an oracle of its own, until
--cases of them are done.

Enters: seeds. Leaves: counts by kind, and every seed that failed. A case is one seed: a random grammar,
schema, budget or model with all its questions, a hundred verdicts and more. The generators and oracles are
those of the test-suite, which runs a few seeds of each:

    contextual, dynamic, scannerless, gbnf   context-free grammars in a dialect, beside naive derivations
    tokens, tokens-ebnf, tokens-lark         formats of whole tokens, beside every sequence of few tokens
    limits, captures                         `max_tokens` and captures of rules, beside naive derivations
    styles                                   arguments of tools in a style, beside its inverse and a judge
    budget, budget-schema, budget-grammar    least tokens and masks under budgets, beside exhaustive search
    reasoning, drafts                        thoughts in front of answers, beside their definition; drafts
                                             over the border under budgets
    shared-thoughts                          their masks, beside those of a compiler without a cache
    samplers                                 `sg.sample` over every outcome of its randomness

Results are appended to `--out` chunk by chunk, so a stopped run continues where it stopped. A worker that
dies, or takes more than five minutes for one seed, is a finding. `--shard 2/4` does the second of four parts
of the run. `--only KIND --first SEED --cases 1` runs one seed again and keeps nothing. Cost: about 60 cases a
second of processor time.

    python -m bench.recorded --cases 1000000 --jobs 2
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.differential import Worker, known, run_chunk

CHUNK = 25  # seeds per chunk
FIRST = 500_000_000  # the first seed, far from the seeds of the tests
LIMIT = 300  # seconds per seed


def kinds() -> dict[str, Callable[[int], Any]]:
    """Returns the function of each kind, which runs one seed and raises an error for a wrong answer."""
    import functools

    import pytest

    from oracles import least_tokens as least
    from oracles import max_tokens as limits
    from oracles import random_grammars as grammars
    from oracles import reasoning
    from oracles import sampling_stops as stops
    from oracles import token_formats as formats
    from oracles import tool_calls as styles
    from oracles.differential.check import FAMILIES
    from oracles.strategies import Seeded

    compilers = functools.cache(grammars.compilers)

    def of_dialect(dialect: str) -> Callable[[int], Any]:
        return lambda seed: grammars.check(seed, dialect, compilers())

    def style(seed: int) -> None:
        family = list(FAMILIES)[seed % len(FAMILIES)]
        styles.one(family, Seeded(seed), collections.Counter())

    def sampler(seed: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            stops.check(*stops.random_case(seed), patch)

    return {
        **{dialect: of_dialect(dialect) for dialect in grammars.DIALECTS},
        "tokens": lambda seed: formats.law(Seeded(seed)),
        "tokens-ebnf": lambda seed: formats.law_of_ebnf(Seeded(seed)),
        "tokens-lark": lambda seed: formats.law_of_lark(Seeded(seed)),
        "limits": lambda seed: limits.means_what_it_says(Seeded(seed)),
        "captures": lambda seed: limits.captures_are_brute_force(Seeded(seed)),
        "styles": style,
        "budget": least.of_regex,
        "budget-schema": lambda seed: least.of_schema(seed, seed % len(least.SCHEMAS)),
        "budget-grammar": least.of_grammar,
        "reasoning": lambda seed: reasoning.means_what_it_says(Seeded(seed)),
        "drafts": lambda seed: reasoning.thinks_and_answers(Seeded(seed)),
        "host-drafts": lambda seed: reasoning.a_host_drafts(Seeded(seed)),
        "shared-thoughts": lambda seed: reasoning.shares_no_mask_of_another(
            Seeded(seed), lacking=seed % 8 == 0
        ),
        "samplers": sampler,
    }


# The chunks of each kind in a round of 40. Fast kinds that find the most bugs come most often.
TURN = {
    "contextual": 5, "dynamic": 6, "scannerless": 3, "gbnf": 3, "tokens": 2, "tokens-ebnf": 2,
    "tokens-lark": 2, "limits": 2, "captures": 1, "styles": 4, "budget": 3, "budget-schema": 1,
    "budget-grammar": 1, "reasoning": 1, "drafts": 1, "host-drafts": 1,
    "shared-thoughts": 1, "samplers": 1,
}  # fmt: skip


def worker(first: int, size: int, names: list[str]) -> None:
    """Runs one chunk per line of standard input. Writes the current seed and each finding."""
    known_kinds = kinds()
    for line in sys.stdin:
        chunk = int(line)
        kind = names[chunk % len(names)]
        counts: collections.Counter[str] = collections.Counter()
        findings, slow = [], []
        for seed in range(first + chunk * size, first + (chunk + 1) * size):
            print(f"{kind}, seed {seed}", flush=True)
            begin = time.process_time()
            signal.alarm(LIMIT)
            try:
                known_kinds[kind](seed)
            except Exception as error:
                text = " ".join(f"{type(error).__name__}: {error}".split())
                findings.append({"kind": kind, "seed": seed, "text": text[:400]})
            signal.alarm(0)
            counts[kind] += 1
            slow.append((round(time.process_time() - begin, 3), kind, seed))
        record = {"chunk": chunk, "counts": counts, "findings": findings, "slow": sorted(slow)[-3:]}
        print("done\t" + json.dumps(record), flush=True)


def report(records: dict[int, dict]) -> str:
    counts: collections.Counter[str] = collections.Counter()
    for record in records.values():
        counts.update(record["counts"])
    out = [f"{count:>10}  {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1])]
    out.insert(0, f"{sum(counts.values()):>10}  cases")
    slow = sorted((tuple(s) for r in records.values() for s in r["slow"]), reverse=True)[:5]
    out.append("slowest: " + ", ".join(f"{kind} {seed} {seconds:.1f} s" for seconds, kind, seed in slow))
    findings = [found for record in records.values() for found in record["findings"]]
    out.append(f"failed: {len(findings)}")
    for found in findings[:50]:
        where = (
            f"{found['kind']} {found['seed']}" if "seed" in found else f"{found['kind']}: {found['schema']}"
        )
        out.append(f"    {where}  {found['text']}")
    return "\n".join(out)


def main(arguments: list[str] | None = None) -> int:
    from concurrent.futures import ThreadPoolExecutor

    parser = argparse.ArgumentParser(prog="bench.recorded", description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=1_000_000, help="of all shards, earlier runs included")
    parser.add_argument("--shard", default="1/1", help="K/N: the K-th of N parts of the run")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--first", type=int, default=FIRST, help="the first seed")
    parser.add_argument("--only", default="", help=f"one of {', '.join(TURN)}")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this long")
    parser.add_argument("--out", type=Path, default=Path("build/recorded.jsonl"))
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--chunk", type=int, default=CHUNK, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.only and options.only not in TURN:
        parser.error(f"--only is one of {', '.join(TURN)}")
    part, _, parts = options.shard.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        parser.error("--shard is K/N with 1 <= K <= N")
    names = [options.only] if options.only else [name for name, n in TURN.items() for _ in range(n)]
    if options.worker:
        worker(options.first, options.chunk, names)
        return 0
    size = min(CHUNK, options.cases)
    command = [sys.executable, "-m", "bench.recorded", "--worker", "--first", str(options.first)]
    command += ["--chunk", str(size), *(["--only", options.only] if options.only else [])]
    out = Path(os.devnull) if options.only else options.out
    out.parent.mkdir(parents=True, exist_ok=True)
    records = known(out)
    begin = time.monotonic()
    # Each shard gets whole rounds, so every shard runs all kinds.
    mine = int(part) - 1
    turns = range(mine * len(names), 10**9, int(parts) * len(names))
    todo = (chunk for turn in turns for chunk in range(turn, turn + len(names)) if chunk not in records)
    wanted = -(-options.cases // int(parts))
    asked = sum(sum(record["counts"].values()) for record in records.values())
    lock = threading.Lock()
    with ThreadPoolExecutor(options.jobs) as pool, out.open("a", encoding="utf-8") as file:

        def work(_: int) -> None:
            nonlocal asked
            runner = Worker(command)
            while time.monotonic() - begin < 60 * options.minutes:
                with lock:
                    if asked >= wanted:
                        break
                    asked += size
                    chunk = next(todo)
                record = run_chunk(runner, chunk)
                with lock:
                    records[chunk] = record
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
                    file.flush()
                    for found in record["findings"]:
                        print(json.dumps(found, ensure_ascii=False), file=sys.stderr, flush=True)
            runner.close()

        list(pool.map(work, range(options.jobs)))
    print(report(records), flush=True)
    return int(any(record["findings"] for record in records.values()))


if __name__ == "__main__":
    sys.exit(main())
