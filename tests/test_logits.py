"""Masks applied to logits, compared with brute force, for every element type, layout and backend."""

from __future__ import annotations

import numpy as np
import pytest

import structgen
from structgen import apply_bitmask, masked_log_softmax, masked_logsumexp

torch = pytest.importorskip("torch")

WIDTHS = (0, 1, 31, 32, 33, 64, 100, 1000, 4096, 5001)
NUMPY = ("float32", "float16", "uint16", "float64")  # uint16 holds the bits of bfloat16
TORCH = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
HOW = ("some", "few", "all", "none")
DEVICES = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)


def random_mask(rng: np.random.Generator, rows: int, words: int, how: str) -> np.ndarray:
    if how == "all":
        return np.full((rows, words), -1, np.int32)
    if how == "none":
        return np.zeros((rows, words), np.int32)
    mask = rng.integers(-(2**31), 2**31, (rows, words), dtype=np.int64)
    if how == "few":
        mask &= rng.integers(0, 2**31, (rows, words)) & rng.integers(0, 2**31, (rows, words))
        mask[rng.random((rows, words)) < 0.7] = 0
        mask[rng.random((rows, words)) < 0.1] = -1
    return mask.astype(np.int32)


def unpacked(mask: np.ndarray, width: int) -> np.ndarray:
    """Returns the mask as booleans, decoded bit by bit."""
    rows, words = mask.shape
    found = np.zeros((rows, width), bool)
    for row in range(rows):
        for t in range(min(width, 32 * words)):
            found[row, t] = (int(mask[row, t // 32]) >> (t % 32)) & 1
    return found


def random_logits(rng: np.random.Generator, rows: int, width: int, strange: bool) -> np.ndarray:
    logits = rng.normal(0, 6, (rows, width))
    if strange and width:
        for value in (np.nan, np.inf, -np.inf):
            logits[rng.random((rows, width)) < 0.02] = value
    return logits


def as_numpy(values: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "uint16":
        return torch.from_numpy(values).to(torch.bfloat16).view(torch.uint16).numpy()
    return values.astype(dtype)


def back(array: np.ndarray) -> np.ndarray:
    """Returns the numbers of an array or of a tensor as float64."""
    if array.dtype == np.uint16:
        return torch.from_numpy(array).view(torch.bfloat16).double().numpy()
    return array.astype(np.float64)


def expected_sum(logits: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    kept = np.where(allowed, logits, -np.inf)
    if not kept.shape[-1]:
        return np.full(kept.shape[:-1], -np.inf)
    return torch.logsumexp(torch.from_numpy(kept), dim=-1).numpy()


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", NUMPY)
def test_numpy_against_brute_force(dtype: str, how: str) -> None:
    rng = np.random.default_rng(5)
    for width in WIDTHS:
        for rows in (1, 3):
            for words in {max(1, (width + 31) // 32 + extra) for extra in (-2, -1, 0, 1)}:
                mask = random_mask(rng, rows, words, how)
                logits = as_numpy(random_logits(rng, rows, width, strange=True), dtype)
                allowed = unpacked(mask, width)
                want = np.where(allowed, back(logits), -np.inf)
                kept = logits.copy()
                got = apply_bitmask(logits, mask)
                np.testing.assert_array_equal(back(got), want)
                np.testing.assert_array_equal(logits, kept)  # the call returned a new array
                assert apply_bitmask(logits, mask, inplace=True) is logits
                np.testing.assert_array_equal(logits, got)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("strange", (False, True))
def test_sums_against_torch(dtype: str, how: str, strange: bool) -> None:
    rng = np.random.default_rng(6)
    for width in WIDTHS:
        for words in {max(1, (width + 31) // 32 + extra) for extra in (-1, 0, 1)}:
            mask = random_mask(rng, 4, words, how)
            logits = as_numpy(random_logits(rng, 4, width, strange), dtype)
            allowed = unpacked(mask, width)
            want = expected_sum(back(logits), allowed)
            got = masked_logsumexp(logits, mask)
            assert got.dtype == (np.float64 if dtype == "float64" else np.float32)
            tight = 1e-12 if dtype == "float64" else 1e-6
            np.testing.assert_allclose(got, want, rtol=tight, atol=tight)
            soft = masked_log_softmax(logits, mask)
            with np.errstate(invalid="ignore"):
                full = np.where(np.isneginf(want)[:, None], -np.inf, back(logits) - want[:, None])
            full = np.where(allowed, full, -np.inf)
            np.testing.assert_allclose(soft, full, rtol=tight * 10, atol=tight * 10)


def test_sums_are_exact_over_wide_rows() -> None:
    rng = np.random.default_rng(7)
    for shift in (0.0, 1e4, -1e4):
        for scale in (0.0, 1e-3, 1.0, 30.0):
            logits = (rng.normal(0, 1, (2, 131_072)) * scale + shift).astype(np.float32)
            mask = random_mask(rng, 2, 4096, "some")
            want = expected_sum(logits.astype(np.float64), unpacked(mask, 131_072))
            np.testing.assert_allclose(masked_logsumexp(logits, mask), want, rtol=3e-7, atol=1e-6)


def test_shapes_of_one_row() -> None:
    logits = np.arange(40, dtype=np.float32)
    mask = np.array([1, 1], np.int32)
    assert apply_bitmask(logits, mask).shape == (40,)
    assert masked_logsumexp(logits, mask).shape == ()
    assert masked_logsumexp(logits, mask) == pytest.approx(32.0)
    np.testing.assert_array_equal(np.flatnonzero(np.isfinite(apply_bitmask(logits, mask))), [0, 32])
    shared = apply_bitmask(np.stack([logits, logits]), mask)  # one mask applies to both rows
    np.testing.assert_array_equal(np.isfinite(shared).sum(axis=1), [2, 2])
    empty = np.zeros((0, 40), np.float32)
    assert apply_bitmask(empty, np.zeros((0, 2), np.int32)).shape == (0, 40)
    assert masked_logsumexp(empty, np.zeros((0, 2), np.int32)).shape == (0,)


@pytest.mark.parametrize("inplace", (False, True))
def test_indices_leave_other_rows_alone(inplace: bool) -> None:
    rng = np.random.default_rng(8)
    logits = rng.normal(size=(5, 70)).astype(np.float32)
    mask = random_mask(rng, 2, 3, "some")
    want = logits.copy()
    allowed = unpacked(mask, 70)
    for i, row in enumerate((4, 1)):
        want[row] = np.where(allowed[i], want[row], -np.inf)
    np.testing.assert_array_equal(apply_bitmask(logits.copy(), mask, indices=[-1, 1], inplace=inplace), want)
    tensor = torch.from_numpy(logits.copy())
    got = apply_bitmask(tensor, torch.from_numpy(mask), indices=[4, 1], inplace=inplace)
    np.testing.assert_array_equal(got.numpy(), want)
    same = apply_bitmask(logits, np.zeros((0, 3), np.int32), indices=[])
    np.testing.assert_array_equal(same, logits)


def test_strided_logits() -> None:
    rng = np.random.default_rng(9)
    big = rng.normal(size=(6, 200)).astype(np.float32)
    mask = random_mask(rng, 3, 4, "some")
    for view in (
        big[::2, :100],
        big[:3, ::2],
        big[:3, 50:150],
        big[:3, ::-2],
        big.T[:3, :100],
        big[2::-1, :100],
    ):
        width = view.shape[1]
        want = np.where(unpacked(mask, width), view, -np.inf)
        np.testing.assert_array_equal(apply_bitmask(view, mask), want)
        np.testing.assert_allclose(
            masked_logsumexp(view, mask), expected_sum(view.astype(float), unpacked(mask, width)), rtol=1e-6
        )
        held = big.copy()
        base = np.array(view)
        apply_bitmask(view, mask, inplace=True)
        np.testing.assert_array_equal(view, want)
        view[...] = base
        np.testing.assert_array_equal(big, held)  # the call wrote only inside the view
    expanded = torch.zeros(1, 64).expand(3, 64)
    got = apply_bitmask(expanded, torch.from_numpy(mask))
    np.testing.assert_array_equal(got.numpy(), np.where(unpacked(mask, 64), 0, -np.inf))
    turned = torch.from_numpy(big).t()[:3, :6]
    np.testing.assert_array_equal(
        apply_bitmask(turned, mask).numpy(), np.where(unpacked(mask, 6), turned.numpy(), -np.inf)
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", TORCH, ids=str)
@pytest.mark.parametrize("how", HOW)
def test_torch_agrees_with_numpy(device: str, dtype: torch.dtype, how: str) -> None:
    rng = np.random.default_rng(10)
    for width in WIDTHS[1:]:
        for words in {max(1, (width + 31) // 32 + extra) for extra in (-1, 0, 1)}:
            mask = random_mask(rng, 3, words, how)
            logits = torch.from_numpy(random_logits(rng, 3, width, strange=True)).to(dtype).to(device)
            allowed = torch.from_numpy(unpacked(mask, width)).to(device)
            want = torch.where(allowed, logits, float("-inf"))
            for words_at in (mask, torch.from_numpy(mask), torch.from_numpy(mask).to(device)):
                got = apply_bitmask(logits, words_at)
                assert got.dtype == dtype and got.device == logits.device
                torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
            wide = torch.float64 if dtype == torch.float64 else torch.float32
            sums = masked_logsumexp(logits, mask)
            torch.testing.assert_close(
                sums, torch.logsumexp(want.to(wide), -1), rtol=2e-6, atol=2e-6, equal_nan=True
            )
            soft = masked_log_softmax(logits, mask)
            assert soft.dtype == wide and soft.shape == logits.shape
            assert not torch.isnan(soft[torch.isneginf(sums)]).any()
            assert apply_bitmask(logits, mask, inplace=True) is logits
            torch.testing.assert_close(logits, want, rtol=0, atol=0, equal_nan=True)


def test_gradients_flow_through_allowed_logits() -> None:
    logits = torch.zeros(2, 40, requires_grad=True)
    mask = np.array([[1, 0], [-1, -1]], np.int32)
    masked_logsumexp(logits, mask).sum().backward()
    assert logits.grad is not None
    np.testing.assert_allclose(logits.grad[0].numpy(), [1.0] + [0.0] * 39)
    np.testing.assert_allclose(logits.grad[1].numpy(), np.full(40, 1 / 40), rtol=1e-6)
    assert apply_bitmask(logits, mask).requires_grad


def test_many_threads_agree_with_one() -> None:
    rng = np.random.default_rng(11)
    logits = rng.normal(size=(37, 3000)).astype(np.float32)
    mask = random_mask(rng, 37, 94, "some")
    one, many = (apply_bitmask(logits, mask, threads=n) for n in (1, 5))
    np.testing.assert_array_equal(one, many)
    one, many = (masked_log_softmax(logits, mask, threads=n) for n in (1, 64))
    np.testing.assert_array_equal(one, many)


def test_errors_name_the_fault() -> None:
    logits, mask = np.zeros((2, 40), np.float32), np.zeros((2, 2), np.int32)
    with pytest.raises(TypeError, match="numpy array or a tensor"):
        apply_bitmask([1.0], mask)
    with pytest.raises(TypeError, match="dtype int64"):
        apply_bitmask(np.zeros((2, 40), np.int64), mask)
    with pytest.raises(TypeError, match="int32"):
        apply_bitmask(logits, mask.astype(np.int64))
    with pytest.raises(TypeError, match="int32"):
        apply_bitmask(torch.zeros(2, 40), torch.zeros(2, 2))
    with pytest.raises(ValueError, match="3 rows for 2"):
        apply_bitmask(logits, np.zeros((3, 2), np.int32))
    with pytest.raises(ValueError, match="shape"):
        apply_bitmask(np.zeros((2, 2, 2), np.float32), mask)
    for indices in ([2, 0], [-3, 0], [0, 0], [[0, 1]], [0.5, 1.0]):
        with pytest.raises(ValueError, match="indices"):
            apply_bitmask(logits, mask, indices=indices)
    logits.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        apply_bitmask(logits, mask, inplace=True)
    with pytest.raises(ValueError, match="no bitmask"):
        structgen.allocate_bitmask(1, 0)


def test_allocate() -> None:
    mask = structgen.allocate_bitmask(3, 33)
    assert mask.shape == (3, 2) and mask.dtype == np.int32 and (mask == -1).all()


def test_triton_kernel_agrees() -> None:
    """A GPU runs the kernel itself; otherwise Triton's interpreter runs the same source."""
    import os
    import subprocess
    import sys

    pytest.importorskip("triton")
    code = """
import torch
from structgen import _kernels_torch as t, _kernels_triton as k
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
for width, words in ((40, 2), (70, 2), (5000, 157), (64, 3)):
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        logits = torch.randn(4, width, device=device).to(dtype)
        mask = torch.randint(-2**31, 2**31, (4, words), dtype=torch.int64).to(torch.int32).to(device)
        want = t.where(logits, mask)
        assert torch.equal(k.apply(logits, mask, None, False), want)
        assert torch.equal(k.apply(logits[1], mask[1], None, False), want[1])
        assert torch.equal(k.apply(logits, mask[0], None, False), t.where(logits, mask[0]))
        rows = torch.tensor([2, 0], device=device)
        some = t.where(logits, mask[:2], [2, 0])
        assert torch.equal(k.apply(logits, mask[:2], rows, False), some)
        kept = logits.clone()
        assert k.apply(kept, mask, None, True) is kept and torch.equal(kept, want)
"""
    env = {**os.environ} if torch.cuda.is_available() else {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
