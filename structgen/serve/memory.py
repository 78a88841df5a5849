"""Gives the memory of dropped grammars back to the system.

Enters: calls that announce the end of a large grammar. Leaves: nothing. Cost: a thread that wakes at most
once a second and then works for some milliseconds.

A hostile grammar takes tens of megabytes in small pieces. After the grammar is freed, glibc keeps this memory
for the thread that allocated it: a process that had answered sixteen requests still held half a gigabyte.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading
from collections.abc import Callable

LARGE = 4 << 20  # a grammar of so many bytes announces its end
_SECONDS = 1.0  # seconds after which the last references to the grammar are gone


class Memory:
    """The thread that gives memory back. It ends when there is no more work."""

    def __init__(self) -> None:
        self._trim: Callable[[int], object] | None = None
        with contextlib.suppress(OSError, AttributeError):  # another C library has no such function
            self._trim = ctypes.CDLL(None).malloc_trim
        self._lock = threading.Lock()
        self._freed = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def freed(self) -> None:
        """Call this when a large grammar is about to be freed."""
        self._freed.set()
        with self._lock:
            if self._thread is None and self._trim is not None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._work, name="structgen-memory", daemon=True)
                self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._freed.set()

    def _work(self) -> None:
        while True:
            self._freed.wait()
            if self._closed.wait(_SECONDS):
                return
            self._freed.clear()
            # An error and the frames that it passed refer to each other, and these frames refer to the
            # grammar.
            gc.collect()
            if self._trim is not None:
                self._trim(0)
