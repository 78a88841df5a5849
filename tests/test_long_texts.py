"""Arrays of many different items: verdicts as arithmetic has them.

What a token costs as a text grows is measured by `python -m bench.long`.
"""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

import structgen

BYTES = structgen.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b""], eos_token_ids=[256])


def spelling(source: random.Random, value: int) -> str:
    """One of the ways to write value / 4."""
    quarters, whole = value % 4, value // 4 if value >= 0 or value % 4 == 0 else value // 4 + 1
    if quarters == 0:
        return source.choice([f"{whole}", f"{whole}.0", f"{whole}.00"])
    text = f"{abs(value) * 25 // 100}.{abs(value) * 25 % 100:02}"
    return ("-" if value < 0 else "") + text + source.choice(["", "0"])


@pytest.mark.parametrize("seed", range(12))
def test_many_numbers_are_different(seed: int) -> None:
    source = random.Random(seed)
    schema: dict[str, object] = {"type": "array", "uniqueItems": True, "items": {"type": "number"}}
    if seed % 3 == 0:
        schema["items"] = {"type": ["number", "string"]}
    if seed % 3 == 1:
        schema["items"] = {"type": "number", "minimum": -1000, "exclusiveMaximum": 900}
    grammar = structgen.Compiler(BYTES).json_schema(schema)
    matcher, seen = grammar.matcher(), set()
    assert matcher.accept_bytes(b"[")
    for _ in range(120):
        value = source.randrange(-90, 90)
        text = spelling(source, value)
        number = Fraction(text)
        fork = matcher.fork()
        ends = fork.accept_bytes(text.encode() + b"]") and fork.is_accepting()
        assert ends == (number not in seen), (sorted(seen), text)
        if not ends:  # but a longer number may begin so
            assert matcher.fork().accept_bytes(text.encode())
            continue
        seen.add(number)
        assert matcher.accept_bytes(text.encode() + b",")
    assert len(seen) > 60
