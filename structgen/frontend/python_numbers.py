"""JSON Schemas of the numbers that the validators of `int`, `float` and `Decimal` take.

In: pydantic's core schema of a number. Out: a schema document whose numbers the validator takes. Cost: a few
sums in exact fractions.

A JSON number with a point is first read into a double, also for a `Decimal`. So a bound has to hold for the
double nearest to the text. A double keeps every number of at most 15 digits exactly. Decimals are limited to
15 digits, so their bounds and multiples hold for the written number. Whole numbers of any size are read
exactly, so beyond 15 digits only whole numbers are written.
"""

from __future__ import annotations

import decimal
import itertools
import math
import sys
from fractions import Fraction
from typing import Any

from . import text_patterns
from .remarks import VALIDATOR

Document = dict[str, Any]
Bound = tuple[Any, bool]  # a number; whether it is excluded

_EXACT_DIGITS = 15  # a double keeps every number of at most so many digits
_DIVISIBLE = 10**27  # the largest quotient that Python's decimals, of 28 digits, divide without rounding
# from this quotient on, a validator's remainders are inexact: it refuses a third of the multiples
_FAR = 10**10
_DIVISOR = 10**6  # the largest divisor whose multiples a grammar writes with little work
_WIDEST = 10**4000  # pydantic reads whole numbers up to this
_ROUNDED_DOWN = decimal.Context(_EXACT_DIGITS, decimal.ROUND_FLOOR, decimal.MIN_EMIN, decimal.MAX_EMAX)
_ROUNDED_UP = decimal.Context(_EXACT_DIGITS, decimal.ROUND_CEILING, decimal.MIN_EMIN, decimal.MAX_EMAX)


def integer(base: Document, schema: Any, digits: int | None) -> Document:
    """Returns `base` with both bounds, so that numbers end. `digits`: as in `whole`."""
    low, high = _bounds(schema)
    least, most = whole(
        None if low is None else int(low[0]),
        None if high is None else int(high[0]),
        int(schema.get("multiple_of") or 1),
        digits,
    )
    return {**base, **_written(low or (least, False), high or (most, False))}


def whole(low: int | None, high: int | None, step: int, digits: int | None) -> tuple[int, int]:
    """Returns the bounds of an `int`. A missing bound becomes that of 64 bits, or of `digits` digits. If the
    other bound or a multiple lies beyond that, it becomes a thousand times that value."""
    least, most = (-(2**63), 2**63 - 1) if digits is None else (1 - 10**digits, 10**digits - 1)
    far = max(step, low or 0, -(high or 0))
    if far >= min(-least, most):
        widest = min(far * 1000, _WIDEST)
        least, most = -widest, widest
    return least if low is None else low, most if high is None else high


def floating(base: Document, schema: Any) -> Document:
    """Returns `base` with bounds that hold for the double nearest to the text."""
    exact = {k: v for k, v in base.items() if k not in _KEYWORDS}
    low, high = _bounds(schema)
    # A text just inside an open bound may be rounded to the bound, so the next double becomes the bound.
    if low is not None:
        low = (math.nextafter(low[0], math.inf), False) if low[1] else low
        low = None if low[0] == -math.inf else low
    if high is not None:
        high = (math.nextafter(high[0], -math.inf), False) if high[1] else high
        high = None if high[0] == math.inf else high
    step = float(schema.get("multiple_of") or 0)
    if not step:
        return {**exact, **_written(low, high)}
    # Remainders are computed in doubles. They are wrong beyond some size, unless the step is a small binary
    # fraction.
    binary = (step * 2**20).is_integer()
    size = 10**15 if binary else math.floor(step * 10**6) or step * 10**6
    far = max(low[0] if low is not None else 0, -high[0] if high is not None else 0)
    if far >= size:
        size = min(int(far) * 1000, int(sys.float_info.max))
        # powers of two divide every double of that size
        if not binary or math.frexp(step)[0] != 0.5:
            if far >= step * _FAR:
                exact.pop("multipleOf")
                return {**exact, **_far_multiples(step, size, low, high)}
            exact[VALIDATOR] = "multiple_of, of doubles of this size"
    return {**exact, **_written(_narrower((-size, True), low, max), _narrower((size, True), high, min))}


def _far_multiples(step: float, size: int, low: Bound | None, high: Bound | None) -> Document:
    """Returns numbers below `size` that are doubles and whose remainder is computed as 0: multiples of the
    step times a power of two. If the multiples are whole and the divisor is small, all of them are allowed;
    otherwise the step is doubled."""
    bounds = _written(_narrower((-size, True), low, max), _narrower((size, True), high, min))
    top, bottom = step.as_integer_ratio()
    power = max(0, size.bit_length() - 53)
    unit = math.lcm(top, 2**power)
    if bottom == 1 and unit < min(_DIVISOR, size // 10**4):
        return {**bounds, "multipleOf": unit}
    doubled = (math.ldexp(step, i) for i in range(2100))
    found = [x for x in itertools.takewhile(lambda x: x < size, doubled) if x >= size // 10**4]
    fits = [x for y in found for x in (y, -y) if _inside(x, low, high)]
    rest = {**bounds, "multipleOf": step, VALIDATOR: "multiple_of, of doubles of this size"}
    return {"enum": fits} if fits else rest


def _inside(x: float, low: Bound | None, high: Bound | None) -> bool:
    above = low is None or x > low[0] or (x == low[0] and not low[1])
    return above and (high is None or x < high[0] or (x == high[0] and not high[1]))


def decimals(base: Document, schema: Any) -> Document:
    """Returns the schema of numbers and, if the type has no bounds, of strings; a pattern cannot bound a
    number."""
    places, digits, step = (schema.get(k) for k in ("decimal_places", "max_digits", "multiple_of"))
    low, high = _bounds(schema)
    limited = not (places is None and digits is None and step is None)
    whole = None if digits is None else digits if places is None else max(digits - places, 0)
    behind = _EXACT_DIGITS
    if places is not None:
        behind = min(places, behind, digits if digits is not None else behind)
    elif step is not None:
        behind = min(behind, max(0, -int(decimal.Decimal(str(step)).as_tuple().exponent)))
    size = 10 ** (
        308 if not limited else min(_EXACT_DIGITS - behind, _EXACT_DIGITS if whole is None else whole)
    )
    if digits is not None and places is None and step is None:
        size = 10 ** min(_EXACT_DIGITS, digits)
    far = max(low[0] if low is not None else 0, -high[0] if high is not None else 0)
    number: Document
    if far >= size:
        number = _whole(low, high, step, whole, far)
    elif not limited:
        number = {"type": "number", **_written(*(_doubled(b, up) for b, up in ((low, True), (high, False))))}
    else:
        low = None if low is None else _short(low, _ROUNDED_UP)
        high = None if high is None else _short(high, _ROUNDED_DOWN)
        number = {
            "type": "number",
            **_written(_narrower((-size, True), low, max), _narrower((size, True), high, min)),
        }
        if digits is not None and places is None:  # the point may stand anywhere
            most = min(digits, _EXACT_DIGITS)
            number["anyOf"] = [_places(k, most - k) for k in range(most + 1)]
        _divide(
            number,
            None if "anyOf" in number else behind,
            None if step is None else decimal.Decimal(str(step)),
        )
        if whole == 0:  # the zero in front of the point would count as a digit
            number["not"] = {"const": 0}
    if low is not None or high is not None or step is not None:
        return number
    said = "a decimal number" if not limited else "a decimal number of as many digits as the type has"
    if digits is not None and places is None:
        most = min(digits, _DIGITS_IN_TEXT)
        body = "|".join(text_patterns.decimal(most - k, k) for k in range(most + 1))
    else:
        kept = places if places is None or digits is None else min(places, digits)
        body = text_patterns.decimal(whole, kept)
        if whole == 0:
            body = rf"(?!-?0(?:\.0*)?$)(?:{body})"
    text = {"type": "string", "pattern": body, "$comment": text_patterns.SAID + said}
    return {"anyOf": [number, text]}


_DIGITS_IN_TEXT = 40
_KEYWORDS = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}


def _bounds(schema: Any) -> tuple[Bound | None, Bound | None]:
    """Returns the tightest bound below and above."""
    below = [(schema[k], k == "gt") for k in ("gt", "ge") if schema.get(k) is not None]
    above = [(schema[k], k == "lt") for k in ("lt", "le") if schema.get(k) is not None]
    low = max(below, default=None)
    high = min(above, key=lambda b: (b[0], not b[1]), default=None)
    return low, high


def _narrower(own: Bound, users: Bound | None, pick: Any) -> Bound:
    if users is None:
        return own
    return own if pick(own[0], users[0]) == own[0] else users


def _written(low: Bound | None, high: Bound | None) -> Document:
    out: Document = {}
    if low is not None:
        out["exclusiveMinimum" if low[1] else "minimum"] = _number(low[0])
    if high is not None:
        out["exclusiveMaximum" if high[1] else "maximum"] = _number(high[0])
    return out


def _number(value: Any) -> int | float:
    """Returns a number for `json`. Decimals have only digits that a double keeps here."""
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value  # type: ignore[no-any-return]


def _doubled(bound: Bound | None, up: bool) -> Bound | None:
    """Returns a tighter bound: a number that meets it still meets `bound` after rounding to the nearest
    double."""
    if bound is None:
        return None
    limit = decimal.Decimal(str(bound[0]))
    size = float(limit)
    read = decimal.Decimal(repr(size))
    if up and (read < limit or (bound[1] and read == limit)):
        size = math.nextafter(size, math.inf)
    if not up and (read > limit or (bound[1] and read == limit)):
        size = math.nextafter(size, -math.inf)
    return size, False


def _short(bound: Bound, context: decimal.Context) -> Bound:
    """Returns the same bound, for numbers of at most 15 digits, in 15 digits."""
    limit = decimal.Decimal(str(bound[0]))
    rounded = context.plus(limit)
    return rounded, bound[1] and rounded == limit


def _whole(low: Bound | None, high: Bound | None, step: Any, whole: int | None, far: Any) -> Document:
    """Returns whole numbers, for bounds beyond what a double keeps."""
    divisor = 1 if step is None else Fraction(str(step)).numerator
    widest = min(int(far) * 1000, _WIDEST, *([10**whole - 1] if whole is not None else []))
    if step is not None:
        widest = min(widest, int(_DIVISIBLE * Fraction(str(step))))
    least, most = -widest, widest
    if low is not None:
        least = max(least, math.floor(low[0]) + 1 if low[1] else math.ceil(low[0]))
    if high is not None:
        most = min(most, math.ceil(high[0]) - 1 if high[1] else math.floor(high[0]))
    out: Document = {"type": "integer", "minimum": least, "maximum": most}
    return out if divisor == 1 else {**out, "multipleOf": divisor}


def _places(places: int, whole: int) -> Document:
    """Returns the schema of numbers of so many digits behind and before the point."""
    return {"exclusiveMinimum": -(10**whole), "exclusiveMaximum": 10**whole, "multipleOf": _unit(places)}


def _unit(places: int) -> int | float:
    return 1 if places == 0 else float(f"1e-{places}")


def _divide(number: Document, places: int | None, step: decimal.Decimal | None) -> None:
    """Restricts `number` to multiples of `step` with at most so many digits behind the point."""
    if step is None:
        if places is not None:
            number["multipleOf"] = _unit(places)
        return
    number["multipleOf"] = _number(step)
    if places is not None and -int(step.as_tuple().exponent) > places:
        number["allOf"] = [{"multipleOf": _unit(places)}]
