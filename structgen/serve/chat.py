"""`POST /v1/chat/completions`: reads requests, and turns pieces of answers into OpenAI's objects.

Enters: a `ChatRequest`. Leaves: one object, or the chunks of a stream. Cost: that of making the answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from ..frontend.tool_calls import Begun, Call, Item, Part
from .constraints import request_constraint
from .errors import ApiError
from .logprobs import of_chat
from .prompts import messages_as_prompt
from .reply import Reply, call_id, chunks, head, input_of, thoughts, whole
from .requests import ChatRequest, Message
from .sequence import AnswerPlan, Entry, Piece
from .service import RequestRun, Service, Wanted
from .thinking import thinking_of


def wanted(service: Service, request: ChatRequest, text_format: dict[str, Any] | None = None) -> Wanted:
    """Reads a request into a `Wanted`. Raises an ApiError if a field is refused.

    Args:
        text_format: `text.format` of `/v1/responses`.
    """
    limit = request.max_completion_tokens
    limit_param = "max_completion_tokens" if limit is not None else "max_tokens"
    limit = request.max_tokens if limit is None else limit
    if limit == 0:
        raise ApiError(f"'{limit_param}' must be at least 1", param=limit_param)
    if request.top_logprobs is not None and not request.logprobs:
        raise ApiError("'top_logprobs' needs 'logprobs'", param="top_logprobs")
    if request.continue_final_message and request.messages[-1].role != "assistant":
        raise ApiError("only a message of the assistant can be continued", param="continue_final_message")
    tools = service.tools(request)
    told = None if tools is None or tools.choice == "none" else tools
    constraint = request_constraint(request, text_format)
    thinking = thinking_of(service.reasoning, request)

    said = [*request.messages]

    def prompt(schema: Any) -> str | list[int]:
        return messages_as_prompt(
            service.lm,
            said,
            tools=told,
            schema=schema,
            extra={**thinking.template},
            generation_prompt=request.add_generation_prompt,
            go_on=request.continue_final_message and len(said) == len(request.messages),
        )

    plan = AnswerPlan(
        service.drawing(request),
        room=0,
        tops=(request.top_logprobs or 0) if request.logprobs else None,
        masked=request.structgen.masked_logprobs,
        **service.ends(request, limit, constraint is not None or tools is not None),
    )
    return Wanted(
        [prompt],
        request.n or 1,
        limit,
        constraint,
        tools,
        plan,
        complete=request.structgen.complete,
        limit_param=limit_param,
        warnings=omitted_turns(
            service, request.messages[:-1] if request.continue_final_message else request.messages
        ),
        thinking=thinking,
        turns=said,
    )


def omitted_turns(service: Service, messages: Sequence[Message]) -> tuple[str, ...]:
    """Returns a warning for the embedded model, which was trained on single requests and ignores other
    turns."""
    answered = any(m.role == "assistant" and m.text() for m in messages)
    if not service.embedded or not (answered or sum(m.role == "user" for m in messages) > 1):
        return ()
    return (
        "the embedded model reads the system's messages, the user's last one and what tools answered since, "
        "and no other turns",
    )


def tool_call(call: Call, custom: bool = False) -> dict[str, Any]:
    """OpenAI's object for a call. `custom` means a call of a custom tool."""
    kind, text = (
        ("custom", {"input": input_of(call)}) if custom else ("function", {"arguments": call.arguments})
    )
    return {"id": call_id(), "type": kind, kind: {"name": call.name, **text}}


async def answer(service: Service, request: ChatRequest, run: RequestRun) -> dict[str, Any]:
    """Returns the object of the whole answer."""

    def told(_: int, written: Reply) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": written.content, "refusal": None}
        message |= thoughts(run, written.reasoning)
        if written.calls:
            message["content"] = written.content or None
            message["tool_calls"] = [tool_call(call, run.is_custom(call.name)) for call in written.calls]
        return {"message": message, "logprobs": _logprobs(service, request, written.entries)}

    return await whole(service, request, run, head(service, run, "chat.completion", "chatcmpl"), told)


def _logprobs(service: Service, request: ChatRequest, entries: list[Entry]) -> dict[str, Any] | None:
    if not request.logprobs:
        return None
    return {"content": of_chat(entries, service.lm.vocabulary), "refusal": None}


class _Deltas:
    """The deltas of one answer.

    A tool call gives its id and name in the first delta, and its arguments in parts after that. The call of a
    custom tool is one delta.
    """

    def __init__(self, run: RequestRun) -> None:
        self._run = run
        self._begun = False
        self._calls = -1  # the index of the open call
        self._custom = False

    def of(self, piece: Piece, new: list[Item]) -> Iterator[dict[str, Any]]:
        if not self._begun:
            self._begun = True
            yield {"role": "assistant", "content": ""}
        if thought := thoughts(self._run, piece.reasoning):
            yield thought
        for item in new:
            if isinstance(item, str):
                yield {"content": item}
                continue
            if isinstance(item, Begun):
                self._calls += 1
                self._custom = self._run.is_custom(item.name)
            told_now = isinstance(item, Call if self._custom else (Begun, Part))
            if told_now:
                yield {"tool_calls": [{"index": self._calls, **self._call(item)}]}

    def _call(self, item: Call | Begun | Part) -> dict[str, Any]:
        if isinstance(item, Part):
            return {"function": {"arguments": item.text}}
        return tool_call(item if isinstance(item, Call) else Call(item.name, ""), self._custom)


def events(service: Service, request: ChatRequest, run: RequestRun) -> AsyncIterator[dict[str, Any]]:
    """Returns the chunks of a stream, without its end mark."""
    deltas = [_Deltas(run) for _ in range(run.count)]

    def told(_: Reply, piece: Piece, new: list[Item]) -> list[dict[str, Any]]:
        found = [*deltas[piece.index].of(piece, new)]
        told_with: dict[str, Any] | None = None
        if piece.entries and request.logprobs:
            if not found or "role" in found[-1]:
                found.append({"content": ""})
            told_with = next(delta for delta in found if "role" not in delta)
        found += [] if piece.finish is None else [{}]
        logprobs = _logprobs(service, request, piece.entries)
        return [{"delta": delta, "logprobs": logprobs if delta is told_with else None} for delta in found]

    return chunks(service, request, run, head(service, run, "chat.completion.chunk", "chatcmpl"), told)
