"""Named cases with long outputs or large schemas, each engine by turns on one text.

Enters: engine names, case names. Leaves: per case and engine the time to first mask and the time
between masks (p50, mean, p99, p99.9, max, whole text), then ratios. An engine that refuses a schema,
refuses the (valid) text, or takes longer than `--limit` is named with that instead of figures.
A case costs what its slowest engine costs; the whole table takes minutes.

    python -m bench.cases --engines structgen,llguidance,xgrammar [--only enum] [--scale 0.1]
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import sys
from collections.abc import Callable

from bench import compare, data, engines, workers
from bench.maskbench import first_mask, replay

COLUMNS = ("p50", "mean", "p99", "p99.9", "max")
Built = tuple[object, object]  # schema, instance


def array_100k(scale: float) -> Built:
    """About 100,000 tokens of small integers."""
    return {"type": "array", "items": {"type": "integer"}}, list(range(int(30_000 * scale)))


def objects_array(scale: float) -> Built:
    item = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}, "ok": {"type": "boolean"}},
        "required": ["id", "name", "ok"],
        "additionalProperties": False,
    }
    value = [{"id": i, "name": f"name {i}", "ok": i % 3 == 0} for i in range(int(4000 * scale))]
    return {"type": "array", "items": item}, value


def max_length_5000(scale: float) -> Built:
    return {"type": "string", "maxLength": 5000}, ("All work and no play. " * 300)[: int(5000 * scale)]


def long_string(scale: float) -> Built:
    return {"type": "string"}, "The quick brown fox jumps over the lazy dog. " * int(1000 * scale)


def max_items_10000(scale: float) -> Built:
    value = [i % 10 for i in range(int(10_000 * scale))]
    return {"type": "array", "maxItems": 10_000, "items": {"type": "integer"}}, value


def enum_2000(scale: float) -> Built:
    values = [f"value {i * 7919 % 100_003} of the list" for i in range(2000)]
    return {"type": "array", "items": {"enum": values}}, values[: int(200 * scale) + 1]


def object_500(scale: float) -> Built:
    names = [f"property_{i}" for i in range(500)]
    kinds = ({"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"type": "number", "minimum": 0})
    values = ("text", 12, True, 0.5)
    schema = {
        "type": "object",
        "properties": {name: kinds[i % 4] for i, name in enumerate(names)},
        "required": names[::2],
        "additionalProperties": False,
    }
    return schema, {name: values[i % 4] for i, name in enumerate(names)}


def one_of_50(scale: float) -> Built:
    branches = [
        {
            "type": "object",
            "properties": {"kind": {"const": f"kind{i}"}, "size": {"type": "integer", "minimum": i},
                           f"only{i}": {"type": "string"}},
            "required": ["kind", "size"],
            "additionalProperties": False,
        }
        for i in range(50)
    ]  # fmt: skip
    count = int(100 * scale) + 1
    value = [{"kind": f"kind{i % 50}", "size": i + 50, f"only{i % 50}": "x"} for i in range(count)]
    return {"type": "array", "items": {"oneOf": branches}}, value


def any_of_overlapping(scale: float) -> Built:
    branches = [
        {
            "type": "object",
            "properties": {"a": {"type": "string", "maxLength": 10 + i}, f"b{i}": {"type": "integer"}},
        }
        for i in range(20)
    ]
    value = [{"a": "0123456789", f"b{i % 20}": i} for i in range(int(100 * scale) + 1)]
    return {"type": "array", "items": {"anyOf": branches}}, value


def deep_recursion(scale: float) -> Built:
    schema = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"value": {"type": "integer"}, "child": {"$ref": "#/$defs/node"}},
                "required": ["value"],
                "additionalProperties": False,
            }
        },
    }
    value: dict = {"value": 0}
    for i in range(int(400 * scale)):
        value = {"value": i, "child": value}
    return schema, value


def free_keys(scale: float) -> Built:
    """A map whose keys are free: an engine that forbids duplicate keys must remember them."""
    value = {f"key number {i}": i for i in range(int(1000 * scale))}
    return {"type": "object", "additionalProperties": {"type": "integer"}}, value


def patterned_keys(scale: float) -> Built:
    schema = {
        "type": "object",
        "patternProperties": {"^x-": {"type": "string"}, "^[0-9]{1,6}$": {"type": "number"}},
        "additionalProperties": False,
    }
    count = int(300 * scale)
    return schema, {f"x-{i}": "v" for i in range(count)} | {str(i): i / 2 for i in range(count)}


CASES: dict[str, Callable[[float], Built]] = {
    "array of 100k tokens": array_100k,
    "array of 4,000 objects": objects_array,
    "maxLength 5000": max_length_5000,
    "string of 10k tokens": long_string,
    "maxItems 10000": max_items_10000,
    "enum of 2,000 values": enum_2000,
    "object of 500 properties": object_500,
    "oneOf of 50 branches": one_of_50,
    "anyOf of 20 overlapping": any_of_overlapping,
    "recursion 400 deep": deep_recursion,
    "map of 1,000 free keys": free_keys,
    "map of 600 patterned keys": patterned_keys,
}


def work(state: dict, job: dict, emit: Callable[[dict], None]) -> None:
    from bench.engines.base import Refused

    schema, value = CASES[job["case"]](job["scale"])
    tokens = state["tokens"]
    ids = [*tokens.encode(data.dumps(value)), tokens.eos]
    engine = state["engines"][job["engine"]]
    row: dict = {"case": job["case"], "engine": job["engine"], "tokens": len(ids)}
    gc.collect()
    gc.disable()
    try:
        grammar, row["ttfm_us"] = first_mask(engine, data.dumps(schema))
    except Refused as error:
        row["failure"] = f"refused: {str(error).splitlines()[0][:90]}"
    else:
        steps, refused, failure = replay(grammar, ids)
        row["steps_us"] = steps
        if failure or refused is not None:
            row["failure"] = (failure or f"valid text refused at token {refused}").splitlines()[0][:100]
    gc.enable()
    emit(row)


def run(engine_names: list[str], names: list[str], *, scale: float, limit: float) -> list[dict]:
    todo = [{"case": n, "engine": e, "scale": scale} for n in names for e in engine_names]
    rows = []
    for job, found, failure in workers.run(
        "bench.maskbench:setup", "bench.cases:work", {"engines": engine_names}, todo, limit=limit
    ):
        if failure is not None:
            found = [{"case": job["case"], "engine": job["engine"], "failure": failure.kind}]
        rows += found
    return rows


def report(rows: list[dict], subject: str) -> str:
    out = []
    for case in dict.fromkeys(row["case"] for row in rows):
        lines = {row["engine"]: row for row in rows if row["case"] == case}
        tokens = next((row["tokens"] for row in lines.values() if "tokens" in row), math.nan)
        title = f"{case}: {tokens} tokens, µs"
        out.append(f"{title:<40}{'ttfm':>12}" + "".join(f"{c:>10}" for c in COLUMNS) + f"{'text, ms':>12}")
        base: dict | None = None
        for engine, row in lines.items():
            if "failure" in row:
                out.append(f"  {engine:<38}{row['failure']}")
                continue
            found = {"ttfm": row["ttfm_us"]} | compare.figures(row["steps_us"], COLUMNS)
            found["text"] = sum(row["steps_us"]) / 1e3
            out.append(f"  {engine:<38}" + _line(found, ".1f"))
            if engine == subject:
                base = found
            elif base is not None:
                out.append(f"    {f'{subject}/{engine}':<36}" + _line(compare.ratio(base, found), ".3f"))
        out.append("")
    return "\n".join(out)


def _line(found: dict[str, float], digits: str) -> str:
    return (
        f"{found['ttfm']:>12{digits}}"
        + "".join(f"{found[c]:>10{digits}}" for c in COLUMNS)
        + f"{found['text']:>12{digits}}"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.cases", description=__doc__.split("\n")[0])
    parser.add_argument("--engines", default=",".join(engines.NAMES))
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--scale", type=float, default=1.0, help="length of the texts")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds per case and engine")
    parser.add_argument("--json", help="write every row here")
    options = parser.parse_args(arguments)
    names = [name for name in CASES if options.only in name]
    engine_names = options.engines.split(",")
    rows = run(engine_names, names, scale=options.scale, limit=options.limit)
    print(report(rows, engine_names[0]))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
