"""Turns rows into figures: percentiles, ratios over what two engines share, outcomes, causes.

Enters: rows of `masks` or `endtoend`. Leaves: plain dicts and one text table. The *intersection* of two
engines is the schemas both compile and, of every instance, the leading steps both took; the *whole* is
everything an engine took. Both are told, since refusing hard schemas flatters.
"""

from __future__ import annotations

import collections
import math
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..keywords import ASSERTING
from . import endtoend

Row = dict[str, Any]
TTFM = ("p50", "mean", "p90", "p99", "max")
TBM = ("p50", "mean", "p90", "p99", "p99.9", "max")
OUTCOMES = ("right", "wrong", "refused", "failed")
CUT, TOO_SMALL, NO_ROOM = "cut off", "limit too small", "no room"  # further outcomes of end-to-end rows
_UNFINISHED = {endtoend.LENGTH: CUT, endtoend.TOO_SMALL: TOO_SMALL, endtoend.NO_ROOM: NO_ROOM}

# Keywords are searched in an engine's message in this order: words that are also plain English come last.
_KEYWORDS = sorted(ASSERTING, key=lambda name: (name.isalpha() and name.islower(), -len(name)))
_QUOTED = re.compile(r"[\"'`]\$?[A-Za-z]+[\"'`]")


def outcome(row: Row) -> str:
    """ "right" means that every verdict, or the generated value, agrees with the schema. Returns one of
    `OUTCOMES`.

    For a generated text also `CUT`, `TOO_SMALL` (the engine said so) or `NO_ROOM` (the prompt fills the
    model).
    """
    if "failure" in row or "generation_error" in row:
        return "failed"
    if "compile_error" in row:
        return "refused"
    if "declared" in row:
        return "right" if row["valid"] else _UNFINISHED.get(row.get("finish", ""), "wrong")
    return "wrong" if "validation_error" in row else "right"


def reason(row: Row) -> str:
    """Returns the mistake or the error, on one line; "" if there is no error."""
    for key in ("failure", "generation_error", "compile_error", "validation_error", "problem"):
        if row.get(key):
            return str(row[key]).strip().split("\n")[0]
    return ""


def cause(row: Row) -> str:
    """Returns the keyword that a refusal is about. If no keyword is named, returns the message without names
    and numbers."""
    text = reason(row)
    if "validation_error" in row:
        wrong = str(row["validation_error"])
        if "EXN" in wrong:
            return "broke in mid-sequence"
        kinds = {"should accept": "valid refused", "should reject": "invalid accepted"}
        return " and ".join([said for what, said in kinds.items() if what in wrong])
    if "failure" in row:
        return "unreadable schema" if text.startswith("unreadable") else text
    for found in _QUOTED.findall(text):
        if str(found)[1:-1] in _KEYWORDS:
            return str(found)[1:-1]
    lowered = text.lower()
    if "unknown format" in lowered or "format" in lowered:
        return "format"
    for word in _KEYWORDS:
        if re.search(rf"(?<![\w$]){re.escape(word)}(?!\w)", text):
            return word
    return re.sub(r'"[^"]*"|`[^`]*`|\'[^\']*\'|/[\w/%.$~-]+|\d+', "…", text)[:60]


def by_engine(rows: Iterable[Row]) -> dict[str, dict[str, Row]]:
    """Returns a dict of engine -> schema -> row. A schema measured twice keeps the later row."""
    engines: dict[str, dict[str, Row]] = collections.defaultdict(dict)
    for row in rows:
        engines[row["engine"]][row["id"]] = row
    return dict(engines)


def figures(values: Sequence[float] | npt.NDArray[Any], columns: tuple[str, ...]) -> dict[str, float]:
    """Returns one number for each column ("p99.9", "mean" or "max"); NaN if there are no values."""
    array = np.asarray(values, dtype=float)
    if array.size == 0:
        return dict.fromkeys(columns, math.nan)
    special: dict[str, Callable[[Any], Any]] = {"mean": np.mean, "max": np.max}
    return {
        column: float(
            special[column](array) if column in special else np.percentile(array, float(column[1:]))
        )
        for column in columns
    }


def compiled(row: Row) -> bool:
    return "ttfm_us" in row


def steps_of(rows: Iterable[Row]) -> npt.NDArray[np.float64]:
    """Returns every step of rows of masks."""
    return np.array([t for row in rows if compiled(row) for t in row["all_mask_us"]], dtype=float)


def whole(rows: Iterable[Row]) -> dict[str, Any]:
    """Returns an engine's figures over everything that it took."""
    all_rows = list(rows)
    taken = [row for row in all_rows if compiled(row)]
    counts = collections.Counter(outcome(row) for row in all_rows)
    return {
        "schemas": len(all_rows),
        "tests": sum(row["num_tests"] for row in taken),
        **{kind: counts[kind] for kind in OUTCOMES},
        "tokens": sum(row["num_tokens"] for row in taken),
        "ttfm": figures([row["ttfm_us"] for row in taken], TTFM),
        "tbm": figures(steps_of(taken), TBM),
    }


def common_steps(one: Row, other: Row) -> tuple[list[float], list[float]]:
    """Returns the steps both rows took, instance by instance."""
    left: list[float] = []
    right: list[float] = []
    i = j = 0
    for m, n in zip(one["steps"], other["steps"], strict=True):
        k = min(m, n)
        left += one["all_mask_us"][i : i + k]
        right += other["all_mask_us"][j : j + k]
        i, j = i + m, j + n
    return left, right


def pair(subject: dict[str, Row], peer: dict[str, Row]) -> dict[str, Any]:
    """Returns figures of both engines on the intersection, and subject / peer."""
    both = sorted(
        name for name in subject.keys() & peer.keys() if compiled(subject[name]) and compiled(peer[name])
    )
    left: list[float] = []
    right: list[float] = []
    for name in both:
        a, b = common_steps(subject[name], peer[name])
        left += a
        right += b
    found: dict[str, Any] = {"schemas": len(both), "tokens": len(left)}
    for key, columns, ours, theirs in (
        ("ttfm", TTFM, [subject[n]["ttfm_us"] for n in both], [peer[n]["ttfm_us"] for n in both]),
        ("tbm", TBM, left, right),
    ):
        mine, its = figures(ours, columns), figures(theirs, columns)
        found[key] = {"subject": mine, "peer": its, "ratio": ratio(mine, its)}
    return found


def ratio(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {key: one[key] / other[key] if other[key] else math.nan for key in one}


def coverage(rows: Iterable[Row], timed: Container[str] | None = None) -> dict[str, Any]:
    """Returns an engine's end-to-end figures as JSONSchemaBench (arXiv 2501.10868) defines them.

    declared    the share of all schemas that the engine takes without an error
    empirical   the share of all schemas for which the text is valid
    compliance  empirical / declared
    cut, too_small, no_room   texts without an end: cut off by the limit; the engine said that no text is so
                              short; no room left by the prompt. They are declared and not valid.
    gct_ms, ttft_ms, tpot_ms   medians over the declared schemas, of those in `timed` where it is given
    """
    found = list(rows)
    declared = [row for row in found if row.get("declared")]
    valid = [row for row in declared if row["valid"]]
    ends = collections.Counter(outcome(row) for row in declared)

    def median(key: str, scale: float) -> float:
        values = [
            row[key] / scale for row in declared if key in row and (timed is None or row["id"] in timed)
        ]
        return float(np.median(values)) if values else math.nan

    return {
        "schemas": len(found),
        "declared": len(declared) / len(found) if found else math.nan,
        "empirical": len(valid) / len(found) if found else math.nan,
        "compliance": len(valid) / len(declared) if declared else math.nan,
        "cut": ends[CUT],
        "too_small": ends[TOO_SMALL],
        "no_room": ends[NO_ROOM],
        "gct_ms": median("gct_us", 1e3),
        "ttft_ms": median("ttft_us", 1e3),
        "tpot_ms": median("tpot_us", 1e3),
    }


def declared_by_all(engines: Mapping[str, Mapping[str, Row]]) -> set[str]:
    """Returns the schemas that are taken by every engine that takes any schema. Times are compared on these,
    as in the paper."""
    sets = [{name for name, row in rows.items() if row.get("declared")} for rows in engines.values()]
    sets = [names for names in sets if names]
    return set.intersection(*sets) if sets else set()


def table(title: str, columns: Sequence[str], lines: Mapping[str, Sequence[str]]) -> str:
    """Returns a table as text; numbers are aligned to the right."""
    width = max([len(label) for label in lines] + [12]) + 2
    wide = [
        max([len(column), *(len(line[i]) for line in lines.values())]) + 2 for i, column in enumerate(columns)
    ]
    out = [title, " " * width + "".join(f"{c:>{w}}" for c, w in zip(columns, wide, strict=True))]
    for label, line in lines.items():
        out.append(f"{label:<{width}}" + "".join(f"{cell:>{w}}" for cell, w in zip(line, wide, strict=True)))
    return "\n".join(out)


def summary(rows: Iterable[Row], mode: str) -> str:
    """Returns the tables that a run prints at its end."""
    engines = by_engine(rows)
    if mode == "generate":
        names = (
            *("schemas", "declared", "empirical", "compliance", CUT, TOO_SMALL, "limit told"),
            *("gct ms", "ttft ms", "tpot ms"),
        )
        lines: dict[str, Sequence[str]] = {}
        timed = declared_by_all(engines)
        for engine, found in engines.items():
            c = coverage(found.values(), timed)
            lines[engine] = [
                str(c["schemas"]),
                *(f"{c[key]:.1%}" for key in ("declared", "empirical", "compliance")),
                *(str(c[key]) for key in ("cut", "too_small")),
                "yes" if any(row.get("limit_told") for row in found.values()) else "no",
                *(f"{c[key]:.2f}" for key in ("gct_ms", "ttft_ms", "tpot_ms")),
            ]
        return table(
            f"end to end; times are medians over the {len(timed)} schemas that all take", names, lines
        )
    all_of = {engine: whole(found.values()) for engine, found in engines.items()}
    parts = [
        table("schemas", OUTCOMES, {e: [str(w[kind]) for kind in OUTCOMES] for e, w in all_of.items()}),
        table(
            "time to first mask, µs",
            TTFM,
            {e: [f"{w['ttfm'][c]:.1f}" for c in TTFM] for e, w in all_of.items()},
        ),
        table(
            "time between masks, µs", TBM, {e: [f"{w['tbm'][c]:.2f}" for c in TBM] for e, w in all_of.items()}
        ),
    ]
    first = next(iter(engines), None)
    for peer in engines:
        if peer == first or first is None:
            continue
        found_pair = pair(engines[first], engines[peer])
        if found_pair["schemas"] == 0:
            continue
        title = (
            f"{first} / {peer} on {found_pair['schemas']} schemas and {found_pair['tokens']} tokens of both"
        )
        lines = {}
        for key, columns in (("ttfm", TTFM), ("tbm", TBM)):
            values = found_pair[key]["ratio"]
            lines[key] = [f"{values[c]:.3f}" if c in columns else "" for c in TBM]
        parts.append(table(title, TBM, lines))
    return "\n\n".join(parts)
