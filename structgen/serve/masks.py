"""Masks of the answers of a step, filled while the model's forward runs.

Enters: answers that need a mask. Leaves: `Answer.filled`, or `Answer.error`. Cost: the masks', in other
threads; a copy for those that are known.

No mask is made in the engine's thread, which all answers wait for: that an answer's masks were quick says
nothing of its next one. They go one of two ways:

- Those of a request whose masks were all quick: threads take them in order, and the engine waits for them a
  moment.
- Those of a request of which a mask was slow: they get half of the processors at most, the request first
  that had the least. The engine does not wait for them: such an answer joins the step after its mask.

So a slow grammar takes processors from those that are slow as well, and from others once, with its first slow
mask. Each grammar has a compiler of its own (`Service.compiled`), because grammars of one compiler wait for
each other's masks.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from ..matcher import cpu_count
from .sequence import Answer

__all__ = ["MaskThreads"]

_QUICK_THREADS = 8  # those that hang in a first slow mask included
_SLOW = 0.003  # seconds of a mask
_SHARE = 16  # masks that are worth a thread of their own


class _Line:
    """Threads that fill masks, and the answers that wait for them. Daemons: a mask that hangs does not hold
    up the end of the process."""

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
        """Answers to be filled, of which `share` are worth a thread."""
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
        """The next one; under the lock."""
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
    """The answer first whose request had the least so far."""

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
        """Start on the masks of these answers; those that have one now, or very soon."""
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
        """Until the masks of these answers are there, at most so long."""
        until = time.monotonic() + seconds
        with self._changed:
            while not all(answer.filled for answer in answers):
                left = until - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    return

    def wait_for_any(self, seconds: float) -> None:
        """Until there is a mask that was not there at the last `begin`, at most so long."""
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
