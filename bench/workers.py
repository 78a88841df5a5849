"""Jobs in a child process under a time limit: a crash or a hang costs one job, not the run.

A job function takes (state, job, emit) and may `emit` any number of rows; `setup(config)` makes the
state once per child. The child is started anew after a failure. Cost: one spawn, plus the set-up,
per failure.
"""

from __future__ import annotations

import importlib
import multiprocessing
import multiprocessing.connection
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

SETUP_LIMIT = 180.0


def _named(path: str) -> Callable:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _child(pipe, setup: str, work: str, config: dict) -> None:
    state = _named(setup)(config)
    function = _named(work)
    pipe.send(("ready", None))
    while True:
        job = pipe.recv()
        if job is None:
            return
        function(state, job, lambda row: pipe.send(("row", row)))
        pipe.send(("done", None))


@dataclass(frozen=True, slots=True)
class Failure:
    """A job that ended without an answer: "timeout" or "crash (exit code)"."""

    kind: str
    seconds: float


class Worker:
    """One child. `start(job)` then `poll()`: rows, then None when done, or a `Failure`."""

    def __init__(self, setup: str, work: str, config: dict, limit: float):
        self._arguments = (setup, work, config)
        self._limit = limit
        self._process: Any = None
        self._pipe: Any = None
        self.job: Any = None
        self.rows: list = []
        self._since = 0.0

    @property
    def pipe(self) -> Any:
        return self._pipe

    def start(self, job: object) -> None:
        if self._process is None:
            self._spawn()
        self.job, self.rows, self._since = job, [], time.monotonic()
        self._pipe.send(job)

    def remaining(self) -> float:
        return max(0.0, self._since + self._limit - time.monotonic())

    def poll(self) -> tuple[list, Failure | None] | None:
        """The job's rows and failure when it has ended, else None."""
        try:
            while self._pipe.poll():
                kind, row = self._pipe.recv()
                if kind == "done":
                    return self.rows, None
                self.rows.append(row)
        except (EOFError, ConnectionResetError):
            self._process.join()
            return self.rows, self._failed(f"crash (exit code {self._process.exitcode})")
        if self.remaining() == 0.0:
            return self.rows, self._failed("timeout")
        return None

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None

    def _failed(self, kind: str) -> Failure:
        seconds = time.monotonic() - self._since
        self.stop()
        return Failure(kind, seconds)

    def _spawn(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_child, args=(theirs, *self._arguments), daemon=True)
        self._process.start()
        theirs.close()
        try:
            if not self._pipe.poll(SETUP_LIMIT):
                raise TimeoutError
            self._pipe.recv()
        except (EOFError, TimeoutError) as error:
            self.stop()
            raise RuntimeError(f"the worker for {self._arguments[1]} did not start") from error


def run(
    setup: str,
    work: str,
    config: dict,
    jobs: Iterable,
    *,
    limit: float,
    processes: int = 1,
) -> Iterator[tuple[Any, list, Failure | None]]:
    """(job, rows, failure) for every job, in the order in which they end."""
    queue = iter(jobs)
    workers = [Worker(setup, work, config, limit) for _ in range(processes)]
    busy: list[Worker] = []

    def feed(worker: Worker) -> None:
        for job in queue:
            worker.start(job)
            busy.append(worker)
            return

    try:
        for worker in workers:
            feed(worker)
        while busy:
            pipes = [worker.pipe for worker in busy]
            multiprocessing.connection.wait(pipes, min(worker.remaining() for worker in busy))
            for worker in list(busy):
                ended = worker.poll()
                if ended is not None:
                    busy.remove(worker)
                    yield worker.job, *ended
                    feed(worker)
    finally:
        for worker in workers:
            worker.stop()
