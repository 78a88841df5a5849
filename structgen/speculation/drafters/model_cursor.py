"""A cursor over a model's distributions, whatever the model's vocabulary: for trees and for sampled drafts.

Enters: a `Reader`, which knows the model's log-probabilities in the target's ids. Leaves: offers with the
noise of the target's draws, or the distribution that drafts are to be drawn from, both under the grammar's
mask. Cost: a row of the reader and a mask a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from ..._checks import whole
from ..._draws import scaled
from ...logits import allocate_bitmask, apply_bitmask
from ..base import Here, Start, Vector
from .ranking import ranked

if TYPE_CHECKING:
    from ...lm.base import Context, LanguageModel

Ids = npt.NDArray[np.int64]


class ModelDrafter:
    """The base of drafters by a model, with `width` children for each node and a name for statistics."""

    def __init__(self, lm: LanguageModel, width: int, name: str) -> None:
        self.lm = lm
        self.width: int = whole("width", width, 1)
        self.name = name

    @property
    def waits(self) -> bool:
        """Whether the model computes elsewhere. Then this thread's processor time does not measure its
        cost."""
        return not getattr(self.lm, "runs_here", False)


class Reader(Protocol):
    """A draft model that is read in the target's vocabulary. The reader chooses the type of its places."""

    def row(self, place: Any) -> Vector | None:
        """Returns log-probabilities of the target's tokens, shape (V,), float32, -inf where there is none.
        They need not be normalised. Returns None if nothing is known here."""
        ...

    def after(self, place: Any, token: int) -> Any | None:
        """Returns the place behind a token of the target, or None if the model cannot read the token."""
        ...


def row_of(lm: LanguageModel, context: Context) -> Vector | None:
    """Returns the `row` of a reader for a model with the target's vocabulary; such a reader's `after` is
    `Context.extend`."""
    if lm.max_context is not None and len(context) > lm.max_context:
        return None
    found: Vector = lm.logprobs([context])[0]
    return found


class ModelCursor:
    """A cursor at a reader's place. It offers `width` children at each node."""

    __slots__ = ("_place", "_reader", "_start", "_width")

    def __init__(self, reader: Reader, start: Start, width: int, place: Any) -> None:
        self._reader = reader
        self._start = start
        self._width = width
        self._place = place

    def children(self, here: Here) -> Sequence[tuple[int, float]]:
        found, start = self._masked(here), self._start
        if found is None:
            return ()
        ids, logprobs = found
        return ranked(ids, logprobs, start.temperature, start.noise, here.position, self._width)

    def distribution(self, here: Here) -> tuple[Ids, npt.NDArray[np.float64]] | None:
        """Returns allowed ids and their probabilities at the target's temperature, to sample drafts from."""
        found = self._masked(here)
        if found is None:
            return None
        scores = scaled(found[1], self._start.temperature)
        weights = np.exp(scores - scores.max())
        return found[0], weights / weights.sum()

    def _masked(self, here: Here) -> tuple[Ids, Vector] | None:
        """Returns the allowed ids and their log-probabilities, normalised over them."""
        row = self._reader.row(self._place)
        if row is None:
            return None
        if here.matcher is not None:
            mask = allocate_bitmask(1, self._start.vocabulary.vocab_size)
            here.matcher.fill_bitmask(mask)
            row = apply_bitmask(row, mask[0])
        ids = np.flatnonzero(row > -np.inf)
        if not len(ids):
            return None
        wide = row[ids].astype(np.float64)
        wide -= wide.max()
        return ids, (wide - np.log(np.exp(wide).sum())).astype(np.float32)

    def step(self, token: int) -> ModelCursor | None:
        place = self._reader.after(self._place, token)
        return None if place is None else ModelCursor(self._reader, self._start, self._width, place)
