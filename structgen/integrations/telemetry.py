"""Counters and log lines about constraints, for the operator of a serving engine.

Enters: every compile and every mask of a host, with its time. Leaves: `Telemetry.counters`, a line of the log
each minute at INFO while there is work, a WARNING for each event that may hurt a request, and the counters as
Prometheus' metrics. Cost: less than a microsecond for each mask, and two more if another process shows the
counters. Thread-safe.

**Prometheus.** If the host has imported prometheus-client, its default registry reads the counters when it
shows them. If `PROMETHEUS_MULTIPROC_DIR` is set, one process shows the metrics of others, and the counters
are metrics of prometheus-client. SGLang sets this variable; vLLM sets it if it runs several API servers. With
one API server, vLLM shows only this server's process. That process calls `gather`: each engine then writes
its counters to a file, and the API server's registry sums the files of its engines.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..linting import not_enforced

if TYPE_CHECKING:
    from ..grammar import CompiledGrammar

_EVERY = 60.0  # seconds between two lines of the log
_SLOW_MASK = 0.05  # seconds; about the time of a forward pass of a large model
_WARNINGS = 100  # the most warnings of one kind
_INEXACT = (
    "a mask may lack tokens that the grammar allows, because few tokens of max_tokens are left or limits are "
    "too small; this is said once, and counted for every mask"
)
_MOST = "_most"  # the end of the names of counters that keep the largest amount in place of the sum
_FOLDER = "STRUCTGEN_COUNTERS_DIR"  # `gather` sets it, and the processes of the engines inherit it
_WHAT = "See structgen.integrations.telemetry.Counters."


@dataclass(slots=True)
class Counters:
    """The counters since the engine began. Times are in seconds; each kind has a sum and a largest time.

    Attributes:
        compiles, remembered: constraints compiled, and those of them that the cache had.
        refused: constraints that do not compile.
        not_enforced: constraints compiled that have a keyword which constrains nothing.
        masks, inexact: masks made, and those of them that may lack tokens (`Matcher.mask_exact`).
        failed: requests that ended because a mask could not be made or a token could not be read.
        cache_bytes: memory of automata, states and masks.
    """

    compiles: int = 0
    remembered: int = 0
    refused: int = 0
    not_enforced: int = 0
    compile_seconds: float = 0.0
    compile_seconds_most: float = 0.0
    masks: int = 0
    inexact: int = 0
    mask_seconds: float = 0.0
    mask_seconds_most: float = 0.0
    failed: int = 0
    cache_bytes: int = 0


class Telemetry:
    """Counts for one engine.

    Args:
        log: the name of a logger that the host prints, such as "vllm.structgen".
        cache_bytes: a function that returns the memory of the compiler's caches, in bytes.
    """

    def __init__(self, log: str, cache_bytes: Callable[[], int]) -> None:
        self._log = logging.getLogger(log)
        self._cache_bytes = cache_bytes
        self._counters = Counters()
        self._lock = threading.Lock()
        self._seen: weakref.WeakSet[CompiledGrammar] = weakref.WeakSet()
        self._warned: dict[str, int] = {}
        self._last = time.monotonic()
        together = "PROMETHEUS_MULTIPROC_DIR" in os.environ
        folder = None if together else os.environ.get(_FOLDER)
        self._file: Any = _file(folder) if folder else None
        self._metrics: dict[str, Any] = _metrics() if together else {}
        self._elsewhere: bool = together or self._file is not None
        if not self._elsewhere and "prometheus_client" in sys.modules:
            _counted_here().append(self._counters)
            weakref.finalize(self, setattr, self._counters, "cache_bytes", 0)

    @property
    def counters(self) -> dict[str, float]:
        """A copy of the counters, by name; see `Counters`."""
        with self._lock:
            found = asdict(self._counters)
        return {**found, "cache_bytes": self._cache_bytes()}

    def is_new(self, grammar: CompiledGrammar) -> bool:
        """Returns whether this method is called with a grammar for the first time."""
        with self._lock:
            known = grammar in self._seen
            self._seen.add(grammar)
        return not known

    def compiled(self, grammar: CompiledGrammar, seconds: float, *, known: bool) -> None:
        """Counts a constraint that was compiled or found in the cache, with its first masks."""
        words = [] if known else not_enforced(grammar.report, unknown=True)
        self._add(
            compiles=1,
            remembered=known,
            not_enforced=bool(words),
            compile_seconds=seconds,
            compile_seconds_most=seconds,
        )
        with self._lock:
            self._counters.cache_bytes = self._cache_bytes()
            self._show(cache_bytes=self._counters.cache_bytes)
        if words:
            self._warn("not enforced", f"a constraint has keywords that are not enforced: {'; '.join(words)}")
        self._tell()

    def refused(self, error: Exception) -> None:
        """Counts a constraint that did not compile."""
        self._add(refused=1)
        self._log.info("structgen: a constraint was refused: %s", error)

    def filled(self, count: int, seconds: float, inexact: int) -> None:
        """Counts the masks of one call."""
        c = self._counters
        with self._lock:  # This does the work of `_add`, which takes longer.
            c.masks += count
            c.inexact += inexact
            c.mask_seconds += seconds
            if seconds > c.mask_seconds_most:
                c.mask_seconds_most = seconds
            if self._elsewhere:
                self._show(masks=count, inexact=inexact, mask_seconds=seconds, mask_seconds_most=seconds)
        if inexact:
            self._warn("inexact", _INEXACT, most=1)
        if seconds > _SLOW_MASK:
            self._warn("slow", f"{count} masks took {1000 * seconds:.0f} ms in one step")
        self._tell()

    def failed(self, error: Exception) -> None:
        """Counts a request that failed before its text ended."""
        self._add(failed=1)
        self._warn("failed", f"a request ends early: {type(error).__name__}: {error}")

    def _add(self, **amounts: float) -> None:
        """Adds to counters, and raises those of the largest time."""
        with self._lock:
            for name, amount in amounts.items():
                old = getattr(self._counters, name)
                setattr(self._counters, name, max(old, amount) if name.endswith(_MOST) else old + amount)
            self._show(**amounts)

    def _show(self, **amounts: float) -> None:
        """Hands added amounts to a process that shows the counters. The caller has the lock."""
        for name, amount in amounts.items() if self._elsewhere else ():
            new = getattr(self._counters, name)
            if self._file is not None:
                self._file[name] = new
            elif metric := self._metrics.get(name):
                metric.set(new) if _is_gauge(name) else metric.inc(amount)

    def line(self) -> str:
        """Returns the counters in a line."""
        c = Counters(**self.counters)  # type: ignore[arg-type]
        return (
            f"structgen: {c.compiles} constraints ({c.remembered} remembered, {c.refused} refused, "
            f"{c.not_enforced} not enforced whole), {_mean(c.compile_seconds, c.compiles)} ms each, most "
            f"{1000 * c.compile_seconds_most:.1f}; {c.masks} masks ({c.inexact} inexact), "
            f"{_mean(c.mask_seconds, c.masks)} ms each, most {1000 * c.mask_seconds_most:.1f} a step; "
            f"{c.failed} requests failed; {c.cache_bytes / 1e6:.0f} MB of cache"
        )

    def _tell(self) -> None:
        now = time.monotonic()
        if now - self._last < _EVERY:
            return
        with self._lock:
            if now - self._last < _EVERY:
                return
            self._last = now
        self._log.info("%s", self.line())

    def _warn(self, kind: str, text: str, most: int = _WARNINGS) -> None:
        with self._lock:
            count = self._warned[kind] = self._warned.get(kind, 0) + 1
        if count <= most:
            self._log.warning("structgen: %s", text)


@functools.cache
def _metrics() -> dict[str, Any]:
    """This process's metrics, one for each of `Counters`; empty where prometheus-client is not installed."""
    try:
        from prometheus_client import Counter, Gauge
    except ImportError:
        return {}
    found: dict[str, Any] = {}
    for field in fields(Counters):
        name = f"structgen_{field.name}"
        if _is_gauge(field.name):
            mode = "livemax" if field.name.endswith(_MOST) else "livesum"
            found[field.name] = Gauge(name, _WHAT, multiprocess_mode=mode)
        else:
            found[field.name] = Counter(name, _WHAT)
    return found


def _is_gauge(name: str) -> bool:
    return name.endswith(_MOST) or name == "cache_bytes"


@functools.cache
def _counted_here() -> list[Counters]:
    """Returns the counters that this process shows in its Prometheus metrics, those of former engines
    included."""
    from prometheus_client import REGISTRY

    found: list[Counters] = []
    REGISTRY.register(_Shown(lambda: [np.array([astuple(c) for c in found], np.float64)]))
    return found


def gather() -> None:
    """Shows the counters of the engines that this process is going to start in its own Prometheus metrics.

    A host whose engines are other processes calls it before it starts them. It does nothing if
    `PROMETHEUS_MULTIPROC_DIR` is set, if prometheus-client is not installed, or if this process counts
    already.
    """
    here = _metrics.cache_info().currsize or _counted_here.cache_info().currsize
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ or _FOLDER in os.environ or here:
        return
    try:
        from prometheus_client import REGISTRY
    except ImportError:
        return
    folder = tempfile.TemporaryDirectory(prefix="structgen-")  # This process removes the folder at its end.
    os.environ[_FOLDER] = folder.name
    REGISTRY.register(_Shown(lambda: [np.fromfile(path) for path in Path(folder.name).iterdir()]))


_ROW = np.dtype([(field.name, np.float64) for field in fields(Counters)])  # one row of a file of `gather`


def _file(folder: str) -> Any:
    """Returns a new file of counters, which are zero; None if the process of `gather` has ended and its
    folder is gone."""
    try:
        handle, path = tempfile.mkstemp(dir=folder)
        os.close(handle)
        return np.memmap(path, _ROW, "w+", shape=(1,))[0]
    except OSError:
        return None


class _Shown:
    """A collector of prometheus-client. It sums the counters of all engines, each a row of numbers."""

    def __init__(self, rows: Callable[[], list[npt.NDArray[np.float64]]]) -> None:
        self._rows = rows

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        names = [field.name for field in fields(Counters)]
        if not (found := self._rows()):
            return
        rows = np.concatenate([row.reshape(-1, len(names)) for row in found])
        for name, column in zip(names, rows.T, strict=True) if len(rows) else ():
            if _is_gauge(name):
                value = column.max() if name.endswith(_MOST) else column.sum()
                yield GaugeMetricFamily(f"structgen_{name}", _WHAT, float(value))
            else:
                yield CounterMetricFamily(f"structgen_{name}", _WHAT, float(column.sum()))


def _mean(seconds: float, count: int) -> str:
    return f"{1000 * seconds / max(count, 1):.2f}"
