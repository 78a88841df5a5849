"""Drafters that copy from the prompt: prompt lookup by n-grams, and aggressive decoding along a source.

Enters: prompt and answer. Leaves: chains of prompt tokens. Cost: one dictionary entry an n-gram.

`PromptLookup` copies the tokens that followed the text's last few tokens at their first occurrence (Saxena
2023; Yang et al., LLMA, 2023). `SourceCopy` keeps a pointer into a source that the answer mostly repeats, and
finds its place again after a difference (aggressive decoding: Ge et al. 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from ..base import Cursor, DrafterSettings, Quiet, Start, Step
from .chain import Chain


@dataclass(eq=False)
class PromptLookup(DrafterSettings):
    """Copies after the longest n-gram of the text's end that occurs earlier.

    Args:
        longest: the most tokens of the n-gram.
        tokens: the number of tokens to copy.
        answers: whether to look in the answer, too. False: only in the prompt.
        latest: prefer the last occurrence. False: prefer the first, as transformers does.
    """

    has_distribution = False
    name = "prompt lookup"

    longest: int = 3
    tokens: int = 10
    _: KW_ONLY
    answers: bool = True
    latest: bool = True

    def open(self, start: Start) -> _Lookup:
        return _Lookup(self, start.prompt)


class _Lookup(Quiet):
    def __init__(self, drafter: PromptLookup, prompt: Sequence[int]) -> None:
        self._drafter = drafter
        self._text: list[int] = []
        # n-gram -> the place of its continuation
        self._places: dict[tuple[int, ...], int] = {}
        self._prompt = len(prompt)
        self._read(prompt)

    def _read(self, tokens: Sequence[int]) -> None:
        drafter, text, places = self._drafter, self._text, self._places
        for token in tokens:
            # The n-grams that end before this token enter the index only now. Otherwise the n-gram at the end
            # of the text would find itself.
            if drafter.answers or len(text) < self._prompt:
                for n in range(1, min(drafter.longest, len(text)) + 1):
                    gram = tuple(text[-n:])
                    if drafter.latest:
                        places[gram] = len(text)
                    else:
                        places.setdefault(gram, len(text))
            text.append(token)

    def accept(self, step: Step) -> None:
        self._read(step.tokens)

    def cursor(self) -> Cursor | None:
        text = self._text
        for n in range(min(self._drafter.longest, len(text)), 0, -1):
            place = self._places.get(tuple(text[-n:]))
            if place is not None:
                return Chain(text[place : place + self._drafter.tokens], n / (n + 1.0))
        return None


@dataclass(eq=False)
class SourceCopy(DrafterSettings):
    """Copies along a source: the prompt, or the ids of `source`.

    Args:
        source: ids that the answer probably repeats in part; None takes the prompt.
        tokens: the number of tokens to copy at once.
        again: the number of tokens that must agree to find the place again after a difference.
    """

    has_distribution = False
    name = "source copy"

    source: Sequence[int] | None = None
    tokens: int = 16
    again: int = 2

    def open(self, start: Start) -> _Copy:
        return _Copy(self, list(start.prompt if self.source is None else self.source))


class _Copy(Quiet):
    def __init__(self, drafter: SourceCopy, source: list[int]) -> None:
        self._drafter = drafter
        self._source = source
        self._at = 0 if drafter.source is not None else len(source)
        self._recent: list[int] = []
        self._agreed = 0
        self._places: dict[tuple[int, ...], list[int]] = {}
        n = drafter.again
        for end in range(n, len(source)):
            self._places.setdefault(tuple(source[end - n : end]), []).append(end)

    def accept(self, step: Step) -> None:
        for token in step.tokens:
            self._recent = [*self._recent[1 - self._drafter.again :], token][-self._drafter.again :]
            if self._at < len(self._source) and self._source[self._at] == token:
                self._at += 1
                self._agreed += 1
                continue
            self._agreed = 0
            places = self._places.get(tuple(self._recent), ())
            # Takes the next occurrence behind the old place, because copies rarely go back.
            later = [p for p in places if p > self._at]
            if places:
                self._at = later[0] if later else places[0]

    def cursor(self) -> Cursor | None:
        part = self._source[self._at : self._at + self._drafter.tokens]
        return Chain(part, (self._agreed + 1.0) / (self._agreed + 2.0)) if part else None
