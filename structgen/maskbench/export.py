"""A run of masks in the files that MaskBench's analysis script reads.

Enters: a run. Leaves: a folder out--ENGINE for each engine, as `scripts/maskbench_results.py` of
guidance-ai/jsonschemabench reads it (commit 053c198):
    meta.txt      JSON with the engine's "name"
    rows.json     one row a schema; a row without "num_tests" is a crash or a limit
    log.txt       a line "Exit code: N" for each of those: -14 a timeout, -6 memory, -11 a segmentation fault
    entries.txt, stats.txt   its figures, as it would leave them itself; with -q it reads these, not the rows
The last two are written because without -q it divides by the number of masks above 10 ms, so that it fails
where an engine has none. Times are microseconds with fractions, where MaskBench's are whole: many masks take
less than one. What is timed differs in two things: MaskBench replays no end-of-sequence token, so here is a
step more an instance, and a text that only begins an instance is refused; and its time to first mask is
whatever its adapter of the engine does to compile. Cost: the rows once, in memory.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from .runs import BenchRun, RunError, rows_of

Row = dict[str, Any]
_PERCENTILES = (25, 50, 75, 90, 95, 99, 99.9, 100)
# MaskBench's runner is ended by an alarm, or aborts if an allocation fails
_CODES = {"timeout": -14, "memory": -6}
_SLOW = 10_000  # microseconds
_NOT_MEASURED = {"ttfm_us": 0, "max_ttfm_us": 0, "masks_us": 0, "max_mask_us": 0, "num_tokens": 0}


def export(run: BenchRun, folder: Path) -> list[Path]:
    """Writes a folder for each engine and returns the folders. RunError: the run did not measure masks."""
    if run.config["mode"] != "masks":
        raise RunError(f"{run.path} is no run of masks")
    by_engine: dict[str, dict[str, Row]] = {name: {} for name in run.config["engines"]}
    for row in rows_of(run.path):
        by_engine.setdefault(row["engine"], {})[row["id"]] = row
    made = []
    for engine, found in by_engine.items():
        path = folder / f"out--{engine.replace(':', '-')}"
        path.mkdir(parents=True, exist_ok=True)
        rows = [_row(row) for row in found.values()]
        codes = [_code(row["failure"]) for row in found.values() if "failure" in row]
        version = run.config["engines"].get(engine, {}).get("version", "")
        meta = {"id": engine, "name": f"{engine} {version}".strip(), "module_version": version}
        stats = _stats(rows, codes) | {"meta": meta}
        for name, content in (
            ("meta.txt", meta),
            ("rows.json", rows),
            ("stats.txt", stats),
            ("entries.txt", _entries(rows, stats)),
        ):
            (path / name).write_text(json.dumps(content), encoding="utf-8")
        (path / "log.txt").write_text("".join(f"Exit code: {code}\n" for code in codes), encoding="utf-8")
        made.append(path)
    return made


def _row(row: Row) -> Row:
    """Returns a row in the form of MaskBench's runner: the name of a file, one error, no times if the schema
    did not compile."""
    made = row | {"id": f"{row['id']}.json"}
    if "failure" in row:
        return made
    if "compile_error" in row:
        return _NOT_MEASURED | {"all_mask_us": []} | made
    # MaskBench's runner keeps the last wrong verdict; its script looks for "should reject" in the text
    if "validation_error" in row:
        made["validation_error"] = re.split(r"; (?=test #\d+: )", row["validation_error"])[-1]
    return made


def _code(failure: str) -> int:
    """Returns the exit status that MaskBench's runner would have."""
    found = re.search(r"(signal|exit code) (\d+)", failure)
    if found is not None:
        return -int(found[2]) if found[1] == "signal" else int(found[2])
    return _CODES.get(failure, 1)


def _stats(rows: list[Row], codes: list[int]) -> dict[str, Any]:
    measured = [row for row in rows if "num_tests" in row]
    compiled = [row for row in measured if "compile_error" not in row]
    wrong = [row["validation_error"] for row in compiled if "validation_error" in row]
    invalid = sum("should reject" in text for text in wrong)
    masks = [us for row in compiled for us in row["all_mask_us"]]
    made: dict[str, Any] = {
        "ttfm_us": sum(row["ttfm_us"] for row in compiled),
        "max_ttfm_us": max((row["max_ttfm_us"] for row in compiled), default=0),
        "masks_us": sum(row["masks_us"] for row in compiled),
        "max_mask_us": max((row["max_mask_us"] for row in compiled), default=0),
        "num_tokens": sum(row["num_tokens"] for row in compiled),
        "num_schemas": len(rows),
        "num_crashes_or_timeouts": len(rows) - len(measured),
        "num_timeouts": codes.count(-14),
        "num_segv": codes.count(-11),
        "num_abort": codes.count(-6),
        "num_schemas_ok": len(compiled) - len(wrong),
        "num_compilation_errors": len(measured) - len(compiled),
        "num_validation_errors": len(wrong) - invalid,
        "num_invalidation_errors": invalid,
        "num_tests": sum(row["num_tests"] for row in measured),
        "num_valid_tests": sum(row["num_valid_tests"] for row in compiled),
        "num_invalid_tests": sum(row["num_invalid_tests"] for row in compiled),
        "avg_mask_us": _mean(masks),
    }
    for name, part in (
        ("under", [us for us in masks if us < _SLOW]),
        ("over", [us for us in masks if us >= _SLOW]),
    ):
        made[f"masks_us_{name}_10ms"] = sum(part)
        made[f"num_masks_{name}_10ms"] = len(part)
        made[f"avg_masks_{name}_10ms"] = _mean(part)
    return made


def _entries(rows: list[Row], stats: dict[str, Any]) -> dict[str, Any]:
    """Returns the lines of MaskBench's table, in its order."""
    compiled = [row for row in rows if "num_tests" in row and "compile_error" not in row]
    made: dict[str, Any] = {}
    for name, times in (
        ("TBM", sorted(us for row in compiled for us in row["all_mask_us"])),
        ("TTFM", sorted(row["ttfm_us"] for row in compiled)),
    ):
        made[f"{name} avg (us)"] = _mean(times)
        for p in _PERCENTILES:
            at = min(int(len(times) * p / 100), len(times) - 1)
            made[f"{name} p{p}"] = times[at] if times else math.nan
    for line, key in (
        ("tokens", "num_tokens"),
        ("schemas", "num_schemas"),
        ("passing", "num_schemas_ok"),
        ("crashes", "num_crashes_or_timeouts"),
        ("segv", "num_segv"),
        ("oom", "num_abort"),
        ("timeouts", "num_timeouts"),
        ("compile errors", "num_compilation_errors"),
        ("validation errors", "num_validation_errors"),
        ("invalidation errors", "num_invalidation_errors"),
    ):
        made[line] = stats[key]
    return made


def _mean(times: list[float]) -> float:
    return round(sum(times) / len(times), 2) if times else math.nan
