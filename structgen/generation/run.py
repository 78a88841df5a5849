"""The loop of `sg.generate`. A step computes one forward pass for several texts, and a mask and a draw for
each.

Enters: a model and `Text`s, which may belong to different prompts and grammars. Leaves: their tokens, and a
`Step` for each new token. Cost of a step: one batched forward pass, a mask for each text, and a sort of V
numbers with `top_k` or `top_p`.

The problem. Penalties, masks, cuts of the distribution and draws each change a row of scores, and their order
decides what is drawn. Texts of a batch have different settings, and one of them may fail.

The idea. Each step, in this order: the model's log-probabilities; penalties and bias; the mask; the penalty
on structure; temperature; min-p; top-k; top-p; the draw. The mask comes before the cuts of the distribution,
so a cut chooses among allowed tokens and always leaves one. With the probabilities a 0.6, b 0.3, c 0.1, a
mask that allows b and c, and top_k=1: b is drawn. The cut first would leave a alone, which is not allowed.

The law of the result is *local*: each token follows the model's distribution over the tokens allowed at its
place. It differs from the model's distribution over whole texts of the language. Forced tokens are drawn like
others: each costs a forward pass, and each has a log-probability.

If a model's rows lie on another device and all texts need only a draw, the masks are copied to this device
and the tokens are copied back (`_step_there`).

Invariants.
- A draw depends only on its place (`Noise`), and does not depend on the other texts of the batch.
- A text with a budget has masks under which it ends in time. `bound` says whether the budget forbade a token
  that the grammar allows.
- With ``lone=False`` an error of one text is kept in `Text.error`, and the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from .._drawing import Drawing
from .._draws import NO_TOKEN, Noise, top
from .._structure import SHORTEST, StructureTrace, mark
from .._text import TextStream
from ..errors import StructgenError
from ..grammar import CompiledGrammar
from ..lm.base import check_logprobs
from ..logits import allocate_bitmask, apply_bitmask, masked_logsumexp
from ..matcher import Matcher, fill_bitmasks
from .results import TokenLogprobs
from .watch import Seen, seen

if TYPE_CHECKING:
    from ..lm.base import Context, LanguageModel
    from ..lm.resident import Resident

_Rows = npt.NDArray[np.float32]


@dataclass(slots=True)
class Step:
    """The result of one step for one text: a token, and the characters that it made certain.

    Attributes:
        added: characters of the answer. thoughts: of the thoughts.
        part: the part of the text to which the token belongs.
    """

    text: Text
    token: int
    logprob: float
    added: str
    thoughts: str = ""
    part: Literal["reasoning", "answer"] = "answer"


@dataclass(slots=True)
class Text:
    """One text while it is written. `matcher` is None without a grammar.

    Attributes:
        room: the most tokens. budget: the text must end within so many tokens; None: it may be cut off.
        names: special tokens that are shown in the text, each with its name.
        index: its number among the texts of its call.
        error: the exception that ended it.
        trace: the trace of its masks, if repeated structure is penalised.
    """

    context: Context
    matcher: Matcher | None
    sampling: Drawing
    noise: Noise | None
    room: int
    budget: int | None
    stream: TextStream
    names: Mapping[int, bytes] = field(default_factory=dict)
    index: int = 0
    tops: int = 0
    prompt: frozenset[int] = frozenset()
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    top_logprobs: list[TokenLogprobs] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    reasoning_tokens: int = 0
    finish: Literal["stop", "length"] | None = None
    done: bool = False  # the text was ended by the grammar or by an end-of-sequence token
    bound: bool = False  # the budget refused a token that the grammar allows
    error: Exception | None = None
    trace: StructureTrace | None = None
    seen: list[Seen] | None = None  # a record of each token, if the caller asked for a trace

    @property
    def over(self) -> bool:
        return self.finish is not None or self.error is not None

    @property
    def drawn_alone(self) -> bool:
        """Whether each step is only a draw at a temperature, and nobody asks for more than the token."""
        how = self.sampling
        watched = bool(self.tops) or self.seen is not None or self.trace is not None
        return how.plain and how.top_k is None and how.top_p is None and not watched

    @property
    def so_far(self) -> str:
        """The characters of the answer that are certain."""
        return "".join(self.parts)

    @property
    def reasoning(self) -> str | None:
        """The characters of the thoughts that are certain; None: there are no thoughts."""
        return "".join(self.thoughts) if self.stream.thought else None

    def unlike(self, allowed: _Rows, mask: npt.NDArray[np.int32] | None) -> _Rows:
        """Returns the masked row with the penalty on repeated structure; the row itself without such a
        penalty."""
        if self.trace is None or mask is None:
            return allowed
        self.trace.enter(mark(mask))
        row = allowed.copy()
        for token, nats in self.trace.nats(self.sampling.structure_penalty, SHORTEST):
            row[token] += np.float32(nats)
        return row

    def take(self, token: int, logprob: float, data: bytes, ended: bool) -> Step:
        """Returns the text that a drawn token makes certain. Sets `finish` if the text is over."""
        added = thoughts = ""
        if not ended:
            added, thoughts = self.stream.feed(data), self.stream.thoughts
        if self.stream.stopped_by is not None:
            self.finish = "stop"
        elif ended or len(self.tokens) >= self.room:
            added += self.stream.finish()
            thoughts += self.stream.thoughts
            self.finish = "stop" if ended else "length"
            self.done = ended
        answering = ended or self.stream.answering
        self.reasoning_tokens += not answering
        self.parts.append(added)
        if thoughts:
            self.thoughts.append(thoughts)
        return Step(self, token, logprob, added, thoughts, "answer" if answering else "reasoning")


class Clock:
    """Measures the seconds of each part of the work."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._begin = self._last = time.perf_counter()

    def lap(self, part: str) -> None:
        now = time.perf_counter()
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self._last
        self._last = now

    def total(self) -> dict[str, float]:
        return {**self.seconds, "total": time.perf_counter() - self._begin}


class Run:
    """Texts that share forwards. Texts join at any time; `step` gives each live one a token.

    Args:
        lone: True raises an error of one text; False keeps it in `Text.error`.
    """

    def __init__(self, lm: LanguageModel, clock: Clock | None = None, *, lone: bool = True) -> None:
        self.lm = lm
        self.clock: Clock = clock or Clock()
        self.live: list[Text] = []
        self._lone = lone
        self._ends = frozenset(lm.eos_token_ids)

    def add(self, text: Text) -> None:
        self.live.append(text)

    def step(self) -> list[Step]:
        """Gives every live text one token. Finished texts leave `live`."""
        live, clock = self.live, self.clock
        clock.lap("sample")
        rows = self._resident()
        if rows is not None:
            return self._step_there(rows)
        raw = self.lm.logprobs([t.context for t in live])
        check_logprobs(raw, len(live), self.lm.vocabulary.vocab_size)
        clock.lap("forward" if live[0].tokens else "prompt")
        work = self._weighed(raw)
        allowed, mask = self._masked(work)
        clock.lap("mask")

        def one(row: int) -> Step:
            return self._advance(live[row], raw[row], allowed[row], None if mask is None else mask[row])

        return self._each(one)

    def _each(self, one: Callable[[int], Step]) -> list[Step]:
        """Makes the step of each live text from its row of scores. An error stays in its text unless `lone`
        is set."""
        steps = []
        for row, text in enumerate(self.live):
            if text.error is not None:
                continue
            try:
                steps.append(one(row))
            except Exception as error:
                if self._lone:
                    raise
                text.error = error
        self.live = [t for t in self.live if not t.over]
        self.clock.lap("sample")
        return steps

    def _resident(self) -> Resident | None:
        """Returns the model's rows on its device, if that is not the CPU and all texts need only draws; else
        None."""
        resident = getattr(self.lm, "resident", None)
        if resident is None or not all(text.drawn_alone for text in self.live):
            return None
        rows: Resident | None = resident([t.context for t in self.live])
        return rows

    def _step_there(self, rows: Resident) -> list[Step]:
        """`step` with draws on the model's device: masks are copied there, tokens are copied back."""
        live, clock = self.live, self.clock
        clock.lap("forward" if live[0].tokens else "prompt")
        mask = self._mask()
        clock.lap("mask")
        words = [None if t.noise is None else t.noise.words(len(t.tokens)) for t in live]
        drawn = rows.draw(mask, [t.sampling.temperature for t in live], words)

        def one(row: int) -> Step:
            token, logprob = drawn[row]
            if token < 0:
                raise StructgenError(NO_TOKEN)
            return self._write(live[row], token, logprob)

        return self._each(one)

    def _advance(self, text: Text, raw: _Rows, allowed: _Rows, mask: npt.NDArray[np.int32] | None) -> Step:
        token = text.sampling.draw(text.unlike(allowed, mask), text.noise, len(text.tokens))
        if text.trace is not None:
            text.trace.take(token)
        if text.tops:
            text.top_logprobs.append(_tops(raw, allowed, mask, token, text.tops))
        if text.seen is not None:
            text.seen.append(seen(token, raw, mask, text.room - len(text.tokens), 0.0))
        return self._write(text, token, float(raw[token]))

    def _write(self, text: Text, token: int, logprob: float) -> Step:
        """Adds a drawn token to its text."""
        text.tokens.append(token)
        text.logprobs.append(logprob)
        if text.sampling.counts_tokens:
            text.counts[token] = text.counts.get(token, 0) + 1
        if text.matcher is None:
            ended = token in self._ends
        elif not text.matcher.accept_token(token):
            raise StructgenError(f"token {token} was allowed and then refused: this is a bug in structgen")
        else:
            ended = text.matcher.is_terminated()
        data = self.lm.vocabulary.tokens[token] or text.names.get(token, b"")
        step = text.take(token, logprob, data, ended)
        if not text.over:
            text.context = text.context.extend(token)
        return step

    def _weighed(self, raw: _Rows) -> _Rows:
        """Returns the rows with penalties and bias; `raw` itself if no row changes."""
        changed = [i for i, t in enumerate(self.live) if t.sampling.counts_tokens or t.sampling.logit_bias]
        if not changed:
            return raw
        work = raw.copy()
        for i in changed:
            text = self.live[i]
            work[i] = text.sampling.biased(raw[i], text.counts, text.prompt)
        return work

    def _masked(self, work: _Rows) -> tuple[_Rows, npt.NDArray[np.int32] | None]:
        """Returns the rows with -inf where a token is not allowed."""
        mask = self._mask()
        return (work, None) if mask is None else (apply_bitmask(work, mask), mask)

    def _mask(self) -> npt.NDArray[np.int32] | None:
        """Returns a mask for each live text; None if no text has a grammar. Sets `bound` of texts."""
        held = [(row, t) for row, t in enumerate(self.live) if t.matcher is not None]
        if not held:
            return None
        matchers = [t.matcher for _, t in held if t.matcher is not None]
        part = allocate_bitmask(len(held), self.lm.vocabulary.vocab_size)
        errors = fill_bitmasks(matchers, part, skip_errors=True)
        wide = part.copy()
        for i, (_, text) in enumerate(held):
            error = errors[i]
            try:
                if error is not None:
                    raise error
                if text.budget is not None:
                    matchers[i].fill_bitmask(part, i, max_tokens=text.budget - len(text.tokens))
                    text.bound |= not np.array_equal(part[i], wide[i])
            except Exception as failure:
                if self._lone:
                    raise
                text.error = failure
        if len(held) == len(self.live):
            return part
        mask = np.full((len(self.live), part.shape[1]), -1, np.int32)
        mask[[row for row, _ in held]] = part
        return mask


def _tops(
    raw: _Rows, allowed: _Rows, mask: npt.NDArray[np.int32] | None, token: int, count: int
) -> TokenLogprobs:
    before = [(int(i), float(raw[i])) for i in top(raw, count)]
    if mask is None:
        return TokenLogprobs(before, before, float(raw[token]), 0.0)
    mass = float(masked_logsumexp(raw, mask))
    held = np.where(allowed > -np.inf, raw, np.float32(-np.inf))
    after = [(int(i), float(raw[i]) - mass) for i in top(held, count) if held[i] > -np.inf]
    return TokenLogprobs(before, after, float(raw[token]) - mass, min(mass, 0.0))


def bound_by_budget(grammar: CompiledGrammar, tokens: Sequence[int], budget: int) -> bool:
    """Returns whether the budget forbade a token at some place of a finished text."""
    matcher = grammar.matcher()
    wide, mask = (allocate_bitmask(1, grammar.vocabulary.vocab_size) for _ in range(2))
    for position, token in enumerate(tokens):
        matcher.fill_bitmask(wide)
        matcher.fill_bitmask(mask, max_tokens=budget - position)
        if not np.array_equal(wide, mask):
            return True
        matcher.accept_token(token)
    return False
