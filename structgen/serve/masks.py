"""Masks of the answers of a step, filled while the model's forward runs.

Enters: answers that need a mask. Leaves: `Answer.filled`, or `Answer.error`. Cost: the masks', in other
threads.

Beside a forward of some milliseconds, a thread that is woken costs more than the mask. So an answer whose
masks have all been quick is filled at once, by the engine's thread, while forwards are short too.

A mask that takes long holds up its own answer and no other (but once, where quick ones came before): the
engine waits for the step's masks a short time, goes on without the rest, and meets them again when they are
done. Threads take answers from one deque, so that the others of a step go on beside a slow one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from .sequence import Answer

__all__ = ["Masks"]

_THREADS = 8  # those that hang in slow masks included
_SHARE = 16  # masks that are worth a thread of their own
_QUICK = 0.0005  # seconds of a mask, and
_SHORT = 0.02  # of a forward, that make a thread dearer than what it saves


class _Batch:
    """The masks of one step."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.waiting = deque(answers)
        self.left = len(answers)
        self.done = threading.Event()
        self._lock = threading.Lock()

    def work(self) -> None:
        count = 0
        while True:
            try:
                answer = self.waiting.popleft()
            except IndexError:
                break
            answer.fill()
            count += 1
        with self._lock:
            self.left -= count
            if not self.left:
                self.done.set()


class Masks:
    """A pool of threads that fill masks."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="structgen-mask")
        self._batches: list[_Batch] = []

    def begin(self, answers: Sequence[Answer], forward: float) -> None:
        """Start on the masks of these answers, beside a forward that takes about so many seconds."""
        if forward < _SHORT:
            for answer in answers:
                if answer.slowest < _QUICK:
                    answer.fill()
            answers = [answer for answer in answers if not answer.filled]
        if not answers:
            return
        now = time.monotonic()
        for answer in answers:
            answer.filling = now
        batch = _Batch(answers)
        self._batches.append(batch)
        for _ in range(1 + (len(answers) > _SHARE)):
            self._pool.submit(batch.work)

    def wait(self, seconds: float) -> None:
        """Until the masks that were begun are there, at most so long."""
        until = time.monotonic() + seconds
        for batch in self._batches:
            if not batch.done.wait(max(0.0, until - time.monotonic())) and batch.waiting:
                self._pool.submit(batch.work)  # past the answer that is slow
        self._batches = [batch for batch in self._batches if not batch.done.is_set()]

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
