"""The one walk that every sampler takes, alone or in step with others.

Enters: a target, a trie, for each walk a source of chance. Leaves: walks, each with tokens, log P and log
weight. Cost: a known prefix costs no forward; the unknown prefixes of all walks in step share a forward.

    u = empty; lw = 0; lt = 0                                lt: log theta of the prefix the walk stands on
    loop:  lZ = logsumexp over allowed b of (log P(b|u) + log theta(ub))
           lw += lZ - lt                                     incremental weight
           b ~ exp(log P(b|u) + log theta(ub) - lZ);  lt = log theta(ub);  u = ub;  stop at end-of-sequence

E[exp(lw) 1{s}] = P(s) 1[s in L] for any positive theta, if the next step divides by the theta of the draw.
theta = 1 is local masking with importance weights; theta = the trie's upper bounds is ASAp; with a coin of
probability exp(lZ - lt) at each prefix, from lt = log theta(root), it is CARS (Parys et al. 2025). A
condition is asked about the token drawn; a text that it forbids has weight 0.

Walks ahead (`Walker.in_turn`) make the same draws only to find the vectors that will be needed. They ask no
condition and change no bound. So fetching changes only the number of batches.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import BudgetExceeded, StructgenError
from .awrs import estimate
from .chance import Chance, Source
from .drafting import Drafts
from .logspace import NEVER
from .potential import Prefix, weight
from .target import Target
from .trie import Edge, Node, Trie
from .vector import BLOCK, TAIL, Urn, Vector

if TYPE_CHECKING:
    from ..speculation.base import Session

# The largest differences of two vectors of one model for one prefix: total variation over the allowed tokens,
# and nats of their mass. Other kernels and types differ by less.
_SAME_MODEL, _SAME_MASS = 0.1, 0.3
_PROBES = 4  # prefixes that are compared, chosen among the _LATEST visited last
_LATEST = 256
_WHOLE = 8  # the most whole vectors of thin nodes that are kept for the next draw


@dataclass(frozen=True, slots=True)
class Mode:
    """The kind of a walk.

    Attributes:
        bounds: whether theta is the trie's upper bound; otherwise 1.
        coin: whether a walk stops with probability 1 - exp(lZ - lt).
        learns: whether the ended walk backs up bounds.
        extra: None asks the condition about the drawn token alone; K asks it during the draw (AWRS), with
            K tokens more for the normaliser.
        entropies: whether the entropy of each local distribution is kept (a pass over it, once for each
            prefix).
    """

    bounds: bool = False
    coin: bool = False
    learns: bool = False
    extra: int | None = None
    entropies: bool = False


LOCAL = Mode()


class Walk:
    """An unfinished text. `path` has its nodes, one more than its tokens until the walk ends.

    The walk keeps the numbers of its draws, because a node that the trie evicts loses its vector.
    """

    __slots__ = ("bound", "chance", "context", "data", "ended", "entropies", "log_weight", "logp", "logps",
                 "masses", "matcher", "origin", "path", "reason", "scores", "sessions", "steps", "synced",
                 "theta", "told", "tokens", "twist", "value")  # fmt: skip

    def __init__(self, root: Node, chance: Chance, bound: float = 0.0) -> None:
        self.tokens: list[int] = []
        self.path: list[Node] = [root]
        self.steps: list[float] = []  # lZ - lt of each step, the end's weight in the last
        self.scores: list[float] = []  # log P, shaped, of each token
        self.logps: list[float] = []  # log P of each token
        self.masses: list[float] = []  # log of the local normaliser of each step
        self.entropies: list[float] = []  # entropies of the local distributions, if the mode asks for them
        self.data: bytes = b""
        self.logp: float = 0.0
        self.log_weight: float = 0.0
        self.value: float = NEVER  # log of P times the potentials of an ended text: its part of Z
        self.bound: float = bound
        self.theta: float = 0.0  # log of U with Q(s) >= P(s) / U, where Q is the law of this walk
        self.twist: float = 0.0
        self.origin: int = 0
        self.chance: Chance = chance
        self.context: Any = None
        self.matcher: Any = None
        self.synced: int = 0
        self.ended: bool = False
        self.reason: str = ""
        self.sessions: list[Session] | None = None  # the drafters' sessions, with the first `told` tokens
        self.told: int = 0

    @property
    def node(self) -> Node:
        return self.path[-1]

    @property
    def alive(self) -> bool:
        """Whether the walk has weight: it is unfinished, or it ended inside the language."""
        return not self.reason

    def fork(self, chance: Chance) -> Walk:
        """Returns an independent copy. It shares contexts and vectors, and makes a matcher of its own."""
        twin = Walk(self.path[0], chance, self.bound)
        twin.tokens, twin.path = list(self.tokens), list(self.path)
        twin.steps, twin.scores = list(self.steps), list(self.scores)
        twin.logps, twin.masses = list(self.logps), list(self.masses)
        twin.entropies = list(self.entropies)
        twin.data, twin.logp, twin.log_weight = self.data, self.logp, self.log_weight
        twin.twist, twin.ended, twin.reason, twin.value = self.twist, self.ended, self.reason, self.value
        twin.origin = self.origin
        twin.context, twin.synced = self.context, self.synced
        twin.matcher = None if self.matcher is None else self.matcher.fork()
        return twin

    def cut(self, length: int, chance: Chance, target: Target) -> Walk:
        """Returns a copy of the first `length` tokens, at theta = 1."""
        twin = Walk(self.path[0], chance)
        twin.tokens, twin.path = self.tokens[:length], self.path[: length + 1]
        twin.steps, twin.scores = self.steps[:length], self.scores[:length]
        twin.data = target.text(twin.tokens)
        twin.logps, twin.masses = self.logps[:length], self.masses[:length]
        twin.entropies = self.entropies[:length]
        twin.logp = sum(twin.logps)
        twin.log_weight, twin.origin = sum(twin.steps), self.origin
        return twin

    def kill(self, reason: str) -> None:
        self.ended = True
        self.reason = reason
        self.log_weight = NEVER

    def prefix(self) -> Prefix:
        """Returns the text as potentials see it, without end-of-sequence."""
        whole = self.ended and not self.reason
        return Prefix(tuple(self.tokens[:-1] if whole else self.tokens), self.data)


@dataclass(slots=True)
class Diary:
    """Counts for the diagnostics.

    Attributes:
        killed: reason -> walks.
        steps: position -> [visits, summed log local mass].
        lost: (position, id) -> summed probability that the mask took from it, over visits.
    """

    killed: Counter[str] = field(default_factory=Counter)
    steps: dict[int, list[float]] = field(default_factory=dict)
    lost: dict[tuple[int, int], float] = field(default_factory=dict)

    def note(self, at: int, node: Node) -> None:
        entry = self.steps.setdefault(at, [0.0, 0.0])
        entry[0] += 1
        entry[1] += max(node.row.log_mass, -1e3)
        for token, logp in node.row.lost:
            self.lost[at, token] = self.lost.get((at, token), 0.0) + math.exp(logp)


def alike(found: Vector, old: Vector) -> bool:
    """Returns whether two vectors of one prefix come from one model, up to rounding."""
    same = np.isin(found.ids, old.ids), np.isin(old.ids, found.ids)
    if not (found.thin or old.thin) and not (same[0].all() and same[1].all()):
        return False
    if not len(old):
        return True
    # Of thin vectors only common tokens are compared; the masses include the others.
    given = found.scores()[same[0]] - found.log_mass, old.scores()[same[1]] - old.log_mass
    if 0.5 * np.abs(np.exp(given[0]) - np.exp(given[1])).sum() >= _SAME_MODEL:
        return False
    others = np.exp(found.scores() - found.log_mass)[~same[0]].sum()
    if found.thin == old.thin and others >= _SAME_MODEL:
        return False
    return bool(abs(found.log_mass - old.log_mass) < _SAME_MASS)


def telling(trie: Trie, count: int) -> list[Node]:
    """Returns the root, and among the last visited prefixes those with the most possible continuations. A
    prefix inside a key of a schema tells little, because all models agree there."""
    root, *others = trie.latest(_LATEST)
    others = [node for node in others if node.known and len(node.row)]
    others.sort(key=lambda node: -node.row.entropy)
    return [root, *others[: count - 1]]


# Recipe, sampling method 2: what a file of its own is built on, with a draw() as that of mcmc.py.
class Walker:
    """Runs walks over one target and one trie."""

    def __init__(self, target: Target, trie: Trie | None = None, batch: int = 16) -> None:
        if batch < 1:
            raise ValueError("batch must be positive")
        self.target = target
        self.trie: Trie = Trie() if trie is None else trie
        self.batch = batch
        self.diary: Diary = Diary()
        self.watch: Callable[[Prefix], None] | None = None  # called with each prefix that a condition refuses
        self.drafts: Drafts | None = None  # drafted places, whose vectors the next forward computes, too
        self._whole: OrderedDict[Node, Vector] = OrderedDict()

    def claim(self) -> None:
        """Binds the trie to the target. Raises a StructgenError if the trie belongs to another target or
        model."""
        key = self.target.key()
        if self.trie.key is None:
            self.trie.key = key
        elif self.trie.key != key:
            raise StructgenError(
                "the trie belongs to another target (vocabulary, prompt, grammar, sampling parameters or "
                "potentials differ): begin a new one"
            )
        if self.trie.root.known and not self.trie.made_by(self.target.lm) and not self._alike():
            raise StructgenError("the trie was made with another model: begin a new one")
        self.trie.adopt(self.target.lm)

    def _alike(self) -> bool:
        """Returns whether the model gives the trie's vectors, up to rounding. A key does not identify a
        model's weights (or adapters)."""
        nodes = telling(self.trie, _PROBES)
        probes = []
        for node in nodes:
            probe = Walk(Node(None, -1), Source(np.random.default_rng(0)))
            probe.tokens = self.trie.tokens(node)
            probe.data = self.target.text(probe.tokens)
            probes.append(probe)
        return all(
            alike(found, node.row) for node, found in zip(nodes, self.target.expand(probes), strict=True)
        )

    def start(self, chance: Chance, mode: Mode = LOCAL) -> Walk:
        walk = Walk(self.trie.root, chance, self.trie.theta if mode.coin else 0.0)
        walk.theta = self.trie.theta if mode.bounds else 0.0
        return walk

    def expand(self, walks: Sequence[Walk]) -> None:
        """Gives every walk's last node its vector. One batch computes the missing vectors."""
        wanted = list({id(walk.node): walk for walk in walks if self.lacks(walk.node)}.values())
        fresh = [walk for walk in wanted if not walk.node.known]
        own = {tuple(walk.tokens) for walk in fresh}
        ahead = {tuple(place.tokens): place for walk in fresh for place in self._places(walk)}
        drafts = [place for tokens, place in ahead.items() if tokens not in own]
        for place, found in zip(drafts, self._expanded(fresh, drafts), strict=False):
            self._learn_ahead(place, found)
        for walk in wanted:
            if self.lacks(walk.node):
                if self.target.thin:
                    assert walk.node.urn is not None
                    walk.node.row.whole = self.whole(walk)
                    walk.node.urn.exact = True
                    self.trie.touch(walk.node)
                else:
                    self.trie.replace(walk.node, self.whole(walk))

    def _expanded(self, fresh: Sequence[Walk], drafts: Sequence[Walk]) -> list[Vector]:
        """Gives the walks their vectors, and returns the vectors of the drafts. Both are one batch."""
        try:
            found = self.target.expand([*fresh, *drafts])
        except BudgetExceeded:  # The error may come from a draft that no walk will reach.
            if not drafts:
                raise
            found = self.target.expand(fresh)
        for walk, vector in zip(fresh, found, strict=False):
            walk.node.vector = vector
            self.trie.touch(walk.node)
        return found[len(fresh) :]

    def _places(self, walk: Walk) -> list[Walk]:
        return [] if self.drafts is None else self.drafts.places(walk)

    def _learn_ahead(self, place: Walk, found: Vector) -> None:
        """Keeps a drafted vector at its node, if the trie still has the path."""
        node = self.trie.root
        for token in place.tokens:
            slot = node.row.slot(token) if node.vector is not None else None
            if slot is None:
                return
            node = node.child(token, slot)
        if not node.known:
            node.vector = found
            self.trie.touch(node)

    def lacks(self, node: Node) -> bool:
        """Returns whether a node has no vector, or only a thin one while a whole one is needed."""
        if node.vector is None:
            return True
        if not node.vector.thin:
            return False
        if not self.target.thin:
            return True
        return node.urn is not None and node.urn.crowded

    def whole(self, walk: Walk) -> Vector:
        """Returns the whole vector of a walk's last node, which has a thin one. It is kept for the next
        draws."""
        if walk.node.row.whole is not None:
            return walk.node.row.whole
        found = self._whole.pop(walk.node, None)
        if found is None:
            found = self.target.expand([walk], thin=False)[0]
        self._whole[walk.node] = found
        while len(self._whole) > _WHOLE:
            self._whole.popitem(last=False)
        return found

    def _from_tail(self, walk: Walk, lot: Vector | Urn) -> int:
        """Returns the slot of a draw that fell into the tail of a thin vector.

        The draw is over all tokens of the tail, in the order of their ids, whether they were drawn before or
        not. So a draw depends on learned bounds only by the factors. First a block of ids is drawn, then a
        token of the block, so a row on the model's device need not be copied.
        """
        row = walk.node.row
        rest = None if row.whole is not None else self.target.rest_there(walk, row)
        if rest is not None:
            if isinstance(lot, Urn):
                rest.weigh(lot.others)
            block = rest.block(walk.chance.choose(np.cumsum(rest.blocks())))
            at = walk.chance.choose(np.cumsum(block.weights))
            return row.keep(block.first + at, float(block.values[at]))
        whole = self.whole(walk)
        scores = row.others(whole)
        plain = scores.copy() if isinstance(lot, Urn) else scores
        if isinstance(lot, Urn):
            lot.factored(scores, whole)
        weights, blocks = np.exp(scores - scores.max()), whole.ids // BLOCK
        begin, end = np.searchsorted(
            blocks, walk.chance.choose(np.cumsum(np.bincount(blocks, weights))) + np.arange(2)
        )
        at = int(begin) + walk.chance.choose(np.cumsum(weights[begin:end]))
        # A second draw from this tail takes place here, so keeping the whole vector is worth its memory.
        if row.more and row.whole is None:
            row.whole = whole
        return row.keep(int(whole.ids[at]), float(plain[at]) + row.shift)

    def tidy(self, walks: Sequence[Walk]) -> None:
        """Keeps the trie within its budget between steps of walks. Callers call it before they need vectors.

        The paths of these walks count as just used, so old nodes are evicted, leaves first.
        """
        if self.trie.full:
            for walk in walks:
                for node in reversed(walk.path):
                    self.trie.touch(node)
            self.trie.shrink()

    def fetch(self, walks: Sequence[Walk]) -> None:
        """`expand` and `tidy`: fetches vectors, and keeps the trie within its budget."""
        self.tidy(walks)
        self.expand(walks)

    def follow(self, walk: Walk, slot: int) -> None:
        """Appends the token of a slot for a search: without bounds, and with the condition's verdict."""
        self.take(walk, slot, walk.node.row.log_mass, False)
        self.judge(walk, LOCAL)

    def run(self, walks: Sequence[Walk], mode: Mode, ahead: bool = False) -> None:
        """Runs walks to their ends, in step. `ahead`: only to fetch their vectors."""
        going = [walk for walk in walks if not walk.ended]
        while going:
            self.fetch(going)
            for walk in going:
                self.step(walk, mode, ahead)
            going = [walk for walk in going if not walk.ended]
        if not ahead:
            for walk in walks:
                self.finish(walk, mode)

    def step(self, walk: Walk, mode: Mode, ahead: bool = False) -> None:
        """Draws one token of a walk whose last node is known."""
        node = walk.node
        if not ahead:
            self.target.spent.visits += 1
            self.diary.note(len(walk.tokens), node)
        total, lot = node.proposal(mode.bounds)
        if total == NEVER:
            walk.kill(node.row.reason or "dead end")
            return
        if mode.coin and total < walk.bound and not walk.chance.coin(math.exp(total - walk.bound)):
            walk.kill("rejected")
            return
        condition = self.target.condition
        if mode.extra is not None and condition is not None and not ahead:
            found = estimate(self, walk, total, lot, mode.extra)
            if found is None:
                walk.kill("condition")
                return
            slot, total = found
        else:
            slot = lot.choose(walk.chance)
            if slot == TAIL:
                slot = self._from_tail(walk, lot)
        if mode.entropies:
            walk.entropies.append(node.row.entropy)
        self.take(walk, slot, total, mode.bounds)
        if not ahead:
            self.judge(walk, mode)

    def take(self, walk: Walk, slot: int, total: float, bounds: bool) -> None:
        """Appends the token of a slot. `total` is the log normaliser of its draw."""
        node = walk.node
        token = node.row.token(slot)
        edge = node.edge(token, slot)
        walk.steps.append(total - walk.bound)
        walk.scores.append(edge.score)
        walk.logps.append(edge.logp)
        walk.masses.append(node.row.log_mass)
        walk.log_weight += total - walk.bound
        walk.bound = edge.upper if bounds else 0.0
        walk.logp += edge.logp
        walk.tokens.append(token)
        if token == self.target.end:
            walk.ended = True
        else:
            walk.data += self.target.vocabulary.token_bytes(token)
            walk.path.append(node.child(token, slot))

    def judge(self, walk: Walk, mode: Mode) -> None:
        """Asks the condition about the last token. An ended text gets the weight of its end."""
        node = walk.path[-1] if walk.ended else walk.path[-2]
        edge = node.edges[walk.tokens[-1]]
        if not self.allowed(walk, node, edge):
            if not walk.ended:
                walk.path.pop()
            walk.kill("condition")
        elif walk.ended:
            value = self.end_weight(walk, node, edge)
            walk.value = sum(walk.scores) + value
            if value == NEVER:
                walk.kill("critic")
            elif mode.coin and value < walk.bound and not walk.chance.coin(math.exp(value - walk.bound)):
                walk.kill("rejected")
            else:
                # theta of a whole text is its weight; the twist is divided out.
                walk.log_weight += value - walk.bound - walk.twist
                walk.steps[-1] += value - walk.bound
                walk.twist = 0.0

    def allowed(self, walk: Walk, node: Node, edge: Edge) -> bool:
        """Returns the condition's verdict on the walk so far. It is remembered at the edge that led to the
        walk's last node."""
        condition = self.target.condition
        if condition is None or not (walk.ended or condition.guides):
            return True
        if edge.verdict is not None:
            self.target.spent.tests_saved += 1
            return edge.verdict
        self.target.spent.tests += 1
        text = walk.prefix()
        value = condition.complete(text) if walk.ended else condition.prefix(text)
        edge.verdict = weight(value, text) > NEVER
        if not edge.verdict:
            node.settle(edge, NEVER)
            if self.watch is not None and not walk.ended:
                self.watch(text)
        return edge.verdict

    def end_weight(self, walk: Walk, node: Node, edge: Edge) -> float:
        """Returns the critic's weight of a whole text that the condition allows. The trie records it."""
        critic = self.target.critic
        if critic is None:
            node.settle(edge, 0.0)
            return 0.0
        if critic.bounded and (edge.lower > NEVER or edge.upper == NEVER):
            self.target.spent.tests_saved += 1
            return edge.upper
        self.target.spent.tests += 1
        text = walk.prefix()
        value = weight(critic.complete(text), text, critic.bounded)
        if critic.bounded:
            node.settle(edge, value)
        return value

    def finish(self, walk: Walk, mode: Mode) -> None:
        """Counts the end of a walk. Passes its bounds up the trie if the mode says so."""
        if self.drafts is not None:
            self.drafts.end(walk)
        if walk.reason:
            self.diary.killed[walk.reason] += 1
        if mode.learns:
            self.trie.learn([node for node in walk.path if node.known])
        else:
            for node in reversed(walk.path):
                self.trie.touch(node)
            self.trie.shrink()

    def in_turn(
        self,
        make: Callable[[int], Walk],
        mode: Mode,
        wanted: Callable[[Walk, int], bool],
        room: Callable[[], int],
    ) -> None:
        """Runs walks 0, 1, 2, ... one after another. Each uses the bounds of the earlier ones.

        `wanted(walk, index)` takes each finished walk and returns whether another one is needed; `room()` is
        the number of walks that will surely be needed. While walks meet unknown prefixes, vectors are fetched
        for up to `batch` of these walks at a time.
        """
        index, misses, ahead = 0, 1, self.batch
        while True:
            block = range(index, index + max(1, min(ahead, room())))
            before = self.target.spent.positions
            if misses and len(block) > 1:
                self.run([make(i) for i in block], mode, ahead=True)
            fetched = self.target.spent.positions - before
            for i in block:
                walk = make(i)
                self.run([walk], mode)
                if not wanted(walk, i):
                    return
            index = block.stop
            misses = self.target.spent.positions - before
            # If walks leave the paths that were fetched ahead, fewer paths are fetched.
            ahead = max(1, ahead // 4) if 2 * misses > 3 * fetched else min(self.batch, 2 * ahead)
