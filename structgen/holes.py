"""Texts with holes: decides whether a grammar has a text made of fixed texts and gaps.

Enters: a list of texts and `Gap`s. Leaves: a `Completion`; the core does the work (``csrc/engine/holes.h``).
Cost: see `CompiledGrammar.can_complete`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ._checks import one_of, whole

_ANY, _BYTES, _TOKENS = 1, 2, 3
_ENDLESS = (1 << 64) - 1
_MOST = 1 << 32  # the largest bound of one gap. The core has a lower limit on the sum over all parts.

Unit = Literal["bytes", "tokens"]
Part = tuple[int, bytes, int, int]  # a part in the core's form: kind, text, least and most units


@dataclass(frozen=True, slots=True)
class Gap:
    """An unknown stretch of a text.

    Args:
        least: the least number of units.
        most: the largest number of units; None allows any number of bytes.
        unit: "bytes", or "tokens" of the grammar's vocabulary. A gap of tokens has an exact number of tokens:
            ``Gap(8, unit="tokens")``. No token in a gap ends the text.

    Raises:
        ValueError: a negative or reversed range, an unknown unit, a range of tokens.
        TypeError: a bound that is no whole number.
    """

    least: int = 0
    most: int | None = None
    unit: Unit = "bytes"

    def __post_init__(self) -> None:
        for name in ("least", "most"):
            value = getattr(self, name)
            if value is None and name == "most":
                continue
            whole(f"Gap: {name}", value, 0, _MOST)
        one_of("Gap: unit", self.unit, ("bytes", "tokens"))
        if self.most is not None and self.most < self.least:
            raise ValueError(f"Gap: most ({self.most}) is less than least ({self.least})")
        if self.unit == "tokens" and self.most not in (None, self.least):
            raise ValueError("Gap: a gap of tokens has an exact number of them; leave `most` out")

    def _part(self) -> Part:
        least = operator.index(self.least)
        if self.unit == "tokens":
            return (_TOKENS, b"", least, least)
        if self.most is None:
            return (_ANY if least == 0 else _BYTES, b"", least, _ENDLESS)
        return (_BYTES, b"", least, operator.index(self.most))


@dataclass(frozen=True, slots=True)
class Completion:
    """Whether the gaps of a text can be filled.

    Attributes:
        verdict: True (``text`` is such a text, and the grammar has accepted it), False (it is proved that
            none exists), or None (a limit was met, or the answer depends on repeated texts in the gaps).
        text: the whole text with filled gaps; empty unless the verdict is True.
    """

    verdict: bool | None
    text: bytes = b""

    def __bool__(self) -> bool:
        """Returns True if the verdict is True."""
        return self.verdict is True


def core_parts(parts: Iterable[Any]) -> list[Part]:
    """Returns the parts in the core's form.

    Raises:
        TypeError: a part is neither text nor gap, or `parts` is one text in place of a list.
    """
    if isinstance(parts, (str, bytes, Gap)):
        raise TypeError(f"the parts are a list of texts and gaps, not {parts!r:.60}")
    out: list[Part] = []
    for part in parts:
        if isinstance(part, Gap):
            out.append(part._part())
        elif isinstance(part, (str, bytes)):
            out.append((0, hole_text(part, "a part"), 0, 0))
        else:
            raise TypeError(f"a part is text (str or bytes) or a Gap, not {part!r:.60}")
    return out


def hole_text(text: Any, what: str) -> bytes:
    """Text around a hole as bytes.

    Raises:
        TypeError: the value is no text. ValueError: the text has half a surrogate pair.
    """
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise TypeError(f"{what} is text (str or bytes), not {text!r:.60}")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} has half a surrogate pair at character {error.start}") from None
