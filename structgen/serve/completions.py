"""`POST /v1/completions`: a request to what it wants, and pieces to OpenAI's objects.

Enters: a `CompletionRequest`. Leaves: one object, or the chunks of a stream. Cost: the answer's.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Any

from . import alone
from .chat import Written, counts_of, finished, take
from .errors import ApiError
from .logprobs import of_completion
from .prompts import plain_prompt
from .requests import PROMPTS, CompletionRequest
from .sequence import AnswerPlan, Entry
from .service import MakePrompt, RequestRun, Service, Wanted
from .thinking import Thinking, thinking_of


def wanted(service: Service, request: CompletionRequest) -> Wanted:
    """ApiError: fields that are refused."""
    count = request.n or 1
    if request.best_of is not None and request.best_of != count:
        raise ApiError("'best_of' is not supported: ask for n answers and choose", param="best_of")
    if request.max_tokens == 0 and not request.echo:
        raise ApiError("'max_tokens' is 0, which only makes sense with 'echo'", param="max_tokens")
    given = prompts(request)
    if not given:
        raise ApiError(f"a request has 1 to {PROMPTS} prompts, not 0", param="prompt")
    constraint = service.constraint(request)
    thinking = thinking_of(service.reasoning, request) if request.thinks else Thinking()
    if thinking.reasoning is not None and len(given) > 1:
        raise ApiError("thoughts go with one prompt: send a request for each", param="prompt")
    if thinking.reasoning is not None and thinking.apart and request.logprobs is not None:
        raise ApiError(
            "'logprobs' count in the whole text: give 'separate_reasoning': false", param="logprobs"
        )
    plan = AnswerPlan(
        service.drawing(request),
        room=0,
        tops=request.logprobs,
        masked=request.structgen.masked_logprobs,
        echo_entries=bool(request.echo) and request.logprobs is not None,
        **service.ends(request, request.max_tokens, constraint is not None),
    )
    return Wanted(
        [_prompt(service, one) for one in given],
        count,
        request.max_tokens,
        constraint,
        None,
        plan,
        complete=request.structgen.complete,
        prompt_param="prompt",
        thinking=thinking,
    )


def prompts(request: CompletionRequest) -> list[str | list[int]]:
    """One prompt or several, texts or token ids."""
    given: Any = request.prompt
    if isinstance(given, str) or (given and isinstance(given[0], int)):
        return [given]
    return list(given)


def _prompt(service: Service, given: str | list[int]) -> MakePrompt:
    if isinstance(given, list):
        return lambda _: given
    return lambda schema: plain_prompt(service.lm, given, schema)


def _echo(service: Service, request: CompletionRequest, run: RequestRun, index: int) -> str:
    """The prompt of an answer, as text."""
    if not request.echo:
        return ""
    number = index // (run.count // len(run.jobs))
    given = prompts(request)[number]
    if isinstance(given, str):
        return given
    return service.lm.vocabulary.decode(run.jobs[number].prompt).decode("utf-8", "replace")


def _logprobs(
    service: Service,
    request: CompletionRequest,
    run: RequestRun,
    index: int,
    entries: list[Entry],
    offset: int,
) -> dict[str, Any] | None:
    if request.logprobs is None:
        return None
    return of_completion(entries, service.lm.vocabulary, offset)


def _thoughts(run: RequestRun, thoughts: str) -> dict[str, str]:
    """The field of a choice that has thoughts, as in a chat's message."""
    return {"reasoning_content": thoughts} if thoughts and run.thinking.shown else {}


def _first(run: RequestRun, index: int) -> list[Entry]:
    """The entry of the prompt's first token, which nothing precedes."""
    return [Entry(run.jobs[index // (run.count // len(run.jobs))].prompt[0], None, [])]


async def answer(service: Service, request: CompletionRequest, run: RequestRun) -> dict[str, Any]:
    """The whole answer."""
    found = await finished(service, request, run)
    choices = []
    for index, written in enumerate(found):
        entries = written.entries
        if written.prompt is not None:
            entries = _first(run, index) + written.prompt + entries
        before = _echo(service, request, run, index)
        offset = 0 if written.prompt is not None else len(before)
        choices.append(
            {
                "index": index,
                "text": before + written.text,
                **_thoughts(run, written.reasoning),
                "logprobs": _logprobs(service, request, run, index, entries, offset),
                "finish_reason": written.finish,
                **({} if written.stopped_by is None else {"stop_reason": written.stopped_by}),
                **run.choice_note(index),
            }
        )
    return {
        **_head(service, run),
        "choices": choices,
        "usage": counts_of(run, found),
        **run.note(),
    }


def _head(service: Service, run: RequestRun) -> dict[str, Any]:
    return {
        "id": f"cmpl-{secrets.token_hex(12)}",
        "object": "text_completion",
        "created": run.created,
        "model": service.name,
        "system_fingerprint": None,
    }


async def chunks(
    service: Service, request: CompletionRequest, run: RequestRun
) -> AsyncIterator[dict[str, Any]]:
    """The chunks of a stream, without its end mark."""
    top = _head(service, run)
    asked = request.stream_options is not None and request.stream_options.include_usage
    if asked:
        top["usage"] = None
    found = [Written() for _ in range(run.count)]
    offsets = [0] * run.count
    begun: set[int] = set()
    left = run.count
    async for piece in run.pieces():
        index, written = piece.index, found[piece.index]
        take(written, piece, None)
        text, entries = piece.text, list(piece.entries)
        if index not in begun:
            begun.add(index)
            before = _echo(service, request, run, index)
            text = before + text
            if piece.prompt is not None:
                entries = _first(run, index) + piece.prompt + entries
            else:
                offsets[index] = len(before)
        thoughts = _thoughts(run, piece.reasoning)
        if not text and not thoughts and not entries and piece.finish is None:
            continue
        logprobs = None
        if entries:
            logprobs = _logprobs(service, request, run, index, entries, offsets[index])
            assert logprobs is not None
            offsets[index] += sum(len(t) for t in logprobs["tokens"])
        choice = {"index": index, "text": text, **thoughts, "logprobs": logprobs}
        choice["finish_reason"] = piece.finish
        if piece.finish is not None and written.stopped_by is not None:
            choice["stop_reason"] = written.stopped_by
        if piece.finish is not None:
            await alone.confident(service, run, index, written, request.structgen.confidence)
            choice |= run.choice_note(index)
            left -= 1
        yield {**top, "choices": [choice], **(run.note() if not left and not asked else {})}
    if asked:
        yield {**top, "choices": [], "usage": counts_of(run, found), **run.note()}
