"""Checks schemas from issues of xgrammar, llguidance, outlines and vLLM, and shows which engines give right
verdicts.

    python -m bench.trackers --out build/trackers.jsonl [--engines structgen,llguidance,...]
    python -m bench.trackers --report build/trackers.jsonl

Enters: the cases of trackers.jsonl, engines that are installed. Leaves: a record for each case and engine,
and a table in Markdown. Cost: seconds for each engine; each case has a limit, in a child process.

A case is a link to an issue or a pull request, with a schema and values of our own that show the reported
bug. jsonschema judges the values. An engine is right if it allows exactly the valid values; it may refuse a
schema that no value satisfies. A value is allowed if one of its spellings is: those of `bench.coverage` in
every order of the outermost keys, because each engine writes keys in its own order. Engines have the default
settings of the adapters of `structgen bench`. A reported bug may be fixed by now: the table shows the
installed releases.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema

from bench import coverage, records
from structgen.maskbench import engines, tokens, workers
from structgen.maskbench.engines.base import Missing, Refused

ENGINES = ("structgen", "llguidance", "xgrammar")
SETUP, WORK = "bench.trackers:setup", "bench.trackers:work"

#: {"issue", "about", "schema", "values"}; the address of `issue` is https://github.com/ISSUE
CASES: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
]


def judged(schema: Any, value: Any) -> bool:
    return bool(
        jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema).is_valid(value)
    )


def spellings(value: Any, schema: Any) -> Iterator[str]:
    orders = itertools.permutations(value.items()) if isinstance(value, dict) else [()]
    for order in orders:
        yield from coverage.spellings(dict(order) if order else value, schema)


def setup(config: dict[str, Any]) -> dict[str, Any]:
    found = tokens.load("embedded")
    return {"engine": engines.load(config["engine"], found), "tokens": found}


def work(state: dict[str, Any], job: dict[str, Any], emit: Callable[[dict[str, Any]], None]) -> None:
    schema, values = CASES[job["case"]]["schema"], CASES[job["case"]]["values"]
    verdicts = [judged(schema, value) for value in values]
    row: dict[str, Any] = {**job, "version": state["engine"].version, "verdict": "right", "said": ""}
    try:
        grammar = state["engine"].compile(json.dumps(schema))
    except Refused as error:
        row |= {"verdict": "refused" if any(verdicts) else "right", "said": str(error)[:200]}
        emit(row)
        return
    try:
        found = [
            any(coverage.allowed(grammar, text, state["tokens"]) for text in spellings(value, schema))
            for value in values
        ]
    except Exception as error:  # engines raise exceptions of their own
        emit({**row, "verdict": "broke", "said": f"{type(error).__name__}: {error}"[:200]})
        return
    wrong = [
        (value, took) for value, took, valid in zip(values, found, verdicts, strict=True) if took != valid
    ]
    if wrong:
        row["verdict"] = "lets invalid through" if any(took for _, took in wrong) else "refuses valid"
        row["said"] = json.dumps([value for value, _ in wrong])[:200]
    emit(row)


def run(names: list[str], limit: float, out: Any) -> None:
    for name in names:
        try:
            engines.adapter(name)
        except Missing as missing:
            print(f"{name}: {missing}", file=sys.stderr)
            continue
        jobs = [{"engine": name, "case": case} for case in range(len(CASES))]
        for job, rows, failure in workers.run(SETUP, WORK, {"engine": name}, jobs, limit=limit):
            if failure is not None:
                rows = [{**job, "verdict": failure.kind, "said": ""}]
            for row in rows:
                print(json.dumps(row), file=out, flush=True)


def report(rows: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(row["engine"] for row in rows))
    of = {(row["engine"], row["case"]): row["verdict"] for row in rows}
    cases = sorted({row["case"] for row in rows})
    rights = {name: sum(of.get((name, case)) == "right" for case in cases) for name in names}
    print("| issue | about | " + " | ".join(names) + " |\n|---|---|" + "---|" * len(names))
    for case in cases:
        issue = CASES[case]["issue"]
        _, project, _, number = issue.split("/")
        print(
            f"| [{project} {number}](https://github.com/{issue}) | {CASES[case]['about']} | "
            + " | ".join(of.get((name, case), "-") for name in names)
            + " |"
        )
    print(f"| | right of {len(cases)} | " + " | ".join(str(rights[name]) for name in names) + " |")
    records.print_versions(rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.trackers", description=__doc__.split("\n")[0])
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--limit", type=float, default=20.0, help="seconds a case (default: 20)")
    records.options(parser)
    options = parser.parse_args(arguments)
    if records.reported(options, report):
        return
    names = records.engine_names(parser, options.engines)
    with records.out(options) as out:
        run(names, options.limit, out)


if __name__ == "__main__":
    main()
