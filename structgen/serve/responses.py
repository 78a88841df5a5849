"""`POST /v1/responses`: OpenAI's newer interface, without stored responses.

Enters: a `ResponsesRequest`. Leaves: one response, or the events of a stream, in the order that OpenAI's
client expects. Cost: the answer's.

The problem. An answer is a list of items here, messages and function calls, and a stream tells each item from
its beginning to its end, with numbered events. The engine gives pieces of text, and the reader of calls gives
items as soon as they are certain.

The idea. `messages_of` turns the input's items into chat messages, so that prompts are those of the chat.
`events` keeps at most one item open, thoughts, a message or a call (`_Growing`), and closes it when another
kind of item comes. For an answer `Hi` and a call `f({"x":1})`:

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
from collections.abc import AsyncIterator, Callable
from typing import Any

from ..frontend.tool_calls import Call, Part
from ..frontend.tool_lists import INPUT
from . import alone
from .chat import Written, call_id, finished, input_of, omitted_turns, take
from .errors import ApiError, unexpected
from .logprobs import of_chat
from .mcp import Called
from .prompts import messages_as_prompt
from .requests import Message, ResponsesRequest
from .sequence import AnswerPlan
from .service import RequestRun, Service, Wanted
from .thinking import thinking_of
from .usage import of_responses

_ARGUMENTS, _INPUT = "response.function_call_arguments", "response.custom_tool_call_input"
_TEXTS = ("input_text", "output_text", "text", "refusal")


def wanted(service: Service, request: ResponsesRequest) -> Wanted:
    """What a request asks for. ApiError: a field is refused."""
    tools = service.tools(request)
    told = None if tools is None or tools.choice == "none" else tools
    messages = messages_of(request)
    thinking = thinking_of(service.reasoning, request)

    def prompt(schema: Any) -> str | list[int]:
        return messages_as_prompt(
            service.lm, messages, tools=told, schema=schema, extra={**thinking.template}
        )

    plan = AnswerPlan(
        service.law(request.temperature, request.top_p, request.seed),
        room=0,
        tops=request.top_logprobs,
        masked=request.structgen.masked_logprobs,
    )
    return Wanted(
        [prompt],
        1,
        request.max_output_tokens,
        service.constraint(request, None if request.text is None else request.text.format),
        tools,
        plan,
        complete=request.structgen.complete,
        warnings=omitted_turns(service, messages),
        limit_param="max_output_tokens",
        prompt_param="input",
        thinking=thinking,
        turns=messages,
    )


def messages_of(request: ResponsesRequest) -> list[Message]:
    """The input's items as chat messages. ApiError: an item is neither text nor a call."""
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
            call = {
                "id": str(item.get("call_id") or ""),
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            messages.append(Message(role="assistant", content="", tool_calls=[call]))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            output = _content(item.get("output"), where)
            messages.append(Message(role="tool", content=output, tool_call_id=str(item.get("call_id") or "")))
        elif kind == "mcp_call":
            name, arguments = str(item.get("name")), str(item.get("arguments"))
            call = {
                "id": str(item.get("id")),
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            told = str(item.get("output") or item.get("error") or "")
            messages.append(Message(role="assistant", content="", tool_calls=[call]))
            messages.append(Message(role="tool", content=told, tool_call_id=str(item.get("id"))))
        elif kind in ("reasoning", "mcp_list_tools"):
            continue  # the reasoning of earlier turns is not shown to the model
        else:
            raise ApiError(f"'{where}' is a {kind!r:.80}, which this server cannot read", param=where)
    if not messages:
        raise ApiError("'input' has no message", param="input")
    return messages


def _content(content: Any, where: str) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        texts = []
        for part in content:
            text = part.get("text", part.get("refusal"))
            if part.get("type") not in _TEXTS or not isinstance(text, str):
                kind = part.get("type")
                raise ApiError(
                    f"'{where}' has a part of type {kind!r:.80}: this model reads text",
                    param=where,
                )
            texts.append(text)
        return "".join(texts)
    raise ApiError(f"'{where}' has no content", param=where)


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


def _message(name: str, text: str, logprobs: list[Any], status: str = "completed") -> dict[str, Any]:
    return {
        "type": "message",
        "id": name,
        "status": status,
        "role": "assistant",
        "content": [_part(text, logprobs)],
    }


def _part(text: str, logprobs: list[Any]) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}


def _thoughts(name: str, text: str | None) -> dict[str, Any]:
    """The item of thoughts; `text` None: they begin."""
    content = [] if text is None else [_thought(text)]
    status = "in_progress" if text is None else "completed"
    return {"type": "reasoning", "id": name, "summary": [], "content": content, "status": status}


def _thought(text: str) -> dict[str, Any]:
    return {"type": "reasoning_text", "text": text}


def _function(
    name: str, call_name: str, call: Call, status: str = "completed", custom: bool = False
) -> dict[str, Any]:
    """The item of a call; `custom`: of a custom tool, which has a text in place of arguments."""
    if custom:
        text = "" if status == "in_progress" else input_of(call)
        kind = {"type": "custom_tool_call", "id": name, "call_id": call_name}
        return {**kind, "name": call.name, "input": text, "status": status}
    return {
        "type": "function_call",
        "id": name,
        "call_id": call_name,
        "name": call.name,
        "arguments": "" if status == "in_progress" else call.arguments,
        "status": status,
    }


def _mcp_call(called: Called) -> dict[str, Any]:
    """The item of a call that the server made."""
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


def _end(run: RequestRun, written: Written) -> dict[str, Any]:
    """The fields that say how a response ended."""
    cut = written.finish == "length"
    return {
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "usage": of_responses(run.prompt_tokens, written.tokens, run.cached_tokens, written.reasoning_tokens),
        **run.note(0),
    }


async def answer(service: Service, request: ResponsesRequest, run: RequestRun) -> dict[str, Any]:
    """The whole response."""
    (written,) = await finished(service, request, run)
    logprobs = of_chat(written.entries, service.lm.vocabulary) if request.top_logprobs is not None else []
    output: list[dict[str, Any]] = [_mcp_call(one) for one in run.called]
    text = written.text.strip() if written.calls else written.text
    end = _end(run, written)
    if written.reasoning and run.thinking.shown:
        output.append(_thoughts(_id("rs"), written.reasoning))
    if text or not written.calls:
        output.append(_message(_id("msg"), text, logprobs, end["status"]))
    for call in written.calls:
        custom = run.is_custom(call.name)
        output.append(_function(_id("ctc" if custom else "fc"), call_id(), call, custom=custom))
    status = end.pop("status")
    return _response(service, request, run, _id("resp"), status, **end, output=output)


class _Growing:
    """A call whose arguments are still being written. Those of a custom tool are told when they are whole."""

    def __init__(self, name: str, at: int, custom: bool) -> None:
        self.name, self.at, self.custom = name, at, custom
        self.ident, self.called = _id("ctc" if custom else "fc"), call_id()
        self.place = {"item_id": self.ident, "output_index": at}
        self.arguments = ""

    def ended(
        self, event: Callable[..., dict[str, Any]], status: str, output: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """The last events of the call. Its item is added to the output."""
        call = Call(self.name, self.arguments)
        if self.custom and status != "completed":
            call = Call(self.name, "{}")  # cut off: no text is known
        item = _function(self.ident, self.called, call, status, self.custom)
        output.append(item)
        told = event(f"{_ARGUMENTS}.done", **self.place, arguments=self.arguments, name=self.name)
        if self.custom:
            told = event(f"{_INPUT}.done", **self.place, input=item["input"])
        return [
            told,
            event("response.output_item.done", output_index=self.at, item=item),
        ]


async def events(
    service: Service, request: ResponsesRequest, run: RequestRun
) -> AsyncIterator[dict[str, Any]]:
    """The events of a stream."""
    name, number = _id("resp"), -1

    def event(kind: str, **fields: Any) -> dict[str, Any]:
        nonlocal number
        number += 1
        return {"type": kind, "sequence_number": number, **fields}

    yield event("response.created", response=_response(service, request, run, name, "in_progress"))
    yield event("response.in_progress", response=_response(service, request, run, name, "in_progress"))
    written, reader = Written(), run.reader(stream=True)
    growing: _Growing | None = None
    output: list[dict[str, Any]] = []
    message, text = "", ""  # the open message
    thoughts, thought = "", ""  # the open item of thoughts
    logprobs: list[Any] = []
    for called in map(_mcp_call, run.called):
        yield event("response.output_item.added", output_index=len(output), item=called)
        yield event("response.output_item.done", output_index=len(output), item=called)
        output.append(called)
    first = len(output)

    def close(status: str = "completed") -> list[dict[str, Any]]:
        place = {"item_id": message, "output_index": len(output), "content_index": 0}
        item = _message(message, text, logprobs, status)
        found = [
            event("response.output_text.done", **place, text=text, logprobs=logprobs),
            event("response.content_part.done", **place, part=_part(text, logprobs)),
            event("response.output_item.done", output_index=len(output), item=item),
        ]
        output.append(item)
        return found

    def closed() -> list[dict[str, Any]]:
        place = {"item_id": thoughts, "output_index": len(output), "content_index": 0}
        item = _thoughts(thoughts, thought)
        found = [
            event("response.reasoning_text.done", **place, text=thought),
            event("response.content_part.done", **place, part=_thought(thought)),
            event("response.output_item.done", output_index=len(output), item=item),
        ]
        output.append(item)
        return found

    try:
        async for piece in run.pieces():
            new = take(written, piece, reader)
            if piece.reasoning and run.thinking.shown:
                if not thoughts:
                    thoughts = _id("rs")
                    place = {"item_id": thoughts, "output_index": first, "content_index": 0}
                    yield event(
                        "response.output_item.added", output_index=first, item=_thoughts(thoughts, None)
                    )
                    yield event("response.content_part.added", **place, part=_thought(""))
                thought += piece.reasoning
                place = {"item_id": thoughts, "output_index": first, "content_index": 0}
                yield event("response.reasoning_text.delta", **place, delta=piece.reasoning)
            if thoughts and len(output) == first and (new or piece.finish is not None):
                for made in closed():
                    yield made
            entries = (
                of_chat(piece.entries, service.lm.vocabulary) if request.top_logprobs is not None else []
            )
            if piece.finish is not None and len(output) == first + bool(thoughts) and not message and not new:
                new = [""]  # an empty answer is a message, too
            for item in new:
                if not isinstance(item, str):
                    if message:
                        for made in close():
                            yield made
                        message, text, logprobs = "", "", []
                    if growing is None and not isinstance(item, Part):
                        growing = _Growing(item.name, len(output), run.is_custom(item.name))
                        begun = _function(
                            growing.ident, growing.called, Call(item.name, ""), "in_progress", growing.custom
                        )
                        yield event("response.output_item.added", output_index=growing.at, item=begun)
                    assert growing is not None
                    part = item.text if isinstance(item, Part) else ""
                    if isinstance(item, Call) and not growing.arguments:
                        part = item.arguments
                    if part:
                        growing.arguments += part
                    if part and not growing.custom:
                        yield event(f"{_ARGUMENTS}.delta", **growing.place, delta=part)
                    if isinstance(item, Call) and growing.custom:
                        yield event(f"{_INPUT}.delta", **growing.place, delta=input_of(item))
                    if isinstance(item, Call):
                        for made in growing.ended(event, "completed", output):
                            yield made
                        growing = None
                    continue
                if not message:
                    if written.calls and not item.strip():
                        continue
                    message = _id("msg")
                    empty = {**_message(message, "", [], "in_progress"), "content": []}
                    at = len(output)
                    yield event("response.output_item.added", output_index=at, item=empty)
                    place = {"item_id": message, "output_index": at, "content_index": 0}
                    yield event("response.content_part.added", **place, part=_part("", []))
                place = {"item_id": message, "output_index": len(output), "content_index": 0}
                text += item
                logprobs += entries
                yield event("response.output_text.delta", **place, delta=item, logprobs=entries)
                entries = []
        await alone.confident(service, run, 0, written, request.structgen.confidence)
        end = _end(run, written)
        if growing is not None:
            for made in growing.ended(event, end["status"], output):
                yield made
        if message:
            for made in close(end["status"]):
                yield made
    except Exception as error:
        failed = unexpected(error)
        details = {"code": "server_error", "message": failed.message}
        response = _response(service, request, run, name, "failed", output=output)
        yield event("response.failed", response={**response, "error": details})
        return
    status = end.pop("status")
    response = _response(service, request, run, name, status, **end, output=output)
    yield event(f"response.{status}", response=response)
