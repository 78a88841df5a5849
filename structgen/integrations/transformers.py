"""Grammars in transformers' `generate()`: a logits processor, and a `prefix_allowed_tokens_fn`.

Enters: the ids generated so far (prompt included) and scores, each call. Leaves: new scores with -inf where
a token is not allowed. Cost: a mask a row, and the copy of the ids of the generated part to the host.

    processor = LogitsProcessor(grammar)
    model.generate(**inputs, logits_processor=[processor])

A row is addressed by its text, not by its number or by how often it was called: the matcher whose history
shares the longest prefix with the row is extended, or forked and rolled back. So beams may trade places,
speculative decoding may ask about drafts, come back shorter and ask again, and one processor serves many
calls of `generate()`.

Nothing is written into the scores: prompt lookup probes a processor with one tensor again and again.

**Where the text begins.** Without `prompt_lengths` the first call's width is the prompt's. A later call
belongs to the same text as long as its rows begin with that prompt and add to what was seen one token at a
time, or several that the grammar accepts. Anything else is a new prompt. A new prompt that repeats the old
one together with its answer, and goes on as the grammar would, cannot be told apart: call `reset()` first.

**Rows that left the language** (drafts that will be refused, beams of probability zero, tokens that somebody
else forced) allow the end-of-sequence tokens alone, or with `on_dead="all"` everything. Nothing is raised.

**Rows whose mask is beyond a limit** hurt no other: `on_error="eos"` ends such a row and tells of it in
`errors`; by default the call raises, once every other row has its mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import numpy.typing as npt

try:
    import torch
    import transformers
except ImportError as error:
    from .._extras import missing

    raise missing(error, "logits processors of transformers") from None

from ..errors import StructgenError, UnsatisfiableBudget, VocabularyError
from ..grammar import CompiledGrammar, Matcher, error_of_rows, fill_bitmasks
from ..logits import allocate_bitmask, apply_bitmask

if TYPE_CHECKING:
    from ..vocabulary import Vocabulary

__all__ = ["LogitsProcessor", "prefix_allowed_tokens_fn"]

_Mask = npt.NDArray[np.int32]
# Matchers kept beyond those of the last call's rows; drafts come back to a prefix of one of them.
_SPARE_TRACKS = 8


class LogitsProcessor(transformers.LogitsProcessor):
    """Restricts each row to a grammar.

    Args:
        grammars: one for all rows, or one a prompt of the batch (rows of several beams or returned
            sequences share their prompt's).
        prompt_lengths: columns of `input_ids` before the generated text, padding included: one number, or
            one a row. None: found out, see the head of this file.
        max_new_tokens: with it, only tokens are allowed after which the text can be completed in time.
        on_dead: what a row that left the language allows: "eos" or "all".
        on_error: where a row's mask or its tokens are beyond a limit of the engine: "raise", or "eos", which
            allows the end-of-sequence tokens alone in that row and goes on with the others.

    Attributes:
        errors: with ``on_error="eos"``, the exception of each row of the last call that had none of its own
            mask, by row. What such a row holds is no text of the grammar.

    Raises:
        ValueError: no grammar, or grammars of different vocabularies; when called: rows that do not divide
            among the grammars. VocabularyError: the grammar's vocabulary is wider than the scores.
    """

    supports_continuous_batching = False

    def __init__(
        self,
        grammars: CompiledGrammar | Sequence[CompiledGrammar],
        prompt_lengths: int | Sequence[int] | None = None,
        *,
        max_new_tokens: int | None = None,
        on_dead: Literal["eos", "all"] = "eos",
        on_error: Literal["raise", "eos"] = "raise",
    ) -> None:
        self._rows = _Rows(_listed(grammars), prompt_lengths, max_new_tokens, on_dead, on_error)

    @property
    def errors(self) -> dict[int, Exception]:
        return self._rows.errors

    def __call__(self, input_ids: torch.LongTensor, scores: torch.Tensor) -> torch.Tensor:
        """New scores, shape (rows, logits), any float type and device; `scores` stays as it is."""
        mask = self._rows.masks(input_ids)
        return apply_bitmask(scores, _fitted(mask, self._rows.vocabulary, scores.shape[-1]))

    def reset(self) -> None:
        """The next call begins a new text, whatever its prompt."""
        self._rows.reset()


def prefix_allowed_tokens_fn(
    grammars: CompiledGrammar | Sequence[CompiledGrammar],
    prompt_lengths: int | Sequence[int] | None = None,
    *,
    max_new_tokens: int | None = None,
) -> Callable[[int, torch.Tensor], list[int]]:
    """The same as a `prefix_allowed_tokens_fn` of `generate()`: (batch_id, ids of a row) -> allowed ids.

    Slower than the processor, which it is meant to replace only where no other argument is passed on:
    transformers turns the list into a tensor and scatters it, row by row. A row that left the language
    allows the end-of-sequence tokens.
    """
    listed = _listed(grammars)
    rows: dict[int, _Rows] = {}

    def allowed(batch_id: int, ids: torch.Tensor) -> list[int]:
        if batch_id not in rows:
            if batch_id >= len(listed) > 1:
                raise ValueError(f"there is no grammar for prompt {batch_id}: {len(listed)} were given")
            grammar = listed[batch_id if len(listed) > 1 else 0]
            length = prompt_lengths
            if length is not None and not isinstance(length, int):
                length = length[batch_id]
            rows[batch_id] = _Rows([grammar], length, max_new_tokens, "eos", "raise")
        mask = rows[batch_id].masks(ids[None])
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
        found: list[int] = np.flatnonzero(bits).tolist()
        return found

    return allowed


class _Track:
    """A matcher and the row that it followed: `seen` is the row, of which the matcher took `taken` ids."""

    __slots__ = ("error", "matcher", "seen", "taken")

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher
        self.error: Exception | None = None  # why it took no more
        self.seen: list[int] = []
        self.taken = 0

    def branch(self, length: int) -> _Track:
        """A track of its own at a prefix of this one."""
        other = _Track(self.matcher.fork())
        other.seen, other.taken = self.seen[:length], min(self.taken, length)
        other.matcher.rollback(self.taken - other.taken)
        return other

    def grow(self, text: list[int]) -> None:
        """On to a text that begins with what was seen, as far as the grammar goes."""
        self.error = None
        if not self.dead:
            rest = text[self.taken :]
            try:
                count = len(rest) if self.matcher.accept_tokens(rest) else self.matcher.validate_tokens(rest)
                if count < len(rest):
                    self.matcher.accept_tokens(rest[:count])
                self.taken += count
            except (StructgenError, MemoryError) as error:
                self.error = error
        self.seen = text

    @property
    def dead(self) -> bool:
        """The row left the language. (What follows an end-of-sequence token is padding, not text.)"""
        return self.taken < len(self.seen) and not self.matcher.is_terminated()


class _Pool:
    """The tracks of one grammar: those of the last call's rows first, then some older ones."""

    def __init__(self, grammar: CompiledGrammar) -> None:
        self.grammar = grammar
        self.tracks: list[_Track] = []

    def follow(self, texts: Sequence[list[int]]) -> tuple[list[_Track], bool]:
        """A track for each text, each with a matcher of its own, and whether each text was expected.

        A text is expected if all of it but the last token was seen before, or if the grammar accepts it.
        """
        old, free = self.tracks, {id(t): t for t in self.tracks}
        used: list[_Track] = []
        expected = True
        for i, text in enumerate(texts):
            best, common = self._nearest(text, old, i)
            track = self._moved(best, common, text, free)
            expected = expected and (common >= len(text) - 1 or not track.dead)
            used.append(track)
        spare = [t for t in old if id(t) in free][: max(_SPARE_TRACKS, len(used))]
        self.tracks = used + spare
        return used, expected

    def _nearest(self, text: list[int], tracks: list[_Track], guess: int) -> tuple[_Track | None, int]:
        """The track that shares the longest prefix with the text, and its length."""
        best: _Track | None = None
        longest = -1
        for track in (*tracks[guess : guess + 1], *tracks):
            common = _common(track.seen, text)
            if common > longest:
                best, longest = track, common
            if longest >= len(text) - 1:
                break
        return best, max(longest, 0)

    def _moved(self, best: _Track | None, common: int, text: list[int], free: dict[int, _Track]) -> _Track:
        """The nearest track brought to the text: itself if it only grows, else a fork rolled back."""
        if best is None:
            track = _Track(self.grammar.matcher())
        elif common == len(best.seen) and id(best) in free:
            track = best
            del free[id(best)]
        else:
            track = best.branch(common)
        track.grow(text)
        return track


class _Rows:
    """The rows of one batch: where their text begins, and their masks."""

    def __init__(
        self,
        grammars: list[CompiledGrammar],
        prompt_lengths: int | Sequence[int] | None,
        max_new_tokens: int | None,
        on_dead: str,
        on_error: str,
    ) -> None:
        if on_error not in ("raise", "eos"):
            raise ValueError(f"on_error is 'raise' or 'eos', not {on_error!r}")
        if on_dead not in ("eos", "all"):
            raise ValueError(f"on_dead is 'eos' or 'all', not {on_dead!r}")
        self.vocabulary: Vocabulary = grammars[0].vocabulary
        self._pools = [_Pool(g) for g in grammars]
        self._lengths = prompt_lengths
        self._max_new_tokens = max_new_tokens
        self._prompt: torch.Tensor | None = None
        self._on_error = on_error
        self.errors: dict[int, Exception] = {}
        self._ends = np.zeros_like(allocate_bitmask(1, self.vocabulary.vocab_size)[0])
        bits = self._ends.view(np.uint32)
        for token in self.vocabulary.eos_token_ids:
            bits[token // 32] |= np.uint32(1 << token % 32)
        self._dead = self._ends if on_dead == "eos" else np.full_like(self._ends, -1)

    def reset(self) -> None:
        self._prompt = None
        for pool in self._pools:
            pool.tracks = []

    def masks(self, input_ids: torch.Tensor) -> _Mask:
        """int32, shape (rows, ceil(V/32)). `input_ids`: integers, shape (rows, columns)."""
        if input_ids.shape[0] % len(self._pools):
            raise ValueError(f"{input_ids.shape[0]} rows do not divide among {len(self._pools)} grammars")
        if self._lengths is None and not self._goes_on(input_ids):
            self._begin(input_ids)
        tracks, expected = self._follow(input_ids)
        if self._lengths is None and not expected:
            self._begin(input_ids)
            tracks, _ = self._follow(input_ids)
        return self._fill(tracks)

    def _begin(self, input_ids: torch.Tensor) -> None:
        self._prompt = input_ids.clone()

    def _goes_on(self, input_ids: torch.Tensor) -> bool:
        """Whether the rows begin with the known prompt."""
        known = self._prompt
        if known is None or known.shape[0] != input_ids.shape[0] or known.shape[1] > input_ids.shape[1]:
            return False
        start = input_ids[:, : known.shape[1]]
        return known.device == input_ids.device and bool(torch.equal(start, known))

    def _follow(self, input_ids: torch.Tensor) -> tuple[list[_Track], bool]:
        texts = self._texts(input_ids)
        share = len(texts) // len(self._pools)
        tracks: list[_Track] = []
        expected = True
        for i, pool in enumerate(self._pools):
            found, known = pool.follow(texts[i * share : (i + 1) * share])
            tracks += found
            expected = expected and known
        return tracks, expected

    def _texts(self, input_ids: torch.Tensor) -> list[list[int]]:
        """The generated ids of each row."""
        lengths = self._lengths
        if lengths is None:
            assert self._prompt is not None
            lengths = self._prompt.shape[1]
        if isinstance(lengths, int):
            found: list[list[int]] = input_ids[:, lengths:].tolist()
            return found
        if not len(lengths) or input_ids.shape[0] % len(lengths):
            raise ValueError(f"{input_ids.shape[0]} rows do not divide among {len(lengths)} prompt lengths")
        share = input_ids.shape[0] // len(lengths)
        return [row[lengths[i // share] :] for i, row in enumerate(input_ids.tolist())]

    def _fill(self, tracks: list[_Track]) -> _Mask:
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
        self.errors = {row: error for row, error in enumerate(errors) if error is not None}
        if self.errors and self._on_error == "raise":
            raise error_of_rows(errors)
        for row in self.errors:
            mask[row] = self._ends
        return mask

    def _fill_within(self, mask: _Mask, row: int, track: _Track, left: int) -> None:
        """A mask under a budget; a draft that overran it is as dead as one that is no text."""
        if track.matcher.is_terminated():
            track.matcher.fill_bitmask(mask, row)
            return
        try:
            track.matcher.fill_bitmask(mask, row, max_tokens=max(left, 0))
        except UnsatisfiableBudget:
            if not track.seen:
                raise
            mask[row] = self._dead


def _listed(grammars: CompiledGrammar | Sequence[CompiledGrammar]) -> list[CompiledGrammar]:
    several = isinstance(grammars, Sequence) and not isinstance(grammars, str | bytes)
    listed: list[Any] = list(cast(Any, grammars)) if several else [grammars]
    if not all(isinstance(g, CompiledGrammar) for g in listed):
        raise TypeError(
            f"grammars are one compiled grammar or a list of them, not {grammars!r:.60}; "
            "Compiler(vocabulary).json_schema compiles a schema"
        )
    if not listed:
        raise ValueError("a processor needs a grammar")
    if any(g.vocabulary.vocab_size != listed[0].vocabulary.vocab_size for g in listed):
        raise ValueError("the grammars have different vocabularies")
    return listed


def _fitted(mask: _Mask, vocabulary: Vocabulary, width: int) -> _Mask:
    """The mask as wide as the logits; VocabularyError if text or an end would be cut off."""
    size = vocabulary.vocab_size
    if size > width and (any(vocabulary.tokens[width:]) or max(vocabulary.eos_token_ids) >= width):
        raise VocabularyError(
            f"the grammar's vocabulary has {size} ids and the model {width} logits: make it with "
            "Vocabulary.from_huggingface(tokenizer, model=model)"
        )
    words = (width + 31) // 32
    return mask[:, :words] if mask.shape[1] > words else mask


def _common(a: list[int], b: list[int]) -> int:
    """Length of the longest common prefix. The usual case is one comparison of whole lists."""
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
