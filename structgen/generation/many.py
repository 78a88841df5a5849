"""Many prompts through one model: `sg.generate_many`.

Enters: prompts, and one constraint or one for each prompt. Leaves: a result for each prompt, in order; a
prompt that fails has a `Failed` in its place. Cost: one forward pass for each step of all live texts, which
gives each text a token.

The problem. Texts have different lengths, so fewer and fewer texts of a fixed batch are still running. The
prompts may be an endless iterator, results have to come in order, and one bad prompt must not end the others.

The idea. `made` keeps a run of at most `batch` live texts (run.py). A prompt is planned (compiled, tokenized)
and joins as soon as a text ends. `waiting` has every request that was begun and whose result the caller does
not have yet, the oldest first. Here ``batch=2``, the prompts are A, B, C, and A has the longest text:

    live      waiting      handed out
    A B       A B
    A C       A B C        B ended and C joined; B waits for A
    A         A B C        C ended
              (none)       A ended: A, B, C

So that `waiting` stays short, no new prompt is read while `waiting` holds `_AHEAD` batches of requests.

A Python type may refuse a text. `_ended` then plans another attempt (retry.py), which joins like a new
prompt.

Invariants.
- Outcomes come in the order of the prompts, one for each.
- A result is that of `sg.generate` with the same arguments.
- An error of one text ends no other text. If a forward pass of all texts fails, each text is tried alone, and
  the texts that fail alone keep the error.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from .._checks import whole
from ..constraints import constraint_of
from ..frontend.tool_calls import ToolReply
from ..lm.load import language_model
from .api import Call
from .options import GrammarOptions, Options, TextOptions, ToolOptions, settings_of
from .plan import Plan, planned
from .results import InvalidValue, Result
from .retry import again
from .run import Clock, Run, Text

if TYPE_CHECKING:
    import enum
    from typing import Unpack

    from ..lm.base import LanguageModel

    E = TypeVar("E", bound=enum.Enum)

T = TypeVar("T")
_AHEAD = 4  # the most batches of requests that were begun and whose results the caller does not have yet


@dataclass(frozen=True, slots=True)
class Failed:
    """A prompt without a result.

    Attributes:
        index: the number of the prompt, from 0.
        prompt: the prompt.
        error: the exception.
    """

    index: int
    prompt: Any
    error: Exception
    ok: Literal[False] = field(default=False, init=False, repr=False)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a call of `generate_many`.

    Attributes:
        done, failed: the number of prompts with an outcome, and of those that failed.
        total: the number of all prompts; None if they come from an iterator.
        tokens, seconds: tokens drawn and time taken so far.
    """

    done: int
    failed: int
    total: int | None
    tokens: int
    seconds: float

    def __str__(self) -> str:
        of = "" if self.total is None else f"/{self.total}"
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.done}{of} prompts{failed}, {self.tokens / max(self.seconds, 1e-9):.0f} tokens/s"


@dataclass(slots=True)
class Request:
    """A prompt with the arguments of its call. `error` is set if its input could not be read."""

    prompt: Any
    given: Mapping[str, Any]
    error: Exception | None = None
    tag: Any = None


@dataclass(slots=True)
class _Slot:
    """A request that was begun: its texts, and the results of those that ended."""

    request: Request
    plan: Plan | None = None
    listed: bool = False
    clock: Clock = field(default_factory=Clock)
    texts: list[Text] = field(default_factory=list)
    results: dict[int, Result[Any]] = field(default_factory=dict)
    plans: dict[int, Plan] = field(default_factory=dict)
    attempts: dict[int, list[tuple[str, Exception]]] = field(default_factory=dict)
    error: Exception | None = None

    @property
    def over(self) -> bool:
        return self.error is not None or (self.plan is not None and len(self.results) == len(self.texts))


def made(lm: LanguageModel, requests: Iterator[Request], batch: int) -> Iterator[tuple[Request, Any]]:
    """Yields each request with its outcome, in order: a `Result`, a list of results (with `n`), or an
    exception."""
    run = Run(lm, lone=False)
    # requests that were begun and whose results the caller does not have yet, oldest first
    waiting: deque[_Slot] = deque()
    owner: dict[int, _Slot] = {}
    more = True
    while True:
        while more and len(run.live) < batch and len(waiting) < batch * _AHEAD:
            request = next(requests, None)
            if request is None:
                more = False
                break
            slot = _begun(lm, request)
            waiting.append(slot)
            for text in slot.texts:
                if slot.over:
                    break
                owner[id(text)] = slot
                run.add(text)
        while waiting and waiting[0].over:
            slot = waiting.popleft()
            yield slot.request, _outcome(slot)
        if not waiting:
            if not more:
                return
            continue
        if run.live:
            for text in _stepped(run):
                _ended(run, owner, text)


def _begun(lm: LanguageModel, request: Request) -> _Slot:
    slot = _Slot(request)
    if request.error is not None:
        slot.error = request.error
        return slot
    try:
        slot.listed = request.given.get("n") is not None
        settings, named = settings_of(request.given)
        schema = request.given.get("schema")
        if settings.speculate is not None:
            call = Call(lm, request.prompt, schema, {k: v for k, v in request.given.items() if k != "schema"})
            slot.plan = call.plan
            slot.texts, slot.results = call.texts, dict(enumerate(call.results()))
            return slot
        plan = planned(lm, request.prompt, constraint_of(named), settings, slot.clock)
        slot.plan, slot.texts = plan, plan.texts()
        slot.plans = dict.fromkeys(range(len(slot.texts)), plan)
    except Exception as error:
        slot.error = error
    return slot


def _stepped(run: Run) -> list[Text]:
    """Gives every live text one token, and returns the texts that ended."""
    before = run.live
    try:
        run.step()
    except Exception as error:
        if len(before) == 1:
            run.live = []
            before[0].error = error
            return before
        # Perhaps one text alone causes the error, so each text is tried alone.
        live: list[Text] = []
        for text in before:
            run.live = [text]
            try:
                run.step()
            except Exception as own:
                text.error = own
                run.live = []
            live += run.live
        run.live = live
    return [text for text in before if text.over]


def _ended(run: Run, owner: dict[int, _Slot], text: Text) -> None:
    """Takes a text that ended: notes its result, or begins another attempt."""
    slot = owner.pop(id(text))
    if slot.error is not None:
        return
    plan = slot.plans[text.index]
    attempts = slot.attempts.setdefault(text.index, [])
    try:
        if text.error is not None:
            raise text.error
        slot.results[text.index] = plan.result(text, slot.clock.total(), attempts=len(attempts) + 1)
    except InvalidValue as error:
        attempts += error.attempts
        if len(attempts) > plan.settings.retries:
            slot.error = InvalidValue(error.text, error.error, attempts)
            return
        try:
            slot.plans[text.index] = plan = again(plan, error, slot.clock)
            fresh = plan.text(text.index)
        except Exception as failure:
            slot.error = failure
            return
        slot.texts[text.index] = fresh
        owner[id(fresh)] = slot
        run.add(fresh)
    except Exception as error:
        slot.error = error


def _outcome(slot: _Slot) -> Any:
    if slot.error is not None:
        return slot.error
    results = [slot.results[i] for i in sorted(slot.results)]
    return results if slot.listed else results[0]


if TYPE_CHECKING:

    class Common(Options, total=False):
        batch: int
        progress: bool | Callable[[Progress], object]

    class _Text(TextOptions, Common, total=False): ...

    class _Grammar(GrammarOptions, Common, total=False): ...

    class _Tools(ToolOptions, Common, total=False): ...


if TYPE_CHECKING:

    @overload
    def generate_many(
        model: Any, prompts: Iterable[Any], schema: type[T], **options: Unpack[Common]
    ) -> Iterator[Result[T] | Failed]: ...
    @overload
    def generate_many(
        model: Any, prompts: Iterable[Any], *, choice: type[E], **options: Unpack[Common]
    ) -> Iterator[Result[E] | Failed]: ...
    @overload
    def generate_many(
        model: Any, prompts: Iterable[Any], **options: Unpack[_Text]
    ) -> Iterator[Result[str] | Failed]: ...
    @overload
    def generate_many(
        model: Any, prompts: Iterable[Any], **options: Unpack[_Tools]
    ) -> Iterator[Result[ToolReply] | Failed]: ...
    @overload
    def generate_many(
        model: Any,
        prompts: Iterable[Any],
        schema: Any = None,
        *,
        schemas: Iterable[Any] | None = None,
        **options: Unpack[_Grammar],
    ) -> Iterator[Result[Any] | Failed]: ...


def generate_many(
    model: Any,
    prompts: Iterable[Any],
    schema: Any = None,
    *,
    schemas: Iterable[Any] | None = None,
    batch: int = 16,
    progress: bool | Callable[[Progress], object] = False,
    **options: Any,
) -> Iterator[Any]:
    """Generate a text for each prompt; many share a forward.

        for found in sg.generate_many(None, prompts, Order):
            print(found.error if isinstance(found, sg.Failed) else found.value)

    Args:
        prompts: a list or an iterator of prompts, each as in `sg.generate`. An iterator is read while results
            are taken, and a little ahead.
        schema, and the other constraints and options: as in `sg.generate`, for all prompts, except `n`.
        schemas: instead of `schema` one for each prompt; None allows any text.
        batch: the most texts that are generated at once.
        progress: True keeps a line on standard error up to date. A function is called with a `Progress` for
            each outcome.

    Returns:
        An iterator over the outcomes in the order of the prompts. An outcome is a `Result`, whose `ok` is
        True, or a `Failed` with the error, whose `ok` is False. (All type checkers tell them apart by
        `isinstance`, some by `ok`.) Each result is that of `sg.generate` with the same arguments.

    Raises:
        TypeError, ValueError: options that are wrong for every prompt; LanguageModelError: there is no such
            model. Before the first result.
    """
    if isinstance(prompts, str | bytes | Mapping) or not hasattr(prompts, "__iter__"):
        raise TypeError(
            f"prompts is a list or an iterator of prompts, not {prompts!r:.60}; one is sg.generate"
        )
    whole("batch", batch, 1)
    if options.get("n") is not None:
        raise ValueError("generate_many takes no n=: give a prompt as often as it is wanted")
    if isinstance(schemas, str | bytes | Mapping) or not hasattr(schemas or (), "__iter__"):
        raise TypeError(f"schemas is a list or an iterator of schemas, not {schemas!r:.60}; for all: schema=")
    _, named = settings_of(options)
    common = constraint_of({**named, "schema": schema})
    if schemas is not None and common is not None:
        raise ValueError(f"schemas= gives each prompt its own constraint: leave {common.param}= out")
    total = len(prompts) if isinstance(prompts, Sized) else None
    if isinstance(schemas, Sized) and total is not None and len(schemas) != total:
        raise ValueError(f"there are {total} prompts and {len(schemas)} schemas")
    lm = language_model(model)
    given = {**{k: v for k, v in options.items() if k not in named}, "schema": common}
    return _many(lm, _requests(prompts, given, schemas), batch, _teller(progress), total)


def _requests(
    prompts: Iterable[Any], given: dict[str, Any], schemas: Iterable[Any] | None
) -> Iterator[Request]:
    if schemas is None:
        for prompt in prompts:
            yield Request(prompt, given)
        return
    each = iter(schemas)
    end = object()
    for i, prompt in enumerate(prompts):
        schema = next(each, end)
        if schema is end:
            yield Request(prompt, given, ValueError(f"there is no schema for prompt {i}"))
        else:
            yield Request(prompt, {**given, "schema": schema})


def _many(
    lm: LanguageModel,
    requests: Iterator[Request],
    batch: int,
    tell: Callable[[Progress], object],
    total: int | None,
) -> Iterator[Any]:
    begin = time.perf_counter()
    failed = tokens = 0
    for index, (request, outcome) in enumerate(made(lm, requests, batch)):
        if isinstance(outcome, Exception):
            failed += 1
            outcome = Failed(index, request.prompt, outcome)
        else:
            tokens += len(outcome.tokens)
        tell(Progress(index + 1, failed, total, tokens, time.perf_counter() - begin))
        yield outcome


def _teller(progress: bool | Callable[[Progress], object]) -> Callable[[Progress], object]:
    if callable(progress):
        return progress
    if not progress:
        return lambda now: None

    def line(now: Progress) -> None:
        end = "\n" if now.done == now.total else ""
        print(f"\r\x1b[K{now}", end=end, file=sys.stderr, flush=True)

    return line
