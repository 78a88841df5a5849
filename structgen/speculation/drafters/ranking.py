"""From a drafter's own probabilities to offers, with the noise of the target's draws where there is any.

Enters: log-probabilities of some tokens. Leaves: (token, probability that the target draws it), best first.
Cost: a partial sort.

The target draws argmax(log p / T + g). If q is like p, argmax(log q / T + g) is the same token more often
than any token that is chosen without g: it is Gumbel coupling, and the g are known in advance.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..._draws import Noise, scaled, top

__all__ = ["ranked"]


def ranked(
    ids: npt.NDArray[np.int64],
    logprobs: npt.NDArray[np.float32],
    temperature: float,
    noise: Noise | None,
    position: int,
    count: int,
) -> list[tuple[int, float]]:
    """The `count` best of `ids`; both arrays have shape (n,)."""
    if noise is None:
        best = top(logprobs, count)
        chances = np.exp(logprobs[best].astype(np.float64))
    else:
        scores = scaled(logprobs, temperature) + noise.gumbel(position, ids)
        best = top(scores, count)
        # How sure the first is depends on its lead: a target that differs a little reorders close ones.
        lead = scores[best] - scores[best[0]]
        chances = np.exp(lead)
        chances /= chances.sum() + 0.05
    return [
        (int(ids[i]), min(float(p), 0.99))
        for i, p in zip(best, chances, strict=True)
        if logprobs[i] > -np.inf
    ]
