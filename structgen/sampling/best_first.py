"""The engine of all searches over the trie. It chooses the next place by a frontier or by a descent; the
caller gives scores and limits.

Enters: a walker, settings (`SearchPlan`), scores, limits. Leaves: a tree of places and texts, best first.
Cost: a forward for each prefix that the trie does not know, and about half a kilobyte for each place of the
tree. The texts follow no law.

A place is a prefix in the tree. A step opens one place: it makes the place's next children and ranks them by
f = g + h. g is log P of the text so far, potentials included, or the caller's score; h estimates the rest.
The settings choose the next place:

- `select="best"` takes the place with the largest f. With h = 0 this is uniform-cost search (Dijkstra 1959);
  with an h that is never too low it is A* (Hart, Nilsson and Raphael 1968). In both cases texts leave the
  frontier in order, best first. A step makes `branch` children. One entry of the frontier stands for all
  children that are not made yet, and has the rank of the best of them (partial expansion, Yoshizumi, Miura
  and Ishida 2000). So nothing is pruned.
- `commit=True` takes the deepest place. The search continues from the best child and returns only from dead
  ends.
- `select="descent"` is Monte-Carlo tree search. From the root on it takes the child with the largest Q +
  explore * p * sqrt(N) / (1 + n): p is the model's probability of the child among the allowed children. N and
  n are the numbers of visits of the place and of the child. Q is the largest or the mean reward below the
  child, and 0 before its first visit. The place at the end of the descent is opened, a text is completed from
  this place, and the reward of the text is passed up to the root.

A step changes the tree only at its end. A step that meets a limit leaves the tree as it was and is repeated
when the search continues; its vectors stay in the trie. So a search in parts gives the same result as one
run.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .._checks import not_negative, number, one_of, truth, whole
from ..errors import StructgenError
from .chance import Seeds
from .logspace import NEVER
from .outcome import Purpose
from .walk import LOCAL, Walk, Walker

_DRAWS = 1 << 20  # the most random streams of one place


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Settings of the engine.

    Attributes:
        select, commit: which place is opened next; see above.
        branch: children made at once; None makes all.
        siblings: True: the other children come later, in order of rank. A caller's score drops them, because
            nothing bounds the scores that they would get.
        decisive: a place whose entropy is below this, in nats, gets only its most probable child.
        lookahead: the length of a greedy continuation, in tokens; its log-probability is added to h.
        block: texts that close a piece. Children are then `branch` pieces drawn from the local law, of `span`
            tokens at most. Without such texts, children are single tokens.
        explore, backup, rollout: options of "descent": the weight of p, the kind of Q, and the way to
            complete a text.
    """

    select: Literal["best", "descent"] = "best"
    commit: bool = False
    branch: int | None = 8
    siblings: bool = True
    decisive: float = 0.0
    lookahead: int = 0
    block: tuple[str, ...] = ()
    span: int = 32
    explore: float = 1.0
    backup: Literal["max", "mean"] = "max"
    rollout: Literal["greedy", "sample"] = "greedy"

    def __post_init__(self) -> None:
        if self.branch is not None:
            whole("branch", self.branch, 1)
        for name, least in (("lookahead", 0), ("span", 1)):
            whole(name, getattr(self, name), least)
        for name in ("siblings", "commit"):
            truth(name, getattr(self, name))
        number("decisive", self.decisive, "0 or more", lambda x: x >= 0)
        not_negative("explore", self.explore)
        for end in self.block:
            if not isinstance(end, str) or not end:
                raise ValueError(f"block is a list of texts that close a piece, and {end!r:.60} is none")
        if self.block and self.branch is None:
            raise ValueError("pieces are drawn, so branch= says how many")
        one_of("select", self.select, ("best", "descent"))
        one_of("backup", self.backup, ("max", "mean"))
        one_of("rollout", self.rollout, ("greedy", "sample"))


@dataclass(frozen=True, slots=True)
class Partial:
    """The argument of score functions: an unfinished or an ended text."""

    text: str
    tokens: tuple[int, ...]
    logprob: float
    ended: bool


Score = Callable[[Partial], float]


@dataclass(frozen=True, slots=True)
class Scores:
    """Score functions: `score` is g (None: log P with potentials), `heuristic` is h (None: 0), and `reward`
    ranks whole texts (None: g)."""

    score: Score | None = None
    heuristic: Score | None = None
    reward: Score | None = None


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Limits of one run: steps, tokens, forwards, seconds. None: no limit."""

    steps: int | None = None
    tokens: int | None = None
    forwards: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("steps", "tokens", "forwards"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 0)
        if self.seconds is not None:
            number("seconds", self.seconds, "0 or more", lambda x: x >= 0)


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a search. A progress callback gets it after each step."""

    steps: int
    tokens: int
    forwards: int
    seconds: float
    texts: int
    best: float
    bound: float


@dataclass(frozen=True, slots=True)
class Written:
    """A whole text: its ids, log P, and the rank by which texts are compared."""

    tokens: tuple[int, ...]
    logprob: float
    rank: float


@dataclass(frozen=True, slots=True)
class _Opening:
    """The children and ranks that a place gets at the end of a step."""

    children: list[SearchPlace]
    opened: int
    rest: float


@dataclass(slots=True, eq=False)
class SearchPlace:
    """A prefix in the search tree.

    Attributes:
        tokens: from the parent to here.
        logprob, score: of the whole prefix: log P, and log P with potentials.
        prior: log of the probability among the tokens that the parent allows. rank: f.
        opened: how many of the row's best tokens are children; rest: the log-probability of the best other
            token, which ranks the other children in the frontier; -inf: there are none.
        visits, total, best: the number, sum and maximum of the rewards below. closed: every text below was
            found.
    """

    number: int
    parent: SearchPlace | None
    tokens: tuple[int, ...]
    logprob: float
    score: float
    prior: float = 0.0
    rank: float = 0.0
    ended: bool = False
    depth: int = 0
    opened: int = 0
    rest: float = NEVER
    visits: int = 0
    total: float = 0.0
    best: float = 0.0
    closed: bool = False
    children: list[SearchPlace] = field(default_factory=list)
    walk: Walk | None = None

    @property
    def path(self) -> tuple[int, ...]:
        """The ids of the whole prefix, from the beginning of the text."""
        found: list[int] = []
        at: SearchPlace | None = self
        while at is not None:
            found[:0] = at.tokens
            at = at.parent
        return tuple(found)


class _SpentUp(Exception):
    """A limit was reached in the middle of a step."""


class BestFirst:
    """A search that can be stopped and continued.

    Attributes:
        root: the root of the tree. texts: the texts found so far, by their ids. left: the texts that left the
            frontier, in order, each once.
        ordered: whether texts leave the frontier best first. This holds if no child was dropped, if ranks
            are log-probabilities plus h, and if h is never too low and never above 0 (the caller must know
            that).
        steps, tokens, forwards, seconds: spent so far. Tokens of the tree, of looks ahead and of completions
            count.
    """

    def __init__(self, walker: Walker, plan: SearchPlan, scores: Scores, seed: int) -> None:
        self.walker = walker
        self.plan = plan
        self.scores = scores
        self.seeds: Seeds = Seeds(seed)
        self.root: SearchPlace = SearchPlace(0, None, (), 0.0, 0.0)
        self.places: list[SearchPlace] = [self.root]
        self.texts: dict[tuple[int, ...], Written] = {}
        self.left: list[Written] = []
        self.ordered: bool = (
            (plan.select, plan.commit, plan.lookahead) == ("best", False, 0)
            and scores.score is None
            and scores.reward is None
            and walker.target.bounded
        )
        self.steps: int = 0
        self.tokens: int = 0
        self.forwards: int = 0
        self.seconds: float = 0.0
        self.frontier: list[tuple[float, float, int, int]] = []  # depth or 0, -f, place, 1 for siblings
        self.paid: set[tuple[int, ...]] = set()  # prefixes whose forwards a saved search has counted
        self._until = math.inf  # the limit of forwards
        self._clock = math.inf
        self._token_limit = math.inf
        self._begin = 0.0
        self._written = 0  # the number of tokens in the present step
        self._push(self.root, 0.0, 0)

    # Running

    def run(
        self,
        limits: SearchLimits,
        wanted: int = 1,
        enough: float | None = None,
        progress: Callable[[Standing], Any] | None = None,
    ) -> str:
        """Makes steps until `wanted` texts left the frontier or one ranks `enough`. Returns why it
        stopped."""
        self._begin = time.monotonic()
        before = self.seconds
        self._until = math.inf if limits.forwards is None else self.forwards + limits.forwards
        self._token_limit = math.inf if limits.tokens is None else self.tokens + limits.tokens
        self._clock = math.inf if limits.seconds is None else self._begin + limits.seconds
        last = math.inf if limits.steps is None else self.steps + limits.steps
        while True:
            if self._enough(wanted, enough):
                return "done"
            if self.steps >= last:
                return "steps"
            if time.monotonic() >= self._clock:
                return "seconds"
            try:
                if not self._step():
                    return "exhausted"
            except _SpentUp as limit:
                return str(limit)
            finally:
                self.seconds = before + time.monotonic() - self._begin
            if progress is not None and progress(self.standing()) is False:
                return "progress"

    def standing(self) -> Standing:
        best = max((text.rank for text in self.texts.values()), default=NEVER)
        spent = (self.steps, self.tokens, self.forwards, self.seconds)
        return Standing(*spent, len(self.texts), best, self.bound)

    @property
    def bound(self) -> float:
        """A bound on the ranks of all texts that are not found yet, valid if h is never too low; inf: no
        bound is known."""
        if not self.ordered:
            return math.inf
        return -self.frontier[0][1] if self.frontier else NEVER

    def _enough(self, wanted: int, enough: float | None) -> bool:
        if enough is not None and any(text.rank >= enough for text in self.texts.values()):
            return True
        return self.plan.select == "best" and len(self.left) >= wanted

    def _step(self) -> bool:
        """Makes one step. Returns False if no place is left to open."""
        self._written = 0
        done = self._descend() if self.plan.select == "descent" else self._pop()
        if done:
            self.steps += 1
            self.tokens += self._written
        return done

    def found(self, wanted: int) -> list[Written]:
        """Returns the best texts so far. A text with several tokenizations counts once, with its best
        tokenization."""
        best: dict[Any, Written] = {}
        for text in order(list(self.texts.values())):
            best.setdefault(self.spelling(text), text)
        return list(best.values())[:wanted]

    def spelling(self, text: Written) -> tuple[bytes, tuple[int, ...]]:
        """Returns a key that is equal for all tokenizations of one text: its bytes and its special tokens."""
        target = self.walker.target
        special = (t for t in text.tokens if t not in target.ends and not target.vocabulary.tokens[t])
        return target.text(text.tokens), tuple(special)

    # Best first

    def _push(self, place: SearchPlace, rank: float, siblings: int) -> None:
        deep = -float(place.depth) if self.plan.commit else 0.0
        heapq.heappush(self.frontier, (deep, -rank, place.number, siblings))

    def _pop(self) -> bool:
        if not self.frontier:
            return False
        if self.walker.batch > 1:
            self._fetch()
        _, _, number, siblings = self.frontier[0]
        place = self.places[number]
        if place.ended:
            heapq.heappop(self.frontier)
            text = self.texts[place.path]
            # Another tokenization of this text, with more probability, may have left the frontier before.
            if self.spelling(text) not in map(self.spelling, self.left):
                self.left.append(text)
            return True
        opening = self._open(place)
        self._check()
        heapq.heappop(self.frontier)
        self._add(place, opening)
        for child in opening.children:
            self._push(child, child.rank, 0)
        if place.rest > NEVER:
            # h is at most 0 where siblings wait, because one more token never makes a text more probable.
            self._push(place, place.score + place.rest, 1)
        return True

    def _fetch(self) -> None:
        """Fetches the vectors of the next places in one forward. Fetching does not change the order of
        places."""
        ahead = heapq.nsmallest(self.walker.batch, self.frontier)
        walks = [
            self._walk(self.places[number]) for _, _, number, _ in ahead if not self.places[number].ended
        ]
        self._know(walks)

    # Descent

    def _descend(self) -> bool:
        if self.root.closed:
            return False
        path = [self.root]
        while path[-1].opened and not path[-1].ended:
            path.append(self._favourite(path[-1]))
        place = path[-1]
        if place.ended:
            reward = self.texts[place.path].rank
        else:
            opening = self._open(place)
            text = self._complete(place)
            self._check()
            self._add(place, opening)
            if text is not None:
                self.texts.setdefault(text.tokens, text)
            reward = 0.0 if text is None else text.rank
        for at in reversed(path):
            at.visits += 1
            at.total += reward
            at.best = max(at.best, reward) if at.visits > 1 else reward
            at.closed = at.ended or (at.opened > 0 and all(child.closed for child in at.children))
        return True

    def _favourite(self, place: SearchPlace) -> SearchPlace:
        """Returns the child to visit; of equal children the one that was made first."""
        root = math.sqrt(place.visits)

        def appeal(child: SearchPlace) -> float:
            value = child.best if self.plan.backup == "max" else child.total / max(1, child.visits)
            return value + self.plan.explore * math.exp(child.prior) * root / (1 + child.visits)

        return max((child for child in place.children if not child.closed), key=appeal)

    def _complete(self, place: SearchPlace) -> Written | None:
        """Completes a text from a place. Returns None if the text lost its weight."""
        at = place.number * _DRAWS + place.visits
        walk = self._walk(place).fork(self.seeds.stream(Purpose.SEARCH, at))
        greedy = self.plan.rollout == "greedy"
        while not walk.ended:
            self._know([walk])
            self._go(walk, walk.node.row.best(1)[0] if greedy and len(walk.node.row) else None)
        return self._text(walk) if walk.alive else None

    # Places

    def _check(self) -> None:
        """Raises _SpentUp if the present step exceeds the limit of tokens."""
        if self.tokens + self._written > self._token_limit:
            raise _SpentUp("tokens")

    def _open(self, place: SearchPlace) -> _Opening:
        """Returns the next children of a place, ranked; the tree stays as it is."""
        walk = self._walk(place)
        self._know([walk])
        if self.plan.block:
            opened, rest = 1, NEVER
            made = self._pieces(place, walk)
        else:
            opened, rest, made = self._tokens(place, walk)
        children = [self._place(place, walk, way) for way in made if way.alive]
        if self.plan.block:
            for child in children:
                child.prior = -math.log(len(children))
        self._look(children)
        return _Opening(children, max(opened, 1), rest)

    def _tokens(self, place: SearchPlace, walk: Walk) -> tuple[int, float, list[Walk]]:
        plan, row = self.plan, walk.node.row
        count = len(row) if plan.branch is None else plan.branch
        narrow = plan.decisive > 0 and bool(len(row)) and row.entropy < plan.decisive
        if narrow:
            count = 1
        best = row.best(place.opened + count + 1) if len(row) else []
        waits = len(best) > place.opened + count
        rest = row.score(best[-1]) if waits else NEVER
        if waits and (narrow or not plan.siblings or self.scores.score or plan.select == "descent"):
            self.ordered, rest = False, NEVER
        made = []
        for slot in best[place.opened : place.opened + count]:
            way = walk.fork(walk.chance)
            self._go(way, slot)
            made.append(way)
        return place.opened + len(made), rest, made

    def _pieces(self, place: SearchPlace, walk: Walk) -> list[Walk]:
        """Returns different pieces drawn after a place."""
        self.ordered = False
        ends = tuple(end.encode() for end in self.plan.block)
        assert self.plan.branch is not None
        streams = range(place.number * _DRAWS, place.number * _DRAWS + self.plan.branch)
        ways = [walk.fork(self.seeds.stream(Purpose.PROPOSE, i)) for i in streams]
        begin = len(walk.tokens)
        going = ways
        while going:
            self._know(going)
            for way in going:
                self._go(way, None)
            going = [
                way
                for way in going
                if not way.ended and not way.data.endswith(ends) and len(way.tokens) - begin < self.plan.span
            ]
        return list({tuple(way.tokens): way for way in ways if way.alive}.values())

    def _place(self, parent: SearchPlace, walk: Walk, way: Walk) -> SearchPlace:
        """Returns the child that a walk leads to, not yet in the tree."""
        tokens = tuple(way.tokens[len(walk.tokens) :])
        score = way.value if way.ended else sum(way.scores)
        child = SearchPlace(
            -1, parent, tokens, way.logp, score, ended=way.ended, depth=parent.depth + 1, walk=way
        )
        child.prior = sum(way.scores[len(walk.tokens) :]) - sum(way.masses[len(walk.tokens) :])
        seen = self._partial(way)
        if way.ended:
            child.rank = self._rank(seen, score)
        else:
            child.rank = score if self.scores.score is None else _rated(self.scores.score(seen), seen)
            if self.scores.heuristic is not None:
                child.rank += _rated(self.scores.heuristic(seen), seen)
        return child

    def _look(self, children: Sequence[SearchPlace]) -> None:
        """Adds the log-probabilities of greedy continuations to h."""
        if not self.plan.lookahead:
            return
        ahead = [(child, child.walk.fork(child.walk.chance)) for child in children if child.walk is not None]
        ahead = [(child, way) for child, way in ahead if not way.ended]
        for _ in range(self.plan.lookahead):
            going = [way for _, way in ahead if not way.ended]
            self._know(going)
            for way in going:
                self._go(way, way.node.row.best(1)[0] if len(way.node.row) else None)
        for child, way in ahead:
            begin = len(child.path)
            child.rank += sum(way.scores[begin:]) if way.alive else NEVER

    def _add(self, place: SearchPlace, opening: _Opening) -> None:
        place.opened, place.rest = opening.opened, opening.rest
        for child in opening.children:
            child.number = len(self.places)
            self.places.append(child)
            place.children.append(child)
            if child.ended:
                path = child.path
                self.texts.setdefault(path, Written(path, child.logprob, child.rank))

    def _rank(self, seen: Partial, score: float) -> float:
        if self.scores.reward is not None:
            found = _rated(self.scores.reward(seen), seen)
            if self.plan.select == "descent" and not 0 <= found <= 1:
                text = f"{seen.text[-60:]!r}"
                raise ValueError(f"a reward of mcts is between 0 and 1, and that of {text} is {found:g}")
            return found
        return score if self.scores.score is None else _rated(self.scores.score(seen), seen)

    def _text(self, walk: Walk) -> Written:
        known = self.texts.get(tuple(walk.tokens))
        if known is not None:
            return known
        return Written(tuple(walk.tokens), walk.logp, self._rank(self._partial(walk), walk.value))

    @staticmethod
    def _partial(walk: Walk) -> Partial:
        return Partial(walk.prefix().text, tuple(walk.tokens), walk.logp, walk.ended)

    # Walks and forwards

    def _go(self, walk: Walk, slot: int | None) -> None:
        """Adds one token to a walk: the token of a slot, or one drawn from the local law."""
        self._written += 1
        if slot is None:
            self.walker.step(walk, LOCAL)
            return
        self.walker.follow(walk, slot)

    def _walk(self, place: SearchPlace) -> Walk:
        """Returns the walk at a place. After a saved search it is made from the parent's walk."""
        below: list[SearchPlace] = []
        at = place
        while at.walk is None and at.parent is not None:
            below.append(at)
            at = at.parent
        if at.walk is None:
            at.walk = self.walker.start(self.seeds.stream(Purpose.SEARCH, 0), LOCAL)
        walk = at.walk
        for one in reversed(below):
            walk = walk.fork(walk.chance)
            for token in one.tokens:
                self._know([walk])
                slot = walk.node.row.slot(token)
                if slot is None:
                    raise StructgenError(
                        "the saved search is another model's: this model gives one of its tokens no weight"
                    )
                self.walker.follow(walk, slot)
            one.walk = walk
        return walk

    def _know(self, walks: Sequence[Walk]) -> None:
        """Fetches the vectors of the walks' last nodes. Raises _SpentUp if a limit is reached; the vectors
        that were fetched before are kept."""
        unknown = list({id(walk.node): walk for walk in walks if self.walker.lacks(walk.node)}.values())
        if not unknown:
            return
        room = self._until - self.forwards
        fits: list[Walk] = []
        new = 0
        for walk in unknown:
            counts = tuple(walk.tokens) not in self.paid
            if not counts or new < room:
                fits.append(walk)
                new += counts
        if time.monotonic() >= self._clock:
            raise _SpentUp("seconds")
        if fits:
            self.walker.tidy(walks)
            self.walker.expand(fits)
            self.forwards += new
            self.paid.difference_update(tuple(walk.tokens) for walk in fits)
        if len(fits) < len(unknown):
            raise _SpentUp("forwards")


def _rated(value: float, seen: Partial) -> float:
    found = float(value) if hasattr(value, "__float__") else math.nan
    if math.isnan(found):
        raise ValueError(f"a score of {seen.text[-60:]!r} is no number: {value!r:.60}")
    return found


def order(texts: Sequence[Written]) -> list[Written]:
    """Returns texts sorted by rank, best first. Of equal ranks the more probable text comes first, then the
    lower ids."""
    return sorted(texts, key=lambda text: (-text.rank, -text.logprob, text.tokens))
