"""Whether a change of an API's schema breaks somebody: `structgen diff`, `sg.diff`.

Enters: two documents of one kind: JSON Schemas, OpenAPI 3.x descriptions, MCP tool lists. Leaves: a `Change`
for each schema in each direction. Cost: two containments for each.

A *request* is written by clients that know the old schema and read by a server with the new one, so the new
one must contain the old one. A *response* is written by the new server and read by old clients, so the old
one must contain the new one. Of `{"type": "integer"}` to `{"type": "integer", "maximum": 9}`:

    request     new contains old?   no: 10 is refused      breaking for clients that send
    response    old contains new?   yes                    safe for clients that read

Each operation of an API is compared by itself. A removed operation is breaking and has no witness. A change
that is not decided counts as undecided (`breaks` is None), never as safe. A schema of an API is compared with
the targets of its references and without the rest of its description (`_with_targets`). So a large
description costs only what its operations need.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ._checks import one_of
from ._pointers import Path, led
from ._stack import roomy
from .comparing import contains
from .errors import GrammarError
from .frontend.tool_lists import ToolError, check_names
from .keywords import rewritten
from .operands import Operand, _registry, operand

Traffic = Literal["request", "response"]
Direction = Literal["request", "response", "both"]
_TRAFFIC: tuple[Traffic, Traffic] = ("request", "response")
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one schema in one direction: of requests, or of responses.

    Attributes:
        place: the operation, or the tool; "" for a single schema.
        direction: "request" or "response".
        breaks: True if `witness` was valid and is refused now, or if the place is gone; None if not decided.
        witness: a shortest document that was valid and is refused now.
        pointer, keyword: the keyword that refuses the witness, in the reader's schema, or the malformed
            keyword.
        reason: a sentence about a removal, a malformed schema or an undecided change; else "".
    """

    place: str
    direction: Traffic
    breaks: bool | None
    witness: str | None = None
    pointer: str = ""
    keyword: str = ""
    reason: str = ""


@roomy
def diff(
    old: Any,
    new: Any,
    *,
    direction: Direction = "both",
    old_registry: Any = None,
    new_registry: Any = None,
    **options: Any,
) -> list[Change]:
    """Compares two versions of an interface.

    Args:
        old, new: both a JSON Schema (or a Python type), an OpenAPI 3.x description, or an MCP tool list
            (`{"tools": [...]}` or the list itself), as parsed JSON.
        direction: "request" asks about clients that send, "response" about clients that read, "both" about
            both. In an API and in tools each schema has a known direction. A single schema counts as both.
        old_registry, new_registry: documents that one side alone refers to. They go before `registry`, so two
            versions may name their documents alike.
        options: `draft`, `registry` and `formats`, as in `contains`.

    Returns:
        A `Change` for each schema of the old version and each direction, in the order of the old version.

    Raises:
        GrammarError: the versions are of different kinds, a description is not OpenAPI 3.x, a tool has no
        name, two tools have one name, or a single schema is malformed.
        ValueError: an unknown direction.
    """
    one_of("direction", direction, ("request", "response", "both"))
    kinds = [_kind(document) for document in (old, new)]
    if kinds[0] != kinds[1]:
        raise GrammarError(f"the old document is {kinds[0]}, the new one {kinds[1]}: give two of one kind")
    try:
        before, after = dict(_schemas(old)), dict(_schemas(new))
    except RecursionError:
        raise GrammarError("a schema of the description is nested too deeply") from None
    own = (_registry(old_registry), _registry(new_registry))
    found = []
    for (place, traffic), schema in before.items():
        if direction in (traffic, "both"):
            if (place, traffic) in after:
                found.append(_change(place, traffic, schema, after[place, traffic], own, options))
            else:  # A removed response of an API breaks no reader; a tool's removed output schema does.
                breaks = traffic == "request" or kinds[0] == "a tool list"
                found.append(Change(place, traffic, breaks, reason="it is gone"))
    return found


def _change(
    place: str,
    traffic: Traffic,
    old: Any,
    new: Any,
    own: tuple[dict[str, Any], dict[str, Any]],
    options: dict[str, Any],
) -> Change:
    try:
        sides = [
            dataclasses.replace(_side(schema, known, options), name=name)
            for schema, known, name in zip((old, new), own, ("old", "new"), strict=True)
        ]
        wide, narrow = reversed(sides) if traffic == "request" else sides
        found = contains(wide, narrow)
    except GrammarError as error:
        if not place:
            raise
        where = {"pointer": error.pointer or "", "keyword": error.keyword or ""}
        return Change(place, traffic, None, **where, reason=error.message)
    breaks = None if found.holds is None else not found.holds
    return Change(place, traffic, breaks, found.witness, found.pointer, found.keyword, found.reason)


def _side(schema: Any, known: dict[str, Any], options: dict[str, Any]) -> Operand:
    side = operand(schema, **options)
    return dataclasses.replace(side, registry={**side.registry, **known})


def _kind(document: Any) -> str:
    if isinstance(document, dict) and ("openapi" in document or "swagger" in document):
        if "swagger" in document:
            raise GrammarError(
                "a description of Swagger 2.0 is not read (key 'swagger'): turn it into OpenAPI 3"
            )
        for key in ("paths", "webhooks"):
            if not isinstance(document.get(key, {}), dict):
                raise GrammarError(f"the '{key}' of an OpenAPI description must be an object")
        whole = "paths" in document or "webhooks" in document
        return "an OpenAPI description" + ("" if whole else " without 'paths'")
    if isinstance(document, list) or (isinstance(document, dict) and isinstance(document.get("tools"), list)):
        return "a tool list"
    return "a JSON Schema"


def _schemas(document: Any) -> Iterator[tuple[tuple[str, Traffic], Any]]:
    kind = _kind(document)
    if kind == "a JSON Schema":
        for traffic in _TRAFFIC:
            yield ("", traffic), document
    elif kind == "a tool list":
        tools = document if isinstance(document, list) else document["tools"]
        for i, tool in enumerate(tools):
            if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
                raise ToolError(f"tool {i} of an MCP list is no object with a name and an inputSchema", i)
        check_names([tool["name"] for tool in tools])
        for tool in tools:
            yield (tool["name"], "request"), tool.get("inputSchema", {"type": "object"})
            if "outputSchema" in tool:
                yield (tool["name"], "response"), tool["outputSchema"]
    else:
        yield from _operations(document)


# ---- OpenAPI ----


def _operations(document: dict[str, Any]) -> Iterator[tuple[tuple[str, Traffic], Any]]:
    old = str(document["openapi"]).startswith("3.0")

    def of(schema: Any) -> Any:
        return _with_targets(document, schema, _from_openapi_30 if old else lambda node: node)

    def bodies(holder: Any) -> Iterator[tuple[str, Any]]:
        for media, content in _object(_led(document, holder).get("content")).items():
            if "json" in media:
                yield media, of(_object(content).get("schema", {}))

    if "paths" not in document and "webhooks" not in document:
        # In a description that has only schemas, both directions are possible for each of them.
        named = _object(_object(document.get("components")).get("schemas"))
        if not named:
            raise GrammarError("an OpenAPI description has neither 'paths' nor schemas to compare")
        for name, schema in named.items():
            for traffic in _TRAFFIC:
                yield (f"components/schemas/{name}", traffic), of(schema)
        return
    asked, answered = _TRAFFIC
    # The API itself sends the request of a webhook, and reads the response.
    for begin, items, sent, read in (
        ("", "paths", asked, answered),
        ("webhook ", "webhooks", answered, asked),
    ):
        for path, item in document.get(items, {}).items():
            item = _led(document, item)
            for method in _METHODS:
                operation = item.get(method)
                if not isinstance(operation, dict):
                    continue
                name = f"{begin}{method.upper()} {path}"
                parameters = [
                    held for holder in (item, operation) for held in _list(holder.get("parameters"))
                ]
                listed = {
                    (str(p.get("in")), str(p.get("name"))): p for p in (_led(document, q) for q in parameters)
                }
                body = _led(document, operation.get("requestBody", {})).get("required") is True
                yield (name, sent), of(_of_parameters(listed, body))
                for media, schema in bodies(operation.get("requestBody", {})):
                    yield (f"{name} {media}", sent), schema
                for status, response in _object(operation.get("responses")).items():
                    for media, schema in bodies(response):
                        yield (f"{name} {status} {media}", read), schema


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _with_targets(document: Any, schema: Any, read: Callable[[Any], Any]) -> Any:
    """Returns the schema with the targets of its references, which keep their places in the description."""
    whole = read(schema)
    targets: dict[Path, Any] = {}
    todo = [whole]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            todo += node.values()
            path, held = led(document, node.get("$ref")) or ((), None)
            if path and path not in targets:
                targets[path] = read(held)
                todo.append(targets[path])
        elif isinstance(node, list):
            todo += node
    if not targets:
        return whole
    out: dict[str, Any] = {"allOf": [whole]}
    for path in sorted(targets, key=len):  # A target inside another target is there already.
        if not any(path[:cut] in targets for cut in range(1, len(path))):
            _put(out, path, targets[path])
    return out


def _put(holder: dict[str, Any], path: Path, schema: Any) -> None:
    """Puts a schema at a path. A list on the path becomes an object with numbers as keys, because a JSON
    pointer reads both alike."""
    for step in path[:-1]:
        holder = holder.setdefault(str(step), {})
    holder[str(path[-1])] = schema


def _of_parameters(listed: dict[tuple[str, str], dict[str, Any]], body: bool) -> dict[str, Any]:
    """Returns the parameters as an object with a member `in:name` for each, and `body` where a body is
    required."""
    names = {key: ":".join(key) for key in listed}
    return {
        "type": "object",
        "properties": {names[key]: _of_parameter(p) for key, p in listed.items()},
        "required": [names[key] for key, p in listed.items() if p.get("required")] + ["body"] * body,
    }


def _of_parameter(parameter: dict[str, Any]) -> Any:
    """Returns the schema of a parameter: its `schema`, or the one of its JSON `content`. Other media are
    passed over."""
    media = _object(parameter.get("content"))
    held = next((_object(content) for name, content in media.items() if "json" in name), parameter)
    return held.get("schema", {})


def _led(document: Any, holder: Any) -> dict[str, Any]:
    """Returns the target of an object's reference; the object itself if it has no reference."""
    for _ in range(20):
        reference = holder.get("$ref") if isinstance(holder, dict) else None
        if not isinstance(reference, str):
            return holder if isinstance(holder, dict) else {}
        holder = (led(document, reference) or ((), None))[1]
    raise GrammarError("a reference of the OpenAPI description leads back to itself")


def _from_openapi_30(schema: Any) -> Any:
    """Returns a Schema Object of OpenAPI 3.0 as JSON Schema 2020-12: `nullable`, and bounds that a flag
    excludes."""
    if not isinstance(schema, dict):
        return schema
    out = rewritten(schema, lambda keyword, inner: _from_openapi_30(inner))
    if "$ref" in out:
        return {"$ref": out["$ref"]}
    for bound, excluded in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if out.get(excluded) is True and bound in out:
            out[excluded] = out.pop(bound)
        elif isinstance(out.get(excluded), bool):
            del out[excluded]
    if out.pop("nullable", False) is True and isinstance(out.get("type"), str):
        out["type"] = [out["type"], "null"]
    return out
