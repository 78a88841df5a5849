"""An MCP server over stdio, built with the package `mcp`. Its tools have schemas as real servers write them.

Input: MCP on standard input. Output: MCP on standard output. `LISTED` is the list of tools, for tests without
the package.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

NODE = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/Node"}}]}
# Schemas as real servers write them: `$schema` of an old draft, `default: null`, loops,
# `additionalProperties: {}`, and names with characters that other engines want rewritten.
LISTED: list[dict[str, Any]] = [
    {
        "name": "get_weather",
        "title": "Weather",
        "description": "The weather of a city",
        "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "city": {"type": "string", "title": "City"},
                "units": {"anyOf": [{"enum": ["C", "F"]}, {"type": "null"}], "default": None},
            },
            "required": ["city"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
            "required": ["city", "degrees"],
        },
    },
    {
        "name": "timers/set",
        "description": "Sets a timer",
        "inputSchema": {
            "type": "object",
            "properties": {"minutes": {"type": "integer", "minimum": 1, "maximum": 600}, "label": {}},
            "required": ["minutes"],
            "additionalProperties": False,
        },
    },
    {
        "name": 'mail "now"',
        "description": "Sends an email",
        "inputSchema": {
            "type": "object",
            "properties": {
                "to": {"type": "string", "format": "email"},
                "subject": {"type": "string", "pattern": "^[A-Z]", "maxLength": 40},
                "body": {"$ref": "#/$defs/Node"},
                "headers": {"type": "object", "additionalProperties": {}},
            },
            "required": ["to", "subject"],
            "$defs": {"Node": NODE},
        },
    },
]


def answered(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns the answer of a tool."""
    return (
        {"city": arguments["city"], "degrees": 12} if name == "get_weather" else {"done": name, **arguments}
    )


async def main() -> None:
    import mcp.types as t
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    async def tools(_: Any, asked: Any) -> t.ListToolsResult:
        # The list has two pages, as the protocol allows.
        second = asked is not None and asked.cursor == "1"
        page = LISTED[1:] if second else LISTED[:1]
        return t.ListToolsResult.model_validate({"tools": page, "nextCursor": None if second else "1"})

    async def call(_: Any, asked: t.CallToolRequestParams) -> t.CallToolResult:
        if asked.name not in {tool["name"] for tool in LISTED}:
            return t.CallToolResult.model_validate(
                {"content": [{"type": "text", "text": f"no tool {asked.name}"}], "isError": True}
            )
        found = answered(asked.name, asked.arguments or {})
        return t.CallToolResult.model_validate(
            {"content": [{"type": "text", "text": json.dumps(found)}], "structuredContent": found}
        )

    server = Server("tests", on_list_tools=tools, on_call_tool=call)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
