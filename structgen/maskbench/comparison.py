"""Compares run B with run A, engine by engine, with bootstrap intervals.

Enters: two runs of masks. Leaves: a text, and whether B answers a question wrongly that A answers rightly.
The bootstrap draws schemas, because the tokens of one schema are alike; both runs use the same draw. Times go
into logarithmic bins first (2,000 over ten decades: 1.2% wide). So a percentile of a resample is a product of
a matrix and a search, and needs no sort of a million numbers. Cost: seconds for 5,605 schemas and 1,000
resamples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .figures import TBM, TTFM, by_engine, common_steps, compiled, outcome, ratio, table
from .figures import figures as figures_of
from .runs import BenchRun, RunError, rows_of

_BINS = 2000
_LOW, _HIGH = -2.0, 8.0  # decades of microseconds

Floats = npt.NDArray[np.float64]


def compare(
    a: BenchRun, b: BenchRun, *, engine: str | None = None, resamples: int = 1000
) -> tuple[str, bool]:
    """Returns (text, worse). RunError: the runs have no engine or no schema in common."""
    for run in (a, b):
        if run.config["mode"] != "masks":
            raise RunError(f"{run.path} is no run of masks: only those are compared")
    left, right = by_engine(rows_of(a.path)), by_engine(rows_of(b.path))
    names = [name for name in left if name in right and engine in (None, name)]
    if not names:
        raise RunError(f"{a.path} and {b.path} share no engine" + (f" called {engine}" if engine else ""))
    parts = [
        f"A = {a.path}, B = {b.path}; ratios are B/A, below 1 is faster\n"
        "Intervals are over the choice of schemas; drift of the machine between the runs is not in them:\n"
        "a second run of A against A shows how large that is."
    ]
    worse = False
    for name in names:
        text, lost = _engine(name, left[name], right[name], resamples)
        parts.append(text)
        worse = worse or lost
    return "\n\n".join(parts), worse


def _engine(
    name: str, a: dict[str, dict[str, Any]], b: dict[str, dict[str, Any]], resamples: int
) -> tuple[str, bool]:
    shared = sorted(a.keys() & b.keys())
    if not shared:
        raise RunError(f"the runs share no schema of {name}")
    both = [n for n in shared if compiled(a[n]) and compiled(b[n])]
    steps = [common_steps(a[n], b[n]) for n in both]
    lines: dict[str, list[str]] = {}
    kinds: list[tuple[str, tuple[str, ...], list[list[float]], list[list[float]]]] = [
        ("ttfm", TTFM, [[a[n]["ttfm_us"]] for n in both], [[b[n]["ttfm_us"]] for n in both]),
        ("tbm", TBM, [left for left, _ in steps], [right for _, right in steps]),
    ]
    for kind, columns, left, right in kinds:
        exact = [figures_of([t for times in side for t in times], columns) for side in (left, right)]
        ratios = ratio(exact[1], exact[0])
        spread = intervals(left, right, columns, resamples) if both else {}
        lines[kind] = [
            (f"{ratios[c]:.3f}" if c in columns else "")
            + (f" [{spread[c][0]:.3f}, {spread[c][1]:.3f}]" if c in spread else "")
            for c in TBM
        ]
        lines[f"  {kind} A, µs"] = [f"{exact[0][c]:.2f}" if c in columns else "" for c in TBM]
        lines[f"  {kind} B, µs"] = [f"{exact[1][c]:.2f}" if c in columns else "" for c in TBM]
    tokens = sum(len(x) for x, _ in steps)
    out = [table(f"{name}: {len(both)} schemas, {tokens} tokens", TBM, lines)]
    changed: dict[tuple[str, str], list[str]] = {}
    for n in shared:
        before, after = outcome(a[n]), outcome(b[n])
        if before != after:
            changed.setdefault((before, after), []).append(n)
    for (before, after), which in sorted(changed.items()):
        out.append(f"{len(which)} schemas {before} in A, {after} in B: {', '.join(which[:5])}")
    return "\n".join(out), any(before == "right" for before, _ in changed)


def intervals(
    left: list[list[float]], right: list[list[float]], columns: tuple[str, ...], resamples: int
) -> dict[str, tuple[float, float]]:
    """Returns the 95% percentile-bootstrap interval of right / left for each column except the maximum. The
    bootstrap does not work for a maximum (Bickel and Freedman 1981)."""
    random = np.random.default_rng(0)
    edges = np.logspace(_LOW, _HIGH, _BINS + 1)
    middle = np.sqrt(edges[:-1] * edges[1:])
    sides = []
    for groups in (left, right):
        binned = np.zeros((len(groups), _BINS), dtype=np.float32)
        sums = np.zeros((len(groups), 2))
        for row, times in enumerate(groups):
            values = np.asarray(times, dtype=float)
            places = ((np.log10(np.clip(values, 1e-2, 1e8)) - _LOW) / (_HIGH - _LOW) * _BINS).astype(int)
            np.add.at(binned[row], np.clip(places, 0, _BINS - 1), 1)
            sums[row] = values.sum(), values.size
        sides.append((binned, sums))
    found: dict[str, list[float]] = {column: [] for column in columns if column != "max"}
    n = len(left)
    for start in range(0, resamples, 100):
        count = min(100, resamples - start)
        weights = random.multinomial(n, np.full(n, 1 / n), size=count)
        before, after = (_resampled(weights, binned, sums, middle, tuple(found)) for binned, sums in sides)
        for column in found:
            found[column] += list(after[column] / before[column])
    return {
        column: (float(np.nanpercentile(v, 2.5)), float(np.nanpercentile(v, 97.5)))
        for column, v in found.items()
    }


def _resampled(
    weights: npt.NDArray[np.int64],
    binned: npt.NDArray[np.float32],
    sums: Floats,
    middle: Floats,
    columns: tuple[str, ...],
) -> dict[str, Floats]:
    """Returns each column of every resample, shape (resamples,)."""
    totals = weights @ sums
    cumulative = np.cumsum(weights.astype(np.float32) @ binned, axis=1, dtype=np.float64)
    out: dict[str, Floats] = {}
    for column in columns:
        if column == "mean":
            out[column] = totals[:, 0] / totals[:, 1]
            continue
        target = cumulative[:, -1:] * (float(column[1:]) / 100)
        out[column] = middle[np.minimum((cumulative < target).sum(axis=1), middle.size - 1)]
    return out
