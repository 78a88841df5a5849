"""Slow oracles, which share no code with the engine.

naive_mask       which tokens a matcher takes: fork and accept, one token at a time
JsonOracle       is this text an instance of this schema? Python's json + jsonschema, mended where
                 jsonschema is inexact: decimals, uniqueItems, 1.0 as an integer, lax formats
regex_matches    Python's `re`, for the common part of its syntax and ours
"""

from __future__ import annotations

import ipaddress
import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import jsonschema
import numpy as np
import referencing

# ---- masks -------------------------------------------------------------------------------------


def words(vocab_size: int) -> int:
    return (vocab_size + 31) // 32


def fresh_mask(vocab_size: int, rows: int = 1) -> np.ndarray:
    """Returns a mask filled with garbage, so the tests notice words that the engine does not write."""
    return np.full((rows, words(vocab_size)), 0x5A5A5A5A, dtype=np.int32)


def bits(mask: np.ndarray, vocab_size: int, row: int = 0) -> np.ndarray:
    """Returns the mask's row as booleans by token id. The bits behind the vocabulary must be 0."""
    unpacked = np.unpackbits(mask[row].view(np.uint8), bitorder="little").astype(bool)
    assert not unpacked[vocab_size:].any(), "padding ids allowed"
    return unpacked[:vocab_size]


def mask_of(matcher: Any, vocab_size: int, max_tokens: int | None = None) -> np.ndarray:
    mask = fresh_mask(vocab_size)
    if max_tokens is None:
        matcher.fill_bitmask(mask, 0)
    else:
        matcher.fill_bitmask(mask, 0, max_tokens=max_tokens)
    return bits(mask, vocab_size)


def naive_mask(matcher: Any, vocab_size: int) -> np.ndarray:
    return np.array([matcher.fork().accept_token(t) for t in range(vocab_size)], dtype=bool)


# ---- regular expressions -----------------------------------------------------------------------


def regex_matches(pattern: str, text: str) -> bool:
    """Returns whether a pattern matches the whole text."""
    return re.fullmatch(pattern, text) is not None


# ---- JSON Schema -------------------------------------------------------------------------------


class Duplicate(ValueError):
    """An object has a repeated key."""


class _NotJson(ValueError):
    """Python's reader accepts NaN and Infinity; JSON does not have them."""


def _object(pairs: list[tuple[str, Any]]) -> dict:
    if len({key for key, _ in pairs}) != len(pairs):
        raise Duplicate(f"a key twice in {[key for key, _ in pairs]}")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise _NotJson(name)


class Fractional(int):
    """A whole number written with a fraction or an exponent, which is no integer in draft 4."""


def _number(text: str) -> Decimal | int:
    value = Decimal(text)
    if value != value.to_integral_value():
        return value
    return Fractional(value.as_integer_ratio()[0])  # int(1e1000000) takes half a minute, this takes 0.2 s


def loads(text: str) -> Any:
    """Reads JSON with exact numbers (1.0 and 1e0 are the integer 1). Raises for a repeated key."""
    return json.loads(text, parse_float=_number, object_pairs_hook=_object, parse_constant=_no_constant)


def canonical(value: Any) -> Any:
    """Returns a hashable form of a JSON value. Two forms are equal exactly if the values are equal."""
    if isinstance(value, dict):
        return ("object", frozenset((k, canonical(v)) for k, v in value.items()))
    if isinstance(value, list):
        return ("array", tuple(canonical(v) for v in value))
    if isinstance(value, bool) or value is None:
        return ("constant", value)
    if isinstance(value, str):
        return ("string", value)
    return ("number", Fraction(value))


def _unique(validator: Any, unique: bool, instance: Any, schema: Any) -> Iterator[Any]:
    if unique and isinstance(instance, list):
        seen = [canonical(item) for item in instance]
        if len(set(seen)) != len(seen):
            yield jsonschema.ValidationError("not unique")


def _const(validator: Any, const: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if canonical(instance) != canonical(const):
        yield jsonschema.ValidationError("not the constant")


def _enum(validator: Any, enum: list, instance: Any, schema: Any) -> Iterator[Any]:
    if canonical(instance) not in {canonical(value) for value in enum}:
        yield jsonschema.ValidationError("not in the enumeration")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal | Fraction) and not isinstance(value, bool)


def _multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if _is_number(instance) and (Fraction(instance) / Fraction(step)).denominator != 1:
        yield jsonschema.ValidationError("not a multiple")


def _compare(holds: Callable[[Any, Any], bool]) -> Callable:
    def check(validator: Any, bound: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if _is_number(instance) and not holds(Fraction(instance), Fraction(bound)):
            yield jsonschema.ValidationError("out of range")

    return check


def _draft4_bound(holds: Callable[[Any, Any], bool], sharp: str) -> Callable:
    """Returns a check of draft 4, in which `exclusiveMinimum` and `exclusiveMaximum` are booleans that
    exclude the bounds of `minimum` and `maximum`."""

    def check(validator: Any, bound: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if not _is_number(instance):
            return
        exact, limit = Fraction(instance), Fraction(bound)
        if not (holds(exact, limit) or exact == limit) or (exact == limit and schema.get(sharp) is True):
            yield jsonschema.ValidationError("out of range")

    return check


_DRAFT4_VALIDATORS = {
    "minimum": _draft4_bound(lambda x, b: x > b, "exclusiveMinimum"),
    "maximum": _draft4_bound(lambda x, b: x < b, "exclusiveMaximum"),
}


def _content(validator: Any, held: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Checks the engine's keyword for strings that hold the JSON text of a value."""
    if not isinstance(instance, str):
        return
    try:
        value = loads(instance)
    except (ValueError, RecursionError):
        yield jsonschema.ValidationError("not JSON in the string")
    else:
        yield from validator.descend(value, held)


CONTENT = "x-structgen-content"

_VALIDATORS = {
    "uniqueItems": _unique,
    "const": _const,
    "enum": _enum,
    "multipleOf": _multiple_of,
    "minimum": _compare(lambda x, b: x >= b),
    "maximum": _compare(lambda x, b: x <= b),
    "exclusiveMinimum": _compare(lambda x, b: x > b),
    "exclusiveMaximum": _compare(lambda x, b: x < b),
}


def _is_integer(checker: Any, value: Any) -> bool:
    return _is_number(value) and Fraction(value).denominator == 1


def _is_plain_integer(checker: Any, value: Any) -> bool:
    return _is_integer(checker, value) and not isinstance(value, Fractional)


def _date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    year, month, day = map(int, text.split("-"))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return 1 <= month <= 12 and 1 <= day <= days[month - 1]


def _time(text: str) -> bool:
    """RFC 3339 full-time. Second 60 is valid only at 23:59:60 UTC."""
    found = re.fullmatch(
        r"([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?([zZ]|([+-])([0-9]{2}):([0-9]{2}))", text
    )
    if not found:
        return False
    hour, minute, second = (int(found[i]) for i in (1, 2, 3))
    offset_hour, offset_minute = int(found[7] or 0), int(found[8] or 0)
    if hour > 23 or minute > 59 or second > 60 or offset_hour > 23 or offset_minute > 59:
        return False
    sign = -1 if found[6] == "+" else 1
    utc = (hour * 60 + minute + sign * (offset_hour * 60 + offset_minute)) % (24 * 60)
    return second < 60 or utc == 23 * 60 + 59


def _date_time(text: str) -> bool:
    return len(text) > 10 and text[10] in "Tt" and _date(text[:10]) and _time(text[11:])


def _address(kind: type) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            kind(text)
        except ValueError:
            return False
        return text.isascii() and "%" not in text  # the format of IPv6 addresses excludes a zone

    return check


def _uuid(text: str) -> bool:
    if not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text):
        return False
    return uuid.UUID(text) is not None


def _duration(text: str) -> bool:
    """Returns the ABNF of RFC 3339 appendix A: units in order without gaps, and weeks only alone."""
    time = r"T(\d+H(\d+M(\d+S)?)?|\d+M(\d+S)?|\d+S)"
    date = r"(\d+Y(\d+M(\d+D)?)?|\d+M(\d+D)?|\d+D)"
    return re.fullmatch(rf"P({date}({time})?|{time}|\d+W)", text, re.ASCII) is not None


def _json_pointer(text: str) -> bool:
    return re.fullmatch(r"(/([^~/]|~[01])*)*", text, re.DOTALL) is not None


FORMATS: dict[str, Callable[[str], bool]] = {
    "date": _date,
    "time": _time,
    "date-time": _date_time,
    "ipv4": _address(ipaddress.IPv4Address),
    "ipv6": _address(ipaddress.IPv6Address),
    "uuid": _uuid,
    "duration": _duration,
    "json-pointer": _json_pointer,
}


def format_checker(refused: Iterable[str] = ()) -> jsonschema.FormatChecker:
    """Returns a checker of the formats above. It accepts no string for a `refused` format."""
    checker = jsonschema.FormatChecker(formats=())
    for name in refused:
        checker.checks(name)(lambda value: not isinstance(value, str))
    for name, check in FORMATS.items():

        def wrapped(value: object, check: Callable[[str], bool] = check) -> bool:
            return not isinstance(value, str) or check(value)

        checker.checks(name)(wrapped)
    return checker


class JsonOracle:
    """`accepts(text)` judges the value of a text under one schema. Patterns must have the syntax that Python
    and ECMA-262 share. If a pattern ends in `$`, instances must not end in a line feed."""

    def __init__(
        self,
        schema: Any,
        base: Any = jsonschema.Draft202012Validator,
        registry: referencing.Registry | None = None,
        refused: Iterable[str] = (),
    ):
        exact = loads(json.dumps(schema))
        old = base in (jsonschema.Draft3Validator, jsonschema.Draft4Validator)
        types = base.TYPE_CHECKER.redefine("integer", _is_plain_integer if old else _is_integer)
        types = types.redefine("number", lambda checker, value: _is_number(value))
        known = {name: check for name, check in _VALIDATORS.items() if name in base.VALIDATORS}
        known[CONTENT] = _content
        if "exclusiveMinimum" not in base.VALIDATORS:
            known |= _DRAFT4_VALIDATORS
        kind = jsonschema.validators.extend(base, validators=known, type_checker=types)
        more = {} if registry is None else {"registry": registry}
        self._validator = kind(exact, format_checker=format_checker(refused), **more)

    def accepts(self, text: str) -> bool:
        try:
            value = loads(text)
        except (ValueError, RecursionError):
            return False
        return self.accepts_value(value)

    def accepts_value(self, value: Any) -> bool:
        with localcontext(Context(prec=200)):
            return self._validator.is_valid(value)


def in_turn(ends: Callable[[Any, int], set[int]], parts: Iterable[Any], begin: int) -> set[int]:
    """Returns the places where a sequence of parts may end. `ends` gives the ends of one part that begins at
    a place."""
    now = {begin}
    for part in parts:
        now = {end for place in now for end in ends(part, place)}
    return now
