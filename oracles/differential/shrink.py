"""Shrinks a finding: first the schema, then the text.

Input: a schema, a text and a predicate. Output: a smaller schema and text for which the predicate still
holds. The method is greedy: it drops members and elements, and replaces subschemas by their parts, until
nothing can be removed. Time: a few hundred calls of the predicate.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

Holds = Callable[[Any, str], bool]


def smaller(value: Any) -> Iterator[Any]:
    """Yields the value with one part removed, large parts first."""
    if isinstance(value, dict):
        for key in value:
            yield {k: v for k, v in value.items() if k != key}
        for held in value.values():
            if isinstance(held, dict):
                yield held
            if isinstance(held, list):
                yield from (v for v in held if isinstance(v, dict))
        for key, held in value.items():
            for less in smaller(held):
                yield {**value, key: less}
    elif isinstance(value, list):
        for i in range(len(value)):
            yield value[:i] + value[i + 1 :]
        for i, held in enumerate(value):
            for less in smaller(held):
                yield [*value[:i], less, *value[i + 1 :]]
    elif isinstance(value, str) and len(value) > 1:
        yield value[: len(value) // 2]
        yield value[1:]
    elif isinstance(value, int | float) and not isinstance(value, bool) and value not in (0, 1):
        yield 0
        yield 1
    elif value is not True and value is not None and not isinstance(value, str):
        yield True


def shrunk(schema: Any, text: str, holds: Holds, tries: int = 4000) -> tuple[Any, str]:
    """Returns the smallest schema and text found. A JSON text is shrunk as a value, and the predicate decides
    on the new value's text."""

    def reduced(value: Any, still: Callable[[Any], bool]) -> Any:
        nonlocal tries
        again = True
        while again and tries > 0:
            again = False
            for less in smaller(value):
                tries -= 1
                if tries <= 0:
                    break
                if still(less):
                    value, again = less, True
                    break
        return value

    schema = reduced(schema, lambda s: holds(s, text))
    try:
        value = json.loads(text)
    except ValueError:
        return schema, text
    if holds(schema, json.dumps(value)):
        value = reduced(value, lambda v: holds(schema, json.dumps(v)))
        text = json.dumps(value)
    return reduced(schema, lambda s: holds(s, text)), text
