"""Reads the documents that a schema refers to by file names: from the schema's folder or from a named folder.

Enters: a file. Leaves: documents by URI, as `Compiler.json_schema(registry=)` takes them. Cost: each file is
read once. Nothing comes from the network, and nothing from outside the schema's folder.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_FILES = 1000  # the most files that one schema or folder may name


def beside(path: str | os.PathLike[str], text: str) -> dict[str, Any]:
    """Returns the documents that a schema file names with relative references, and the documents that those
    name.

    Args:
        text: the text of the file.

    Raises:
        ValueError: a document is not JSON. The message names the document.
    """
    folder = Path(path).resolve().parent
    found: dict[str, Any] = {}
    if '"$ref"' not in text and '"$dynamicRef"' not in text:
        return found
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return found  # The compiler will refuse the text, and its error names the place.
    queue: list[tuple[str, Path, Any]] = [(_base(document, ""), Path(path).resolve(), document)]
    while queue and len(found) < _FILES:
        base, file, document = queue.pop()
        for reference in _references(document):
            name = unquote(urldefrag(reference)[0])
            uri = urljoin(base, urldefrag(reference)[0])
            if not name or uri in found or _SCHEME.match(name):
                continue
            target = (file.parent / name).resolve()
            if not target.is_relative_to(folder) or not target.is_file():
                continue
            found[uri] = _read(target)
            queue.append((_base(found[uri], uri), target, found[uri]))
    return found


def in_folder(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the JSON documents of a file or a folder, by their `$id` and by their names in the folder."""
    root = Path(path)
    files = sorted(root.rglob("*.json"))[:_FILES] if root.is_dir() else [root]
    found: dict[str, Any] = {}
    for file in files:
        document = _read(file)
        found[file.relative_to(root).as_posix() if root.is_dir() else file.name] = document
        if isinstance(document, dict) and isinstance(document.get("$id"), str):
            found[urldefrag(document["$id"])[0]] = document
    return found


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file}: invalid JSON: {error}") from None


def _base(document: Any, uri: str) -> str:
    own = document.get("$id") if isinstance(document, dict) else None
    return urljoin(uri, own) if isinstance(own, str) else uri


def _references(document: Any) -> Iterator[str]:
    """Returns the values of `$ref` and `$dynamicRef`; no recursion, because a document may be nested
    deeply."""
    todo = [document]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            for key, value in node.items():
                if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                    yield value
                else:
                    todo.append(value)
        elif isinstance(node, list):
            todo += node
