"""`sg.stream` and `sg.astream`: events of a text while the text is written.

Enters: the arguments of `sg.generate`. Leaves: an `Event` for each token. Cost: that of `sg.generate`; each
`Event.value` reads the text so far.

A step runs only when the caller asks for the next event. So the work ends when the caller leaves the loop,
closes the stream or cancels the task.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, cast, overload

from ..frontend.tool_calls import ToolReply
from .api import Call
from .options import GrammarOptions, Options, TextOptions, ToolOptions
from .results import Result, TokenLogprobs

if TYPE_CHECKING:
    import enum
    from typing import Unpack

    from .run import Step

    E = TypeVar("E", bound=enum.Enum)

T = TypeVar("T")


class Event(Generic[T]):
    """One token of one text.

    Attributes:
        text: the characters of the answer that became certain with this token; often none, or several.
        reasoning: the same for the thoughts in front of the answer.
        part: "reasoning" for a token of thoughts or their marks, "answer" for the others; a token that holds
            the end of the mark and the beginning of the answer is one of the answer.
        token, logprob: its id, and the model's natural-log probability of it.
        top_logprobs: the most probable tokens of its place, where `top_logprobs=` asked for them.
        index: the number of its text, where there are several.
        result: the finished text with its last event; else None.
    """

    __slots__ = (
        "_count", "_parts", "_read", "index", "logprob", "part", "reasoning", "result", "text", "token",
        "top_logprobs",
    )  # fmt: skip

    def __init__(
        self,
        step: Step,
        parts: list[str],
        top_logprobs: TokenLogprobs | None,
        result: Result[T] | None,
        read: Callable[[str], Any],
    ) -> None:
        self.text: str = step.added
        self.reasoning: str = step.thoughts
        self.part: Literal["reasoning", "answer"] = step.part
        # the list grows with later events, so the event notes its present length
        self._parts, self._count = parts, len(parts)
        self.token: int = step.token
        self.logprob: float = step.logprob
        self.index: int = step.text.index
        self.top_logprobs: TokenLogprobs | None = top_logprobs
        self.result: Result[T] | None = result
        self._read = read

    @property
    def so_far(self) -> str:
        """All characters of the answer that are certain so far."""
        return "".join(self._parts[: self._count])

    @property
    def value(self) -> T | None:
        """The value as far as it is known: objects and arrays without what is still to come, a string at the
        end as an `IncompleteString`, models and dataclasses with None for fields to come. None where nothing
        is known. With the last event it is the value of the result."""
        if self.result is not None:
            return self.result.value
        return cast("T | None", self._read(self.so_far))

    def __repr__(self) -> str:
        end = f", result={self.result!r}" if self.result is not None else ""
        return f"Event({self.text!r}, token={self.token}, logprob={self.logprob:.3f}{end})"


class Stream(Generic[T], Iterator[Event[T]]):
    """Yields the events of a call, and computes each event only when it is requested. Leaving a `with` block,
    or `close()`, ends the work."""

    def __init__(self, call: Call) -> None:
        self._call: Call | None = call
        self._ready: deque[Event[T]] = deque()
        self._results: dict[int, Result[T]] = {}
        self._parts: dict[int, list[str]] = {}
        self._read = call.plan.partial()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event[T]:
        while not self._ready:
            call = self._call
            if call is None or not call.run.live:
                self._call = None
                raise StopIteration
            try:
                self._step(call)
            except BaseException:
                self._call = None
                raise
        return self._ready.popleft()

    def _step(self, call: Call) -> None:
        for step in call.run.step():
            text = step.text
            parts = self._parts.setdefault(text.index, [])
            parts.append(step.added)
            result: Result[T] | None = None
            if text.over and len(parts) == len(text.tokens):
                result = call.result(text)
                self._results[text.index] = result
            tops = text.top_logprobs[len(parts) - 1] if text.top_logprobs else None
            self._ready.append(Event(step, parts, tops, result, self._read))

    @property
    def result(self) -> Result[T]:
        """The finished text. If events are left, the rest of the text is written first."""
        return self.results[0]

    @property
    def results(self) -> list[Result[T]]:
        """The finished texts, in order."""
        for _ in self:
            pass
        return [self._results[i] for i in sorted(self._results)]

    def close(self) -> None:
        """Ends the work; no more events come."""
        self._call = None
        self._ready.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncStream(Generic[T], AsyncIterator[Event[T]]):
    """`Stream` for asyncio: each step runs in a worker thread. If the waiting task is cancelled, the work
    ends after the present forward."""

    def __init__(self, made: Callable[[], Stream[T]]) -> None:
        self._made = made
        self._stream: Stream[T] | None = None
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event[T]:
        if self._closed:
            raise StopAsyncIteration
        try:
            event = await asyncio.to_thread(self._next)
        except BaseException:
            self._closed = True
            raise
        if event is None:
            self._closed = True
            raise StopAsyncIteration
        return event

    def _next(self) -> Event[T] | None:
        if self._stream is None:
            self._stream = self._made()
        return next(self._stream, None)

    @property
    def results(self) -> list[Result[T]]:
        """The finished texts, in order."""
        return [] if self._stream is None else [r for _, r in sorted(self._stream._results.items())]

    async def aclose(self) -> None:
        """Ends the work; no more events come."""
        self._closed = True
        if self._stream is not None:
            self._stream.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


if TYPE_CHECKING:

    @overload
    def stream(
        model: Any, prompt: Any, schema: type[T], *, n: int | None = None, **options: Unpack[Options]
    ) -> Stream[T]: ...
    @overload
    def stream(
        model: Any, prompt: Any, *, choice: type[E], n: int | None = None, **options: Unpack[Options]
    ) -> Stream[E]: ...
    @overload
    def stream(
        model: Any, prompt: Any, *, n: int | None = None, **options: Unpack[TextOptions]
    ) -> Stream[str]: ...
    @overload
    def stream(
        model: Any, prompt: Any, *, n: int | None = None, **options: Unpack[ToolOptions]
    ) -> Stream[ToolReply]: ...
    @overload
    def stream(
        model: Any,
        prompt: Any,
        schema: Any = None,
        *,
        n: int | None = None,
        **options: Unpack[GrammarOptions],
    ) -> Stream[Any]: ...


def stream(model: Any, prompt: Any, schema: Any = None, **options: Any) -> Any:
    """Returns the events of a text while it is written. The arguments are those of `sg.generate` without
    `retries`.

        for event in sg.stream(None, prompt, Order):
            print(event.text, end="", flush=True)
            show(event.value)  # an Order whose fields fill up

    The tokens are those of `sg.generate`. With `n`, events of all texts come in the order in which they are
    made.

    Raises:
        The errors of `sg.generate`, before the first event; InvalidValue comes with the last event.
    """
    _no_retries(options)
    return Stream(Call(model, prompt, schema, options))


if TYPE_CHECKING:

    @overload
    def astream(
        model: Any, prompt: Any, schema: type[T], *, n: int | None = None, **options: Unpack[Options]
    ) -> AsyncStream[T]: ...
    @overload
    def astream(
        model: Any, prompt: Any, *, choice: type[E], n: int | None = None, **options: Unpack[Options]
    ) -> AsyncStream[E]: ...
    @overload
    def astream(
        model: Any, prompt: Any, *, n: int | None = None, **options: Unpack[TextOptions]
    ) -> AsyncStream[str]: ...
    @overload
    def astream(
        model: Any, prompt: Any, *, n: int | None = None, **options: Unpack[ToolOptions]
    ) -> AsyncStream[ToolReply]: ...
    @overload
    def astream(
        model: Any,
        prompt: Any,
        schema: Any = None,
        *,
        n: int | None = None,
        **options: Unpack[GrammarOptions],
    ) -> AsyncStream[Any]: ...


def astream(model: Any, prompt: Any, schema: Any = None, **options: Any) -> Any:
    """`stream` for asyncio: `async for event in sg.astream(...)`. Worker threads load, compile and compute
    forward passes. Errors come with the first event."""
    _no_retries(options)
    return AsyncStream(lambda: Stream(Call(model, prompt, schema, options)))


def _no_retries(options: dict[str, Any]) -> None:
    if options.get("retries"):
        raise ValueError("a stream takes no retries=: what was shown cannot be taken back; use sg.generate")
