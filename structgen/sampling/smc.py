"""Sequential Monte Carlo: weighted particles move in step, and are resampled when their weights differ much.

Enters: a walker, seeds, N. Leaves: an `Outcome` of weighted texts and an unbiased estimate of Z. Cost: a
batch of forwards for each position. Equal prefixes share a forward, and copies of a particle share their
vectors.

The incremental weights of a particle are those that the head of `walk.py` defines. Twists make intermediate
targets look ahead: the trie's upper bounds (theta), and the critics' values of unfinished texts. Each twist
is divided out again when the next one is known, so only the value of the whole text counts. Resampling gives
all particles the mean weight. Finished particles stay in the population.

Rejuvenation rewrites the last tokens of every particle by an independence Metropolis-Hastings move: the walk
proposes tokens from a fixed position on, so the acceptance ratio is the ratio of the incremental weights (and
twists) of the two suffixes. The current target stays invariant. Lookahead (reward SMC, arXiv 2604.16453)
replaces a critic's value for a prefix by its mean over J walks to the end: any positive estimate keeps the
weights proper, as long as the same value is divided out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._checks import number, one_of, renamed, truth, whole
from .chance import Chance, Seeds
from .logspace import NEVER, effective_size, logsumexp, normalised
from .outcome import Outcome, Purpose
from .potential import weight
from .resampling import SCHEMES, Scheme, resample
from .walk import Mode, Walk, Walker


@dataclass(frozen=True, slots=True)
class SmcOptions:
    """The options of a population.

    Attributes:
        ess_threshold: resample when the effective sample size falls below this share of N; 0 never
            (importance sampling), 1 always.
        scheme: the way to draw ancestors.
        twist: whether the trie's upper bounds are used.
        extra: K of AWRS for Boolean conditions; None asks only about drawn tokens.
        block: the weights are checked after so many tokens.
        moves: Metropolis-Hastings moves of each particle after every block, resampled or not; moves only
            after a resampling would bias the estimate of Z.
        rewrite: the number of tokens that a move rewrites.
        lookahead: J walks to the end for the value of a prefix; 0 asks the critic's `prefix`.
    """

    ess_threshold: float = 0.5
    scheme: Scheme = "systematic"
    twist: bool = True
    extra: int | None = 1
    block: int = 1
    moves: int = 0
    rewrite: int = 8
    lookahead: int = 0

    def __post_init__(self) -> None:
        number("ess_threshold", self.ess_threshold, "between 0 and 1", lambda x: 0 <= x <= 1)
        one_of("scheme", self.scheme, tuple(SCHEMES))
        truth("twist", self.twist)
        for name, least in (("block", 1), ("rewrite", 1), ("moves", 0), ("lookahead", 0)):
            whole(name, getattr(self, name), least)
        if self.extra is not None:
            whole("extra", self.extra, 1)  # an estimate needs at least one further draw


def draw(walker: Walker, seeds: Seeds, n: int, options: SmcOptions | None = None) -> Outcome:
    """Returns one population of n particles, run until all have ended."""
    how = options or SmcOptions()
    # A move compares two suffixes under one theta. Bounds change while particles run, so with moves theta is
    # 1.
    mode = Mode(bounds=how.twist and walker.target.bounded and not how.moves, extra=how.extra)
    if how.moves and walker.target.condition is not None and how.extra is not None:
        raise ValueError("moves need exact normalisers: use extra=None with a Boolean condition")
    return _Population(walker, [seeds.stream(Purpose.DRAW, i) for i in range(n)], seeds, mode, how).run()


class _Population:
    def __init__(
        self, walker: Walker, chances: list[Chance], seeds: Seeds, mode: Mode, how: SmcOptions
    ) -> None:
        self.walker = walker
        self.mode = mode
        self.how = how
        self.seeds = seeds
        self.chances = chances
        self.walks = [walker.start(chance, mode) for chance in chances]
        for i, walk in enumerate(self.walks):
            walk.origin = i
        self.out = Outcome(law="weighted", draws=len(chances))
        self.time = 0

    def run(self) -> Outcome:
        while self.goes_on():
            self.advance()
            self.time += 1
            if self.time % self.how.block == 0:
                self.balance()
                for move in range(self.how.moves):
                    self.rejuvenate(move)
        self.finish()
        return self.out

    def goes_on(self) -> bool:
        """Returns whether a particle is unfinished, or a move can still reach a finished one.

        The end of moves must not depend on finished particles. Otherwise a move could lead to the end of a
        text, and no move could lead back.
        """
        reach = self.time + 1 - self.how.rewrite
        return any(
            not walk.ended or (self.how.moves and walk.alive and len(walk.tokens) > reach)
            for walk in self.walks
        )

    def advance(self) -> None:
        """Gives every unfinished particle a token, then applies the critics' values."""
        going = [walk for walk in self.walks if not walk.ended]
        self.walker.fetch(going)
        for walk in going:
            self.walker.step(walk, self.mode)
        going = [walk for walk in going if not walk.ended]
        for walk, value in zip(going, self.twists(going), strict=True):
            walk.log_weight += value - walk.twist
            walk.twist = value
            if value == NEVER:
                walk.kill("critic")

    def twists(self, walks: list[Walk]) -> list[float]:
        critic = self.walker.target.critic
        if critic is None or not walks:
            return [0.0] * len(walks)
        if self.how.lookahead:
            return self.ahead(walks)
        if not critic.guides or not self.how.ess_threshold:
            return [0.0] * len(walks)
        self.walker.target.spent.tests += len(walks)
        texts = [walk.prefix() for walk in walks]
        return [weight(value, text) for value, text in zip(critic.prefix_batch(texts), texts, strict=True)]

    def ahead(self, walks: list[Walk]) -> list[float]:
        """Returns the critic's mean value of each prefix over J walks to the end; never -inf, because it has
        a floor."""
        count = self.how.lookahead
        twins: list[Walk] = []
        places = {id(walk.chance): i for i, walk in enumerate(self.walks)}
        for walk in walks:
            for j in range(count):
                index = (self.time * len(self.chances) + places.get(id(walk.chance), walk.origin)) * count + j
                twin = walk.fork(self.seeds.stream(Purpose.LOOKAHEAD, index))
                twin.log_weight = twin.twist = 0.0
                twins.append(twin)
        self.walker.run(twins, Mode(bounds=self.mode.bounds, extra=self.mode.extra))
        floor = math.log(1e-3 / count)
        values = []
        for at in range(len(walks)):
            found = [twin.log_weight for twin in twins[at * count : (at + 1) * count]]
            values.append(max(floor, logsumexp(found) - math.log(count)))
        return values

    def balance(self) -> None:
        """Resamples if the weights differ too much."""
        weights = [walk.log_weight for walk in self.walks]
        size = effective_size(weights)
        self.out.ess.append(size)
        total = logsumexp(weights)
        share = self.how.ess_threshold
        # With equal weights systematic resampling changes nothing. Still, a threshold of 1 always resamples.
        if total == NEVER or (share < 1 and size >= share * len(weights)):
            return
        if all(walk.ended for walk in self.walks):
            return  # all texts have ended, and another draw would only add noise
        stream = self.seeds.stream(Purpose.RESAMPLE, self.time)
        self.replace(resample(normalised(weights), self.how.scheme, stream), total - math.log(len(weights)))

    def replace(self, ancestors: list[int], log_weight: float) -> None:
        old = self.walks
        # A surviving particle keeps its place, so its context and matcher need no copy.
        self.walks = []
        used: set[int] = set()
        for chance, ancestor in zip(self.chances, ancestors, strict=True):
            walk = old[ancestor].fork(chance) if ancestor in used else old[ancestor]
            walk.chance = chance
            used.add(ancestor)
            walk.log_weight = log_weight
            self.walks.append(walk)
        self.out.resampled.append(self.time)
        self.out.unique.append(len({walk.origin for walk in self.walks}))

    def rejuvenate(self, move: int) -> None:
        """Makes one move of every particle over its last tokens, in step."""
        first = max(0, self.time - self.how.rewrite)
        pairs: list[tuple[int, Walk]] = []
        for i, walk in enumerate(self.walks):
            if walk.alive and len(walk.tokens) > first:
                index = (self.time * self.how.moves + move) * len(self.walks) + i
                chance = self.seeds.stream(Purpose.REJUVENATE, index)
                pairs.append((i, walk.cut(first, chance, self.walker.target)))
        while going := [twin for _, twin in pairs if not twin.ended and len(twin.tokens) < self.time]:
            self.walker.expand(going)
            for twin in going:
                self.walker.step(twin, self.mode)
        going = [twin for _, twin in pairs if not twin.ended]
        for twin, value in zip(going, self.twists(going), strict=True):
            twin.twist = value
        for i, twin in pairs:
            walk = self.walks[i]
            if not twin.alive or twin.twist == NEVER:
                continue
            new = sum(twin.steps[first:]) + twin.twist
            old = sum(walk.steps[first:]) + walk.twist
            if twin.chance.coin(math.exp(min(0.0, new - old))):
                twin.log_weight, twin.chance = walk.log_weight, self.chances[i]
                self.walks[i] = twin

    def finish(self) -> None:
        learn = Mode(learns=self.walker.target.bounded)
        for walk in self.walks:
            self.walker.finish(walk, learn)
        out = self.out
        out.walks = [walk for walk in self.walks if walk.alive]
        out.accepted = len(out.walks)
        out.log_weights = [walk.log_weight for walk in out.walks]
        out.log_evidence = logsumexp(out.log_weights) - math.log(len(self.walks))
        out.note_bracket(out.draws, self.walker.trie.bracket)
        if not out.walks:
            out.stopped = "every particle lost all weight"


__getattr__: Callable[[str], Any] = renamed(__name__, Options="SmcOptions")
