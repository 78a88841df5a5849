"""Measures `structgen.rl.replay`: tokens per second at a vocabulary of 131,072 tokens.

Enters: MaskBench schemas with their valid texts. Leaves: a line for a *new* grammar, whose masks the text
makes; for a *known* grammar on one thread; and for many texts over threads. Beside each line stands a loop of
`fill_bitmask` and `accept_token`, whose masks must be equal. Cost: half a minute.

    python -m bench.replay [--count 40] [--tokens 10000] [--threads 1,2]
    python -m bench.replay --rows 4000 [--workers 2]

With --rows: a folder with so many rows of JSONL, each with its own schema, is replayed over Ray Data
(`ray_data.replayed`). One run is killed after it wrote a part, and another run continues it. The rows per
second are those of a whole run, with and without the start of Ray's workers.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import structgen as sg
from bench.batch import walked
from oracles import data
from structgen import rl


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench.replay")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--tokens", type=int, default=10_000)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rows", type=int, default=0, help="rows of a folder of JSONL, over Ray Data")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--replay", nargs=2, help=argparse.SUPPRESS)  # for the process that is killed
    asked = parser.parse_args(argv)
    tokens = data.tekken()
    vocabulary = sg.Vocabulary.from_bytes(
        tokens.text, eos_token_ids=[tokens.eos], special_token_ids=tokens.special
    )
    if asked.replay:
        return _replayed(*asked.replay, vocabulary, asked.workers)
    compiler = sg.Compiler(vocabulary)
    if asked.rows:
        return over_ray(vocabulary, tokens, asked)
    grammars = [  # if the grammar cannot write the text in full, the text counts up to that place
        (grammar, np.array(ids[: grammar.matcher().validate_tokens(ids)], np.int64))
        for grammar, ids in walked(compiler, tokens, asked.count)
    ]
    total = sum(len(ids) for _, ids in grammars)
    print(f"{len(grammars)} grammars, {total} tokens, {vocabulary.vocab_size} in the vocabulary")

    begin = time.perf_counter()
    first = [rl.replay(grammar, ids) for grammar, ids in grammars]
    print(f"new grammars      {total / (time.perf_counter() - begin):12,.0f} tokens/s")
    mask = sg.allocate_bitmask(1, vocabulary.vocab_size)
    begin = time.perf_counter()
    for (grammar, ids), masks in zip(grammars, first, strict=True):
        matcher = grammar.matcher()
        for i, token in enumerate(ids.tolist()):
            matcher.fill_bitmask(mask)
            matcher.accept_token(token)
            if not np.array_equal(mask[0], masks.rows[masks.of[i]]):
                raise AssertionError(f"token {i} has another mask")
    print(f"a loop, compared  {total / (time.perf_counter() - begin):12,.0f} tokens/s")

    properties = {"name": {"type": "string"}, "n": {"type": "integer"}}
    lists = compiler.json_schema({"type": "array", "items": {"type": "object", "properties": properties}})
    item = '{"name": "a name of some words", "n": 1234}'
    encoded = tokens.encode("[" + ", ".join([item] * (asked.tokens // 10)) + "]")[: asked.tokens]
    rl.replay(lists, encoded)
    ids = np.array(encoded, np.int32)
    for threads in map(int, asked.threads.split(",")):
        texts = [ids] * (20 * threads)
        begin = time.perf_counter()
        many = rl.replay_many(lists, texts, threads=threads)
        spent = time.perf_counter() - begin
        print(
            f"known, {threads} thread(s) {len(ids) * len(texts) / spent:12,.0f} tokens/s, "
            f"{len(many[0].rows)} distinct masks of {len(ids)} tokens"
        )
    begin = time.perf_counter()
    dense = many[0].bitmask()
    rate = len(dense) / (time.perf_counter() - begin)
    print(f"bitmask()         {rate:12,.0f} rows/s, {dense.nbytes / 1e6:,.0f} MB")
    return 0


def _replayed(source: str, out: str, vocabulary: sg.Vocabulary, workers: int) -> int:
    """Prints the rows and seconds of a run over Ray Data."""
    import ray

    from structgen.integrations.ray_data import replayed

    environment = {"env_vars": {"PYTHONPATH": str(Path(sg.__file__).parents[1]), "OMP_NUM_THREADS": "1"}}
    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    begin = time.perf_counter()
    count = replayed(source, out, vocabulary, workers=workers)
    print(f"rows {count} in {time.perf_counter() - begin:.1f} s", flush=True)
    return 0


def over_ray(vocabulary: sg.Vocabulary, tokens: Any, asked: Any) -> int:
    """Runs three times over Ray Data: a killed run, its continuation, and a whole run."""
    import pyarrow.parquet

    cases = (data.maskbench_case(name) for name in data.sample(data.maskbench_names(), 4 * asked.count))
    valid = ((case.schema, [i.text for i in case.instances if i.valid]) for case in cases)
    texts = [(schema, tokens.encode(found[0])) for schema, found in valid if found][: asked.count]
    with tempfile.TemporaryDirectory() as folder:
        source, parts, whole = (Path(folder) / name for name in ("rows", "parts", "whole"))
        source.mkdir()
        with open(source / "rows.jsonl", "w", encoding="utf-8") as file:
            for i in range(asked.rows):
                schema, ids = texts[i % len(texts)]
                row = {"id": f"r{i}", "kind": "json_schema", "constraint": schema, "tokens": ids}
                file.write(json.dumps(row) + "\n")
        command = [
            sys.executable,
            "-m",
            "bench.replay",
            "--workers",
            str(asked.workers),
            "--replay",
            str(source),
        ]
        quiet = subprocess.DEVNULL
        first = subprocess.Popen([*command, str(parts)], stdout=quiet, stderr=quiet)
        while first.poll() is None and not any(parts.glob("*.parquet")):
            time.sleep(0.05)
        first.kill()
        written = len(list(parts.glob("*.parquet")))
        print(f"{asked.rows} rows of {len(texts)} schemas; killed with {written} parts written", flush=True)
        for name, out in (("goes on", parts), ("whole", whole)):
            begin = time.perf_counter()
            done = subprocess.run([*command, str(out)], capture_output=True, text=True, check=True).stdout
            said = next(line for line in done.splitlines() if line.startswith("rows "))
            print(f"{name:8} {said}; {time.perf_counter() - begin:.1f} s with the start of Ray", flush=True)
        read = pyarrow.parquet.read_table
        tables = [read(out, columns=["id", "error"]).to_pylist() for out in (parts, whole)]
        for rows in tables:
            if {row["id"] for row in rows} != {f"r{i}" for i in range(asked.rows)}:
                raise AssertionError("rows are missing")
        print(f"refused  {sum(bool(row['error']) for row in tables[1])} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
