"""Time to first mask and time between masks, per schema and engine, as MaskBench defines them.

Enters: the MaskBench directory and engine names. Leaves: one JSON line per schema and engine.
    ttfm_us       compile + new sequence + first mask
    all_mask_us   mask + accept of every token of every instance, the end-of-sequence token included;
                  an invalid instance counts up to its refusal (which costs a mask and no accept)
    steps         how many of those belong to each instance, so that reports can compare like with like
Engines take turns on each schema inside one process, so that the machine's noise hits all alike; who
goes first rotates. Garbage collection is off inside the clock. A schema past `--limit` seconds or a
crash costs the engine at work one row.

    python -m bench.maskbench --engines structgen,llguidance --count 600 --out results.jsonl
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator

from bench import data, engines, workers
from bench.engines.base import Engine, Grammar, Refused

WARM_UP = (
    {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}},
    {"type": "array", "items": {"enum": ["a", "b", None]}, "maxItems": 4},
    {"type": "object", "additionalProperties": {"type": "number"}},
)
WARM_UP_INSTANCES = ({"name": "warm", "n": 12}, ["a", None], {"x": 1.5, "y": 2})


def first_mask(engine: Engine, schema: str) -> tuple[Grammar, float]:
    clock = time.perf_counter_ns
    start = clock()
    grammar = engine.compile(schema)
    grammar.sequence().fill()
    return grammar, (clock() - start) / 1e3


def replay(grammar: Grammar, tokens: list[int]) -> tuple[list[float], int | None, str]:
    """Microseconds of each step, the index of the refused token or None, and the engine's failure."""
    clock = time.perf_counter_ns
    sequence = grammar.sequence()
    fill, accept, allows = sequence.fill, sequence.accept, sequence.allows
    steps: list[float] = []
    for index, token in enumerate(tokens):
        start = clock()
        fill()
        middle = clock()
        if not allows(token):
            steps.append((middle - start) / 1e3)
            return steps, index, sequence.failure()
        again = clock()
        taken = accept(token)
        end = clock()
        steps.append((middle - start + end - again) / 1e3)
        if not taken:
            return steps, index, sequence.failure() or "the mask allows a token accept refuses"
    return steps, None, ""


def measure(engine: Engine, case: data.Case, tokens: list[list[int]]) -> dict:
    """One row."""
    valid = sum(instance.valid for instance in case.instances)
    row: dict = {
        "schema": case.name,
        "engine": engine.name,
        "num_valid_tests": valid,
        "num_invalid_tests": len(tokens) - valid,
    }
    try:
        grammar, row["ttfm_us"] = first_mask(engine, case.schema)
    except Refused as error:
        return row | {"compile_error": str(error)[:500]}
    times: list[float] = []
    row["steps"] = []
    problems = []
    for index, (instance, ids) in enumerate(zip(case.instances, tokens, strict=True)):
        steps, refused, failure = replay(grammar, ids)
        times += steps
        row["steps"].append(len(steps))
        if failure:
            problems.append(f"test {index}: {failure[:200]}")
        elif instance.valid and refused is not None:
            problems.append(f"test {index}: valid, refused at token {refused} of {len(ids)}")
        elif not instance.valid and refused is None:
            problems.append(f"test {index}: invalid, accepted")
    row["num_tokens"] = len(times)
    row["masks_us"] = round(sum(times), 2)
    row["max_mask_us"] = round(max(times, default=0.0), 2)
    row["all_mask_us"] = [round(t, 2) for t in times]
    if problems:
        row["validation_error"] = "; ".join(problems)
    return row


def setup(config: dict) -> dict:
    tokens = data.tekken()
    loaded = [engines.load(name, tokens) for name in config["engines"]]
    for schema, value in zip(WARM_UP, WARM_UP_INSTANCES, strict=True):
        ids = [*tokens.encode(data.dumps(value)), tokens.eos]
        for engine in loaded:
            replay(first_mask(engine, data.dumps(schema))[0], ids)
    gc.collect()
    gc.freeze()
    return {"tokens": tokens, "engines": {engine.name: engine for engine in loaded}}


def work(state: dict, job: dict, emit: Callable[[dict], None]) -> None:
    tokens = state["tokens"]
    case = data.maskbench_case(job["schema"])
    ids = [[*tokens.encode(instance.text), tokens.eos] for instance in case.instances]
    for name in job["engines"]:
        gc.collect()
        gc.disable()
        row = measure(state["engines"][name], case, ids)
        gc.enable()
        emit(row)


def jobs(names: list[str], engine_names: list[str], xgrammar_stride: int) -> Iterator[dict]:
    for index, name in enumerate(names):
        shift = index % len(engine_names)
        turn = engine_names[shift:] + engine_names[:shift]
        if index % xgrammar_stride:
            turn = [engine for engine in turn if engine != "xgrammar"]
        yield {"schema": name, "engines": turn}


def rows(names: list[str], engine_names: list[str], *, limit: float, xgrammar_stride: int = 1):
    """Rows as they come, failures included."""
    config = {"engines": engine_names}
    todo = jobs(names, engine_names, xgrammar_stride)
    for job, found, failure in workers.run(
        "bench.maskbench:setup", "bench.maskbench:work", config, todo, limit=limit
    ):
        yield from found
        if failure is not None:
            guilty, *untried = job["engines"][len(found) :]
            yield {"schema": job["schema"], "engine": guilty, "compile_error": failure.kind}
            for engine in untried:
                yield {"schema": job["schema"], "engine": engine, "skipped": f"after {guilty}"}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.maskbench", description=__doc__.split("\n")[0])
    parser.add_argument("--engines", default="structgen,llguidance")
    parser.add_argument("--count", type=int, help="a sample of this many schemas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stride", type=int, default=1, help="every n-th schema by name")
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--only", default="", help="schemas whose name contains this")
    parser.add_argument(
        "--xgrammar-stride", type=int, default=10, help="its compile takes a second"
    )
    parser.add_argument("--limit", type=float, default=60.0, help="seconds per schema, all engines")
    parser.add_argument("--out", required=True)
    options = parser.parse_args(arguments)
    names = data.select(
        data.maskbench_names(),
        only=options.only,
        stride=options.stride,
        offset=options.offset,
        count=options.count,
        seed=options.seed,
    )
    if not names:
        print(f"no schemas under {data.root()}", file=sys.stderr)
        return 2
    engine_names = options.engines.split(",")
    written = 0
    with open(options.out, "w", encoding="utf-8") as out:
        for row in rows(
            names, engine_names, limit=options.limit, xgrammar_stride=options.xgrammar_stride
        ):
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            written += 1
            if written % 200 == 0:
                print(f"{written} rows", file=sys.stderr, flush=True)
    print(f"{written} rows for {len(names)} schemas in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
