"""The result of a sampler: finished walks, their weights, and a record of the run.

Enters: walks. Leaves: `Outcome`, from which `results.py` makes the user's `Samples`. Cost: none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .logspace import NEVER
from .walk import Walk

_BRACKETS = 4096
STOPPED_BY_TEXTS = (
    "approximate: until_tv ends a run by its bracket, so how many texts there are depends on them"
)


@dataclass(frozen=True, slots=True)
class Found:
    """A text and its log-probability under the model; `score` is its rank, `met` the goals that it meets."""

    text: str
    tokens: list[int]
    logprob: float
    score: float
    met: tuple[bool, ...] = ()


class Purpose:
    """Numbers for the uses of randomness, because each use has random streams of its own."""

    DRAW, RESAMPLE, PROPOSE, PILOT, REJUVENATE, LOOKAHEAD, FINAL, SEARCH = range(8)


@dataclass(slots=True)
class Outcome:
    """Finished walks and their log weights; `law` names their distribution.

    law: "exact": n independent draws from the target. "weighted": properly weighted for the target.
        "approximate": more draws come closer to the target. "local": token by token; the weights are still
        proper. "search": no distribution.
    log_uppers: for each walk a log U with Q(s) >= P(s) / U, where Q is the law of the walk given the earlier
        walks; -inf: Q is the target; empty: Q has no such bound (populations, chains).
    """

    walks: list[Walk] = field(default_factory=list)
    log_weights: list[float] = field(default_factory=list)
    log_uppers: list[float] = field(default_factory=list)
    law: str = "weighted"
    log_evidence: float = NEVER
    draws: int = 0
    accepted: int = 0
    stopped: str = ""
    ess: list[float] = field(default_factory=list)
    resampled: list[int] = field(default_factory=list)
    unique: list[int] = field(default_factory=list)
    brackets: list[tuple[int, float, float]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _stride: int = 1

    def weigh(self, log_evidence: float) -> None:
        """Gives each walk its own weight and bound, and the run its evidence."""
        self.accepted = len(self.walks)
        self.log_weights = [walk.log_weight for walk in self.walks]
        self.log_uppers = [walk.theta for walk in self.walks]
        self.log_evidence = log_evidence

    def note_bracket(self, at: int, bracket: tuple[float, float]) -> None:
        """Records log bounds on Z after `at` draws. A long run keeps every second, fourth, ... record."""
        if at % self._stride:
            return
        self.brackets.append((at, *bracket))
        if len(self.brackets) > _BRACKETS:
            self._stride *= 2
            self.brackets = [entry for entry in self.brackets if entry[0] % self._stride == 0]
