"""The target's own draws along a draft tree: coupled verification.

Enters: the scores of a tree, the matcher at its root, the noise of the places. Leaves: the tokens that plain
decoding would have drawn there, as far as the tree goes, and one more. Cost: a draw for each emitted token.
Masks are computed for visited nodes only, and only where a membership check does not suffice.

At each node the target draws its token y from its own masked distribution. If y labels a child, verification
goes on there; if not, y is emitted and the rest of the tree is forgotten. The draft does not influence the
draw, so the text follows the law of plain decoding, whatever was drafted; with noise that depends on the
place alone the text is the *same* (Gumbel-max coupling). A draft tree depends on the past alone. For such
trees this rule accepts as often as any rule that knows only the tokens of the tree: with the probability of
the children.

Some masks are avoided: tokens are tried in the order of their scores, and the first token that the matcher
accepts is the draw. The method is exact for greedy draws and for draws with a temperature. It is exact for
top-k while fewer than k tokens have a better score. With top-p the sum over all allowed tokens is needed, so
the mask is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .._draws import Noise, Shape, draw, scaled
from ..errors import BudgetExceeded, StructgenError
from ..logits import allocate_bitmask, allowed_ids, apply_bitmask

if TYPE_CHECKING:
    from ..matcher import Matcher
    from .base import Vector
    from .score import Scores
    from .statistics import Statistics

# After so many membership checks the mask is cheaper.
_TRIES = 4


class Drawer:
    """Draws tokens of one text and moves its matcher.

    Args:
        matcher: at the end of the text; None for free text.
        how: temperature, top-k, top-p.
        noise: None for greedy.
        ends: end-of-sequence ids.
        lazy: try membership before the mask where that is exact.
        restricted: compute only allowed rows of the head, for masks of at most this many tokens.
    """

    def __init__(
        self,
        matcher: Matcher | None,
        how: Shape,
        noise: Noise | None,
        ends: frozenset[int],
        vocab_size: int,
        statistics: Statistics,
        *,
        lazy: bool = True,
        restricted: int = 0,
    ) -> None:
        self._matcher = matcher
        self._how = how
        self._noise = noise
        self._ends = ends
        self._stats = statistics
        self._lazy = lazy and how.top_p is None
        self._restricted = restricted
        self._size = vocab_size
        self._mask = allocate_bitmask(1, vocab_size)
        self.done: bool = False

    def draw(
        self,
        scores: Scores,
        place: int,
        position: int,
        budget: int | None,
        mask: npt.NDArray[np.int32] | None = None,
    ) -> int:
        """Returns the token of a node; the matcher has accepted it when this returns.

        Args:
            place: the place of the node in `scores`.
            position: tokens of the answer before it.
            budget: tokens left, this one included; None: no completion is promised.
            mask: the mask of the place if it is known already.

        Raises:
            UnsatisfiableBudget: the text cannot be completed within the budget.
        """
        matcher = self._matcher
        if matcher is None:
            token = draw(scores.vector(place), self._how, self._noise, position)
            self.done = token in self._ends
            return token
        # The first place always gets its mask, because this mask shows whether the budget can be met.
        if mask is None and self._lazy and not self._restricted and (budget is None or position):
            found = self._scan(matcher, scores.vector(place), position, budget)
            if found is not None:
                self.done = matcher.is_terminated()
                return found
        if mask is None:
            mask = self._mask[0]
            self._stats.masks += 1
            matcher.fill_bitmask(mask, max_tokens=budget)
        if self._restricted:
            token = self._few(scores, place, position, mask)
        else:
            row = apply_bitmask(scores.vector(place), mask)
            token = draw(row, self._how, self._noise, position)
        if not matcher.accept_token(token):
            raise StructgenError(f"token {token} was allowed and then refused: this is a bug in structgen")
        self.done = matcher.is_terminated()
        return token

    def _scan(self, matcher: Matcher, vector: Vector, position: int, budget: int | None) -> int | None:
        """Draws without a mask, and accepts the token. None if no token was found within the first few."""
        how = self._how
        scores: npt.NDArray[np.floating]
        if self._noise is None:
            scores = vector
        else:
            scores = scaled(vector, how.temperature) + self._noise.gumbel(position, len(vector))
        for attempt in range(_TRIES):
            token = int(np.argmax(scores))
            if not np.isfinite(scores[token]):
                return None
            if how.top_k is not None and int((vector >= vector[token]).sum()) > how.top_k:
                return None
            accepted = self._accepts(matcher, token, budget)
            if accepted:
                return token
            if accepted is None:
                return None
            if attempt == 0 and scores is vector:
                scores = vector.copy()
            scores[token] = -np.inf
        return None

    def _accepts(self, matcher: Matcher, token: int, budget: int | None) -> bool | None:
        """Accepts a token if the mask under its budget allows the token. None if only the mask can tell."""
        self._stats.checks += 1
        if not matcher.accept_token(token):
            return False
        if budget is None or matcher.is_terminated():
            return True
        try:
            fits: bool | None = matcher._core.fits(budget - 1)
        except BudgetExceeded:
            fits = None
        if not fits:
            matcher.rollback(1)
        return fits

    def _few(self, scores: Scores, place: int, position: int, mask: npt.NDArray[np.int32]) -> int:
        """Draws from the scores of the allowed tokens alone, or from the whole vector if many tokens are
        allowed."""
        ids = allowed_ids(mask, self._size)
        if len(ids) > self._restricted:
            row = apply_bitmask(scores.vector(place), mask)
            self._stats.head_rows += self._size
            return draw(row, self._how, self._noise, position)
        self._stats.head_rows += len(ids)
        row = np.full(self._size, -np.inf, np.float32)
        row[ids] = scores.some(place, ids)
        return draw(row, self._how, self._noise, position)
