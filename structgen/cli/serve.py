"""`structgen serve`: OpenAI's interface over the embedded model or another, on this machine.

In: a model, limits. Out: nothing; the address goes to standard error. Cost: loading, then the requests'.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from structgen.serve.options import ServerOptions, mcp_servers

from .common import OK, Commands, Failure, add_strictness, failing, load_model, note, taken

_KEY = "STRUCTGEN_API_KEY"
_LOCAL = ("127.0.0.1", "::1", "localhost")  # values of --host that only this machine can reach
_LOCAL_NAMES = ("127.0.0.1", "[::1]", "localhost")  # the same hosts as a request names them
_DEFAULTS = ServerOptions()
_MEGABYTE = 1 << 20
_NUMBERS = {  # fields of `ServerOptions` that are numbers, by what the command says of them
    "max_tokens": "where a request has no limit",
    "sequences": "answers in the making at once",
    "queue": "requests that may wait",
    "prefill": "prompt tokens read in a step",
    "body_bytes": "of a request at most",
    "request_seconds": "for an answer",
    "compile_seconds": "for a grammar",
    "compile_workers": "grammars compiled at once",
    "compile_work": "units of work of a compile, each about 0.1 microseconds",
    "mask_work": "and of a mask",
    "mask_seconds": "for a mask",
    "grammar_bytes": "of a grammar",
    "live_bytes": "of the grammars of all answers in the making",
    "cache_bytes": "of grammars kept for the next request",
    "drain_seconds": "to finish at a shutdown",
}


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
    """Adds the flags for the model and the limits of a server."""
    parser.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        help="a folder, a GGUF file, a hub id or embedded-thinking (default: the embedded model)",
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
    add_strictness(parser, _DEFAULTS.tool_strictness)
    parser.add_argument(
        "--reasoning",
        default=_DEFAULTS.reasoning,
        metavar="FAMILY",
        help="how the model thinks before it answers: qwen3, gpt-oss, ..., or none "
        "(default: by its chat template)",
    )
    parser.add_argument(
        "--mcp",
        metavar="CONFIG",
        help="servers whose tools requests may ask for: JSON with `mcpServers`; needs the extra `mcp`",
    )
    parser.add_argument(
        "--call", action="store_true", help="call these tools here, and answer with what they say"
    )
    parser.add_argument(
        "--temperature", type=float, metavar="T", help="where a request has none (default: 1; embedded: 0)"
    )
    parser.add_argument(
        "--corpus",
        default="",
        metavar="FILE",
        help="texts that the drafter `corpus` copies from: a file of `structgen corpus`, or texts",
    )
    parser.add_argument(
        "--on-limit",
        choices=("subset", "error"),
        default=_DEFAULTS.on_limit,
        help="of masks that take more than --mask-work: leave out what is too much to tell, or end the "
        f"request (default: {_DEFAULTS.on_limit})",
    )
    for field, words in _NUMBERS.items():
        scale = _MEGABYTE if field.endswith("_bytes") else 1
        default = getattr(_DEFAULTS, field)
        parser.add_argument(
            _flag(field),
            type=type(default),
            default=default // scale if scale > 1 else default,
            metavar="S" if field.endswith("_seconds") else "N",
            help=f"{words} (default: {default / scale:,.10g})",
        )
    parser.add_argument("--log-level", default="warning", choices=("debug", "info", "warning", "error"))


def _flag(field: str) -> str:
    return "--" + field.replace("_bytes", "_megabytes").replace("_", "-")


def settings(options: argparse.Namespace) -> dict[str, Any]:
    """Returns the fields of `structgen.serve.options.ServerOptions`."""
    keys = options.api_key or [key for key in [os.environ.get(_KEY, "")] if key]
    found = taken(options, "name", "tool_style", "tool_strictness", "reasoning", "temperature", "corpus")
    found |= taken(options, "on_limit", "call")
    for field in _NUMBERS:
        if field.endswith("_bytes"):
            found[field] = getattr(options, field.replace("_bytes", "_megabytes")) * _MEGABYTE
        else:
            found[field] = getattr(options, field)
    found["mcp"] = {} if options.mcp is None else mcp_servers(options.mcp)
    hosts = (*(_LOCAL_NAMES if options.host in _LOCAL else ()), *options.allowed_host)
    return {**found, "api_keys": tuple(keys), "hosts": hosts}


def run(options: argparse.Namespace) -> int:
    return serve(options)


def serve(options: argparse.Namespace, ready: Callable[[str], object] | None = None) -> int:
    """Serves until a signal arrives. `ready` is called with the address when the server accepts requests."""
    try:
        with failing(f"read {options.mcp}"):
            chosen = ServerOptions(**settings(options))
    except ValueError as error:
        words = str(error)
        for field in _NUMBERS:
            words = words.replace(field, _flag(field))
        raise Failure(words) from None
    if chosen.corpus and not os.path.isfile(chosen.corpus):
        raise Failure(f"cannot read the corpus {chosen.corpus}: no such file")
    from structgen._extras import missing

    try:
        import uvicorn

        from structgen.serve.app import create_app
    except ImportError as error:
        raise missing(error, "servers") from None
    listening = _listen(options.host, options.port)
    with listening:
        note(f"loading {options.model or 'the embedded model'}")
        load_model(options.model)  # It raises the command line's error for a missing folder.
        app = create_app(options.model, chosen)
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        note(f"{app.state.service.name} is served at http://{shown}:{port}/v1")
        note(f"the playground is at http://{shown}:{port}/")
        # asyncio logs this line for every write to a client that has left: dozens for a request of many
        # answers.
        logging.getLogger("asyncio").addFilter(lambda told: told.msg != "socket.send() raised exception.")
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
    """Opens the socket before the model is loaded. Failure: the address is taken, or not of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=2048)
        # Without TCP_NODELAY, an answer on a reused connection waits 40 ms for the client's acknowledgement.
        # asyncio sets the option only on sockets that it makes itself. Connections inherit it from this
        # socket.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Failure(f"cannot listen at {host}:{port}: {reason}") from None
