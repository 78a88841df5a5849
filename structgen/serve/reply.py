"""The parts that all endpoints share: an answer as far as it is written, and OpenAI's choices for the answer.

Enters: a run and its pieces. Leaves: `Reply` values; the objects and chunks that chats and completions have
in common. Cost: that of making the answer.

Text around calls. `Reply.take` reports each call as `Begun`, `Part`s and `Call`, also a call that arrived in
one piece. It omits text that is only the line break between two calls.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..frontend.tool_calls import Begun, Call, CallReader, Item, Part
from ..frontend.tool_lists import INPUT
from . import alone
from .requests import CountRequest, Generation, ResponsesRequest
from .sequence import Entry, Finish, Piece
from .service import RequestRun, Service


@dataclass(slots=True)
class Reply:
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
    _open: str = ""  # the kind of the last part, if it may go on: "text", "call"

    @property
    def reason(self) -> str:
        """OpenAI's `finish_reason`."""
        return "tool_calls" if self.calls and self.finish == "stop" else self.finish

    @property
    def content(self) -> str:
        """The text. Beside calls it has no blanks at its ends."""
        return self.text.strip() if self.calls else self.text

    def take(self, piece: Piece, reader: CallReader | None) -> list[Item]:
        """Adds a piece, and returns what a stream reports for it: texts, and calls in parts."""
        self.tokens += piece.tokens
        self.ids += piece.ids
        self.reasoning += piece.reasoning
        self.reasoning_tokens += piece.reasoning_tokens
        self.entries += piece.entries
        if piece.prompt is not None:
            self.prompt = piece.prompt
        new: list[Item] = [piece.text] if piece.text else []
        if reader is not None:
            # an answer that is only arguments begins behind the thoughts
            new = list(reader.feed(piece.text)) if piece.text else []
            if piece.finish is not None:
                new += reader.finish()
        if piece.finish is not None:
            self.finish, self.stopped_by = piece.finish, piece.stopped_by
        self.calls += [item for item in new if isinstance(item, Call)]
        return list(self._told(new))

    def _told(self, new: Iterable[Item]) -> Iterable[Item]:
        for item in new:
            if isinstance(item, str):
                self.text += item
                if self.calls and self._open != "text" and not item.strip():
                    continue
                self._open = "text"
            elif isinstance(item, Call):
                if self._open != "call":
                    yield from (Begun(item.name), Part(item.arguments))
                self._open = ""
            else:
                self._open = "call"
            yield item


async def finished(
    service: Service, request: Generation | ResponsesRequest | CountRequest, run: RequestRun
) -> list[Reply]:
    """Returns all answers of a run, finished, with the notes that `confidence` asks for."""
    found = [Reply() for _ in range(run.count)]
    parts: list[list[str]] = [[] for _ in found]
    async for piece in run.pieces():
        # A reader looks at its whole text with each piece, so the pieces are joined first.
        parts[piece.index].append(piece.text)
        piece.text = "" if piece.finish is None else "".join(parts[piece.index])
        found[piece.index].take(piece, None if piece.finish is None else run.reader())
    for index, written in enumerate(found):
        await alone.confident(service, run, index, written, request.structgen.confidence)
    return found


def call_id() -> str:
    return f"call_{secrets.token_hex(12)}"


def input_of(call: Call) -> str:
    """Returns the text that a custom tool is called with."""
    return str(json.loads(call.arguments, strict=False).get(INPUT, ""))


# ---- OpenAI's choices ----


def head(service: Service, run: RequestRun, kind: str, prefix: str) -> dict[str, Any]:
    """Returns the fields of an answer's object or chunk that do not depend on its text."""
    return {
        "id": f"{prefix}-{secrets.token_hex(12)}",
        "object": kind,
        "created": run.created,
        "model": service.name,
        "system_fingerprint": None,
    }


def usage(run: RequestRun, found: Sequence[Reply]) -> dict[str, Any]:
    """Returns the counts of tokens in prompts and answers, end-of-sequence tokens included."""
    prompt, completion = run.prompt_tokens, sum(written.tokens for written in found)
    told: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": run.cached_tokens},
    }
    if run.thinking.reasoning is not None:
        thought = sum(written.reasoning_tokens for written in found)
        told["completion_tokens_details"] = {"reasoning_tokens": thought}
    return told


def thoughts(run: RequestRun, text: str) -> dict[str, str]:
    """Returns the field of a message, a delta or a choice that has thoughts."""
    return {"reasoning_content": text} if text and run.thinking.shown else {}


def _end(run: RequestRun, index: int, written: Reply) -> dict[str, Any]:
    """Returns the fields of a choice that say how its answer ended."""
    stopped = {} if written.stopped_by is None else {"stop_reason": written.stopped_by}
    return {"finish_reason": written.reason, **stopped, **run.choice_note(index)}


async def whole(
    service: Service,
    request: Generation,
    run: RequestRun,
    top: dict[str, Any],
    told: Callable[[int, Reply], dict[str, Any]],
) -> dict[str, Any]:
    """Returns the object of a whole answer. `told` makes a choice's fields from its index and its text."""
    found = await finished(service, request, run)
    choices = [{"index": i, **told(i, written), **_end(run, i, written)} for i, written in enumerate(found)]
    return {**top, "choices": choices, "usage": usage(run, found), **run.note()}


async def chunks(
    service: Service,
    request: Generation,
    run: RequestRun,
    top: dict[str, Any],
    told: Callable[[Reply, Piece, list[Item]], Sequence[dict[str, Any]]],
) -> AsyncIterator[dict[str, Any]]:
    """Returns the chunks of a stream, without the stream's end mark.

    Args:
        told: returns the choices that report a piece, as fields. The last piece of an answer has one choice
            or more; the last of these choices gets the fields that say how the answer ended.
    """
    asked = request.stream_options is not None and request.stream_options.include_usage
    if asked:
        top["usage"] = None
    found = [Reply() for _ in range(run.count)]
    readers = [run.reader(stream=True) for _ in found]
    left = run.count
    async for piece in run.pieces():
        index, written = piece.index, found[piece.index]
        choices = told(written, piece, written.take(piece, readers[index]))
        over = piece.finish is not None
        for fields in choices[:-1] if over else choices:
            yield {**top, "choices": [{"index": index, **fields, "finish_reason": None}]}
        if over:
            await alone.confident(service, run, index, written, request.structgen.confidence)
            left -= 1
            last = {"index": index, **choices[-1], **_end(run, index, written)}
            yield {**top, "choices": [last], **(run.note() if not left and not asked else {})}
    if asked:
        yield {**top, "choices": [], "usage": usage(run, found), **run.note()}
