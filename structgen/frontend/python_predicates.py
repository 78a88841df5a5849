"""Validators written in Python: the patterns of the strings that they accept, and validators that refuse no
value.

In: the function of a pydantic validator. Out: a schema of the accepted strings, or None. Cost: the first
question about a method of `str` calls it for each of the 1.1 million characters.

Whether all characters of a text satisfy `str.isalpha` is decided character by character, so Python is asked
about each character: the version of Unicode that Python has decides.
"""

from __future__ import annotations

import collections
import functools
import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any

import annotated_types

Document = dict[str, Any]

# Methods that hold for a text if it is not empty and they hold for each of its characters.
_EACH = ("isalpha", "isalnum", "isdecimal", "isdigit", "isnumeric", "isspace")
_EACH_OR_NONE = ("isascii", "isprintable")
# Functions that refuse no value of the types they are used with.
_TOTAL: frozenset[Any] = frozenset(
    (
        *(
            getattr(str, name)
            for name in ("lower", "upper", "strip", "lstrip", "rstrip", "title", "casefold")
        ),
        *(str.capitalize, str.swapcase, str.split, str.splitlines, str, repr, bool, len, list, tuple, sorted),
        *(collections.deque, collections.OrderedDict, collections.Counter, collections.defaultdict),
    )
)


def total(function: Any) -> bool:
    """Returns whether a function that runs after a type's validation is known to refuse no value."""
    try:
        return function in _TOTAL
    except TypeError:  # the function is not hashable
        return False


def strings(function: Any) -> Document | None:
    """Returns the strings for which a predicate of pydantic's (``annotated_types.Predicate``, ``Not``)
    holds."""
    found = asked(function)
    return None if found is None else _of(*found)


def asked(function: Any) -> tuple[Any, bool] | None:
    """Returns the function that a predicate calls, and whether its result must be true; None if the value is
    no predicate."""
    if getattr(function, "__module__", "") != "pydantic._internal._known_annotated_metadata":
        return None
    try:
        annotation = inspect.getclosurevars(function).nonlocals.get("annotation")
    except TypeError:
        return None
    inner: Any = getattr(annotation, "func", None)
    holds = not isinstance(annotation, annotated_types.Not)
    while isinstance(inner, annotated_types.Not):
        inner, holds = inner.func, not holds
    return None if inner is None else (inner, holds)


def numbers(function: Any) -> bool | None:
    """Returns whether a predicate about infinity or NaN holds for every JSON number; None for another
    predicate."""
    found = asked(function)
    if found is None or found[0] not in (math.isfinite, math.isnan, math.isinf):
        return None
    return (found[0] is math.isfinite) == found[1]


def _of(method: Any, holds: bool) -> Document | None:
    name = getattr(method, "__name__", "")
    if getattr(str, name, None) is not method:
        return None
    pattern = _pattern(name)
    if pattern is None:
        return None
    return {"pattern": pattern} if holds else {"not": {"type": "string", "pattern": pattern}}


@functools.cache
def _pattern(name: str) -> str | None:
    if name in _EACH or name in _EACH_OR_NONE:
        return f"^[{_class(getattr(str, name))}]{'+' if name in _EACH else '*'}$"
    small, large = _class(str.islower), _class(str.istitle)
    if name == "islower":
        return f"^[^{large}]*[{small}][^{large}]*$"
    if name == "isupper":
        upper, title = _class(str.isupper), _class(lambda c: c.istitle() and not c.isupper())
        return f"^[^{small}{title}]*[{upper}][^{small}{title}]*$"
    if name == "istitle":
        other = f"[^{small}{large}]"
        return f"^{other}*[{large}][{small}]*(?:{other}+[{large}][{small}]*)*{other}*$"
    if name == "isidentifier":
        return f"^[{_class(str.isidentifier)}][{_class(lambda c: ('a' + c).isidentifier())}]*$"
    return None


@functools.cache
def unchanged(method: str) -> str:
    """Returns the pattern of the texts that `str.lower` or `str.upper` leaves as they are."""
    change = getattr(str, method)
    return f"^[^{_class(lambda c: change(c) != c)}]*$"


def _class(holds: Callable[[str], bool]) -> str:
    """Returns the characters that satisfy `holds`, as the inside of a pattern's brackets."""
    inside = (code for code in range(0x110000) if not 0xD800 <= code < 0xE000 and holds(chr(code)))
    out = []
    for _, run in itertools.groupby(enumerate(inside), lambda pair: pair[1] - pair[0]):
        codes = [code for _, code in run]
        out.append(f"\\u{{{codes[0]:x}}}" + (f"-\\u{{{codes[-1]:x}}}" if len(codes) > 1 else ""))
    return "".join(out)
