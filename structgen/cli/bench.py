"""`structgen bench masks|generate|report|compare` measures several engines on many schemas.

In: schemas, engine names, limits; or the folders of finished runs. Out: a folder of rows (a run), a summary
table, a page. Progress goes to standard error. The exit status is 1 if answers are wrong and the command
judges answers (`--strict`, `compare`).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from structgen.maskbench import engines, figures, runs

from .common import OK, REJECTED, Commands, Failure, note

_DATA = "STRUCTGEN_DATA"


def add_parser(commands: Commands) -> None:
    top = commands.add_parser(
        "bench",
        help="compare engines: masks, generation, reports",
        description="Runs engines side by side and reports what came out. A run is a folder; started again "
        "with the same options it goes on where it stood.",
    )
    kinds = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    masks = kinds.add_parser(
        "masks",
        help="time to first mask, time between masks, verdicts (MaskBench)",
        description="Replays labelled instances token by token, as MaskBench does.",
    )
    _add_run_options(masks, "structgen,llguidance")
    masks.add_argument(
        "--tokenizer", default="tekken", help="tekken (the default), embedded, a file, a folder or a hub name"
    )
    masks.set_defaults(run=run_masks)

    generate = kinds.add_parser(
        "generate",
        help="coverage, compliance, times with a model (JSONSchemaBench)",
        description="Generates one value per schema and judges it with jsonschema, formats included.",
    )
    _add_run_options(generate, "structgen")
    generate.add_argument("--model", default="embedded", help="embedded (the default), a folder, a hub name")
    generate.add_argument("--max-tokens", type=int, default=512, metavar="N", help="(default: 512)")
    generate.add_argument(
        "--untold",
        action="store_true",
        help="tell no engine how many tokens are left (default: those that can use it are told at each mask)",
    )
    generate.set_defaults(run=run_generate)

    report = kinds.add_parser("report", help="one HTML page and one Markdown file from runs")
    report.add_argument("runs", nargs="+", metavar="RUN", help="folders of runs")
    report.add_argument(
        "--out", default="report", metavar="NAME", help="writes NAME.html and NAME.md (default: report)"
    )
    report.add_argument("--title", default="Constrained decoding, measured")
    report.set_defaults(run=run_report)

    compare = kinds.add_parser(
        "compare",
        help="B against A, with intervals",
        description="Ratios B/A per engine on the schemas and tokens both took, with 95% bootstrap "
        "intervals over schemas. Exit status 1 where B answers wrongly what A answered rightly.",
    )
    compare.add_argument("a", metavar="A", help="the run before")
    compare.add_argument("b", metavar="B", help="the run after")
    compare.add_argument("--engine", help="one engine only")
    compare.add_argument("--resamples", type=int, default=1000, metavar="N", help="(default: 1000)")
    compare.set_defaults(run=run_compare)

    export = kinds.add_parser(
        "export",
        help="a run as folders that MaskBench's own analysis script reads",
        description="Writes a folder an engine, for MaskBench's scripts/maskbench_results.py. Call that with "
        "-q: without, it divides by the number of masks above 10 ms and fails for an engine that has none.",
    )
    export.add_argument("source", metavar="RUN")
    export.add_argument("folder", metavar="FOLDER", help="gets a folder out--ENGINE for every engine")
    export.set_defaults(run=run_export)


def _add_run_options(parser: argparse.ArgumentParser, names: str) -> None:
    parser.add_argument("--out", required=True, metavar="RUN", help="the run's folder")
    parser.add_argument(
        "--data",
        help="a folder (MaskBench, a checkout of JSONSchemaBench, schemas), hub, cases or smoke "
        f"(default: ${_DATA}/maskbench)",
    )
    parser.add_argument(
        "--engines",
        default=names,
        metavar="LIST",
        help=f"of {', '.join(engines.ENGINES)}, {engines.BASELINE}, or module:function (default: {names})",
    )
    choice = parser.add_argument_group("which schemas")
    choice.add_argument("--only", default="", metavar="TEXT", help="names that contain this")
    choice.add_argument("--stride", type=int, default=1, metavar="N", help="every n-th by name")
    choice.add_argument("--offset", type=int, default=0, metavar="N")
    choice.add_argument("--count", type=int, metavar="N", help="a fixed random sample of N")
    choice.add_argument("--seed", type=int, default=0, help="of the sample")
    choice.add_argument("--scale", type=float, default=1.0, help="of the texts of `cases` (default: 1)")
    limits = parser.add_argument_group("limits and machines")
    limits.add_argument(
        "--limit", type=float, default=60.0, metavar="S", help="seconds a schema (default: 60)"
    )
    limits.add_argument("--memory", type=float, default=8.0, metavar="GB", help="of an engine (default: 8)")
    limits.add_argument(
        "--jobs", type=int, default=0, metavar="N", help="worker lanes (default: one a core; 1 for times)"
    )
    limits.add_argument(
        "--turn",
        type=int,
        metavar="N",
        help="schemas that an engine takes before it is the next one's turn (default: 20 for masks, else 1)",
    )
    limits.add_argument("--executor", choices=("local", "ray"), default="local", help="(default: local)")
    limits.add_argument("--address", help="of a Ray cluster, or `auto` (default: a local one)")
    parser.add_argument("--strict", action="store_true", help="exit status 1 unless all is right")


def run_masks(options: argparse.Namespace) -> int:
    return _run("masks", {"tokenizer": options.tokenizer}, options)


def run_generate(options: argparse.Namespace) -> int:
    if options.max_tokens < 1:
        raise Failure("--max-tokens must be positive")
    config = {"model": options.model, "max_tokens": options.max_tokens, "tell_limit": not options.untold}
    return _run("generate", config, options)


def _run(mode: str, config: dict[str, Any], options: argparse.Namespace) -> int:
    from structgen.maskbench import corpus, drive

    names = tuple(dict.fromkeys(name.strip() for name in options.engines.split(",") if name.strip()))
    if not names:
        raise Failure("--engines names no engine")
    for name in names:
        engines.check(name)
    if mode == "masks" and engines.BASELINE in names:
        raise Failure(f"{engines.BASELINE} has no masks to time: it is for `structgen bench generate`")
    turn = options.turn if options.turn is not None else drive.TURN if mode == "masks" else 1
    for option, value in {**vars(options), "turn": turn}.items():
        if option in ("stride", "limit", "memory", "scale", "turn") and value <= 0:
            raise Failure(f"--{option} must be positive")
    data = options.data or _default_data()
    source = corpus.open_corpus(data, instances=mode == "masks", scale=options.scale)
    chosen = corpus.select(
        source.names,
        only=options.only,
        stride=options.stride,
        offset=options.offset,
        count=options.count,
        seed=options.seed,
    )
    if not chosen:
        raise Failure(f"none of the {len(source.names)} schemas of {data} is chosen")
    memory = int(options.memory * 1e9)
    path = Path(options.out)
    path.mkdir(parents=True, exist_ok=True)
    log = str((path / "engines.log").resolve())  # the file for the output of the engines
    task = drive.Task(mode, names, config | {"log": log}, options.limit, memory)
    lanes = options.jobs or (0 if options.executor == "ray" else _cores())
    run = runs.BenchRun.open(
        path,
        config
        | {
            "mode": mode,
            "data": source.about,
            "scale": options.scale,
            "limit": options.limit,
            "memory": memory,
            "schemas": len(chosen),
            "engines": drive.about(names),
            "sessions": [runs.session(lanes=lanes, turn=turn, executor=options.executor)],
        },
    )
    for name, found in run.config["engines"].items():
        for remark in found["notes"]:
            note(f"{name} {found['version']}: {remark}")
        if mode == "generate" and name != engines.BASELINE and not found.get("ends_in_time"):
            note(f"{name} {found['version']}: cannot be told how many tokens are left: texts may be cut off")
    if run.done:
        note(f"{len(run.done)} rows are already in the folder")
    drive.drive(
        run,
        task,
        source,
        chosen,
        lanes=lanes,
        turn=turn,
        executor=options.executor,
        address=options.address,
    )
    note(f"rows in {run.path / 'rows.jsonl'}")
    rows = [row for row in runs.rows_of(run.path) if row["engine"] in names]
    print(figures.summary(rows, mode))
    if options.strict:
        wrong = [row for row in rows if figures.outcome(row) != "right"]
        for row in wrong[:20]:
            note(f"{row['id']}: {row['engine']}: {figures.outcome(row)}: {figures.reason(row)}")
        return REJECTED if wrong else OK
    return OK


def _default_data() -> str:
    root = os.environ.get(_DATA)
    if not root:
        raise Failure(
            "no schemas: pass --data FOLDER (git clone https://github.com/guidance-ai/jsonschemabench has "
            f"them), --data cases, --data smoke, or set {_DATA}"
        )
    return str(Path(root) / "maskbench")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_report(options: argparse.Namespace) -> int:
    from structgen.maskbench import markdown, page, report

    made = report.build([runs.read(path) for path in options.runs], options.title)
    for ending, text in (("html", page.render(made)), ("md", markdown.render(made))):
        path = Path(f"{options.out}.{ending}")
        path.write_text(text, encoding="utf-8")
        print(path)
    return OK


def run_compare(options: argparse.Namespace) -> int:
    from structgen.maskbench import comparison

    text, worse = comparison.compare(
        runs.read(options.a), runs.read(options.b), engine=options.engine, resamples=options.resamples
    )
    print(text)
    return REJECTED if worse else OK


def run_export(options: argparse.Namespace) -> int:
    from structgen.maskbench import export

    for path in export.export(runs.read(options.source), Path(options.folder)):
        print(path)
    return OK
