"""A schema of the JSON text that a string holds, as a pattern (ECMA-262, anchored) of that text.

In: a schema document, a way to look up its definitions. Out: a pattern, or None where the schema is not told
by one. Cost: the size of the schema, definitions written out; recursion is cut.

A text in a string is a second JSON text, spelled once more. Its language is context-free; what is written
here is a regular part of it: compact texts, members in the schema's order, at most ``_DEEPEST`` definitions
inside one another. Every text of the pattern is an instance.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from . import text_patterns

Definitions = Callable[[str], Any]

_DEEPEST = 4
_LONGEST = 200_000  # characters of a pattern
_NOTES = {
    "title",
    "description",
    "$comment",
    "default",
    "examples",
    "discriminator",
    "deprecated",
    "$defs",
    "readOnly",
    "writeOnly",
    "format",
}
_CHARACTER = r'(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u00[01][0-9a-f]))'
_NUMBER = r"-?(?:0|[1-9][0-9]{0,307})(?:\.[0-9]{1,300})?"
_SCALARS = {"null": "null", "boolean": "(?:true|false)", "number": _NUMBER, "string": f'"{_CHARACTER}*"'}


# Patterns whose texts stand in a JSON string as they are: no quote, no backslash, no control character.
_SAFE = r"A-Za-z0-9 _~:/@!&',;=%#-"
_UNESCAPED = re.compile(
    rf"(?:[{_SAFE}]|\\[.+*?^()\[\]{{}}|/-]|\[(?:A-Z|a-z|A-F|a-f|[0-9]-[0-9]|[{_SAFE[:-1]}.+]|\\-)+\]"
    r"|\((?:\?[:=!])?|[)|?*+]|\{\d*,?\d*\})*"
)


class _NotTold(Exception):
    """No pattern for this part. Where it is one of several possibilities the others stand."""


def pattern(schema: Any, definition: Definitions) -> str | None:
    """The pattern of the instances' texts, or None."""
    try:
        found = text_patterns.anchored(_Writer(definition).value(schema, 0))
    except _NotTold:
        return None
    return found if len(found) <= _LONGEST else None


def anything() -> str:
    """Any JSON value, at most two levels deep."""
    return text_patterns.anchored(_any(2))


def _any(depth: int) -> str:
    scalars = "|".join(_SCALARS.values())
    if depth == 0:
        return rf"(?:{scalars}|\[\]|\{{\}})"
    inner = _any(depth - 1)
    return rf"(?:{scalars}|{_list(inner, 0, None)}|{_map(inner)})"


def _list(item: str, least: int, most: int | None) -> str:
    if most == 0:
        return r"\[\]"
    more = f"(?:,{item}){{{max(least - 1, 0)},{'' if most is None else most - 1}}}"
    return rf"\[{item}{more}\]" if least else rf"\[(?:{item}{more})?\]"


def _map(value: str) -> str:
    member = f'"{_CHARACTER}*":{value}'
    return rf"\{{(?:{member}(?:,{member})*)?\}}"


class _Writer:
    def __init__(self, definition: Definitions) -> None:
        self._definition = definition

    def value(self, schema: Any, depth: int) -> str:
        if schema is True or schema == {}:
            return _any(2 if depth == 0 else 1)
        if not isinstance(schema, dict) or depth > _DEEPEST * 8:
            raise _NotTold
        schema = {k: v for k, v in schema.items() if k not in _NOTES}
        if set(schema) == {"$ref"}:
            return self._reference(schema["$ref"], depth)
        if "const" in schema or "enum" in schema:
            if set(schema) - {"const", "enum", "type"}:
                raise _NotTold
            return self._one_of([_literal(v) for v in schema.get("enum", [schema.get("const")])])
        if "anyOf" in schema and set(schema) == {"anyOf"}:
            return self._branches(schema["anyOf"], depth)
        kind = schema.pop("type", None)
        if not schema and kind in _SCALARS:
            return _SCALARS[kind]
        if kind == "integer":
            return self._integer(schema)
        if kind == "string" and set(schema) <= {"minLength", "maxLength"}:
            most = schema.get("maxLength", "")
            return f'"{_CHARACTER}{{{schema.get("minLength", 0)},{most}}}"'
        if kind == "string" and set(schema) == {"pattern"}:
            return self._text(schema["pattern"])
        if kind == "array":
            return self._array(schema, depth)
        if kind == "object":
            return self._object(schema, depth)
        if not schema and isinstance(kind, list):
            return self._branches([{"type": k} for k in kind], depth)
        if kind is None and not schema:
            return _any(2 if depth == 0 else 1)
        raise _NotTold

    def _reference(self, pointer: str, depth: int) -> str:
        head = "#/$defs/"
        if not pointer.startswith(head) or depth > _DEEPEST:
            raise _NotTold
        return self.value(self._definition(pointer.removeprefix(head)), depth + 1)

    def _branches(self, schemas: list[Any], depth: int) -> str:
        found = []
        for schema in schemas:
            try:
                found.append(self.value(schema, depth))
            except _NotTold:
                continue
        return self._one_of(found)

    def _one_of(self, texts: list[str]) -> str:
        if not texts:
            raise _NotTold
        return f"(?:{'|'.join(texts)})"

    def _integer(self, schema: dict[str, Any]) -> str:
        if set(schema) - {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}:
            raise _NotTold
        low, high = schema.get("minimum"), schema.get("maximum")
        if "exclusiveMinimum" in schema:
            low = schema["exclusiveMinimum"] + 1
        if "exclusiveMaximum" in schema:
            high = schema["exclusiveMaximum"] - 1
        found = text_patterns.integers(low, high)
        if "$" in found or found == "(?!)":  # an end inside the pattern would be the end of the whole text
            raise _NotTold
        return found

    def _text(self, pattern: str) -> str:
        body = pattern.removeprefix("^(?:").removesuffix(")$")
        if f"^(?:{body})$" != pattern or not _UNESCAPED.fullmatch(body):
            raise _NotTold
        return f'"(?:{body})"'

    def _array(self, schema: dict[str, Any], depth: int) -> str:
        if set(schema) - {"items", "prefixItems", "minItems", "maxItems"}:
            raise _NotTold
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        first = schema.get("prefixItems")
        if first is not None:
            if least != len(first) or most != len(first):
                raise _NotTold
            return r"\[" + ",".join(self.value(s, depth + 1) for s in first) + r"\]"
        try:
            return _list(self.value(schema.get("items", True), depth + 1), least, most)
        except _NotTold:
            if least:
                raise
            return r"\[\]"

    def _object(self, schema: dict[str, Any], depth: int) -> str:
        if set(schema) - {"properties", "required", "additionalProperties"}:
            raise _NotTold
        properties = {k: v for k, v in schema.get("properties", {}).items() if v is not False}
        needed = set(schema.get("required", ()))
        if not properties and not needed:
            rest = schema.get("additionalProperties", True)
            if rest is False:
                return r"\{\}"
            try:
                return _map(self.value(rest, depth + 1))
            except _NotTold:
                return r"\{\}"
        if needed - properties.keys():
            raise _NotTold
        members: list[tuple[str, bool]] = []
        for name, value in properties.items():
            try:
                members.append((f"{_literal(name)}:{self.value(value, depth + 1)}", name in needed))
            except _NotTold:
                if name in needed:
                    raise
        after, before = "", ""
        for text, required in reversed(members):  # what may follow a member; what may come first
            before = text + after if required else f"(?:{text}{after}|{before})"
            after = f",{text}{after}" if required else f"(?:,{text})?{after}"
        return rf"\{{{before}\}}"


def _literal(value: Any) -> str:
    return text_patterns.alternatives([json.dumps(value, ensure_ascii=False, separators=(",", ":"))])
