"""Spells a text in the tokens of a draft model with another vocabulary.

Enters: the prompt as text, then tokens of the target. Leaves: places. A place is a context of the draft
model, and the last bytes of the text, which are not in the context. Cost: an encoding of some bytes for each
token; encodings are remembered.

A token of the target may end inside a token of the draft model. So the draft model's last token is held back:
a place keeps its bytes, and they are encoded again together with the next text. The draft model's own
tokenizer might cut the whole text differently. This affects how good a draft is, and never the law.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...errors import VocabularyError
from ...lm.base import LanguageModelError
from ..base import Quiet, Start, Step
from .model_cursor import ModelCursor, ModelDrafter, Reader

if TYPE_CHECKING:
    from ...lm.base import Context, LanguageModel
    from ...vocabulary import Vocabulary

_KEPT = 1 << 14  # the most pieces of text whose ids are kept

# A context of the draft model and the bytes behind it.
Place = tuple["Context", bytes]


class SpelledDrafter(ModelDrafter):
    """The base of drafters by a model of another vocabulary.

    Args:
        read: makes the reader for a target's vocabulary. The reader is kept for the next text.
    """

    def __init__(
        self, lm: LanguageModel, width: int, name: str, read: Callable[[Vocabulary], SpelledReader]
    ) -> None:
        super().__init__(lm, width, name)
        self._read = read
        self._reader: SpelledReader | None = None

    def open(self, start: Start) -> SpelledSession:
        reader = self._reader
        if reader is None or reader.spelling.target is not start.vocabulary:
            reader = self._reader = self._read(start.vocabulary)
        return SpelledSession(reader, reader.spelling, start, self.width)


class SpelledReader(Reader, Protocol):
    """A reader whose places are the places of `Spelling`."""

    spelling: Spelling


class Spelling:
    """Turns ids of the target into ids of the draft model. Thread-safe: every thread finds the same ids."""

    def __init__(self, lm: LanguageModel, target: Vocabulary) -> None:
        self.lm = lm
        self.target = target
        self._found: dict[bytes, Sequence[int]] = {}

    def ids(self, text: bytes) -> Sequence[int] | None:
        """Returns the draft model's ids for a piece of text; None if the model cannot spell it."""
        if text not in self._found:
            if len(self._found) >= _KEPT:
                self._found.clear()
            try:
                self._found[text] = self.lm.vocabulary.encode(text)
            except VocabularyError:
                return None
        return self._found[text]

    def start(self, start: Start) -> Place | None:
        """Returns the place behind the prompt, or None if the draft model cannot read the prompt."""
        text = self.target.decode(start.prompt) if start.text is None else start.text
        try:
            prompt: Any = text if isinstance(text, str) else self.lm.vocabulary.encode(text)
            return (self.lm.start(prompt), b"") if prompt else None
        except (VocabularyError, LanguageModelError):
            return None

    def after(self, place: Place, token: int) -> Place | None:
        """Returns the place behind a token of the target, or None if the draft model cannot spell the
        token."""
        context, rest = place
        text = self.target.tokens[token]
        ids = self.ids(rest + text)
        if not text or not ids:
            return None
        return extended(context, ids[:-1]), self.lm.vocabulary.tokens[ids[-1]]

    def whole(self, place: Place) -> Context | None:
        """Returns the draft model's context for the whole text, or None if the text is longer than the model
        reads."""
        context = extended(place[0], self.ids(place[1]) or ())
        return context if self.readable(context) else None

    def readable(self, context: Context) -> bool:
        """Returns whether the model has positions for the next token."""
        return self.lm.max_context is None or len(context) <= self.lm.max_context


def extended(context: Context, ids: Sequence[int]) -> Context:
    for token in ids:
        context = context.extend(token)
    return context


class SpelledSession(Quiet):
    """A draft model's session on a text, in the draft model's own tokens. A text that it cannot spell gets no
    drafts."""

    def __init__(self, reader: Reader, spelling: Spelling, start: Start, width: int) -> None:
        self._reader = reader
        self._start = start
        self._width = width
        self._place = spelling.start(start)

    def accept(self, step: Step) -> None:
        for token in step.tokens:
            if self._place is None:
                return
            self._place = self._reader.after(self._place, token)

    def cursor(self) -> ModelCursor | None:
        if self._place is None:
            return None
        return ModelCursor(self._reader, self._start, self._width, self._place)
