"""A repetition penalty on structure, not on words, as a search over the trie.

Enters: a walker, seeds, how strong. Leaves: one text. Cost: the walk, and O(t) for token t. The text does not
follow the target: the penalty changes the distribution, so that the model leaves a loop that the grammar
allows. `_structure.py` defines the penalty; `sg.generate(structure_penalty=)` is the same penalty.
"""

from __future__ import annotations

import numpy as np

from .._checks import number, whole
from .._structure import SHORTEST, StructureTrace, mark
from .chance import Seeds
from .outcome import Found, Purpose
from .walk import Walk, Walker


def penalised(walker: Walker, seed: int = 0, *, decay: float = 0.9, shortest: int = SHORTEST) -> Found | None:
    """Returns one text drawn locally under the penalty, or None if the text lost its weight.

    Args:
        decay: the factor of one step, in (0, 1]; 1 is plain local masking.
        shortest: the penalty begins after so many repeated masks.
    """
    whole("seed", seed, 0)
    number("decay", decay, "above 0 and at most 1", lambda x: 0 < x <= 1)
    whole("shortest", shortest, 1)
    walk = walker.start(Seeds(seed).stream(Purpose.DRAW, 0))
    trace = StructureTrace()
    while not walk.ended:
        walker.fetch([walk])
        _step(walker, walk, trace, decay, shortest)
    if not walk.alive:
        return None
    return Found(walk.prefix().text, list(walk.tokens), walk.logp, walk.logp)


def _step(walker: Walker, walk: Walk, trace: StructureTrace, decay: float, shortest: int) -> None:
    row = walk.node.row
    if not len(row):
        walk.kill(row.reason or "dead end")
        return
    trace.enter(mark(row.ids))
    score = row.scores()
    for token, nats in trace.nats(decay, shortest):
        slot = row.slot(token)
        if slot is not None:
            score[slot] += nats
    drawn = walk.chance.choose(np.cumsum(np.exp(score - score.max())))
    trace.take(int(row.ids[drawn]))
    walker.follow(walk, drawn)
