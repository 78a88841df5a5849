"""An unbiased mean of estimates of Z, for runs whose end depends on the estimates.

Enters: before each draw, the expected number of further draws; after it, an estimate of Z. Leaves: the log of
the weighted mean of the estimates. Cost: none.

Each draw i gives an estimate X_i with E[X_i | everything before it] = Z. Their plain mean over a random
number N of draws is biased if N depends on the estimates: a run that ends with its n-th accepted text always
ends on a large X_i. Here draw i has a share a_i of the whole, fixed before the draw. A draw that may be the
last one gets the rest. The shares of a run then add up to 1, and

    E[ sum over i <= N of a_i X_i ] = Z E[ sum over i <= N of a_i ] = Z

because a_i 1[N >= i] is known before draw i (optional stopping of the martingale of a_i (X_i - Z)). For
trials with one fixed probability that end at the n-th success, the estimate (n - 1)/(N - 1) of inverse
sampling (Haldane 1945, Biometrika 33; Girshick, Mosteller and Savage 1946 for other rules) has a smaller
variance, but is unbiased only if this probability is fixed. Here the probability changes as bounds are
learned, and a run may end for other reasons.

So if a run can end at its first draw (one accepted text is wanted), its estimate rests on that draw alone. A
run whose bracket became tight makes one draw more, which gets the rest of the shares; its estimate is precise
by then.
"""

from __future__ import annotations

import math

from .logspace import NEVER, logsumexp


class Evidence:
    """The shares and the estimates of one run."""

    __slots__ = ("_left", "_share", "_terms")

    def __init__(self) -> None:
        self._left = 1.0
        self._share = 0.0
        self._terms: list[float] = []

    def plan(self, more: float) -> None:
        """Fixes the share of the next draw. `more` is the expected number of draws from this one on; it is
        1 if this draw may be the last."""
        self._share = self._left if more <= 1.0 else self._left / more
        self._left -= self._share

    def add(self, *log_parts: float) -> None:
        """Adds the estimate of the draw for which `plan` was called last: the sum of exp(part)."""
        if self._share > 0.0:
            self._terms += [math.log(self._share) + part for part in log_parts if part > NEVER]

    @property
    def log_mean(self) -> float:
        """The log of the estimate of Z; -inf if the estimate is 0."""
        return logsumexp(self._terms)
