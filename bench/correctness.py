"""Checks the verdicts of structgen on every MaskBench instance.

Enters: the MaskBench directory and `label_errors.json` (labels believed wrong: schema, test, reason).
Leaves: compile errors by kind, valid instances refused (where, what came next, what was allowed),
invalid instances accepted. A refusal that vanishes with property_order="any" is listed apart, and for each
of those `bench.order` says, without the engine, whether the instance breaks the order of one map.
Verdicts come from `accept_bytes` + `is_accepting`; `--tokens` walks tokens with masks instead, and then
a mask that disagrees with `accept_token` is reported too. Cost: about a millisecond an instance.

    python -m bench.correctness --jobs 2 --json verdicts.json
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench import order as key_order
from oracles import data
from structgen.maskbench import figures, workers

LABEL_ERRORS = Path(__file__).with_name("label_errors.json")


def label_errors() -> dict[tuple[str, int], str]:
    with open(LABEL_ERRORS, encoding="utf-8") as file:
        return {(e["schema"], e["test"]): e["reason"] for e in json.load(file)}


def setup(config: dict) -> dict:
    import structgen
    from structgen.maskbench.engines.structgen import vocabulary

    tokens = data.tekken()
    compiler = structgen.Compiler(vocabulary(tokens), on_limit=config["on_limit"])
    return {"tokens": tokens, "compiler": compiler, **config}


def visible(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def refusal(grammar, text: bytes) -> dict | None:
    """Returns the place where `text` is refused: the byte position, the surroundings, the allowed bytes."""
    matcher = grammar.matcher()
    if matcher.accept_bytes(text):
        if matcher.is_accepting():
            return None
        position = len(text)
    else:
        matcher = grammar.matcher()
        low, high = 0, len(text) - 1  # text[:low] is accepted, text[:high + 1] is not
        while low < high:
            middle = (low + high + 1) // 2
            if grammar.matcher().accept_bytes(text[:middle]):
                low = middle
            else:
                high = middle - 1
        position = low
        matcher.accept_bytes(text[:position])
    allowed = bytes(b for b in range(256) if matcher.fork().accept_bytes(bytes([b])))
    return {
        "position": position,
        "before": visible(text[max(0, position - 80) : position]),
        "next": visible(text[position : position + 40]),
        "allowed": repr(allowed)[:120],
    }


def mask_disagreement(grammar, tokens: data.Tokens, text: str) -> str:
    """Returns a step at which mask and accept_token differ on the text's own tokens, or ""."""
    import numpy as np

    mask = np.zeros((1, (len(tokens.text) + 31) // 32), dtype=np.int32)
    matcher = grammar.matcher()
    for index, token in enumerate([*tokens.encode(text), tokens.eos]):
        matcher.fill_bitmask(mask, 0)
        allowed = bool((int(mask[0, token >> 5]) >> (token & 31)) & 1)
        if matcher.accept_token(token) != allowed:
            return f"token {index} (id {token}): mask {allowed}, accept {not allowed}"
        if not allowed:
            return ""
    return ""


def compiled(state: dict, schema: str, order: str):
    """(grammar, or None for an unsatisfiable schema; error or None)."""
    from structgen import errors

    try:
        return state["compiler"].json_schema(schema, property_order=order), None
    except errors.UnsatisfiableSchema:
        return None, None  # the language is empty, so the engine rightly refuses every instance
    except Exception as error:  # an exception of any other type is a finding
        return None, {"type": type(error).__name__, "message": str(error)[:400]}


def work(state: dict, job: dict, emit: Callable[[dict], None]) -> None:
    case = data.maskbench_case(job["schema"])
    start = time.perf_counter()
    grammar, error = compiled(state, case.schema, state["order"])
    row: dict = {"schema": case.name, "error": error, "refused": [], "accepted": [], "tests": 0}
    if error is None:
        relaxed = None
        for index, instance in enumerate(case.instances):
            row["tests"] += 1
            try:
                found = {} if grammar is None else refusal(grammar, instance.text.encode())
                if state["tokens_too"] and grammar is not None:
                    wrong = mask_disagreement(grammar, state["tokens"], instance.text)
                    if wrong:
                        row.setdefault("mask", []).append({"test": index, "what": wrong})
            except Exception as failure:
                what = f"{type(failure).__name__}: {failure}"[:300]
                row.setdefault("failed", []).append({"test": index, "what": what})
                continue
            if instance.valid and found is not None:
                if state["order"] == "schema" and grammar is not None:
                    relaxed = relaxed or compiled(state, case.schema, "any")[0]
                    if relaxed is not None:
                        found["order_only"] = refusal(relaxed, instance.text.encode()) is None
                        if found["order_only"]:
                            out_of_order = key_order.inversions(
                                json.loads(case.schema), json.loads(instance.text)
                            )
                            found["inversion"] = str(out_of_order[0]) if out_of_order else ""
                row["refused"].append({"test": index, "about": instance.about, **found})
            elif not instance.valid and found is None:
                row["accepted"].append({"test": index, "about": instance.about})
    row["seconds"] = round(time.perf_counter() - start, 4)
    emit(row)


def run(
    names: list[str],
    *,
    order: str,
    tokens_too: bool = False,
    on_limit: str = "error",
    jobs: int = 1,
    limit: float = 60,
):
    """One row per schema in the order of names, failures included."""
    config = {"order": order, "tokens_too": tokens_too, "on_limit": on_limit}
    todo = ({"schema": name} for name in names)
    rows = []
    for job, found, failure in workers.run(
        "bench.correctness:setup",
        "bench.correctness:work",
        config,
        todo,
        limit=limit,
        processes=jobs,
    ):
        if failure is not None:
            error = {"type": failure.kind, "message": f"after {failure.seconds:.1f} s"}
            found = [
                {
                    "schema": job["schema"],
                    "error": error,
                    "refused": [],
                    "accepted": [],
                    "tests": 0,
                    "seconds": failure.seconds,
                }
            ]
        rows += found
        if len(rows) % 500 == 0:
            print(f"{len(rows)} schemas", file=sys.stderr, flush=True)
    return sorted(rows, key=lambda row: row["schema"])


def disagreements(rows: list[dict]) -> dict[str, list[tuple[str, dict]]]:
    """Returns wrong verdicts by kind, without the known label errors."""
    known = label_errors()
    kinds: dict[str, list] = collections.defaultdict(list)
    for row in rows:
        name = row["schema"]
        for found in row["refused"]:
            if (name, found["test"]) not in known:
                order = "valid, refused, order only" if found.get("order_only") else "valid, refused"
                kinds[order].append((name, found))
        for found in row["accepted"]:
            if (name, found["test"]) not in known:
                kinds["invalid, accepted"].append((name, found))
        for found in row.get("failed", ()):
            kinds["failed in mid-sequence"].append((name, found))
        for found in row.get("mask", ()):
            kinds["mask and accept differ"].append((name, found))
    return kinds


def summary(rows: list[dict], examples: int) -> str:
    out = []
    errors = [row for row in rows if row["error"] is not None]
    slow = sorted(rows, key=lambda row: -row["seconds"])[:5]
    times = ", ".join(f"{row['schema']} {row['seconds']:.2f} s" for row in slow)
    out.append(f"{len(rows)} schemas, {sum(row['tests'] for row in rows)} tests")
    out.append(f"slowest: {times}")
    out.append(f"{len(errors)} compile errors")
    groups = collections.defaultdict(list)
    for row in errors:
        found = figures.cause({"compile_error": row["error"]["message"]})
        groups[f"{row['error']['type']}: {found}"].append(row)
    for label, group in sorted(groups.items(), key=lambda item: -len(item[1])):
        out.append(f"  {len(group):5d}  {label}")
        for row in group[:examples]:
            out.append(f"           {row['schema']}: {row['error']['message'][:160]}")
    for label, group in disagreements(rows).items():
        schemas = len({name for name, _ in group})
        out.append(f"{label}: {len(group)} tests of {schemas} schemas")
        if any("inversion" in found for _, found in group):
            own = [name for name, found in group if found.get("inversion")]
            out.append(f"    in {len(own)} tests of {len(set(own))} schemas keys of one map are out of order")
        for name, found in group[: examples * 4]:
            detail = " ".join(f"{k}={v!r}" for k, v in found.items() if k not in ("test", "about"))
            out.append(f"    {name}[{found['test']}] {found.get('about', '')[:60]} {detail}")
    return "\n".join(out)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.correctness", description=__doc__.split("\n")[0])
    parser.add_argument("--order", choices=("schema", "any"), default="schema")
    parser.add_argument("--tokens", action="store_true", help="walk tokens and masks as well")
    parser.add_argument("--on-limit", choices=("error", "subset"), default="error")
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--count", "--limit", type=int, dest="count", help="a sample of this many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit per schema")
    parser.add_argument("--examples", type=int, default=3)
    parser.add_argument("--json", help="write every row here")
    options = parser.parse_args(arguments)
    data.require("maskbench")
    names = data.select(
        data.maskbench_names(),
        only=options.only,
        stride=options.stride,
        offset=options.offset,
        count=options.count,
        seed=options.seed,
    )
    if not names:
        parser.error("no schema is left after --only, --stride and --offset")
    rows = run(
        names,
        order=options.order,
        tokens_too=options.tokens,
        on_limit=options.on_limit,
        jobs=options.jobs,
        limit=options.seconds,
    )
    print(summary(rows, options.examples))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, ensure_ascii=False, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
