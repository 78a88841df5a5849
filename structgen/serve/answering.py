"""Answers over HTTP, as JSON and streams of events. When a client leaves, its work ends.

Enters: objects, the work that makes them. Leaves: responses. Cost: writing JSON.
"""

from __future__ import annotations

import asyncio
import functools
import json
import math
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from fastapi import Request
from sse_starlette import EventSourceResponse
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from .errors import unexpected
from .service import RequestRun, Service

T = TypeVar("T")
_dumped = functools.partial(json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_SEND_SECONDS = 60.0  # a client that reads nothing for so long counts as gone


def _finite(value: Any) -> Any:
    """Returns a copy in which null replaces numbers that Python reads and JSON lacks (`1e999`, `NaN`).
    Answers repeat such numbers from requests."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


def _written(content: Any) -> bytes:
    """JSON as UTF-8. Most values need no copy from `_finite`."""
    try:
        text = _dumped(content)
    except ValueError:
        text = _dumped(_finite(content))
    return text.encode("utf-8", "backslashreplace")


class Json(JSONResponse):  # type: ignore[misc]
    """A JSON response for any text. Half a surrogate pair in a client's text is written as an escape."""

    def render(self, content: Any) -> bytes:
        return _written(content)


class Gone(Exception):
    """The client left before its answer was finished."""


async def while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Awaits work and returns its result. If the client leaves, the work is cancelled and Gone is raised."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Gone
        return task.result()
    finally:
        for one in (task, gone):
            one.cancel()
            one.add_done_callback(_looked_at)


def _looked_at(task: asyncio.Future[Any]) -> None:
    """Reads a task's error, because asyncio logs an error that nobody reads. The client has left."""
    if not task.cancelled():
        task.exception()


async def unless_gone(
    request: Request, run: RequestRun, work: Coroutine[Any, Any, T], ends: bool = True
) -> T:
    """Runs `while_there` for work on a run. With `ends` the run always ends with the work. Without `ends` it
    ends only if the work fails or the client leaves."""
    done = False
    try:
        found = await while_there(request, work)
        done = True
        return found
    finally:
        if ends or not done:
            run.end()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class _Events(EventSourceResponse):  # type: ignore[misc]
    """Ends its run when the response ends, even if the client leaves before it reads the first event."""

    run: RequestRun

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.run.end()


def events(
    run: RequestRun, items: AsyncIterator[dict[str, Any]], service: Service, named: bool = False
) -> Response:
    """Server-sent events: OpenAI's `data:` lines, and their end mark unless the events have names."""

    async def lines() -> AsyncIterator[dict[str, str]]:
        try:
            async for item in items:
                line = {"data": _written(item).decode()}
                yield {"event": item["type"], **line} if named else line
        except Exception as error:
            yield {"data": _written(unexpected(error).body).decode()}
            return
        if not named:
            yield {"data": "[DONE]"}

    made = _Events(
        lines(),
        sep="\n",
        send_timeout=_SEND_SECONDS,
        shutdown_grace_period=0.9 * service.options.drain_seconds,
        headers={"X-Accel-Buffering": "no"},
    )
    made.run = run
    return made
