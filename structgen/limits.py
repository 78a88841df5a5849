"""Limits on the work and memory of one call, which bound the cost of a stranger's request for others.

Enters: numbers. Leaves: ``Limits`` for a ``Compiler``. Cost: none. Work is counted in units and not in
seconds, so a schema that exceeds a limit on one machine exceeds it on all. The core charges units in every
loop whose length depends on a user's text (``csrc/base/work.h``). A unit is about 0.1 microseconds on a
usual core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ._checks import one_of, whole

OnLimit = Literal["error", "subset"]
_ENDLESS = 1 << 60  # The core reads this number as "no limit".


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one compiler, and of the matchers of its grammars.

    Args:
        compile: units of work of one compile; None for no limit. The default is about one second.
        mask: units of work of one mask, and of every other call of a matcher (accepting a token, budgets,
            completions, forced text, captures); None for no limit. A call that reads a text may take 200
            more units for each of its bytes. A search for an end, and a mask within ``max_tokens`` that
            needs one, may take fifty times as much (docs/limits.md). The default is about one second.
            Servers want less.
        memory: bytes of automata, states and masks that a compiler keeps; ``Compiler(cache_bytes=...)`` is
            the same. Beyond the limit, the entries that were used longest ago go. If one grammar needs more
            than eight times as much and 64 MB, a text ends in ``BudgetExceeded`` and a compile in
            ``SchemaTooComplex``, whatever ``on_limit`` says. A grammar that needs more than twice as much and
            16 MB is compiled again at the next request for it.

    Raises:
        ValueError: a limit is not positive. TypeError: a limit is no integer.
    """

    compile: int | None = 10_000_000
    mask: int | None = 10_000_000
    memory: int = 256 << 20

    def __post_init__(self) -> None:
        for name in ("compile", "mask", "memory"):
            value = getattr(self, name)
            if value is not None or name == "memory":
                whole(f"Limits({name}=...)", value, 1)

    def _units(self) -> tuple[int, int]:
        """Returns the units of a compile and of a mask, in the core's form."""
        return (
            _ENDLESS if self.compile is None else min(self.compile, _ENDLESS),
            _ENDLESS if self.mask is None else min(self.mask, _ENDLESS),
        )


# The limits of servers. A mask takes at most about 20 ms. With on_limit="subset" a mask leaves out the rest.
SERVING = Limits(mask=200_000)


def is_subset(on_limit: Any) -> bool:
    """Returns whether the value is "subset". ValueError: it is no ``OnLimit``."""
    one_of("on_limit", on_limit, ("error", "subset"))
    return bool(on_limit == "subset")
