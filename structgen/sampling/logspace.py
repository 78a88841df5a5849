"""Arithmetic on logarithms of weights, in double precision.

Enters: natural logs, -inf for zero. Leaves: logs, normalised weights, effective sample sizes. Cost: one pass.
Every function subtracts the maximum first, so no exponential under- or overflows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

NEVER = -math.inf


def logsumexp(values: Doubles | Sequence[float]) -> float:
    """Returns the log of the sum of exp(values); -inf for an empty sequence or one of -inf alone."""
    array = np.asarray(values, np.float64)
    if not array.size:
        return NEVER
    top = float(array.max())
    if not math.isfinite(top):
        return top
    return top + math.log(float(np.exp(array - top).sum()))


def normalised(log_weights: Doubles | Sequence[float]) -> Doubles:
    """Returns weights that sum to 1. All are zero if every log weight is -inf."""
    array = np.asarray(log_weights, np.float64)
    top = float(array.max()) if array.size else NEVER
    if not math.isfinite(top):
        return np.zeros(array.shape, np.float64)
    weights = np.exp(array - top)
    weights /= weights.sum()
    return weights


def effective_size(log_weights: Doubles | Sequence[float]) -> float:
    """Returns Kish's effective sample size, 1 / (sum of squared normalised weights); 0 if all weights are
    zero."""
    weights = normalised(log_weights)
    squares = float((weights * weights).sum())
    return 1.0 / squares if squares else 0.0
