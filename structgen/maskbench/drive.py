"""Runs the cases of a run through the engines, on this machine or on Ray, and writes the rows.

Enters: the corpus, engine names, limits. Leaves: rows in a `BenchRun`. A lane is the work of one core. It has
one child process for each engine, and takes some cases, a turn, through one engine after the other. The first
engine changes from turn to turn, so noise of the machine affects all engines alike. A child that hangs or
dies costs one row. A turn has several cases: with one case, the measurement would depend on what the other
engines leave in the processor's caches.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import endtoend, masks
from .corpus import Cases, CorpusError
from .runs import BenchRun
from .workers import Worker, WorkerError, each

TURN = 20  # the number of cases in a turn, about half a second for an engine

_DESCRIBE = 120.0  # the most seconds for the import of an adapter
_KINDS = {"masks": (masks.SETUP, masks.WORK), "generate": (endtoend.SETUP, endtoend.WORK)}


@dataclass(frozen=True, slots=True)
class Task:
    """What a run does: its mode, engines and limits. It is sent to every lane (the work of one core), also on
    other machines."""

    mode: str  # "masks" or "generate"
    engines: tuple[str, ...]
    config: dict[str, Any]  # for the set-up: tokenizer, or model and max_tokens
    limit: float  # seconds per schema and engine
    memory: int | None  # bytes per schema and engine

    def worker(self, engine: str) -> Worker:
        setup, work = _KINDS[self.mode]
        return Worker(setup, work, self.config | {"engine": engine}, self.limit, self.memory)


class Lane:
    """Runs a list of `jobs` in child processes, one for each engine, which start when they are first
    needed."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._workers: dict[str, Worker] = {}

    def run(self, turn: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns the rows of the cases in the first job's order, one row for each engine that a job
        names."""
        engines = dict.fromkeys(engine for job in turn for engine in job["engines"])
        return [
            row
            for engine in engines
            for job in turn
            if engine in job["engines"]
            for row in self._call(engine, job)
        ]

    def _call(self, engine: str, job: dict[str, Any]) -> list[dict[str, Any]]:
        if engine not in self._workers:
            self._workers[engine] = self._task.worker(engine)
        rows, failure = self._workers[engine].call(job)
        if failure is not None:
            rows.append(
                {
                    "id": job["name"],
                    "split": job["split"],
                    "engine": engine,
                    "failure": failure.kind,
                    "seconds": round(failure.seconds, 1),
                }
            )
        return rows

    def stop(self) -> None:
        for worker in self._workers.values():
            worker.stop()


def about(names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Returns the version and notes of every engine, asked in a child process. WorkerError: an engine is not
    installed."""
    worker = Worker(
        "structgen.maskbench.engines:nothing", "structgen.maskbench.engines:describe", {}, _DESCRIBE
    )
    found = {}
    try:
        for engine in names:
            rows, failure = worker.call(engine)
            problem = failure.kind if failure is not None else rows[0].get("missing")
            if problem:
                raise WorkerError(f"engine {engine}: {problem}")
            found[engine] = rows[0]
    finally:
        worker.stop()
    return found


def jobs(
    corpus: Cases, names: list[str], engines: tuple[str, ...], run: BenchRun
) -> Iterator[dict[str, Any]]:
    """Returns the remaining jobs, one for each case. An unreadable case becomes a row for every engine."""
    for name in names:
        left = [engine for engine in engines if (name, engine) not in run.done]
        if not left:
            continue
        try:
            case = corpus.case(name)
        except CorpusError as error:
            bad = {"id": name, "split": "", "failure": f"unreadable: {error}"}
            run.write([bad | {"engine": engine} for engine in left])
            continue
        yield case.as_json() | {"engines": left}


def turns(
    jobs: Iterator[dict[str, Any]], size: int, engines: tuple[str, ...]
) -> Iterator[list[dict[str, Any]]]:
    """Returns the jobs in turns of `size`. The first engine changes from turn to turn."""
    for index in itertools.count():
        turn = list(itertools.islice(jobs, size))
        if not turn:
            return
        shift = index % len(engines)
        order = [*engines[shift:], *engines[:shift]]
        yield [job | {"engines": [engine for engine in order if engine in job["engines"]]} for job in turn]


class Progress:
    """A line on standard error: the number of finished cases, the speed, and the remaining time."""

    def __init__(self, total: int, every: float = 10.0) -> None:
        self._total = total
        self._since = self._last = time.monotonic()
        self._live = sys.stderr.isatty()
        self._every = 0.5 if self._live else every
        self._done = 0

    def step(self, rows: list[dict[str, Any]], cases: int = 1) -> None:
        self._done += cases
        now = time.monotonic()
        for row in rows:
            if "failure" in row:
                self._say(f"{row['id']}: {row['engine']}: {row['failure']}", keep=True)
        if now - self._last < self._every and self._done < self._total:
            return
        self._last = now
        spent = now - self._since
        left = spent / self._done * (self._total - self._done)
        self._say(
            f"{self._done} of {self._total} schemas, {self._done / spent:.1f}/s, {duration(left)} left",
            keep=self._done == self._total,
        )

    def _say(self, text: str, keep: bool) -> None:
        end = "\n" if keep or not self._live else ""
        print(("\r\x1b[K" if self._live else "") + text, end=end, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def drive(
    run: BenchRun,
    task: Task,
    corpus: Cases,
    names: list[str],
    *,
    lanes: int = 1,
    turn: int = 1,
    executor: str = "local",
    address: str | None = None,
) -> int:
    """Runs the remaining jobs of a run. Returns the number of cases that were finished now."""
    left = [name for name in names if any((name, engine) not in run.done for engine in task.engines)]
    if not left:
        return 0
    todo = turns(jobs(corpus, left, task.engines, run), turn, task.engines)
    found: Iterator[tuple[Any, list[dict[str, Any]]]]
    if executor == "ray":
        from . import scale

        found = scale.each(Lane, task, todo, lanes=lanes, address=address)
    else:
        found = each(lambda: Lane(task), todo, lanes)
    shown = Progress(len(left))
    done = 0
    for cases, rows in found:
        run.write(rows)
        done += len(cases)
        shown.step(rows, len(cases))
    return done
