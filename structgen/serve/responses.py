"""`POST /v1/responses`: OpenAI's newer interface, without stored responses.

Enters: a `ResponsesRequest`. Leaves: one response, or the events of a stream, in the order that OpenAI's
client expects. Cost: that of making the answer.

The problem. In this interface an answer is a list of items: messages and function calls. A stream sends each
item from its beginning to its end, with numbered events. The engine gives pieces of text, and the reader of
calls gives items as soon as they are certain.

The idea. `messages_of` turns the input's items into chat messages, so that prompts are those of the chat.
`_Stream` keeps at most one item open (`_OutputItem`: thoughts, a message or a call), and closes it when
another item comes. For an answer `Hi` and a call `f({"x":1})`:

    response.created, response.in_progress
    output_item.added (message), content_part.added, output_text.delta "Hi"
    output_text.done, content_part.done, output_item.done
    output_item.added (function_call), function_call_arguments.delta '{"x":1}'
    function_call_arguments.done, output_item.done
    response.completed

Invariants.
- `sequence_number` counts all events of a stream from 0.
- Deltas of an item, put together, are the text or the arguments that its last event has.
- An answer always has an item: an empty one is an empty message.
- An error in the middle of a stream is an event `response.failed`, with the items so far.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from ..frontend.tool_calls import Begun, Call, Item, Part
from ..frontend.tool_lists import INPUT
from . import alone
from .chat import wanted as chat_wanted
from .errors import ApiError, unexpected
from .logprobs import of_chat
from .mcp import Called
from .reply import Reply, call_id, finished, input_of
from .requests import ChatRequest, Message, ResponsesRequest
from .sequence import Piece
from .service import RequestRun, Service, Wanted

_TEXTS = ("input_text", "output_text", "text", "refusal")


def wanted(service: Service, request: ResponsesRequest) -> Wanted:
    """Returns the wishes of the equivalent chat request. Raises an ApiError if a field is refused."""
    same = ChatRequest.model_fields.keys() & ResponsesRequest.model_fields.keys() & request.model_fields_set
    asked = ChatRequest.model_construct(
        **{name: getattr(request, name) for name in same},
        messages=messages_of(request),
        max_tokens=request.max_output_tokens,
        logprobs=request.top_logprobs is not None,
    )
    found = chat_wanted(service, asked, None if request.text is None else request.text.format)
    return replace(found, limit_param="max_output_tokens", prompt_param="input")


def messages_of(request: ResponsesRequest) -> list[Message]:
    """Returns the input's items as chat messages. Raises an ApiError if an item is neither text nor a
    call."""
    messages: list[Message] = []
    if request.instructions:
        messages.append(Message(role="system", content=request.instructions))
    if isinstance(request.input, str):
        return [*messages, Message(role="user", content=request.input)]
    for i, item in enumerate(request.input):
        kind = item.get("type", "message")
        where = f"input[{i}]"
        if kind == "message":
            role = item.get("role")
            if role not in ("system", "developer", "user", "assistant"):
                raise ApiError(f"'{where}' has no role of a message", param=where)
            messages.append(Message(role=role, content=_content(item.get("content"), where)))
        elif kind in ("function_call", "custom_tool_call"):
            custom = kind == "custom_tool_call"
            name, arguments = item.get("name"), item.get("input" if custom else "arguments")
            if not isinstance(name, str) or not isinstance(arguments, str):
                words = "input" if custom else "arguments"
                raise ApiError(f"'{where}' has no name and {words}", param=where)
            if custom:
                arguments = json.dumps({INPUT: arguments}, ensure_ascii=False)
            messages.append(_asked(item.get("call_id"), name, arguments))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            output = _content(item.get("output"), where)
            messages.append(Message(role="tool", content=output, tool_call_id=str(item.get("call_id") or "")))
        elif kind == "mcp_call":
            name, arguments = str(item.get("name")), str(item.get("arguments"))
            told = str(item.get("output") or item.get("error") or "")
            messages.append(_asked(item.get("id"), name, arguments))
            messages.append(Message(role="tool", content=told, tool_call_id=str(item.get("id"))))
        elif kind in ("reasoning", "mcp_list_tools"):
            continue  # the reasoning of earlier turns is not shown to the model
        else:
            raise ApiError(f"'{where}' is a {kind!r:.80}, which this server cannot read", param=where)
    if not messages:
        raise ApiError("'input' has no message", param="input")
    return messages


def _asked(ident: object, name: str, arguments: str) -> Message:
    """Returns the assistant's message that calls a function."""
    return Message(role="assistant", content="", tool_calls=[Message.call(ident, name, arguments)])


def _content(content: Any, where: str) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise ApiError(f"'{where}' has no content", param=where)
    texts = []
    for part in content:
        text, kind = part.get("text", part.get("refusal")), part.get("type")
        if kind not in _TEXTS or not isinstance(text, str):
            words = f"'{where}' has a part of type {kind!r:.80}: this model reads text"
            raise ApiError(words, param=where)
        texts.append(text)
    return "".join(texts)


def _id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(16)}"


def _response(
    service: Service, request: ResponsesRequest, run: RequestRun, name: str, status: str, **more: Any
) -> dict[str, Any]:
    given = {} if request.text is None else request.text.model_dump(exclude_none=True)
    return {
        "id": name,
        "object": "response",
        "created_at": run.created,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": request.instructions,
        "max_output_tokens": request.max_output_tokens,
        "model": service.name,
        "output": [],
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "previous_response_id": None,
        "reasoning": {
            "effort": None if request.reasoning is None else request.reasoning.effort,
            "summary": None,
        },
        "store": False,
        "temperature": run.jobs[0].plan.drawing.temperature,
        "text": {"format": {"type": "text"}, **given},
        "tool_choice": request.tool_choice or "auto",
        "tools": request.tools or [],
        "top_p": run.jobs[0].plan.drawing.top_p or 1.0,
        "truncation": "disabled",
        "usage": None,
        "user": None,
        "metadata": request.metadata or {},
        **more,
    }


# The kinds of items that the model writes, with the beginning of their ids and of the names of their events.
_KINDS = {
    "message": ("msg", "output_text"),
    "reasoning": ("rs", "reasoning_text"),
    "function_call": ("fc", "function_call_arguments"),
    "custom_tool_call": ("ctc", "custom_tool_call_input"),
}


class _OutputItem:
    """An item that the model writes.

    Attributes:
        text: of a message or of thoughts; the arguments of a call; the input of a custom tool's.
        place: the fields of its events that say where it stands.
    """

    def __init__(self, kind: str, text: str = "", name: str = "", logprobs: list[Any] | None = None) -> None:
        prefix, events = _KINDS[kind]
        self.kind, self.text, self.name, self.logprobs = kind, text, name, logprobs or []
        self.id, self.events, self.is_call = _id(prefix), f"response.{events}", bool(name)
        self.called = call_id() if name else ""
        self.place: dict[str, Any] = {"item_id": self.id}

    def part(self) -> dict[str, Any]:
        """Returns the only part of a message, or of thoughts."""
        if self.kind == "reasoning":
            return {"type": "reasoning_text", "text": self.text}
        return {"type": "output_text", "text": self.text, "annotations": [], "logprobs": self.logprobs}

    def told(self, status: str = "completed") -> dict[str, Any]:
        """Returns the item as an object."""
        head = {"type": self.kind, "id": self.id, "status": status}
        if self.is_call:
            text = "" if status == "in_progress" else self.text
            return {**head, "call_id": self.called, "name": self.name, self._field: text}
        more: dict[str, Any] = {"summary": []} if self.kind == "reasoning" else {"role": "assistant"}
        return {**head, **more, "content": [] if status == "in_progress" else [self.part()]}

    def done(self) -> dict[str, Any]:
        """Returns the fields of the event that ends an item and has its whole text."""
        if self.kind == "message":
            return {"text": self.text, "logprobs": self.logprobs}
        name = {"name": self.name} if self.kind == "function_call" else {}
        return {self._field: self.text, **name}

    @property
    def _field(self) -> str:
        return {"function_call": "arguments", "custom_tool_call": "input"}.get(self.kind, "text")


def _mcp_call(called: Called) -> dict[str, Any]:
    """Returns the item of a call that the server made."""
    return {
        "type": "mcp_call",
        "id": _id("mcp"),
        "server_label": called.label,
        "name": called.name,
        "arguments": called.arguments,
        "output": None if called.error else called.output,
        "error": called.output if called.error else None,
        "status": "failed" if called.error else "completed",
        "approval_request_id": None,
    }


def _end(run: RequestRun, written: Reply) -> dict[str, Any]:
    """Returns the fields that say how a response ended."""
    cut = written.finish == "length"
    return {
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "usage": {
            "input_tokens": run.prompt_tokens,
            "input_tokens_details": {"cached_tokens": run.cached_tokens},
            "output_tokens": written.tokens,
            "output_tokens_details": {"reasoning_tokens": written.reasoning_tokens},
            "total_tokens": run.prompt_tokens + written.tokens,
        },
        **run.note(0),
    }


async def answer(service: Service, request: ResponsesRequest, run: RequestRun) -> dict[str, Any]:
    """Returns the whole response."""
    (written,) = await finished(service, request, run)
    logprobs = of_chat(written.entries, service.lm.vocabulary) if request.top_logprobs is not None else []
    end = _end(run, written)
    output: list[dict[str, Any]] = [_mcp_call(one) for one in run.called]
    if written.reasoning and run.thinking.shown:
        output.append(_OutputItem("reasoning", written.reasoning).told())
    if written.content or not written.calls:
        output.append(_OutputItem("message", written.content, logprobs=logprobs).told(end["status"]))
    for call in written.calls:
        if run.is_custom(call.name):
            output.append(_OutputItem("custom_tool_call", input_of(call), call.name).told())
        else:
            output.append(_OutputItem("function_call", call.arguments, call.name).told())
    status = end.pop("status")
    return _response(service, request, run, _id("resp"), status, **end, output=output)


class _Stream:
    """The numbered events of a stream, and the items of these events. At most one item is open."""

    def __init__(self, run: RequestRun) -> None:
        self.output: list[dict[str, Any]] = []
        self.open: _OutputItem | None = None
        self._run = run
        self._number = -1

    def event(self, kind: str, **fields: Any) -> dict[str, Any]:
        self._number += 1
        return {"type": kind, "sequence_number": self._number, **fields}

    @property
    def silent(self) -> bool:
        """Whether the stream has sent only thoughts and calls that the server made."""
        said = self.open is not None and self.open.kind != "reasoning"
        return not said and all(item["type"] in ("mcp_call", "reasoning") for item in self.output)

    def item(self, told: dict[str, Any], kind: str) -> dict[str, Any]:
        """Returns the event that reports an item as `added` or `done`."""
        return self.event(f"response.output_item.{kind}", output_index=len(self.output), item=told)

    def called(self, one: Called) -> Iterator[dict[str, Any]]:
        """Returns a call that the server made."""
        told = _mcp_call(one)
        yield self.item(told, "added")
        yield self.item(told, "done")
        self.output.append(told)

    def begin(self, item: _OutputItem) -> Iterator[dict[str, Any]]:
        yield from self.close()
        self.open = item
        item.place["output_index"] = len(self.output)
        yield self.item(item.told("in_progress"), "added")
        if not item.is_call:
            item.place["content_index"] = 0
            yield self.event("response.content_part.added", **item.place, part=item.part())

    def text(self, kind: str, text: str, logprobs: list[Any] | None = None) -> Iterator[dict[str, Any]]:
        """Adds text to a message, or to thoughts. An open item of another kind is closed first."""
        if self.open is None or self.open.kind != kind:
            yield from self.begin(_OutputItem(kind))
        assert self.open is not None
        self.open.text += text
        more = {} if logprobs is None else {"logprobs": logprobs}
        self.open.logprobs += logprobs or []
        yield self.event(f"{self.open.events}.delta", **self.open.place, delta=text, **more)

    def call(self, item: Begun | Part | Call) -> Iterator[dict[str, Any]]:
        """Adds a part of a call. The input of a custom tool is sent once it is whole."""
        if isinstance(item, Begun):
            kind = "custom_tool_call" if self._run.is_custom(item.name) else "function_call"
            yield from self.begin(_OutputItem(kind, name=item.name))
            return
        assert self.open is not None
        whole = self.open.kind == "custom_tool_call"
        if isinstance(item, Call) == whole:
            text = item.text if isinstance(item, Part) else input_of(item)
            self.open.text += text
            yield self.event(f"{self.open.events}.delta", **self.open.place, delta=text)
        if isinstance(item, Call):
            yield from self.close()

    def close(self, status: str = "completed") -> Iterator[dict[str, Any]]:
        item, self.open = self.open, None
        if item is None:
            return
        yield self.event(f"{item.events}.done", **item.place, **item.done())
        if not item.is_call:
            yield self.event("response.content_part.done", **item.place, part=item.part())
        yield self.item(item.told(status), "done")
        self.output.append(item.told(status))


def _told(
    stream: _Stream, piece: Piece, new: list[Item], run: RequestRun, logprobs: list[Any]
) -> Iterator[dict[str, Any]]:
    """Returns the events for a piece of the answer."""
    if piece.reasoning and run.thinking.shown:
        yield from stream.text("reasoning", piece.reasoning)
    if piece.finish is not None and not new and stream.silent:
        new = [""]  # an empty answer is an empty message
    for item in new:
        if isinstance(item, str):
            yield from stream.text("message", item, logprobs)
            logprobs = []
        else:
            yield from stream.call(item)


async def events(
    service: Service, request: ResponsesRequest, run: RequestRun
) -> AsyncIterator[dict[str, Any]]:
    """Returns the events of a stream."""
    stream, written, reader = _Stream(run), Reply(), run.reader(stream=True)
    response = partial(_response, service, request, run, _id("resp"))
    yield stream.event("response.created", response=response("in_progress"))
    yield stream.event("response.in_progress", response=response("in_progress"))
    for event in (event for one in run.called for event in stream.called(one)):
        yield event
    try:
        async for piece in run.pieces():
            entries = piece.entries if request.top_logprobs is not None else []
            new, logprobs = written.take(piece, reader), of_chat(entries, service.lm.vocabulary)
            for event in _told(stream, piece, new, run, logprobs):
                yield event
        await alone.confident(service, run, 0, written, request.structgen.confidence)
        end = _end(run, written)
        for event in stream.close(end["status"]):
            yield event
    except Exception as error:
        failed = {"code": "server_error", "message": unexpected(error).message}
        told = {**response("failed", output=stream.output), "error": failed}
        yield stream.event("response.failed", response=told)
        return
    status = end.pop("status")
    yield stream.event(f"response.{status}", response=response(status, **end, output=stream.output))
