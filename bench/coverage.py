"""The official JSON-Schema-Test-Suite by category, for every engine of the bench.

    python -m bench.coverage --out build/coverage.jsonl [--engines structgen,llguidance,...] [--optional]
    python -m bench.coverage --report build/coverage.jsonl

Enters: the suite (draft 2020-12), engines that are installed. Leaves: a record for each group of tests, and
two tables: the number of categories that an engine covers, and the share of tests in each category. Cost:
minutes for each engine. Every engine runs in child processes, so a crash or a hang costs one group of tests.

As in JSONSchemaBench (Geng et al. 2025, arXiv 2501.10868, section 5), a category is a file of the suite, and
its tests that pass count. If a schema is refused, or crashes or hangs the engine, all its tests fail
("compile"). A valid instance that the masks do not allow is *over-constrained*; an invalid instance that they
allow is *under-constrained*.

Each engine writes JSON in one layout and one order of keys. So an instance counts as allowed if any of four
texts is allowed: written as by `json.dumps` or without spaces, and with its keys in the order of the suite or
of the schema's `properties`. The engine gives its masks step by step over the vocabulary of the embedded
model, and at the end the mask must allow the end-of-sequence token. If an engine refuses a schema because no
instance exists, it is right if all tests of the schema are invalid. Engines run with their default settings,
and no engine gets the suite's remote documents.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench import records
from oracles import data
from structgen.maskbench import engines, tokens, workers
from structgen.maskbench.engines.base import Missing, Refused

DRAFT = "draft2020-12"
ENGINES = (
    "structgen", "llguidance", "xgrammar", "xgrammar-compliant", "outlines-core", "lm-format-enforcer",
    "grid-guardrail", "bench.peers:glrmask", "bench.peers:maskforge",
)  # fmt: skip
SETUP, WORK = "bench.coverage:setup", "bench.coverage:work"
_NOTHING = re.compile(r"unsatisfiable|no instance|no valid|matches nothing|empty language|never match", re.I)
_STEPS = (0, 25, 50, 75)


def setup(config: dict[str, Any]) -> dict[str, Any]:
    found = tokens.load("embedded")
    return {
        "engine": engines.load(config["engine"], found),
        "tokens": found,
        "groups": list(data.suite_groups(DRAFT)),
    }


def spellings(value: Any, schema: Any) -> Iterator[str]:
    """Returns the texts that are tried for an instance."""
    orders = [value]
    names = list(schema.get("properties", {})) if isinstance(schema, dict) else []
    if isinstance(value, dict) and names:
        orders.append(
            {k: value[k] for k in sorted(value, key=lambda k: names.index(k) if k in names else 999)}
        )
    seen = set()
    for one in orders:
        for separators in ((", ", ": "), (",", ":")):
            text = json.dumps(one, ensure_ascii=False, separators=separators)
            if text not in seen:
                seen.add(text)
                yield text


def allowed(grammar: Any, text: str, vocabulary: tokens.Tokens, masks: list[float] | None = None) -> bool:
    """Returns whether the masks allow a text and its end. `masks` takes the microseconds of each mask."""
    sequence = grammar.sequence()
    for token in [*vocabulary.encode(text), vocabulary.eos]:
        began = time.perf_counter()
        sequence.fill()
        if masks is not None:
            masks.append(1e6 * (time.perf_counter() - began))
        if not sequence.allows(token):
            return False
        if token != vocabulary.eos and sequence.accept(token) is False:
            return False
    return True


def work(state: dict[str, Any], job: dict[str, Any], emit: Callable[[dict[str, Any]], None]) -> None:
    group = state["groups"][job["group"]]
    row: dict[str, Any] = {"engine": job["engine"], "file": group.file, "about": group.about, "passed": 0}
    row |= {"tests": len(group.tests), "over": 0, "under": 0, "compile": 0, "said": ""}
    try:
        grammar = state["engine"].compile(data.dumps(group.schema))
    except Exception as error:  # engines raise exceptions of their own
        row["said"] = (
            str(error)[:200] if isinstance(error, Refused) else f"{type(error).__name__}: {error}"[:200]
        )
        if _NOTHING.search(row["said"]) and not any(test.valid for test in group.tests):
            row["passed"] = len(group.tests)
        else:
            row["compile"] = len(group.tests)
        emit(row)
        return
    for test in group.tests:
        try:
            found = any(
                allowed(grammar, text, state["tokens"])
                for text in spellings(json.loads(test.text), group.schema)
            )
        except Exception as error:
            row["said"] = f"{type(error).__name__}: {error}"[:200]
            row["compile"] += 1  # the engine failed in the middle, so there is no verdict
            continue
        row["passed"] += found == test.valid
        row["over"] += test.valid and not found
        row["under"] += found and not test.valid
    emit(row)


def run(names: list[str], optional: bool, limit: float, out: Any) -> None:
    groups = list(data.suite_groups(DRAFT))
    for name in names:
        jobs = [
            {"engine": name, "group": at}
            for at, group in enumerate(groups)
            if optional or "/optional/" not in group.file
        ]
        try:
            engines.adapter(name)
        except Missing as missing:
            print(f"{name}: {missing}", file=sys.stderr)
            continue
        for job, rows, failure in workers.run(SETUP, WORK, {"engine": name}, jobs, limit=limit):
            if failure is not None:
                group = groups[job["group"]]
                rows = [
                    {
                        "engine": name, "file": group.file, "about": group.about, "tests": len(group.tests),
                        "passed": 0, "over": 0, "under": 0, "compile": len(group.tests), "said": failure.kind,
                    }
                ]  # fmt: skip
            for row in rows:
                print(json.dumps(row), file=out, flush=True)


def report(rows: list[dict[str, Any]]) -> None:
    table: dict[str, dict[str, collections.Counter[str]]] = {}
    for row in rows:
        counts = table.setdefault(row["engine"], {}).setdefault(row["file"], collections.Counter())
        counts.update({name: row[name] for name in ("passed", "tests", "over", "under", "compile")})
        counts["broke"] += row["said"].startswith(("crash", "timeout", "memory"))
    files = sorted({row["file"] for row in rows})
    names = list(table)
    tests = sum(count["tests"] for count in table[names[0]].values())
    print(f"{len(files)} categories of {DRAFT}, {tests} tests")
    print("\ntests passed; categories with more than 0, 25, 50, 75 % of them, and all; with such failures")
    print(f"{'':22}{'tests':>7}" + "".join(f"{f'>{step}%':>6}" for step in _STEPS) + f"{'100%':>6}"
          f"{'compile':>10}{'over':>6}{'under':>7}{'crash or hang':>15}")  # fmt: skip
    for name in names:
        of = table[name]
        shares = [100 * c["passed"] / c["tests"] for c in of.values()]
        cells = "".join(f"{sum(share > step for share in shares):6}" for step in _STEPS)
        kinds = [sum(c[kind] > 0 for c in of.values()) for kind in ("compile", "over", "under", "broke")]
        print(
            f"{name.split(':')[-1]:22}{sum(c['passed'] for c in of.values()):7}{cells}"
            f"{sum(share == 100 for share in shares):6}{kinds[0]:10}{kinds[1]:6}{kinds[2]:7}{kinds[3]:15}"
        )
    print("\nshare of tests passed, %; C: a schema refused, O: over-, U: under-constrained somewhere")
    print(f"{'':44}" + "".join(f"{name.split(':')[-1][:12]:>14}" for name in names))
    for file in files:
        cells = []
        for name in names:
            count = table[name].get(file)
            if count is None:
                cells.append(f"{'-':>14}")
                continue
            marks = "".join(m for m, k in (("C", "compile"), ("O", "over"), ("U", "under")) if count[k])
            cells.append(f"{marks:>9}{100 * count['passed'] / count['tests']:5.0f}")
        print(f"{file.removeprefix(DRAFT + '/'):44}" + "".join(cells))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.coverage", description=__doc__.split("\n")[0])
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--optional", action="store_true", help="the optional files as well")
    parser.add_argument(
        "--limit", type=float, default=20.0, help="seconds a schema with its tests (default: 20)"
    )
    records.options(parser)
    options = parser.parse_args(arguments)
    if records.reported(options, report):
        return
    data.require("json-schema-test-suite")
    names = records.engine_names(parser, options.engines)
    with records.out(options) as out:
        run(names, options.optional, options.limit, out)


if __name__ == "__main__":
    main()
