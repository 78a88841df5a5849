"""JSON pointers (RFC 6901): paths as text, and the values that they lead to.

Enters: a path, a pointer, a reference. Leaves: the text, the steps, or the place in a document. Cost: linear
in the steps.

A path is a tuple of keys and indices. `("a/b", 0)` is the pointer `/a~1b/0`. A reference into its own
document is `#` and a pointer, percent-encoded like any fragment of a URI: `#/a~1b/0`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

Path = tuple[str | int, ...]


def pointer_of(path: Iterable[str | int | None]) -> str:
    """Returns the JSON pointer of a path."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def steps_of(pointer: str) -> list[str]:
    """Returns the steps of a pointer, each as text."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def value_at(document: Any, path: Iterable[str | int]) -> Any:
    """Returns the value at a path. It raises LookupError or TypeError if the document has no such path."""
    for step in path:
        document = document[step]
    return document


def led(document: Any, reference: object) -> tuple[Path, Any] | None:
    """Returns the path and the value that a reference such as `#/$defs/a` leads to.

    Returns:
        None if the reference leads out of the document, or to no value.
    """
    if not isinstance(reference, str) or (reference != "#" and not reference.startswith("#/")):
        return None
    path: list[str | int] = []
    for name in steps_of(unquote(reference[1:])):
        step: str | int = int(name) if isinstance(document, list) and name.isdecimal() else name
        try:
            document = document[step]
        except (LookupError, TypeError):
            return None
        path.append(step)
    return tuple(path), document
