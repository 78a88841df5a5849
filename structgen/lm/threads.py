"""Limits a library to one thread while a small model computes.

Enters: functions that read and write a library's number of threads. Leaves: `one_blas_thread()` for numpy's
OpenBLAS; `OneThread` for another library. Cost: microseconds; finding OpenBLAS takes 1 ms, once.

Matrices of a few hundred rows are too small for several threads, and on a busy machine each product waits
for its slowest thread. With torch's default number of threads seven prompts took 342 s on two busy cores,
and with one thread 30 s. Other BLAS libraries than OpenBLAS (Accelerate, MKL) keep their number.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

Calls = tuple[Callable[[], int], Callable[[int], object]]


class OneThread:
    """Limits a library to one thread inside `with one():`, and restores the former number. Calls may overlap.

    Args:
        calls: gives the functions that read and write the number; None if the library has none.
        of_caller: True if the number belongs to the calling thread (torch), False if it belongs to the
            process (OpenBLAS). The last block to end restores the number of a process; until then, products
            in other threads have one thread, too.
    """

    def __init__(self, calls: Callable[[], Calls | None], *, of_caller: bool) -> None:
        self._calls = calls
        self._of_caller = of_caller
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 1
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        """Resets the count in a forked child, which lacks the parent's other threads."""
        self._lock = threading.Lock()
        if self._inside and (calls := self._calls()) is not None:
            calls[1](self._before)
        self._inside = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        calls = self._calls()
        if calls is None:
            yield
            return
        read, write = calls
        with self._lock:
            if not self._inside:
                self._before = read()
            self._inside += 1
            write(1)
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._of_caller or not self._inside:
                    write(self._before)


@cache
def _openblas() -> Calls | None:
    """Returns the calls of numpy's own OpenBLAS; None if numpy has none."""
    root = Path(np.__file__).parent
    for folder in (root.parent / "numpy.libs", root / ".dylibs", root / ".libs"):
        for file in sorted(folder.glob("*openblas*")) if folder.is_dir() else ():
            try:
                library = ctypes.CDLL(str(file))  # numpy has loaded this library, so it is the same one.
            except OSError:
                continue
            for prefix in ("scipy_openblas", "openblas"):
                for suffix in ("64_", ""):
                    names = [f"{prefix}_{what}_num_threads{suffix}" for what in ("get", "set")]
                    if all(hasattr(library, name) for name in names):
                        return getattr(library, names[0]), getattr(library, names[1])
    return None


one_blas_thread: OneThread = OneThread(_openblas, of_caller=False)
