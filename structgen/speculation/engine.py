"""The loop of speculative decoding: draft, score, verify, keep, learn. It serves one text, or a batch of
texts of different lengths.

Enters: rows (a prompt, a matcher, noise) and a scorer of the target. Leaves: each row's tokens, equal to
those of plain decoding, and statistics. Cost: one forward of the target a step, shared by all rows.

The problem. A forward of the target over a few tokens costs little more than one over a single token, but
plain decoding knows only one token at a time. Guesses of what comes next can share a forward, if a wrong
guess changes nothing and a useless drafter does not cost more than it saves.

The idea. A step of one row has five parts:

    build    cursors of the drafters -> tree, pruned by the grammar, sized by goodput     tree.py, goodput.py
    score    one forward over [tokens taken last, tree]                                   score.py
    verify   the target's own draws along the tree                                        verify.py
    keep     keys of the accepted path stay, all others go
    learn    drafters see what was emitted; acceptance and costs are counted

For the text `{"name":"A"` and the tree `,` - `"age"` - `:` with a second child `}` below the root: the target
draws a token after the text. If it is `,`, that token is emitted and the row goes on to the node `,`, whose
scores are there already. If the tree does not have the token, the token is emitted, too, and the step ends.
So a step emits at least one token: one more than the accepted nodes, unless the text ends on a node.

The draws are those of plain decoding. The noise of a draw depends on its place alone (_draws.py), so the
target draws the same token whether the tree has it or not.

Which drafters are asked. A bench (`goodput.Bench`) compares the cost of drafting with the time that accepted
tokens save. A drafter that takes more than `_DEAR` of a forward pass is judged alone, and all others are
judged together.

Invariants.
- The matcher is moved while a tree is built and put back. After that only emitted tokens move it, so a draft
  that was refused leaves no trace in it.
- Every live row gets at least one token in a step.
- A session is told each emitted token once. The steps that it misses while it sits out are kept (`waiting`)
  and told before it is asked again or closed.

Rejected. Counting the time of all drafters against each drafter: one bad drafter then made good drafters sit
out. Judging cheap drafters one by one: chance then made them sit out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._draws import Noise, Shape
from .base import CONTEXT, LIKELY, Likely, Session, Start, Step
from .goodput import Bench, Calibration, Goodput
from .options import Speculation
from .statistics import DrafterStatistics, Statistics
from .tree import Built, DraftTree, build, tree_masks
from .verify import Drawer

if TYPE_CHECKING:
    from ..grammar import CompiledGrammar
    from ..matcher import Matcher
    from ..vocabulary import Vocabulary
    from .score import Scorer, Scores

_ALL = -1  # the bench's number for drafting as a whole
_PATIENCE = 3.0  # a dear drafter sits out if it lost more time than so many forward passes take
# a drafter that takes more than this share of a forward pass in a step is dear, and is judged alone
_DEAR = 0.1


@dataclass
class Row:
    """One live text.

    Attributes:
        prompt: the target's ids, at least one.
        matcher: stands at the start of the text, and belongs to the row; None for free text.
        noise: the noise of the draws; None for greedy decoding.
        room: the most tokens of the text.
        budget: the number of tokens within which the text has to be complete; None: it may be cut off.
        on_tokens: called with each emitted token; True ends the row.
        on_step: called after each step with the tree, the accepted nodes, the emitted tokens and the scores.
            The scores of node i stand at i + 1. It must not keep any of them.
    """

    prompt: Sequence[int]
    matcher: Matcher | None
    noise: Noise | None
    room: int
    budget: int | None = None
    grammar: CompiledGrammar | None = None
    text: str | None = None
    on_tokens: Callable[[Sequence[int]], bool] | None = None
    on_step: Callable[[DraftTree, Sequence[int], Sequence[int], Scores], None] | None = None
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    done: bool = False
    stopped: bool = False


class _Live:
    """A row, with the state that the run keeps for it."""

    def __init__(self, row: Row, run: SpeculativeRows) -> None:
        self.row = row
        start = Start(
            row.prompt, run.vocabulary, row.grammar, run.how.temperature, row.noise, run.compile, row.text
        )
        self.taken: list[int] = list(row.prompt)
        self.sessions: list[Session] = [d.open(start) for d in run.options.drafters]
        # For each session the emitted tokens that it does not know yet, because it sat out.
        self.waiting: list[list[int]] = [[] for _ in self.sessions]
        self.calibration = Calibration(len(self.sessions), run.options.calibration)
        self.bench = Bench(run.options.bench)
        self.asked: list[int] = []
        self.drawer = Drawer(
            row.matcher,
            run.how,
            row.noise,
            run.ends,
            run.vocabulary.vocab_size,
            run.statistics,
            lazy=run.options.lazy,
            restricted=run.restricted,
        )
        self.built = Built(DraftTree())
        self.seconds = 0.0
        self.masks: npt.NDArray[np.int32] | None = None
        self.expense = [0.0] * len(self.sessions)

    def afford(self, base: float, number: int, chance: float) -> bool:
        """Returns whether a drafter is worth asking at a node that is reached with this probability.

        The drafter's time must be less than this share of a forward pass, which is the most that it can save
        at the node.
        """
        return self.expense[number] < chance * base

    @property
    def left(self) -> int:
        return self.row.room - len(self.row.tokens)


class _Look:
    """`Step.look` of one step. It is computed at most once, when the first drafter asks."""

    def __init__(self, item: _Live, scores: Scores, path: Sequence[int], emitted: int) -> None:
        self._item, self._scores, self._path, self._emitted = item, scores, path, emitted
        self._found: Likely | None = None
        self._done = False

    def __call__(self) -> Likely | None:
        if not self._done:
            self._done = True
            self._found = self._computed()
        return self._found

    def _computed(self) -> Likely | None:
        found = self._scores.top(LIKELY)
        if found is None:
            return None
        row, tree = self._item.row, self._item.built.tree
        before = row.tokens[: -self._emitted][-CONTEXT:]
        if len(before) < CONTEXT:
            before = [*row.prompt[len(before) - CONTEXT :], *before]
        contexts = [tuple(before)]
        for token, parent in zip(tree.tokens, tree.parents, strict=True):
            contexts.append((*contexts[parent + 1], token)[-CONTEXT:])
        # Nodes without an offer are probes, whose text need not be valid.
        last = {-1, *self._path}
        order = [n for n, offers in enumerate(tree.offers) if offers and n not in last] + [-1, *self._path]
        rows = [n + 1 for n in order]
        return Likely([contexts[r] for r in rows], found[0][rows], found[1][rows])


class SpeculativeRows:
    """Rows decoded together. Add rows at any time; `step` until none is live.

    Args:
        scorer: scores trees with the target. It must have no rows yet.
        vocabulary: the vocabulary of the target.
        ends: the end-of-sequence ids of the target.
        how: temperature, top-k, top-p.
        options: drafters and limits; rule "coupled".
        logprobs: True fills `Row.logprobs`. False allows two savings: the head may be restricted to allowed
            rows, and an end without an alternative costs no forward.
        compile: compiles the constraint for a drafter that has another vocabulary.
    """

    def __init__(
        self,
        scorer: Scorer,
        vocabulary: Vocabulary,
        ends: Sequence[int],
        how: Shape,
        options: Speculation,
        *,
        logprobs: bool = True,
        compile: Callable[[Any], CompiledGrammar] | None = None,
    ) -> None:
        self.scorer = scorer
        self.vocabulary = vocabulary
        self.ends: frozenset[int] = frozenset(ends)
        self.how = how
        self.options = options
        self.logprobs = logprobs
        self.compile = compile
        self.statistics: Statistics = Statistics()
        self.restricted: int = 0
        if not logprobs and options.restricted_head and scorer.restricts:
            self.restricted = options.restricted_head
        self._live: list[_Live] = []
        # The share of the drafting time in which this thread ran; in the rest, other processes ran.
        self._share = 1.0
        self._waits = any(getattr(d, "waits", False) for d in options.drafters)
        for drafter in options.drafters:
            self.statistics.drafters.setdefault(drafter.name, DrafterStatistics())

    @property
    def live(self) -> list[Row]:
        """The rows that are not finished."""
        return [item.row for item in self._live]

    def add(self, row: Row, *, read: bool = False) -> None:
        """Adds a row.

        The next step reads the row's prompt. `read` says that all of the prompt but its last token has been
        read already.
        """
        if not row.prompt:
            raise ValueError("speculation needs a prompt of a token or more: this one has none")
        if row.room < 1:
            raise ValueError(f"room must be at least 1, not {row.room}")
        item = _Live(row, self)
        if read:
            item.taken = item.taken[-1:]
        else:
            self.scorer.add([row.prompt])
        self._live.append(item)

    def add_alike(self, rows: Sequence[Row]) -> None:
        """Adds the first rows of a run. The rows have one prompt, which is read once."""
        prompt = rows[0].prompt
        read = len(rows) > 1 and len(prompt) > 1 and self.scorer.share(prompt[:-1], len(rows))
        for row in rows:
            self.add(row, read=read)

    def step(self) -> None:
        """Runs one forward. Every live row gets at least one token."""
        begin, building = time.perf_counter(), self.scorer.clock()
        stats = self.statistics
        for item in self._live:
            self._draft(item)
        drafted = time.perf_counter()
        blocks = [(i.taken, i.built.tree.tokens, i.built.tree.parents) for i in self._live]
        running = self.scorer.clock()
        if not self._waits:
            self._share = min(1.0, (running - building) / max(drafted - begin, 1e-9))
        scores = self.scorer.score(blocks, bool(self.restricted))
        eager = self.options.eager
        if self.scorer.overlaps if eager is None else eager:
            # The model may still be running, so the masks are computed meanwhile.
            for item in self._live:
                item.masks = self._tree_masks(item)
        self.scorer.wait()
        seconds = self.scorer.clock() - running
        scored = time.perf_counter()
        stats.forwards += 1
        stats.row_forwards += len(self._live)
        if all(len(i.taken) == 1 for i in self._live):
            self.options.cost.observe(self.scorer.width, seconds)
        results = [self._verify(item, s) for item, s in zip(self._live, scores, strict=True)]
        verified = time.perf_counter()
        self.scorer.keep([path for path, _ in results])
        kept = time.perf_counter()
        rows = len(self._live)
        for item, s, (path, emitted) in zip(self._live, scores, results, strict=True):
            self._learn(item, s, path, emitted, rows, (kept - verified) / rows)
        self._leave()
        end = time.perf_counter()
        self.options.cost.observe_drafting(sum(len(b[1]) for b in blocks), running - building)
        for part, spent in (
            ("draft", drafted - begin),
            ("forward", scored - drafted),
            ("verify", verified - scored),
            ("keep", kept - verified),
            ("learn", end - kept),
        ):
            stats.add(part, spent)

    def run(self) -> None:
        """Steps until every row is finished."""
        while self._live:
            self.step()

    def _draft(self, item: _Live) -> None:
        """Builds the next tree of a row, with the drafters that do not sit out."""
        begin = time.perf_counter()
        options, row = self.options, item.row
        numbers = list(range(len(item.sessions)))
        item.asked = numbers
        item.built = Built(DraftTree())
        if options.adaptive and numbers:
            item.asked = item.bench.asked(numbers) if item.bench.asked([_ALL]) else []
        depth = item.left - 1
        if not item.asked or depth < 1 or not options.nodes:
            item.seconds = time.perf_counter() - begin
            return
        cursors = []
        seconds: dict[int, float] = {}
        for number in item.asked:
            start = time.perf_counter()
            self._tell(item, number)
            cursor = item.sessions[number].cursor()
            seconds[number] = time.perf_counter() - start
            if cursor is not None:
                cursors.append((number, cursor))
        goodput = afford = None
        if options.adaptive:
            goodput = Goodput(options.cost, len(self._live), 1)
            afford = partial(item.afford, options.cost(len(self._live)))
        item.built = build(
            row.matcher,
            cursors,
            budget=options.nodes,
            depth=depth,
            ends=self.ends,
            position=len(row.tokens),
            calibration=item.calibration,
            goodput=goodput,
            vocab_size=self.vocabulary.vocab_size,
            afford=afford,
            prune=options.prune,
        )
        for number, (calls, spent) in item.built.asked.items():
            item.expense[number] += 0.2 * (spent / calls - item.expense[number])
        for number, spent in seconds.items():
            item.built.seconds[number] = item.built.seconds.get(number, 0.0) + spent
        if not self.restricted:
            for number in item.asked:
                session = item.sessions[number]
                probes = session.probes()
                if probes:
                    parents = getattr(session, "probe_parents", None)
                    item.built.tree.add_probes(number, probes, parents and parents(), depth)
        stats = self.statistics
        stats.pruned += item.built.pruned
        stats.checks += item.built.checks
        item.seconds = time.perf_counter() - begin

    def _tree_masks(self, item: _Live) -> npt.NDArray[np.int32] | None:
        row = item.row
        if row.matcher is None:
            return None
        budget = None if row.budget is None else row.budget - len(row.tokens)
        self.statistics.masks += 1 + len(item.built.tree)
        return tree_masks(row.matcher, item.built.tree, self.vocabulary.vocab_size, budget)

    def _verify(self, item: _Live, scores: Scores) -> tuple[list[int], list[int]]:
        """Draws along the tree. Returns the accepted nodes and the emitted tokens."""
        row, tree = item.row, item.built.tree
        emitted: list[int] = []
        path: list[int] = []
        node = -1
        while True:
            token = self._choose(item, scores, node)
            emitted.append(token)
            row.tokens.append(token)
            if self.logprobs:
                row.logprobs.append(float(scores.vector(node + 1)[token]))
            told_to_stop = row.on_tokens is not None and row.on_tokens([token])
            if row.done or len(row.tokens) >= row.room:
                break
            if told_to_stop:
                row.stopped = True
                break
            child = tree.child(node, token)
            if child is None:
                break
            path.append(child)
            node = child
        item.taken = [emitted[-1]]
        item.masks = None
        if row.on_step is not None:
            row.on_step(tree, path, emitted, scores)
        return path, emitted

    def _choose(self, item: _Live, scores: Scores, node: int) -> int:
        """Draws the token behind a node (-1: behind the text), moves the row's matcher, and sets `done`."""
        row = item.row
        position = len(row.tokens)
        budget = None if row.budget is None else row.budget - position
        mask = None if item.masks is None else item.masks[node + 1]
        token = item.drawer.draw(scores, node + 1, position, budget, mask)
        row.done = item.drawer.done
        return token

    def _learn(
        self, item: _Live, scores: Scores, path: list[int], emitted: list[int], rows: int, keeping: float
    ) -> None:
        """Counts accepted tokens, reports them to the drafters, and compares each drafter's cost with its
        savings."""
        begin = time.perf_counter()
        stats, tree, row = self.statistics, item.built.tree, item.row
        stats.tokens += len(emitted)
        stats.drafted += len(tree)
        # If the text ended on a node of the tree, that node was accepted as well.
        at = path[-1] if path else -1
        ended = tree.child(at, emitted[-1]) if len(emitted) > len(path) else None
        accepted = path if ended is None else [*path, ended]
        stats.accepted += len(accepted)
        stats.idle += not len(tree)
        credit = self._credit(item, emitted, accepted)
        base = self.options.cost(rows) / rows
        dear = 0.0
        finished = row.done or row.stopped or len(row.tokens) >= row.room
        look = _Look(item, scores, path, len(emitted))
        for number in item.asked:
            if finished:
                # Some drafters keep a store for later texts, which learns from the last step, too.
                self._tell(item, number)
            start = time.perf_counter()
            nodes = tree.probes.get(number, ())
            said = [scores.best(node + 1) for node in nodes] if nodes else ()
            item.sessions[number].accept(Step(emitted, look, said))
            now = time.perf_counter()
            item.built.seconds[number] = item.built.seconds.get(number, 0.0) + now - start
            stats.drafters[self.options.drafters[number].name].seconds += item.built.seconds[number]
            spent = item.built.seconds[number] * self._share
            if self.options.adaptive and spent > _DEAR * base:
                item.bench.observe(number, spent, credit.get(number, 0.0) * base, _PATIENCE * base)
                dear += spent
        for number in range(len(item.sessions)):
            if number not in item.asked:
                item.waiting[number] += emitted
        if self.options.adaptive and item.asked:
            # The cost of drafting. It excludes the width of forward passes, which `Goodput` weighs, and the
            # time of dear drafters, which are judged alone.
            spent = item.seconds * self._share + keeping + time.perf_counter() - begin - dear
            item.bench.observe(_ALL, spent, len(accepted) * base)
        if not finished and not self.logprobs:
            self._finish_without_choice(item)

    def _credit(self, item: _Live, tokens: Sequence[int], accepted: Sequence[int]) -> dict[int, float]:
        """Returns the accepted tokens of each drafter.

        A token that several drafters offered is divided among them. The method also calibrates acceptance.
        """
        tree, names = item.built.tree, self.options.drafters
        stats = self.statistics
        for offers in tree.offers:
            for number, _ in offers:
                stats.drafters[names[number].name].drafted += 1
        credit: dict[int, float] = {}
        node = -1
        for depth in range(len(accepted) + 1):
            token = tokens[depth] if depth < len(tokens) else None
            if token is None:
                break
            for child_token, child in tree.children[node + 1].items():
                for number, p in tree.offers[child]:
                    item.calibration.observe(number, p, child_token == token)
            if depth < len(accepted):
                node = accepted[depth]
                offers = tree.offers[node]
                for number, _ in offers:
                    credit[number] = credit.get(number, 0.0) + 1.0 / len(offers)
                    stats.drafters[names[number].name].accepted += 1
        return credit

    def _tell(self, item: _Live, number: int) -> None:
        """Gives a session the tokens that it missed while it sat out."""
        if item.waiting[number]:
            item.sessions[number].accept(Step(item.waiting[number]))
            item.waiting[number] = []

    def _finish_without_choice(self, item: _Live) -> None:
        """Ends a text without a forward, if the end is its only next token.

        Called only if the probability of the end is not needed.
        """
        row = item.row
        if row.matcher is None or len(self.ends) != 1 or not row.matcher.is_accepting():
            return
        if row.matcher.live_bytes() or row.on_tokens is not None:
            return
        (end,) = self.ends
        if row.matcher.accept_token(end):
            row.tokens.append(end)
            row.done = True
            self.statistics.tokens += 1
            self.statistics.skipped += 1

    def _leave(self) -> None:
        """Removes finished rows."""
        stay = []
        for i, item in enumerate(self._live):
            row = item.row
            if row.done or row.stopped or len(row.tokens) >= row.room:
                self.options.bench.remember(item.bench)
                for number, session in enumerate(item.sessions):
                    self._tell(item, number)
                    session.close()
            else:
                stay.append(i)
        if len(stay) < len(self._live):
            self._live = [self._live[i] for i in stay]
            self.scorer.select(stay)
