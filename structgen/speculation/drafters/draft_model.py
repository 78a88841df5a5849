"""A small model as a drafter, with the target's vocabulary or with its own.

Enters: the text. Leaves: the draft model's best tokens under the grammar. Cost: a forward of the draft model
for each node whose children are looked at.

With the same vocabulary, every node of the tree has the draft model's own distribution, masked by the matcher
of that node and with the noise of the target's draws. So greedy and sampled drafts need no separate code.
With another vocabulary the model writes a piece of text under a matcher over its *own* vocabulary, and the
text is spelled in the target's tokens (string-level exact matching: Timor et al. 2025). The last token of the
spelling is not drafted, because further text might have changed it. Only text passes between the two models,
because the ids of one vocabulary mean nothing in the other vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._checks import whole
from ...compiler import Compiler
from ...errors import VocabularyError
from ...logits import allocate_bitmask, apply_bitmask
from ...vocabulary import Vocabulary
from ..base import Cursor, Quiet, Start, Step, Vector
from .chain import Chain
from .model_cursor import ModelCursor, ModelDrafter, row_of

if TYPE_CHECKING:
    from ...grammar import CompiledGrammar
    from ...lm.base import Context, LanguageModel
    from ...matcher import Matcher


class DraftModel(ModelDrafter):
    """Drafts by a language model.

    Args:
        lm: the draft model.
        width: the number of children offered at each node (same vocabulary).
        tokens: the number of tokens of text that are written at a time (another vocabulary).
        grammar: the constraint over the draft model's own vocabulary. It is needed if the source of the
            target's grammar cannot be compiled again.
        name: the drafter's name in statistics.
    """

    def __init__(
        self,
        lm: LanguageModel,
        *,
        width: int = 2,
        tokens: int = 8,
        grammar: CompiledGrammar | None = None,
        name: str = "draft model",
    ) -> None:
        super().__init__(lm, width, name)
        self.tokens: int = whole("tokens", tokens, 1)
        self._grammar = grammar
        self._compiler: Compiler | None = None

    def open(self, start: Start) -> _Same | _Other:
        if list(self.lm.vocabulary.tokens) == list(start.vocabulary.tokens):
            return _Same(self, start)
        return _Other(self, start, self._own_grammar(start))

    def _own_grammar(self, start: Start) -> CompiledGrammar | None:
        if self._grammar is not None or start.compile is None:
            return self._grammar
        if self._compiler is None:
            self._compiler = Compiler(_complete(self.lm.vocabulary))
        return start.compile(self._compiler)


def _complete(vocabulary: Vocabulary) -> Vocabulary:
    """Returns the vocabulary with additional ids for bytes that are no tokens of the model. The target may
    end a piece of text in the middle of a token of the draft model.
    """
    single = {text for text in vocabulary.tokens if len(text) == 1}
    missing = [bytes([b]) for b in range(256) if bytes([b]) not in single]
    if not missing:
        return vocabulary
    return Vocabulary.from_bytes([*vocabulary.tokens, *missing], vocabulary.eos_token_ids)


class _Same(Quiet):
    def __init__(self, drafter: DraftModel, start: Start) -> None:
        self._drafter = drafter
        self._start = start
        self._context: Context | None = None
        # A prompt that is too long for the draft model gets no drafts.
        if drafter.lm.max_context is None or len(start.prompt) <= drafter.lm.max_context:
            self._context = drafter.lm.start(start.prompt)

    def accept(self, step: Step) -> None:
        for token in step.tokens:
            if self._context is not None:
                self._context = self._context.extend(token)

    def cursor(self) -> Cursor | None:
        if self._context is None:
            return None
        return ModelCursor(self, self._start, self._drafter.width, self._context)

    def row(self, place: Context) -> Vector | None:
        return row_of(self._drafter.lm, place)

    def after(self, place: Context, token: int) -> Context | None:
        return place.extend(token)


class _Other(Quiet):
    """A session of a draft model with another vocabulary. `_ids` are the draft model's tokens of the
    answer, and `_text` their bytes."""

    def __init__(self, drafter: DraftModel, start: Start, grammar: CompiledGrammar | None) -> None:
        self._drafter = drafter
        self._vocabulary = start.vocabulary
        self._matcher: Matcher | None = None if grammar is None else grammar.matcher()
        lm = drafter.lm
        text = start.vocabulary.decode(start.prompt) if start.text is None else start.text
        prompt: Any = text if isinstance(text, str) else lm.vocabulary.encode(text)
        self._contexts: list[Context] = [lm.start(prompt)]
        self._ids: list[int] = []
        self._text = b""
        self._wanted = b""

    def accept(self, step: Step) -> None:
        self._wanted += self._vocabulary.decode(step.tokens)

    def cursor(self) -> Cursor | None:
        if not self._follow():
            return None
        draft = self._write()
        try:
            tokens = self._vocabulary.encode(draft)[:-1]
        except VocabularyError:  # The target has no token for some byte.
            return None
        return Chain(tokens, 0.8) if tokens else None

    def _follow(self) -> bool:
        """Makes the draft model's tokens spell the target's text. False if its grammar or vocabulary
        cannot."""
        vocabulary, wanted = self._drafter.lm.vocabulary, self._wanted
        keep, length = len(self._ids), len(self._text)
        while not wanted.startswith(self._text[:length]):
            keep -= 1
            length -= len(vocabulary.token_bytes(self._ids[keep]))
        self._take_back(keep)
        self._text = self._text[:length]
        try:
            rest = vocabulary.encode(wanted[length:])
        except VocabularyError:
            return False
        return all(self._take(token) for token in rest)

    def _take(self, token: int) -> bool:
        if self._matcher is not None and not self._matcher.accept_token(token):
            return False
        self._ids.append(token)
        self._contexts.append(self._contexts[-1].extend(token))
        self._text += self._drafter.lm.vocabulary.token_bytes(token)
        return True

    def _take_back(self, keep: int) -> None:
        if self._matcher is not None and keep < len(self._ids):
            self._matcher.rollback(len(self._ids) - keep)
        del self._ids[keep:], self._contexts[keep + 1 :]

    def _write(self) -> bytes:
        """Writes a piece of greedy text behind the target's text. The draft's tokens keep the piece, and
        `_follow` cuts it back."""
        lm, before = self._drafter.lm, len(self._text)
        size = lm.vocabulary.vocab_size
        if self._matcher is not None:
            size = self._matcher.grammar.vocabulary.vocab_size
        mask = allocate_bitmask(1, size)
        for _ in range(self._drafter.tokens):
            context = self._contexts[-1]
            if lm.max_context is not None and len(context) >= lm.max_context:
                break
            row = lm.logprobs([context])[0]
            if self._matcher is not None:
                self._matcher.fill_bitmask(mask)
                row = apply_bitmask(row, mask[0][: (len(row) + 31) // 32])
            token = int(np.argmax(row))
            if not np.isfinite(row[token]) or token in lm.eos_token_ids or not self._take(token):
                break
        return self._text[before:]
