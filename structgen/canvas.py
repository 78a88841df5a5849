"""A canvas: a row of token slots that is filled in any order, and what may stand in each slot.

Enters: a grammar, a number of slots, tokens. Leaves: True, False or None for a token in a slot, rows of a
bitmask, tokens for the slots that are left. The core does the work (``csrc/holes/canvas.h``). Cost: see
`Canvas`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import _core
from ._checks import one_of, whole
from .errors import StructgenError, UnsatisfiableBudget
from .holes import hole_text

if TYPE_CHECKING:
    from .grammar import CompiledGrammar
    from .vocabulary import Vocabulary


def _verdict(told: int) -> bool | None:
    return None if told < 0 else told == 1


def _index(what: str, value: Any) -> int:
    return whole(f"canvas: a {what}", value, None)


class Canvas:
    """Token slots of one text, filled in any order (`CompiledGrammar.canvas`).

    ``allows`` returns True if tokens for the other masked slots exist with which the text belongs to the
    grammar. So a canvas whose tokens were all allowed can always be completed. False means that no such
    tokens exist, which is proved. None means that a limit was met, or that the answer depends on repeated
    texts in the other slots. A check that ends in None counts in ``unknown``, and its token is never set.

    Cost: a check reads on from its slot until it meets a result of an earlier check, one look-up a slot. The
    first checks of a grammar make tables, with a walk of the vocabulary for each terminal. A canvas belongs
    to one thread at a time. ``fork`` copies it.
    """

    __slots__ = ("_core", "_grammar")

    def __init__(self, core: _core.Canvas, grammar: CompiledGrammar) -> None:
        self._core = core
        self._grammar = grammar

    @property
    def grammar(self) -> CompiledGrammar:
        return self._grammar

    @property
    def vocabulary(self) -> Vocabulary:
        return self._grammar.vocabulary

    @property
    def tokens(self) -> list[int | None]:
        """The token of each slot; None where it is masked."""
        return [None if t < 0 else t for t in self._core.tokens]

    @property
    def masked(self) -> list[int]:
        """The slots that have no token yet."""
        return [i for i, t in enumerate(self._core.tokens) if t < 0]

    @property
    def asked(self) -> int:
        """The number of checks that `allows`, `commit`, `set` and `select` have made."""
        return self._core.asked

    @property
    def unknown(self) -> int:
        """The number of checks that ended in None."""
        return self._core.unknown

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        return f"<Canvas: {len(self) - len(self.masked)} of {len(self)} slots filled>"

    def possible(self) -> bool | None:
        """Returns whether the masked slots can be filled. It stays True while only allowed tokens are set."""
        return _verdict(self._core.possible())

    def allows(self, slot: int, token: int) -> bool | None:
        """Returns whether a token may stand in a slot; None if that was not decided (see the class). If the
        slot has a token already, that token does not count.

        Raises:
            ValueError: no such slot, or a token outside the vocabulary.
        """
        return _verdict(self._core.allows(_index("slot", slot), _index("token", token)))

    def commit(self, slot: int, token: int) -> bool | None:
        """Puts a token into a slot if `allows` says True; returns what it says.

        Raises:
            ValueError: no such slot, or a token outside the vocabulary.
        """
        return _verdict(self._core.set(_index("slot", slot), _index("token", token), False))

    def set(self, slot: int, token: int, *, force: bool = False) -> None:
        """Puts a token into a slot.

        Args:
            force: sets the token without a check. The canvas may then have no completion.

        Raises:
            ValueError: the token is forbidden there, or the check ended in None.
        """
        if force:
            self._core.set(_index("slot", slot), _index("token", token), True)
            return
        told = self.commit(slot, token)
        if not told:
            why = "is not allowed" if told is False else "was not decided within the limit of work"
            raise ValueError(f"canvas: token {token} {why} in slot {slot}")

    def clear(self, slot: int) -> None:
        """Masks a slot again. Every filling that was possible stays possible."""
        self._core.clear(_index("slot", slot))

    def select(self, candidates: Iterable[tuple[int, int]]) -> list[bool]:
        """Commits each (slot, token) pair, in this order, if the canvas can still be completed afterwards.

        Returns:
            For each pair whether it was committed. A pair for a slot that has a token is not.
        """
        out = []
        taken = self._core.tokens
        for slot, token in candidates:
            filled = 0 <= _index("slot", slot) < len(taken) and taken[slot] >= 0
            out.append(not filled and self.commit(slot, token) is True)
            if out[-1]:
                taken[slot] = token
        return out

    def fill_bitmask(self, mask: Any, slot: int, row: int = 0) -> bool:
        """Writes the tokens that a slot allows into a row of a bitmask (`allocate_bitmask`).

        Returns:
            True if the row has all allowed tokens. False if tokens whose check ended in None were left out.
        """
        return bool(self._core.fill(mask, _index("slot", slot), _index("row", row)))

    def complete(self, logprobs: Any = None) -> list[int]:
        """Returns tokens for all slots. Set tokens stay, and the others make the row a text of the grammar.

        Args:
            logprobs: scores of shape (slots, vocabulary). Slots are then filled from left to right, each with
                the best token that it allows. This is greedy, so the filling need not be the best one.
                Without scores the result is the first filling found.

        Raises:
            ValueError: no filling exists, or the search found none within the limits.
        """
        core = self._core
        if logprobs is not None:
            filled = self.fork()
            scores = np.asarray(logprobs, dtype=np.float32)
            if scores.ndim != 2 or scores.shape[0] != len(self):
                raise ValueError(f"complete: logprobs have a row a slot ({len(self)}), not {scores.shape}")
            for slot in self.masked:
                filled._best(slot, scores[slot])
            core = filled._core
        told, tokens = core.complete()
        if told != 1:
            why = (
                "no text of the grammar fits"
                if told == 0
                else "no text that fits was found within the limits"
            )
            raise ValueError(f"canvas: {why} the slots")
        return list(tokens)

    def _best(self, slot: int, scores: np.ndarray) -> None:
        """Sets the token of the highest score that is allowed, if one of the first hundred is."""
        most = min(len(scores), 100)
        order = np.argpartition(-scores, most - 1)[:most]
        for token in order[np.argsort(-scores[order])]:
            if int(token) < self.vocabulary.vocab_size and self.commit(slot, int(token)):
                return

    def text(self, tokens: Sequence[int] | None = None) -> bytes:
        """Returns the text of these tokens, or of the row that `complete` gives. The end token adds no
        text."""
        row = self.complete() if tokens is None else list(tokens)
        ends = set(self.vocabulary.eos_token_ids)
        stop = next((i for i, t in enumerate(row) if t in ends), len(row))
        return self.vocabulary.decode(row[:stop])

    def fork(self) -> Canvas:
        """Returns an independent copy."""
        return Canvas(self._core.fork(), self._grammar)


def made(
    grammar: CompiledGrammar,
    slots: int,
    prefix: str | bytes,
    after: Literal["end", "open"],
    pad: int | None,
) -> Canvas:
    """`CompiledGrammar.canvas`."""
    one_of("canvas: after", after, ("end", "open"))
    n = whole("canvas: slots", slots, 0)
    if pad is not None:
        pad = whole("canvas: pad", pad, None)
    before = hole_text(prefix, "the prefix")
    out = Canvas(_core.Canvas(grammar._fresh(), n, before, after == "open", pad), grammar)
    if out.possible() is False:
        least = _least(grammar, before)
        shown = f"; the shortest text takes {least}" if least is not None and least > n else ""
        what = "no text of the grammar fits" if after == "end" else "no beginning of a text fits"
        raise UnsatisfiableBudget(f"canvas: {what} {n} slots{shown}")
    return out


def _least(grammar: CompiledGrammar, prefix: bytes) -> int | None:
    """Returns the least number of tokens that complete a text behind a prefix, without the end token."""
    try:
        matcher = grammar.matcher()
        return matcher.tokens_needed() - 1 if matcher.accept_bytes(prefix) else None
    except StructgenError:
        return None
