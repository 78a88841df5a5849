"""One training example.

Enters: nothing. Leaves: the record type all tasks produce, and the form in
which answers are written.  Cost: none worth naming.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Example:
    task: str
    text: str
    schema: dict[str, Any] | None
    # A JSON value where there is a schema; otherwise the answer text itself.
    answer: Any
    # Whether a field name stands in the schema that no training example uses.
    unseen_names: bool = False

    def answer_text(self) -> str:
        if self.schema is None:
            return str(self.answer)
        return json.dumps(self.answer, ensure_ascii=False, separators=(",", ":"))


def object_schema(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
