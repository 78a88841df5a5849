"""The ASGI application: routes, keys, limits, errors.

Enters: HTTP. Leaves: OpenAI's answers. Cost: reading and writing JSON, and the model's work.

    uvicorn --factory structgen.serve.app:create_app     # the embedded model

The problem. One process serves clients of three interfaces, and some clients are hostile. A body that never
ends, a page of another site, or a wrong key must cost little, and must be refused before the body is parsed.

The idea. `_Gate` is a middleware before all routes. In this order it checks

    Host     against --allowed-host, because a page of another site can make its name lead to this machine
    key      if there are keys, below `_GUARDED`; every key is compared in constant time
    body     read as a whole, within a size, a time, and a number of bytes for all live requests together

Then a route has three steps, the same for each endpoint: `wanted` turns the body into a `Wanted`
(service.py), `_start` makes a `RequestRun`, and `answer` or a stream of events reads its pieces. `_start`
sends the jobs to the engine, or to alone.py if the request asks for sampling or speculation.

Invariants.
- Every failure has the shape of OpenAI's errors. A fault of the client is a 4xx, and nobody sees a traceback.
- A client that leaves ends its run (`while_there`, `unless_gone`).
- The bytes that a request holds are freed when it ends, however it ends (`_Held`).
- A request is counted once in /metrics, with its status; 499 is a client that left.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from .. import __version__
from .._extras import missing

try:
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from .answering import Gone, Json, events, unless_gone, while_there
except ImportError as _missing:
    raise missing(_missing, "servers") from None

from ..lm.load import language_model
from . import alone, chat, completions, messages, page, playground, responses
from .errors import ApiError, busy, late, unexpected
from .mcp import with_results
from .mistakes import in_words
from .options import ServerOptions
from .requests import (
    ChatRequest,
    CompletionRequest,
    CountRequest,
    Generation,
    MessagesRequest,
    ResponsesRequest,
)
from .sequence import Piece
from .service import RequestRun, Service, Wanted

_ENDPOINTS = (
    "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens",
    "/v1/models", "/health", "/metrics",
)  # fmt: skip
_GUARDED = ("/v1", "/metrics", playground.API + "/")
# so many bytes beyond the limit are read and dropped, so that the client reads the error
_DISCARDED = 64 << 20
_BODIES = 16  # all live requests together may hold as many bytes as so many bodies of the largest size


def create_app(model: Any = None, options: ServerOptions | None = None, **settings: Any) -> FastAPI:
    """Returns the application for one model.

    Args:
        model: what `sg.generate` takes: None is the embedded model.
        options: limits and defaults. settings: fields of `ServerOptions` to change.

    Raises:
        LanguageModelError: there is no such model. ValueError: options that make no sense.
        MissingDependency: the extra `serve` is not installed.
    """
    chosen = replace(options or ServerOptions(), **settings)
    lm = language_model(model)
    source = os.fspath(model) if isinstance(model, (str, os.PathLike)) else None
    service = Service(lm, chosen, source)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        async with service.servers.open():
            service.engine.start()
            try:
                yield
            finally:
                await asyncio.to_thread(service.close)

    app = FastAPI(
        title="structgen",
        version=__version__,
        lifespan=life,
        default_response_class=Json,
        docs_url=None,  # FastAPI's own pages load scripts from other sites; page.py has a page that does not
        redoc_url=None,
        redirect_slashes=False,  # `_Gate` removes a slash at the end; not all clients follow redirects
    )
    app.state.service = service
    _routes(app, service)
    for kind, handler in (
        (ApiError, _api_error),
        (Gone, _nobody),
        (RequestValidationError, _invalid),
        (HTTPException, _http_error),
        (Exception, _failed),
    ):
        app.add_exception_handler(kind, handler)
    app.add_middleware(_Gate, service=service)
    return app


# ---- routes ----


def _routes(app: FastAPI, service: Service) -> None:
    async def count_tokens(body: CountRequest, request: Request) -> Response:
        service.check_model(body.model)
        wanted = messages.wanted(service, body)
        return Json({"input_tokens": await while_there(request, service.count(wanted))})

    async def models() -> Response:
        return Json({"object": "list", "data": [_model(service)], "has_more": False})

    async def one_model(name: str) -> Response:
        service.check_model(name)
        return Json(_model(service))

    async def health() -> Response:
        fine = service.engine.alive
        return Json({"status": "ok" if fine else "stopped"}, 200 if fine else 503)

    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    for path, (module, kind, tag) in _PROTOCOLS.items():
        app.add_api_route(path, _endpoint(service, module, kind), methods=["POST"], tags=[tag])
    app.add_api_route("/v1/messages/count_tokens", count_tokens, methods=["POST"], tags=["Anthropic"])
    app.add_api_route("/v1/models", models, methods=["GET"], tags=["OpenAI"])
    app.add_api_route("/v1/models/{name:path}", one_model, methods=["GET"], tags=["OpenAI"])
    app.add_api_route("/health", health, methods=["GET"])
    app.add_api_route("/metrics", metrics, methods=["GET"])
    playground.add_routes(app, service)
    page.add_routes(app)


# For each endpoint that generates: the module with `wanted`, `events` and `answer`, and the class of the
# body.
_PROTOCOLS: dict[str, tuple[Any, type[Generation | ResponsesRequest | MessagesRequest], str]] = {
    "/v1/chat/completions": (chat, ChatRequest, "OpenAI"),
    "/v1/completions": (completions, CompletionRequest, "OpenAI"),
    "/v1/responses": (responses, ResponsesRequest, "OpenAI"),
    "/v1/messages": (messages, MessagesRequest, "Anthropic"),
}


def _endpoint(service: Service, module: Any, kind: type[Any]) -> Callable[..., Awaitable[Response]]:
    """Returns the route of one protocol. It answers with a stream of events or an object."""

    async def generate(body: Any, request: Request) -> Response:
        service.check_model(body.model)
        run = await _start(service, module.wanted(service, body), body, request)
        if body.stream:
            return events(
                run, module.events(service, body, run), service, named=module in (responses, messages)
            )
        return Json(await unless_gone(request, run, module.answer(service, body, run)))

    generate.__annotations__["body"] = kind  # FastAPI finds the class of the body by this annotation
    generate.__name__ = module.__name__.rpartition(".")[2]
    return generate


def _model(service: Service) -> dict[str, Any]:
    return {
        "id": service.name,
        "object": "model",
        "type": "model",
        "display_name": service.name,
        "created": service.created,
        "created_at": datetime.fromtimestamp(service.created, UTC).isoformat(),
        "owned_by": "structgen",
        "max_model_len": service.lm.max_context,
    }


async def _start(
    service: Service, wanted: Wanted, body: Generation | ResponsesRequest | MessagesRequest, request: Request
) -> RequestRun:
    """Starts the run of a request: beside the engine for sampling and speculation, otherwise in the
    engine."""
    extension = body.structgen
    own = extension.sampling is not None or extension.speculate is not None
    if not own:
        remote = None if wanted.tools is None else wanted.tools.remote
        if not (service.options.call and wanted.count == 1 and remote):
            return await while_there(request, service.start(wanted))
        try:
            async with asyncio.timeout(service.options.request_seconds):
                return await while_there(request, with_results(service.servers, wanted, service.start))
        except TimeoutError:
            raise late(service.options.request_seconds) from None
    alone.check(wanted.plan, extension, wanted.tools is not None)
    drafting = None if extension.speculate is None else alone.options_of(service, extension.speculate)
    run = await while_there(request, service.start(wanted, queue=False))
    if drafting is not None:
        run.tasks += [asyncio.create_task(alone.speculate(service, job, drafting)) for job in run.jobs]
        return run
    assert extension.sampling is not None
    for job in run.jobs:
        found = await unless_gone(request, run, alone.sample(service, job, extension.sampling), ends=False)
        if not len(found):
            draws = found.diagnostics.draws
            cut = job.plan.drawing.top_p is not None or job.plan.drawing.top_k is not None
            fix = "leave 'top_p' and 'top_k' out, which may cut all allowed texts off, " if cut else ""
            raise ApiError(
                f"no text was accepted ({draws} drawn): {fix}raise 'max_trials' or choose another method",
                param="structgen.sampling",
                code="no_sample",
            )
        ends = set(service.lm.eos_token_ids)
        job.count = len(found)
        for i, (sample, weight) in enumerate(zip(found, found.weights.tolist(), strict=True)):
            ended = bool(sample.tokens) and sample.tokens[-1] in ends
            piece = Piece(i, sample.text, len(sample.tokens), finish="stop" if ended else "length")
            piece.reasoning, piece.ids = sample.reasoning or "", sample.tokens
            job.pieces.put_nowait(piece)
            logprob, log_weight = alone.finite(sample.logprob), alone.finite(sample.log_weight)
            note = {"weight": weight, "log_weight": log_weight, "logprob": logprob}
            run.choice_notes.append({**note, "tv_bound": sample.tv_bound})
        run.notes.append(alone.told(found))
    return run


# ---- errors ----


def _error(error: ApiError) -> Response:
    headers = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Json(error.body, error.status, headers)


async def _api_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return _error(error)


async def _invalid(_: Request, error: Exception) -> Response:
    """Returns the answer to a body that pydantic refused: places and reasons, without the values."""
    assert isinstance(error, RequestValidationError)
    found = in_words(error.errors())
    return _error(ApiError("; ".join(text for _, text in found), param=found[0][0], code="invalid_request"))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = str(error.detail)
    if error.status_code == 404:
        message = f"there is no {request.url.path[:200]}"
    elif error.status_code == 405:
        message = f"{request.url.path[:200]} does not take {request.method}"
    elif error.status_code == 400:
        message = "the body cannot be read as JSON: it is no UTF-8, nested too deeply, or a number too long"
    response = _error(ApiError(message, status=error.status_code))
    response.headers.update(error.headers or {})
    return response


async def _nobody(_: Request, error: Exception) -> Response:
    return Response(status_code=499)  # the client has left; the status is only for /metrics


async def _failed(_: Request, error: Exception) -> Response:
    return _error(unexpected(error))


# ---- before the routes ----


class _Held:
    """The bytes that the body of one request holds."""

    def __init__(self, gate: _Gate) -> None:
        self._gate = gate
        self._bytes = 0

    def more(self, count: int) -> None:
        self._bytes += count
        self._gate.held += count

    def free(self) -> None:
        self._gate.held -= self._bytes
        self._bytes = 0


class _Gate:
    """Checks hosts, keys and bodies, and counts requests."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app = app
        self.service = service
        self.held = 0  # bytes of the bodies of live requests
        self.keys = [key.encode() for key in service.options.api_keys]
        self.hosts = {host.lower() for host in service.options.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 499
        held = _Held(self)
        path = scope["path"]
        if len(path) > 1 and path.endswith("/"):
            path = path.rstrip("/") or "/"
            scope = {**scope, "path": path, "raw_path": path.encode()}
        endpoint = next((e for e in _ENDPOINTS if path == e), "other")

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            try:
                if self.hosts:
                    self._check_host(scope)
                if self.keys and path.startswith(_GUARDED):
                    self._check_key(scope)
                receive = await self._body(scope, receive, held)
            except ApiError as error:
                await _error(error)(scope, receive, counted)
                return
            try:
                await self.app(scope, receive, counted)
            except asyncio.CancelledError:  # a shutdown ended the wait
                if status != 499:
                    raise
                await _error(busy("the server is shutting down", 503))(scope, receive, counted)
        finally:
            held.free()
            self.service.metrics.requests.labels(endpoint, str(status)).inc()
            self.service.metrics.seconds.labels(endpoint).observe(time.perf_counter() - begin)

    def _check_host(self, scope: Scope) -> None:
        for name, value in scope["headers"]:
            if name == b"host":
                host = re.sub(r":\d*$", "", value.decode("latin-1")).lower()
                if host not in self.hosts:
                    raise ApiError(
                        f"this server does not answer to host {host[:80]!r}; start it with --allowed-host",
                        status=403,
                        code="host_not_allowed",
                    )

    def _check_key(self, scope: Scope) -> None:
        given = b""
        for name, value in scope["headers"]:
            if name == b"authorization" and value[:7].lower() == b"bearer ":
                given = value[7:].strip()
            elif name in (b"x-api-key", b"api-key"):
                given = given or value.strip()
        # Every key is compared, so that the time does not tell which one matched.
        if not sum([hmac.compare_digest(given, key) for key in self.keys]):
            raise ApiError("the API key is missing or wrong", status=401, code="invalid_api_key")

    async def _body(self, scope: Scope, receive: Receive, held: _Held) -> Receive:
        """Reads the whole body, and returns a `receive` that gives it again.

        Raises:
            ApiError: the body is too large or too slow, or all bodies together are too large.
        """
        try:
            async with asyncio.timeout(self.service.options.request_seconds):
                return await self._read(scope, receive, held)
        except TimeoutError:
            raise late(self.service.options.request_seconds, "the body") from None

    async def _read(self, scope: Scope, receive: Receive, held: _Held) -> Receive:
        if scope["method"] not in ("POST", "PUT", "PATCH"):
            return receive
        limit = self.service.options.body_bytes
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                break  # the client left; the route gets a short body
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
            if size <= limit:
                parts.append(message.get("body", b""))
                held.more(len(parts[-1]))
                if self.held > _BODIES * limit:
                    raise busy("the bodies of all requests take too much memory: try again", 503)
            elif size > limit + _DISCARDED:
                break
        if size > limit:
            raise ApiError(
                f"the body has more than {limit} bytes; start the server with a larger --body-megabytes",
                status=413,
                code="request_too_large",
            )
        body: bytes | None = b"".join(parts)

        async def again() -> Message:
            nonlocal body
            if body is not None:
                whole, body = body, None
                return {"type": "http.request", "body": whole, "more_body": False}
            return await receive()

        return again
