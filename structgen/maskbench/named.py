"""Cases that are made here: long outputs and large schemas (`cases`), and a small fixed set with verdicts
(`smoke`).

Enters: a scale for the length of texts. Leaves: schema and labelled values by name. `cases` has one valid
text each; `smoke`, which stands in smoke.json, has valid and invalid values for each family of keywords and
takes a second.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Callable
from typing import Any

Built = tuple[object, list[tuple[object, bool]]]  # schema, (value, valid)


def _array_100k(scale: float) -> Built:
    """About 100,000 tokens of small integers."""
    value = list(range(int(18_500 * scale)))
    return {"type": "array", "items": {"type": "integer"}}, [(value, True)]


def _objects_array(scale: float) -> Built:
    item = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}, "ok": {"type": "boolean"}},
        "required": ["id", "name", "ok"],
        "additionalProperties": False,
    }
    value = [{"id": i, "name": f"name {i}", "ok": i % 3 == 0} for i in range(int(4000 * scale))]
    return {"type": "array", "items": item}, [(value, True)]


def _max_length_5000(scale: float) -> Built:
    text = ("All work and no play. " * 300)[: int(5000 * scale)]
    return {"type": "string", "maxLength": 5000}, [(text, True)]


def _long_string(scale: float) -> Built:
    return {"type": "string"}, [("The quick brown fox jumps over the lazy dog. " * int(1000 * scale), True)]


def _max_items_10000(scale: float) -> Built:
    value = [i % 10 for i in range(int(10_000 * scale))]
    return {"type": "array", "maxItems": 10_000, "items": {"type": "integer"}}, [(value, True)]


def _enum_2000(scale: float) -> Built:
    values = [f"value {i * 7919 % 100_003} of the list" for i in range(2000)]
    return {"type": "array", "items": {"enum": values}}, [(values[: int(200 * scale) + 1], True)]


def _object_500(scale: float) -> Built:
    names = [f"property_{i}" for i in range(500)]
    kinds = ({"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"type": "number", "minimum": 0})
    values = ("text", 12, True, 0.5)
    schema = {
        "type": "object",
        "properties": {name: kinds[i % 4] for i, name in enumerate(names)},
        "required": names[::2],
        "additionalProperties": False,
    }
    return schema, [({name: values[i % 4] for i, name in enumerate(names)}, True)]


def _one_of_50(scale: float) -> Built:
    branches = [
        {
            "type": "object",
            "properties": {
                "kind": {"const": f"kind{i}"},
                "size": {"type": "integer", "minimum": i},
                f"only{i}": {"type": "string"},
            },
            "required": ["kind", "size"],
            "additionalProperties": False,
        }
        for i in range(50)
    ]
    count = int(100 * scale) + 1
    value = [{"kind": f"kind{i % 50}", "size": i + 50, f"only{i % 50}": "x"} for i in range(count)]
    return {"type": "array", "items": {"oneOf": branches}}, [(value, True)]


def _any_of_overlapping(scale: float) -> Built:
    branches = [
        {
            "type": "object",
            "properties": {"a": {"type": "string", "maxLength": 10 + i}, f"b{i}": {"type": "integer"}},
        }
        for i in range(20)
    ]
    value = [{"a": "0123456789", f"b{i % 20}": i} for i in range(int(100 * scale) + 1)]
    return {"type": "array", "items": {"anyOf": branches}}, [(value, True)]


_NODE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "child": {"$ref": "#/$defs/node"}},
            "required": ["value"],
            "additionalProperties": False,
        }
    },
}


def _deep_recursion(scale: float) -> Built:
    value: dict[str, Any] = {"value": 0}
    for i in range(int(400 * scale)):
        value = {"value": i, "child": value}
    return _NODE, [(value, True)]


def _free_keys(scale: float) -> Built:
    """Returns a map whose keys are free: an engine that forbids duplicate keys must remember them."""
    value = {f"key number {i}": i for i in range(int(1000 * scale))}
    return {"type": "object", "additionalProperties": {"type": "integer"}}, [(value, True)]


def _patterned_keys(scale: float) -> Built:
    schema = {
        "type": "object",
        "patternProperties": {"^x-": {"type": "string"}, "^[0-9]{1,6}$": {"type": "number"}},
        "additionalProperties": False,
    }
    count = int(300 * scale)
    value = {f"x-{i}": "v" for i in range(count)} | {str(i): i / 2 for i in range(count)}
    return schema, [(value, True)]


CASES: dict[str, Callable[[float], Built]] = {
    "array of 100k tokens": _array_100k,
    "array of 4,000 objects": _objects_array,
    "maxLength 5000": _max_length_5000,
    "string of 10k tokens": _long_string,
    "maxItems 10000": _max_items_10000,
    "enum of 2,000 values": _enum_2000,
    "object of 500 properties": _object_500,
    "oneOf of 50 branches": _one_of_50,
    "anyOf of 20 overlapping": _any_of_overlapping,
    "recursion 400 deep": _deep_recursion,
    "map of 1,000 free keys": _free_keys,
    "map of 600 patterned keys": _patterned_keys,
}


def _fixed(schema: object, right: list[object], wrong: list[object]) -> Callable[[float], Built]:
    def build(_scale: float) -> Built:
        return schema, [(value, True) for value in right] + [(value, False) for value in wrong]

    return build


def _smoke() -> dict[str, Callable[[float], Built]]:
    text = (importlib.resources.files(__package__) / "smoke.json").read_text("utf-8")
    rows: dict[str, dict[str, Any]] = json.loads(text)
    return {name: _fixed(row["schema"], row["valid"], row["invalid"]) for name, row in rows.items()}


SMOKE = _smoke()
