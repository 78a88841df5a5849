"""Cautious next-token prediction: where the model is unsure, try several continuations and keep the
likeliest.

Enters: a walker, seeds. Leaves: one text. Cost: up to ten short walks at an unsure position. The continuation
with the lowest perplexity wins, so the text follows no distribution.

At a prefix with entropy H (nats, of the masked distribution) run 1 + 9 * clip((H - 0.01) / 1.49, 0, 1)
trials, rounded, each to the next of `stops` or to the end. Continue from the trial with the lowest perplexity
(Wang et al. 2025, CNTP).
"""

from __future__ import annotations

from collections.abc import Sequence

from .._checks import whole
from .chance import Seeds
from .outcome import Found, Purpose
from .target import Target
from .walk import LOCAL, Walk, Walker


def trials(entropy: float) -> int:
    """Returns the number of continuations to try."""
    return 1 + round(9 * min(1.0, max(0.0, (entropy - 0.01) / 1.49)))


def cautious(
    walker: Walker,
    seed: int = 0,
    *,
    stops: Sequence[str] = (".", ",", ";", ":", "!", "?", "\n"),
    span: int = 32,
) -> Found | None:
    """Returns one text, or None if every continuation lost its weight.

    Args:
        stops: the texts that end a trial.
        span: the most tokens of a trial.
    """
    whole("seed", seed, 0)
    if (
        isinstance(stops, str)
        or not isinstance(stops, Sequence)
        or not all(isinstance(s, str) for s in stops)
    ):
        raise TypeError(f"stops is a list of texts, not {stops!r:.60}")
    whole("span", span, 1)
    ends = tuple(stop.encode() for stop in stops)
    seeds = Seeds(seed)
    walk = walker.start(seeds.stream(Purpose.SEARCH, 0))
    count = 1
    while not walk.ended:
        walker.fetch([walk])
        ways = []
        for _ in range(trials(walk.node.row.entropy)):
            ways.append(walk.fork(seeds.stream(Purpose.SEARCH, count)))
            count += 1
        begin = len(walk.tokens)
        _run(walker, ways, ends, begin, span)
        alive = [way for way in ways if way.alive]
        if not alive:
            return None
        walk = min(alive, key=lambda way: _perplexity(way, begin, walker.target))
    return Found(walk.prefix().text, list(walk.tokens), walk.logp, walk.logp / len(walk.tokens))


def _run(walker: Walker, ways: list[Walk], ends: tuple[bytes, ...], begin: int, span: int) -> None:
    going = list(ways)
    while going:
        walker.fetch(going)
        for way in going:
            walker.step(way, LOCAL)
        going = [
            way
            for way in going
            if not way.ended and not way.data.endswith(ends) and len(way.tokens) - begin < span
        ]


def _perplexity(way: Walk, begin: int, target: Target) -> float:
    """Returns the log of the perplexity: the mean negative log-probability of the tokens of a trial."""
    return -sum(way.scores[begin:]) / (len(way.tokens) - begin)
