"""Turns runs into a report, which the page and the Markdown file both show.

Enters: runs. Leaves: a `Report` of plain tables and curves. If several runs measured the same schemas, a
figure is the median of these runs, and verdicts are those of the last run; other runs are joined. Cost: one
pass over the rows; 1.2 million steps of an engine take a second.

The problem. Runs cover different schemas, repeat each other, or broke off. An engine that refuses hard
schemas has better times than one that takes them.

The idea. `_layers` puts the n-th measurement of each schema and engine into layer n. Runs over different
schemas add up to one layer; runs over the same schemas are a layer each. For the runs {s1: 5, s2: 7}, {s3: 9}
and {s1: 6, s2: 8, s3: 9} of one engine the layers are {s1: 5, s2: 7, s3: 9} and {s1: 6, s2: 8, s3: 9}. A
figure is computed in each layer, and the median of the layers is told.

Times are reported twice: over everything that an engine takes, and for pairs of engines over what both take.
An engine that took less than `_COUNTS` of the largest number of schemas gets no mark for the best time.

Invariants.
- A later layer of an engine counts only if it is as complete as the first.
- A report has a part for each kind of run (masks, cases, end to end). A part that no run has is empty.
- A busy machine at the start of a run is a warning in the report.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from . import engines as known_engines
from . import figures as fig
from .method import FLATTERS, METHOD
from .runs import BenchRun, RunError, rows_of

Row = dict[str, Any]
SUBJECT = "structgen"
_CASES = "structgen's own cases"
_WORST = 5  # the slowest schemas of each engine that are listed
_CAUSES = 25  # the most causes in the table
# an engine that took less than this share of the largest number of schemas has no best figures
_COUNTS = 0.75
_BUSY = 0.5  # load per core at the start of a run; with more the report has a warning


@dataclass(frozen=True, slots=True)
class Table:
    """Text cells. `best` has the (row, column) of the best number of each column that has one."""

    caption: str
    columns: list[str]
    rows: list[list[str]]
    best: set[tuple[int, int]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Curve:
    """Quantiles of one engine's times: (nines, microseconds), where nines = -log10(1 - q)."""

    engine: str
    points: list[tuple[float, float]]
    count: int


@dataclass(slots=True)
class Report:
    """Everything that both formats show. A part that no run has is empty."""

    title: str
    lead: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    engines: list[str] = field(default_factory=list)
    speed: list[Table] = field(default_factory=list)
    ttfm: list[Curve] = field(default_factory=list)
    tbm: list[Curve] = field(default_factory=list)
    pairs: list[Table] = field(default_factory=list)
    coverage: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)  # split -> engine -> outcome
    causes: Table | None = None
    worst: list[Table] = field(default_factory=list)
    cases: list[Table] = field(default_factory=list)
    endtoend: list[Table] = field(default_factory=list)
    method: list[str] = field(default_factory=list)
    flatters: list[str] = field(default_factory=list)
    versions: Table | None = None
    runs: Table | None = None


def build(runs: list[BenchRun], title: str) -> Report:
    """Returns the report of some runs. RunError: the runs have no rows."""
    report = Report(title)
    abouts: dict[str, dict[str, Any]] = {}
    groups: dict[str, list[tuple[BenchRun, list[Row]]]] = {"masks": [], "cases": [], "generate": []}
    for run in runs:
        rows = list(rows_of(run.path))
        mode = run.config["mode"]
        kind = "cases" if mode == "masks" and run.config["data"] == _CASES else mode
        groups[kind].append((run, rows))
        abouts |= run.config["engines"]
    seen = {row["engine"] for group in groups.values() for _, rows in group for row in rows}
    if not seen:
        raise RunError("the runs have no rows yet")
    order = [SUBJECT, *known_engines.ENGINES, known_engines.BASELINE]
    report.engines = sorted(seen, key=lambda e: (order.index(e) if e in order else len(order), e))
    if groups["masks"]:
        _masks(report, [rows for _, rows in groups["masks"]])
    for _, rows in groups["cases"]:
        report.cases += _case_tables(rows, report.engines)
    if groups["generate"]:
        _endtoend(report, groups["generate"], abouts)
    _about(report, runs, abouts)
    return report


def duration(us: float) -> str:
    """Returns a time in microseconds as text, with three digits and a unit."""
    if math.isnan(us):
        return "–"
    for scale, unit in ((1e6, "s"), (1e3, "ms"), (1.0, "µs")):
        if us >= scale * 0.9995 or unit == "µs":
            value = us / scale
            return f"{value:.0f} {unit}" if value >= 99.95 else f"{value:.3g} {unit}"
    raise AssertionError


def _factor(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2g}" if value < 0.01 else f"{value:.3g}"


def _median(found: list[dict[str, float]]) -> dict[str, float]:
    return {key: float(np.median([f[key] for f in found])) for key in found[0]}


def _best(
    rows: list[list[float]], columns: Iterable[int], offset: int, counted: list[bool] | None = None
) -> set[tuple[int, int]]:
    """Returns the places of the smallest number of each column, among rows that are `counted`."""
    found = set()
    for column in columns:
        values = [row[column] if counted is None or counted[i] else math.nan for i, row in enumerate(rows)]
        if sum(not math.isnan(v) for v in values) > 1:
            found.add((int(np.nanargmin(values)), column + offset))
    return found


def _masks(report: Report, repetitions: list[list[Row]]) -> None:
    by_run = _layers(repetitions)
    last: dict[str, dict[str, Row]] = {}
    for found in by_run:
        for engine, rows in found.items():
            last.setdefault(engine, {}).update(rows)
    names = [engine for engine in report.engines if engine in last]
    figures = {e: [fig.whole(found[e].values()) for found in by_run if e in found] for e in names}
    _speed(report, names, figures)
    for key, curves in (("ttfm", report.ttfm), ("tbm", report.tbm)):
        for engine in names:
            taken = [row for found in by_run for row in found.get(engine, {}).values() if fig.compiled(row)]
            times = [row["ttfm_us"] for row in taken] if key == "ttfm" else fig.steps_of(taken)
            if len(times):
                curves.append(_curve(engine, np.asarray(times, dtype=float)))
    subject = SUBJECT if SUBJECT in names else names[0]
    for peer in names:
        if peer != subject:
            _pair(report, subject, peer, by_run)
    splits = sorted({row["split"] for rows in last.values() for row in rows.values()})
    for split in ["all", *splits] if len(splits) > 1 else splits:
        report.coverage[split] = {
            engine: dict(
                collections.Counter(
                    fig.outcome(row) for row in last[engine].values() if split in ("all", row["split"])
                )
            )
            for engine in names
        }
    _causes(report, names, last)
    _worst(report, names, last)


def _layers(runs: list[list[Row]]) -> list[dict[str, dict[str, Row]]]:
    """Layers of measurements. Layer n has the n-th one of each schema and engine, if the layer is complete.

    Runs over different schemas add up to one layer. Runs over the same schemas are a layer each.
    """
    layers: list[dict[str, dict[str, Row]]] = []
    for rows in runs:
        for engine, found in fig.by_engine(rows).items():
            for name, row in found.items():
                for layer in layers:
                    if name not in layer.setdefault(engine, {}):
                        layer[engine][name] = row
                        break
                else:
                    layers.append({engine: {name: row}})
    for layer in layers[1:]:
        for engine in [e for e in layer if len(layer[e]) < len(layers[0].get(e, ()))]:
            del layer[engine]
    return layers


def _speed(report: Report, names: list[str], figures: dict[str, list[dict[str, Any]]]) -> None:
    rows = []
    for engine in names:
        w = figures[engine][-1]
        rows.append(
            [engine, f"{w['schemas']:,}", *(f"{w[kind]:,}" for kind in fig.OUTCOMES), f"{w['tokens']:,}"]
        )
    report.speed.append(
        Table(
            "What each engine made of the schemas. Right: every verdict is; wrong: some verdict is; refused: "
            "an error at compile time; failed: a crash or a limit",
            ["engine", "schemas", *fig.OUTCOMES, "tokens timed"],
            rows,
        )
    )
    taken = [w["right"] + w["wrong"] for w in (figures[engine][-1] for engine in names)]
    counted = [n >= _COUNTS * max(taken) for n in taken]
    times = (
        ("Time to first mask (compile, new sequence, first mask)", "ttfm", fig.TTFM),
        ("Time between masks (mask and accept of one token)", "tbm", fig.TBM),
    )
    for caption, key, columns in times:
        found = [_median([w[key] for w in figures[engine]]) for engine in names]
        numbers = [[line[c] for c in columns] for line in found]
        cells = [[e, *(duration(v) for v in line)] for e, line in zip(names, numbers, strict=True)]
        report.speed.append(
            Table(
                f"{caption}, over all that each engine takes",
                ["engine", *columns],
                cells,
                _best(numbers, range(len(columns)), 1, counted),
            )
        )


def _curve(engine: str, times: np.ndarray[Any, Any]) -> Curve:
    ordered = np.sort(times)
    end = math.log10(max(2, ordered.size))
    nines = np.linspace(-math.log10(1 - 0.05), end, 160)
    values = np.quantile(ordered, 1 - 10.0**-nines, method="higher")
    return Curve(
        engine, [(float(x), max(float(y), 0.01)) for x, y in zip(nines, values, strict=True)], times.size
    )


def _pair(report: Report, subject: str, peer: str, by_run: list[dict[str, dict[str, Row]]]) -> None:
    found = [fig.pair(run[subject], run[peer]) for run in by_run if subject in run and peer in run]
    found = [f for f in found if f["schemas"]]
    if not found:
        return
    rows = []
    for key, name, columns in (("ttfm", "first mask", fig.TTFM), ("tbm", "between masks", fig.TBM)):
        for side, label in (("subject", subject), ("peer", peer)):
            line = _median([f[key][side] for f in found])
            rows.append([f"{name}, {label}", *(duration(line[c]) if c in columns else "" for c in fig.TBM)])
        line = _median([f[key]["ratio"] for f in found])
        rows.append([f"{name}, ratio", *(_factor(line[c]) if c in columns else "" for c in fig.TBM)])
        share = {c: _factor(line[c]) for c in columns}
        said = (
            f"First mask: {subject} takes {share['p50']} of {peer}'s time at the median, {share['p99']} at "
            f"p99, on the {found[-1]['schemas']:,} schemas that both take."
            if key == "ttfm"
            else f"Between masks: {share['p50']} of {peer}'s time at the median, {share['p99']} at p99, "
            f"{share['max']} at the maximum."
        )
        report.lead.append(said)
    report.pairs.append(
        Table(
            f"{subject} and {peer} on what both take: {found[-1]['schemas']:,} schemas, "
            f"{found[-1]['tokens']:,} tokens" + (f", median of {len(found)} runs" if len(found) > 1 else ""),
            ["", *fig.TBM],
            rows,
        )
    )


def _causes(report: Report, names: list[str], last: dict[str, dict[str, Row]]) -> None:
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for engine in names:
        for row in last[engine].values():
            kind = fig.outcome(row)
            if kind != "right":
                counts[f"{kind}: {fig.cause(row)}"][engine] += 1
    ordered = sorted(counts.items(), key=lambda item: -sum(item[1].values()))
    rows = [[cause, *(str(found[e] or "") for e in names)] for cause, found in ordered[:_CAUSES]]
    if len(ordered) > _CAUSES:
        rest: collections.Counter[str] = collections.Counter()
        for _, found in ordered[_CAUSES:]:
            rest.update(found)
        rows.append([f"{len(ordered) - _CAUSES} other causes", *(str(rest[e] or "") for e in names)])
    if rows:
        report.causes = Table(
            "Schemas by what went wrong, and the keyword it is about", ["cause", *names], rows
        )


def _worst(report: Report, names: list[str], last: dict[str, dict[str, Row]]) -> None:
    for engine in names:
        rows = list(last[engine].values())
        taken = [row for row in rows if fig.compiled(row)]
        lines = []
        for what, key in (("first mask", "ttfm_us"), ("one mask", "max_mask_us")):
            worst = sorted(taken, key=lambda row: -row[key])[:_WORST]
            lines += [[what, row["id"], duration(row[key])] for row in worst]
        wrong = sorted(
            (row for row in rows if fig.outcome(row) in ("failed", "wrong")), key=lambda r: fig.outcome(r)
        )
        lines += [[fig.outcome(row), row["id"], fig.reason(row)[:160]] for row in wrong[: 2 * _WORST]]
        report.worst.append(Table(engine, ["what", "schema", "how much, or why"], lines))


def _case_tables(rows: list[Row], names: list[str]) -> list[Table]:
    by_case: dict[str, dict[str, Row]] = collections.defaultdict(dict)
    for row in rows:
        by_case[row["id"]][row["engine"]] = row
    columns = ("p50", "mean", "p99", "p99.9", "max")
    tables = []
    for case, found in by_case.items():
        cells: list[list[str]] = []
        numbers: list[list[float]] = []
        tokens = max((row.get("num_tokens", 0) for row in found.values()), default=0)
        for engine in (name for name in names if name in found):
            row = found[engine]
            if fig.outcome(row) != "right":
                cells.append(
                    [engine, f"{fig.outcome(row)}: {fig.reason(row)[:70]}", *[""] * (len(columns) + 2)]
                )
                numbers.append([math.nan] * (len(columns) + 2))
                continue
            line = fig.figures(row["all_mask_us"], columns)
            values = [row["ttfm_us"], *(line[c] for c in columns), row["masks_us"]]
            numbers.append(values)
            cells.append([engine, *(duration(v) for v in values), _factor(_growth(row["all_mask_us"]))])
        tables.append(
            Table(
                f"{case}: {tokens:,} tokens",
                ["engine", "first mask", *columns, "whole text", "growth"],
                cells,
                _best(numbers, range(len(columns) + 2), 1),
            )
        )
    return tables


def _growth(steps: list[float]) -> float:
    """Returns the median of the last tenth of the steps, divided by the median of the first tenth.

    A value of 1 means that steps do not get slower as the text gets longer.
    """
    tenth = max(1, len(steps) // 10)
    return float(np.median(steps[-tenth:]) / np.median(steps[:tenth]))


def _endtoend(
    report: Report, runs: list[tuple[BenchRun, list[Row]]], abouts: dict[str, dict[str, Any]]
) -> None:
    """Makes one table. An engine has one line for runs in which it knew the token limit, and one for runs in
    which it did not."""
    able = {name for name, about in abouts.items() if about.get("ends_in_time")}
    untold = [run for run, _ in runs if not run.config.get("tell_limit")]
    engines: dict[str, dict[str, Row]] = {}
    for run, rows in runs:
        for engine, found in fig.by_engine(rows).items():
            apart = run in untold and len(untold) < len(runs) and engine in able
            engines.setdefault(f"{engine}, untold" if apart else engine, {}).update(found)
    names = sorted(engines, key=lambda line: (report.engines.index(line.partition(",")[0]), line))
    splits = sorted({row["split"] for found in engines.values() for row in found.values()})
    columns = [
        *("engine", "told", "schemas", "declared", "empirical", "compliance"),
        *(fig.CUT, "too small", "compile", "first token", "per token"),
    ]
    for split in ["all", *splits] if len(splits) > 1 else splits:
        chosen = {
            engine: {name: row for name, row in engines[engine].items() if split in ("all", row["split"])}
            for engine in names
        }
        timed = fig.declared_by_all(chosen)
        cells = []
        for engine, found in chosen.items():
            if not found:
                continue
            c = fig.coverage(found.values(), timed)
            cells.append(
                [
                    engine,
                    "yes" if any(row.get("limit_told") for row in found.values()) else "no",
                    str(c["schemas"]),
                    *(
                        "–" if math.isnan(c[k]) else f"{c[k]:.0%}"
                        for k in ("declared", "empirical", "compliance")
                    ),
                    *(str(c[k]) for k in ("cut", "too_small")),
                    *(duration(c[k] * 1e3) for k in ("gct_ms", "ttft_ms", "tpot_ms")),
                ]
            )
        report.endtoend.append(
            Table(f"{split}; times over the {len(timed)} schemas that all take", columns, cells)
        )
    _told(report, runs, abouts)


def _told(report: Report, runs: list[tuple[BenchRun, list[Row]]], abouts: dict[str, dict[str, Any]]) -> None:
    """Names the engines that can be given the token limit, and the engines that cannot."""
    seen = [engine for engine in report.engines if engine in abouts and engine != known_engines.BASELINE]
    seen = [e for e in seen if any(e in run.config["engines"] for run, _ in runs)]
    able = [engine for engine in seen if abouts[engine].get("ends_in_time")]
    lacking = [engine for engine in seen if engine not in able]
    limits = sorted({run.config["max_tokens"] for run, _ in runs if "max_tokens" in run.config})
    told = [run for run, _ in runs if run.config.get("tell_limit")]
    said = f"Texts end at {', '.join(map(str, limits))} tokens." if limits else ""
    if told and able:
        said += f" Told at each mask how many are left, and so able to finish in time: {', '.join(able)}."
    if told and lacking:
        said += f" Without such a feature, and so cut off: {', '.join(lacking)}."
    if len(told) < len(runs):
        said += " In " + ("some runs" if told else "these runs") + " no engine was told the limit (--untold)."
    report.method.append(said.strip())


def _about(report: Report, runs: list[BenchRun], abouts: dict[str, dict[str, Any]]) -> None:
    described = {name: entry.about for name, entry in known_engines.ENGINES.items()}
    report.versions = Table(
        "Engines",
        ["engine", "version", "settings", "remarks"],
        [
            [e, abouts[e]["version"], described.get(e, "the model alone"), "; ".join(abouts[e]["notes"])]
            for e in report.engines
            if e in abouts
        ],
    )
    rows = []
    for run in runs:
        c = run.config
        for session in c["sessions"]:
            m = session["machine"]
            load = m.get("load_at_start", 0.0)
            if load > _BUSY * m["cores"] and not report.warnings:
                report.warnings.append(
                    f"The machine was busy (load {load} on {m['cores']} cores when a run started): read the "
                    "ratios, not the times, and the tails with care."
                )
            rows.append(
                [
                    run.name,
                    session["started"],
                    Path(c["data"]).name or c["data"],
                    str(c.get("tokenizer") or f"model {c.get('model')}"),
                    f"{m['processor']}, {m['cores']} cores, {m.get('memory_gb', '?')} GB, load "
                    f"{m.get('load_at_start', '?')} at the start; {m['system']}; Python {m['python']}",
                    f"{session['lanes'] or 'all'} lanes, {session['executor']}; {c['limit']:.0f} s and "
                    f"{c['memory'] / 1e9:.0f} GB a schema",
                ]
            )
    report.runs = Table("Runs", ["run", "started", "data", "tokens", "machine", "how"], rows)
    modes = {run.config["mode"] for run in runs}
    for mode in sorted(modes, reverse=True):
        report.method += METHOD[mode]
        if mode == "masks" and report.cases:
            report.method += METHOD["cases"]
        report.flatters += FLATTERS[mode]
    if max(len([r for r in runs if r.config["mode"] == m]) for m in modes) > 1:
        report.method.append("Where several runs measured one engine, a figure is the median of the runs.")
