"""What an operator of a serving engine should see of its constraints: counters and lines of a log.

Enters: every compile and every mask of a host, with its time. Leaves: `Telemetry.counters`, a line a minute
at INFO while there is work, and a WARNING for what a request may suffer from. Cost: a lock and two looks at
the clock a mask, under a microsecond. Safe from several threads.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ..linting import not_enforced

if TYPE_CHECKING:
    from ..grammar import CompiledGrammar

__all__ = ["Counters", "Telemetry"]

_EVERY = 60.0  # seconds between two lines of the log
_SLOW_MASK = 0.05  # seconds; a forward of a large model takes about as long
_WARNINGS = 100  # of one kind; whoever has so many knows


@dataclass(slots=True)
class Counters:
    """Since the engine began. Times are in seconds, the largest of each kind beside the sum.

    Attributes:
        compiles, remembered: constraints compiled, and those of them that the cache had.
        refused: constraints that do not compile.
        not_enforced: constraints compiled that have a keyword which constrains nothing.
        masks, inexact: masks made, and those that leave out what is too much to tell (`Matcher.mask_exact`).
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
        cache_bytes: tells the memory of the compiler's caches.
    """

    def __init__(self, log: str, cache_bytes: Callable[[], int]) -> None:
        self._log = logging.getLogger(log)
        self._cache_bytes = cache_bytes
        self._counters = Counters()
        self._lock = threading.Lock()
        self._seen: weakref.WeakSet[CompiledGrammar] = weakref.WeakSet()
        self._warned: dict[str, int] = {}
        self._last = time.monotonic()

    @property
    def counters(self) -> dict[str, float]:
        """A copy of the counters, by name; see `Counters`."""
        with self._lock:
            found = asdict(self._counters)
        return {**found, "cache_bytes": self._cache_bytes()}

    def is_new(self, grammar: CompiledGrammar) -> bool:
        """Whether this is asked of a grammar for the first time."""
        with self._lock:
            known = grammar in self._seen
            self._seen.add(grammar)
        return not known

    def compiled(self, grammar: CompiledGrammar, seconds: float, *, known: bool) -> None:
        """A constraint was compiled, or the cache had it, and its first masks were made."""
        words = [] if known else not_enforced(grammar.report, unknown=True)
        with self._lock:
            c = self._counters
            c.compiles += 1
            c.remembered += known
            c.not_enforced += bool(words)
            c.compile_seconds += seconds
            c.compile_seconds_most = max(c.compile_seconds_most, seconds)
        if words:
            self._warn("not enforced", f"a constraint has keywords that are not enforced: {'; '.join(words)}")
        self._tell()

    def refused(self, error: Exception) -> None:
        """A constraint did not compile; its client is told why."""
        with self._lock:
            self._counters.refused += 1
        self._log.info("structgen: a constraint was refused: %s", error)

    def filled(self, count: int, seconds: float, inexact: int) -> None:
        """Masks were made in one call."""
        with self._lock:
            c = self._counters
            c.masks += count
            c.inexact += inexact
            c.mask_seconds += seconds
            c.mask_seconds_most = max(c.mask_seconds_most, seconds)
        if inexact:
            self._warn("inexact", "a mask leaves out tokens that the grammar allows: limits are too small")
        if seconds > _SLOW_MASK:
            self._warn("slow", f"{count} masks took {1000 * seconds:.0f} ms in one step")
        self._tell()

    def failed(self, error: Exception) -> None:
        """A request ended before its text did."""
        with self._lock:
            self._counters.failed += 1
        self._warn("failed", f"a request ends early: {type(error).__name__}: {error}")

    def line(self) -> str:
        """The counters in a line."""
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
        with self._lock:
            if now - self._last < _EVERY:
                return
            self._last = now
        self._log.info("%s", self.line())

    def _warn(self, kind: str, text: str) -> None:
        with self._lock:
            count = self._warned[kind] = self._warned.get(kind, 0) + 1
        if count <= _WARNINGS:
            self._log.warning("structgen: %s", text)


def _mean(seconds: float, count: int) -> str:
    return f"{1000 * seconds / max(count, 1):.2f}"
