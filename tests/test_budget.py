"""Masks under a budget: exact against tokens_needed, equal to the plain mask where loose, cheap and small
where nearly any token may stand. That walks end is tested where the grammars are."""

from __future__ import annotations

import resource
import time
from typing import Any

import numpy as np
import pytest

import structgen

from . import oracle

TEXTS = [bytes([b]) for b in range(32, 127)] + [
    *(
        b'{"',
        b'":',
        b'","',
        b'"]',
        b'"}',
        b'",',
        b"ab",
        b"abc",
        b'a"',
        b'ab":',
        b'b","',
        b"[[",
        b'["',
        b'":"',
        b"true",
        b"\\u",
    ),
    *(b"\xc3", b"\xa9", b"12", b"]}", b"{}", b'""', b'"a"', b'"a":', b',"a', b'a","b'),
]
SIZE = len(TEXTS) + 1
FREE: dict[str, Any] = {  # any other name may stand, three must
    "type": "object",
    "properties": {
        "deviceName": {"type": "string", "minLength": 1},
        "recipients": {"type": "array", "items": {"type": "string"}},
        "alarms": {"type": "array"},
    },
    "required": ["deviceName", "recipients", "alarms"],
}
COUNTED = {"type": "object", "minProperties": 3, "additionalProperties": {"type": "integer"}}
DIFFERENT = {"type": "array", "items": {"type": "string"}, "minItems": 3, "uniqueItems": True}
SCHEMAS = [
    FREE,
    COUNTED,
    DIFFERENT,
    {
        "type": "object",
        "patternProperties": {"^[ab]$": {}},
        "additionalProperties": False,
        "minProperties": 2,
    },
    {"type": "array", "items": {"enum": ["a", "b", "abc", 1, 12]}, "minItems": 4, "uniqueItems": True},
    {
        "type": "array",
        "items": {"type": "object", "required": ["a"], "minProperties": 2},
        "minItems": 2,
        "uniqueItems": True,
    },
]


def small() -> structgen.Compiler:
    return structgen.Compiler(structgen.Vocabulary.from_bytes([*TEXTS, b""], SIZE - 1))


@pytest.mark.parametrize("index", range(len(SCHEMAS)))
def test_allowed_iff_it_can_be_finished(index: int) -> None:
    """A token is allowed exactly if what it leads to can be finished by the tokens left behind it."""
    grammar = small().json_schema(SCHEMAS[index])
    for seed in range(6):
        source = np.random.default_rng(seed)
        matcher = grammar.matcher()
        left = matcher.tokens_needed() + int(source.integers(0, 8))
        while not matcher.is_terminated():
            plain, within = oracle.mask_of(matcher, SIZE), oracle.mask_of(matcher, SIZE, left)
            assert within.any()
            assert not (within & ~plain).any()
            for token in np.flatnonzero(plain).tolist():
                fork = matcher.fork()
                assert fork.accept_token(token)
                fits = fork.tokens_needed() <= left - 1
                assert fits == bool(within[token]), (TEXTS[token] if token < len(TEXTS) else "end", left)
            assert matcher.accept_token(int(source.choice(np.flatnonzero(within))))
            left -= 1
        assert left >= 0


def bound(matcher: structgen.Matcher, size: int, left: int) -> tuple[np.ndarray, float]:
    began = time.process_time()
    mask = oracle.mask_of(matcher, size, left)
    return mask, time.process_time() - began


@pytest.mark.parametrize("schema", [FREE, COUNTED, DIFFERENT], ids=["free", "counted", "different"])
def test_any_token_may_stand(schema: dict[str, Any], tekken_vocabulary: structgen.Vocabulary) -> None:
    """127,000 tokens are open; a mask costs milliseconds, and neither time nor memory for each of them."""
    size = len(tekken_vocabulary)
    compiler = structgen.Compiler(tekken_vocabulary)
    matcher = compiler.json_schema(schema).matcher()
    assert matcher.accept_bytes(b'["' if schema is DIFFERENT else b'{"')
    plain = oracle.mask_of(matcher, size)
    assert plain.sum() > 100_000
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    least = matcher.tokens_needed()
    for left in (least, least + 1, least + 2, least + 5):
        mask, seconds = bound(matcher, size, left)
        assert mask.any()
        assert seconds < 2.0, (left, seconds)
    loose, seconds = bound(matcher, size, 4 * least + 100)
    assert (loose == plain).all()
    assert seconds < 2.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held < 100 << 10
    assert compiler._core.byte_size < 100 << 20
