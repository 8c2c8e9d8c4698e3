"""Sparsifier kernels against NumPy: a stable sort, and a comparison."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hvd_deepreduce import _native

DTYPES = [np.float32, np.float64]


def largest(values, kept):
    """The oracle: a stable sort by magnitude, so that ties go to the lower position."""
    return np.sort(np.argsort(-np.abs(values), kind="stable")[:kept])


def bits_to_values(bits, dtype):
    values = bits.view(dtype).copy()
    values[~np.isfinite(values)] = 0
    return values


def normal(numel, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(numel).astype(dtype)


def one_spike(numel, dtype):
    values = np.zeros(numel, dtype)
    values[numel // 3] = 1e30
    return values


SHAPES = {
    "normal": normal,
    "zeros": lambda numel, dtype: np.zeros(numel, dtype),
    "equal": lambda numel, dtype: np.full(numel, -3, dtype),
    "one spike": one_spike,
    "two values": lambda numel, dtype: np.where(np.arange(numel) % 2, 1, -2).astype(dtype),
    "few values": lambda numel, dtype: np.round(normal(numel, dtype) * 8),
    "nearly all zero": lambda numel, dtype: np.where(np.arange(numel) % 97 == 5, normal(numel), 0).astype(dtype),
    "sorted": lambda numel, dtype: np.sort(np.abs(normal(numel, dtype))),
    "falling": lambda numel, dtype: np.geomspace(1e30, 1e-30, numel).astype(dtype),
    "subnormal": lambda numel, dtype: (np.arange(numel) % 1000 * np.finfo(dtype).smallest_subnormal).astype(dtype),
    "one large block": lambda numel, dtype: np.where(np.arange(numel) < numel // 50, 1e9, 1) * normal(numel, dtype),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("numel", [1, 511, 513, 5000, 300_000])
def test_topk_is_a_stable_sort(shape, numel, dtype):
    values = np.ascontiguousarray(SHAPES[shape](numel, dtype), dtype)
    order = np.argsort(-np.abs(values), kind="stable")
    for kept in {0, 1, 2, numel // 100, numel // 20, numel // 8, numel // 5, numel // 2, numel - 1, numel}:
        kept = min(kept, numel)
        positions = _native.select_topk(values, kept)
        assert positions.dtype == np.uint32
        np.testing.assert_array_equal(positions, np.sort(order[:kept]), err_msg=f"kept {kept}")


@pytest.mark.parametrize("dtype", DTYPES)
def test_topk_for_every_kept(dtype):
    values = np.array([0, -0.0, 2, -2, 1e-310, np.finfo(dtype).max, -1, 1, 2, 0, np.finfo(dtype).tiny] * 4, dtype)
    for kept in range(len(values) + 1):
        np.testing.assert_array_equal(_native.select_topk(values, kept), largest(values, kept))


@given(hnp.arrays(np.uint32, st.integers(0, 700)), st.floats(0, 1))
def test_topk_of_any_float32(bits, density):
    values = bits_to_values(bits, np.float32)
    kept = round(density * len(values))
    np.testing.assert_array_equal(_native.select_topk(values, kept), largest(values, kept))


@given(hnp.arrays(np.uint64, st.integers(0, 700)), st.floats(0, 1))
def test_topk_of_any_float64(bits, density):
    values = bits_to_values(bits, np.float64)
    kept = round(density * len(values))
    np.testing.assert_array_equal(_native.select_topk(values, kept), largest(values, kept))


@given(st.integers(0, 2**32), st.integers(600, 20_000), st.floats(0, 1), st.integers(1, 40))
def test_topk_of_many_ties(seed, numel, density, steps):
    values = np.round(normal(numel, seed=seed) * steps)
    kept = round(density * numel)
    np.testing.assert_array_equal(_native.select_topk(values, kept), largest(values, kept))


def test_topk_survives_a_pattern_that_follows_its_stride():
    values = np.tile(np.repeat(np.float32([1, 100]), [15, 1]), 50_000)
    np.testing.assert_array_equal(_native.select_topk(values, 60_000), largest(values, 60_000))


def test_topk_of_nan_ends():
    """Values are finite by contract; without it nothing is promised but positions inside the array."""
    values = normal(5000)
    values[::3] = np.nan
    for kept in (1, 100, 1700, 5000):
        positions = _native.select_topk(values, kept)
        _native.check_positions(positions, 5000)
        assert len(positions) == kept


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("numel", [0, 1, 31, 33, 64, 5000, 200_000])
@pytest.mark.parametrize("threshold", [-1.0, -0.0, 0.0, 1e-320, 0.1, 1.0, 2.5, 4.0, 1e39, float("inf"), float("nan")])
def test_above_is_a_comparison(numel, threshold, dtype):
    values = normal(numel, dtype)
    values[::7] = 0
    values[1::11] = -0.0
    values[2::13] = dtype(0.1)
    with np.errstate(over="ignore"):
        limit = dtype(threshold)
    np.testing.assert_array_equal(_native.select_above(values, threshold), np.flatnonzero(np.abs(values) > limit))


def test_above_leaves_nan_out_and_takes_infinities():
    values = np.float32([1, np.nan, np.inf, -np.nan, -np.inf, 0])
    np.testing.assert_array_equal(_native.select_above(values, 0.5), [0, 2, 4])
    np.testing.assert_array_equal(_native.select_above(values, -1.0), [0, 2, 4, 5])


def test_above_grows_with_what_it_finds():
    """Nothing at first, then everything: the first guess of the number is far too low."""
    values = np.zeros(100_000, np.float32)
    values[60_000:] = 1
    np.testing.assert_array_equal(_native.select_above(values, 0.0), np.arange(60_000, 100_000))
    np.testing.assert_array_equal(_native.select_above(values, -1.0), np.arange(100_000))


@given(hnp.arrays(np.uint32, st.integers(0, 300)), st.floats(width=32))
def test_above_of_any_float32(bits, threshold):
    values = bits.view(np.float32)
    expected = [i for i, value in enumerate(values.tolist()) if abs(value) > threshold]
    np.testing.assert_array_equal(_native.select_above(values, threshold), expected)
