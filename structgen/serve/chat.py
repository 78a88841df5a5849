"""`POST /v1/chat/completions`: a request to what it wants, and pieces to OpenAI's objects.

Enters: a `ChatRequest`. Leaves: one object, or the chunks of a stream. Cost: the answer's.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..frontend.tool_calls import Begun, Call, CallReader, Item, Part
from ..frontend.tool_lists import INPUT
from ..lm.base import LanguageModel
from . import alone
from .errors import ApiError
from .logprobs import of_chat
from .prompts import messages_as_prompt
from .requests import ChatRequest, Generation, Message, ResponsesRequest
from .sequence import AnswerPlan, Entry, Finish, Piece
from .service import RequestRun, Service, Wanted
from .thinking import thinking_of
from .usage import usage


@dataclass(slots=True)
class Written:
    """One answer, as far as it is written."""

    text: str = ""
    reasoning: str = ""
    reasoning_tokens: int = 0
    calls: list[Call] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    prompt: list[Entry] | None = None
    tokens: int = 0
    finish: Finish = "stop"
    stopped_by: str | int | None = None
    ids: list[int] = field(default_factory=list)

    @property
    def reason(self) -> str:
        """OpenAI's `finish_reason`."""
        return "tool_calls" if self.calls and self.finish == "stop" else self.finish


def wanted(service: Service, request: ChatRequest) -> Wanted:
    """ApiError: fields that are refused."""
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
    constraint = service.constraint(request)
    lm: LanguageModel = service.lm
    thinking = thinking_of(service.reasoning, request)

    said = [*request.messages]

    def prompt(schema: Any) -> str | list[int]:
        return messages_as_prompt(
            lm,
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
    """The embedded model was trained on single requests; that it reads no others must not go unsaid."""
    answered = any(m.role == "assistant" and m.text() for m in messages)
    if not service.embedded or not (answered or sum(m.role == "user" for m in messages) > 1):
        return ()
    return (
        "the embedded model reads the system's messages, the user's last one and what tools answered since, "
        "and no other turns",
    )


def take(written: Written, piece: Piece, reader: CallReader | None) -> list[Item]:
    """Add a piece to an answer; what it brought: texts and calls, and of those the parts."""
    written.tokens += piece.tokens
    written.ids += piece.ids
    written.reasoning += piece.reasoning
    written.reasoning_tokens += piece.reasoning_tokens
    written.entries += piece.entries
    if piece.prompt is not None:
        written.prompt = piece.prompt
    new: list[Item] = [piece.text] if piece.text else []
    if reader is not None:
        new = list(reader.feed(piece.text)) if piece.text else []  # arguments alone begin behind thoughts
        if piece.finish is not None:
            new += reader.finish()
    for item in new:
        if isinstance(item, Call):
            written.calls.append(item)
        elif isinstance(item, str):
            written.text += item
    if piece.finish is not None:
        written.finish, written.stopped_by = piece.finish, piece.stopped_by
    return new


async def finished(
    service: Service, request: Generation | ResponsesRequest, run: RequestRun
) -> list[Written]:
    """`collect`, with the notes that `confidence` asks for."""
    found = await collect(run)
    for index, written in enumerate(found):
        await alone.confident(service, run, index, written, request.structgen.confidence)
    return found


async def collect(run: RequestRun) -> list[Written]:
    """All answers of a run, finished."""
    found = [Written() for _ in range(run.count)]
    parts: list[list[str]] = [[] for _ in found]
    async for piece in run.pieces():
        # A reader looks at what it has with each piece, so a whole text is read once.
        parts[piece.index].append(piece.text)
        piece.text = "" if piece.finish is None else "".join(parts[piece.index])
        take(found[piece.index], piece, None if piece.finish is None else run.reader())
    return found


def call_id() -> str:
    return f"call_{secrets.token_hex(12)}"


def tool_call(call: Call, custom: bool = False) -> dict[str, Any]:
    """OpenAI's object of a call; `custom`: of a custom tool."""
    kind, text = (
        ("custom", {"input": input_of(call)}) if custom else ("function", {"arguments": call.arguments})
    )
    return {"id": call_id(), "type": kind, kind: {"name": call.name, **text}}


def input_of(call: Call) -> str:
    """The text that a custom tool is called with."""
    return str(json.loads(call.arguments, strict=False).get(INPUT, ""))


async def answer(service: Service, request: ChatRequest, run: RequestRun) -> dict[str, Any]:
    """The whole answer."""
    found = await finished(service, request, run)
    choices = []
    for index, written in enumerate(found):
        message: dict[str, Any] = {"role": "assistant", "content": written.text, "refusal": None}
        if run.thinking.shown and written.reasoning:
            message["reasoning_content"] = written.reasoning
        if written.calls:
            message["content"] = written.text.strip() or None
            message["tool_calls"] = [tool_call(call, run.is_custom(call.name)) for call in written.calls]
        choice: dict[str, Any] = {
            "index": index,
            "message": message,
            "logprobs": _logprobs(service, request, written.entries),
            "finish_reason": written.reason,
        }
        if written.stopped_by is not None:
            choice["stop_reason"] = written.stopped_by
        choices.append({**choice, **run.choice_note(index)})
    return {
        **head(service, run, "chat.completion"),
        "choices": choices,
        "usage": counts_of(run, found),
        **run.note(),
    }


def counts_of(run: RequestRun, found: Sequence[Written]) -> dict[str, Any]:
    """The usage of a chat."""
    thought = None
    if run.thinking.reasoning is not None:
        thought = sum(written.reasoning_tokens for written in found)
    return usage(run.prompt_tokens, sum(w.tokens for w in found), run.cached_tokens, thought)


def head(service: Service, run: RequestRun, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{secrets.token_hex(12)}",
        "object": kind,
        "created": run.created,
        "model": service.name,
        "system_fingerprint": None,
    }


def _logprobs(service: Service, request: ChatRequest, entries: list[Entry]) -> dict[str, Any] | None:
    if not request.logprobs:
        return None
    return {"content": of_chat(entries, service.lm.vocabulary), "refusal": None}


class _Calls:
    """The calls of one answer as OpenAI's deltas: id and name first, then the arguments in parts.

    The call of a custom tool comes whole.
    """

    def __init__(self, custom: Callable[[str], bool]) -> None:
        self.count = 0
        self._growing = False
        self._custom = custom
        self._whole = False  # the open call is told when it is complete

    def delta(self, item: Call | Begun | Part) -> dict[str, Any] | None:
        if isinstance(item, Begun) and self._custom(item.name):
            self._whole = True
        if self._whole and not isinstance(item, Call):
            return None
        if isinstance(item, Call) and self._custom(item.name):
            self._whole = False
            self.count += 1
            return {"tool_calls": [{"index": self.count - 1, **tool_call(item, True)}]}
        if isinstance(item, Part):
            return {"tool_calls": [{"index": self.count - 1, "function": {"arguments": item.text}}]}
        if isinstance(item, Call) and self._growing:
            self._growing = False
            return None  # all of it was told
        self._growing = isinstance(item, Begun)
        self.count += 1
        call = item if isinstance(item, Call) else Call(item.name, "")
        return {"tool_calls": [{"index": self.count - 1, **tool_call(call)}]}


async def chunks(service: Service, request: ChatRequest, run: RequestRun) -> AsyncIterator[dict[str, Any]]:
    """The chunks of a stream, without its end mark."""
    top = head(service, run, "chat.completion.chunk")
    asked = request.stream_options is not None and request.stream_options.include_usage
    if asked:
        top["usage"] = None

    def chunk(index: int, delta: dict[str, Any], **more: Any) -> dict[str, Any]:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None, **more}
        return {**top, "choices": [choice]}

    found = [Written() for _ in range(run.count)]
    readers = [run.reader(stream=True) for _ in found]
    begun: set[int] = set()
    calls = [_Calls(run.is_custom) for _ in found]
    left = run.count
    async for piece in run.pieces():
        index = piece.index
        if index not in begun:
            begun.add(index)
            yield chunk(index, {"role": "assistant", "content": ""})
        written = found[index]
        new = take(written, piece, readers[index])
        logprobs = _logprobs(service, request, piece.entries) if piece.entries else None
        if piece.reasoning and run.thinking.shown:
            yield chunk(index, {"reasoning_content": piece.reasoning}, logprobs=logprobs)
            logprobs = None
        for item in new:
            if isinstance(item, str):
                if calls[index].count and not item.strip():
                    continue  # a line break between calls
                delta: dict[str, Any] | None = {"content": item}
            else:
                delta = calls[index].delta(item)
            if delta is None:
                continue
            yield chunk(index, delta, logprobs=logprobs)
            logprobs = None
        if logprobs is not None:
            yield chunk(index, {"content": ""}, logprobs=logprobs)
        if piece.finish is not None:
            more = {} if written.stopped_by is None else {"stop_reason": written.stopped_by}
            await alone.confident(service, run, index, written, request.structgen.confidence)
            left -= 1
            last = run.note() if not left and not asked else {}
            yield chunk(index, {}, finish_reason=written.reason, **more, **run.choice_note(index)) | last
    if asked:
        yield {**top, "choices": [], "usage": counts_of(run, found), **run.note()}
