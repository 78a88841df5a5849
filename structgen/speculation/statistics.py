"""The statistics of a run of speculative decoding: counts and seconds, by part and by drafter.

Enters: increments. Leaves: numbers to print. Cost: additions.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class DrafterStatistics:
    """The statistics of one drafter: the nodes that it offered, how many of them were accepted, and the
    seconds that it took."""

    drafted: int = 0
    accepted: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Statistics:
    """The statistics of one call. Rows of one batch are counted together.

    Attributes:
        tokens: the tokens that were emitted, end-of-sequence included.
        forwards: the number of forwards of the target. The first one also reads the prompt.
        row_forwards: forwards of the target, each counted as often as rows took part. `tokens / row_forwards`
            is the mean number of accepted tokens per forward, the bonus token included.
        drafted: the nodes that were scored.
        accepted: the nodes that became text.
        pruned: offers that the grammar refused while trees were built.
        masks: the full masks that verification computed.
        checks: membership checks (one token against the matcher), in drafting and verifying.
        idle: the forwards without a draft.
        head_rows: rows of the language-model head computed, where it was restricted.
        skipped: tokens without alternative that were emitted without a forward.
        drafters: the statistics of each drafter, by name.
        seconds: the seconds of each part: "forward", "draft", "verify", "keep", "learn", "other".
    """

    tokens: int = 0
    forwards: int = 0
    row_forwards: int = 0
    drafted: int = 0
    accepted: int = 0
    pruned: int = 0
    masks: int = 0
    checks: int = 0
    idle: int = 0
    head_rows: int = 0
    skipped: int = 0
    drafters: dict[str, DrafterStatistics] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def tokens_per_forward(self) -> float:
        """The mean number of tokens that a forward gives a row. Without speculation it is 1."""
        return self.tokens / self.row_forwards if self.row_forwards else 0.0

    @property
    def acceptance_rate(self) -> float:
        """The share of scored nodes that became text."""
        return self.accepted / self.drafted if self.drafted else 0.0

    def add(self, part: str, seconds: float) -> None:
        self.seconds[part] = self.seconds.get(part, 0.0) + seconds

    def as_dict(self) -> dict[str, Any]:
        """Returns all numbers as JSON values."""
        return {
            **asdict(self),
            "tokens_per_forward": self.tokens_per_forward,
            "acceptance_rate": self.acceptance_rate,
        }
