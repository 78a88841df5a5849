"""Reads llguidance's expressions for rules with a parameter of 64 bits: ``perm::set_bit(2)``, ``%if
bit_clear(2)``.

In: the text behind ``::`` or ``%if``. Out: a function of the parameter, and the place where its text ends.
Cost: linear in the text. A rule with a parameter becomes one rule for each value that occurs; see `lark`.

    value       _  12  0x1F  set_bit(k)  clear_bit(k)  bit_and(v)  bit_or(v)  incr([x:y])  decr([x:y])
    condition   true  bit_clear(k)  bit_set(k)  is_ones([x:y])  is_zeros([x:y])  and(c, c)  or(c, c)  not(c)
                eq ne lt le gt ge ([x:y], v)   bit_count_eq .. bit_count_ge ([x:y], k)

``[x:y]`` are the bits from x up to but not including y; ``_`` means all bits.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from .. import source

Value = Callable[[int], int]
Condition = Callable[[int], bool]

BITS = 64
_ALL = (1 << BITS) - 1
_WORD = re.compile(r"\s*(?:(?P<name>[a-z_]+)|(?P<number>0x[0-9A-Fa-f]+|\d+)|(?P<mark>[\[\](),:]))")
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
_VALUES = ("set_bit", "clear_bit", "bit_and", "bit_or", "incr", "decr")
_CONDITIONS = (
    "true", "bit_clear", "bit_set", "is_ones", "is_zeros", "and", "or", "not",
    *_COMPARE, *(f"bit_count_{name}" for name in _COMPARE),
)  # fmt: skip


def value(text: str, at: int) -> tuple[Value, int]:
    """Returns the value that a call gives a rule. Raises GrammarError."""
    reader = _Reader(text, at)
    return reader.value(), reader.at


def condition(text: str, at: int) -> tuple[Condition, int]:
    """Returns the condition of an alternative. Raises GrammarError."""
    reader = _Reader(text, at)
    return reader.condition(0), reader.at


class _Reader:
    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at

    def next(self, *kinds: str) -> str:
        match = _WORD.match(self.text, self.at)
        if match is None or match.lastgroup not in kinds:
            found = self.text[self.at : self.at + 1].strip() or "the end"
            source.fail(f"expected {' or '.join(kinds)}, found {found!r}", self.text, self.at)
        self.at = match.end()
        return match[match.lastgroup]

    def mark(self, wanted: str) -> None:
        at = self.at
        if (found := self.next("mark")) != wanted:
            source.fail(f"expected '{wanted}', found '{found}'", self.text, at)

    def peek(self, wanted: str) -> bool:
        match = _WORD.match(self.text, self.at)
        return match is not None and match[0].strip() == wanted

    def number(self, most: int = _ALL) -> int:
        at = self.at
        found = self.next("number")
        if len(found) > 24 or (read := int(found, 0 if found.startswith("0x") else 10)) > most:
            source.fail(f"{found[:30]} is more than {most}", self.text, at)
        return read

    def bits(self) -> tuple[int, int]:
        """Returns (lowest bit, mask of the bits moved down)."""
        if self.peek("_"):
            self.next("name")
            return 0, _ALL
        at = self.at
        self.mark("[")
        low = self.number(BITS)
        self.mark(":")
        high = self.number(BITS)
        self.mark("]")
        if low >= high:
            source.fail(f"there are no bits [{low}:{high}]", self.text, at)
        return low, (1 << (high - low)) - 1

    def value(self) -> Value:
        if not self.peek("_") and _WORD.match(self.text, self.at) and not self._named():
            constant = self.number()
            return lambda p: constant
        at = self.at
        name = self.next("name", "number")
        if name == "_":
            return lambda p: p
        if name not in _VALUES:
            source.fail(f"'{name}' is no value of a parameter{source.meant(name, _VALUES)}", self.text, at)
        self.mark("(")
        made: Value
        if name in ("set_bit", "clear_bit"):
            bit = 1 << self.number(BITS - 1)
            made = (lambda p: p | bit) if name == "set_bit" else (lambda p: p & ~bit)
        elif name in ("bit_and", "bit_or"):
            other = self.number()
            made = (lambda p: p & other) if name == "bit_and" else (lambda p: p | other)
        else:
            low, mask = self.bits()
            end, step = (mask, 1 << low) if name == "incr" else (0, -(1 << low))
            made = lambda p: p if (p >> low) & mask == end else p + step  # noqa: E731
        self.mark(")")
        return made

    def _named(self) -> bool:
        match = _WORD.match(self.text, self.at)
        return match is not None and match.lastgroup == "name"

    def condition(self, depth: int) -> Condition:
        at = self.at
        if depth > source.DEPTH:
            source.fail("conditions nest too deeply", self.text, at)
        name = self.next("name")
        if name not in _CONDITIONS:
            hint = source.meant(name, _CONDITIONS)
            source.fail(f"'{name}' is no condition of a parameter{hint}", self.text, at)
        if name == "true":
            if self.peek("("):
                self.mark("(")
                self.mark(")")
            return lambda p: True
        self.mark("(")
        made: Condition
        if name in ("and", "or"):
            one = self.condition(depth + 1)
            self.mark(",")
            two = self.condition(depth + 1)
            made = (lambda p: one(p) and two(p)) if name == "and" else (lambda p: one(p) or two(p))
        elif name == "not":
            inner = self.condition(depth + 1)
            made = lambda p: not inner(p)  # noqa: E731
        elif name in ("bit_clear", "bit_set"):
            bit, wanted = self.number(BITS - 1), int(name == "bit_set")
            made = lambda p: p >> bit & 1 == wanted  # noqa: E731
        elif name in ("is_ones", "is_zeros"):
            low, mask = self.bits()
            all_of = mask if name == "is_ones" else 0
            made = lambda p: p >> low & mask == all_of  # noqa: E731
        else:
            low, mask = self.bits()
            self.mark(",")
            other = self.number()
            compare = _COMPARE[name.removeprefix("bit_count_")]
            if name.startswith("bit_count_"):
                made = lambda p: compare((p >> low & mask).bit_count(), other)  # noqa: E731
            else:
                made = lambda p: compare(p >> low & mask, other)  # noqa: E731
        self.mark(")")
        return made
