"""Grammars in transformers' `generate()`: a logits processor, and a `prefix_allowed_tokens_fn`.

Enters, for each call: the ids so far (prompt included) and scores. Leaves: new scores with -inf where a token
is not allowed. Cost: a mask for each row, and a copy of the generated ids to the host.

    processor = LogitsProcessor(grammar)
    model.generate(**inputs, logits_processor=[processor])

A row is identified by its text (rows.py). So beams may change places, speculative decoding may ask about
drafts, shorten them and ask again, and one processor serves many calls of `generate()`.

The processor never writes into the scores, because prompt lookup passes one tensor of scores again and again.

**Where the text begins.** Without `prompt_lengths`, the width of the first call is the length of the prompt.
A later call belongs to the same text if its rows begin with this prompt and continue the ids that were seen,
by one token, or by several that the grammar accepts. Other rows are a new prompt, as in a chat: the old
prompt, its answer with the end token, and a new question. A prompt that repeats the old one and continues as
the grammar allows, or by one token behind the end, cannot be recognised: call `reset()` first.

**Rows that left the language** allow only the end-of-sequence tokens, or with `on_dead="all"` every token.
Such rows are drafts that will be refused, beams of probability zero, and rows with tokens that other code
forced. No error is raised.

**Rows whose mask is beyond a limit** do not affect other rows. `on_error="eos"` ends such a row and notes its
error in `errors`. By default the call raises the error after every other row has its mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

try:
    import torch
    import transformers
except ImportError as _missing:
    from .._extras import missing

    raise missing(_missing, "logits processors of transformers") from None

from ..errors import VocabularyError
from ..grammar import CompiledGrammar
from ..logits import allowed_ids, apply_bitmask
from .rows import Mask, Rows, listed

if TYPE_CHECKING:
    from ..vocabulary import Vocabulary
    from .telemetry import Telemetry


class LogitsProcessor(transformers.LogitsProcessor):
    """Restricts each row to a grammar.

    Args:
        grammars: one for all rows, or one a prompt of the batch (rows of several beams or returned
            sequences share their prompt's).
        prompt_lengths: the columns of `input_ids` before the generated text, padding included: one number, or
            one for each row. With None the calls show it; see the head of this file.
        max_new_tokens: with it, only tokens are allowed after which the text can be completed in time.
        on_dead: the mask of a row that left the language: "eos" allows the end tokens, "all" every token.
        on_error: what happens if a row's mask or tokens are beyond a limit of the engine. "raise" raises the
            error; "eos" allows only the end-of-sequence tokens in that row and continues with the others.

    Attributes:
        errors: with ``on_error="eos"``, the exceptions of the last call's rows that have no mask of their
            own, by row. The text of such a row is no text of the grammar.
        telemetry: counts and logs masks and failures.

    Raises:
        ValueError: no grammar, or grammars of different vocabularies; when called: rows that do not divide
            among the grammars. VocabularyError: the grammar's vocabulary is wider than the scores.
    """

    supports_continuous_batching: bool = False

    def __init__(
        self,
        grammars: CompiledGrammar | Sequence[CompiledGrammar],
        prompt_lengths: int | Sequence[int] | None = None,
        *,
        max_new_tokens: int | None = None,
        on_dead: Literal["eos", "all"] = "eos",
        on_error: Literal["raise", "eos"] = "raise",
    ) -> None:
        self._batch = _Batch(Rows(listed(grammars), max_new_tokens, on_dead, on_error), prompt_lengths)

    @property
    def errors(self) -> dict[int, Exception]:
        return self._batch.rows.errors

    @property
    def telemetry(self) -> Telemetry:
        return self._batch.rows.telemetry

    def __call__(self, input_ids: torch.LongTensor, scores: torch.Tensor) -> torch.Tensor:
        """Returns new scores, shape (rows, logits), any float type and device; `scores` stays as it is."""
        mask = self._batch.masks(input_ids)
        return apply_bitmask(scores, _fitted(mask, self._batch.rows.vocabulary, scores.shape[-1]))

    def reset(self) -> None:
        """The next call begins a new text, whatever its prompt."""
        self._batch.reset()


def prefix_allowed_tokens_fn(
    grammars: CompiledGrammar | Sequence[CompiledGrammar],
    prompt_lengths: int | Sequence[int] | None = None,
    *,
    max_new_tokens: int | None = None,
) -> Callable[[int, torch.Tensor], list[int]]:
    """Makes a `prefix_allowed_tokens_fn` for `generate()`: (batch_id, ids of a row) -> allowed ids.

    It is slower than the processor, because transformers turns each list into a tensor, row by row. Use it
    only where a program passes on no other argument. A row that left the language allows the
    end-of-sequence tokens.
    """
    wanted = listed(grammars)
    batches: dict[int, _Batch] = {}

    def allowed(batch_id: int, ids: torch.Tensor) -> list[int]:
        if batch_id not in batches:
            if batch_id >= len(wanted) > 1:
                raise ValueError(f"there is no grammar for prompt {batch_id}: {len(wanted)} were given")
            grammar = wanted[batch_id if len(wanted) > 1 else 0]
            length = prompt_lengths
            if length is not None and not isinstance(length, int):
                length = length[batch_id]
            batches[batch_id] = _Batch(Rows([grammar], max_new_tokens, "eos", "raise"), length)
        found: list[int] = allowed_ids(batches[batch_id].masks(ids[None])).tolist()
        return found

    return allowed


class _Batch:
    """The rows of a batch, and the columns where their texts begin. The caller gives the columns, or the
    calls show them."""

    def __init__(self, rows: Rows, prompt_lengths: int | Sequence[int] | None) -> None:
        self.rows = rows
        self._lengths = prompt_lengths
        self._prompt: torch.Tensor | None = None

    def reset(self) -> None:
        self._prompt = None
        self.rows.reset()

    def masks(self, input_ids: torch.Tensor) -> Mask:
        """Returns the masks of all rows: int32, shape (rows, ceil(V/32)). `input_ids`: integers, shape (rows,
        columns)."""
        self.rows.check(input_ids.shape[0])
        if self._lengths is None and not self._goes_on(input_ids):
            self._begin(input_ids)
        expected = self.rows.follow(self._texts(input_ids))
        if self._lengths is None and not expected:
            self._begin(input_ids)
            self.rows.follow(self._texts(input_ids))
        return self.rows.fill()

    def _begin(self, input_ids: torch.Tensor) -> None:
        self._prompt = input_ids.clone()

    def _goes_on(self, input_ids: torch.Tensor) -> bool:
        """Returns whether the rows begin with the known prompt."""
        known = self._prompt
        if known is None or known.shape[0] != input_ids.shape[0] or known.shape[1] > input_ids.shape[1]:
            return False
        start = input_ids[:, : known.shape[1]]
        return known.device == input_ids.device and bool(torch.equal(start, known))

    def _texts(self, input_ids: torch.Tensor) -> list[list[int]]:
        """Returns the generated ids of each row."""
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


def _fitted(mask: Mask, vocabulary: Vocabulary, width: int) -> Mask:
    """Returns the mask as wide as the logits; VocabularyError if text or an end would be cut off."""
    size = vocabulary.vocab_size
    if size > width and (any(vocabulary.tokens[width:]) or max(vocabulary.eos_token_ids) >= width):
        raise VocabularyError(
            f"the grammar's vocabulary has {size} ids and the model {width} logits: make it with "
            "Vocabulary.from_huggingface(tokenizer, model=model)"
        )
    words = (width + 31) // 32
    return mask[:, :words] if mask.shape[1] > words else mask
