"""The settings of a server.

Enters: the command line or a keyword argument of `create_app`. Leaves: `ServerOptions`. Cost: nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._checks import renamed
from ..frontend.tools import STRICTNESS, Strictness
from ..limits import SERVING, Limits, OnLimit, is_subset


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Limits and defaults of one server.

    Attributes:
        name: the name of the model in `/v1/models`; by default "embedded" or the last part of the model's
            path.
        api_keys: every request needs one of these keys; an empty list lets every request in.
        hosts: names that requests may give as their host, ports left out; none takes every name. A page of
            another site can make its own name lead to this machine and then read a server that takes any.
        tool_style: how the model writes tool calls, a style of `Compiler.tools`; None: by its chat template.
        tool_strictness: how far calls are held at least (`Compiler.tools`); a request may ask for more.
        reasoning: how the model thinks: a name of `structgen.reasoning.FAMILIES`, "auto" (by its chat
            template) or "none".
        corpus: a file that the drafter "corpus" copies from (`structgen.speculation.CorpusDrafter`); requests
            name the drafter, never a file.
        mcp: the servers of tools that requests may ask for, by label, as `mcpServers` has them (mcp.py).
        call: whether calls of their tools are made here; else the client gets them.
        temperature: where a request has none; None: 0 for the embedded model, else 1 as OpenAI has it.
        max_tokens: the most tokens of an answer whose request has no limit; the model's context may leave
            less.
        sequences: the most answers that are made at once, in one forward.
        queue: the most requests that wait for a place; one more is answered 429.
        prefill: the most prompt tokens of a step, so that a long prompt does not hold up other answers.
        body_bytes: the most bytes of the body of a request.
        request_seconds: the most seconds from the arrival of a request to the end of its answer.
        compile_seconds: the most seconds to compile one grammar and to find whether it fits `max_tokens`.
        compile_workers: the most grammars that are compiled at once. Grammars that were quick before do not
            wait for them.
        mask_seconds: a grammar whose single mask takes longer ends its request.
        compile_work, mask_work: units of work of a compile and of a mask (`structgen.Limits`).
        grammar_bytes: the most bytes of the states and masks of one grammar; beyond them its request ends.
        live_bytes: the most bytes of all grammars of live answers; beyond them the largest request ends.
        cache_bytes: the most bytes of the grammars that are kept for later requests.
        on_limit: what happens to a mask beyond `mask_work`: "subset" leaves out what is too much to tell,
            "error" ends the request (`structgen.Compiler`).
        drain_seconds: the most seconds that requests under way may still take at a shutdown.
    """

    name: str = ""
    api_keys: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    tool_style: str | None = None
    tool_strictness: Strictness = "parameter"
    reasoning: str = "auto"
    corpus: str = ""
    mcp: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    call: bool = False
    temperature: float | None = None
    max_tokens: int = 4096
    sequences: int = 64
    queue: int = 256
    prefill: int = 256
    body_bytes: int = 16 << 20
    request_seconds: float = 600.0
    compile_seconds: float = 20.0
    compile_workers: int = 4
    mask_seconds: float = 5.0
    compile_work: int = SERVING.compile or 10_000_000
    mask_work: int = SERVING.mask or 200_000
    grammar_bytes: int = 64 << 20
    live_bytes: int = 1 << 30
    cache_bytes: int = 256 << 20
    on_limit: OnLimit = "subset"
    drain_seconds: float = 30.0

    @property
    def limits(self) -> Limits:
        """The limits of each grammar's compiler."""
        return Limits(compile=self.compile_work, mask=self.mask_work, memory=self.grammar_bytes)

    def __post_init__(self) -> None:
        counts = ("max_tokens", "sequences", "queue", "prefill", "body_bytes", "compile_workers")
        for name in (*counts, "compile_work", "mask_work", "grammar_bytes", "live_bytes", "cache_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("request_seconds", "compile_seconds", "mask_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)}")
        if not self.drain_seconds >= 0:
            raise ValueError(f"drain_seconds must be 0 or more, not {self.drain_seconds}")
        is_subset(self.on_limit)
        if self.tool_strictness not in STRICTNESS:
            raise ValueError(
                f"tool_strictness is one of {', '.join(STRICTNESS)}, not {self.tool_strictness!r}"
            )
        if self.temperature is not None and not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature must be 0 or more, not {self.temperature}")
        if self.call and not self.mcp:
            raise ValueError("--call needs --mcp: the servers whose tools are called")
        if any(not key for key in self.api_keys):
            raise ValueError("an API key must not be empty")


def mcp_servers(path: str) -> dict[str, dict[str, Any]]:
    """Returns the servers of a file, by label. Raises a ValueError if the file names no servers, and an
    OSError if the file cannot be read."""
    with open(path, encoding="utf-8-sig") as file:
        try:
            servers = json.load(file).get("mcpServers")
        except (ValueError, RecursionError, AttributeError) as error:
            raise ValueError(f"{path} is no JSON object with 'mcpServers': {error}") from None
    if not isinstance(servers, dict) or not servers:
        raise ValueError(f"{path} has no 'mcpServers': an object of servers by their labels")
    for label, server in servers.items():
        command, url = (server.get(name) if isinstance(server, dict) else None for name in ("command", "url"))
        if not isinstance(command, str) and not isinstance(url, str):
            raise ValueError(f"{path}: the server {label!r:.80} has neither a 'command' nor a 'url'")
    return servers


__getattr__: Callable[[str], Any] = renamed(__name__, Options="ServerOptions")
