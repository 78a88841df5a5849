"""Shared by tests and developers' runs: judges that share no code with the engine, generators of cases, laws
as checks, models that are tables, and the data directory. No module here imports a test or a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def closed(properties: dict[str, Any], required: Iterable[str] | None = None) -> dict[str, Any]:
    """Returns the schema of a closed object. By default all keys are required; `required` names others."""
    needed = list(properties if required is None else required)
    return {
        "type": "object",
        "properties": properties,
        **({"required": needed} if needed else {}),
        "additionalProperties": False,
    }
