"""Reads the value of an unfinished text, as far as it is known.

Enters: the beginning of a JSON text, and the Python type of the whole, if there is one. Leaves: the members
and items that are certain. Cost: linear in the text, each time; no recursion over the text.

A number, `true` or a key at the end of the text may continue, so it is left out. A string at the end becomes
an `IncompleteString`. A missing field of a type is None.
"""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Callable
from typing import Any

from .._json_scan import Scan

_WORDS = {"true": True, "false": False, "null": None}
# The beginning of an escape at the end of a string, or half of a pair of surrogates.
_LOOSE_END = re.compile(
    r"(?:\\u[dD][89abAB][0-9a-fA-F]{2})?\\(?:u[0-9a-fA-F]{0,3})?\Z|\\u[dD][89abAB][0-9a-fA-F]{2}\Z"
)


class IncompleteString(str):
    """A string that is not finished."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{str.__repr__(self)[:-1]}...{str.__repr__(self)[-1]}"


class _OpenDict(dict[str, Any]):
    """An unfinished object."""


class _OpenList(list[Any]):
    """An unfinished array."""


class Unknown:
    """The value of a text of which no part is certain yet."""


def partial_json(text: str) -> Any:
    """Returns the value of the beginning of a JSON text; `Unknown` where nothing is certain."""
    top: Any = Unknown
    open_: list[Any] = []
    scan = Scan(text)

    def put(value: Any) -> None:
        nonlocal top
        if not open_:
            top = value
        elif isinstance(open_[-1], dict):
            open_[-1][scan.path[-1]] = value
        else:
            open_[-1].append(value)

    for part in scan:
        if part.kind == "open":
            fresh: Any = _OpenDict() if part.text == "{" else _OpenList()
            put(fresh)
            open_.append(fresh)
        elif part.kind == "close":
            done = open_.pop()
            plain: Any = dict(done) if isinstance(done, dict) else list(done)
            if open_ and isinstance(open_[-1], list):
                open_[-1][-1] = plain
            else:
                put(plain)
        elif part.kind == "string":
            put(part.text if part.whole else IncompleteString(_beginning(part.text)))
        elif part.kind == "word" and part.text in _WORDS:
            put(_WORDS[part.text])
        elif part.kind == "word" and part.whole:
            try:
                put(json.loads(part.text))
            except ValueError:  # the text is not JSON
                break
    return top


def partial_arguments(text: str) -> dict[str, Any]:
    """Returns the arguments of a call as far as they are known."""
    value = partial_json(text)
    return plain(value) if isinstance(value, dict) else {}


def plain(value: Any) -> Any:
    """Returns a partial value of ordinary dicts and lists."""
    if isinstance(value, _OpenDict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, _OpenList) else value


def _beginning(body: str) -> str:
    """Returns the characters of a string that breaks off."""
    body = _loose(body)
    try:
        return str(json.loads(f'"{body}"', strict=False))
    except ValueError:
        return body


def _loose(body: str) -> str:
    """Returns the body without an escape that breaks off. An even number of backslashes is whole."""
    found = _LOOSE_END.search(body)
    if found is None:
        return body
    run = len(body[: found.start()]) - len(body[: found.start()].rstrip("\\"))
    return body if run % 2 else body[: found.start()]


# ---- types ----


def typed(kind: Any) -> Callable[[Any], Any]:
    """Returns a function that turns a partial value into a partial value of the type.

    Models and dataclasses are made without validation, and their unknown fields are None. Finished parts are
    validated; a part that fails stays plain.
    """
    known: dict[Any, Any] = {}

    def adapter(part: Any) -> Any:
        from pydantic import TypeAdapter

        try:
            if part not in known:
                known[part] = TypeAdapter(part)
            return known[part]
        except TypeError:  # the type cannot be a key of the cache
            return TypeAdapter(part)

    def whole(part: Any, value: Any) -> Any:
        try:
            return adapter(part).validate_json(json.dumps(value))
        except Exception:
            return value

    def make(part: Any, value: Any) -> Any:
        if not isinstance(value, _OpenDict | _OpenList):
            return value if isinstance(value, IncompleteString) else whole(part, value)
        part = _plain(part, value)
        origin, args = typing.get_origin(part), typing.get_args(part)
        if isinstance(value, _OpenList):
            if _is_tuple(part):
                hints = list(typing.get_type_hints(part).values())
                found = [make(hint, item) for hint, item in zip(hints, value, strict=False)]
                return part._make(found + [None] * (len(hints) - len(found)))
            if origin is tuple and Ellipsis not in args:
                return [make(args[i] if i < len(args) else Any, item) for i, item in enumerate(value)]
            return [make(args[0] if args else Any, item) for item in value]
        fields = _fields(part)
        if fields is None:
            item_type = args[1] if len(args) == 2 else Any
            return {key: make(item_type, item) for key, item in value.items()}
        found_fields = {
            name: make(hint, value[alias]) for name, (alias, hint) in fields.items() if alias in value
        }
        if typing.is_typeddict(part):
            return found_fields
        return _built(part, {name: found_fields.get(name) for name in fields}, set(found_fields))

    return lambda value: make(kind, value)


def _plain(kind: Any, value: Any) -> Any:
    """Returns the type without Annotated, aliases and the branches of a union that the value cannot be of."""
    while True:
        if type(kind).__name__ == "TypeAliasType":
            kind = kind.__value__
        elif typing.get_origin(kind) is typing.Annotated:
            kind = typing.get_args(kind)[0]
        elif typing.get_origin(kind) in (typing.Union, types.UnionType):
            branches = typing.get_args(kind)
            kind = next((b for b in branches if _fits(_plain(b, value), value)), Any)
        else:
            return kind


def _fits(kind: Any, value: Any) -> bool:
    """Returns whether a partial value can still become a value of the type."""
    origin = typing.get_origin(kind) or kind
    if isinstance(value, list):
        return origin in (list, set, frozenset, tuple) or _is_tuple(kind)
    fields = _fields(kind)
    if fields is None:
        return origin is dict
    by_alias = dict(fields.values())
    for key, item in value.items():
        hint = by_alias.get(key)
        if key not in by_alias:
            return False
        is_known = typing.get_origin(hint) is typing.Literal and not isinstance(item, IncompleteString)
        if is_known and item not in typing.get_args(hint):
            return False
    return True


def _is_tuple(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _fields(kind: Any) -> dict[str, tuple[str, Any]] | None:
    """Returns a dict of name -> (key in JSON, type) of a model, a dataclass or a TypedDict; None for other
    types."""
    if not isinstance(kind, type):
        return None
    fields = getattr(kind, "model_fields", None)
    if isinstance(fields, dict):
        found = {}
        for name, field in fields.items():
            alias = field.validation_alias or field.alias
            found[name] = (alias if isinstance(alias, str) else name, field.annotation)
        return found
    if dataclasses.is_dataclass(kind) or typing.is_typeddict(kind):
        return {name: (name, hint) for name, hint in typing.get_type_hints(kind).items()}
    return None


def _built(kind: Any, values: dict[str, Any], given: set[str]) -> Any:
    if hasattr(kind, "model_construct"):
        return kind.model_construct(given, **values)
    made = object.__new__(kind)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made
