"""A draft model with another vocabulary as a law over the target's tokens: string-level rejection.

Enters: the text. Leaves: for every token of the target, the probability that the draft model's text begins
with the token, summed over the draft model's ways to write that text. Cost for each node: up to `forwards`
forward passes of the draft model, and a pass over both vocabularies. Cost for each pair of vocabularies:
tables of prefixes.

Timor et al. 2025, *Accelerating LLM inference with lossless speculative decoding algorithms for
heterogeneous vocabularies* (string-level rejection, SLRS). The draft model writes a string of its own
tokens, until no token of the target (of at most `longest` bytes) begins with the string and is longer. The
draft is the longest token of the target with which the string begins. Its probability

    psi(t) = sum of prod q(d_i | d_1 .. d_(i-1)) over the strings d_1 d_2 .. that begin with t

is what the rule compares with the target's p(t), as if psi were the law of a draft model of the target's own
vocabulary. In fact t is drawn from psi itself, under the grammar's mask, so no string is ever written.

The paper counts up to 2^(m - 1) ways for a token of m bytes and calls the method impractical for large
vocabularies. Here the strings are a tree that is expanded best first, and only `forwards` nodes of it. A
string whose node is not expanded is decided as it stands: its draft is the longest token so far. Which nodes
are expanded depends on the past only. So psi is the exact law of a draft of that tree, for any number of
forwards, and the text follows the target's masked law. One forward gives the draft model's next token, cut
to the target's: what `TokenIntersection` has, with the mass of longer tokens on their beginnings.

If the text so far ends inside a token of the draft model, the last bytes belong to the string: psi(t) is the
probability that the string continues with t behind these bytes.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..._checks import whole
from ..base import Vector
from .spelling import Place, SpelledDrafter, Spelling

if TYPE_CHECKING:
    from ...lm.base import Context, LanguageModel
    from ...vocabulary import Vocabulary

_KEPT = 4096  # the most strings whose ranges are kept
_LEAST = 1e-4  # A string with less probability gets no forward.


class StringDraft(SpelledDrafter):
    """Drafts by a language model of another vocabulary, by the text that it would write.

    Args:
        lm: the draft model.
        width: the number of children offered at each node.
        forwards: the most forwards of the draft model for one distribution.
        longest: the most bytes of a drafted token of the target.
        name: the drafter's name in statistics.
    """

    def __init__(
        self,
        lm: LanguageModel,
        *,
        width: int = 2,
        forwards: int = 4,
        longest: int = 16,
        name: str = "string draft",
    ) -> None:
        self.forwards: int = whole("forwards", forwards, 1)
        self.longest: int = whole("longest", longest, 1)
        super().__init__(lm, width, name, lambda target: StringLaw(lm, target, forwards, longest))


class _Ranges:
    """The target's tokens that go on from one string.

    Attributes:
        at: their numbers among the target's texts, shape (n,).
        low, high: draft tokens low .. high - 1, in the order of their bytes, begin with what is left of each.
        above: which of `at` is the longest shorter one that begins each; n where none is.
        base: the number of the longest text that begins the string; -1 for none.
    """

    __slots__ = ("above", "at", "base", "high", "low")

    def __init__(
        self,
        at: npt.NDArray[np.int64],
        low: npt.NDArray[np.int64],
        high: npt.NDArray[np.int64],
        above: npt.NDArray[np.int64],
        base: int,
    ) -> None:
        self.at, self.low, self.high, self.above, self.base = at, low, high, above, base


class StringLaw:
    """Computes psi for one pair of vocabularies, at places of `Spelling`.

    Args:
        lm: the draft model.
        target: the vocabulary of the drafts.
        forwards, longest: see `StringDraft`.
    """

    def __init__(self, lm: LanguageModel, target: Vocabulary, forwards: int, longest: int) -> None:
        self.spelling: Spelling = Spelling(lm, target)
        self._forwards = forwards
        ends = set(target.eos_token_ids)
        known: dict[bytes, int] = {}
        for token, text in enumerate(target.tokens):
            if text and len(text) <= longest and token not in ends:
                known.setdefault(text, token)
        self._end = min(ends, default=None)
        self._texts = sorted(known)
        self._ids = np.array([known[text] for text in self._texts], np.int64)
        self._number = {text: i for i, text in enumerate(self._texts)}
        # The draft model's texts in the order of their bytes, so that those with one beginning are a range.
        last = set(lm.eos_token_ids)
        own = [(text, i) for i, text in enumerate(lm.vocabulary.tokens) if text and i not in last]
        own.sort()
        self._drafts = [text for text, _ in own]
        self._order = np.array([i for _, i in own], np.int64)
        self._last = np.array(sorted(last), np.int64)
        self._ranges: dict[bytes, _Ranges] = {}

    def after(self, place: Place, token: int) -> Place | None:
        return self.spelling.after(place, token)

    def row(self, place: Place) -> Vector | None:
        if not self.spelling.readable(place[0]):
            return None
        psi, end = self.psi(place)
        found: Vector = np.full(self.spelling.target.vocab_size, -np.inf, np.float32)
        with np.errstate(divide="ignore"):
            found[self._ids] = np.log(psi)
            if self._end is not None:
                found[self._end] = np.log(end)
        return found

    def psi(self, place: Place) -> tuple[npt.NDArray[np.float64], float]:
        """Returns the probability of each text of the target (see `texts`), and the probability that the
        draft model ends here.

        Both include the probability of the place's bytes, which the draft model writes first.
        """
        start, rest = place
        psi = np.zeros(len(self._texts))
        end = 0.0
        # (-probability, number, string, context): strings that no token of the target has decided yet.
        heap: list[tuple[float, int, bytes, Context]] = [(-1.0, 0, b"", start)]
        serial = 0
        # The forward pass at the beginning of the place's bytes was mostly made for the earlier place.
        for _ in range(self._forwards + bool(rest)):
            if not heap:
                break
            negative, _, text, context = heapq.heappop(heap)
            p = np.exp(self.spelling.lm.logprobs([context])[0].astype(np.float64))
            if text == rest:
                end += -negative * float(p[self._last].sum())
            p = p[self._order]
            if len(text) < len(rest):
                opened = self._rejoin(psi, rest[len(text) :], -negative, p)
            else:
                behind = text[len(rest) :]
                self._add(psi, -negative, self._ranges_of(behind), p)
                opened = self._open(behind, -negative, p)
            for i, chance in opened:
                serial += 1
                if self.spelling.readable(after := context.extend(int(self._order[i]))):
                    heapq.heappush(heap, (-chance, serial, text + self._drafts[i], after))
        return np.maximum(psi, 0.0), end

    @property
    def texts(self) -> list[bytes]:
        """The target's texts that are drafted, in the order of their bytes."""
        return self._texts

    def _add(
        self, psi: npt.NDArray[np.float64], chance: float, ranges: _Ranges, p: npt.NDArray[np.float64]
    ) -> None:
        """Adds the effect of one more token of the draft model. `chance` is the probability of the string so
        far; p sums to 1."""
        sums = np.concatenate([[0.0], np.cumsum(p)])
        begun = sums[ranges.high] - sums[ranges.low]
        longer = np.bincount(ranges.above, begun, len(begun) + 1)
        psi[ranges.at] += chance * (begun - longer[:-1])
        if ranges.base >= 0:
            # So far the string counted for its longest token. Now only the share that no longer token takes
            # counts for it.
            psi[ranges.base] -= chance * longer[-1]

    def _rejoin(
        self, psi: npt.NDArray[np.float64], need: bytes, chance: float, p: npt.NDArray[np.float64]
    ) -> list[tuple[int, float]]:
        """Reads one more token where the text continues with `need`. Tokens that go beyond the text are
        included. Strings that stay open are returned, as by `_open`, and so are strings that end inside
        `need`.
        """
        found: list[tuple[int, float]] = []
        for length in range(1, len(need)):
            at = bisect_left(self._drafts, need[:length])
            if at < len(self._drafts) and self._drafts[at] == need[:length] and p[at] > 0.0:
                found.append((at, chance * float(p[at])))
        first, stop = _range(self._drafts, need)
        for i in range(first, stop):
            behind, mass = self._drafts[i][len(need) :], chance * float(p[i])
            base = self._base(behind)
            if base >= 0:
                psi[base] += mass
            if mass > 0.0 and (not behind or mass >= _LEAST) and self._open_to(behind):
                found.append((i, mass))
        return sorted(found, key=lambda item: -item[1])[: self._forwards]

    def _open_to(self, text: bytes) -> bool:
        """Returns whether some token of the target goes on from a text."""
        at = bisect_right(self._texts, text)
        return at < len(self._texts) and self._texts[at].startswith(text)

    def _base(self, text: bytes) -> int:
        """Returns the number of the longest token of the target that begins a text; -1 for none."""
        known = self._number
        return next((known[text[:n]] for n in range(len(text), 0, -1) if text[:n] in known), -1)

    def _open(self, text: bytes, chance: float, p: npt.NDArray[np.float64]) -> list[tuple[int, float]]:
        """Returns the most probable strings that stay open after one more token: the numbers of draft tokens,
        and probabilities."""
        chances = chance * p
        found: list[tuple[int, float]] = []
        for i in np.argsort(-chances, kind="stable")[: 4 * self._forwards].tolist():
            if chances[i] < _LEAST or len(found) == self._forwards:
                break
            if self._open_to(text + self._drafts[i]):
                found.append((i, float(chances[i])))
        return found

    def _ranges_of(self, text: bytes) -> _Ranges:
        found = self._ranges.get(text)
        if found is None:
            if len(self._ranges) >= _KEPT:
                self._ranges.clear()
            found = self._ranges[text] = self._computed(text)
        return found

    def _computed(self, text: bytes) -> _Ranges:
        first, stop = _range(self._texts, text)
        if text in self._number:
            first += 1
        low, high, above = [], [], []
        stack: list[int] = []
        for at in range(first, stop):
            token = self._texts[at]
            while stack and not token.startswith(self._texts[first + stack[-1]]):
                stack.pop()
            above.append(stack[-1] if stack else stop - first)
            stack.append(at - first)
            a, b = _range(self._drafts, token[len(text) :])
            low.append(a)
            high.append(b)
        base = self._base(text)
        begin, end, over = (np.array(values, np.int64) for values in (low, high, above))
        return _Ranges(np.arange(first, stop), begin, end, over, base)


def _range(texts: list[bytes], start: bytes) -> tuple[int, int]:
    """Returns the range of texts that begin with `start` in a sorted list: the first index, and one behind
    the last."""
    first = bisect_left(texts, start)
    after = start.rstrip(b"\xff")
    if not after:
        return first, len(texts)
    return first, bisect_left(texts, after[:-1] + bytes([after[-1] + 1]), first)
