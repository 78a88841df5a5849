"""Tools of MCP servers behind `structgen serve --mcp CONFIG`.

Enters: the usual JSON ``{"mcpServers": {LABEL: {"command", "args", "env", "cwd"} or {"url", "headers"}}}``;
requests that ask for a server's tools. Leaves: functions in their place; with `--call` the results of calls.
Cost: a connection to each MCP server, whose list of tools is read once, when `structgen serve` starts.

A request asks by a tool that stands for a server, as OpenAI and Anthropic write it:

    {"type": "mcp", "server_label": LABEL, "allowed_tools": [NAME, ...]}
    {"type": "mcp_toolset", "mcp_server_name": LABEL, "configs": {NAME: {"enabled": true}}}

`ToolServers.expand` replaces such an entry by the server's functions. If the list already has a function's
name, the new function gets the name `LABEL__NAME`. Without `--call` the client gets a call like any other
call. With `--call`, `with_results` makes the call, adds the result to the conversation, and asks the model
again:

    model: get_weather({"city": "Oslo"})  ->  its server: 12 degrees  ->  model: It is 12 degrees in Oslo.

Invariants.
- No request names an address or a command: it names a label of the file.
- An answer has at most `_ROUNDS` rounds of calls. A round that repeats a call is the last one: the model
  then answers without tools. A call ends within `_SECONDS`, and of its result the first `_LONGEST`
  characters are read.
- A failed call gives a result that states the failure. A client's own functions are never called here: if a
  round calls one, the round is the answer.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._extras import missing
from ..frontend.source import meant
from ..frontend.tool_calls import Call
from ..frontend.tool_lists import listed, name_of
from .errors import ApiError, log
from .requests import Message
from .sequence import Piece

if TYPE_CHECKING:
    from .service import RequestRun, Wanted

_ROUNDS = 8
_SECONDS = 60.0
_LONGEST = 100_000
_TYPES = ("mcp", "mcp_toolset")


@dataclass(frozen=True, slots=True)
class Called:
    """A call that the server made. With `error` the tool failed, and `output` has the reason."""

    label: str
    name: str
    arguments: str
    output: str
    error: bool


class ToolServers:
    """The servers of a file and their tools. `open` connects to them."""

    def __init__(self, servers: Mapping[str, dict[str, Any]]) -> None:
        self._servers = servers
        self._sessions: dict[str, Any] = {}
        self._tools: dict[str, list[dict[str, Any]]] = {}

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Connects, and lists the tools.

        Raises:
            RuntimeError: a server does not answer. MissingDependency: the extra `mcp` is not installed.
        """
        async with AsyncExitStack() as stack:
            for label, server in self._servers.items():
                try:
                    async with asyncio.timeout(_SECONDS):
                        session = await stack.enter_async_context(await _client(server, stack))
                        self._tools[label] = await _all_tools(session)
                except (Exception, TimeoutError) as error:
                    if isinstance(error, ImportError):
                        raise
                    words = str(error) or type(error).__name__
                    raise RuntimeError(f"the MCP server {label!r:.80} does not answer: {words}") from error
                self._sessions[label] = session
            yield

    def expand(
        self, tools: list[dict[str, Any]] | None
    ) -> tuple[list[dict[str, Any]] | None, dict[str, Any]]:
        """Returns the tools, with functions in place of servers; and for the name of each such function its
        (label, name).

        Raises:
            ApiError: a server or a tool that is not there.
        """
        if not any(tool.get("type") in _TYPES for tool in tools or ()):
            return tools, {}
        out: list[dict[str, Any]] = []
        taken = {name_of(tool) for tool in tools or () if tool.get("type") not in _TYPES}
        remote: dict[str, tuple[str, str]] = {}
        for i, tool in enumerate(tools or ()):
            if tool.get("type") not in _TYPES:
                out.append(tool)
                continue
            label, found = self._asked(tool, i)
            for function in found:
                name = function["name"]
                called = f"{label}__{name}" if name in taken else name
                taken.add(called)
                remote[called] = (label, name)
                out.append({**function, "name": called})
        return out, remote

    def _asked(self, tool: dict[str, Any], i: int) -> tuple[str, list[dict[str, Any]]]:
        """Returns the label and the tools that one entry of a request asks for."""
        field = "server_label" if tool["type"] == "mcp" else "mcp_server_name"
        label = tool.get(field)
        if not isinstance(label, str) or label not in self._tools:
            known = ", ".join(self._tools) or "none; start the server with --mcp"
            words = f"{label!r:.80} is no MCP server here{meant(str(label), self._tools)}; known: {known}"
            raise ApiError(words, param=f"tools[{i}].{field}")
        names = [one["name"] for one in self._tools[label]]
        asked = tool.get("allowed_tools")
        asked = asked.get("tool_names") if isinstance(asked, dict) else asked
        if "configs" in tool or "default_config" in tool:
            configs, usual = tool.get("configs") or {}, tool.get("default_config") or {}
            for key, value in (("default_config", usual), ("configs", configs)):
                if not isinstance(value, dict):
                    raise ApiError(f"'{key}' of tool {i} is an object", param=f"tools[{i}].{key}")
            on = dict.fromkeys([*names, *configs], usual.get("enabled", True))
            on |= {
                n: one["enabled"] for n, one in configs.items() if isinstance(one, dict) and "enabled" in one
            }
            asked = [name for name, enabled in on.items() if enabled]
        if asked is None:
            return label, self._tools[label]
        for name in asked if isinstance(asked, list) else [asked]:
            if name not in names:
                words = f"the MCP server {label!r:.80} has no tool {name!r:.80}{meant(str(name), names)}"
                raise ApiError(words, param=f"tools[{i}].allowed_tools")
        return label, [one for one in self._tools[label] if one["name"] in asked]

    async def call(self, label: str, name: str, arguments: str) -> Called:
        """Calls a tool and returns its result. A failure is a result, too."""
        try:
            async with asyncio.timeout(_SECONDS):
                given = json.loads(arguments, strict=False)
                result = (await self._sessions[label].call_tool(name, given)).model_dump(by_alias=True)
        except Exception as error:
            log.warning("the tool %s of %s failed", name, label, exc_info=error)
            return Called(
                label, name, arguments, f"the call failed: {type(error).__name__}: {error}"[:1000], True
            )
        texts = [part["text"] for part in result.get("content") or [] if isinstance(part.get("text"), str)]
        if not texts and result.get("structuredContent") is not None:
            texts = [json.dumps(result["structuredContent"], ensure_ascii=False)]
        return Called(label, name, arguments, "\n".join(texts)[:_LONGEST], bool(result.get("isError")))


async def _client(server: dict[str, Any], stack: AsyncExitStack) -> Any:
    """Returns a client of the package `mcp` that is not connected yet."""
    try:
        from mcp import Client, StdioServerParameters
    except ImportError as error:
        raise missing(error, "tools of MCP servers") from None
    if "url" not in server:
        env = {name: os.path.expandvars(str(value)) for name, value in (server.get("env") or {}).items()}
        how = StdioServerParameters(
            command=server["command"], args=server.get("args") or [], env=env or None, cwd=server.get("cwd")
        )
        return Client(how)
    headers = {name: os.path.expandvars(str(value)) for name, value in (server.get("headers") or {}).items()}
    if server.get("type", server.get("transport")) == "sse":
        from mcp.client.sse import sse_client

        return Client(sse_client(server["url"], headers=headers))
    if not headers:
        return Client(server["url"])
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, follow_redirects=True))
    return Client(streamable_http_client(server["url"], http_client=http))


async def _all_tools(session: Any) -> list[dict[str, Any]]:
    """Returns the functions of a server, whose list may come in pages."""
    tools: list[dict[str, Any]] = []
    cursor = None
    while True:
        page = (await session.list_tools(cursor=cursor)).model_dump(by_alias=True)
        tools += [tool["function"] for tool in listed(page)]
        cursor, last = page.get("nextCursor"), cursor
        if not cursor or cursor == last:
            return tools


async def with_results(
    servers: ToolServers, wanted: Wanted, start: Callable[[Wanted], Awaitable[RequestRun]]
) -> RequestRun:
    """Returns the run of the last round, whose pieces are ready. Its `called` has the calls of the earlier
    rounds.

    Args:
        start: makes the run of one round.
    """
    called: list[Called] = []
    spent, prompt, cached = Piece(0), 0, 0
    for left in range(_ROUNDS, -1, -1):
        run = await start(wanted)
        try:
            pieces = [piece async for piece in run.pieces()]
        except BaseException:
            run.end()
            raise
        tools = wanted.tools
        assert tools is not None
        calls = run.calls("".join(piece.text for piece in pieces))
        if not calls or any(call.name not in tools.remote for call in calls):
            break
        run.end()
        prompt, cached = prompt + run.prompt_tokens, cached + run.cached_tokens
        spent.tokens += sum(piece.tokens for piece in pieces)
        spent.reasoning_tokens += sum(piece.reasoning_tokens for piece in pieces)
        known = {(one.label, one.name, one.arguments) for one in called}
        again = any((*tools.remote[call.name], call.arguments) in known for call in calls)
        if not again:
            done = await asyncio.gather(*(servers.call(*tools.remote[c.name], c.arguments) for c in calls))
            called += done
            wanted.turns.extend(_turns(calls, done, left))
        wanted = replace(wanted, tools=replace(tools, choice="none" if again or left == 1 else "auto"))
    for piece in [spent, *pieces] if called else pieces:
        run.jobs[0].pieces.put_nowait(piece)
    run.called, run.earlier = called, (prompt, cached)
    return run


def _turns(calls: list[Call], done: list[Called], number: int) -> list[Message]:
    """Returns the messages that a round adds to the conversation."""
    idents = [f"call_{number}_{i}" for i in range(len(calls))]
    made = [Message.call(ident, c.name, c.arguments) for ident, c in zip(idents, calls, strict=True)]
    answers = [
        Message(role="tool", content=one.output, tool_call_id=ident)
        for ident, one in zip(idents, done, strict=True)
    ]
    return [Message(role="assistant", content="", tool_calls=made), *answers]
