"""Answers that the engine does not make token by token in its common batch: `sg.sample`'s methods, and
speculation.

Enters: a prepared job. Leaves: its pieces, in the form of the engine's pieces; for sampling also facts about
all texts together. Cost: one such request runs at a time, in a thread beside the engine; the two take turns
at the model.

The problem. The methods of sampling draw whole texts and also go back in them, and speculation has batches
and keys of its own. Neither fits into a step of the engine, which gives each answer one token.

The idea. `check` refuses what cannot be combined. `_turn` waits in a line of at most `_WAITING` requests for
the one place, and keeps the engine from releasing vectors meanwhile. In it

    sample       runs `sg.sample`. All texts of the job are there at once, with weights (`weights`) and a
                 note (`told`).
    speculate    runs the loop of speculation/engine.py in a thread. `_Teller` turns emitted tokens into
                 the same pieces as the engine's, while they are made.
    trace        reads finished texts again, to tell how each token came about
    confident    reads finished texts again, to tell how probable the value of each leaf is: fields()

`weights` normalises log-weights: texts with the log-weights -1 and -1 weigh 0.5 each.

Invariants.
- One such request runs at a time; waiting counts towards its time.
- Pieces of speculation arrive in order, on the job's event loop. If somebody watches, those of a step arrive
  together, with its draft tree.
- A run ends if its client left or its time is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import threading
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..errors import BudgetExceeded, SchemaTooComplex, StructgenError
from ..generation.confidence import FieldProbability, field_probabilities
from ..generation.watch import Seen, drafted, seen
from ..logits import allocate_bitmask
from .errors import ApiError, busy, late, of_constraint, unexpected
from .sequence import Finish, Job, Piece

if TYPE_CHECKING:
    from ..sampling.results import Samples
    from ..speculation.options import Speculation
    from ..speculation.score import Scores
    from ..speculation.tree import DraftTree
    from .reply import Reply
    from .requests import OwnOptions, SamplingMethod
    from .service import RequestRun, Service

_WAITING = 16  # the most requests in line, the running one included
_TRACED = 32  # the most contexts in one forward pass


def check(job_plan: Any, extension: OwnOptions, tools: bool) -> None:
    """Raises an ApiError if a request asks for something that sampling or speculation cannot do."""
    drawing = job_plan.drawing
    what = "sampling" if extension.sampling is not None else "speculate"
    if extension.sampling is not None and extension.speculate is not None:
        raise ApiError("a request takes 'sampling' or 'speculate', not both", param="structgen")
    if extension.sampling is not None and drawing.temperature == 0:
        raise ApiError(
            "'sampling' draws from a distribution, and temperature 0 has none: give one above 0",
            param="temperature",
        )
    if not drawing.plain:
        raise ApiError(
            f"'{what}' takes temperature, top_k and top_p, no penalties, bias or min_p", param="structgen"
        )
    if job_plan.least or job_plan.ignore_ends:
        raise ApiError(f"'{what}' takes no 'min_tokens' or 'ignore_eos'", param="structgen")
    if job_plan.tops is not None:
        raise ApiError(f"'{what}' gives no log-probabilities of tokens", param="logprobs")
    if extension.sampling is not None and (job_plan.stops or job_plan.stop_ids or tools):
        raise ApiError("'sampling' draws whole texts: leave 'stop' and 'tools' out", param="structgen")


@contextlib.asynccontextmanager
async def _turn(service: Service, job: Job) -> AsyncIterator[None]:
    """Waits in line for the one place, within the job's time.

    Raises an ApiError if the line is full or the time is over.
    """
    if service.in_line >= _WAITING:
        raise busy(f"{_WAITING} requests wait for sampling or speculation already: try again")
    service.in_line += 1
    try:
        async with asyncio.timeout(max(0.0, job.deadline - time.monotonic())), service.alone:
            with service.engine.keeping():
                yield
    except TimeoutError:
        raise late(service.options.request_seconds) from None
    finally:
        service.in_line -= 1


async def sample(service: Service, job: Job, method: SamplingMethod) -> Samples:
    """Draws all texts of a job with `sg.sample`. Raises an ApiError if an argument is wrong or the time is
    over."""
    from ..sampling.api import sample_async

    drawing = job.plan.drawing
    async with _turn(service, job):
        try:
            return await sample_async(
                service.lm,
                job.prompt,
                job.plan.grammar,
                method=method.method,
                n=job.count,
                seed=drawing.seed,
                max_tokens=job.plan.room,
                temperature=drawing.temperature,
                top_k=drawing.top_k,
                top_p=drawing.top_p,
                budget=method.budget,
                until_tv=method.until_tv,
                max_trials=method.max_trials,
                steps=method.steps,
                proposal=method.proposal,
                format="plain",
            )
        except (StructgenError, ValueError) as error:
            raise of_constraint(error, "structgen.sampling") from error


async def trace(service: Service, job: Job, texts: Sequence[Sequence[int]]) -> list[list[Seen]]:
    """Returns a record of each token of finished texts: the model's probabilities, and the masks."""

    def work() -> list[list[Seen]]:
        return [_traced(service, job, tokens) for tokens in texts]

    async with _turn(service, job):
        return await asyncio.to_thread(work)


def _traced(service: Service, job: Job, tokens: Sequence[int]) -> list[Seen]:
    plan = job.plan
    contexts = [job.prefixes[-1]]
    for token in tokens[:-1]:
        contexts.append(contexts[-1].extend(token))
    matcher = None if plan.grammar is None else plan.grammar.matcher()
    mask = None if matcher is None else allocate_bitmask(1, job.vocabulary.vocab_size)
    found: list[Seen] = []
    for begin in range(0, len(tokens), _TRACED):
        if job.cancelled.is_set():
            break
        rows = service.lm.logprobs(contexts[begin : begin + _TRACED])
        for row, token in zip(rows, tokens[begin : begin + _TRACED], strict=True):
            left = plan.room - len(found)
            start = time.perf_counter()
            if matcher is not None:
                matcher.fill_bitmask(mask, 0, max_tokens=left if plan.budget else None)
            taken = time.perf_counter() - start
            found.append(seen(token, row, None if mask is None else mask[0], left, taken))
            if matcher is not None:
                matcher.accept_token(token)
    return found


async def confident(service: Service, run: RequestRun, index: int, written: Reply, reads: int) -> None:
    """Adds a note to a finished answer: the leaves of the answer, with bounds on the probability of each
    value.

    Args:
        index: of the answer among all of the run. reads: prefixes that are read for a leaf; 0: no note.
    """
    if not reads:
        return
    run.choice_notes = run.choice_notes or [{} for _ in range(run.count)]
    run.choice_notes[index] |= {"fields": await fields(service, run.job_of(index), written, reads)}


async def fields(service: Service, job: Job, written: Reply, reads: int) -> list[dict[str, Any]]:
    """Returns the leaves of a finished answer as JSON. Raises an ApiError as `sample` does."""
    async with _turn(service, job):
        return [asdict(leaf) for leaf in await asyncio.to_thread(_leaves, service, job, written, reads)]


def _leaves(service: Service, job: Job, written: Reply, reads: int) -> list[FieldProbability]:
    if written.finish != "stop" or written.stopped_by is not None or written.calls:
        return []
    try:
        json.loads(written.text)
    except ValueError:
        is_json = False
    else:
        is_json = True
    context, grammar = job.prefixes[-1], job.plan.grammar
    # The reads get half of the remaining time. So the answer is sent in time, and no thread reads behind the
    # deadline.
    until = (time.monotonic() + job.deadline) / 2

    def go_on() -> bool:
        return time.monotonic() < until and not job.cancelled.is_set()

    return field_probabilities(
        service.lm, context, grammar, written.ids, written.text, is_json, True, reads, go_on
    )


def told(found: Samples) -> dict[str, Any]:
    """Returns a note about all texts together, for the answer's field `structgen`."""
    d = found.diagnostics
    bracket = found.log_bracket
    return {
        "law": found.law,
        "method": d.method,
        "reasons": d.reasons,
        "log_evidence": finite(found.log_evidence),
        "log_bracket": None if bracket is None else [finite(x) for x in bracket],
        "tv_bound": None if found.tv_bound is None else finite(found.tv_bound),
        "seed": d.seed,
        "draws": d.draws,
        "accepted": d.accepted,
        "forwards": d.calls,
        "stopped": d.stopped,
    }


def finite(value: float) -> float | None:
    """Returns the value; None if it is not finite, because JSON has no such numbers."""
    return value if math.isfinite(value) else None


# ---- speculation ----


def options_of(service: Service, asked: Any) -> Speculation:
    """Returns the options of speculation.

    Raises an ApiError if a drafter is unknown, or if the model cannot remove refused drafts.
    """
    from ..speculation.options import resolve

    try:
        options = resolve("auto" if asked == "auto" else _named(service, asked), service.lm)
        if options is not None and asked != "auto":
            service.lm.check_tree_scoring()  # type: ignore[attr-defined]
    except AttributeError:
        options = None
    except (StructgenError, ValueError) as error:
        raise ApiError(str(error), param="structgen.speculate") from None
    if options is None:
        raise ApiError("this model cannot take drafts back", param="structgen.speculate")
    return options


def _named(service: Service, asked: Sequence[str]) -> Speculation:
    from ..speculation.options import named

    return named(",".join(asked), more=service.drafters)


async def speculate(service: Service, job: Job, options: Speculation) -> None:
    """Makes the answers of a job. Pieces arrive while they are made."""
    stop = threading.Event()
    try:
        async with _turn(service, job):
            await asyncio.to_thread(_speculate, service, job, options, stop)
    except asyncio.CancelledError:
        stop.set()
        raise
    except Exception as error:
        stop.set()
        limit = isinstance(error, (BudgetExceeded, SchemaTooComplex))
        told = of_constraint(error, job.plan.param) if limit else unexpected(error)
        job.pieces.put_nowait(Piece(0, error=told))


def _speculate(service: Service, job: Job, options: Speculation, stop: threading.Event) -> None:
    from ..speculation.engine import Row, SpeculativeRows
    from ..speculation.sampled import SampledRun
    from ..speculation.score import open_scorer

    lm, plan = service.lm, job.plan
    kind = SpeculativeRows if options.rule == "coupled" else SampledRun
    run = kind(open_scorer(lm), lm.vocabulary, lm.eos_token_ids, plan.drawing, options, logprobs=False)
    ends = frozenset(lm.eos_token_ids)
    rows = []
    names = [drafter.name for drafter in options.drafters]
    for index in range(job.count):
        teller = _Teller(job, index, ends, names)
        rows.append(
            Row(
                job.prompt,
                None if plan.grammar is None else plan.grammar.matcher(),
                plan.drawing.noise(index),
                plan.room,
                plan.room if plan.budget else None,
                plan.grammar,
                None,
                teller.take,
                teller.step if plan.watch else None,
            )
        )
    run.add_alike(rows)
    while run.live:
        if stop.is_set() or job.cancelled.is_set():
            return
        if time.monotonic() > job.deadline:
            raise late(service.options.request_seconds)
        run.step()


class _Teller:
    """Turns the emitted tokens of one row into pieces.

    With `watch` the pieces of a step are kept until the step ends, and the first one has its draft tree.
    """

    def __init__(self, job: Job, index: int, ends: frozenset[int], names: Sequence[str]) -> None:
        self.job = job
        self.index = index
        self.ends = ends
        self.names = names
        self.stream = job.plan.stream()
        self.position = 0
        self.held: list[Piece] = []
        grammar = job.plan.grammar
        # The teller has a matcher of its own: when a step is reported, the row's matcher stands behind the
        # step's tokens.
        self.matcher = grammar.matcher() if job.plan.watch and grammar is not None else None
        self.mask = None if self.matcher is None else allocate_bitmask(1, job.vocabulary.vocab_size)

    def take(self, tokens: Sequence[int]) -> bool:
        plan = self.job.plan
        piece = Piece(self.index)
        for token in tokens:
            self.position += 1
            piece.tokens += 1
            piece.ids.append(token)
            if token in self.ends or token in plan.stop_ids:
                piece.stopped_by = None if token in self.ends else token
                self.end(piece, "stop")
                break
            data = self.job.vocabulary.tokens[token] or plan.names.get(token, b"")
            piece.text += self.stream.feed(data)
            piece.reasoning += self.stream.thoughts
            piece.reasoning_tokens += not self.stream.answering
            if self.stream.stopped_by is not None:
                piece.stopped_by, piece.finish = self.stream.stopped_by, "stop"
                break
            if self.position >= plan.room:
                self.end(piece, "length")
                break
        if plan.watch:
            self.held.append(piece)
        else:
            self.tell([piece])
        return piece.finish is not None

    def end(self, piece: Piece, finish: Finish) -> None:
        """Adds the text that the stream still held back."""
        piece.text += self.stream.finish()
        piece.reasoning += self.stream.thoughts
        piece.finish = finish

    def step(self, tree: DraftTree, path: Sequence[int], emitted: Sequence[int], scores: Scores) -> None:
        """Ends a step: adds to each piece a record of its one token."""
        plan = self.job.plan
        found = drafted(tree, path, emitted, self.names)
        self.held[0].drafted = found
        node = -1
        for i, (piece, token) in enumerate(zip(self.held, emitted, strict=True)):
            left = plan.room - (self.position - len(emitted) + i)
            begin = time.perf_counter()
            if self.matcher is not None:
                self.matcher.fill_bitmask(self.mask, 0, max_tokens=left if plan.budget else None)
            taken = time.perf_counter() - begin
            mask = None if self.mask is None else self.mask[0]
            child = tree.child(node, token)
            by = found.drafters[child] if child is not None and child < len(found.drafters) else ()
            piece.seen.append(seen(token, scores.vector(node + 1), mask, left, taken, by))
            if self.matcher is not None:
                self.matcher.accept_token(token)
            node = path[i] if i < len(path) else node
        held, self.held = self.held, []
        self.tell(held)

    def tell(self, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            self.job.loop.call_soon_threadsafe(self.job.pieces.put_nowait, piece)
