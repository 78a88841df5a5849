"""Turns a list of tools in any spelling into OpenAI's objects.

In: OpenAI's functions and custom tools, functions of Python, the result of an MCP client's ``tools/list``,
Anthropic's tools. Out: OpenAI's objects of functions, and functions of Python as they are. Cost: one pass;
schemas are neither copied nor looked at.

The package `mcp` is not imported: its objects are read by ``model_dump``. Nothing of a schema is rewritten.
A custom tool, which takes a text, is a function of one text (`INPUT`); a Lark grammar of the text stands
beside it (`LARK`).
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Mapping, Sequence
from typing import Any

from .._stack import roomy
from ..errors import GrammarError

# What MCP's JSON and Anthropic's interface call the parameters of a function, in place of `parameters`; the
# package `mcp` has the second name for its attribute.
_INPUTS = ("inputSchema", "input_schema")


class ToolError(GrammarError):
    """A malformed tool; `place` is the field at fault, as in ``tools[2].name``."""

    def __init__(self, message: str, i: int | None = None, field: str = "") -> None:
        super().__init__(message)
        self.place: str = "tools" if i is None else f"tools[{i}]{field and '.'}{field}"


def listed(tools: Any) -> list[Any]:
    """Returns tools as a list of OpenAI's objects and functions of Python.

    Args:
        tools: such a list; or the result of an MCP client's ``tools/list``, its tools, or the JSON of either:
            ``{"tools": [{"name", "description", "inputSchema"}, ...]}``. Objects are read by ``model_dump``.
            OpenAI's custom tools become functions of one text, ``input``.

    Raises:
        ToolError: something else, or a tool that has its parameters twice.
    """
    tools = _plain(tools)
    if isinstance(tools, Mapping) and isinstance(tools.get("tools"), Sequence):
        tools = tools["tools"]
    if isinstance(tools, str | bytes) or not isinstance(tools, Sequence):
        raise ToolError(
            f"tools are a list, or what an MCP client lists ({{'tools': [...]}}), not {tools!r:.60}"
        )
    return [_openai(_plain(tool), i) for i, tool in enumerate(tools)]


def _plain(value: Any) -> Any:
    """Returns an object of pydantic as its JSON; another value as it is."""
    return value.model_dump(by_alias=True) if hasattr(value, "model_dump") and not callable(value) else value


def _openai(tool: Any, i: int) -> Any:
    if not isinstance(tool, dict) or "function" in tool:
        return tool
    if not any(name in tool for name in _INPUTS):
        return _custom(tool.get("custom", tool), i) if tool.get("type") == "custom" else tool
    given = [name for name in ("parameters", *_INPUTS) if tool.get(name) is not None]
    if len(given) > 1:
        raise ToolError(f"tool {i} has '{given[0]}' and '{given[1]}': leave one out", i, given[1])
    schema = tool[given[0]] if given else None
    if isinstance(schema, dict) and "type" not in schema:
        schema = {"type": "object", **schema}  # the protocol passes arguments by name
    elif (
        isinstance(schema, dict) and isinstance(schema["type"], str | list) and "object" not in schema["type"]
    ):
        words = f"tool {i} has arguments of type {schema['type']!r:.60}, and a call passes them by name"
        raise ToolError(f"{words}: give a schema of an object", i, given[0])
    about = tool.get("description") or tool.get("title")
    return _described(tool.get("name"), schema, about, tool.get("strict"))


def _described(name: Any, parameters: Any, about: Any, strict: Any) -> dict[str, Any]:
    more = {k: v for k, v in {"description": about, "strict": strict}.items() if v}
    return {"type": "function", "function": {"name": name, "parameters": parameters, **more}}


# The name of a custom tool's text among arguments, and the keyword that holds the Lark grammar of the text.
INPUT, LARK = "input", "x-structgen-lark"

# A field of a structural tag's schema: whose schema it is, for the message of an error.
NAMED = "x-structgen-named"


def _custom(tool: Any, i: int) -> dict[str, Any]:
    """Returns a custom tool of OpenAI: its input is a text, free or of a grammar."""
    if not isinstance(tool, dict):
        raise ToolError(f"tool {i} is no object with a name and a format", i, "custom")
    form = tool.get("format") or {"type": "text"}
    kind = form.get("type") if isinstance(form, dict) else None
    text: dict[str, Any] = {"type": "string"}
    if kind == "grammar":
        grammar = form.get("grammar", form)
        syntax, definition = (
            (grammar.get("syntax"), grammar.get("definition")) if isinstance(grammar, dict) else (None, None)
        )
        if syntax not in ("lark", "regex") or not isinstance(definition, str):
            words = "has a 'definition', a text, and a 'syntax', 'lark' or 'regex'"
            raise ToolError(f"the grammar of tool {i} {words}", i, "format")
        text |= {LARK: definition} if syntax == "lark" else {"pattern": f"^(?:{definition})$"}
    elif kind != "text":
        raise ToolError(f"the format of tool {i} is 'text' or 'grammar', not {kind!r:.60}", i, "format")
    schema = {
        "type": "object",
        "properties": {INPUT: text},
        "required": [INPUT],
        "additionalProperties": False,
    }
    # The caller asked for this text, so the tool is strict whatever the strictness of others is.
    return _described(tool.get("name"), schema, tool.get("description"), True)


def name_of(tool: Any) -> str | None:
    """Returns the name in a tool or a choice, which stands in an object of its type or beside it."""
    inner = tool.get("function", tool.get("custom", tool)) if isinstance(tool, dict) else None
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) else None


@roomy
def identity(*request: Any) -> bytes | None:
    """Returns bytes that two requests share only if they are equal; None if a request has values outside
    JSON.

    Computing these bytes takes a third of the time of writing the request as JSON, and a tenth of the time of
    a compile.
    """
    try:
        return hashlib.sha256(
            marshal.dumps(request, 2)
        ).digest()  # version 2 of marshal writes no references, so equal data give equal bytes
    except ValueError:
        return None


def check_names(names: Sequence[str]) -> None:
    """Raises a ToolError if two tools have the same name."""
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        if (other := first.setdefault(name, i)) != i:
            words = f"tools {other} and {i} have the same name, {name!r:.80}: rename one of them"
            raise ToolError(words, i, "name")
