"""Turns pydantic's errors into sentences of this server.

Enters: pydantic's errors, each with a place and a kind. A field with several possible types gives several
errors. Leaves: at most a few places and sentences. Cost: linear in the errors.

pydantic's own messages name its types (`stop.list[str]`, "a valid dictionary"), which no client knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_SHOWN = 3
_LOOKED = 100
# A part of a place that names one of several possible types.
_TRIED = re.compile(r"(?:str|int|float|bool)$|(?:list|dict|literal|nullable|constrained-\w+|function-\w+)\[")
_WANTED = {
    "string_type": "a text",
    "string_unicode": "a text without half a surrogate pair",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:g}",
    "greater_than": "more than {gt:g}",
    "less_than": "less than {lt:g}",
    "too_short": "a list of at least {min_length}",
    "too_long": "a list of at most {max_length}",
    "string_too_long": "a text of at most {max_length} characters",
    "literal_error": "{expected}",
}


def in_words(errors: Sequence[Mapping[str, Any]]) -> list[tuple[str | None, str]]:
    """Returns the (field, sentence) pairs of the first mistakes; None as the field stands for the whole body.

    If a field may have several types, only the types that fit furthest into the value are reported.
    """
    whole = [_of_body(one) for one in errors[:1]]
    if whole and whole[0] is not None:
        return [(None, whole[0])]
    told: list[tuple[str, str]] = []  # place, sentence
    wanted: dict[str, list[str]] = {}  # place -> what may stand there
    # place -> the fields there, without the types that were tried below
    fields: dict[str, set[tuple[Any, ...]]] = {}
    for one in errors[:_LOOKED]:
        place, field = _place(one["loc"])
        words = _WANTED.get(one["type"])
        fields.setdefault(place, set()).add(field)
        if words is not None:
            choices = wanted.setdefault(place, [])
            if (choice := words.format_map(one.get("ctx", {}))) not in choices:
                choices.append(choice)
        elif one["type"] == "no_field":
            told.append((str(one["ctx"]["field"]), one["msg"]))
        elif one["type"] == "missing":
            told.append((place, f"'{place}' is missing"))
        elif one["type"] == "extra_forbidden":
            told.append((place, f"'{place}' is no field here"))
        else:
            message = one["msg"].removeprefix("Value error, ").replace(" after validation", "")
            told.append((place, message if place in message else f"{place}: {message}"))
    for place, choices in wanted.items():
        deeper = (other for other in fields if other != place and len(other) > len(place))
        if not any(fields[other] & fields[place] for other in deeper):
            told.append((place, f"'{place}' must be {' or '.join(choices)}"))
    return [(place or None, words) for place, words in told[:_SHOWN]]


def _of_body(one: Mapping[str, Any]) -> str | None:
    place = one["loc"]
    if one["type"] == "json_invalid":
        return f"the body is not JSON: {one.get('ctx', {}).get('error', one['msg'])} (character {place[-1]})"
    if len(place) <= 1 and one["type"] in ("model_attributes_type", "dict_type", "missing"):
        return "the body is a JSON object, sent with the header Content-Type: application/json"
    return None


def _place(parts: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Turns a place such as ("body", "messages", 0, "content", "str") into `messages[0].content`. Also
    returns the field: the parts before the first one that names a possible type."""
    text = ""
    field: tuple[Any, ...] | None = None
    for i, part in enumerate(parts[1:], 1):
        if isinstance(part, int):
            text += f"[{part}]"
        elif text and _TRIED.match(part):
            field = field or tuple(parts[1:i])
        else:
            text += f".{part}" if text else part
    return text[:200], tuple(parts[1:]) if field is None else field
