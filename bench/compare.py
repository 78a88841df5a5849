"""Tables from the rows of `bench.maskbench`: latency percentiles, ratios and refusals.

The *intersection* is the schemas both engines compile and, of every instance, the leading steps both
took; the *whole* is everything an engine took. Both are printed, since refusing hard schemas flatters.

    python -m bench.compare results.jsonl [more.jsonl] [--json figures.json]
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import sys
from collections.abc import Iterable

import numpy as np

TTFM = ("p50", "mean", "p90", "p99", "max")
TBM = ("p50", "mean", "p90", "p99", "p99.9", "max")
SUBJECT = "structgen"


def figures(values: Iterable[float], columns: tuple[str, ...]) -> dict[str, float]:
    array = np.asarray(values, dtype=float)
    if array.size == 0:
        return dict.fromkeys(columns, float("nan"))
    special = {"mean": np.mean, "max": np.max}
    return {
        column: float(
            special[column](array) if column in special else np.percentile(array, float(column[1:]))
        )
        for column in columns
    }


def table(title: str, columns: tuple[str, ...], lines: dict[str, dict], digits: str) -> str:
    width = max([len(label) for label in lines] + [12])
    out = [title, " " * width + "".join(f"{column:>11}" for column in columns)]
    for label, line in lines.items():
        out.append(f"{label:<{width}}" + "".join(f"{line[c]:>11{digits}}" for c in columns))
    return "\n".join(out)


def by_engine(rows: Iterable[dict]) -> dict[str, dict[str, dict]]:
    """engine -> schema -> row. A schema measured twice (two files) keeps the later row."""
    engines: dict[str, dict[str, dict]] = collections.defaultdict(dict)
    for row in rows:
        if "skipped" not in row:
            engines[row["engine"]][row["schema"]] = row
    return dict(engines)


def common_steps(one: dict, other: dict) -> tuple[list[float], list[float]]:
    """The steps both rows took, instance by instance."""
    left: list[float] = []
    right: list[float] = []
    i = j = 0
    for m, n in zip(one["steps"], other["steps"], strict=True):
        k = min(m, n)
        left += one["all_mask_us"][i : i + k]
        right += other["all_mask_us"][j : j + k]
        i, j = i + m, j + n
    return left, right


KEYWORDS = frozenset(
    [
        "not",
        "if",
        "then",
        "else",
        "oneOf",
        "anyOf",
        "allOf",
        "contains",
        "dependencies",
        "dependentSchemas",
        "dependentRequired",
        "propertyNames",
        "uniqueItems",
        "unevaluatedProperties",
        "unevaluatedItems",
        "patternProperties",
        "pattern",
        "minContains",
        "maxContains",
        "minProperties",
        "maxProperties",
        "multipleOf",
        "$ref",
        "$dynamicRef",
    ]
)


def kind(message: str) -> str:
    """A message cut to what many schemas share: names, numbers and places become dots."""

    def cut(found: re.Match) -> str:
        return found[0] if found[0].strip("\"`'") in KEYWORDS else "…"

    line = message.split("\n")[0]
    return re.sub(r'"[^"]*"|`[^`]*`|\'[^\']*\'|/[\w/%.$~-]+|\d+', cut, line)[:70]


def refusals(rows: dict[str, dict]) -> list[str]:
    refused = [row for row in rows.values() if "compile_error" in row]
    wrong = [row for row in rows.values() if "validation_error" in row]
    kept = collections.Counter()
    for row in wrong:
        for problem in row["validation_error"].split("; "):
            word = re.search(r": (valid, refused|invalid, accepted)", problem)
            kept[word.group(1) if word else "failed in mid-sequence"] += 1
    tests = sum(
        row["num_valid_tests"] + row["num_invalid_tests"]
        for row in rows.values()
        if "compile_error" not in row
    )
    out = [
        f"  {len(refused)} of {len(rows)} schemas refused; {len(wrong)} with wrong verdicts"
        f" ({', '.join(f'{n} {what}' for what, n in kept.items()) or 'none'} of {tests} tests)"
    ]
    counts = collections.Counter(kind(row["compile_error"]) for row in refused)
    out += [f"    {n:5d}  {what}" for what, n in counts.most_common(6)]
    return out


def ratio(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {key: one[key] / other[key] if other[key] else float("nan") for key in one}


def pair(subject: dict[str, dict], peer: dict[str, dict]) -> dict:
    """Figures of both engines on the intersection."""
    both = [
        name
        for name in subject.keys() & peer.keys()
        if "compile_error" not in subject[name] and "compile_error" not in peer[name]
    ]
    left: list[float] = []
    right: list[float] = []
    for name in sorted(both):
        a, b = common_steps(subject[name], peer[name])
        left += a
        right += b
    return {
        "schemas": len(both),
        "tokens": len(left),
        "ttfm": [figures([rows[name]["ttfm_us"] for name in both], TTFM) for rows in (subject, peer)],
        "tbm": [figures(left, TBM), figures(right, TBM)],
    }


def report(engines: dict[str, dict[str, dict]]) -> tuple[str, dict]:
    out: list[str] = []
    whole: dict = {}
    for name, rows in engines.items():
        taken = [row for row in rows.values() if "compile_error" not in row]
        whole[name] = {
            "schemas": len(rows),
            "refused": len(rows) - len(taken),
            "ttfm": figures([row["ttfm_us"] for row in taken], TTFM),
            "tbm": figures([t for row in taken for t in row["all_mask_us"]], TBM),
            "tokens": sum(row["num_tokens"] for row in taken),
        }
    out.append(
        table(
            "time to first mask, µs, all that each takes",
            TTFM,
            {n: f["ttfm"] for n, f in whole.items()},
            ".1f",
        )
    )
    out.append(
        table(
            "time between masks, µs, all that each takes",
            TBM,
            {n: f["tbm"] for n, f in whole.items()},
            ".2f",
        )
    )
    subject = SUBJECT if SUBJECT in engines else next(iter(engines))
    for key, columns in (("ttfm", TTFM), ("tbm", TBM)):
        lines = {
            f"/{peer}": ratio(whole[subject][key], whole[peer][key]) for peer in engines if peer != subject
        }
        if lines:
            out.append(table(f"  {key} ratio, all that each takes", columns, lines, ".3f"))
    pairs: dict = {}
    for peer in engines:
        if peer == subject:
            continue
        found = pairs[peer] = pair(engines[subject], engines[peer])
        for name, columns, digits in (("ttfm", TTFM, ".1f"), ("tbm", TBM, ".2f")):
            one, other = found[name]
            lines = {subject: one, peer: other}
            title = (
                f"{name}, µs, both {subject} and {peer}: {found['schemas']} schemas, {found['tokens']} tokens"
            )
            out.append(table(title, columns, lines, digits))
            out.append(table("  ratio", columns, {f"/{peer}": ratio(one, other)}, ".3f"))
    lines = []
    for name, rows in engines.items():
        lines += [name, *refusals(rows)]
    out.append("\n".join(lines))
    return "\n\n".join(out), {"whole": whole, "pairs": pairs}


def read(paths: Iterable[str]) -> Iterable[dict]:
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.compare", description=__doc__.split("\n")[0])
    parser.add_argument("rows", nargs="+")
    parser.add_argument("--json", help="write the figures here too")
    options = parser.parse_args(arguments)
    text, found = report(by_engine(read(options.rows)))
    print(text)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
