"""The masks of a text that was generated before, from its token ids alone.

Enters: a compiled grammar and the ids of a text. Leaves: for each token the mask in front of it.
Cost: a token takes a step and a look into a table; a parse state that the text meets first takes its mask
and a hash of V/8 bytes. Memory: V/8 bytes for each distinct mask and 4 bytes for each token.

A generating server need not send masks, because grammar and text determine them. A text of 10,000 tokens of
JSON meets some dozens of distinct masks. So `Masks` keeps each distinct mask once, and a number for each
token. `bitmask()` expands them.

The masks are those of `Matcher.fill_bitmask` without `max_tokens`. A text that was generated under a budget
met smaller masks near its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import StructgenError
from ..grammar import CompiledGrammar
from ..matcher import Matcher, cpu_count

_Words = npt.NDArray[np.int32]
TokenIds = Sequence[int] | npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Masks:
    """The masks in front of each of n tokens.

    Attributes:
        rows: int32, shape (distinct, ceil(V/32)): the masks, each once, as `allocate_bitmask` makes them.
        of: int32, shape (n,): token i was drawn under `rows[of[i]]`.
        vocab_size: V.
    """

    rows: _Words
    of: _Words
    vocab_size: int

    def __len__(self) -> int:
        return len(self.of)

    def bitmask(self) -> _Words:
        """Returns int32, shape (n, ceil(V/32)): one row a token. Costs a copy of V/8 bytes a token."""
        return self.rows[self.of]

    def csr(self) -> tuple[npt.NDArray[np.int64], _Words]:
        """Returns the distinct masks as lists: `ids[starts[r]:starts[r + 1]]` are the ids of `rows[r]`,
        ascending.

        Returns:
            starts: int64, shape (distinct + 1,). ids: int32, as many as bits are set.
        """
        lists = [np.flatnonzero(_bits(row)[: self.vocab_size]).astype(np.int32) for row in self.rows]
        starts = np.zeros(len(lists) + 1, np.int64)
        np.cumsum([len(ids) for ids in lists], out=starts[1:])
        return starts, np.concatenate(lists) if lists else np.zeros(0, np.int32)

    def merged(self, kept: Any) -> Masks:
        """Returns the masks without the tokens that a sampler removed by top-k or top-p.

        Args:
            kept: what the sampler kept, one row a token. Either int32 words of shape (n, ceil(V/32)), or a
                list of n arrays of ids. An id of -1 is padding.

        Raises:
            ValueError: not n rows, words of another width, ids outside the vocabulary, or a row that keeps
                none of the allowed tokens; the place is named.
        """
        if len(kept) != len(self):
            raise ValueError(
                f"the sampler kept tokens of {len(kept)} rows, and the text has {len(self)} tokens"
            )
        words = self.rows.shape[1]
        if isinstance(kept, np.ndarray) and kept.dtype == np.int32 and kept.shape == (len(self), words):
            cut = kept & self.bitmask()
        else:
            cut = np.zeros((len(self), words), np.int32)
            for i, ids in enumerate(kept):
                chosen = np.asarray(ids)
                if chosen.ndim != 1 or not np.issubdtype(chosen.dtype, np.integer):
                    raise ValueError(f"row {i} of what the sampler kept is no list of ids")
                chosen = chosen[chosen != -1]
                if chosen.size and not 0 <= chosen.min() <= chosen.max() < self.vocab_size:
                    raise ValueError(f"row {i} keeps an id outside 0..{self.vocab_size - 1}")
                np.bitwise_or.at(
                    cut[i].view(np.uint32), chosen // 32, np.uint32(1) << (chosen % 32).astype(np.uint32)
                )
            cut &= self.bitmask()
        empty = np.flatnonzero(~cut.any(axis=1))
        if empty.size:
            raise ValueError(f"row {empty[0]} keeps none of the tokens that the grammar allows")
        rows, of = np.unique(cut, axis=0, return_inverse=True)
        return Masks(rows, of.reshape(-1).astype(np.int32), self.vocab_size)


def replay(grammar: CompiledGrammar, token_ids: TokenIds, *, max_bytes: int = 1 << 30) -> Masks:
    """Returns the mask in front of each token of a text.

    Args:
        grammar: the grammar of the text.
        token_ids: the answer's ids, n of them: a sequence, an array or a tensor on the CPU. The prompt does
            not belong to them; the end-of-sequence token does where it was drawn.
        max_bytes: the most bytes of the distinct masks, V/8 bytes each.

    Raises:
        ValueError: the grammar refuses a token; its place, id and bytes are named.
        TypeError: `token_ids` are no ids, or `grammar` is not compiled.
        BudgetExceeded: the distinct masks take more than `max_bytes`; and what `fill_bitmask` raises.
    """
    if not isinstance(grammar, CompiledGrammar):
        raise TypeError(
            f"grammar is a CompiledGrammar, as Compiler.json_schema makes it, not {grammar!r:.60}"
        )
    return _replayed(grammar.matcher(), token_ids, max_bytes)


def replay_many(
    grammars: CompiledGrammar | Sequence[CompiledGrammar],
    texts: Sequence[TokenIds],
    *,
    threads: int = 0,
    max_bytes: int = 1 << 30,
) -> list[Masks]:
    """`replay` of many texts over threads, with the GIL released.

    Args:
        grammars: one for all texts, or one for each.
        texts: the ids of each text.
        threads: 0 takes one for each processor, up to 8.
        max_bytes: as in `replay`, for each text.

    Raises:
        The error that `replay` raises; a note names the text.
    """
    each = [grammars] * len(texts) if isinstance(grammars, CompiledGrammar) else list(grammars)
    if len(each) != len(texts):
        raise ValueError(f"{len(each)} grammars for {len(texts)} texts")

    def one(place: int) -> Masks:
        try:
            return replay(each[place], texts[place], max_bytes=max_bytes)
        except (StructgenError, TypeError, ValueError) as error:
            error.add_note(f"text {place} of {len(texts)}")
            raise

    with ThreadPoolExecutor(threads if threads > 0 else cpu_count()) as pool:
        return list(pool.map(one, range(len(texts))))


def _replayed(matcher: Matcher, token_ids: Any, max_bytes: int) -> Masks:
    ids = _ids(token_ids)
    vocabulary = matcher.grammar.vocabulary
    words = (vocabulary.vocab_size + 31) // 32
    if not ids.size:
        return Masks(np.zeros((0, words), np.int32), ids, vocabulary.vocab_size)
    of = ids.copy()
    read, raw = matcher._core.replay(of, max(0, max_bytes))
    if read < ids.size:
        raise ValueError(_refused(matcher, token_ids, ids, read))
    return Masks(np.frombuffer(raw, np.int32).reshape(-1, words), of, vocabulary.vocab_size)


def _refused(matcher: Matcher, given: Any, ids: _Words, place: int) -> str:
    token, vocabulary = int(given[place]), matcher.grammar.vocabulary
    if not 0 <= token < vocabulary.vocab_size:
        return f"token {place} has the id {token}, and the vocabulary has {vocabulary.vocab_size}"
    text, before = vocabulary.decode([token]), vocabulary.decode(ids[:place].tolist())
    return (
        f"the grammar refuses token {place} (id {token}, {text!r:.60}) after {before[-40:]!r}; "
        "give the ids of the answer alone, with the grammar that it was written under"
    )


def _ids(token_ids: Any) -> _Words:
    """Returns int32, shape (n,). An id that does not fit becomes -1, which no grammar takes."""
    found = np.asarray(token_ids)
    if found.ndim != 1 or (found.size and not np.issubdtype(found.dtype, np.integer)):
        raise TypeError(f"token ids are one list of numbers, not {token_ids!r:.60}")
    fits = (found >= 0) & (found < 1 << 31)
    return np.where(fits, found, -1).astype(np.int32)


def _bits(words: _Words) -> npt.NDArray[np.uint8]:
    return np.unpackbits(words.astype("<i4").view(np.uint8), bitorder="little")
