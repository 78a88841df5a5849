"""A pattern of JSON Schema (ECMA 262, found anywhere) as one that Python's `re` matches as a whole.

In: the pattern. Out: a pattern for ``_core.GrammarBuilder.pattern``, which reads Python's dialect. What the
dialects share is passed on, what they read in different ways is written out, and what has no such form is an
error. Cost: linear.
"""

from __future__ import annotations

import re

from ..errors import GrammarError

# what stands for each class inside brackets
_CLASSES = {
    "d": "0-9",
    "D": r"\x00-/:-\U0010ffff",
    "w": "A-Za-z0-9_",
    "W": r"\x00-/:-@\[-\^`\{-\U0010ffff",
    "s": r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff",
    "S": r"\x00-\x08\x0e-\x1f!-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e"
    r"\u2060-\u2fff\u3001-\ufefe\uff00-\U0010ffff",
}
_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\??")
_GROUP = re.compile(r"\(\?(?::|=|!|<=|<!)|\((?!\?)|\(\?<([A-Za-z_]\w*)>")
_HEX = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4}))")


def whole(pattern: str) -> str:
    """GrammarError: the pattern has a part that is not told here, or is none."""
    return rf"[\s\S]*(?:{_translated(pattern)})[\s\S]*"


def _refuse(what: str, pattern: str) -> GrammarError:
    return GrammarError(f"{what} in the pattern {pattern!r} cannot be told outside JSON")


def _translated(pattern: str) -> str:
    out: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        quantifier, group = _QUANTIFIER.match(pattern, at), _GROUP.match(pattern, at)
        if char == "\\":
            text, at, several = _escape(pattern, at)
            out.append(f"[{text}]" if several else text)
        elif char == "[":
            text, at = _bracket(pattern, at)
            out.append(text)
        elif quantifier is not None:
            at = quantifier.end()
            if pattern.startswith("+", at):  # Python's possessive ones; in ECMA 262 an error
                raise _refuse("'+' after a quantifier", pattern)
            out.append(quantifier[0])
        elif group is not None:
            at = group.end()
            out.append("(?:" if group[0] == "(" or group[1] else group[0])
        elif char == "(":
            raise _refuse(f"{pattern[at : at + 3]!r}", pattern)
        else:
            at += 1
            out.append({"$": r"\Z", ".": r"[^\n\r\u2028\u2029]"}.get(char) or _plain(char))
    return "".join(out)


def _plain(char: str) -> str:
    return char if char in "^|)" else re.escape(char)


def _escape(pattern: str, at: int) -> tuple[str, int, bool]:
    """An escape, where it ends, and whether it is several characters, as they stand in brackets."""
    found = _HEX.match(pattern, at)
    if found is not None:
        code = int(found[1] or found[2], 16)
        if 0xD800 <= code < 0xE000:
            raise _refuse("half a surrogate pair", pattern)
        return f"\\u{code:04x}", found.end(), False
    char = pattern[at + 1 : at + 2]
    if char in _CLASSES:
        return _CLASSES[char], at + 2, True
    if char in ("t", "n", "v", "f", "r"):
        return f"\\{char}", at + 2, False
    if char == "0" and not pattern[at + 2 : at + 3].isdigit():
        return r"\x00", at + 2, False
    if not char or char.isalnum():
        raise _refuse(f"'\\{char}'", pattern)
    return re.escape(char), at + 2, False


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    """A class and where it ends."""
    start = at
    at += 1
    negated = pattern.startswith("^", at)
    at += negated
    out: list[str] = []
    wide = False  # whether a class of characters stands before: a hyphen after it is itself
    while at < len(pattern) and pattern[at] != "]":
        if pattern.startswith("\\b", at):
            text, at, several = r"\x08", at + 2, False
        elif pattern[at] == "\\":
            text, at, several = _escape(pattern, at)
        elif pattern[at] == "-":
            last = at + 1 < len(pattern) and pattern[at + 1] == "]"
            plain = not out or last or wide or re.match(r"\\[dDsSwW]", pattern[at + 1 : at + 3]) is not None
            text, at, several = r"\-" if plain else "-", at + 1, False
        else:
            text, at, several = re.escape(pattern[at]), at + 1, False
        wide = several
        out.append(text)
    if at == len(pattern):
        raise GrammarError(f"'[' without ']' in the pattern {pattern!r}")
    if not out:
        raise _refuse(f"{pattern[start : at + 1]!r}", pattern)
    return f"[{'^' if negated else ''}{''.join(out)}]", at + 1
