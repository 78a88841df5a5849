"""One thread for the arithmetic of a small model, for as long as it computes.

Enters: what reads and writes a library's number of threads. Leaves: `one_blas_thread()` for numpy's OpenBLAS;
`OneThread` for another library. Cost: microseconds; finding OpenBLAS takes 1 ms, once.

Matrices of a few hundred rows are too small to share, and a thread that waits on a busy machine waits for
all: with torch's own number seven prompts took 342 s on two busy cores, with one thread 30 s. Another BLAS
than OpenBLAS (Accelerate, MKL) is left as it is.
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
    """A library at one thread inside `with one():`, and at its former number afterwards; calls may overlap.

    Args:
        calls: gives the functions that read and write the number; None where there are none.
        of_caller: the number belongs to the calling thread (torch's does), not to the process (OpenBLAS's). A
            process's number is put back by the last who leaves; until then other threads' products have one
            thread, too.
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
        """Threads that were inside are not in the child."""
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
    """None where numpy has no OpenBLAS of its own."""
    root = Path(np.__file__).parent
    for folder in (root.parent / "numpy.libs", root / ".dylibs", root / ".libs"):
        for file in sorted(folder.glob("*openblas*")) if folder.is_dir() else ():
            try:
                library = ctypes.CDLL(str(file))  # numpy has loaded it: this is the same one
            except OSError:
                continue
            for prefix in ("scipy_openblas", "openblas"):
                for suffix in ("64_", ""):
                    names = [f"{prefix}_{what}_num_threads{suffix}" for what in ("get", "set")]
                    if all(hasattr(library, name) for name in names):
                        return getattr(library, names[0]), getattr(library, names[1])
    return None


one_blas_thread: OneThread = OneThread(_openblas, of_caller=False)
