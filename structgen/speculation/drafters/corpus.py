"""Drafts from a corpus of texts, by a static suffix automaton: the text's longest suffix is found in the
corpus, and its continuations there are copied.

Enters: texts, once; then prompts and answers. Leaves: the continuations of the text's longest suffix that
occurs in the corpus, each with its frequency. Cost: some 14 microseconds to build for each token, amortised
O(1) look-ups for each token of a text. For n tokens the automaton has at most 2 n states and 3 n transitions,
of 12 and 8 bytes each. It never changes, so texts and threads share it.

The problem. Answers repeat passages of documents, forms and earlier answers. After each token the drafter
must know the text's longest suffix that occurs anywhere in the corpus, and every continuation of this suffix.

The idea. A suffix automaton has one state for all strings that end at exactly the same places of the corpus.
A link leads from a state to the state of the next shorter suffix. `Corpus.read` follows the transition of a
token. If a state has no transition by this token, `Corpus.read` follows links to a shorter suffix that has
such a transition. With the texts `abcab` and `abd`, and characters as tokens, there are 7 states, and reading
`xab` gives:

    read    longest suffix    it occurs    continuations
    x       none              8 times      a 3, b 3, c 1
    a       a                 3 times      b 3
    b       ab                3 times      c 1, d 1

A continuation is offered with its share of the occurrences. The share is reduced if the suffix is short: here
c and d get 1 / 3.5 * 2 / 3 = 0.19 each. If a text ends behind an occurrence, the occurrence has no
continuation.

Sources: Hu et al. 2024, *SAM decoding: speculative decoding via suffix automaton*, have a static and a
dynamic automaton; this file has the static automaton, and suffix_automaton.py has the dynamic one. The
automaton of several texts is from Blumer et al. 1987. Hu et al. copy from one occurrence; here every
continuation is offered with its share.

Invariants.
- A corpus belongs to one vocabulary. Its file has the vocabulary's digest, and another vocabulary is refused.
- A file is not trusted: `_check` accepts only arrays that can be followed without an endless loop or a bad
  index.
- Transitions of a state are sorted by token, so `after` finds one by bisection.
"""

from __future__ import annotations

import json
import os
import threading
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from ..._array_file import DAMAGED, load_arrays, save_arrays, vocabulary_digest
from ..._fork import hold_over_forks
from ...errors import StructgenError
from ..base import Here, Start
from .suffix_automaton import SuffixAutomaton, SuffixCursor, SuffixLinks, SuffixSession

if TYPE_CHECKING:
    from ...vocabulary import Vocabulary

_FORMAT = 1
_OFFERED = 3  # the most continuations that a cursor offers
_LIMIT = 1 << 22  # the most tokens of a corpus by default. Building it takes a minute.

Ints = npt.NDArray[np.int32]


class Corpus(SuffixLinks):
    """All substrings of some texts. Make one with `build` or `load`; state 0 is the empty string.

    Attributes:
        states, transitions: their numbers.
        nbytes: the size of the arrays.
    """

    def __init__(self, arrays: dict[str, Ints], digest: str) -> None:
        self._arrays = arrays
        self._digest = digest
        self.states: int = len(arrays["link"])
        self.transitions: int = len(arrays["token"])
        self.nbytes: int = sum(a.nbytes for a in arrays.values())
        # Views whose items are Python's ints: reading numpy's items one by one takes five times as long.
        names = ("start", "token", "target", "link", "length", "count")
        views = (memoryview(cast(Any, arrays[name])) for name in names)
        self._start, self._token, self._target, link, length, self._count = views
        self.link: Sequence[int] = link
        self.length: Sequence[int] = length

    @staticmethod
    def build(
        texts: Iterable[str | bytes | Sequence[int]], vocabulary: Vocabulary, *, tokens: int = _LIMIT
    ) -> Corpus:
        """Reads texts, or ids of the vocabulary.

        Args:
            tokens: the most tokens of all texts together.

        Raises:
            StructgenError: the texts have more tokens.
            VocabularyError: a text has a byte that no token has.
        """
        builder = _Builder()
        for text in texts:
            ids = vocabulary.encode(text) if isinstance(text, (str, bytes)) else text
            if len(builder.text) + len(ids) > tokens:
                raise StructgenError(
                    f"the corpus has more than {tokens:,} tokens: take a part of it, or raise the limit"
                )
            if any(not 0 <= token < vocabulary.vocab_size for token in ids):
                raise StructgenError(f"the corpus has ids beyond the vocabulary of {vocabulary.vocab_size}")
            builder.add(ids)
        return Corpus(builder.arrays(), vocabulary_digest(vocabulary))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file. It appears whole or not at all."""
        meta = json.dumps({"format": _FORMAT, "kind": "corpus", "vocabulary": self._digest})
        save_arrays(path, {"meta": np.frombuffer(meta.encode(), np.uint8), **self._arrays})

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Corpus:
        """Reads a file that `save` wrote.

        Raises:
            StructgenError: the file is damaged or has another version.
        """
        os.stat(path)
        try:
            found = load_arrays(path)
            meta = json.loads(found.pop("meta").tobytes())
            if meta["kind"] != "corpus" or meta["format"] != _FORMAT:
                raise ValueError(f"it is no corpus of format {_FORMAT}")
            _check(found)
            return Corpus(found, str(meta["vocabulary"]))
        except DAMAGED as error:
            why = f": {error}" if type(error) is ValueError and "pickle" not in str(error) else ""
            raise StructgenError(f"the corpus {os.fspath(path)} is damaged{why}") from None

    def check_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Raises a StructgenError if the corpus was built with another vocabulary."""
        if vocabulary_digest(vocabulary) != self._digest:
            raise StructgenError("the corpus was built with another vocabulary: build it with this model's")

    def after(self, state: int, token: int) -> int:
        first, stop = self._start[state], self._start[state + 1]
        at = bisect_left(self._token, token, first, stop)
        return self._target[at] if at < stop and self._token[at] == token else -1

    def count(self, state: int) -> int:
        """Returns how often the strings of a state occur."""
        return self._count[state]

    def follows(self, state: int) -> list[tuple[int, int]]:
        """Returns the most frequent continuations of a state and how often each occurs, at most three."""
        first, stop = self._start[state], self._start[state + 1]
        if stop - first == 1:
            return [(self._token[first], self._count[self._target[first]])]
        counts = self._arrays["count"][self._arrays["target"][first:stop]]
        best = np.argsort(-counts, kind="stable")[:_OFFERED]
        return [(self._token[first + i], int(counts[i])) for i in best.tolist()]


class CorpusDrafter:
    """Drafts from a corpus.

    Args:
        corpus: a `Corpus`, or the name of a file: one of `Corpus.save`, a `.jsonl` file with a text in each
            line, or any other file, which is one text. Texts are read with the vocabulary of the first model.
        least: a suffix has to have so many tokens before anything is copied.

    Raises:
        StructgenError: the file is damaged; or, when a text begins, the corpus has another vocabulary.
        OSError: there is no such file.
    """

    has_distribution = False
    name = "corpus"

    def __init__(self, corpus: Corpus | str | os.PathLike[str], least: int = 2) -> None:
        if least < 1:
            raise ValueError(f"least must be at least 1, not {least}")
        self.least = least
        self._texts: list[str] | None = None
        self._corpus: Corpus | None = None
        self._lock = threading.Lock()
        hold_over_forks(self)
        if isinstance(corpus, Corpus):
            self._corpus = corpus
        elif is_corpus_file(corpus):
            self._corpus = Corpus.load(corpus)
        else:
            self._texts = texts_of(corpus)

    def open(self, start: Start) -> SuffixSession[Corpus]:
        return SuffixSession(self.prepared(start.vocabulary), _Cursor, self.least, start.prompt)

    def prepared(self, vocabulary: Vocabulary) -> Corpus:
        """Returns the corpus. It is built from its texts at the first call.

        Raises:
            StructgenError: the corpus has another vocabulary, or too many tokens.
        """
        with self._lock:
            if self._corpus is None:
                self._corpus = Corpus.build(self._texts or (), vocabulary)
                self._texts = None
            self._corpus.check_vocabulary(vocabulary)
            return self._corpus


class _Cursor(SuffixCursor[Corpus]):
    __slots__ = ()

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        total = (self.automaton.count(self.state) + 0.5) * (self.length + 1.0) / self.length
        return [(token, count / total) for token, count in self.automaton.follows(self.state)]


def is_corpus_file(path: str | os.PathLike[str]) -> bool:
    """Returns whether a file begins like a file of `Corpus.save`."""
    with open(path, "rb") as stream:
        return stream.read(4) == b"PK\x03\x04"


def texts_of(path: str | os.PathLike[str]) -> list[str]:
    """Returns the texts of a file. A `.jsonl` file has one in each line, any other file is one text.

    A line may be a string, which is the text; a record with a `text`, as `structgen generate --output` writes
    it; or any other JSON, whose compact form is the text.

    Raises:
        StructgenError: the file is empty or not UTF-8, or a line is not JSON.
        OSError: there is no such file.
    """
    name = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except ValueError as error:
        raise StructgenError(f"cannot read the corpus {name}: {error}") from None
    if not text.strip():
        raise StructgenError(f"the corpus {name} is empty")
    if not name.endswith(".jsonl"):
        return [text]
    texts = []
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines(): strings may have U+2028
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            why = getattr(error, "msg", "it is nested too deeply")
            raise StructgenError(f"line {number} of the corpus {name} is not JSON: {why}") from None
        if isinstance(found, dict) and isinstance(found.get("text"), str):
            found = found["text"]
        whole = isinstance(found, str)
        texts.append(found if whole else json.dumps(found, ensure_ascii=False, separators=(",", ":")))
    return texts


class _Builder(SuffixAutomaton):
    """The automaton while it grows. `ends`: how many prefixes of texts end in each state."""

    def __init__(self) -> None:
        super().__init__()
        self.ends = array("i", [0])

    def add(self, text: Sequence[int]) -> None:
        last = 0
        for token in text:
            last = self.extend(last, token)
            self.ends[last] += 1

    def _new(self, length: int, like: int = -1) -> int:
        self.ends.append(0)
        return super()._new(length, like)

    def arrays(self) -> dict[str, Ints]:
        link, length = (np.array(a, np.int32) for a in (self.link, self.length))
        count = np.array(self.ends, np.int64)
        for state in np.argsort(-length, kind="stable").tolist():
            if state:
                count[self.link[state]] += count[state]
        one = np.flatnonzero(np.array(self.token, np.int32) >= 0)
        more = [(state, t, v) for state, row in self.more.items() for t, v in row.items()]
        rest = np.array(more, np.int64).reshape(-1, 3)
        source = np.concatenate([one, rest[:, 0]])
        token = np.concatenate([np.array(self.token, np.int64)[one], rest[:, 1]])
        target = np.concatenate([np.array(self.target, np.int64)[one], rest[:, 2]])
        order = np.lexsort((token, source))
        start = np.searchsorted(source[order], np.arange(len(link) + 1))
        return {
            "start": start.astype(np.int32),
            "token": token[order].astype(np.int32),
            "target": target[order].astype(np.int32),
            "link": link,
            "length": length,
            "count": np.minimum(count, 2**31 - 1).astype(np.int32),
        }


def _check(arrays: dict[str, Any]) -> None:
    """Raises a ValueError if arrays are no automaton. Arrays that pass can be followed safely."""
    names = ("start", "token", "target", "link", "length", "count")
    if set(arrays) != set(names) or any(a.dtype != np.int32 or a.ndim != 1 for a in arrays.values()):
        raise ValueError("it has other arrays")
    start, token, target, link, length, count = (arrays[name] for name in names)
    states = len(link)
    if not states or len(start) != states + 1 or len(length) != states or len(count) != states:
        raise ValueError("its arrays do not fit together")
    if start[0] or (np.diff(start) < 0).any() or start[-1] != len(token) or len(token) != len(target):
        raise ValueError("its transitions do not fit together")
    source = np.repeat(np.arange(states), np.diff(start))
    if len(token) and (token.min() < 0 or target.min() < 1 or target.max() >= states):
        raise ValueError("a transition leads nowhere")
    if ((np.diff(source) == 0) & (np.diff(token) <= 0)).any() or (length[target] <= length[source]).any():
        raise ValueError("its transitions are out of order")
    if link[0] != -1 or length[0] or (link[1:] < 0).any() or (link >= states).any():
        raise ValueError("a link leads nowhere")
    if (length[link[1:]] >= length[1:]).any() or (count[1:] < 1).any():
        raise ValueError("its links are out of order")
