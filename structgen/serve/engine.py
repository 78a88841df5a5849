"""The one thread that owns the model: continuous batching of all live answers.

Enters: jobs, from any thread. Leaves: pieces of their answers, on the event loop of each job.
Cost: a step is one forward for all answers, with their masks beside it, and at most one more that reads a
bounded number of prompt tokens.

The problem. Requests come and go at any time, and a forward over all answers costs little more than one over
a single answer. But one request may have a long prompt, many answers, or a grammar whose masks are slow, and
the others must not wait for it.

The idea. One thread repeats a step (`_step`):

    leave    jobs go whose client left or whose time is over; so do the largest grammars if memory is short
    join     waiting jobs come in; requests with the fewest places first
    read     a bounded number of prompt tokens, divided among the prompts
    forward  one row for each answer whose mask is there or may be soon; masks are filled meanwhile (masks.py)
    draw     each answer whose mask is ready gets a token; the others wait for a later step

Places. A live answer takes a place. With 8 places and a request of 8 answers, a request of 2 answers still
comes in: beside the largest request, others may take half of the number of places (4), so up to 12 answers
may be live. A large request that has waited long comes in when at most half of the places are taken, and
until then no job overtakes it.

Answers that share a beginning also share its keys, because `lm` keeps the keys in a prefix tree.

Invariants.
- Only this thread uses live answers, except that a worker fills a mask while `Answer.filling` is set.
- An error of one answer ends its job. An error of the model ends the jobs that are read or live. The
  thread goes on.
- Pieces of a job arrive in order, on its own event loop.
- A grammar with slow masks takes processors and memory only from other grammars with slow masks.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import BudgetExceeded, SchemaTooComplex
from ..lm.base import check_logprobs
from ..logits import allowed_bits, apply_bitmask
from .errors import ApiError, busy, late, of_constraint
from .masks import MaskThreads
from .sequence import Answer, Job, Piece, entry_of

if TYPE_CHECKING:
    from ..lm.base import Context, LanguageModel
    from .metrics import Metrics
    from .options import ServerOptions

_PATIENCE = 0.005  # seconds that a step waits after its forward for masks that were quick so far
_SLEEP = 0.05  # seconds: the longest pause while answers wait for masks
_ECHO = 32  # the most prompt tokens of a job in a step, if their log-probabilities are wanted
_STARVING = 5.0  # seconds after which a waiting job counts as starving
_IDLE = 0.002  # seconds of a pause without live answers
_LOOK = 0.05  # seconds between looks at the memory of live grammars
_SMALL = 1 << 15  # up to so many scores, three calls of numpy are quicker than `apply_bitmask`
_NEVER = np.float32(-np.inf)

_Rows = npt.NDArray[np.float32]


class ModelThread:
    """The thread, its queue and its live answers."""

    def __init__(self, lm: LanguageModel, options: ServerOptions, metrics: Metrics) -> None:
        self.lm = lm
        self.options = options
        self.metrics = metrics
        self._ends = frozenset(lm.eos_token_ids)
        self._masks = MaskThreads()
        self._wake = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._reading: deque[Job] = deque()
        self._live: list[Answer] = []
        self._out: list[tuple[Job, Piece]] = []
        self._closing = False
        self._stopped = False
        self._bounded = 0.0  # the time of the last check of memory
        self._keepers = 0
        self._thread = threading.Thread(target=self._run, name="structgen-engine", daemon=True)

    def start(self) -> None:
        """Starts the thread, if it has not started.

        `submit` calls this, too: an application that is mounted in another one gets no start event.
        """
        with self._wake:
            if self._thread.ident is None and not self._closing:
                self._thread.start()

    @property
    def load(self) -> tuple[int, int]:
        """The number of live answers (and prompts being read), and of waiting jobs."""
        return len(self._live) + len(self._reading), len(self._waiting)

    @property
    def alive(self) -> bool:
        """Whether the thread runs, or will start with the first job."""
        return self._thread.is_alive() or (self._thread.ident is None and not self._closing)

    def submit(self, jobs: list[Job]) -> None:
        """Queues the jobs of one request. Raises an ApiError if the queue is full or the server is shutting
        down."""
        self.start()
        with self._wake:
            if self._closing:
                raise busy("the server is shutting down", 503)
            if self._waiting and len(self._waiting) + len(jobs) > self.options.queue:
                raise busy(f"{len(self._waiting)} requests wait already (--queue): try again")
            for job in jobs:
                job.request = jobs[0]
            self._waiting.extend(jobs)
            self._wake.notify()

    @contextlib.contextmanager
    def keeping(self) -> Any:
        """Returns a context for another user of the model. Inside this context the engine releases no
        vectors."""
        with self._wake:
            self._keepers += 1
        try:
            yield
        finally:
            with self._wake:
                self._keepers -= 1

    def close(self, seconds: float) -> None:
        """Takes no more jobs. The live jobs get `seconds` to finish, and are then ended."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if self._thread.ident is None:
            return
        self._thread.join(seconds)
        with self._wake:
            self._stopped = True
            self._wake.notify()
        self._thread.join(5.0)
        self._masks.close()

    # ---- the thread ----

    def _run(self) -> None:
        while True:
            with self._wake:
                while not (self._waiting or self._reading or self._live or self._closing):
                    self._wake.wait()
                idle = not (self._waiting or self._reading or self._live)
                if self._stopped or (self._closing and idle):
                    break
            try:
                self._step()
            except Exception as error:  # an error of the model ends all jobs that were read or live
                self._end_all(error)
            self._deliver()
        self._end_all(busy("the server is shutting down", 503))
        self._deliver()

    def _step(self) -> None:
        self._leave()
        self._join()
        begin = time.perf_counter()
        rows = [a for a in self._live if a.ready]
        # `filling` is read before `ready`, because `Answer.fill` sets `filled` before it clears `filling`. So
        # a mask that was just finished is not started again.
        soon = self._masks.begin([a for a in self._live if not a.filling and not a.ready])
        rows += soon
        read = self._read()
        if not rows:
            if not read:
                self._masks.wait_for_any(_SLEEP if self._live else _IDLE)
            return
        forward = time.perf_counter()
        raw = self.lm.logprobs([a.context for a in rows])
        self.metrics.forward.observe(time.perf_counter() - forward)
        check_logprobs(raw, len(rows), self.lm.vocabulary.vocab_size)
        if soon:
            self._masks.wait(soon, _PATIENCE)
        there = [i for i, a in enumerate(rows) if a.ready]
        if len(there) < len(rows):
            rows, raw = [rows[i] for i in there], raw[there]
        if rows:
            self._draw(rows, raw)
        self.metrics.step.observe(time.perf_counter() - begin)
        self.metrics.batch.observe(len(rows))

    def _draw(self, rows: list[Answer], raw: _Rows) -> None:
        allowed = self._allowed(rows, raw)
        used: list[Context] = []
        failed: dict[Job, Exception] = {}
        ended: set[Answer] = set()
        for i, answer in enumerate(rows):
            job = answer.job
            try:
                if answer.error is not None:
                    raise of_constraint(answer.error, job.plan.param)
                token = job.plan.drawing.draw(allowed[i], answer.noise, answer.position)
                before = answer.context
                piece = answer.advance(token, raw[i], allowed[i], self._ends)
            except (BudgetExceeded, SchemaTooComplex) as error:  # accepting a token has limits of work, too
                failed[job] = of_constraint(error, job.plan.param)
                continue
            except Exception as error:
                failed[job] = error
                continue
            if answer.position > 1:
                used.append(before)
            if not job.first_token:
                job.first_token = time.monotonic()
                self.metrics.first_token.observe(job.first_token - job.arrived)
            if piece is not None:
                self._out.append((job, piece))
                if piece.finish is not None:
                    ended.add(answer)
        self.metrics.tokens.inc(len(rows) - len(failed))
        for answer in rows:
            if answer.matcher is not None and not answer.matcher.mask_exact:
                answer.job.request.subset_masks += 1
                self.metrics.subsets.inc()
        if ended:
            self._live = [a for a in self._live if a not in ended]
            for answer in ended:
                answer.matcher = None  # a matcher may keep large states alive
        for job, failure in failed.items():
            self._fail(job, failure)
        if used and not self._keepers:
            release = getattr(self.lm, "release", None)
            if release is not None:
                release(used)

    def _allowed(self, rows: list[Answer], raw: _Rows) -> _Rows:
        """Returns the scores to draw from: after penalties, bias, `min_tokens` and the mask."""
        work = raw
        changed = [
            i for i, a in enumerate(rows) if not a.job.plan.drawing.plain or a.position < a.job.plan.least
        ]
        if changed:
            work = raw.copy()
            for i in changed:
                answer = rows[i]
                work[i] = answer.job.plan.drawing.biased(raw[i], answer.counts, answer.job.seen)
                if answer.position < answer.job.plan.least:
                    work[i, [*self._ends, *answer.job.plan.stop_ids]] = -np.inf
        held = [i for i, a in enumerate(rows) if a.mask is not None]
        if not held:
            return work
        mask: npt.NDArray[np.int32] = np.concatenate([rows[i].mask for i in held])
        if work.size <= _SMALL and len(held) == len(rows):
            return np.where(allowed_bits(mask, work.shape[1]), work, _NEVER)
        indices = None if len(held) == len(rows) else held
        return apply_bitmask(work, mask, inplace=work is not raw, indices=indices)

    def _read(self) -> bool:
        """Reads the next tokens of prompts. Returns whether there were any.

        Every prompt gets an equal share. Tokens that short prompts do not need go to longer ones.
        """
        left = self.options.prefill
        wanted: list[tuple[Job, int, int]] = []  # job, first token, end of its tokens
        shortest = sorted(self._reading, key=lambda job: len(job.prefixes) - job.read)
        for number, job in enumerate(shortest):
            share = max(1, left // (len(shortest) - number))
            most = min(share, _ECHO) if job.plan.echo_entries else share
            stop = min(len(job.prefixes), job.read + most)
            wanted.append((job, job.read, stop))
            left -= stop - job.read
        if not wanted:
            return False
        contexts: list[Context] = []
        for job, start, stop in wanted:
            contexts += job.prefixes[start:stop] if job.plan.echo_entries else [job.prefixes[stop - 1]]
        rows = self.lm.logprobs(contexts)
        at = 0
        for job, start, stop in wanted:
            if job.plan.echo_entries:
                tops = job.plan.tops or 0
                for place in range(start, min(stop, len(job.prompt) - 1)):
                    job.entries.append(entry_of(job.prompt[place + 1], rows[at + place - start], tops))
                at += stop - start
            else:
                at += 1
            job.read = stop
            if stop == len(job.prefixes):
                self._reading.remove(job)
                self._begin(job)
        return True

    def _begin(self, job: Job) -> None:
        """Makes the answers of a job after its prompt was read."""
        self.metrics.prompt_tokens.inc(len(job.prompt) - job.cached)
        self.metrics.cached_tokens.inc(job.cached)
        try:
            answers = job.begin()
        except Exception as error:
            self._fail(job, error)
            return
        if job.plan.echo_entries:
            self._out += [(job, Piece(a.index, prompt=job.entries)) for a in answers]
        if job.plan.room == 0:
            self._out += [(job, Piece(a.index, finish="length")) for a in answers]
        else:
            self._live += answers

    def _join(self) -> None:
        """Takes waiting jobs while places are free, first those whose requests have the fewest places."""
        cached = getattr(self.lm, "cached_tokens", None)
        while True:
            held = Counter(a.job.request for a in self._live)
            for job in self._reading:
                held[job.request] += job.count
            with self._wake:
                chosen = self._next(held)
                if chosen is None:
                    return
                self._waiting.remove(chosen)
            if cached is not None and not chosen.plan.echo_entries:
                chosen.cached = min(cached(chosen.prefixes[-1]), len(chosen.prefixes) - 1)
                chosen.read = chosen.cached
            self.metrics.queued.observe(time.monotonic() - chosen.arrived)
            self._reading.append(chosen)

    def _next(self, held: Counter[Job]) -> Job | None:
        """Returns the waiting job that comes in now, or None. `held` has the places of each request.

        A job comes in if it fits. Beside the largest request, the other requests together may take half of
        the number of places, whatever the largest one takes. A starving job comes in once at most half of the
        places are taken, and until then no job overtakes it. Exception: while the starving job waits for
        another large request, small jobs may overtake it, because they do not lengthen its wait.
        """
        first: dict[int, Job] = {}
        for job in self._waiting:
            first.setdefault(id(job.request), job)
        busy_now, largest = held.total(), max(held.values(), default=0)
        others, half = busy_now - largest, self.options.sequences // 2
        for job in sorted(first.values(), key=lambda job: held[job.request]):
            fits = not busy_now or busy_now + job.count <= self.options.sequences
            beside = not held[job.request] and others + job.count <= half
            starving = time.monotonic() - job.arrived > _STARVING
            if fits or beside or (starving and busy_now <= half):
                return job
            if starving and largest <= half:
                return None
        return None

    def _leave(self) -> None:
        """Removes jobs whose client left, whose time is over, or whose mask takes too long."""
        now = time.monotonic()
        slow = {a.job for a in self._live if (begun := a.begun) and now - begun > self.options.mask_seconds}
        for job in slow:
            limit = (
                f"a mask of this grammar takes more than {self.options.mask_seconds:g} seconds; simplify it, "
                "or start the server with a larger --mask-seconds"
            )
            self._fail(job, ApiError(limit, param=job.plan.param, code="grammar_too_costly"))
        if now - self._bounded > _LOOK:
            self._bounded = now
            self._bound()
        with self._wake:
            waiting = list(self._waiting)
        jobs = {id(a.job): a.job for a in self._live}
        for job in [*waiting, *self._reading, *jobs.values()]:
            if job.cancelled.is_set():
                self._drop(job)
            elif now > job.deadline:
                self._fail(job, late(self.options.request_seconds))

    def _bound(self) -> None:
        """Ends the jobs with the largest grammars until the grammars of all answers fit in `live_bytes`."""
        plans = {id(a.job.plan.grammar): a.job for a in self._live if a.matcher is not None}
        taken = {job: job.plan.taken() for job in plans.values()}
        while taken and sum(taken.values()) > self.options.live_bytes:
            job = max(taken, key=lambda job: taken[job])
            del taken[job]
            shared = {a.job for a in self._live if a.job.plan.grammar is job.plan.grammar}
            for one in shared:
                words = (
                    "the server has no memory left for the states of this grammar; simplify it, or start the "
                    "server with a larger --live-megabytes"
                )
                self._fail(one, ApiError(words, param=one.plan.param, code="grammar_too_costly"))

    def _fail(self, job: Job, error: BaseException) -> None:
        self._drop(job)
        self._out.append((job, Piece(0, error=error)))

    def _drop(self, job: Job) -> None:
        job.over = True
        self._live = [a for a in self._live if a.job is not job]
        for queue in (self._reading, self._waiting):
            with self._wake, contextlib.suppress(ValueError):
                queue.remove(job)

    def _end_all(self, error: BaseException) -> None:
        with self._wake:
            jobs = {id(job): job for job in [*self._reading, *(a.job for a in self._live)]}
            if self._closing:
                jobs.update({id(job): job for job in self._waiting})
        for job in jobs.values():
            self._fail(job, error)

    def _deliver(self) -> None:
        """Hands over all pieces of a step, with one call for each event loop."""
        out, self._out = self._out, []
        loops = Counter(job.loop for job, _ in out)
        for loop in loops:
            mine = [(job, piece) for job, piece in out if job.loop is loop]
            try:
                loop.call_soon_threadsafe(_hand_over, mine)
            except RuntimeError:  # The loop is closed, so no client waits.
                for job, _ in mine:
                    job.cancel()


def _hand_over(pieces: list[tuple[Job, Piece]]) -> None:
    for job, piece in pieces:
        with contextlib.suppress(asyncio.QueueFull):
            job.pieces.put_nowait(piece)
