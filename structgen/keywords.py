"""The keywords of JSON Schema, read from the core. csrc/schema/read/dialect.cc is the only list of them.

In: nothing, or a schema. Out: names, and the schemas directly inside a schema. Cost: one call of the core, at
import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import _core
from ._pointers import Path

_ROWS = _core.keywords()
KNOWN = tuple(name for name, *_ in _ROWS)
ASSERTING = tuple(name for name, _, asserts, _ in _ROWS if asserts)  # can make a value invalid
# keyword -> the only type of values that it can make invalid
ABOUT = {name: about for name, about, asserts, _ in _ROWS if asserts and about != "any"}
# keyword -> the place of schemas in its value, in the words of _core.keywords()
HOLDS = {name: schemas for name, _, _, schemas in _ROWS if schemas}


def inner_schemas(schema: dict[str, Any]) -> Iterator[tuple[str, str | int | None, Any]]:
    """Returns the schemas directly inside a schema, each with its keyword, and its name or number below the
    keyword."""
    for keyword, held in schema.items():
        how = HOLDS.get(keyword)
        if how in ("map", "mixed"):
            for name, inner in held.items() if isinstance(held, dict) else ():
                yield keyword, name, inner
        elif how in ("list", "either") and isinstance(held, list):
            for i, inner in enumerate(held):
                yield keyword, i, inner
        elif how in ("schema", "either"):
            yield keyword, None, held


def schemas_in(schema: Any, path: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Returns every schema in a schema that is an object, itself included, with its path."""
    if isinstance(schema, dict):
        yield path, schema
        for keyword, step, inner in inner_schemas(schema):
            yield from schemas_in(inner, (*path, keyword) if step is None else (*path, keyword, step))


def rewritten(schema: dict[str, Any], put: Callable[[str, Any], Any]) -> dict[str, Any]:
    """Returns a copy of a schema with ``put(keyword, inner)`` in place of each schema directly inside it.
    `inner` need not be a schema: it may be a list of names in ``dependencies``, or a text."""
    out = dict(schema)
    for keyword, step, inner in inner_schemas(schema):
        if step is None:
            out[keyword] = put(keyword, inner)
            continue
        if out[keyword] is schema[keyword]:
            out[keyword] = schema[keyword].copy()
        out[keyword][step] = put(keyword, inner)
    return out
