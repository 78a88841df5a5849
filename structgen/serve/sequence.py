"""One live answer, and the request that it belongs to.

Enters: rows of log-probabilities, one after another. Leaves: `Piece`s: text that may be shown,
log-probabilities, the reason why the answer ended. Cost: some microseconds for each token, in addition to the
draw.

The problem. The engine's thread draws tokens, workers fill masks, and event loops wait for text. Text that
was sent cannot be taken back, so the beginning of a stop string or half of a character has to be kept.

The idea. A `Job` is a prompt with an `AnswerPlan` and some answers; a request has one job for each prompt. An
`Answer` has the state of one text: context, matcher, mask, stream. For each token:

    fill       a worker, or the engine itself if the mask is known (`fill_known`), fills `mask` and sets
               `filled`
    forward    the engine computes the row of `context`
    draw       the engine draws a token from row and mask (engine.py)
    advance    the matcher accepts the token, the stream gives text that may be shown, and a `Piece` is made

An answer ends with "stop" at the end of the grammar, an end token, a stop string or a stop token, and with
"length" when `room` is used up. `TextStream` keeps what may begin a stop string.

Invariants.
- Only the engine's thread touches an answer; `fill` runs in another thread while `filling` is set, and then
  nothing else touches it.
- An error of `fill` is kept in `error`: it ends this job alone.
- All jobs of a request share the counters of the first one (`Job.request`).
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from .._drawing import Drawing
from .._draws import Noise, top
from .._text import TextStream
from ..errors import BudgetExceeded, StructgenError
from ..generation.watch import Drafted, Seen, seen
from ..grammar import CompiledGrammar
from ..logits import allocate_bitmask, masked_logsumexp
from ..matcher import Matcher

if TYPE_CHECKING:
    from ..lm.base import Context
    from ..vocabulary import Vocabulary

Finish = Literal["stop", "length"]
_Row = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Entry:
    """The log-probabilities of one token by the model, and, if asked for, among the allowed tokens.

    `logprob` is None for the first token of a prompt.
    """

    token: int
    logprob: float | None
    top: list[tuple[int, float]]
    masked: float | None = None
    masked_top: list[tuple[int, float]] | None = None


@dataclass(slots=True)
class Piece:
    """The part of one answer that one step added.

    Attributes:
        index: the answer's number in its job.
        text: text of the answer that may be shown; often empty. reasoning: text of the thoughts.
        ids: the tokens of this piece. tokens: their number; reasoning_tokens: those of thoughts among them.
        entries: the log-probabilities of these tokens, if they are asked for.
        finish: why the answer ended; None while the answer goes on.
        stopped_by: the stop string, or the id of the token, that ended the answer.
        error: the error that ended the whole job.
        prompt: log-probabilities of the prompt's tokens (echo).
        seen: how each token came about, if the plan sets `watch`; drafted: the draft tree of these tokens.
    """

    index: int
    text: str = ""
    tokens: int = 0
    entries: list[Entry] = field(default_factory=list)
    finish: Finish | None = None
    stopped_by: str | int | None = None
    error: BaseException | None = None
    prompt: list[Entry] | None = None
    seen: list[Seen] = field(default_factory=list)
    drafted: Drafted | None = None
    reasoning: str = ""
    reasoning_tokens: int = 0
    ids: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AnswerPlan:
    """How each answer of a job is made.

    Attributes:
        room: the most tokens of an answer.
        budget: whether masks keep an end within `room` reachable.
        names: the texts of special tokens that are shown in the answer.
        tops: the number of alternatives that are reported for each token; None: no log-probabilities.
        param: the field of the request that asks for the grammar.
        watch: whether pieces tell how each token came about.
        least: the number of tokens before which neither an end token nor one of `stop_ids` is drawn.
        ignore_ends: whether an end token is a token like others.
        doubt: a function that makes a warning for the client, or None, from an answer's log-probability and
            number of tokens.
        apart: whether thoughts are reported separately from the answer.
        taken: gives the bytes of the grammar's states and masks. More than `bytes_at_most` end the request.
    """

    drawing: Drawing
    room: int
    grammar: CompiledGrammar | None = None
    budget: bool = False
    stops: Sequence[str] = ()
    keep_stop: bool = False
    stop_ids: Collection[int] = ()
    names: Mapping[int, bytes] = field(default_factory=dict)
    tops: int | None = None
    masked: bool = False
    echo_entries: bool = False
    param: str = ""
    watch: bool = False
    least: int = 0
    ignore_ends: bool = False
    doubt: Callable[[float, int], str | None] | None = None
    taken: Callable[[], int] = int
    bytes_at_most: int = 1 << 60
    apart: bool = True

    def stream(self) -> TextStream:
        """Returns the text of a new answer."""
        reasoning = self.grammar.reasoning if self.grammar is not None and self.apart else None
        return TextStream(self.stops, self.keep_stop, reasoning)


class Answer:
    """One text of a job. Only the engine's thread uses it, except for `fill`, which runs in a worker."""

    __slots__ = (
        "begun", "context", "counts", "error", "filled", "filling", "generated", "index", "job", "mask",
        "matcher", "noise", "position", "stream", "taken", "total",
    )  # fmt: skip

    def __init__(self, job: Job, index: int) -> None:
        plan = job.plan
        self.job: Job = job
        self.index: int = index
        self.context: Context = job.prefixes[-1]
        self.matcher: Matcher | None = None
        if plan.grammar is not None:
            self.matcher = plan.grammar.matcher(max_tokens=plan.room if plan.budget else None)
        self.noise: Noise | None = plan.drawing.noise(index)
        self.stream: TextStream = plan.stream()
        self.position: int = 0
        self.total: float = 0.0  # the sum of its tokens' log-probabilities
        self.counts: dict[int, int] = {}
        self.generated: bool = False
        self.mask: npt.NDArray[np.int32] | None = (
            None if self.matcher is None else allocate_bitmask(1, job.vocabulary.vocab_size)
        )
        self.filled: bool = False
        self.filling: bool = False  # whether a worker fills its mask, or will
        self.begun: float = 0.0  # the time when a worker began; 0: none has
        self.taken: float = 0.0  # seconds of the last mask
        self.error: Exception | None = None

    @property
    def ready(self) -> bool:
        """Whether the mask is ready, so that a token can be drawn as soon as the row is ready."""
        return self.matcher is None or self.filled

    def fill_known(self) -> bool:
        """Copies the mask of the next token, if the mask is known. Returns False if `fill` has to make the
        mask."""
        assert self.matcher is not None and self.mask is not None
        begin = time.perf_counter()
        self.filled = self.matcher._core.fill_known(self.mask)
        self.taken = time.perf_counter() - begin
        return self.filled

    def fill(self) -> None:
        """Makes the mask of the next token. An error is kept in `error` for the engine."""
        assert self.matcher is not None and self.mask is not None
        begin, work = time.perf_counter(), time.thread_time()
        try:
            self.matcher.fill_bitmask(self.mask)
            if self.job.plan.taken() > self.job.plan.bytes_at_most:
                most = self.job.plan.bytes_at_most >> 20
                raise BudgetExceeded(
                    f"the states of this grammar take more than {most} MB; simplify it, or start the server "
                    "with a larger --grammar-megabytes"
                )
        except Exception as error:
            self.error = error
        self.taken = time.perf_counter() - begin
        # Processor time, because on a busy machine wall-clock time makes every grammar look slow.
        self.job.masked(time.thread_time() - work)
        self.begun, self.filled, self.filling = 0.0, True, False  # in this order: see `ModelThread._step`

    def advance(self, token: int, raw: _Row, allowed: _Row, ends: Collection[int]) -> Piece | None:
        """Adds a drawn token. Raises a StructgenError if the grammar refuses the token, which is a bug."""
        plan = self.job.plan
        self.position += 1
        self.total += float(raw[token])
        self.filled = False
        piece = Piece(self.index, tokens=1, ids=[token])
        if plan.watch:
            left = plan.room - self.position + 1
            mask = None if self.mask is None else self.mask[0]
            piece.seen.append(seen(token, raw, mask, left, self.taken))
        ended = False
        if self.matcher is not None:
            if not self.matcher.accept_token(token):
                raise StructgenError(
                    f"token {token} was allowed and then refused: this is a bug in structgen"
                )
            ended = self.matcher.is_terminated()
        elif token in ends and not plan.ignore_ends:
            ended = True
        if not ended and token in plan.stop_ids:
            ended, piece.stopped_by = True, token
        if plan.drawing.counts_tokens:
            self.counts[token] = self.counts.get(token, 0) + 1
        if not ended or piece.stopped_by is not None:
            if plan.tops is not None:
                piece.entries.append(self._entry(token, raw, allowed))
            data = self.job.vocabulary.tokens[token] or plan.names.get(token, b"")
            if piece.stopped_by is None:
                piece.text, piece.reasoning = self.stream.feed(data), self.stream.thoughts
        if self.stream.stopped_by is not None:
            piece.stopped_by = self.stream.stopped_by
            piece.finish = "stop"
        elif ended:
            piece.text += self.stream.finish()
            piece.reasoning += self.stream.thoughts
            piece.finish = "stop"
            told = None if plan.doubt is None else plan.doubt(self.total, self.position)
            if told is not None and piece.stopped_by is None:
                self.job.doubts.add(told)
        elif self.position >= plan.room:
            piece.text += self.stream.finish()
            piece.reasoning += self.stream.thoughts
            piece.finish = "length"
        else:
            self.context = self.context.extend(token)
            self.generated = True
        piece.reasoning_tokens = int(not (ended or self.stream.answering))
        return piece

    def _entry(self, token: int, raw: _Row, allowed: _Row) -> Entry:
        plan = self.job.plan
        entry = entry_of(token, raw, plan.tops or 0)
        if not plan.masked or self.mask is None:
            return entry
        total = float(masked_logsumexp(raw, self.mask[0]))
        held = np.where(allowed > -np.inf, raw, np.float32(-np.inf))
        best = [(i, lp - total) for i, lp in _tops(held, plan.tops or 0) if lp > -np.inf]
        return Entry(token, entry.logprob, entry.top, float(raw[token]) - total, best)


def entry_of(token: int, raw: _Row, tops: int) -> Entry:
    return Entry(token, float(raw[token]), _tops(raw, tops))


def _tops(row: _Row, count: int) -> list[tuple[int, float]]:
    return [(int(i), float(row[i])) for i in top(row, count)] if count else []


_numbers = itertools.count()


class Job:
    """One prompt and its answers, from its arrival to its end.

    Args:
        prefixes: the contexts of the prompt's prefixes, the whole prompt last.
        loop: the event loop that gets the pieces.
        seconds: the time after which the job is ended.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        prompt: list[int],
        prefixes: list[Context],
        plan: AnswerPlan,
        count: int,
        loop: asyncio.AbstractEventLoop,
        seconds: float,
    ) -> None:
        self.number: int = next(_numbers)
        self.vocabulary = vocabulary
        self.prompt = prompt
        self.prefixes: list[Context] = prefixes
        self.plan = plan
        self.count = count
        self.loop = loop
        self.arrived: float = time.monotonic()
        self.deadline: float = self.arrived + seconds
        self.pieces: asyncio.Queue[Piece] = asyncio.Queue()
        self.cancelled: threading.Event = threading.Event()
        self.seen: frozenset[int] = (
            frozenset(prompt) if plan.drawing.repetition_penalty != 1.0 else frozenset()
        )
        self.read = 0
        self.cached = 0
        self.first_token: float = 0.0
        self.request: Job = self  # the first job of the request, whose counters all its jobs share
        self.slowest: float = 0.0  # seconds of the processor for the slowest mask of the request
        self.spent: float = 0.0  # seconds of the processor for all masks of the request
        self.subset_masks = 0  # masks of the request that lack tokens because a limit was reached
        self.over = False  # whether the job was dropped
        self.entries: list[Entry] = []
        self.doubts: set[str] = set()  # warnings about answers that ended

    def begin(self) -> list[Answer]:
        """Makes the answers. The prompt has been read."""
        answers = [Answer(self, i) for i in range(self.count)]
        self.prefixes = self.prefixes[-1:]
        return answers

    def masked(self, seconds: float) -> None:
        """Notes the processor time of a mask of this job."""
        request = self.request
        request.spent += seconds
        request.slowest = max(request.slowest, seconds)

    def cancel(self) -> None:
        """Asks the engine to drop the job before its next step."""
        self.cancelled.set()
