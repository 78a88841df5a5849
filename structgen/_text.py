"""Turns the bytes of tokens into text that may be shown, and looks for stop strings.

Enters: the bytes of one token after another. Leaves: text, and whether a stop string ended it.
Cost: linear in the bytes times the number of stop strings.

Text that may become a stop string is held back, and so are the first bytes of an incomplete character. So
text that was handed out is never taken back, wherever the borders of tokens lie. Thoughts in front of an
answer are kept apart: only the answer is searched for stop strings.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .reasoning import Reasoning


class TextStream:
    """The text of one answer as it grows.

    Args:
        stops: stop strings, none of them empty. The text ends in front of the stop string that is complete
            first. If several are complete at one place, the longest counts.
        keep: whether the text contains the stop string that ended it.
        reasoning: how thoughts stand in front of the answer; None if there are no thoughts.

    Attributes:
        thoughts: the text of thoughts that the last call of `feed` or `finish` made certain.
    """

    __slots__ = (
        "_decoder", "_held", "_keep", "_longest", "_splitter", "_stops", "_thoughts", "stopped_by",
        "thoughts",
    )  # fmt: skip

    def __init__(
        self, stops: Sequence[str] = (), keep: bool = False, reasoning: Reasoning | None = None
    ) -> None:
        self._stops = [(stop.encode("utf-8", "surrogatepass"), stop) for stop in stops]
        self._longest = max((len(data) for data, _ in self._stops), default=0)
        self._keep = keep
        self._held = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.stopped_by: str | None = None
        self._thoughts = codecs.getincrementaldecoder("utf-8")("replace")
        self._splitter = None if reasoning is None else reasoning.splitter()
        self.thoughts: str = ""

    @property
    def stops(self) -> tuple[str, ...]:
        return tuple(stop for _, stop in self._stops)

    @property
    def answering(self) -> bool:
        """Whether the answer has begun. It is always True for texts without thoughts."""
        return self._splitter is None or self._splitter.answering

    @property
    def thought(self) -> bool:
        """Whether thoughts began."""
        return self._splitter is not None and self._splitter.thought

    def fresh(self) -> TextStream:
        """Returns an empty text of the same kind."""
        reasoning = None if self._splitter is None else self._splitter.reasoning
        return TextStream(self.stops, self._keep, reasoning)

    def feed(self, data: bytes) -> str:
        """Adds bytes, and returns the text that is now certain. `stopped_by` says whether the text ended."""
        if self._splitter is not None:
            thoughts, data = self._splitter.feed(data)
            self.thoughts = self._thoughts.decode(thoughts)
        return self._answer(data)

    def _answer(self, data: bytes) -> str:
        if not self._stops:
            return self._decoder.decode(data)
        held = self._held + data
        found = self._first(held)
        if found is not None:
            start, end, self.stopped_by = found
            self._held = b""
            return self._decoder.decode(held[: end if self._keep else start], True)
        cut = len(held) - self._beginning(held)
        self._held = held[cut:]
        return self._decoder.decode(held[:cut])

    def finish(self) -> str:
        """Ends the text, and returns what was held back. An incomplete character becomes U+FFFD."""
        added, self.thoughts = "", ""
        if self._splitter is not None:
            thoughts, data = self._splitter.finish()
            self.thoughts, added = self._thoughts.decode(thoughts, True), self._answer(data)
        held, self._held = self._held, b""
        return added + self._decoder.decode(held, True)

    def _first(self, held: bytes) -> tuple[int, int, str] | None:
        best: tuple[int, int, str] | None = None
        for data, stop in self._stops:
            start = held.find(data)
            if start >= 0 and (best is None or (start + len(data), start) < (best[1], best[0])):
                best = (start, start + len(data), stop)
        return best

    def _beginning(self, held: bytes) -> int:
        """Returns the length of the longest suffix of the text that is a beginning of a stop string."""
        for length in range(min(len(held), self._longest - 1), 0, -1):
            tail = held[-length:]
            if any(len(data) > length and data.startswith(tail) for data, _ in self._stops):
                return length
        return 0
