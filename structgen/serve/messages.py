"""`POST /v1/messages`: Anthropic's interface, translated into requests of the chat.

Enters: a `MessagesRequest`. Leaves: the equivalent `ChatRequest`; a message, or the named events of a stream.
Cost: that of making the answer.

The problem. In this interface a message is a list of blocks: text, calls, thoughts, and results of tools. A
stream sends each block from its beginning to its end.

The idea. `chat_of` turns blocks into chat messages, so the chat's code handles prompts, constraints, tools
and thoughts:

    user                tool_result, then text    a message of the role tool for each result, one of the user
    assistant           text, tool_use            a message with calls
    thinking, system, tool_choice, ...            the chat's fields of the same meaning

Thoughts of earlier turns are not shown to the model. `events` keeps at most one block open. For thoughts
`Hm`, an answer `Hi` and a call `f({"x":1})`:

    message_start
    content_block_start (thinking), content_block_delta "Hm", content_block_delta (signature)
    content_block_stop, content_block_start (text), content_block_delta "Hi"
    content_block_stop, content_block_start (tool_use), content_block_delta '{"x":1}'
    content_block_stop, message_delta (stop_reason, usage), message_stop

Invariants.
- Deltas of a block, put together, are the block of the whole answer.
- An error in the middle of a stream is an event `error`.
- A signature is empty: nobody checks thoughts that a client sends back.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..frontend.tool_calls import Begun, Item, Part
from . import alone
from .chat import wanted as chat_wanted
from .errors import ApiError, unexpected
from .mcp import Called
from .reply import Reply, finished
from .requests import ChatRequest, CountRequest, Message, MessagesRequest
from .service import RequestRun, Service, Wanted

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_BLOCKS = 10_000  # the most blocks of a message
# Blocks of earlier answers that are not shown to the model.
_HIDDEN = ("thinking", "redacted_thinking")


def wanted(service: Service, request: CountRequest) -> Wanted:
    """Returns the wishes of the request. Raises an ApiError if a field is refused."""
    found = chat_wanted(service, chat_of(request))
    if found.constraint is not None and found.constraint.param == "response_format":
        found = replace(found, constraint=replace(found.constraint, param="output_config.format"))
    return found


def chat_of(request: CountRequest) -> ChatRequest:
    """Returns the equivalent request of a chat. Raises an ApiError if the chat has no such field."""
    thinking = request.thinking
    budget = thinking.budget_tokens if thinking is not None and thinking.type == "enabled" else None
    limit = request.max_tokens if isinstance(request, MessagesRequest) else None
    if budget is not None and limit is not None and budget >= limit:
        raise ApiError(
            f"'thinking.budget_tokens' is {budget}; it must be below 'max_tokens', which is {limit} and has "
            "room for the answer, too",
            param="thinking.budget_tokens",
        )
    messages = []
    if system := _text(request.system or "", "system"):
        messages.append(Message(role="system", content=system))
    for i, message in enumerate(request.messages):
        messages += _messages(message, f"messages[{i}]")
    last = messages[-1]
    choice, parallel = _choice(request.tool_choice)
    config = request.output_config
    form = None if config is None else config.format
    names = ("model", "temperature", "top_p", "seed", "stream", "thinking", "structured_outputs", "structgen")
    given = {name: getattr(request, name) for name in names if name in request.model_fields_set}
    return ChatRequest.model_construct(
        **given,
        messages=messages,
        max_tokens=limit,
        stop=request.stop_sequences,
        top_k=request.top_k,
        tools=request.tools,
        tool_choice=choice,
        parallel_tool_calls=parallel,
        response_format=None if form is None else _format(form),
        reasoning_effort=None if config is None else config.effort,
        include_reasoning=thinking is None or thinking.display != "omitted",
        continue_final_message=last.role == "assistant" and not last.tool_calls,
    )


def _format(form: dict[str, Any]) -> dict[str, Any]:
    if form.get("type") != "json_schema":
        words = f"the type of 'output_config.format' is 'json_schema', not {form.get('type')!r:.60}"
        raise ApiError(words, param="output_config.format.type")
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": form.get("schema")}}


def _choice(choice: dict[str, Any] | None) -> tuple[Any, bool | None]:
    """Returns OpenAI's `tool_choice` and `parallel_tool_calls`."""
    if choice is None:
        return None, None
    kind, one = str(choice.get("type")), choice.get("disable_parallel_tool_use")
    parallel = False if one is True else None
    if kind == "tool":
        return {"type": "function", "function": {"name": choice.get("name")}}, parallel
    if kind not in _CHOICES:
        words = f"the type of 'tool_choice' is auto, any, tool or none, not {kind!r:.60}"
        raise ApiError(words, param="tool_choice.type")
    return _CHOICES[kind], parallel


def _messages(message: dict[str, Any], where: str) -> list[Message]:
    """Returns the chat messages for one message."""
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        raise ApiError(
            f"the role of '{where}' is user, assistant or system, not {role!r:.60}", param=f"{where}.role"
        )
    if isinstance(content, str):
        return [Message(role=role, content=content)]
    texts, calls, results = [], [], []
    for i, block in enumerate(_blocks(content, where)):
        place, kind = f"{where}.content[{i}]", block.get("type")
        if kind == "text":
            texts.append(_text([block], place))
        elif kind in ("tool_use", "mcp_tool_use") and role == "assistant":
            name, given = block.get("name"), block.get("input")
            if not isinstance(name, str) or not isinstance(given, dict):
                raise ApiError(f"'{place}' has no name and input", param=place)
            try:
                arguments = json.dumps(given, ensure_ascii=False)
            except RecursionError:
                raise ApiError(f"the input of '{place}' is nested too deeply", param=place) from None
            calls.append(Message.call(block.get("id"), name, arguments))
        elif kind in ("tool_result", "mcp_tool_result"):
            ident = str(block.get("tool_use_id") or "")
            told = _text(block.get("content") or "", place)
            results.append(Message(role="tool", content=told, tool_call_id=ident))
        elif kind not in _HIDDEN:
            raise ApiError(f"'{place}' is a {kind!r:.60}, which this server cannot read", param=place)
    said = Message(role=role, content="".join(texts), tool_calls=calls or None)
    if role == "assistant":
        return [said, *results]  # the results of tools that the server called
    return [*results, *([said] if texts or not results else [])]


def _blocks(content: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise ApiError(f"'{where}' has no content: a text, or a list of blocks", param=f"{where}.content")
    if len(content) > _BLOCKS:
        raise ApiError(f"'{where}' has more than {_BLOCKS:,} blocks", param=f"{where}.content")
    return content


def _text(content: Any, where: str) -> str:
    """Returns the content as one text: the content itself, or its blocks of text."""
    if isinstance(content, str):
        return content
    texts = []
    for block in _blocks(content, where):
        if block.get("type") != "text" or not isinstance(block.get("text"), str):
            words = f"'{where}' has a block of type {block.get('type')!r:.60}: this model reads text"
            raise ApiError(words, param=where)
        texts.append(block["text"])
    return "".join(texts)


# ---- answers ----


def _head(service: Service, run: RequestRun) -> dict[str, Any]:
    return {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": service.name,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(run, 0),
    }


def _usage(run: RequestRun, written: int) -> dict[str, Any]:
    return {
        "input_tokens": run.prompt_tokens - run.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": run.cached_tokens,
        "output_tokens": written,
    }


def _end(written: Reply) -> dict[str, Any]:
    """Returns the fields that say why the answer ended."""
    if isinstance(written.stopped_by, str):
        return {"stop_reason": "stop_sequence", "stop_sequence": written.stopped_by}
    return {"stop_reason": _REASONS[written.reason], "stop_sequence": None}


def _use(name: str, given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{secrets.token_hex(12)}", "name": name, "input": given}


def _called(one: Called) -> list[dict[str, Any]]:
    """Returns the blocks of a call that the server made."""
    ident = f"mcptoolu_{secrets.token_hex(12)}"
    given = json.loads(one.arguments, strict=False)
    use = {"type": "mcp_tool_use", "id": ident, "name": one.name, "server_name": one.label, "input": given}
    told = [{"type": "text", "text": one.output}]
    return [use, {"type": "mcp_tool_result", "tool_use_id": ident, "is_error": one.error, "content": told}]


async def answer(service: Service, request: CountRequest, run: RequestRun) -> dict[str, Any]:
    """Returns the whole message."""
    (written,) = await finished(service, request, run)
    content = [block for one in run.called for block in _called(one)]
    if written.reasoning and run.thinking.shown:
        content.append({"type": "thinking", "thinking": written.reasoning, "signature": ""})
    if written.content:
        content.append({"type": "text", "text": written.content})
    content += [_use(call.name, json.loads(call.arguments, strict=False)) for call in written.calls]
    end = _end(written)
    return {
        **_head(service, run),
        "content": content,
        **end,
        "usage": _usage(run, written.tokens),
        **run.note(0),
    }


class _Blocks:
    """The blocks of a stream, of which at most one is open."""

    def __init__(self) -> None:
        self.index = -1
        self.kind = ""  # "" if no block is open

    def open(self, block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        yield from self.close()
        self.index, self.kind = self.index + 1, block["type"]
        yield {"type": "content_block_start", "index": self.index, "content_block": block}

    def more(self, kind: str, delta: str, name: str, text: str) -> Iterator[dict[str, Any]]:
        """Adds text to the open block. If a block of another kind is open, a new one begins."""
        if self.kind != kind:
            signed = {"signature": ""} if kind == "thinking" else {}
            yield from self.open({"type": kind, name: "", **signed})
        yield self._delta(delta, **{name: text})

    def item(self, item: Item) -> Iterator[dict[str, Any]]:
        """Returns the events for a text, or for a part of a call."""
        if isinstance(item, str):
            yield from self.more("text", "text_delta", "text", item)
        elif isinstance(item, Begun):
            yield from self.open(_use(item.name, {}))
        elif isinstance(item, Part):
            yield self._delta("input_json_delta", partial_json=item.text)
        else:
            yield from self.close()

    def close(self) -> Iterator[dict[str, Any]]:
        if self.kind == "thinking":
            yield self._delta("signature_delta", signature="")
        if self.kind:
            yield {"type": "content_block_stop", "index": self.index}
        self.kind = ""

    def _delta(self, kind: str, **fields: str) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": self.index, "delta": {"type": kind, **fields}}


async def events(service: Service, request: CountRequest, run: RequestRun) -> AsyncIterator[dict[str, Any]]:
    """Returns the events of a stream."""
    yield {"type": "message_start", "message": _head(service, run)}
    written, reader, blocks = Reply(), run.reader(stream=True), _Blocks()
    for block in (block for one in run.called for block in _called(one)):
        for event in (*blocks.open(block), *blocks.close()):
            yield event
    try:
        async for piece in run.pieces():
            new = written.take(piece, reader)
            if piece.reasoning and run.thinking.shown:
                for event in blocks.more("thinking", "thinking_delta", "thinking", piece.reasoning):
                    yield event
            for item in new:
                for event in blocks.item(item):
                    yield event
        await alone.confident(service, run, 0, written, request.structgen.confidence)
    except Exception as error:
        yield unexpected(error).body
        return
    for event in blocks.close():
        yield event
    yield {
        "type": "message_delta",
        "delta": _end(written),
        "usage": _usage(run, written.tokens),
        **run.note(0),
    }
    yield {"type": "message_stop"}
