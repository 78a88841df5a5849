"""Follows rows of token ids with matchers, for hosts that pass the whole rows at every step.

Enters: for each row the ids generated so far. Leaves: a mask for each row, or an error for a row without a
mask. Cost: for each row a comparison of lists, the new tokens, and a mask. The module needs only numpy.

A row is identified by its text, not by its number. The matcher whose history shares the longest prefix with
the row is extended, or forked and rolled back. So beams may trade places, and a host may ask about drafts,
shorten them and ask again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from .._checks import one_of
from ..errors import StructgenError, UnsatisfiableBudget
from ..grammar import CompiledGrammar
from ..logits import allocate_bitmask, mask_of
from ..matcher import Matcher, error_of_rows, fill_bitmasks
from .telemetry import Telemetry

if TYPE_CHECKING:
    from ..vocabulary import Vocabulary

Mask = npt.NDArray[np.int32]
# The number of matchers that are kept beyond those of the last call's rows. Drafts come back to a prefix of
# one of them.
_SPARE_TRACKS = 8


# Recipe, host 2: the same, where the host calls a logits processor.
class Rows:
    """The rows of one batch and their tracks.

    Args:
        grammars: one grammar for all rows; or several, each for an equal share of the rows, in order.
        max_new_tokens: with it, only tokens are allowed after which the text can be completed in time.
        on_dead: the mask of a row that left the language: "eos" allows the end tokens, "all" every token.
        on_error: "raise" once every other row has its mask, or "eos", which allows the end tokens alone.

    Attributes:
        errors: with ``on_error="eos"``, the exception of each row of the last call without a mask, by row.
        telemetry: counts and logs masks and what went wrong; grammars are compiled elsewhere.
    """

    def __init__(
        self, grammars: Sequence[CompiledGrammar], max_new_tokens: int | None, on_dead: str, on_error: str
    ) -> None:
        one_of("on_error", on_error, ("raise", "eos"))
        one_of("on_dead", on_dead, ("eos", "all"))
        self.vocabulary: Vocabulary = grammars[0].vocabulary
        self.errors: dict[int, Exception] = {}
        self.telemetry: Telemetry = Telemetry("structgen.integrations.hosts", lambda: 0)
        self._pools = [_Pool(g) for g in grammars]
        self._max_new_tokens = max_new_tokens
        self._on_error = on_error
        words = allocate_bitmask(1, self.vocabulary.vocab_size).shape[1]
        self._ends: Mask = mask_of(self.vocabulary.eos_token_ids, words)
        self._dead = self._ends if on_dead == "eos" else np.full_like(self._ends, -1)

    def reset(self) -> None:
        """Forgets all rows."""
        for pool in self._pools:
            pool.tracks = []

    def check(self, count: int) -> None:
        """Raises ValueError if `count` rows cannot be divided equally among the grammars."""
        if count % len(self._pools):
            raise ValueError(f"{count} rows do not divide among {len(self._pools)} grammars")

    def follow(self, texts: Sequence[list[int]]) -> bool:
        """Moves a matcher to the end of each text, for the next `fill`. False: some text was not expected.

        A text is expected in two cases: all of it but the last token was seen before; or the grammar accepts
        it, and nothing stands behind an end. (If a row has ended, hosts add one token of padding to it in
        each call.)
        """
        share = len(texts) // len(self._pools)
        self._tracks: list[_Track] = []
        expected = True
        for i, pool in enumerate(self._pools):
            found, known = pool.follow(texts[i * share : (i + 1) * share])
            self._tracks += found
            expected = expected and known
        return expected

    def fill(self) -> Mask:
        """Returns the masks after the texts of the last `follow`: int32, shape (rows, ceil(V/32))."""
        tracks = self._tracks
        begun = time.perf_counter()
        mask = allocate_bitmask(len(tracks), self.vocabulary.vocab_size)
        errors: list[Exception | None] = [None] * len(tracks)
        if self._max_new_tokens is None:
            errors = fill_bitmasks([t.matcher for t in tracks], mask, skip_errors=True)
        for row, track in enumerate(tracks):
            if track.error is not None:
                errors[row] = track.error
            elif track.dead:
                mask[row], errors[row] = self._dead, None
            elif self._max_new_tokens is not None:
                try:
                    self._fill_within(mask, row, track, self._max_new_tokens - len(track.seen))
                except (StructgenError, MemoryError) as error:
                    errors[row] = error
        before = self.errors
        self.errors = {row: error for row, error in enumerate(errors) if error is not None}
        inexact = sum(not (t.dead or t.matcher.mask_exact) for t in tracks)
        self.telemetry.filled(len(tracks), time.perf_counter() - begun, inexact)
        for row in self.errors.keys() - before.keys():
            self.telemetry.failed(self.errors[row])
        if self.errors and self._on_error == "raise":
            raise error_of_rows(errors)
        for row in self.errors:
            mask[row] = self._ends
        return mask

    def _fill_within(self, mask: Mask, row: int, track: _Track, left: int) -> None:
        """Fills a mask under a budget. A draft beyond the budget is treated as outside the language."""
        if track.matcher.is_terminated():
            track.matcher.fill_bitmask(mask, row)
            return
        try:
            track.matcher.fill_bitmask(mask, row, max_tokens=max(left, 0))
        except UnsatisfiableBudget:
            if not track.seen:
                raise
            mask[row] = self._dead


class _Track:
    """A matcher and the row that it followed. `seen` has the row's ids, and the matcher took the first
    `taken` of them."""

    __slots__ = ("error", "matcher", "seen", "taken")

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher
        self.error: Exception | None = None  # the reason why the matcher stopped
        self.seen: list[int] = []
        self.taken = 0

    def branch(self, length: int) -> _Track:
        """Returns a new track at a prefix of this track's row."""
        other = _Track(self.matcher.fork())
        other.seen, other.taken = self.seen[:length], min(self.taken, length)
        other.matcher.rollback(self.taken - other.taken)
        return other

    def grow(self, text: list[int]) -> bool:
        """Reads the rest of a text that begins with `seen`, as far as the grammar accepts it.

        False: the grammar refuses a token, or tokens stand behind an end.
        """
        self.error = None
        if not self.dead:
            rest = text[self.taken :]
            try:
                for token in rest:
                    if not self.matcher.accept_token(token):
                        break
                    self.taken += 1
            except (StructgenError, MemoryError) as error:
                self.error = error
        self.seen = text
        if self.matcher.is_terminated():
            return not any(token in text[:-1] for token in self.matcher.grammar.vocabulary.eos_token_ids)
        return not self.dead

    @property
    def dead(self) -> bool:
        """Whether the row left the language. Tokens behind an end-of-sequence token are padding and do not
        count."""
        return self.taken < len(self.seen) and not self.matcher.is_terminated()


class _Pool:
    """The tracks of one grammar: those of the last call's rows first, then some older ones."""

    def __init__(self, grammar: CompiledGrammar) -> None:
        self.grammar = grammar
        self.tracks: list[_Track] = []

    def follow(self, texts: Sequence[list[int]]) -> tuple[list[_Track], bool]:
        """Returns a track for each text, each with a matcher of its own, and whether each text was expected.

        `Rows.follow` says which texts are expected.
        """
        old, free = self.tracks, {id(t): t for t in self.tracks}
        used: list[_Track] = []
        expected = True
        for i, text in enumerate(texts):
            best, common = self._nearest(text, old, i)
            track = self._placed(best, common, free)
            taken = track.grow(text)
            expected = expected and (taken or common >= len(text) - 1)
            used.append(track)
        spare = [t for t in old if id(t) in free][: max(_SPARE_TRACKS, len(used))]
        self.tracks = used + spare
        return used, expected

    def _nearest(self, text: list[int], tracks: list[_Track], guess: int) -> tuple[_Track | None, int]:
        """Returns the track that shares the longest prefix with the text, and its length."""
        best: _Track | None = None
        longest = -1
        for track in (*tracks[guess : guess + 1], *tracks):
            common = _common(track.seen, text)
            if common > longest:
                best, longest = track, common
            if longest >= len(text) - 1:
                break
        return best, max(longest, 0)

    def _placed(self, best: _Track | None, common: int, free: dict[int, _Track]) -> _Track:
        """Returns the nearest track, moved to the prefix that it shares with the text. It is a fork unless
        the text continues the track's row."""
        if best is None:
            return _Track(self.grammar.matcher())
        if common == len(best.seen) and id(best) in free:
            del free[id(best)]
            return best
        return best.branch(common)


def listed(grammars: CompiledGrammar | Sequence[CompiledGrammar]) -> list[CompiledGrammar]:
    """Returns the grammars as a list. TypeError: a value is no grammar. ValueError: there is none, or their
    vocabularies differ."""
    several = isinstance(grammars, Sequence) and not isinstance(grammars, str | bytes)
    found: list[Any] = list(cast(Any, grammars)) if several else [grammars]
    if not all(isinstance(g, CompiledGrammar) for g in found):
        raise TypeError(
            f"grammars are one compiled grammar or a list of them, not {grammars!r:.60}; "
            "Compiler(vocabulary).json_schema compiles a schema"
        )
    if not found:
        raise ValueError("a processor needs a grammar")
    if any(g.vocabulary.vocab_size != found[0].vocabulary.vocab_size for g in found):
        raise ValueError("the grammars have different vocabularies")
    return found


def _common(a: list[int], b: list[int]) -> int:
    """Returns the length of the longest common prefix. The usual case is one comparison of whole lists."""
    short = min(len(a), len(b))
    if a[:short] == b[:short]:
        return short
    low, high = 0, short - 1
    while low < high:  # a[:low] == b[:low]; the first difference is at low..high
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
