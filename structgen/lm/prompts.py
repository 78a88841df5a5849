"""Brings a prompt into the form that its model was trained on.

Enters: a text, chat messages or token ids, tools, and the schema of the answer. Leaves: a text or token ids.
Cost: one run of the tokenizer's chat template, or one walk over the schema.

The embedded model reads one request and the schema of its answer. Of chat messages it reads the system text,
the user's last message and the later results of tools, joined.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from .._checks import one_of
from . import embedded

if TYPE_CHECKING:
    from .base import LanguageModel

Format = Literal["auto", "plain", "chat", "embedded"]
_EMBEDDED_MARK = "<|answer|>"


def is_embedded(lm: LanguageModel) -> bool:
    """Returns whether the model reads the form of the embedded pair, and no chat template."""
    return _EMBEDDED_MARK in lm.vocabulary.special_tokens and chat_template(lm) is None


def chat_template(lm: LanguageModel) -> str | None:
    """Returns the chat template of the model's tokenizer, if it has one."""
    template = getattr(getattr(lm, "tokenizer", None), "chat_template", None)
    if isinstance(template, dict):  # several templates, by name
        template = template.get("tool_use") or template.get("default")
    return template if isinstance(template, str) else None


def formatted(
    lm: LanguageModel, prompt: Any, schema: Any, format: Format, tools: list[dict[str, Any]] | None = None
) -> str | list[int]:
    """Returns the prompt as the model is to read it.

    Args:
        prompt: a text, token ids, or messages `{"role": ..., "content": ...}`.
        schema: the schema of the answer. The embedded model reads it.
        tools: OpenAI's objects; for a chat template, which tells the model of them.

    Raises:
        TypeError: the prompt is something else. ValueError: the model has no such form.
    """
    one_of("format", format, ("auto", "plain", "chat", "embedded"))
    if isinstance(prompt, (bytes, bytearray)) or not isinstance(prompt, (str, Sequence)):
        if hasattr(prompt, "tolist"):  # ids in an array or a tensor
            return formatted(lm, prompt.tolist(), schema, format, tools)
        hint = "; read the file: path.read_text()" if hasattr(prompt, "__fspath__") else ""
        raise TypeError(f"a prompt is a text, a list of token ids or of messages, not {prompt!r:.60}{hint}")
    if isinstance(prompt, str):
        messages = None
    elif len(prompt) > 0 and isinstance(prompt[0], Mapping):
        messages = _checked(prompt)
    else:
        return _ids(lm, prompt, format)
    if format == "auto":
        likely: Format = "chat" if messages is not None else "plain"
        format = "embedded" if is_embedded(lm) else likely
    if format == "chat":
        if chat_template(lm) is None:
            instead = "give the prompt as one text" if messages is not None else "use format='plain'"
            raise ValueError(f"the model's tokenizer has no chat template: {instead}")
        return _chat(lm, messages or [{"role": "user", "content": prompt}], tools)
    if format == "plain":
        if messages is not None:
            raise ValueError(
                "chat messages need a chat template, and plain prompts have none: give the prompt as one text"
            )
        return cast(str, prompt)
    if messages is None:
        return embedded.format_prompt(cast(str, prompt), _document(schema))
    return embedded.format_prompt(request_of([(m["role"], _words(m)) for m in messages]), _document(schema))


def request_of(messages: Sequence[tuple[str, str]]) -> str:
    """Joins (role, text) pairs into one request in plain words."""
    parts = [text for role, text in messages if role in ("system", "developer")]
    users = [i for i, (role, _) in enumerate(messages) if role == "user"]
    since = messages[users[-1] :] if users else messages
    parts += [text for role, text in since if role in ("user", "tool", "function")]
    if not users:
        parts += [text for role, text in messages if role == "assistant"]
    return " ".join(part for part in parts if part)


_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def _checked(prompt: Sequence[Any]) -> list[Any]:
    for i, message in enumerate(prompt):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise TypeError(
                f'a message is an object {{"role": ..., "content": ...}}; message {i} is {message!r:.60}'
            )
        role = message["role"]
        near = [] if role in _ROLES else difflib.get_close_matches(role.lower(), _ROLES, n=1)
        if near:  # Roles that only a model knows, such as Llama's ipython, are allowed.
            raise ValueError(f"message {i} has the role {role!r}; did you mean {near[0]!r}?")
        if message.get("content") is None and role in ("system", "developer", "user"):
            raise TypeError(f"message {i}, of the role {role!r}, has no content")
    return list(prompt)


def _words(message: Mapping[str, Any]) -> str:
    """Returns the text of a message. If its content has parts, the parts that are text count."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, Sequence):
        return "".join(part.get("text", "") for part in content if isinstance(part, Mapping))
    raise TypeError(f"the content of a message is a text or a list of parts, not {content!r:.60}")


def _ids(lm: LanguageModel, prompt: Sequence[Any], format: Format) -> list[int]:
    if format in ("chat", "embedded"):
        raise ValueError(f"token ids cannot be put into the {format} format")
    if any(isinstance(t, str) for t in prompt):
        raise TypeError(
            f"a prompt is a text, a list of token ids or of messages, not {prompt!r:.60}; "
            "generate_many takes a list of prompts"
        )
    try:
        return [int(t) for t in prompt]
    except (TypeError, ValueError):
        raise TypeError(
            f"a prompt is a text, a list of token ids or of messages, not {prompt!r:.60}"
        ) from None


def _chat(lm: LanguageModel, messages: list[Any], tools: list[dict[str, Any]] | None) -> list[int]:
    tokenizer: Any = lm.tokenizer  # type: ignore[attr-defined]
    more = {"tools": tools} if tools else {}
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False, **more)
    return [int(i) for i in ids]


def _document(schema: Any) -> dict[str, Any] | None:
    """Returns a schema given as text or as a Python type, as a dict; None if the value is no schema."""
    if isinstance(schema, (str, bytes)):
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError):  # a regular expression, which is no JSON; JSON that is too deep
            return None
    elif schema is not None and not isinstance(schema, (dict, bool, list)):
        from ..frontend.python_types import schema_of

        schema, _ = schema_of(schema)
    return schema if isinstance(schema, dict) else None
