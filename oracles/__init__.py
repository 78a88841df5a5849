"""What tests and developers' runs share: judges that share no code with the engine, generators of cases, laws
as checks, models that are tables, and the data directory. Nothing here imports a test or a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def closed(properties: dict[str, Any], required: Iterable[str] | None = None) -> dict[str, Any]:
    """The schema of a closed object. All its keys are required, or those that `required` names."""
    needed = list(properties if required is None else required)
    return {
        "type": "object",
        "properties": properties,
        **({"required": needed} if needed else {}),
        "additionalProperties": False,
    }
