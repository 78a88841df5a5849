"""The metaschemas of drafts 4 to 2020-12, so that references to them resolve without a registry.

In: nothing. Out: (URI, JSON text) of each. Cost: one read of the file, on first use.
documents.json holds the schemas as published at json-schema.org, taken from the PyPI package
jsonschema-specifications (MIT licence).
"""

from __future__ import annotations

import functools
import json
from pathlib import Path


@functools.cache
def documents() -> list[tuple[str, str]]:
    text = (Path(__file__).parent / "documents.json").read_text(encoding="utf-8")
    return [(uri, json.dumps(schema)) for uri, schema in json.loads(text).items()]
