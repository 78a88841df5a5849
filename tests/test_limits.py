"""Units of work: counted the same on every machine, and what a call leaves behind that runs out of them."""

from __future__ import annotations

import pytest

import structgen
from structgen import _core, errors
from tests.harness import WORDS, vocabulary

SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "string", "pattern": "^[a-f]+x?$", "maxLength": 9},
        "b": {"type": "array", "items": {"type": "integer", "multipleOf": 3}, "contains": {"minimum": 5}},
    },
    "required": ["a"],
    "oneOf": [{"required": ["b"]}, {"properties": {"a": {"minLength": 3}}, "maxProperties": 1}],
}
TEXT = b'{"a":"abcx","b":[3,6,9]}'


def work_of(call) -> int:
    before = _core._work_done()
    call()
    return _core._work_done() - before


def compile_and_read() -> structgen.Matcher:
    matcher = structgen.Compiler(vocabulary(WORDS)).json_schema(SCHEMA).matcher()
    assert matcher.accept_bytes(TEXT) and matcher.is_accepting()
    return matcher


def test_work_is_counted_alike() -> None:
    first = work_of(compile_and_read)
    assert first > 100
    assert first == work_of(compile_and_read)


def test_a_failure_that_was_asked_for() -> None:
    total = work_of(compile_and_read)
    for after in range(1, total, max(1, total // 50)):
        _core._fail_after(after)
        with pytest.raises(errors.StructgenError, match="a test asked for"):
            compile_and_read()
    compile_and_read()
    _core._fail_after(0)
