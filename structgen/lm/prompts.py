"""A prompt in the form that its model was trained on.

Enters: a text, chat messages or token ids, and the schema of the answer. Leaves: a text or token ids.
Cost: that of the tokenizer's chat template, or one walk over the schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from . import embedded

if TYPE_CHECKING:
    from .base import LanguageModel

__all__ = ["Format", "formatted"]

Format = Literal["auto", "plain", "chat", "embedded"]
_EMBEDDED_MARK = "<|answer|>"


def formatted(lm: LanguageModel, prompt: Any, schema: Any, format: Format) -> str | list[int]:
    """The prompt as the model is to read it."""
    if format not in ("auto", "plain", "chat", "embedded"):
        raise ValueError(f"format is 'auto', 'plain', 'chat' or 'embedded', not {format!r}")
    if not isinstance(prompt, str) and not (hasattr(prompt, "__len__") and hasattr(prompt, "__getitem__")):
        raise TypeError(f"a prompt is a text, a list of token ids or of messages, not {prompt!r:.60}")
    messages = not isinstance(prompt, str) and len(prompt) > 0 and isinstance(prompt[0], Mapping)
    if not isinstance(prompt, str) and not messages:
        if format in ("chat", "embedded"):
            raise ValueError(f"token ids cannot be put into the {format} format")
        return [int(t) for t in prompt]
    if format == "auto":
        if messages:
            format = "chat"
        else:
            format = "embedded" if _EMBEDDED_MARK in lm.vocabulary.special_tokens else "plain"
    if format == "chat":
        return _chat(lm, prompt if messages else [{"role": "user", "content": prompt}])
    if messages:
        raise ValueError(f"chat messages cannot be put into the {format} format")
    if format == "embedded":
        return embedded.format_prompt(prompt, schema if isinstance(schema, dict) else _document(schema))
    return cast(str, prompt)


def _chat(lm: LanguageModel, messages: list[Any]) -> list[int]:
    tokenizer = getattr(lm, "tokenizer", None)
    if getattr(tokenizer, "chat_template", None) is None:
        raise ValueError("the model's tokenizer has no chat template: use format='plain'")
    assert tokenizer is not None
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    return [int(i) for i in ids]


def _document(schema: Any) -> dict[str, Any] | None:
    """A schema given as text or as a Python type, as a dict; None for what is no schema."""
    if isinstance(schema, (str, bytes)):
        try:
            schema = json.loads(schema)
        except (ValueError, RecursionError):  # the pattern of a regular expression; nested too deep
            return None
    elif schema is not None and not isinstance(schema, (dict, bool, list)):
        from ..frontend.python_types import schema_of

        schema, _ = schema_of(schema)
    return schema if isinstance(schema, dict) else None
