"""Formats the prompt on which the embedded models were trained.

Enters: a request in plain words and, where there is one, a JSON schema.
Leaves: one line of text: ``<|text|>`` request ``<|schema|>`` field list
``<|answer|>``.  The field list keeps only what a small model can use: names,
types, enum values, nesting, and `?` for "may be null".
Cost: one walk over the schema, cut off at a fixed depth and length.
"""

from __future__ import annotations

import json
from typing import Any

from ..._pointers import led

TEXT_MARK = "<|text|>"
SCHEMA_MARK = "<|schema|>"
ANSWER_MARK = "<|answer|>"
END_MARK = "<|end|>"
PAD_MARK = "<|pad|>"
MARKS = (PAD_MARK, END_MARK, TEXT_MARK, SCHEMA_MARK, ANSWER_MARK)

# The limits of a description. A longer one does not help a model with a short context.
MAX_DEPTH = 5
MAX_CHOICES = 12
MAX_DESCRIPTION = 600

_SHORT = {"integer": "int", "number": "num", "boolean": "bool", "string": "", "null": "null"}
_FORMATS = {"date": "date", "time": "time", "date-time": "datetime", "email": "email"}


def format_prompt(text: str, schema: dict[str, Any] | str | None = None) -> str:
    """Returns the text that the model continues with its answer. The schema may be JSON text."""
    if isinstance(schema, str):
        found = json.loads(schema)
        schema = found if isinstance(found, dict) else None
    clean = " ".join(_one_line(_without_marks(text)).split())
    described = "" if schema is None else _without_marks(describe(schema))
    return f"{TEXT_MARK}{clean}{SCHEMA_MARK}{described}{ANSWER_MARK}"


def describe(schema: dict[str, Any]) -> str:
    """Returns one compact line for a schema: `{customer,items[{product,quantity:int}],paid:bool?}`."""
    line = _node(schema, schema, 0)
    return line if len(line) <= MAX_DESCRIPTION else line[:MAX_DESCRIPTION] + "..."


def _one_line(text: str) -> str:
    """Joins lines, because the models read one line. A line without a punctuation mark at its end gets a
    semicolon, which separates it from the next line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ended = [line if line[-1] in ".,;:!?" else line + ";" for line in lines[:-1]]
    return " ".join(ended + lines[-1:])


def _without_marks(text: str) -> str:
    """Returns the request with its marks broken up, because a mark in the request would end the request
    part."""
    for mark in MARKS:
        text = text.replace(mark, mark.strip("<>"))
    return text


def _resolve(node: Any, root: dict[str, Any]) -> Any:
    """Follows local `$ref`s; an unknown or endless reference counts as `any value`."""
    for _ in range(8):
        if not (isinstance(node, dict) and isinstance(node.get("$ref"), str)):
            return node
        node = (led(root, node["$ref"]) or ((), None))[1]
    return {}


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _choices(values: list[str]) -> str:
    kept = values[:MAX_CHOICES]
    return "|".join(kept) + ("|..." if len(values) > len(kept) else "")


def _field(name: str, node: Any, root: dict[str, Any], depth: int) -> str:
    described = _node(node, root, depth)
    # `items[...]`, `address{...}` and `name=x` need no colon; a plain string needs nothing.
    joined = described == "" or described[0] in "[{=?"
    return name + described if joined else f"{name}:{described}"


def _node(raw: Any, root: dict[str, Any], depth: int) -> str:
    node = _resolve(raw, root)
    if not isinstance(node, dict) or depth > MAX_DEPTH:
        return "any"
    if "const" in node:
        return "=" + _plain(node["const"])
    if isinstance(node.get("enum"), list):
        values = node["enum"]
        optional = "?" if None in values else ""
        return _choices([_plain(v) for v in values if v is not None]) + optional
    for word in ("anyOf", "oneOf"):
        if isinstance(node.get(word), list):
            return _alternatives(node[word], root, depth)
    if isinstance(node.get("allOf"), list) and node["allOf"]:
        merged: dict[str, Any] = {k: v for k, v in node.items() if k != "allOf"}
        for part in node["allOf"]:
            part = _resolve(part, root)
            if isinstance(part, dict):
                given = (merged.get("properties"), part.get("properties"))
                known = {k: v for one in given if isinstance(one, dict) for k, v in one.items()}
                merged = {**merged, **part}
                if known:
                    merged["properties"] = known
        merged.pop("allOf", None)
        return _node(merged, root, depth + 1)
    kind = node.get("type")
    if isinstance(kind, list):
        rest = [k for k in kind if k != "null"]
        line = "/".join(_node({**node, "type": k}, root, depth) for k in rest)
        return line + ("?" if "null" in kind else "")
    if kind == "object" or "properties" in node:
        properties = node.get("properties")
        if not isinstance(properties, dict):
            return "{}"
        fields = (_field(k, v, root, depth + 1) for k, v in properties.items())
        return "{" + ",".join(fields) + "}"
    if kind == "array" or "items" in node:
        items = node.get("items", {})
        inner = _node(items, root, depth + 1) if items not in (True, {}) else ""
        return f"[{inner}]"
    if kind == "string":
        return _FORMATS.get(str(node.get("format", "")), "")
    return _SHORT.get(str(kind), "any")


def _alternatives(options: list[Any], root: dict[str, Any], depth: int) -> str:
    resolved = [_resolve(o, root) for o in options]
    rest = [o for o in resolved if not (isinstance(o, dict) and o.get("type") == "null")]
    line = "/".join(_node(o, root, depth + 1) for o in rest[:MAX_CHOICES])
    return line + ("?" if len(rest) < len(resolved) else "")
