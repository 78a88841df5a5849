"""Log-probabilities in OpenAI's two shapes.

Enters: entries of tokens. Leaves: dicts. Cost: linear. JSON has no -inf, so OpenAI's interface writes
-9999.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..vocabulary import Vocabulary
from .sequence import Entry


def of_chat(entries: Iterable[Entry], vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """`logprobs.content` of `/v1/chat/completions`; `masked_*` are this server's."""
    found = []
    for entry in entries:
        one = _token(entry.token, entry.logprob, vocabulary)
        one["top_logprobs"] = [_token(i, lp, vocabulary) for i, lp in entry.top]
        if entry.masked is not None:
            one["masked_logprob"] = _finite(entry.masked)
            one["masked_top_logprobs"] = [_token(i, lp, vocabulary) for i, lp in entry.masked_top or []]
        found.append(one)
    return found


def of_completion(entries: Iterable[Entry], vocabulary: Vocabulary, offset: int) -> dict[str, Any]:
    """`logprobs` of `/v1/completions`; `offset` is that of the first token in the text."""
    made: dict[str, Any] = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
    masked: list[float] = []
    for entry in entries:
        text = _text(entry.token, vocabulary)
        made["tokens"].append(text)
        made["token_logprobs"].append(_finite(entry.logprob))
        top = {_text(i, vocabulary): _finite(lp) for i, lp in entry.top}
        made["top_logprobs"].append(None if entry.logprob is None else top)
        made["text_offset"].append(offset)
        offset += len(text)
        if entry.masked is not None:
            masked.append(entry.masked)
    if masked:
        made["masked_token_logprobs"] = masked
    return made


def _token(token: int, logprob: float | None, vocabulary: Vocabulary) -> dict[str, Any]:
    data = vocabulary.tokens[token]
    return {"token": _text(token, vocabulary), "logprob": _finite(logprob), "bytes": list(data)}


def _text(token: int, vocabulary: Vocabulary) -> str:
    data = vocabulary.tokens[token]
    if data:
        return data.decode("utf-8", "replace")
    names = {i: name for name, i in vocabulary.special_tokens.items()}
    return names.get(token, "")


def _finite(value: float | None) -> float | None:
    return None if value is None else max(value, -9999.0)
