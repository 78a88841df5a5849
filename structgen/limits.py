"""Limits on what one call may take, so that a stranger's request costs the others no more than that.

Enters: numbers. Leaves: ``Limits`` for a ``Compiler``. Cost: none. Work is counted in units that the core
charges in every loop whose length a user's text decides (``csrc/base/work.h``), not in seconds: a limit that
a schema meets on one machine it meets on all. A unit is about 0.1 microseconds on a usual core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ._checks import one_of, whole

OnLimit = Literal["error", "subset"]
_ENDLESS = 1 << 60  # what the core takes for "no limit"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one compiler, and of the matchers of its grammars.

    Args:
        compile: units of work of one compile; None for no limit. The default is about one second.
        mask: units of work of one mask, and of every other call of a matcher (accepting a token, budgets,
            completions, forced text, captures); None for no limit. Reading a long text may take more: 200
            units for each of its bytes come on top. The default is about one second. Servers want less.
        memory: bytes of automata, states and masks that a compiler keeps; ``Compiler(cache_bytes=...)`` is
            the same. Beyond the limit, entries go that were used longest ago. A text that needs more than
            eight times as much and 64 MB for its own grammar ends in ``BudgetExceeded``, a compile in
            ``SchemaTooComplex``, whatever ``on_limit`` says; a grammar that needs more than twice as much and
            16 MB is compiled anew when it is asked for the next time.

    Raises:
        ValueError: a limit that is not positive. TypeError: one that is no whole number.
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
        """Of a compile and of a mask, as the core takes them."""
        return (
            _ENDLESS if self.compile is None else min(self.compile, _ENDLESS),
            _ENDLESS if self.mask is None else min(self.mask, _ENDLESS),
        )


# For servers: a mask takes about 20 ms at most, and what is too much is left out of it (on_limit="subset").
SERVING = Limits(mask=200_000)


def is_subset(on_limit: Any) -> bool:
    """Raises ValueError where it is no ``OnLimit``."""
    one_of("on_limit", on_limit, ("error", "subset"))
    return bool(on_limit == "subset")
