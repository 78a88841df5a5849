"""structgen inside llama-cpp-python: a logits processor, and a draft model that drafts forced tokens.

Enters: a `llama_cpp.Llama`, a constraint as a kind and a text. Leaves: a `logits_processor` for
`create_completion`, `create_chat_completion` and `generate`, and a `draft_model` for `Llama`. Cost: a mask
for each token; the host's callback and its copy of the scores cost more.

    llama = Llama("model.gguf")
    engine = engine_of(llama)
    grammar = engine.compile("json_schema", schema)
    processor = LogitsProcessor(llama, engine.request(grammar, max_tokens=200))
    answer = llama.create_completion(prompt, max_tokens=200, logits_processor=[processor])
    processor.check()

Two things that the host does shape this file.

**It ignores exceptions.** C calls a processor through ctypes. An exception is printed, and the next token is
sampled without any constraint. So this processor raises nothing. A text that cannot continue ends: its scores
then allow only end tokens, and `check()` raises the error.

**It shows drafts as text.** With a draft model, a processor is called once for each drafted token, each time
with *all* drafted ids behind the text. Only the draft model knows which of these ids are still drafts. So
drafts come from a `Drafter`, which tells the processor how many are pending. A `Llama` with another draft
model is refused; `Drafter(inner=that)` uses that model.

Written for llama-cpp-python 0.3.36.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    import llama_cpp
    from llama_cpp.llama_speculative import LlamaDraftModel
except ImportError as _missing:
    from .._extras import missing

    raise missing(_missing, "processors of llama-cpp-python") from None

from ..errors import StructgenError, VocabularyError
from ..logits import allocate_bitmask, apply_bitmask
from ..vocabulary import Vocabulary
from .hosts import HostEngine, HostRequest

_Ids = npt.NDArray[np.intc]


def vocabulary_of(llama: Any) -> Vocabulary:
    """Returns the vocabulary of a model's GGUF table: every id's bytes, all of its end-of-generation ids.

    Its encoder is the model's own, so `Matcher.forced_tokens` cuts text as the model does.

    Raises:
        VocabularyError: the table has no end token or cannot be read.
    """
    table = llama_cpp.llama_model_get_vocab(llama._model.model)
    if table is None:
        raise VocabularyError("the model has no vocabulary")
    never = (
        llama_cpp.LLAMA_TOKEN_ATTR_CONTROL
        | llama_cpp.LLAMA_TOKEN_ATTR_UNKNOWN
        | llama_cpp.LLAMA_TOKEN_ATTR_UNUSED
    )
    tokens: list[bytes | None] = []
    ends, special = [], []
    for token in range(llama_cpp.llama_vocab_n_tokens(table)):
        if llama_cpp.llama_vocab_is_eog(table, token):
            ends.append(token)
        attributes = llama_cpp.llama_vocab_get_attr(table, token)
        if attributes & llama_cpp.LLAMA_TOKEN_ATTR_UNUSED:
            tokens.append(None)
            continue
        tokens.append(_piece(table, token))
        if attributes & never:
            special.append(token)
    if not ends:
        raise VocabularyError("the GGUF table names no end-of-generation token, so no text could end")

    def encode(text: str) -> list[int]:
        ids: list[int] = llama.tokenize(text.encode(), add_bos=False, special=False)
        return ids

    return Vocabulary.from_bytes(tokens, ends, special, encode=encode)


def _piece(table: Any, token: int) -> bytes:
    size = 64
    while True:
        buffer = ctypes.create_string_buffer(size)
        length = llama_cpp.llama_token_to_piece(table, token, buffer, size, 0, True)
        if length >= 0:
            return buffer.raw[:length]
        size = -length


def engine_of(llama: Any, **options: Any) -> HostEngine:
    """Returns one compiler for all texts of a model; `options` are those of `HostEngine`."""
    return HostEngine(vocabulary_of(llama), **options)


class LogitsProcessor:
    """Constrains the texts of one `Llama`, one at a time, each from the start of the grammar.

    A call continues the last text if its ids are those of the last call, or those and one sampled id. Any
    other ids are a new prompt, and a text begins at its end.

    Args:
        llama: the model that will call it.
        request: a request of `engine_of(llama)`. With `max_tokens`, which goes to the host too, texts are
            complete
            within it.

    Attributes:
        error: why the text cannot continue; None: it can.

    Raises:
        ValueError: the model drafts with something else than a `Drafter`.
        VocabularyError: the grammar's vocabulary has another width than the model's logits.
    """

    def __init__(self, llama: Any, request: HostRequest) -> None:
        drafter = llama.draft_model
        if drafter is not None and not isinstance(drafter, Drafter):
            raise ValueError(
                f"a processor cannot tell text from drafts of {type(drafter).__name__}: give the model "
                "draft_model=Drafter(inner=...)"
            )
        size = request.matcher.grammar.vocabulary.vocab_size
        if size != llama.n_vocab():
            raise VocabularyError(
                f"the grammar's vocabulary has {size} ids and the model {llama.n_vocab()}: compile it with "
                "engine_of(llama)"
            )
        self.error: BaseException | None = None
        self._request = request
        self._mask = allocate_bitmask(1, size)
        self._ids: _Ids | None = None  # prompt and text of the last call
        self._prompt = 0
        self._drafter: Drafter | None = drafter
        if drafter is not None:
            drafter.room = llama.n_ctx()
            drafter.serve(self)

    def __call__(self, ids: _Ids, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Returns the scores, (V,), with -inf where a token is not allowed. Raises nothing."""
        try:
            pending = self._drafter.pending(ids) if self._drafter is not None else 0
            self.advance(ids[: len(ids) - pending])
            if self.error is None:
                self._request.fill(self._mask, 0)
                self.error = self._request.error
            if self.error is None:
                return apply_bitmask(scores, self._mask[0])
        except BaseException as error:  # Ctrl-C, too, because the host would sample on without the constraint
            self.error = self.error or error
        ended = np.full(len(scores), -np.inf, np.float32)
        ended[list(self._request.end_token_ids)] = 0
        return ended

    def check(self) -> None:
        """Raises the error that ended the text, if there is one."""
        if self.error is not None:
            raise self.error

    def reset(self) -> None:
        """Makes the next call begin a new text, whatever its ids."""
        self._ids = self.error = None
        self._request.reset()

    def advance(self, ids: _Ids) -> None:
        """Reads the text up to the end of `ids`, or begins a new text there."""
        grown = len(ids) - (0 if self._ids is None else len(self._ids))
        if not self.continues(ids) or len(ids) == self._prompt:
            self.reset()
            self._prompt = len(ids)
        elif grown and self.error is None and not self._request.accept([int(ids[-1])]):
            self.error = self._request.error or StructgenError(
                f"the host sampled token {int(ids[-1])}, which the mask did not allow"
            )
        self._ids = np.array(ids, copy=True)

    def continues(self, ids: _Ids) -> bool:
        """Returns whether `ids` are the ids of this text, with at most one more."""
        known = self._ids
        return (
            known is not None
            and 0 <= len(ids) - len(known) <= 1
            and bool(np.array_equal(ids[: len(known)], known))
        )

    def draft(self, ids: _Ids, most: int, inner: Callable[[_Ids], _Ids] | None) -> list[int]:
        """Returns a draft: the forced tokens, then the guesses of `inner` that the grammar accepts."""
        self.advance(ids)
        request = self._request
        if self.error is not None or request.is_terminated():
            return []
        tokens = request.matcher.forced_tokens()[:most]
        if inner is not None and len(tokens) < most:
            tokens += [int(t) for t in inner(np.concatenate([ids, np.array(tokens, np.intc)]))]
        ends = request.end_token_ids
        stop = next((i for i, token in enumerate(tokens) if token in ends), len(tokens))
        tokens = tokens[: min(stop, most)]
        return tokens[: request.validate(tokens)]


class Drafter(LlamaDraftModel):  # type: ignore[misc]
    """A draft model: `Llama(..., draft_model=Drafter())`. Texts without a processor are drafted by `inner`.

    Several tokens are then checked in one forward. The text is the same as without.

    Args:
        most: the most tokens of a draft.
        inner: another draft model. Its drafts are cut in front of the first token that the grammar refuses.
    """

    def __init__(self, most: int = 8, inner: Callable[[_Ids], _Ids] | None = None) -> None:
        if most < 1:
            raise ValueError(f"a draft has at least one token, not {most}")
        self.most = most
        self.inner = inner
        self.room: int | None = None  # the size of the model's context, in tokens
        self._processor: weakref.ref[LogitsProcessor] | None = None
        self._run: _Ids | None = None  # the text and its draft
        self._left = 0

    def serve(self, processor: LogitsProcessor) -> None:
        """Drafts for this processor's text from now on."""
        self._processor = weakref.ref(processor)
        self._run = None

    def pending(self, ids: _Ids) -> int:
        """Returns the number of ids at the end that are unread drafts. The processor calls this method once
        for each sampled token."""
        if self._run is None or self._left <= 0 or not np.array_equal(ids, self._run):
            self._run = None
            return 0
        pending = self._left
        self._left -= 1
        return pending

    def __call__(self, input_ids: _Ids, /, **_: Any) -> _Ids:
        """Returns the draft after these ids. It is empty after an error, because a text needs no draft."""
        processor = self._processor() if self._processor is not None else None
        room = self.most if self.room is None else min(self.most, self.room - len(input_ids))
        tokens: list[int] = []
        try:
            if processor is None or not processor.continues(input_ids):
                tokens = [] if self.inner is None else [int(t) for t in self.inner(input_ids)][: max(room, 0)]
            elif room > 0:
                tokens = processor.draft(input_ids, room, self.inner)
        except StructgenError:
            tokens = []
        draft = np.array(tokens, np.intc)
        self._run, self._left = np.concatenate([input_ids, draft]).astype(np.intc), len(draft)
        return draft
