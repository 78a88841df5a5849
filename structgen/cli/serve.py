"""`structgen serve`: OpenAI's interface over the embedded model or another, on this machine.

In: a model, limits. Out: nothing; the address goes to standard error. Cost: loading, then the requests'.
"""

from __future__ import annotations

import argparse
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from .common import OK, Commands, Failure, load_model, note

_KEY = "STRUCTGEN_API_KEY"
_LOCAL = ("127.0.0.1", "::1", "localhost")  # what --host may be for this machine alone
_LOCAL_NAMES = ("127.0.0.1", "[::1]", "localhost")  # and how requests write it


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "serve",
        help="a server that speaks OpenAI's interface",
        description="Serves a model at http://HOST:PORT/v1 for OpenAI's clients; docs/server.md says what "
        "it takes. Needs the extra `serve`.",
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


def add_arguments(parser: argparse.ArgumentParser, port: int = 8000) -> None:
    """The model, and the limits of a server."""
    parser.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        help="a folder, a GGUF file or a hub id (default: the embedded model)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="(default: 127.0.0.1, this machine alone)")
    parser.add_argument("--port", type=int, default=port, help=f"0 takes a free one (default: {port})")
    parser.add_argument(
        "--allowed-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a host that requests may name; may be repeated (default: every one; where the server "
        "listens to this machine alone, localhost and its addresses)",
    )
    parser.add_argument(
        "--name", default="", help="what clients call the model (default: the last part of its path)"
    )
    parser.add_argument(
        "--api-key",
        action="append",
        default=[],
        metavar="KEY",
        help="asked of every request; may be repeated "
        f"(default: {_KEY} of the environment, which `ps` does not show)",
    )
    parser.add_argument(
        "--tool-style",
        metavar="STYLE",
        help="how the model writes tool calls (default: by its chat template)",
    )
    parser.add_argument(
        "--temperature", type=float, metavar="T", help="where a request has none (default: 1; embedded: 0)"
    )
    parser.add_argument(
        "--max-tokens",
        type=int,
        default=4096,
        metavar="N",
        help="where a request has no limit (default: 4096)",
    )
    parser.add_argument(
        "--sequences", type=int, default=64, metavar="N", help="answers in the making at once (default: 64)"
    )
    parser.add_argument(
        "--queue", type=int, default=256, metavar="N", help="requests that may wait (default: 256)"
    )
    parser.add_argument(
        "--prefill", type=int, default=256, metavar="N", help="prompt tokens read in a step (default: 256)"
    )
    parser.add_argument(
        "--body-megabytes", type=int, default=16, metavar="N", help="of a request at most (default: 16)"
    )
    parser.add_argument(
        "--request-seconds", type=float, default=600, metavar="S", help="for an answer (default: 600)"
    )
    parser.add_argument(
        "--compile-seconds", type=float, default=20, metavar="S", help="for a grammar (default: 20)"
    )
    parser.add_argument(
        "--compile-work",
        type=int,
        default=10_000_000,
        metavar="N",
        help="units of work of a compile, each about 0.1 microseconds (default: 10,000,000)",
    )
    parser.add_argument(
        "--mask-work", type=int, default=200_000, metavar="N", help="and of a mask (default: 200,000)"
    )
    parser.add_argument(
        "--on-limit",
        choices=("subset", "error"),
        default="subset",
        help="of masks that take more: leave out what is too much to tell, or end the request "
        "(default: subset)",
    )
    parser.add_argument("--mask-seconds", type=float, default=5, metavar="S", help="for a mask (default: 5)")
    parser.add_argument(
        "--grammar-megabytes", type=int, default=64, metavar="N", help="of a grammar (default: 64)"
    )
    parser.add_argument(
        "--live-megabytes",
        type=int,
        default=1024,
        metavar="N",
        help="of the grammars of all answers in the making (default: 1024)",
    )
    parser.add_argument(
        "--cache-megabytes",
        type=int,
        default=256,
        metavar="N",
        help="of grammars kept for the next request (default: 256)",
    )
    parser.add_argument(
        "--drain-seconds", type=float, default=30, metavar="S", help="to finish at a shutdown (default: 30)"
    )
    parser.add_argument("--log-level", default="warning", choices=("debug", "info", "warning", "error"))


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """The fields of `structgen.serve.options.Options`."""
    keys = options.api_key or [key for key in [os.environ.get(_KEY, "")] if key]
    names = ("name", "tool_style", "temperature", "max_tokens", "sequences", "queue", "prefill")
    seconds = ("request_seconds", "compile_seconds", "mask_seconds", "drain_seconds")
    limits = ("compile_work", "mask_work", "on_limit")
    found = {name: getattr(options, name) for name in (*names, *seconds, *limits)}
    for name in ("grammar", "live", "cache"):
        found[f"{name}_bytes"] = getattr(options, f"{name}_megabytes") << 20
    found["hosts"] = (*(_LOCAL_NAMES if options.host in _LOCAL else ()), *options.allowed_host)
    return {**found, "api_keys": tuple(keys), "body_bytes": options.body_megabytes << 20}


def run(options: argparse.Namespace) -> int:
    return serve(options)


def serve(options: argparse.Namespace, ready: Callable[[str], object] | None = None) -> int:
    """Serve until a signal ends it. `ready` is called with the address once requests are answered."""
    from structgen.serve.options import Options

    try:
        chosen = Options(**settings(options))
    except ValueError as error:
        raise Failure(str(error)) from None
    from structgen._extras import missing

    try:
        import uvicorn

        from structgen.serve.app import create_app
    except ImportError as error:
        raise missing(error, "servers") from None
    listening = _listen(options.host, options.port)
    with listening:
        note(f"loading {options.model or 'the embedded model'}")
        load_model(options.model)  # its words for a folder that is not there
        app = create_app(options.model, chosen)
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        note(f"{app.state.service.name} is served at http://{shown}:{port}/v1")
        note(f"the playground is at http://{shown}:{port}/")
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level=options.log_level,
                timeout_graceful_shutdown=max(1, int(options.drain_seconds)),
                server_header=False,
            )
        )
        if ready is not None:
            threading.Thread(
                target=_when_ready, args=(server, ready, f"http://{shown}:{port}/"), daemon=True
            ).start()
        server.run(sockets=[listening])
    return OK


def _when_ready(server: Any, ready: Callable[[str], object], address: str) -> None:
    while not server.started:
        if server.should_exit:
            return
        time.sleep(0.02)
    ready(address)


def _listen(host: str, port: int) -> socket.socket:
    """The socket, before the model is loaded. Failure: the address is taken or none of this machine's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=2048)
        # Without it an answer on a connection that was used before waits 40 ms for the client's
        # acknowledgement; asyncio sets it only on sockets that it makes itself. Connections inherit it.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Failure(f"cannot listen at {host}:{port}: {reason}") from None
