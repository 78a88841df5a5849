"""One answer in the making: its context, matcher, text and how it is drawn; and the request that it belongs
to.

Enters: rows of log-probabilities, one after another. Leaves: `Piece`s: text that may be shown,
log-probabilities, the reason why it ended. Cost: microseconds a token beside the draw.
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

from .._drawing import Sampling
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

__all__ = ["Answer", "Entry", "Finish", "Job", "Piece", "Plan"]

Finish = Literal["stop", "length"]
_Row = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Entry:
    """The log-probabilities of one token: the model's own, and among the allowed tokens where asked for.

    `logprob` is None for the first token of a prompt.
    """

    token: int
    logprob: float | None
    top: list[tuple[int, float]]
    masked: float | None = None
    masked_top: list[tuple[int, float]] | None = None


@dataclass(slots=True)
class Piece:
    """What one step brought to one answer.

    Attributes:
        index: the answer's number in its job.
        text: what may be shown; often empty.
        tokens: ids drawn since the last piece.
        entries: of these tokens, where log-probabilities are asked for.
        finish: why the answer ended; None: it goes on.
        stopped_by: the stop string, or the id of the token, that ended it.
        error: what ended the whole job.
        prompt: entries of the prompt (echo).
        seen: of these tokens, where somebody watches, and the draft tree that they came from.
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


@dataclass(frozen=True, slots=True)
class Plan:
    """How each answer of a job is made.

    Attributes:
        room: tokens of an answer at most.
        budget: whether the grammar promises an end within `room`.
        names: special tokens that are spelled out, with their text.
        tops: alternatives beside each token; None: no log-probabilities.
        param: the field that asks for the grammar.
        watch: whether pieces tell how each token came about.
        least: tokens before which neither an end token nor one of `stop_ids` is drawn.
        ignore_ends: whether an end token is a token like others.
        doubt: tells, of an answer's log-probability and its tokens, what the client should hear of.
        taken: bytes of the grammar's states and masks. bytes_at_most: beyond which it ends its request.
    """

    drawing: Sampling
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


class Answer:
    """One text of a job. Belongs to the engine's thread; `fill` runs in another while nothing else touches
    it."""

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
        self.stream: TextStream = TextStream(plan.stops, plan.keep_stop)
        self.position: int = 0
        self.total: float = 0.0  # of its tokens' log-probabilities
        self.counts: dict[int, int] = {}
        self.generated: bool = False
        self.mask: npt.NDArray[np.int32] | None = (
            None if self.matcher is None else allocate_bitmask(1, job.vocabulary.vocab_size)
        )
        self.filled: bool = False
        self.filling: bool = False  # whether its mask is in the making, or in line for it
        self.begun: float = 0.0  # when that began; 0: it has not
        self.taken: float = 0.0  # seconds of the last mask
        self.error: Exception | None = None

    @property
    def ready(self) -> bool:
        """Whether a token can be drawn as soon as there is a row."""
        return self.matcher is None or self.filled

    def fill_known(self) -> bool:
        """The mask of the next token, if it was made before: a copy. False: `fill` has to make it."""
        assert self.matcher is not None and self.mask is not None
        begin = time.perf_counter()
        self.filled = self.matcher._core.fill_known(self.mask)
        self.taken = time.perf_counter() - begin
        return self.filled

    def fill(self) -> None:
        """The mask of the next token. An error is kept for the engine: it is this request's alone."""
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
        # Of the processor: a machine that is busy makes no grammar slow.
        self.job.masked(time.thread_time() - work)
        self.begun, self.filled, self.filling = 0.0, True, False  # in this order: see `Engine._step`

    def advance(self, token: int, raw: _Row, allowed: _Row, ends: Collection[int]) -> Piece | None:
        """Take a drawn token. StructgenError: the grammar refuses it, which is a bug."""
        plan = self.job.plan
        self.position += 1
        self.total += float(raw[token])
        self.filled = False
        piece = Piece(self.index, tokens=1)
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
                piece.text = self.stream.feed(data)
        if self.stream.stopped_by is not None:
            piece.stopped_by = self.stream.stopped_by
            piece.finish = "stop"
        elif ended:
            piece.text += self.stream.finish()
            piece.finish = "stop"
            told = None if plan.doubt is None else plan.doubt(self.total, self.position)
            if told is not None and piece.stopped_by is None:
                self.job.doubts.add(told)
        elif self.position >= plan.room:
            piece.text += self.stream.finish()
            piece.finish = "length"
        else:
            self.context = self.context.extend(token)
            self.generated = True
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
        prefixes: the contexts of the prompt's beginnings, the whole prompt last.
        loop: where the pieces are wanted.
        seconds: until the job is given up.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        prompt: list[int],
        prefixes: list[Context],
        plan: Plan,
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
        self.request: Job = self  # the same one for all jobs of a request
        self.slowest: float = 0.0  # seconds of the processor that a mask of this request took
        self.spent: float = 0.0  # and all its masks
        self.subset_masks = 0  # of this request, from which something too much to tell was left out
        self.over = False  # whether nobody wants its answers any more
        self.entries: list[Entry] = []
        self.doubts: set[str] = set()  # about its answers that ended

    def begin(self) -> list[Answer]:
        """The answers, once the prompt is read."""
        answers = [Answer(self, i) for i in range(self.count)]
        self.prefixes = self.prefixes[-1:]
        return answers

    def masked(self, seconds: float) -> None:
        """A mask of this job took so long."""
        request = self.request
        request.spent += seconds
        request.slowest = max(request.slowest, seconds)

    def cancel(self) -> None:
        """The client is gone, or had enough: the engine drops the job before its next step."""
        self.cancelled.set()
