"""Python types as JSON Schema, and texts back into the type.

In: a pydantic model, dataclass, TypedDict, Enum, Literal, Union, container type or function; or the
OpenAI ``response_format`` shape. Out: a schema document and a parser. Cost: pydantic's; it is imported
here and nowhere else.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from typing import Any

from ..errors import GrammarError

Parser = Callable[[str | bytes], Any]


def schema_of(kind: Any) -> tuple[dict[str, Any] | bool, Parser]:
    """The schema of a Python type and the function that parses a text into it.

    Raises:
        GrammarError: not a type, or a type without a schema.
    """
    if not _is_type(kind):
        raise GrammarError(
            f"a schema is an object, a boolean, JSON text or a Python type, not {type(kind).__name__}"
        )
    try:
        import pydantic
    except ImportError:
        raise GrammarError("schemas from Python types need the package 'pydantic'") from None
    try:
        adapter: Any = pydantic.TypeAdapter(kind)
        document = adapter.json_schema()
    except pydantic.PydanticUserError as e:
        raise GrammarError(f"no JSON Schema for {_name(kind)}: {str(e).splitlines()[0]}") from None
    except pydantic.errors.PydanticSchemaGenerationError as e:
        raise GrammarError(f"no JSON Schema for {_name(kind)}: {str(e).splitlines()[0]}") from None
    if isinstance(kind, (types.FunctionType, types.MethodType)):
        # An answer is the arguments of a call, not the call's result.
        return document, _parse_json
    return document, adapter.validate_json


def unwrap_response_format(schema: dict[str, Any]) -> dict[str, Any] | bool:
    """The schema inside OpenAI's ``response_format``; any other dict unchanged.

    ``{"type": "json_schema", ...}`` and ``{"type": "json_object"}`` are no JSON Schemas, because neither
    word is a type, so nothing is lost by reading them as what they are.
    """
    kind = schema.get("type")
    if kind == "json_object":
        return {"type": "object"}
    if kind != "json_schema":
        return schema
    inner = schema.get("json_schema", schema)
    document = inner.get("schema") if isinstance(inner, dict) else None
    if not isinstance(document, (dict, bool)):
        raise GrammarError("response_format of type 'json_schema' has no 'schema'")
    return document


def _parse_json(text: str | bytes) -> Any:
    import json

    return json.loads(text)


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", None) or repr(kind)


def _is_type(kind: Any) -> bool:
    return (
        isinstance(kind, (type, types.FunctionType, types.MethodType, types.UnionType, types.GenericAlias))
        or typing.get_origin(kind) is not None
        or kind is Any
    )
