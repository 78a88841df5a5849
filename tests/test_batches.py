"""Batches of masks: a failure of one row changes no other row."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

import structgen
from oracles import harness

DEEP = 5_000


def required(depth: int) -> dict:
    """Returns a schema whose required members are nested so deep that the engine cannot decide whether a
    value exists."""
    schema: dict = {"type": "integer"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return schema


def mask(rows: int) -> np.ndarray:
    return structgen.allocate_bitmask(rows, harness.vocabulary(harness.WORDS).vocab_size)


class Using:
    """A list of tokens. While a matcher iterates over the list, the list calls the matcher."""

    def __init__(self, meanwhile) -> None:
        self.meanwhile = meanwhile

    def __iter__(self) -> Iterator[int]:
        self.meanwhile()
        return iter(())


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("rows", [2, 7, 200])
@pytest.mark.parametrize("bad", [0, 1, -1])
def test_a_row_that_fails_is_reported_by_itself(threads: int, rows: int, bad: int) -> None:
    bad %= rows
    compiler = structgen.Compiler(harness.vocabulary(harness.WORDS))
    grammars = [compiler.json_schema({"type": "string", "maxLength": i % 9}) for i in range(rows)]
    matchers = [g.matcher() for g in grammars]
    expected = mask(rows)
    for i, matcher in enumerate(matchers):
        matcher.fork().fill_bitmask(expected, i)
    expected[bad] = 0
    found, errors = mask(rows), []

    def meanwhile() -> None:
        errors.append(structgen.fill_bitmasks(matchers, found, threads, skip_errors=True))

    assert matchers[bad]._core.accept_tokens(Using(meanwhile))
    assert np.array_equal(found, expected)
    assert [i for i, e in enumerate(errors[0]) if e is not None] == [bad]
    assert isinstance(errors[0][bad], ValueError)

    found = mask(rows)

    def raising() -> None:
        with pytest.raises(ValueError, match="another thread") as caught:
            structgen.fill_bitmasks(matchers, found, threads)
        errors.append(caught.value)

    assert matchers[bad]._core.accept_tokens(Using(raising))
    assert np.array_equal(found, expected)
    assert errors[1].rows == (bad,)
    assert f"row {bad} of a batch of {rows}" in errors[1].__notes__[0]
    assert structgen.fill_bitmasks(matchers, found, threads) is None
    assert structgen.fill_bitmasks(matchers, found, threads, skip_errors=True) == [None] * rows


@pytest.mark.parametrize("threads", [1, 2])
def test_a_mask_beyond_a_limit(threads: int) -> None:
    compiler = structgen.Compiler(harness.vocabulary(harness.WORDS))
    try:
        hard = compiler.json_schema({"properties": {"a": {"type": "array", "items": required(DEEP)}}})
    except structgen.SchemaTooComplex:
        pytest.skip("it is refused when it is compiled")
    easy = compiler.json_schema({"type": "boolean"})
    matchers = [easy.matcher(), hard.matcher(), easy.matcher(), hard.matcher()]
    for m in (matchers[1], matchers[3]):
        assert m.accept_bytes('{"a":')
    found = mask(4)
    for _ in range(2):
        with pytest.raises(structgen.StructgenError) as caught:
            structgen.fill_bitmasks(matchers, found, threads)
        assert caught.value.rows == (1, 3)
        assert "rows 1, 3 of a batch of 4" in caught.value.__notes__[0]
        assert not found[[1, 3]].any()
        assert np.array_equal(found[0], found[2])
        assert found[0].any()
        with pytest.raises(structgen.StructgenError):
            matchers[1].fill_bitmask(found, 0)
        assert not found[0].any()
    assert [m.num_steps for m in matchers] == [0, 1, 0, 1]


def test_wrong_arguments_touch_nothing() -> None:
    compiler = structgen.Compiler(harness.vocabulary(harness.WORDS))
    matcher = compiler.json_schema({"type": "boolean"}).matcher()
    for rows, matchers in ((1, [matcher, matcher.fork()]), (2, [matcher, matcher])):
        found = mask(rows)
        for skip in (False, True):
            with pytest.raises(ValueError):
                structgen.fill_bitmasks(matchers, found, skip_errors=skip)
            assert (found == -1).all()
    found = mask(1)
    with pytest.raises(structgen.UnsatisfiableBudget):
        matcher.fill_bitmask(found, max_tokens=1)
    assert not found.any()


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("seed", range(20))
def test_scattered_rows(kind: str, threads: int, seed: int) -> None:
    """Each matcher's mask is in the matcher's row, and other rows are unchanged. One matcher in five
    fails."""
    chance = random.Random(seed)
    compiler = structgen.Compiler(harness.vocabulary(harness.WORDS))
    height = chance.choice([1, 5, 40, 200])
    count = chance.randint(0, height)
    matchers = []
    for i in range(count):
        grammar = compiler.json_schema({"type": "string", "maxLength": i % 7})
        matchers.append(grammar.matcher(max_tokens=0 if chance.random() < 0.2 else 50))
    rows = chance.sample(range(height), count)
    given = [row - height if chance.random() < 0.3 else row for row in rows]
    expected = np.full_like(mask(height), 0x5A5A)
    found = expected.copy()
    for matcher, row in zip(matchers, rows, strict=True):
        try:
            matcher.fork().fill_bitmask(expected, row)
        except structgen.UnsatisfiableBudget:
            assert not expected[row].any()
    held = found
    if kind == "torch":
        held = pytest.importorskip("torch").from_numpy(found)
    errors = structgen.fill_bitmasks(matchers, held, threads, rows=given, skip_errors=True)
    assert np.array_equal(found, expected)
    assert [e is not None for e in errors] == [not expected[row].any() for row in rows]
    if count:
        structgen.fill_bitmasks(matchers[:1], found, rows=np.array(rows[:1]), skip_errors=True)
        assert np.array_equal(found, expected)


def test_wrong_rows_touch_nothing() -> None:
    compiler = structgen.Compiler(harness.vocabulary(harness.WORDS))
    a = compiler.json_schema({"type": "boolean"}).matcher()
    pair = [a, a.fork()]
    found = mask(3)
    for rows in ([0, 0], [1, -2], [0], [0, 1, 2], [0, 3], [0, -4], [0, 1 << 80], []):
        with pytest.raises(ValueError, match="row"):
            structgen.fill_bitmasks(pair, found, rows=rows)
    with pytest.raises(ValueError, match="no matchers"):
        structgen.fill_bitmasks([], found, rows=[0])
    for rows in (["0", "1"], 5, [0.0, 1.0]):
        with pytest.raises(TypeError, match="list of row numbers"):
            structgen.fill_bitmasks(pair, found, rows=rows)  # type: ignore[arg-type]
    assert (found == -1).all()
    structgen.fill_bitmasks([], found, rows=[])
