"""The way from a request to the pieces of its answers, which all endpoints share.

Enters: prompts, a constraint, how to draw. Leaves: `RequestRun`s, whose pieces arrive as they are made.
Cost: reading the prompts and compiling the constraint happen in workers, never on the event loop.

The problem. Anyone may send a schema that takes seconds to compile, and only the compile shows which schema
is slow. Requests with cheap schemas, and requests without a schema, must not wait behind a slow one.

The idea. `Service.start` has three lines of workers, and a request takes the first one that can serve it:

    readers    no constraint, or one whose grammar is kept: read the prompt, go on
    lookers    a constraint that nobody has seen: compile it with little work (about 30 ms)
    workers    where the look said `TooMuch`: compile it with the server's limits

A look does everything that a request needs: the compile, the first mask, and the check of the limit on
tokens. The result of a look is kept (grammars.py).

A run has one job for each prompt, and a job has `count` answers. `RequestRun.pieces` numbers the answers over
all jobs: with 2 prompts and 3 answers each, answer 1 of the second prompt has the index 4.

Invariants.
- Nothing that takes time runs on the event loop. The engine gets a grammar after its first mask was made.
- Only grammars that were ready within 50 ms are kept. An expensive one waits in line each time.
- A grammar that outgrew `grammar_bytes` is made anew for the next request.
- Each error of a client is an `ApiError` that names the field at fault.

Rejected. A first compile with little work whose only result is whether the grammar is quick, followed by a
second compile.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from .._drawing import Drawing
from ..compiler import Compiler
from ..errors import StructgenError, UnsatisfiableBudget
from ..frontend.tool_calls import Call, CallReader
from ..frontend.tools import STYLES, callable_tools, row_of
from ..grammar import CompiledGrammar
from ..lm.base import Context, ContextTooLong, LanguageModel
from ..lm.doubt import doubt
from ..lm.load import special_names, tool_style
from ..lm.prompts import is_embedded
from ..matcher import can_end_within
from ..reasoning import Reasoning, mark_names, reasoning_of
from ..speculation import CorpusDrafter, Drafter
from .compiling import Workers
from .constraints import RequestConstraint, ToolUse, tool_use, with_thoughts, with_tools
from .engine import ModelThread
from .errors import ApiError, of_prompt, unexpected
from .grammars import Grammars, ServedGrammar, TooMuch, of_look
from .mcp import Called, ToolServers
from .memory import LARGE, Memory
from .metrics import Metrics
from .options import ServerOptions
from .requests import ChatRequest, Generation, Message
from .sequence import AnswerPlan, Job, Piece
from .thinking import Thinking

_READING = "reading the prompt"
MakePrompt = Callable[[Any], "str | list[int]"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One request, independent of its endpoint.

    Attributes:
        prompts: functions that make a prompt from the schema of the answer (None: there is no schema).
        count: answers for each prompt.
        limit: the most tokens of an answer; None: as many as the server and the context allow.
        plan: stop strings, log-probabilities; `start` fills in `room`, `grammar` and `budget`.
        complete: whether an answer must be a whole text of the grammar within its limit.
        warnings: sentences for the client, sent with the answer.
        limit_param, prompt_param: the fields of the request that errors name.
        thinking: how the model thinks before it answers.
        turns: the messages that the prompt is made of; what is appended is part of the next prompt.
    """

    prompts: list[MakePrompt]
    count: int
    limit: int | None
    constraint: RequestConstraint | None
    tools: ToolUse | None
    plan: AnswerPlan
    complete: bool = True
    warnings: tuple[str, ...] = ()
    limit_param: str = "max_tokens"
    prompt_param: str = "messages"
    thinking: Thinking = Thinking()
    turns: list[Message] = field(default_factory=list)

    def whole(self) -> RequestConstraint | None:
        """Returns the constraint and the tools together; None if any text is allowed."""
        thinks = self.thinking.reasoning
        if self.tools is None:
            return self.constraint
        return with_tools(self.tools, self.constraint, [] if thinks is None else [thinks.start])


@dataclass(frozen=True, slots=True)
class _Reading:
    """A request whose prompts were read and encoded.

    Attributes:
        contexts: of each prompt its tokens, and the contexts of its prefixes.
        constraint: with the thoughts in front. schema: that of the answer. key: of the constraint.
    """

    contexts: list[tuple[list[int], list[Context]]]
    constraint: RequestConstraint | None
    schema: Any
    key: str | None


@dataclass(slots=True)
class RequestRun:
    """The jobs of a request. The caller ends it with `end`, once or more often, when it needs no more of its
    answers.

    Attributes:
        notes: a note of each job about all its answers (sampling).
        choice_notes: a note about each answer.
        tasks: the tasks that make the answers, if the engine does not.
        compiled: seconds of the compile and of the first mask; None: the grammar was kept, or there is none.
        called: the calls that the server made for this answer (mcp.py).
        earlier: the number of tokens of the prompts that asked for these calls, and how many of these tokens
            were cached.
        either: whether a text that looks like a call may also be an answer that the constraint allows.
    """

    jobs: list[Job]
    tools: ToolUse | None
    compiler: Compiler | None = None
    created: int = field(default_factory=lambda: int(time.time()))
    notes: list[dict[str, Any]] = field(default_factory=list)
    choice_notes: list[dict[str, Any]] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    compiled: tuple[float, float] | None = None
    either: bool = False
    # called at the end of the request if the grammar took much memory
    large_gone: Callable[[], None] | None = None
    warnings: list[str] = field(default_factory=list)
    thinking: Thinking = Thinking()
    called: list[Called] = field(default_factory=list)
    earlier: tuple[int, int] = (0, 0)

    def end(self) -> None:
        for job in self.jobs:
            job.cancel()
        if self.large_gone is not None and self.jobs and self.jobs[0].plan.taken() > LARGE:
            self.large_gone()

    def note(self, index: int | None = None) -> dict[str, Any]:
        """Returns the field `structgen` about all answers. With `index` it also has the field of the choice
        with this index."""
        told: dict[str, Any] = {}
        if index is not None and self.choice_notes:
            told |= self.choice_notes[index]
        if self.notes:
            told |= self.notes[0] if len(self.notes) == 1 else {"prompts": self.notes}
        if words := [*self.warnings, *sorted(set().union(*(job.doubts for job in self.jobs)))]:
            told["warnings"] = words
        if self.called:
            told["calls"] = [asdict(one) for one in self.called]
        if subset := self.jobs[0].request.subset_masks:
            told["subset_masks"] = subset
        return {"structgen": told} if told else {}

    def choice_note(self, index: int) -> dict[str, Any]:
        """Returns the field `structgen` of a choice."""
        return {"structgen": self.choice_notes[index]} if self.choice_notes else {}

    def job_of(self, index: int) -> Job:
        """Returns the job of an answer."""
        return self.jobs[index // max(1, self.count // len(self.jobs))]

    @property
    def prompt_tokens(self) -> int:
        return self.earlier[0] + sum(len(job.prompt) for job in self.jobs)

    @property
    def cached_tokens(self) -> int:
        return self.earlier[1] + sum(job.cached for job in self.jobs)

    @property
    def count(self) -> int:
        return sum(job.count for job in self.jobs)

    def is_custom(self, name: str) -> bool:
        """Returns whether a call is one of OpenAI's custom tools."""
        return self.tools is not None and name in self.tools.custom

    async def pieces(self) -> AsyncIterator[Piece]:
        """Returns all pieces of all jobs. Their `index` counts the answers of all jobs. Raises the error of a
        job."""
        left = self.count
        if len(self.jobs) == 1:
            job = self.jobs[0]
            while left:
                piece = await job.pieces.get()
                if piece.error is not None:
                    raise unexpected(piece.error)
                left -= piece.finish is not None
                yield piece
            return
        merged: asyncio.Queue[tuple[int, Piece]] = asyncio.Queue()
        offsets = [sum(job.count for job in self.jobs[:i]) for i in range(len(self.jobs))]

        async def forward(job: Job, offset: int) -> None:
            remaining = job.count
            while remaining:
                piece = await job.pieces.get()
                remaining -= piece.finish is not None
                await merged.put((offset, piece))
                if piece.error is not None:
                    return

        tasks = [asyncio.create_task(forward(*pair)) for pair in zip(self.jobs, offsets, strict=True)]
        try:
            while left:
                offset, piece = await merged.get()
                if piece.error is not None:
                    raise unexpected(piece.error)
                left -= piece.finish is not None
                yield replace(piece, index=piece.index + offset)
        finally:
            for task in tasks:
                task.cancel()

    def reader(self, stream: bool = False) -> CallReader | None:
        """Returns a reader of the tool calls in one answer; None: the whole text is the answer.

        Args:
            stream: report a call while it is written, once it is certain that it is one.
        """
        if self.tools is None or self.tools.choice == "none" or self.compiler is None:
            return None
        parameters = self.tools.parameters
        compiler = self.compiler

        def accepts(name: str, text: str) -> bool:
            try:
                grammar = compiler.json_schema(parameters[name], property_order="any")
                matcher = grammar.matcher()
                return matcher.accept_bytes(text) and matcher.is_accepting()
            except (StructgenError, ValueError, RecursionError):
                return False

        names = [tool["function"]["name"] for tool in callable_tools(self.tools.tools, self.tools.choice)]
        return CallReader(self.tools.style, names, accepts, stream and not self.either)

    def calls(self, text: str) -> list[Call]:
        """Returns the calls in the text of a finished answer."""
        reader = self.reader()
        items = () if reader is None else (*reader.feed(text), *reader.finish())
        return [item for item in items if isinstance(item, Call)]


class Service:
    """The model, its engine and the pools of workers; one for each process."""

    def __init__(self, lm: LanguageModel, options: ServerOptions, source: str | None = None) -> None:
        self.lm = lm
        self.options = options
        self.embedded: bool = is_embedded(lm)
        self.name: str = options.name or _name(source, self.embedded)
        self.aliases: set[str] = {self.name, *([source] if source else [])}
        self.metrics: Metrics = Metrics()
        self.engine: ModelThread = ModelThread(lm, options, self.metrics)
        self.metrics.watch(lambda: self.engine.load)
        self.memory: Memory = Memory()
        self.workers: Workers = Workers(
            options.compile_workers, options.queue, options.compile_seconds, self.memory.freed
        )
        self.lookers: Workers = Workers(2, options.queue, options.compile_seconds)
        self.readers: Workers = Workers(2, options.queue, options.compile_seconds)
        self.grammars: Grammars = Grammars(lm.vocabulary, options, self.memory.freed)
        names = lm.vocabulary.special_tokens
        self._longest = max(map(len, [*lm.vocabulary.tokens, *names]), default=1)
        self.drafters: dict[str, Callable[[], Drafter]] = {}
        if options.corpus:
            corpus = CorpusDrafter(options.corpus)
            corpus.prepared(lm.vocabulary)
            self.drafters["corpus"] = lambda: corpus
        self.alone: asyncio.Semaphore = asyncio.Semaphore(1)  # sampling and speculation run one at a time
        self.in_line = 0
        self.created: int = int(time.time())
        style = options.tool_style
        if style is not None and row_of(style) is None:
            raise ValueError(f"{style!r} is no style of tool calls; known: {', '.join(STYLES)}")
        self.tool_style: str = tool_style(lm) if style is None else style
        self.temperature = options.temperature
        if self.temperature is None:
            self.temperature = 0.0 if self.embedded else 1.0
        self.special_names: Mapping[int, bytes] = special_names(lm)
        self.reasoning: Reasoning | None = _reasoning(lm, options.reasoning)
        self.servers: ToolServers = ToolServers(options.mcp)

    def check_model(self, name: str | None) -> None:
        """Raises an ApiError if a request names another model."""
        if name and name not in self.aliases and name.rpartition("/")[2] != self.name:
            raise ApiError(
                f"the model {name!r:.200} is not served here: this is {self.name!r}",
                status=404,
                param="model",
                code="model_not_found",
            )

    def tools(self, request: ChatRequest) -> ToolUse | None:
        tools, remote = self.servers.expand(request.tools)
        use = tool_use(
            tools,
            request.tool_choice,
            request.parallel_tool_calls,
            self.tool_style,
            request.structgen,
            self.options.tool_strictness,
        )
        if use is None:
            return None
        if self.options.tool_style is None:
            use = replace(use, style=tool_style(self.lm, use.tools, use.choice))
        return replace(use, remote=remote)

    def drawing(self, request: Generation) -> Drawing:
        """Returns how the tokens of a request's answers are drawn."""
        bias = {}
        for name, value in (request.logit_bias or {}).items():
            try:
                token = int(name)
            except ValueError:
                token = -1
            if not 0 <= token < self.lm.vocabulary.vocab_size:
                raise ApiError(f"'logit_bias' names {name!r:.40}, which is no token id", param="logit_bias")
            bias[token] = value
        samples = request.structgen.sampling is not None  # sampling needs a temperature above 0
        return self.law(
            1.0 if request.temperature is None and samples else request.temperature,
            request.top_p,
            request.seed,
            top_k=request.top_k if request.top_k is not None and request.top_k > 0 else None,
            min_p=request.min_p or 0.0,
            frequency_penalty=request.frequency_penalty or 0.0,
            presence_penalty=request.presence_penalty or 0.0,
            repetition_penalty=request.repetition_penalty or 1.0,
            logit_bias=bias,
        )

    def law(self, temperature: float | None, top_p: float | None, seed: int | None, **others: Any) -> Drawing:
        if temperature is None:
            temperature = self.temperature
        assert temperature is not None
        if seed is None and temperature > 0:
            seed = secrets.randbits(64)
        if top_p is not None:
            top_p = max(top_p, 1e-9) if top_p < 1 else None
        return Drawing(
            temperature, top_p=top_p, seed=None if seed is None else seed & ((1 << 64) - 1), **others
        )

    def ends(self, request: Generation, limit: int | None, constrained: bool) -> dict[str, Any]:
        """Returns the fields of an `AnswerPlan` that say when a text may end.

        Raises:
            ApiError: a constraint decides that already, or a stop token is not in the vocabulary.
        """
        least, ignore = request.min_tokens or 0, bool(request.ignore_eos)
        stop_ids = frozenset(request.stop_token_ids or ())
        if stop_ids and not 0 <= min(stop_ids) <= max(stop_ids) < self.lm.vocabulary.vocab_size:
            raise ApiError(
                f"'stop_token_ids' are from 0 to {self.lm.vocabulary.vocab_size - 1}, not "
                f"{min(stop_ids) if min(stop_ids) < 0 else max(stop_ids)}",
                param="stop_token_ids",
            )
        for name, asked in (("min_tokens", least), ("ignore_eos", ignore)):
            if asked and constrained:
                raise ApiError(f"the constraint says where a text ends: leave '{name}' out", param=name)
        if limit is not None and least > limit:
            raise ApiError(f"'min_tokens' is {least} and the limit {limit}", param="min_tokens")
        return {
            "least": least,
            "ignore_ends": ignore,
            "stops": request.stops,
            "keep_stop": request.include_stop_str_in_output,
            "stop_ids": stop_ids,
        }

    async def start(self, wanted: Wanted, queue: bool = True) -> RequestRun:
        """Reads the prompts, compiles the constraint, and hands both to the engine, unless `queue` is False.

        Raises:
            ApiError: a prompt or a constraint is refused, the limit is too small for any text of the
                grammar, or there is no room.
        """
        loop, read = asyncio.get_running_loop(), partial(self._read, wanted)
        reading = await self.readers.run(read, _READING, wanted.prompt_param, "prompt_too_costly")
        try:
            run = await self._in_line(reading, partial(self._prepare, wanted, reading, loop))
        except ApiError as error:
            if reading.constraint is not None and error.param == reading.constraint.param:
                self.metrics.refused.labels(error.code or "").inc()
            raise
        if queue:
            self.engine.submit(run.jobs)
        return run

    async def _in_line(self, reading: _Reading, prepare: Callable[..., RequestRun]) -> RequestRun:
        """Runs `prepare` in the first line of workers that can serve the request, and returns its run."""
        constraint, key = reading.constraint, reading.key
        if constraint is None:
            return await self.readers.run(prepare, _READING)
        what = "compiling the constraint"
        if key in self.grammars:
            return await self.readers.run(prepare, what, constraint.param)
        if key is not None:
            with contextlib.suppress(TooMuch):
                return await self.lookers.run(partial(prepare, look=True), what, constraint.param)
        return await self.workers.run(prepare, what, constraint.param)

    def _read(self, wanted: Wanted) -> _Reading:
        constraint, thinks = wanted.whole(), wanted.thinking.reasoning
        schema = None if constraint is None else constraint.schema
        contexts = [self._contexts(make, schema, wanted.prompt_param) for make in wanted.prompts]
        if thinks is not None:
            placed = self._placed(thinks, wanted, contexts[0][0])
            # otherwise the model has no thoughts here
            if placed.prefilled or placed.max_tokens != 0 or constraint is None:
                constraint = with_thoughts(constraint, placed)
        key = None if constraint is None else self.grammars.key(constraint)
        return _Reading(contexts, constraint, schema, key)

    def _prepare(
        self, wanted: Wanted, reading: _Reading, loop: asyncio.AbstractEventLoop, look: bool = False
    ) -> RequestRun:
        """Returns a run with its grammar. `look`: with little work. TooMuch: more work is needed."""
        begin = time.perf_counter()
        made = fresh = None
        if reading.constraint is not None:
            made = self.grammars.kept(reading.key)
            if made is None:
                made = fresh = self.grammars.ready(reading.constraint, look)
        plan, jobs = self._plan(wanted, reading, made), []
        for tokens, prefixes in reading.contexts:
            room = self._room(wanted, len(tokens))
            own = replace(plan, room=room, budget=self._budget(plan, room, wanted, look))
            seconds = self.options.request_seconds
            jobs.append(Job(self.lm.vocabulary, tokens, prefixes, own, wanted.count, loop, seconds))
        run = RequestRun(jobs, wanted.tools, large_gone=self.grammars.large_gone, thinking=wanted.thinking)
        run.either = wanted.constraint is not None and wanted.tools is not None
        run.warnings += wanted.warnings
        if made is not None:
            if look and fresh is not None:
                made.compiler._set_limits(self.options.limits, made.grammar)
            run.compiler, run.compiled = made.compiler, None if fresh is None else made.seconds
            run.warnings += made.warnings
            taken = time.perf_counter() - begin
            self.metrics.compile.observe(taken)
            self.grammars.keep(reading.key, made, taken)
        return run

    def _plan(self, wanted: Wanted, reading: _Reading, made: ServedGrammar | None) -> AnswerPlan:
        """Returns the plan of the request's answers, without the parts that depend on the length of a
        prompt."""
        thinks, drawing = wanted.thinking.reasoning, wanted.plan.drawing
        names = {} if thinks is None else mark_names(thinks, self.lm.vocabulary)
        if wanted.tools is not None and wanted.tools.choice != "none":
            names |= self.special_names
        plan = replace(wanted.plan, names=names, apart=wanted.thinking.apart)
        if made is not None and reading.constraint is not None:
            most, param = self.options.grammar_bytes, reading.constraint.param
            plan = replace(plan, grammar=made.grammar, param=param, taken=made.taken, bytes_at_most=most)
        if drawing.temperature == 0 and drawing.plain and reading.schema is not None and thinks is None:
            plan = replace(plan, doubt=partial(doubt, self.lm))
        return plan

    async def count(self, wanted: Wanted) -> int:
        """Returns the number of tokens in a request's prompt. Raises an ApiError if the prompt is refused."""
        whole = wanted.whole()
        schema = None if whole is None else whole.schema

        def read() -> int:
            return len(self._contexts(wanted.prompts[0], schema, wanted.prompt_param)[0])

        return await self.readers.run(read, _READING, wanted.prompt_param, "prompt_too_costly")

    def context(self, make: MakePrompt, schema: Any, param: str) -> Context:
        """Returns the model's context behind the whole prompt, and drops the contexts of its prefixes."""
        return self._contexts(make, schema, param)[1][-1]

    def _contexts(self, make: MakePrompt, schema: Any, param: str) -> tuple[list[int], list[Context]]:
        """Returns the tokens of a prompt, and the context of each of its prefixes."""
        try:
            prompt = make(schema)
            most = None if self.lm.max_context is None else self.lm.max_context * self._longest
            if (
                isinstance(prompt, str) and most is not None and len(prompt) > most
            ):  # The length is checked first, because tokenizing a long text takes long.
                raise ContextTooLong(
                    f"the prompt has {len(prompt)} characters, which are more tokens than the "
                    f"{self.lm.max_context} that the model reads: shorten it"
                )
            whole = self.lm.start(prompt)
            tokens = list(whole.tokens)
            prefixes = [self.lm.start(tokens[:1])]
            for token in tokens[1:]:
                prefixes.append(prefixes[-1].extend(token))
        except ApiError:
            raise
        except Exception as error:
            raise of_prompt(error, param) from None
        return tokens, prefixes

    def _placed(self, thinks: Reasoning, wanted: Wanted, prompt: Sequence[int]) -> Reasoning:
        """Returns the thoughts behind a prompt, with a limit that keeps tokens for the answer.

        Raises:
            ApiError: the limit leaves no room for thoughts beside the kept tokens.
        """
        thinks = thinks.behind_tokens(prompt, self.lm.vocabulary, self.special_names)
        kept, any_text = wanted.thinking.answer_tokens, wanted.constraint is None and wanted.tools is None
        room = self._room(wanted, len(prompt))
        try:
            return thinks.within(room, kept, self.lm.vocabulary, any_text and wanted.complete)
        except UnsatisfiableBudget as error:
            raise ApiError(str(error), param="structgen.answer_tokens", code="max_tokens_too_small") from None

    def _room(self, wanted: Wanted, prompt: int) -> int:
        """Returns the most tokens that an answer may have."""
        asked = self.options.max_tokens if wanted.limit is None else wanted.limit
        if self.lm.max_context is None or asked == 0:
            return asked
        left = self.lm.max_context - prompt
        if left < 1:
            error = ContextTooLong(
                f"the prompt has {prompt} tokens and the model reads {self.lm.max_context}, "
                "answer included: shorten it"
            )
            raise of_prompt(error, wanted.prompt_param)
        return min(asked, left)

    def _budget(self, plan: AnswerPlan, room: int, wanted: Wanted, look: bool) -> bool:
        """Returns whether masks keep an end within `room` tokens reachable.

        Raises:
            ApiError: no known text of the grammar has so few tokens. The message says how many suffice.
            TooMuch: with `look`, the known masks do not decide it.
        """
        grammar = plan.grammar
        if grammar is None or not room:
            return False
        complete = wanted.complete and grammar.answer is not None  # any text may end anywhere
        fits = complete and self._fits(grammar, room, wanted, plan.param, look)
        if look and (fits != complete or not grammar.matcher().mask_exact):
            raise TooMuch
        return fits

    def _fits(self, grammar: CompiledGrammar, room: int, wanted: Wanted, param: str, look: bool) -> bool:
        try:
            return can_end_within(grammar, room)
        except UnsatisfiableBudget as error:
            least: int | None = None  # no text has fewer tokens
            enough: int | None = None  # some text has no more tokens
            with contextlib.suppress(StructgenError):
                least, enough = grammar.matcher().token_bounds()
            if look and (enough is None or not grammar.matcher().mask_exact):
                raise TooMuch from None
            ours = wanted.limit is not None and room == wanted.limit
            if ours:
                reason = f"'{wanted.limit_param}' is {room}"
            elif wanted.limit is None and room == self.options.max_tokens:
                ours = True
                reason = f"'{wanted.limit_param}' is not given, and the server's --max-tokens is {room}"
            else:
                reason = f"the prompt leaves {room}"
            if enough is None:
                words = "no tokens of this model are known to write a text that the constraint allows"
            elif least is not None and room < least:
                words = "no text that the constraint allows has so few tokens"
            else:
                words = "no text that the constraint allows is known to have so few tokens"
            if enough is not None:
                known = f"it takes {enough} at least" if least == enough else f"{enough} are known to suffice"
                words += f": {reason}, {known}, end of sequence included"
            raise ApiError(
                words,
                param=wanted.limit_param if ours else wanted.prompt_param,
                code="max_tokens_too_small",
                details={"least_tokens": enough, "tokens_left": room},
            ) from error
        except Exception as error:
            raise of_look(error, param, look) from None

    def close(self) -> None:
        self.engine.close(self.options.drain_seconds)
        self.workers.close()
        self.lookers.close()
        self.readers.close()
        self.memory.close()
        self.grammars.clear()


def _reasoning(lm: LanguageModel, asked: str) -> Reasoning | None:
    """Returns how the model thinks, by the option of the server. Raises a ValueError if the family is
    unknown."""
    if asked == "none":
        return None
    if asked != "auto":
        return Reasoning.of(asked)
    try:
        return reasoning_of(True, lm)
    except ValueError:  # the model does not think, or its chat template is of no known family
        return None


def _name(source: str | None, embedded: bool) -> str:
    if source is None or source == "embedded":
        return "embedded" if embedded else "model"
    return os.path.basename(os.path.normpath(source)) or source
