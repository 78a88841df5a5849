"""Turns messages into the tokens that a model reads.

Enters: chat messages, tools, the schema of the answer. Leaves: token ids. Cost: that of the chat template.

A model with a chat template gets the messages as its tokenizer writes them. The embedded model reads one
request, the schema of its answer (`lm.prompts`) and the beginning of an answer, which it continues. Other
models get the messages as lines.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..frontend.tool_lists import INPUT
from ..frontend.tools import answer_document
from ..lm import embedded
from ..lm.base import LanguageModel
from ..lm.prompts import chat_template, formatted, is_embedded, request_of
from .constraints import ToolUse
from .requests import Message

_EMBEDDED_MARK = "<|answer|>"


def messages_as_prompt(
    lm: LanguageModel,
    messages: Sequence[Message],
    *,
    tools: ToolUse | None = None,
    schema: Any = None,
    extra: dict[str, Any] | None = None,
    generation_prompt: bool = True,
    go_on: bool = False,
) -> str | list[int]:
    """Returns the prompt of a chat.

    Args:
        tools: the tools that the prompt lists; None: the model may call no tool.
        schema: the schema of the answer. The prompt of the embedded model contains it.
        extra: arguments of the template (`chat_template_kwargs`).
        generation_prompt: whether the beginning of an answer is written.
        go_on: whether the last message is the beginning of the answer.

    Raises:
        ValueError: a message that is no text; what the template refuses comes as its own error.
    """
    if chat_template(lm) is not None:
        written = [_plain(message) for message in messages]
        arguments: dict[str, Any] = dict(extra or {})
        for name in ("chat_template", "tokenize", "return_dict", "return_tensors", "conversation", "padding"):
            if name in arguments:
                raise ValueError(f"'{name}' in chat_template_kwargs is the server's to say")
        tokenizer: Any = lm.tokenizer  # type: ignore[attr-defined]
        ids = tokenizer.apply_chat_template(
            written,
            tools=None if tools is None else tools.tools,
            add_generation_prompt=generation_prompt and not go_on,
            continue_final_message=go_on,
            return_dict=False,
            **arguments,
        )
        return [int(i) for i in ids]
    if is_embedded(lm):
        if tools is not None and schema is None:
            schema = answer_document(tools.tools, tools.choice, tools.style)
        said = messages[:-1] if go_on else messages
        request = request_of([(message.role, message.text()) for message in said])
        prompt = embedded.format_prompt(request, schema if isinstance(schema, dict) else None)
        return prompt + messages[-1].text() if go_on else prompt
    lines = [f"{message.role}: {message.text()}" for message in messages]
    if go_on:
        return "\n".join(lines)
    return "\n".join([*lines, "assistant:"] if generation_prompt else lines)


def plain_prompt(lm: LanguageModel, prompt: str, schema: Any) -> str | list[int]:
    """Returns the prompt of `/v1/completions`, unchanged. Exception: for the embedded model a bare request
    gets the form of its training texts."""
    if is_embedded(lm) and _EMBEDDED_MARK not in prompt:
        return formatted(lm, prompt, schema if isinstance(schema, dict) else None, "embedded")
    return prompt


def _plain(message: Message) -> dict[str, Any]:
    """Returns a message in the form that templates want: the content is a text, and arguments of calls are
    objects."""
    plain: dict[str, Any] = {"role": message.role, "content": message.text()}
    if message.name is not None:
        plain["name"] = message.name
    if message.tool_call_id is not None:
        plain["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        plain["tool_calls"] = [_call(call) for call in message.tool_calls]
    return plain


def _call(call: dict[str, Any]) -> dict[str, Any]:
    custom = call.get("custom")
    if call.get("type") == "custom" and isinstance(custom, dict):
        written = {"name": custom.get("name"), "arguments": {INPUT: custom.get("input", "")}}
        return {"id": call.get("id"), "type": "function", "function": written}
    function = call.get("function")
    if not isinstance(function, dict):
        return call
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments else {}
        except (ValueError, RecursionError):
            return call
    return {**call, "function": {**function, "arguments": arguments}}
