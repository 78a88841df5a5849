"""Compiles grammars in threads beside the event loop and the engine, a few at once, each under a time limit.

Enters: a function that compiles. Leaves: its result or its error. Cost: that of the function, in a thread of
the pool.

A running compile cannot be interrupted. If a compile exceeds its limit, its request gets an error, and
another thread takes the place of its thread until the compile ends. At most `_LOST` threads are replaced like
this; beyond that, requests are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from .errors import ApiError, busy

T = TypeVar("T")
_LOST = 8
_LONG = 0.05  # seconds after which a task counts as long


class Workers:
    """Daemon threads, because a hung compile must not delay the end of the process.

    Args:
        count: the number of threads. waiting: the most tasks that may wait.
        seconds: the most seconds of a task, waiting included.
        after: called in the thread of a task of more than `_LONG` seconds when it is over.
    """

    def __init__(
        self, count: int, waiting: int, seconds: float, after: Callable[[], None] | None = None
    ) -> None:
        self._after = after
        self._waiting = waiting
        self._count = count
        self._seconds = seconds
        self._tasks: deque[tuple[Future[object], Callable[[], object]]] = deque()
        self._lock = threading.Condition()
        self._threads = 0
        self._idle = 0
        self._lost = 0
        self._closed = False

    async def run(
        self,
        task: Callable[[], T],
        what: str,
        param: str | None = None,
        code: str = "grammar_too_costly",
    ) -> T:
        """Returns the task's result. Raises an ApiError if too many tasks wait, or if the task took too long.
        Errors of the task are raised as they are."""
        future: Future[T] = Future()
        with self._lock:
            if len(self._tasks) >= self._waiting:
                raise busy(f"{self._waiting} requests wait for {what} already (--queue): try again")
            self._tasks.append((future, task))  # type: ignore[arg-type]
            if not self._idle and self._threads < self._count + min(self._lost, _LOST):
                self._threads += 1
                threading.Thread(target=self._work, name="structgen-compile", daemon=True).start()
            self._lock.notify()
        try:
            # The future is shielded: a cancelled future would not tell when its thread is free again.
            waited = asyncio.wrap_future(future)
            waited.add_done_callback(
                lambda done: done.cancelled() or done.exception()
            )  # No other code reads this future's error.
            return await asyncio.wait_for(asyncio.shield(waited), self._seconds)
        except asyncio.CancelledError:  # the client is gone
            with self._lock:
                if future.cancel():  # The task is still waiting.
                    with contextlib.suppress(ValueError):
                        self._tasks.remove((future, task))  # type: ignore[arg-type]
            raise
        except TimeoutError:
            if future.running():
                with self._lock:
                    self._lost += 1  # the count falls again when the task is done
                future.add_done_callback(self._found)
            elif future.cancel():
                raise busy(f"{what} waited more than {self._seconds:g} seconds: try again", 503) from None
            raise ApiError(
                f"{what} took more than {self._seconds:g} seconds; shorten it, or start the server with a "
                "larger --compile-seconds",
                param=param,
                code=code,
            ) from None

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._lock.notify_all()

    def _found(self, future: object) -> None:
        with self._lock:
            self._lost -= 1

    def _work(self) -> None:
        while True:
            with self._lock:
                while not self._tasks:
                    if self._closed or self._threads > self._count + min(self._lost, _LOST):
                        self._threads -= 1
                        return
                    self._idle += 1
                    self._lock.wait()
                    self._idle -= 1
                future, task = self._tasks.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            begin = time.perf_counter()
            try:
                future.set_result(task())
            except BaseException as error:
                future.set_exception(error)
            if self._after is not None and time.perf_counter() - begin > _LONG:
                self._after()
            del future, task  # an idle thread would hold the grammar of its last task
