"""`POST /v1/completions`: reads requests, and turns pieces of answers into OpenAI's objects.

Enters: a `CompletionRequest`. Leaves: one object, or the chunks of a stream. Cost: that of making the answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ..frontend.tool_calls import Item
from .constraints import request_constraint
from .errors import ApiError
from .logprobs import of_completion
from .prompts import plain_prompt
from .reply import Reply, chunks, head, thoughts, whole
from .requests import PROMPTS, CompletionRequest
from .sequence import AnswerPlan, Entry, Piece
from .service import MakePrompt, RequestRun, Service, Wanted
from .thinking import Thinking, thinking_of


def wanted(service: Service, request: CompletionRequest) -> Wanted:
    """Reads a request into a `Wanted`. Raises an ApiError if a field is refused."""
    count = request.n or 1
    if request.best_of is not None and request.best_of != count:
        raise ApiError("'best_of' is not supported: ask for n answers and choose", param="best_of")
    if request.max_tokens == 0 and not request.echo:
        raise ApiError("'max_tokens' is 0, which only makes sense with 'echo'", param="max_tokens")
    given = prompts(request)
    if not given:
        raise ApiError(f"a request has 1 to {PROMPTS} prompts, not 0", param="prompt")
    constraint = request_constraint(request)
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
    """Returns one prompt or several, texts or token ids."""
    given: Any = request.prompt
    if isinstance(given, str) or (given and isinstance(given[0], int)):
        return [given]
    return list(given)


def _prompt(service: Service, given: str | list[int]) -> MakePrompt:
    if isinstance(given, list):
        return lambda _: given
    return lambda schema: plain_prompt(service.lm, given, schema)


def _echo(service: Service, request: CompletionRequest, run: RequestRun, index: int) -> str:
    """Returns the prompt of an answer, as text."""
    if not request.echo:
        return ""
    job = run.job_of(index)
    given = prompts(request)[run.jobs.index(job)]
    if isinstance(given, str):
        return given
    return service.lm.vocabulary.decode(job.prompt).decode("utf-8", "replace")


def _first(run: RequestRun, index: int) -> list[Entry]:
    """Returns the entry of the prompt's first token, which nothing precedes."""
    return [Entry(run.job_of(index).prompt[0], None, [])]


async def answer(service: Service, request: CompletionRequest, run: RequestRun) -> dict[str, Any]:
    """Returns the object of the whole answer."""

    def told(index: int, written: Reply) -> dict[str, Any]:
        entries, before = written.entries, _echo(service, request, run, index)
        if written.prompt is not None:
            entries = _first(run, index) + written.prompt + entries
        offset = 0 if written.prompt is not None else len(before)
        asked = request.logprobs is not None
        return {
            "text": before + written.text,
            **thoughts(run, written.reasoning),
            "logprobs": of_completion(entries, service.lm.vocabulary, offset) if asked else None,
        }

    return await whole(service, request, run, head(service, run, "text_completion", "cmpl"), told)


def events(service: Service, request: CompletionRequest, run: RequestRun) -> AsyncIterator[dict[str, Any]]:
    """Returns the chunks of a stream, without its end mark."""
    # where the next token begins in the text; None before the first chunk
    offsets: list[int | None] = [None] * run.count

    def told(_: Reply, piece: Piece, new: list[Item]) -> list[dict[str, Any]]:
        index, text, entries = piece.index, piece.text, list(piece.entries)
        offset = offsets[index]
        if offset is None:
            before = _echo(service, request, run, index)
            text, offset = before + text, len(before)
            if piece.prompt is not None:
                entries, offset = _first(run, index) + piece.prompt + entries, 0
        logprobs = of_completion(entries, service.lm.vocabulary, offset) if entries else None
        offsets[index] = offset + sum(map(len, logprobs["tokens"] if logprobs is not None else ()))
        thought = thoughts(run, piece.reasoning)
        if not (text or thought or entries or piece.finish is not None):
            return []
        return [{"text": text, **thought, "logprobs": logprobs}]

    return chunks(service, request, run, head(service, run, "text_completion", "cmpl"), told)
