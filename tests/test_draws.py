"""The noise behind every draw: a hash of the draw's place, distributed as Gumbel, and equal in all
callers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.harness import cases
from structgen._draws import Noise, draw, probabilities, shaped, top
from structgen.generation import Drawing

PLACES = st.integers(0, 10**6)


@given(seed=st.integers(0, 2**128), index=st.integers(0, 999), position=PLACES, data=st.data())
@settings(max_examples=cases(60), deadline=None)
def test_noise_is_a_function_of_its_place(seed: int, index: int, position: int, data: st.DataObject) -> None:
    whole = Noise(seed, index).gumbel(position, 300)
    some = np.array(data.draw(st.lists(st.integers(0, 299), min_size=1)), dtype=np.int64)
    assert np.array_equal(Noise(seed, index).gumbel(position, some), whole[some])
    for other in (Noise(seed + 1, index), Noise(seed, index + 1)):
        assert not np.any(other.gumbel(position, 300) == whole)
    assert not np.any(Noise(seed, index).gumbel(position + 1, 300) == whole)


def test_uniform_numbers_are_uniform_and_uncorrelated() -> None:
    noise = Noise(5)
    table = np.stack([noise.uniform(p, 512) for p in range(512)])
    assert table.min() > 0 and table.max() < 1
    assert abs(table.mean() - 0.5) < 4 * np.sqrt(1 / 12 / table.size)
    counts = np.histogram(table, bins=64, range=(0, 1))[0]
    expected = table.size / 64
    assert ((counts - expected) ** 2 / expected).sum() < 63 + 5 * np.sqrt(2 * 63)
    centred = table - 0.5
    for shifted in (np.roll(centred, 1, 0), np.roll(centred, 1, 1), centred.T):
        rows = centred * shifted
        np.fill_diagonal(rows, 0.0)
        assert abs(rows.mean()) < 5 / 12 / np.sqrt(table.size)
    assert Noise(5).generator().random() == noise.generator().random() not in table


@pytest.mark.parametrize(("top_k", "top_p"), [(None, None), (3, None), (None, 0.8), (4, 0.7)])
def test_draws_follow_the_shaped_softmax(top_k: int | None, top_p: float | None) -> None:
    how = Drawing(0.8, top_k, top_p, 1)
    row = np.log(np.array([0.3, 0.05, 0.25, 0.2, 0.1, 0.1], np.float32))
    row[4] = -np.inf
    noise, count = Noise(11), 6000
    found = np.bincount([draw(row, how, noise, p) for p in range(count)], minlength=6) / count
    ids, want = probabilities(row, how)
    assert found[4] == 0 and set(np.flatnonzero(found)) == set(ids.tolist())
    for i, p in zip(ids, want, strict=True):
        assert abs(found[i] - p) < 4.5 * np.sqrt(p * (1 - p) / count)
    assert set(shaped(row, how)[0]) == set(ids)


def test_extreme_temperatures_are_their_limits() -> None:
    row = np.log(np.array([0.2, 0.5, 0.3], np.float32))
    for temperature in (1e-320, 1e-300, 1e-9):
        assert draw(row, Drawing(temperature, None, None, 0), Noise(0), 3) == 1
    hot = Drawing(1e300, None, None, 0)
    assert {draw(row, hot, Noise(0), p) for p in range(60)} == {0, 1, 2}


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, -np.inf]), min_size=1, max_size=12), st.integers(1, 12))
def test_top_is_a_stable_sort_cut_off(values: list[float], count: int) -> None:
    array = np.array(values)
    found = top(array, count)
    assert np.array_equal(array[found], np.sort(array)[::-1][: len(found)])
