r"""Patterns (ECMA-262, anchored) of the texts of dates, numbers, addresses and URLs in JSON strings.

In: bounds, versions, schemes. Out: pattern text for the keyword ``pattern``. Cost: linear in the digits of
the bounds. Every pattern is sound: a text that it matches is taken by the reader for which it is written
(pydantic, and through pydantic Python's own types). If a reader takes several spellings of a value, the
pattern may match only the common spelling.

The problem. A validator computes: it compares numbers, knows how many days February has, and splits networks.
A grammar only has patterns.

The idea. Texts of equal shape (the same length, digits in the same places) are ordered as their digits are. A
text is above a bound if it has the bound's first digits, then a larger one, then anything; so an order is one
alternative for each digit:

    at_least("47")      (?:[5-9][0-9]{1}|4[8-9]|47)
    at_most("47")       (?:[0-3][0-9]{1}|4[0-6]|47)
    integers(8, 120)    (?:[1-9][0-9]{1,1}|(?:[9-9]|8)|(?!0)(?:[0-0][0-9]{2}|1[0-1][0-9]{1}|120))

ISO dates and times have one shape, so `at_least` and `at_most` order them, too. Whole numbers are split by
their number of digits first. Leap years and networks are lists of the digits that are possible.

Patterns of users. `from_unicode` turns a pattern of Rust or Python into one of ECMA's dialect. Classes such
as \d contain Unicode characters in these dialects and only ASCII characters in ECMA's dialect. So a class of
allowed characters becomes narrower, and a class of excluded characters becomes wider:

    \d\W     [0-9][^\p{Alphabetic}\p{M}\p{N}\p{Pc}\u200c\u200d]
    [^\d]    [^\p{Nd}]

Invariants.
- A text that a pattern matches is taken by its reader. The converse does not hold.
- The pattern of a user may only become narrower.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from ..errors import GrammarError

# Unicode's White_Space, which Rust's and Python's `strip` remove. ECMA's \s has U+FEFF and lacks U+0085.
SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
# Every character that \w may match in Rust (UTS 18) or in Python (alphanumeric).
WORD = r"\p{Alphabetic}\p{M}\p{N}\p{Pc}\u200c\u200d"

# A "$comment" that begins so says in words what the pattern beside it matches. `explain` shows those words.
SAID = "structgen: "

HEX = "[0-9A-Fa-f]"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"


def anchored(body: str) -> str:
    return f"^(?:{body})$"


# ---- orders of digits ----


def _shape(text: str) -> str:
    """Returns a pattern of texts of the shape of `text`, with any digits."""
    return re.sub(r"[0-9]+", lambda m: f"[0-9]{{{len(m[0])}}}", _escaped(text))


def _escaped(text: str) -> str:
    return re.sub(r"[.+*?^$()\[\]{}|\\/]", lambda m: "\\" + m[0], text)


def at_least(text: str) -> str:
    """Returns a pattern of texts of the shape of `text` (the same length, digits in the same places) that are
    equal or greater."""
    return _from(text, "9", lambda digit: f"[{digit + 1}-9]")


def at_most(text: str) -> str:
    """Returns a pattern: texts of the shape of `text` (see `at_least`) that are equal to it or smaller."""
    return _from(text, "0", lambda digit: f"[0-{digit - 1}]")


def _from(text: str, last: str, beyond: Callable[[int], str]) -> str:
    """Returns a pattern of texts of the shape of `text`: the text itself, and texts that differ from it first
    in a digit of `beyond`, with any digits behind it."""
    parts = [
        _escaped(text[:i]) + beyond(int(c)) + _shape(text[i + 1 :])
        for i, c in enumerate(text)
        if c.isdigit() and c != last
    ]
    return "(?:" + "|".join([*parts, _escaped(text)]) + ")"


def integers(low: int | None, high: int | None, digits: int = 308) -> str:
    """Returns a pattern of whole numbers of at most `digits` digits, without leading zeros, within inclusive
    bounds."""
    parts = []
    if (low is None or low <= 0) and (high is None or high >= 0):
        parts.append("0")
    positive = _positive(max(low, 1) if low is not None else 1, high, digits)
    negative = _positive(max(-high, 1) if high is not None else 1, None if low is None else -low, digits)
    if positive:
        parts.append(positive)
    if negative:
        parts.append(f"-(?:{negative})")
    return "(?:" + "|".join(parts) + ")" if parts else "(?!)"


def _positive(low: int, high: int | None, digits: int) -> str:
    if high is None:
        high = 10**digits - 1
    if low > high:
        return ""
    small, large = str(low), str(high)
    if len(small) == len(large):
        return f"(?={at_least(small)}$){at_most(large)}" if small != large else small
    parts = []
    if len(large) - len(small) > 1:
        parts.append(f"[1-9][0-9]{{{len(small)},{len(large) - 2}}}")
    parts.append(at_least(small) if low != 10 ** (len(small) - 1) else f"[1-9][0-9]{{{len(small) - 1}}}")
    parts.append(f"(?!0){at_most(large)}" if set(large) != {"9"} else f"[1-9][0-9]{{{len(large) - 1}}}")
    return "|".join(parts)


# ---- time ----

_DAY = (
    "(?!0000)(?:"
    "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    "|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_FRACTION = r"(?:\.[0-9]{1,6})?"
_OFFSET = "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"


def date() -> str:
    """Returns a pattern of the days of the years 1 to 9999 (RFC 3339, full-date)."""
    return anchored(_DAY)


def clock(offset: str) -> str:
    """Returns a time of day; `offset` is one of "", "Z", "needed", "optional"."""
    return anchored(f"{_CLOCK}{_FRACTION}{_zone(offset)}")


def moment(offset: str) -> str:
    """Returns a date and a time, as in RFC 3339; `offset` as in `clock`."""
    return anchored(f"{_DAY}T{_CLOCK}{_FRACTION}{_zone(offset)}")


def _zone(offset: str) -> str:
    return {"": "", "Z": "Z", "needed": _OFFSET, "optional": f"{_OFFSET}?"}[offset]


def duration() -> str:
    """Returns a pattern of ISO 8601 durations. Their parts have at most six digits, so that the sum is within
    Python's range."""
    part = "[0-9]{1,6}"
    days = f"(?:{part}Y)?(?:{part}M)?(?:{part}W)?(?:{part}D)?"
    hours = rf"T(?=[0-9])(?:{part}H)?(?:{part}M)?(?:{part}(?:\.[0-9]{{1,6}})?S)?"
    return anchored(f"-?P(?=[0-9T]){days}(?:{hours})?")


# ---- numbers in strings ----


def decimal(whole: int | None = None, places: int | None = None) -> str:
    """Returns a pattern of decimal numbers of at most `whole` digits before the point and `places` digits
    behind it."""
    before = "[0-9]{1,308}" if whole is None else "0" if whole <= 0 else f"(?:0|[1-9][0-9]{{0,{whole - 1}}})"
    behind = "[0-9]{1,308}" if places is None else f"[0-9]{{1,{places}}}"
    return anchored(f"-?{before}" + ("" if places == 0 else rf"(?:\.{behind})?"))


def complex_number() -> str:
    real = r"[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,2})?"
    return anchored(f"-?{real}(?:[+-]{real}j)?|-?{real}j")


def fraction() -> str:
    return anchored("-?[0-9]{1,30}(?:/[1-9][0-9]{0,29})?")


# ---- bytes in strings ----


def base64(letters: str, least: int = 0, most: int | None = None, ascii_only: bool = False) -> str:
    """Padded base64 (RFC 4648) of `least` to `most` bytes. `letters` are the last two of the alphabet.

    `ascii_only`: every byte is below 0x80, so the bytes are text in UTF-8.
    """
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + letters

    def places(*clear: int) -> str:  # the letters whose value has 0 at these bits
        kept = "".join(c for n, c in enumerate(alphabet) if not any(n >> bit & 1 for bit in clear))
        return "[" + kept.replace("-", r"\-") + "]"

    # The place of each byte's highest bit in the values of the four letters.
    high: list[tuple[int, ...]] = [(5,), (3,), (1,)] if ascii_only else [(), (), ()]
    one, two, three, four = places(*high[0]), places(*high[1]), places(*high[2]), places()
    whole = f"{one}{two}{three}{four}" if ascii_only else f"{four}{{4}}"
    tails = {
        0: "",
        1: f"{one}{places(*high[1], 0, 1, 2, 3)}==",
        2: f"{one}{two}{places(*high[2], 0, 1)}=",
    }
    parts = []
    for rest, tail in tails.items():
        low = max(0, -((rest - least) // 3))
        top = None if most is None else (most - rest) // 3
        if top is None or top >= low:
            parts.append(f"(?:{whole}){{{low},{'' if top is None else top}}}{tail}")
    return anchored("|".join(parts)) if parts else "(?!)"


def hexadecimal(least: int = 0, most: int | None = None) -> str:
    return anchored(f"(?:{HEX}{{2}}){{{least},{'' if most is None else most}}}")


# ---- identifiers and addresses ----


def uuid(version: int | None) -> str:
    """Returns a UUID. With a version it also has the variant of RFC 9562."""
    third = f"{HEX}{{4}}" if version is None else f"{version}{HEX}{{3}}"
    fourth = f"{HEX}{{4}}" if version is None else f"[89ABab]{HEX}{{3}}"
    return anchored(f"{HEX}{{8}}-{HEX}{{4}}-{third}-{fourth}-{HEX}{{12}}")


def ipv4() -> str:
    return rf"{_OCTET}(?:\.{_OCTET}){{3}}"


def ipv6() -> str:
    group = f"{HEX}{{1,4}}"
    parts = [f"(?:{group}:){{7}}{group}"]
    for left in range(8):
        head = "" if left == 0 else group if left == 1 else f"{group}(?::{group}){{{left - 1}}}"
        parts.append(f"{head}::" + ("" if left == 7 else f"(?:{group}(?::{group}){{0,{6 - left}}})?"))
    return "(?:" + "|".join(parts) + ")"


def ipv4_network() -> str:
    """Returns a pattern of networks that ``ipaddress.IPv4Network`` takes: all bits behind the prefix are
    0."""
    parts = [ipv4()]
    for length in range(33):
        octets = []
        for i in range(4):
            bits = min(8, max(0, length - 8 * i))
            step = 1 << (8 - bits)
            values = [str(v) for v in range(0, 256, step)]
            octets.append(
                _OCTET if step == 1 else values[0] if len(values) == 1 else f"(?:{'|'.join(values)})"
            )
        parts.append(r"\.".join(octets) + f"/{length}")
    return "(?:" + "|".join(parts) + ")"


def ipv6_network() -> str:
    """Returns a pattern of IPv6 networks: the groups of the prefix, then ``::``. All bits behind the prefix
    are 0."""
    parts = [ipv6(), "::/0"]
    for length in range(1, 113):
        whole, bits = divmod(length, 16)
        group = ""
        if bits:
            digits, rest = divmod(bits, 4)
            one = "" if rest == 0 else f"[{''.join(f'{v:x}' for v in range(0, 16, 1 << (4 - rest)))}]"
            group = f"{HEX}{{{digits}}}" * (digits > 0) + one + "0" * (4 - digits - (rest > 0)) + ":"
        parts.append(f"(?:{HEX}{{1,4}}:){{{whole}}}{group}:/{length}")
    return "(?:" + "|".join(parts) + ")"


def interface(address: str, bits: int) -> str:
    return f"{address}(?:/{integers(0, bits)})?"


_LABEL = "[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*"
_LAST_LABEL = "[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*"
_HOST = rf"(?:(?:{_LABEL}\.)*{_LAST_LABEL}|{_OCTET}(?:\.{_OCTET}){{3}})"
_PORT = "(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}))?"
_USER = "(?:[A-Za-z0-9._~-]+(?::[A-Za-z0-9._~-]+)?@)?"
_PATH = r"(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*)?"
_QUERY = r"(?:\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
_FRAGMENT = _QUERY.replace(r"(?:\?", "(?:#", 1)
_REST = _PATH + _QUERY + _FRAGMENT
_SPECIAL = "(?!(?:[Hh][Tt][Tt][Pp][Ss]?|[Ww][Ss][Ss]?|[Ff][Tt][Pp]|[Ff][Ii][Ll][Ee]):)"


def url(schemes: Sequence[str] | None, hosts: bool = False) -> str:
    """Returns a pattern of the URLs of RFC 3986 that the URL standard reads. `hosts` allows several hosts
    with commas between them."""
    host = f"{_USER}{_HOST}{_PORT}" + (f"(?:,{_USER}{_HOST}{_PORT})*" if hosts else "")
    if schemes is None:
        plain = rf"{_SPECIAL}[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{{2}})+"
        return anchored(f"(?:https?|wss?|ftp)://{host}{_REST}|{plain}{_REST}")
    files = "|".join(_escaped(s) for s in schemes if s == "file")
    others = "|".join(_escaped(s) for s in schemes if s != "file")
    parts = [f"(?:{others})://{host}{_REST}"] if others else []
    parts += [f"file://{_PATH.removesuffix('?')}"] if files else []
    return anchored("|".join(parts))


def email() -> str:
    """Returns a pattern of addresses that the package ``email-validator`` takes, without quoted names and
    special-use domains.

    RFC 5321 limits the name to 64 characters, a label to 63 and the address to 254.
    """
    name = "[A-Za-z0-9]+(?:[._+-][A-Za-z0-9]+)*"
    domain = rf"(?:{_LABEL}\.)+(?!(?:local|localhost|invalid|test|example|onion|arpa)$)[a-z]{{2,24}}"
    lengths = r"(?=[^@]{1,64}@(?:[^@.]{1,63}\.)+[^.]+$)(?=[\s\S]{6,254}$)"
    return f"{lengths}{name}@{domain}"


# ---- a validator's pattern in ECMA's dialect ----

_POSITIVE = {"d": "0-9", "w": "A-Za-z0-9_", "s": SPACE}
_UNICODE = {"d": r"\p{Nd}", "w": WORD, "s": SPACE}


# \b stands between a character that is a word character in every dialect and one that is a word character in
# none.
_INSIDE, _OUTSIDE = f"[{_POSITIVE['w']}]", f"[{WORD}]"
_BORDER = f"(?:(?<={_INSIDE})(?!{_OUTSIDE})|(?<!{_OUTSIDE})(?={_INSIDE}))"
_NO_BORDER = f"(?:(?<={_INSIDE})(?={_INSIDE})|(?<!{_OUTSIDE})(?!{_OUTSIDE}))"


def from_unicode(pattern: str, sets: bool = False) -> str:
    r"""Returns a pattern of Rust's or Python's dialect, whose classes are Unicode's, in ECMA's dialect.

    ``\d`` becomes the ASCII digits, and ``\D`` and ``[^\d]`` exclude all Unicode digits. So the original
    matches every text that the result matches. `sets`: the dialect has sets in classes (Rust's
    ``[a-z&&[^aeiou]]``).

    Raises:
        GrammarError: a set in a class.
    """
    out, i = [], 0
    while i < len(pattern):
        c, n = pattern[i], pattern[i + 1 : i + 2]
        if c == "\\" and n:
            if n in "dws":
                out.append(f"[{_POSITIVE[n]}]")
            elif n in "bB":
                out.append(_BORDER if n == "b" else _NO_BORDER)
            elif n in "DWS":
                out.append(f"[^{_UNICODE[n.lower()]}]")
            else:
                out.append({"A": "^", "z": "$", "Z": "$"}.get(n, "\\" + n))
            i += 2
        elif c == "[":
            text, i = _class(pattern, i + 1, sets)
            out.append(text)
        elif pattern.startswith("(?P<", i):
            out.append("(?<")
            i += 4
        elif pattern.startswith("{,", i):  # "up to n times"; ECMA reads it as text
            out.append("{0,")
            i += 2
        else:
            out.append(c)
            i += 1
    return "".join(out)


def _class(pattern: str, i: int, sets: bool) -> tuple[str, int]:
    """Reads a class from the character after `[`. Returns its pattern and the place after `]`."""
    denied = pattern.startswith("^", i)
    i += denied
    first, plain, complements = True, "", []
    while i < len(pattern) and (first or pattern[i] != "]"):
        c, n = pattern[i], pattern[i + 1 : i + 2]
        if c == "\\" and n:
            if n in "DWS":
                complements.append((_POSITIVE if denied else _UNICODE)[n.lower()])
            else:
                plain += (_UNICODE if denied else _POSITIVE).get(n, "\\" + n)
            i += 2
        elif sets and (c == "[" or (c == n and c in "&-~")):
            raise GrammarError(f"sets in classes ({c + n!r} in the pattern {pattern!r}) are not supported")
        else:
            plain += "\\" + c if c in "[]" else c
            i += 1
        first = False
    i += 1
    if denied:  # [^a\D] matches a character that is no `a` and that \D does not match
        here = "".join(f"(?=[{x}])" for x in complements) + (f"[^{plain}]" if plain else r"[\s\S]")
        return (f"(?:{here})" if complements else here), i
    parts = [f"[{plain}]"] if plain or not complements else []
    parts += [f"[^{x}]" for x in complements]
    return (parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"), i


def alternatives(texts: Iterable[str]) -> str:
    return "(?:" + "|".join(_escaped(t) for t in texts) + ")"
