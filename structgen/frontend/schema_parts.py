"""Questions about a JSON Schema that a walk over it asks; nothing here knows how values are written.

In: a schema as Python objects. Out: what a reference points to, the type of a value, whether two schemas
share a value. Cost: linear in what is looked at.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_HOPS = 100  # references that follow each other


def target(root: Any, reference: str) -> Any:
    """What a JSON pointer in a fragment points to. LookupError: with what is wrong with it."""
    if not reference.startswith("#") or (len(reference) > 1 and reference[1] != "/"):
        raise LookupError("leads out of the schema, or to a name")
    found = root
    for step in reference.split("/")[1:]:
        step = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        elif isinstance(found, dict) and step in found:
            found = found[step]
        else:
            raise LookupError("leads nowhere")
    return found


def type_of(value: Any) -> str:
    """The narrowest type: 1.0 is an integer."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return {int: "integer", str: "string", list: "array"}.get(type(value), "object")


def is_count(value: Any) -> bool:
    """Whether a bound is a whole number that is not negative, as JSON Schema has it: 2.0 is one."""
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool) and value >= 0


def of_value(value: Any) -> Any:
    """The schema of one value, its arrays and objects taken apart."""
    if isinstance(value, dict):
        properties = {name: of_value(inner) for name, inner in value.items()}
        return {
            "type": "object",
            "properties": properties,
            "required": list(value),
            "additionalProperties": False,
        }
    if isinstance(value, list):
        first = [of_value(inner) for inner in value]
        count = len(value)
        return {"type": "array", "prefixItems": first, "items": False, "minItems": count, "maxItems": count}
    return {"const": value}


def apart(root: Any, one: Any, other: Any) -> bool:
    """Whether surely no value is of both schemas: by their types, or by a constant that both require."""
    left, right = _plain(root, one), _plain(root, other)
    if left[0].isdisjoint(right[0]):
        return True
    if left[1] is not None and right[1] is not None:
        return left[1].isdisjoint(right[1])
    if left[0] != {"object"} or right[0] != {"object"}:
        return False
    return any(left[2][name].isdisjoint(right[2][name]) for name in left[2].keys() & right[2].keys())


def _plain(root: Any, schema: Any) -> tuple[set[str], set[str] | None, dict[str, set[str]]]:
    """The types that a schema takes, its fixed values if any, and those of its required properties."""
    for _ in range(_HOPS):
        if not isinstance(schema, dict) or "$ref" not in schema:
            break
        schema = target(root, schema["$ref"])
    if schema is False:
        return set(), None, {}
    if not isinstance(schema, dict):
        return set(TYPES), None, {}
    texts = _texts(schema)
    if texts is not None:
        return {type_of(json.loads(text)) for text in texts}, texts, {}
    said = schema.get("type", list(TYPES))
    types = set(said if isinstance(said, list) else [said])
    if types & {"integer", "number"}:
        types |= {"integer", "number"}
    properties = schema.get("properties")
    required = {}
    if isinstance(properties, dict):
        for name in schema.get("required", ()):
            fixed = _texts(properties.get(name))
            if fixed is not None:
                required[name] = fixed
    return types, None, required


def _texts(schema: Any) -> set[str] | None:
    """The fixed values of a schema as JSON, None where it has others."""
    if not isinstance(schema, dict) or not ("const" in schema or "enum" in schema):
        return None
    values = [schema["const"]] if "const" in schema else schema["enum"]
    if not isinstance(values, list):
        return None
    # 1 and 1.0 are one value
    return {json.dumps(int(v) if type_of(v) == "integer" else v, sort_keys=True) for v in values}
