"""Compares the engine's verdicts with those of two judges on random schemas, until --pairs of them are done.

Enters: seeds. Leaves: counts by kind, and every disagreement as a minimal case. A pair is one schema and one
text with three verdicts (engine, `oracles/differential/judge.py`, jsonschema). Each seed gives a schema of
every family. Results are appended to `--out` chunk by chunk, so a stopped run continues where it stopped. A
worker that dies is a finding. Cost: about a thousand pairs per second and core.

    python -m bench.differential --pairs 1000000 --jobs 2 --seed 0 --out build/differential.jsonl
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

CHUNK = 20  # seeds of each family per chunk


def worker(first: int, families: list[str], texts: int, jsonschema_too: bool) -> None:
    """Runs one chunk per line of standard input. Writes the current seed and each finding."""
    from oracles.differential import check
    from oracles.strategies import Seeded

    using = check.compiler()
    for line in sys.stdin:
        chunk = int(line)
        checker = check.Checker(using, jsonschema_too)
        slow: list[tuple[float, str, int]] = []
        for family in families:
            for seed in range(first + chunk * CHUNK, first + (chunk + 1) * CHUNK):
                print(f"{family}\t{seed}", flush=True)
                begin = time.process_time()
                before = checker.counts["pairs"]
                try:
                    checker.run(family, Seeded(seed), texts)
                except Exception as error:
                    checker.finding(
                        "failed", f"{family}, seed {seed}", f"{type(error).__name__}: {error}"[:300]
                    )
                checker.counts[f"pairs of {family}"] += checker.counts["pairs"] - before
                slow.append((round(time.process_time() - begin, 3), family, seed))
        found = [dataclasses.asdict(check.minimal(f)) for f in checker.findings]
        record = {"chunk": chunk, "counts": checker.counts, "findings": found, "slow": sorted(slow)[-3:]}
        print("done\t" + json.dumps(record), flush=True)


class Worker:
    """A subprocess that runs one chunk at a time."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.process: subprocess.Popen[str] | None = None

    def run(self, chunk: int) -> Iterator[str]:
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{chunk}\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            yield line
            if line.startswith("done\t"):
                return

    def close(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()


def run_chunk(runner: Worker, chunk: int) -> dict:
    last = ""
    for line in runner.run(chunk):
        if line.startswith("done\t"):
            return json.loads(line[5:])
        last = line.strip()
    assert runner.process is not None
    status = runner.process.wait()
    found = {"kind": "the process died", "schema": last, "text": f"exit status {status}"}
    return {"chunk": chunk, "counts": {"the process died": 1}, "findings": [found], "slow": []}


def known(path: Path) -> dict[int, dict]:
    if not path.exists():
        return {}
    with path.open(encoding="utf-8") as file:
        return {record["chunk"]: record for record in map(json.loads, file)}


def report(records: dict[int, dict]) -> str:
    counts: collections.Counter[str] = collections.Counter()
    for record in records.values():
        counts.update(record["counts"])
    out = [f"{count:>10}  {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1])]
    slow = sorted((tuple(s) for r in records.values() for s in r["slow"]), reverse=True)[:5]
    out.append("slowest: " + ", ".join(f"{family} {seed} {seconds:.1f} s" for seconds, family, seed in slow))
    kinds: dict[str, list[dict]] = collections.defaultdict(list)
    for record in records.values():
        for found in record["findings"]:
            kinds[found["kind"]].append(found)
    for kind, found in kinds.items():
        out.append(f"{kind}: {len(found)}")
        for each in found[:20]:
            verdicts = ", ".join(
                f"{k} {each[k]}" for k in ("engine", "judge", "jsonschema") if each.get(k) is not None
            )
            out.append(
                f"    {json.dumps(each['schema'], ensure_ascii=False)}\n      {each['text']}  {verdicts}"
            )
    return "\n".join(out)


def main(arguments: list[str] | None = None) -> int:
    from concurrent.futures import ThreadPoolExecutor

    parser = argparse.ArgumentParser(prog="bench.differential", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--pairs", type=int, default=1_000_000, help="stop after this many, earlier runs included"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--texts", type=int, default=24, help="texts a schema")
    parser.add_argument("--families", default="", help="comma-separated; default: all")
    parser.add_argument("--no-jsonschema", action="store_true", help="the judge alone, twice as fast")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this long")
    parser.add_argument("--out", type=Path, default=Path("build/differential.jsonl"))
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    from oracles.differential.check import FAMILIES

    families = options.families.split(",") if options.families else list(FAMILIES)
    if options.worker:
        worker(options.seed, families, options.texts, not options.no_jsonschema)
        return 0
    command = [sys.executable, "-m", "bench.differential", "--worker", "--seed", str(options.seed)]
    command += ["--texts", str(options.texts), "--families", ",".join(families)]
    command += ["--no-jsonschema"] if options.no_jsonschema else []
    options.out.parent.mkdir(parents=True, exist_ok=True)
    records = known(options.out)
    pairs = sum(record["counts"].get("pairs", 0) for record in records.values())
    begin = time.monotonic()
    todo = (chunk for chunk in range(10**9) if chunk not in records)
    turn = threading.Lock()
    with ThreadPoolExecutor(options.jobs) as pool, options.out.open("a", encoding="utf-8") as file:

        def loop(_: int) -> None:
            nonlocal pairs
            runner = Worker(command)
            while pairs < options.pairs and time.monotonic() - begin < 60 * options.minutes:
                with turn:
                    chunk = next(todo)
                record = run_chunk(runner, chunk)
                records[record["chunk"]] = record
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
                file.flush()
                pairs += record["counts"].get("pairs", 0)
                wrong = sum(len(r["findings"]) for r in records.values())
                print(f"{pairs} pairs, {wrong} findings", file=sys.stderr, flush=True)
            runner.close()

        list(pool.map(loop, range(options.jobs)))
    print(report(records))
    return int(any(record["findings"] for record in records.values()))


if __name__ == "__main__":
    sys.exit(main())
