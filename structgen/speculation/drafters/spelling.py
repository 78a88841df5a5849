"""A text in the tokens of a draft model that has another vocabulary.

Enters: the prompt as text, then tokens of the target. Leaves: contexts of the draft model. Cost: a look-up a
token; a token that the draft model does not have is spelled in its tokens, once.

Each token of the target is spelled by itself, so a context grows with the text and is never read again. A
tokenizer might have cut the whole text elsewhere: drafts are then a little worse, and no less lossless.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import VocabularyError
from ...lm.base import LanguageModelError
from ..base import Quiet, Start, Step
from .model_cursor import ModelCursor, Reader

if TYPE_CHECKING:
    from ...lm.base import Context, LanguageModel
    from ...vocabulary import Vocabulary

__all__ = ["SpelledSession", "Spelling"]


class Spelling:
    """From ids of the target to ids of the draft model. Thread-safe: what is found twice is found equal."""

    def __init__(self, lm: LanguageModel, target: Vocabulary) -> None:
        self.lm = lm
        self.target = target
        self._found: dict[int, Sequence[int] | None] = {}

    def ids(self, token: int) -> Sequence[int] | None:
        """The draft model's ids of one token; None: it cannot spell it."""
        if token not in self._found:
            text = self.target.tokens[token]
            try:
                self._found[token] = self.lm.vocabulary.encode(text) or None
            except VocabularyError:
                self._found[token] = None
        return self._found[token]

    def start(self, start: Start) -> Context | None:
        """The context of the prompt; None: the draft model cannot read it."""
        text = self.target.decode(start.prompt) if start.text is None else start.text
        try:
            prompt: Any = text if isinstance(text, str) else self.lm.vocabulary.encode(text)
            return self.lm.start(prompt) if prompt else None
        except (VocabularyError, LanguageModelError):
            return None

    def after(self, context: Context, token: int) -> Context | None:
        """The context behind a token of the target."""
        ids = self.ids(token)
        if ids is None:
            return None
        for own in ids:
            context = context.extend(own)
        return context

    def readable(self, context: Context) -> bool:
        """Whether the model has positions for the next token."""
        return self.lm.max_context is None or len(context) <= self.lm.max_context


class SpelledSession(Quiet):
    """A text that a draft model follows in its own tokens; a text that it cannot spell gets no drafts."""

    def __init__(self, reader: Reader, spelling: Spelling, start: Start, width: int) -> None:
        self._reader = reader
        self._start = start
        self._width = width
        self._context = spelling.start(start)

    def accept(self, step: Step) -> None:
        for token in step.tokens:
            if self._context is None:
                return
            self._context = self._reader.after(self._context, token)

    def cursor(self) -> ModelCursor | None:
        if self._context is None:
            return None
        return ModelCursor(self._reader, self._start, self._width, self._context)
