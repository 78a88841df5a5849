"""A tiny template language, so that one line of template stands for many sentences.

Enters: a template such as ``(order|buy) {count} {item}[ for {who}]``.
Leaves: one sentence, and which slots it used.
Cost: linear in the template.

``(a|b)`` is a choice, ``[x]`` and ``[x|y]`` may be left out, ``{slot}`` takes
the surface form of a value.  Groups nest.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from training import words

# Parentheses without a bar are the sentence's own.
_OWN = r"\([^()\[\]|]*\)"
_INNERMOST = re.compile(rf"\(((?:[^()\[\]|]|{_OWN})*\|(?:[^()\[\]]|{_OWN})*)\)|\[((?:[^()\[\]]|{_OWN})*)\]")
_ARTICLE = re.compile(r"\b([Aa])n?( )([A-Za-z])")
_SLOT = re.compile(r"\{(\w+)\}")


def choose(template: str, rng: random.Random) -> str:
    """Resolve choices and optional parts, leaving the slots."""
    while True:
        match = _INNERMOST.search(template)
        if match is None:
            return template
        if match.group(1) is not None:
            chosen = rng.choice(match.group(1).split("|"))
        else:
            chosen = rng.choice(match.group(2).split("|")) if rng.random() < 0.5 else ""
        template = template[: match.start()] + chosen + template[match.end() :]


def slots_of(template: str) -> list[str]:
    return _SLOT.findall(template)


def disturb(template: str, rng: random.Random, odd_word: Callable[[], str], firm: set[str]) -> str:
    """Put odd words between and in place of a template's own words.

    So a value's end is learnt from the value and the sentence, not from the few
    words that happen to stand beside it in the templates.  Next to a slot an
    odd word comes only if the slot is `firm`: its value then cannot seem to
    go on.  Cue words, whose loss would change the meaning, stay.
    """
    if rng.random() < 0.3:  # other separators than the template's own
        template = template.replace(", ", rng.choice(("; ", " - ", ": ", ". ", " ")), 1)
    parts = template.split(" ")
    result: list[str] = []
    for at, part in enumerate(parts):
        following = parts[at + 1] if at + 1 < len(parts) else ""
        literal = part.isalpha() and "{" not in part
        if literal and len(part) > 3 and part.lower() not in words.listed("cue") and rng.random() < 0.12:
            result.append(odd_word())
        else:
            result.append(part)
        loose = [slot for side in (part, following) for slot in slots_of(side) if slot not in firm]
        if not loose and (part.isalpha() or part.endswith("}")) and rng.random() < 0.07:
            result.append(odd_word())
    return " ".join(result)


def fill(template: str, surface: Callable[[str], str]) -> str:
    """Put each slot's surface form in; capital at the start, as people write.

    A value that opens the sentence stays as it is, so that values are always copied unchanged.
    """
    text = _SLOT.sub(lambda m: surface(m.group(1)), template)
    text = _ARTICLE.sub(
        lambda m: m.group(1) + ("n" if m.group(3).lower() in "aeiou" else "") + m.group(2) + m.group(3), text
    )
    return text if template.startswith("{") else text[:1].upper() + text[1:]
