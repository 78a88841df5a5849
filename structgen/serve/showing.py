"""The playground's generations: ordinary requests whose answers also report how each token was chosen.

Enters: a prompt, a constraint, a method. Leaves: events: `start`, then `token` (and `draft`) or `samples` and
`trace`, then `end`, and then `fields` if `confidence` asks for them. Cost: that of the generation. Tracing a
sample runs its tokens through the model once more, and fields read prefixes of each leaf.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from ..generation.watch import Names, shown
from . import alone
from .constraints import RequestConstraint, ToolUse
from .errors import ApiError
from .prompts import messages_as_prompt, plain_prompt
from .reply import Reply
from .requests import Message, SamplingMethod
from .sequence import AnswerPlan
from .service import RequestRun, Service, Wanted

if TYPE_CHECKING:
    from ..sampling.results import Samples
    from ..sampling.trie import Node, Trie
    from .playground import Asked

_TRACED = 6  # the most distinct texts whose tokens are reported
_TRACED_TOKENS = 600  # the most tokens that are reported of all these texts together
_TEXTS = 60  # the most texts of the posterior that are reported
_NODES = 160  # the most nodes of the trie that are reported
_POINTS = 200  # the most points of the bracket's history


async def generation(
    service: Service, asked: Asked, constraint: RequestConstraint | None, tools: ToolUse | None
) -> tuple[RequestRun, AsyncIterator[dict[str, Any]]]:
    """Returns a run and its events. Raises ApiError if the request is refused before the first token."""
    sampling = asked.method != "plain"
    if sampling and asked.speculate is not None:
        raise ApiError("a request takes a sampling method or speculation, not both", param="speculate")
    if asked.n > 1 and not sampling:
        raise ApiError("several texts need a sampling method", param="n")
    messages = [Message(role="user", content=asked.prompt)]
    told = None if tools is None or tools.choice == "none" else tools

    told_schema = None if constraint is None else constraint.schema
    if not asked.masked:
        constraint, tools = None, None

    def prompt(schema: Any) -> str | list[int]:
        schema = told_schema if schema is None else schema
        if not asked.chat:
            return plain_prompt(service.lm, asked.prompt, schema)
        return messages_as_prompt(service.lm, messages, tools=told, schema=schema)

    plan = AnswerPlan(
        service.law(asked.temperature, asked.top_p, asked.seed, top_k=asked.top_k), room=0, watch=True
    )
    # `constraint` already includes the tools. Here the tools are also given by themselves, to read the calls.
    wanted = Wanted(
        [prompt], asked.n, asked.max_tokens, constraint, None, plan, asked.complete, prompt_param="prompt"
    )
    drafting = None if asked.speculate is None else alone.options_of(service, asked.speculate)
    run = await service.start(wanted, queue=not sampling and drafting is None)
    run.tools = tools
    if drafting is not None:
        run.tasks.append(asyncio.create_task(alone.speculate(service, run.jobs[0], drafting)))
    return run, _sampled(service, run, asked) if sampling else _drawn(service, run, asked)


def _start(run: RequestRun) -> dict[str, Any]:
    job = run.jobs[0]
    return {
        "type": "start",
        "prompt_tokens": len(job.prompt),
        "cached_tokens": job.cached,
        "room": job.plan.room,
        "budget": job.plan.budget,
        "temperature": job.plan.drawing.temperature,
        # The seed is sent as text, because a browser's numbers have 53 bits.
        "seed": None if job.plan.drawing.seed is None else str(job.plan.drawing.seed),
        "compiled": None
        if run.compiled is None
        else {"compile": run.compiled[0], "first_mask": run.compiled[1]},
    }


async def _drawn(service: Service, run: RequestRun, asked: Asked) -> AsyncIterator[dict[str, Any]]:
    """Yields the events of one text while it is written."""
    names = Names(service.lm.vocabulary, service.special_names)
    ends = frozenset(service.lm.eos_token_ids)
    written = Reply()
    begun = False
    async for piece in run.pieces():
        if not begun:  # The engine knows only now how much of the prompt was cached.
            begun = True
            yield _start(run)
        if piece.drafted is not None:
            yield {"type": "draft", **piece.drafted.told(names, ends)}
        written.take(piece, None)
        for one in piece.seen:
            yield {"type": "token", **one.told(names, ends), "delta": piece.text}
    calls = [{"name": call.name, "arguments": call.arguments} for call in run.calls(written.text)]
    yield {
        "type": "end",
        "finish": written.finish,
        "stopped_by": written.stopped_by,
        "text": written.text,
        "tokens": written.tokens,
        "calls": calls,
    }
    if asked.confidence and not calls:
        found = await alone.fields(service, run.jobs[0], written, asked.confidence)
        yield {"type": "fields", "fields": found}


async def _sampled(service: Service, run: RequestRun, asked: Asked) -> AsyncIterator[dict[str, Any]]:
    """Yields the events of one call of `sg.sample`: the texts, the facts about them, and the most probable
    texts token by token."""
    (job,) = run.jobs
    yield _start(run)
    assert asked.method != "plain"
    found = await alone.sample(service, job, SamplingMethod(method=asked.method))
    names = Names(service.lm.vocabulary, service.special_names)
    ends = frozenset(service.lm.eos_token_ids)
    texts: dict[str, list[int]] = {}
    for one in found:
        texts.setdefault(one.text, one.tokens)
    posterior = found.posterior()
    chosen = list(itertools.islice(posterior, _TEXTS))
    counts: dict[str, int] = {}
    logprobs: dict[str, float] = {}
    for one in found:
        counts[one.text] = counts.get(one.text, 0) + 1
        logprobs[one.text] = one.logprob
    yield {
        "type": "samples",
        **alone.told(found),
        "seed": str(found.diagnostics.seed),
        "n": len(found),
        "ess": alone.finite(found.ess) if len(found) else 0.0,
        "posterior": [
            {
                "text": text,
                "p": posterior[text],
                "count": counts[text],
                "logprob": alone.finite(logprobs[text]),
            }
            for text in chosen
        ],
        "others": len(posterior) - len(chosen),
        "brackets": _history(found),
        "mass_lost": [share for _, share in found.diagnostics.mass_lost],
        "killed": found.diagnostics.killed,
        "trie": await asyncio.to_thread(_picture, found.trie, names, ends),
    }
    traced = []
    room = _TRACED_TOKENS
    for text in chosen[:_TRACED]:
        if len(texts[text]) > room:
            break
        room -= len(texts[text])
        traced.append(text)
    if traced:
        rows = await alone.trace(service, job, [texts[text] for text in traced])
        for text, row in zip(traced, rows, strict=True):
            yield {"type": "trace", "text": text, "tokens": [one.told(names, ends) for one in row]}
    yield {"type": "end", "finish": "stop" if len(found) else "none", "tokens": 0, "calls": []}


def _history(found: Samples) -> list[list[float | None]]:
    """Returns (draws, log lower, log upper) during the run, with at most `_POINTS` points."""
    points = found.diagnostics.brackets
    step = max(1, math.ceil(len(points) / _POINTS))
    kept = points[::step] if not points or (len(points) - 1) % step == 0 else [*points[::step], points[-1]]
    return [[draws, alone.finite(low), alone.finite(high)] for draws, low, high in kept]


def _picture(trie: Trie, names: Names, ends: frozenset[int]) -> list[dict[str, Any]]:
    """Returns the most probable part of the trie, parents before children; `parent` is -1 below the root.

    `p` is the model's probability of the prefix, `low` and `high` bound the share of it that ends in the
    language.
    """
    found: list[dict[str, Any]] = []
    number = itertools.count()
    waiting: list[tuple[float, int, int, Node]] = [(0.0, next(number), -1, trie.root)]
    while waiting and len(found) < _NODES:
        cost, _, at, node = heapq.heappop(waiting)
        for token, edge in sorted(node.edges.items(), key=lambda item: -item[1].logp):
            if len(found) >= _NODES:
                break
            logp = edge.logp - cost
            found.append(
                {
                    **shown(token, names, ends),
                    "parent": at,
                    "p": math.exp(min(0.0, logp)),
                    "low": math.exp(min(0.0, edge.lower)),
                    "high": math.exp(min(0.0, edge.upper)),
                    "end": token in ends,
                }
            )
            if edge.node is not None and edge.node.edges:
                heapq.heappush(waiting, (-logp, next(number), len(found) - 1, edge.node))
    return found
