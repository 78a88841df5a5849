"""Fills the masks of the answers of a step while the model's forward runs.

Enters: answers that need a mask. Leaves: `Answer.filled`, or `Answer.error`. Cost: the masks are computed in
other threads; a known mask costs a copy.

No mask is computed in the engine's thread, because all answers wait for that thread, and any mask may be
slow. Requests are treated by the speed of their masks so far:

- If all masks of a request were quick, threads take its masks in order, and the engine waits for them a
  moment.
- If a mask of a request was slow, its masks share at most half of the processors with those of other slow
  requests; the request with the least time so far comes first. The engine does not wait for them: the answer
  joins the step after its mask is made.

So a grammar with slow masks takes processors from other such grammars; it takes processors from grammars with
quick masks only for its first slow mask. Each grammar has a compiler of its own (`Service.compiled`), because
grammars of one compiler wait for each other's masks.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from ..matcher import cpu_count
from .sequence import Answer

_QUICK_THREADS = 8  # the threads for quick masks; a request's first slow mask also runs in them
_SLOW = 0.003  # seconds; a longer mask is slow
_SHARE = 16  # masks that wait for one thread; more of them start another


class _Line:
    """Threads that fill masks, and the answers that wait for the threads. The threads are daemons, so a mask
    that hangs does not delay the end of the process."""

    def __init__(self, name: str, threads: int, filled: Callable[[], None]) -> None:
        self._name = name
        self._most = threads
        self._filled = filled
        self._waiting: deque[Answer] = deque()
        self._changed = threading.Condition()
        self._threads = 0
        self._idle = 0
        self._closed = False

    def put(self, answers: Sequence[Answer], share: int) -> None:
        """Adds answers to be filled. `share` of these answers are worth one thread."""
        if not answers:
            return
        with self._changed:
            self._waiting.extend(answers)
            wanted = -(-len(self._waiting) // share)
            for _ in range(min(wanted - self._idle, self._most - self._threads)):
                self._threads += 1
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
            self._changed.notify(wanted)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def take(self) -> Answer:
        """Returns the next answer to fill. The caller has the lock."""
        return self._waiting.popleft()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    if self._closed:
                        return
                    self._idle += 1
                    self._changed.wait()
                    self._idle -= 1
                answer = self.take()
            if not answer.job.over:
                answer.begun = time.monotonic()
                answer.fill()
            del answer  # an idle thread would hold the grammar of its last one
            self._filled()


class _Fair(_Line):
    """Takes the answer whose request has had the least time."""

    def take(self) -> Answer:
        chosen = min(self._waiting, key=lambda answer: answer.job.request.spent)
        self._waiting.remove(chosen)
        return chosen


class MaskThreads:
    """The threads that fill masks."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = self._seen = 0  # masks that were filled
        self._quick = _Line("structgen-mask", _QUICK_THREADS, self._filled)
        self._slow = _Fair("structgen-slow-mask", max(1, cpu_count() // 2), self._filled)

    def begin(self, answers: Sequence[Answer]) -> list[Answer]:
        """Starts the masks of these answers. Returns the answers whose masks are ready, or probably will be
        within moments."""
        self._seen = self._count
        soon: list[Answer] = []
        quick: list[Answer] = []
        slow: list[Answer] = []
        for answer in answers:
            if answer.fill_known():
                soon.append(answer)
                continue
            answer.filling = True
            (slow if answer.job.request.slowest > _SLOW else quick).append(answer)
        self._quick.put(quick, _SHARE)
        self._slow.put(slow, 1)
        return soon + quick

    def wait(self, answers: Sequence[Answer], seconds: float) -> None:
        """Waits until the masks of these answers are filled, at most `seconds`."""
        until = time.monotonic() + seconds
        with self._changed:
            while not all(answer.filled for answer in answers):
                left = until - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    return

    def wait_for_any(self, seconds: float) -> None:
        """Waits until some mask was filled after the last `begin`, at most `seconds`."""
        with self._changed:
            if self._count == self._seen:
                self._changed.wait(seconds)

    def close(self) -> None:
        self._quick.close()
        self._slow.close()

    def _filled(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()
