"""Turns Python types into JSON Schemas, and texts back into values of the type.

In: a pydantic model, dataclass, TypedDict, NamedTuple, Enum, Literal, Union, container type or function; or
OpenAI's ``response_format`` and ``tools``. Out: a schema document and a parser. Cost: pydantic generates a
schema; only this module imports pydantic.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

from .._extras import missing
from .._stack import roomy
from ..errors import GrammarError
from .closing import closed_parameters
from .tool_lists import listed

Parser = Callable[[str | bytes], Any]


def _schema_error() -> type[Exception]:
    from pydantic_core import SchemaError

    return SchemaError


@roomy
def schema_of(
    kind: Any, closed: bool = True, digits: int | None = None
) -> tuple[dict[str, Any] | bool, Parser]:
    """Returns the schema of a Python type (or of a list of tools) and the function that parses a text into
    it.

    Objects have no keys that their validator throws away, unless `closed` is false. A function stands for the
    arguments of a call: the parser gives them as a dict by parameter name, converted to the types of the
    signature; the function is not called. An `int` has at most `digits` digits, by default what 64 bits hold.

    Raises:
        GrammarError: not a type, or a type without a schema.
    """
    if isinstance(kind, list | tuple) and kind:
        return tools(list(kind), closed, digits)
    if isinstance(kind, list | tuple):
        raise GrammarError("an empty list is no schema: choice= and tools= take lists that hold something")
    if kind is None:  # an annotation writes None for the type of None
        kind = type(None)
    if not _is_type(kind):
        hint = "; read the file: path.read_text()" if hasattr(kind, "__fspath__") else ""
        raise GrammarError(
            f"a schema is an object, a boolean, JSON text or a Python type, not {type(kind).__name__}{hint}"
        )
    pydantic = _pydantic()
    try:
        if isinstance(kind, pydantic.TypeAdapter):
            adapter: Any = kind
        else:
            adapter = pydantic.TypeAdapter(_arguments_of(kind) if _is_function(kind) else _readable(kind))
        from . import python_values

        document = python_values.document(adapter, closed, digits)
    # pydantic's error names the package that EmailStr needs, and the command that installs it
    except ImportError as e:
        raise GrammarError(f"no JSON Schema for {_name(kind)}: {e}") from None
    except (
        pydantic.PydanticUserError,
        NameError,  # an annotation that is not defined yet
        AssertionError,  # Literal[()]
        pydantic.errors.PydanticSchemaGenerationError,
        _schema_error(),  # a pattern that Rust refuses
    ) as e:
        raise GrammarError(f"no JSON Schema for {_name(kind)}: {_reason(e)}") from None
    return document, adapter.validate_json


def unwrap_openai(
    schema: dict[str, Any], closed: bool = True, digits: int | None = None
) -> tuple[dict[str, Any] | bool, Parser | None]:
    """Returns the schema inside OpenAI's ``response_format`` or of one of its tools; any other dict
    unchanged.

    ``{"type": "json_schema", ...}`` (with or without an inner ``json_schema`` object), ``{"type":
    "json_object"}`` and ``{"type": "function", ...}`` cannot be JSON Schemas, because none of these words is
    a type. So reading them as OpenAI's objects loses nothing. The inner schema stays unchanged: ``strict``
    asks the caller to write additionalProperties and required in it.
    """
    kind = schema.get("type")
    if kind == "json_object":
        return {"type": "object"}, None
    if kind == "function":
        return tools([schema], closed, digits)
    if kind != "json_schema":
        return schema, None
    inner = schema.get("json_schema", schema)
    document = inner.get("schema") if isinstance(inner, dict) else None
    if not isinstance(document, (dict, bool)):
        raise GrammarError("response_format of type 'json_schema' has no 'schema'")
    return document, None


def tools(given: list[Any], closed: bool = True, digits: int | None = None) -> tuple[dict[str, Any], Parser]:
    """Returns a call of one of these tools: ``{"name": ..., "arguments": {...}}``.

    A tool is a Python function, OpenAI's ``{"type": "function", "function": {"name", "parameters"}}``, the
    same without the inner object, or the older ``{"name", "parameters"}``. The parser gives a dict with the
    name and the arguments (of a Python function: converted to the types of its signature). A call has the
    arguments that its function lists, unless `closed` is false.

    Raises:
        GrammarError: something else, a tool without a name, or two of one name.
    """
    branches: list[dict[str, Any]] = []
    parsers: dict[str, Parser | None] = {}
    for tool in listed(given):
        name, parameters, parse = _tool(tool, closed, digits)
        if name in parsers:
            raise GrammarError(f"two tools are called {name!r}")
        parsers[name] = parse
        branches.append(_call(name, parameters, len(branches)))
    document: dict[str, Any] = branches[0] if len(branches) == 1 else {"anyOf": branches}

    def parse_call(text: str | bytes) -> Any:
        found = _parse_json(text)
        own = parsers.get(found["name"])
        if own is not None:
            found["arguments"] = own(json.dumps(found["arguments"]))
        return found

    return document, parse_call


def parser_of_arguments(tool: Any) -> Parser:
    """Returns the parser of a call's arguments; for a Python function it gives the types of the signature."""
    return schema_of(tool)[1] if _is_function(tool) else _parse_json


def _tool(tool: Any, closed: bool, digits: int | None) -> tuple[str, Any, Parser | None]:
    if _is_function(tool):
        document, parse = schema_of(tool, closed, digits)
        return tool.__name__, document, parse
    if not isinstance(tool, dict):
        hint = "; texts to choose from are choice=" if isinstance(tool, str) else ""
        if tool is None or isinstance(tool, bool | int | float):
            hint = '; values to choose from are {"enum": [...]}, texts are choice='
        raise GrammarError(f"a tool is a function or an object with a name, not {tool!r:.60}{hint}")
    inner = tool.get("function", tool)
    name = inner.get("name") if isinstance(inner, dict) else None
    if not isinstance(name, str) or not name:
        raise GrammarError("a tool has no 'name'")
    parameters = inner.get("parameters")
    if parameters is None:
        parameters = {"type": "object", "properties": {}, "additionalProperties": False}
    if not isinstance(parameters, dict | bool):
        raise GrammarError(f"the 'parameters' of the tool {name!r} are no schema")
    return name, closed_parameters(parameters) if closed else parameters, None


def _call(name: str, parameters: Any, index: int) -> dict[str, Any]:
    """Returns the schema of one call. The parameters become a resource of their own, so that their ``#/...``
    references still lead into them."""
    if isinstance(parameters, dict) and '"#' in json.dumps(parameters) and "$id" not in parameters:
        parameters = {"$id": f"urn:structgen:tool:{index}", **parameters}
    return {
        "type": "object",
        "properties": {"name": {"const": name}, "arguments": parameters},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _arguments_of(function: Any) -> Any:
    """Returns a function of the same signature that returns its arguments by name."""
    signature = inspect.signature(function)

    def arguments(*args: Any, **kwargs: Any) -> dict[str, Any]:
        return dict(signature.bind(*args, **kwargs).arguments)

    functools.update_wrapper(arguments, function)
    # Copies hints and names. __wrapped__ would lead to a signature with `self`, so it is removed.
    vars(arguments).pop("__wrapped__")
    arguments.__signature__ = signature  # type: ignore[attr-defined]
    return arguments


def _readable(kind: Any) -> Any:
    """Returns the type as pydantic reads it: before Python 3.12 it takes a TypedDict of `typing_extensions`
    only."""
    if sys.version_info >= (3, 12) or not typing.is_typeddict(kind) or type(kind) is not type(_Plain):
        return kind
    from typing_extensions import TypedDict

    fields = typing.get_type_hints(kind, include_extras=True)
    for name, hint in fields.items():
        # __required_keys__ is not used: it was computed before string annotations were read.
        marked = typing.get_origin(hint) in (typing.Required, typing.NotRequired)
        inner = _readable(typing.get_args(hint)[0] if marked else hint)
        needed = typing.get_origin(hint) is typing.Required if marked else kind.__total__
        fields[name] = inner if needed else typing.NotRequired[inner]
    return TypedDict(kind.__name__, fields)  # type: ignore[operator]


class _Plain(typing.TypedDict):
    """A class of the kind that `typing` makes."""


def _pydantic() -> Any:
    try:
        import pydantic
    except ImportError as error:
        raise missing(error, "schemas from Python types") from None
    return pydantic


def _parse_json(text: str | bytes) -> Any:
    return json.loads(text)


def _reason(error: Exception) -> str:
    """Returns the first line of pydantic's message. If that line is incomplete, the last line, which has the
    reason, is added."""
    first, *more = str(error).splitlines()
    return f"{first} {more[-1].strip().removeprefix('error: ')}" if first.endswith(":") and more else first


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", None) or repr(kind)


def _is_function(kind: Any) -> bool:
    return isinstance(kind, types.FunctionType | types.MethodType)


def _is_type(kind: Any) -> bool:
    return (
        isinstance(kind, type | types.UnionType | types.GenericAlias | typing.NewType)
        or _is_function(kind)
        or typing.get_origin(kind) is not None
        or kind is Any
        or type(kind).__name__ in ("TypeAliasType", "TypeAdapter")
    )
