"""Closes a schema: its objects get only the members that the schema names.

In: a schema document. Out: a narrower schema document. Cost: linear in the document.

Without such keywords JSON Schema allows any further keys in an object, and a model may add keys of its own.
Closing adds ``additionalProperties: false``, or ``unevaluatedProperties: false`` beside ``allOf`` and its
like, wherever a schema applies to a value as a whole: at the root, to the value of a member, to an item, to
what a string holds; not in the branches of ``allOf``, ``anyOf``, ``oneOf`` or behind ``$ref``, whose
``properties`` count together. An object is closed if its schemas have ``properties``, also empty ones, or
``patternProperties``. Members that these and ``additionalProperties`` allow stay allowed. Names in
``required`` or ``dependentRequired`` count as named.

Narrowing a part of a schema narrows the whole, but not under ``not``, ``if``, ``oneOf`` and ``maxContains``.
Also, the schema's own ``unevaluatedProperties`` does not see names that count as named. In these cases the
result is the conjunction of the schema and its closed copy, so every text of the result is a text of the
schema.
"""

from __future__ import annotations

import decimal
import json
import math
from typing import Any

from .._pointers import led
from ..errors import GrammarError
from ..keywords import inner_schemas, rewritten

Document = dict[str, Any]

_BRANCHES = ("allOf", "anyOf", "oneOf")
# Keywords whose schemas apply to the value itself or are referred to: they are closed where they apply.
_PLACES = (*_BRANCHES, "then", "else", "$defs", "definitions", "dependentSchemas")
# Keywords whose schemas stay as they are. All other schemas describe members and items, and are closed.
_KEPT = ("not", "if", "propertyNames", "dependencies")
_TURNING = {"not", "if", "oneOf", "maxContains", "$dynamicRef", "$recursiveRef", "unevaluatedProperties"}
_OLD = ("draft-03", "draft-04", "draft-06", "draft-07")
# Keywords whose schemas apply to the same value beside others. Without these, `additionalProperties` is
# enough to close an object.
_BESIDE = {*_BRANCHES, "$ref", "$dynamicRef", "$recursiveRef", "if", "dependentSchemas", "dependencies"}
# Keywords whose schemas apply to the same value and may name members.
_IN_PLACE = {*_BRANCHES, "then", "else", "if", "dependentSchemas"}


def closed(document: Any, draft: int = 0) -> Any:
    """Returns the document with its objects closed.

    Args:
        draft: 4, 6, 7, 2019 or 2020; 0: what ``$schema`` says.

    Raises:
        GrammarError: ``unevaluatedProperties`` is needed, and the draft is older than 2019-09.
    """
    if not isinstance(document, dict):
        return document
    old = 0 < draft < 2019 or (not draft and any(name in str(document.get("$schema")) for name in _OLD))
    closer = _Closer(document, old)
    copy = closer.child(document)
    if not closer.turning:
        return copy
    copy = {k: v for k, v in copy.items() if k != "$schema"}
    own = {k: v for k, v in document.items() if k != "$schema"}
    both: Document = {
        "allOf": [{"$id": "urn:structgen:open", **own}, {**copy, "$id": "urn:structgen:closed"}]
    }
    return {"$schema": document["$schema"], **both} if "$schema" in document else both


def closed_parameters(document: Any) -> Any:
    """Returns the parameters of a function, closed: a call has only the listed parameters. If their draft
    cannot close them, they stay open."""
    try:
        return closed(document)
    except (GrammarError, RecursionError):
        return document


class _Closer:
    def __init__(self, root: Document, old: bool) -> None:
        self._root = root
        self._old = old
        self.turning = False

    def child(self, schema: Any) -> Any:
        """Closes a schema that applies to a whole value."""
        if not isinstance(schema, dict):
            return schema
        out = self.place(schema)
        if "unevaluatedProperties" in schema or not self._names(schema, set()):
            return out
        if _BESIDE.isdisjoint(out):
            out.setdefault("additionalProperties", False)
        elif self._old:
            raise GrammarError(
                "extra_keys='forbid' beside $ref, allOf and their like needs draft 2019-09 or later: older "
                "drafts have no unevaluatedProperties"
            )
        else:
            out["unevaluatedProperties"] = False
        return out

    def place(self, schema: Any) -> Any:
        """Closes inside a schema that applies beside others to the same value."""
        if not isinstance(schema, dict):
            return schema
        self.turning = self.turning or not _TURNING.isdisjoint(schema)
        out: Document = rewritten(schema, self._inner)
        # The listed names get a schema beside the others, because `additionalProperties` must still see them.
        listed = schema.get("properties")
        known = listed if isinstance(listed, dict) else {}
        more = {name: True for name in _asked_for(schema) if name not in known}
        held = out.get("allOf", [])
        if more and isinstance(held, list):
            out["allOf"] = [*held, {"properties": more}]
        return out

    def _inner(self, keyword: str, schema: Any) -> Any:
        if keyword in _KEPT:
            return schema
        return self.place(schema) if keyword in _PLACES else self.child(schema)

    def _names(self, schema: Any, seen: set[str]) -> bool:
        """Returns whether a schema, or one in its place, names a member."""
        if not isinstance(schema, dict):
            return False
        if isinstance(schema.get("properties"), dict) or schema.get("patternProperties"):
            return True
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in seen:
            seen.add(reference)
            found = led(self._root, reference)
            # The names of another document are not known here.
            if found is not None and self._names(found[1], seen):
                return True
        return not _IN_PLACE.isdisjoint(schema) and any(
            self._names(part, seen) for keyword, _, part in inner_schemas(schema) if keyword in _IN_PLACE
        )


def _asked_for(schema: Document) -> list[str]:
    """Returns the names that a schema's `required` and `dependentRequired` may ask for."""
    lists = [schema.get("required")]
    dependent = schema.get("dependentRequired")
    lists += dependent.values() if isinstance(dependent, dict) else []
    return [name for names in lists if isinstance(names, list) for name in names if isinstance(name, str)]


def closed_text(text: str, draft: int = 0) -> str:
    """`closed` for a schema's JSON text. A text that is no JSON is returned as it is; the compile refuses it.

    Raises:
        GrammarError: as `closed`; a double cannot keep a number; the schema is nested too deeply.
    """
    try:
        document = json.loads(text, parse_float=_kept)
        return json.dumps(closed(document, draft), allow_nan=False)
    except RecursionError:
        raise GrammarError("the schema is nested too deep for extra_keys='forbid'") from None
    except ValueError as error:
        if isinstance(error, GrammarError):
            raise
        return text


def _kept(number: str) -> float:
    out = float(number)
    if not math.isfinite(out) or decimal.Decimal(repr(out)) != decimal.Decimal(number):
        raise GrammarError(f"the number {number[:40]} has more digits than extra_keys='forbid' keeps")
    return out
