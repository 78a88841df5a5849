"""A repetition penalty on structure rather than on words.

Enters: a walker, seeds, how strong. Leaves: one text. Cost: beside the walk, O(t) a token. No sampler of the
target: it changes the distribution on purpose, to leave loops that a grammar allows and a model falls into.

After "grammar-based repetition penalty" (RPG), which compares traces of parser rules. A parse state's mask
says which choices it offers, so here the trace of a text is the sequence of its masks: two places with equal
histories of masks, however different their words, are places of the same structure. Where the last l masks
(l >= `shortest`) repeat those before an earlier place, the token taken there is made less probable by the
factor `decay` ** (l - shortest + 1), once per repetition.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np

from .chance import Seeds
from .outcome import Found, Purpose
from .walk import LOCAL, Walk, Walker

__all__ = ["Trace", "penalised"]

_LEAST = -20.0  # a token keeps at least this factor, in nats: what is forced stays possible


class Trace:
    """Masks seen and tokens taken, with the longest common suffix of every place with the present one."""

    def __init__(self) -> None:
        self.marks: list[bytes] = []
        self.tokens: list[int] = []
        self._common = np.zeros(0, np.int64)  # [p]: masks before and at p that equal the last ones

    def enter(self, mark: bytes) -> None:
        """The text has come to a place with this mask."""
        same = np.array([m == mark for m in self.marks], np.int64)
        before = np.concatenate([[0], self._common[: len(same) - 1]]) if len(same) else same
        self._common = np.concatenate([(before + 1) * same, [0]])
        self.marks.append(mark)

    def take(self, token: int) -> None:
        self.tokens.append(token)

    def penalties(self, shortest: int) -> dict[int, int]:
        """token -> steps of decay, for tokens that would repeat a structure of at least `shortest` masks."""
        found: dict[int, int] = {}
        for at in np.flatnonzero(self._common[: len(self.tokens)] >= shortest):
            token = self.tokens[at]
            found[token] = found.get(token, 0) + int(self._common[at]) - shortest + 1
        return found


def penalised(walker: Walker, seed: int = 0, *, decay: float = 0.9, shortest: int = 4) -> Found | None:
    """One text drawn locally under the penalty; None where it lost its weight.

    Args:
        decay: the factor of one step, in (0, 1]; 1 is plain local masking.
        shortest: masks that must repeat before anything is penalised.
    """
    if not 0 < decay <= 1 or shortest < 1:
        raise ValueError("decay is in (0, 1], shortest at least 1")
    walk = walker.start(Seeds(seed).stream(Purpose.DRAW, 0))
    trace = Trace()
    while not walk.ended:
        walker.tidy([walk])
        walker.expand([walk])
        _step(walker, walk, trace, decay, shortest)
    if not walk.alive:
        return None
    return Found(walk.prefix().text, list(walk.tokens), walk.logp, walk.logp)


def _step(walker: Walker, walk: Walk, trace: Trace, decay: float, shortest: int) -> None:
    row = walk.node.row
    if not len(row):
        walk.kill(row.reason or "dead end")
        return
    trace.enter(hashlib.blake2b(row.ids.tobytes(), digest_size=16).digest())
    score = row.scores()
    for token, steps in trace.penalties(shortest).items():
        slot = row.slot(token)
        if slot is not None:
            score[slot] += max(_LEAST, steps * math.log(decay))
    drawn = walk.chance.choose(np.cumsum(np.exp(score - score.max())))
    trace.take(int(row.ids[drawn]))
    walker.take(walk, drawn, row.log_mass, False)
    walker.judge(walk, LOCAL)
