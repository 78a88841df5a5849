"""Runs jobs in child processes under limits of time and memory. A crash or a hang costs one job, and the run
goes on.

A job function takes (state, job, emit) and may `emit` any number of rows. `setup(config)` makes the state
once for each child. Both are named as "module:function"; `config["log"]` names a file for the child's output.
A child is started anew after a failure. Cost: after each failure a process start and a set-up; ten times a
second a look at the child's memory.
"""

from __future__ import annotations

import importlib
import io
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..errors import StructgenError

SETUP_LIMIT = 600.0
_LOOK = 0.1  # seconds between two looks at a child's memory


def named(path: str) -> Callable[..., Any]:
    """Returns the function called "module:function"."""
    module, _, name = path.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def _child(pipe: Any, setup: str, work: str, config: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and kills its children
    if "log" in config:
        _divert(config["log"])
    try:
        state = named(setup)(config)
    except Exception as error:
        known = isinstance(error, StructgenError)  # the message of such an error says everything
        pipe.send(("failed", str(error) if known else f"{type(error).__name__}: {error}"))
        return
    function = named(work)
    pipe.send(("ready", None))
    while True:
        try:
            job = pipe.recv()
        except EOFError:  # the parent has ended
            return
        function(state, job, lambda row: pipe.send(("row", row)))
        pipe.send(("done", None))


def _divert(log: str) -> None:
    """Sends the output of engines to a file, at the level of file descriptors, because some engines print
    from C++."""
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError:  # on another machine the file may not be writable
        file = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(file, descriptor)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)  # if a child is killed, its last lines are needed


@dataclass(frozen=True, slots=True)
class Failure:
    """A job that ended without an answer: "timeout", "memory" or "crash (signal 11)"."""

    kind: str
    seconds: float


class WorkerError(RuntimeError):
    """The set-up failed. The text of the exception has the reason."""


def resident(pid: int) -> int:
    """Returns the bytes of memory that a process holds; 0 if the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


class Worker:
    """One child process. `limit` is in seconds for each job; `memory` is in bytes above the child's memory
    after its set-up."""

    def __init__(
        self, setup: str, work: str, config: dict[str, Any], limit: float, memory: int | None = None
    ) -> None:
        self._arguments = (setup, work, config)
        self._limit = limit
        self._memory = memory
        self._process: Any = None
        self._pipe: Any = None
        self._base = 0

    @property
    def pid(self) -> int | None:
        """The id of the child process; None if there is no child."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Starts the child and makes it ready for jobs. WorkerError: its set-up failed."""
        if self._process is None:
            self._spawn()

    def call(self, job: object) -> tuple[list[Any], Failure | None]:
        """Runs a job. Returns its rows, and its failure, if it failed."""
        self.start()
        rows: list[Any] = []
        since = time.monotonic()
        try:
            self._pipe.send(job)
            while True:
                left = since + self._limit - time.monotonic()
                if left <= 0:
                    return rows, self._failed("timeout", since)
                if self._pipe.poll(min(left, _LOOK)):
                    kind, row = self._pipe.recv()
                    if kind == "done":
                        return rows, None
                    rows.append(row)
                elif self._memory is not None and resident(self.pid or 0) > self._base + self._memory:
                    return rows, self._failed("memory", since)
        except (EOFError, OSError):
            process = self._process
            if process is None:  # another thread stopped the child
                return rows, Failure("stopped", time.monotonic() - since)
            process.join()
            code = process.exitcode
            how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
            return rows, self._failed(f"crash ({how})", since)

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.join()
            self._pipe.close()

    def _failed(self, kind: str, since: float) -> Failure:
        self.stop()
        return Failure(kind, time.monotonic() - since)

    def _spawn(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_child, args=(theirs, *self._arguments), daemon=True)
        self._process.start()
        theirs.close()
        problem: str | None = None
        try:
            if not self._pipe.poll(SETUP_LIMIT):
                problem = f"no answer within {SETUP_LIMIT:.0f} s"
            else:
                kind, text = self._pipe.recv()
                problem = text if kind == "failed" else None
        except (EOFError, ConnectionResetError):
            self._process.join()
            problem = f"it ended with exit code {self._process.exitcode}"
        if problem is not None:
            self.stop()
            raise WorkerError(problem)
        self._base = resident(self._process.pid)


class Lane(Protocol):
    """A lane handles one job after another; several lanes work side by side."""

    def run(self, job: Any) -> Any:
        """Returns the job's result. It may raise, which ends the whole run."""

    def stop(self) -> None:
        """Ends the children."""


def each(make: Callable[[], Lane], jobs: Iterable[Any], lanes: int = 1) -> Iterator[tuple[Any, Any]]:
    """Returns (job, result) for every job, in the order in which they end. Each lane has a thread of its
    own."""
    todo = iter(jobs)
    lock = threading.Lock()
    results: queue.Queue[Any] = queue.Queue()
    stopping = threading.Event()
    made = [make() for _ in range(max(1, lanes))]

    def serve(lane: Lane) -> None:
        try:
            while not stopping.is_set():
                with lock:
                    job = next(todo, None)
                if job is None:
                    break
                results.put((job, lane.run(job)))
            results.put(None)
        except BaseException as error:  # the error goes to the caller, whose thread raises it
            results.put(error)

    threads = [threading.Thread(target=serve, args=(lane,), daemon=True) for lane in made]
    for thread in threads:
        thread.start()
    running = len(threads)
    try:
        while running:
            found = results.get()
            if found is None:
                running -= 1
            elif isinstance(found, BaseException):
                raise found
            else:
                yield found
    finally:
        stopping.set()
        for lane in made:
            lane.stop()


def run(
    setup: str,
    work: str,
    config: dict[str, Any],
    jobs: Iterable[Any],
    *,
    limit: float,
    memory: int | None = None,
    processes: int = 1,
) -> Iterator[tuple[Any, list[Any], Failure | None]]:
    """Returns (job, rows, failure) for every job. It calls `each` with one worker for each lane."""

    class Single:
        def __init__(self) -> None:
            self._worker = Worker(setup, work, config, limit, memory)

        def run(self, job: Any) -> tuple[list[Any], Failure | None]:
            return self._worker.call(job)

        def stop(self) -> None:
            self._worker.stop()

    for job, (rows, failure) in each(Single, jobs, processes):
        yield job, rows, failure
