"""Kernels that walk a dense gradient, or reach into it, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hvd_deepreduce import _native
from hvd_deepreduce.errors import InvalidSettingError

DTYPES = [np.float32, np.float64]
NUMELS = [0, 1, 63, 64, 1000, 40_001]


def normal(numel, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(numel).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("numel", NUMELS)
@pytest.mark.parametrize("fault", [np.nan, -np.nan, np.inf, -np.inf])
def test_all_finite_finds_one_fault_anywhere(fault, numel, dtype):
    values = normal(numel, dtype)
    values[::5] = np.finfo(dtype).max
    assert _native.all_finite(values)
    for place in {0, 1, numel // 3, numel // 2, numel - 2, numel - 1} & set(range(numel)):
        faulty = values.copy()
        faulty[place] = fault
        assert not _native.all_finite(faulty)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("numel", NUMELS)
@pytest.mark.parametrize("scale", [1, 1e-45, "huge"])
def test_compensate_adds(scale, numel, dtype):
    scale = np.finfo(dtype).max / 20 if scale == "huge" else scale
    gradient, residual = normal(numel, dtype) * dtype(scale), normal(numel, dtype, 1) * dtype(scale)
    before, expected = gradient.copy(), residual + gradient
    assert _native.compensate(residual, gradient)
    assert residual.tobytes() == expected.tobytes()
    assert gradient.tobytes() == before.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("numel", [1, 64, 40_001])
@pytest.mark.parametrize("side", ["gradient", "sum"])
@pytest.mark.parametrize("fault", [np.nan, np.inf, -np.inf])
def test_compensate_leaves_the_residual_where_a_sum_is_not_finite(fault, side, numel, dtype):
    for place in {0, numel // 2, numel - 1}:
        gradient, residual = normal(numel, dtype), normal(numel, dtype, 1)
        gradient[place] = fault
        if side == "sum":
            gradient[place] = residual[place] = np.copysign(np.finfo(dtype).max, fault)
        before = residual.tobytes()
        assert not _native.compensate(residual, gradient)
        assert residual.tobytes() == before


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("numel", [1, 20, 40_001])
@pytest.mark.parametrize("fault", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("largest_term", [1, 1e37])
def test_a_residual_that_was_not_finite_comes_back_but_for_rounding(largest_term, fault, numel, dtype):
    for place in {0, numel // 2, numel - 1}:
        gradient, residual = normal(numel, dtype), normal(numel, dtype, 1)
        gradient[0] = largest_term
        residual[place] = fault
        before = residual.copy()
        assert not _native.compensate(residual, gradient)
        np.testing.assert_allclose(residual[1:], before[1:], rtol=0, atol=1e-6)
        if numel <= 20:
            assert residual.tobytes() == before.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_compensate_overflows_where_numpy_does(dtype):
    """Around half a step above the largest number the sum may still round down to it."""
    largest = np.finfo(dtype).max
    step = largest - np.nextafter(largest, dtype(0))
    for term in (step / 4, np.nextafter(step / 2, dtype(0)), step / 2, step, largest):
        for left, right in ((largest, term), (-largest, -term), (largest, -term)):
            residual, gradient = np.array([left], dtype), np.array([right], dtype)
            with np.errstate(over="ignore"):
                expected = residual + gradient
            assert _native.compensate(residual, gradient) == np.isfinite(expected[0])


def test_compensate_with_itself_doubles():
    values = normal(1000, np.float32)
    expected = values * 2
    assert _native.compensate(values, values)
    np.testing.assert_array_equal(values, expected)


@st.composite
def scattered(draw):
    """dtype, dense values, positions in any order with repetition, and a value for each."""
    dtype = draw(st.sampled_from(DTYPES))
    finite = st.floats(-1e6, 1e6, width=32)
    dense = draw(hnp.arrays(dtype, st.integers(1, 200), elements=finite))
    positions = draw(hnp.arrays(np.uint32, st.integers(0, 100), elements=st.integers(0, len(dense) - 1)))
    return dense, positions, draw(hnp.arrays(dtype, len(positions), elements=finite))


@given(scattered())
def test_gather_reads(case):
    dense, positions, _ = case
    gathered = _native.gather(dense, positions)
    assert gathered.dtype == dense.dtype
    np.testing.assert_array_equal(gathered, dense[positions])


@given(scattered(), st.sampled_from([1.0, 0.5, 1 / 3, -0.1, 0.0]))
def test_scatter_add_rounds_the_product_first(case, factor):
    dense, positions, values = case
    expected = dense.copy()
    terms = (values.astype(np.float64) * factor).astype(dense.dtype)
    np.add.at(expected, positions, terms)
    _native.scatter_add(dense, positions, values, factor)
    assert dense.tobytes() == expected.tobytes()


@given(scattered())
def test_subtract_at_subtracts(case):
    dense, positions, values = case
    expected = dense.copy()
    np.subtract.at(expected, positions, values)
    _native.subtract_at(dense, positions, values)
    assert dense.tobytes() == expected.tobytes()


def test_a_factor_of_one_keeps_every_bit():
    dense = np.zeros(3, np.float32)
    _native.scatter_add(dense, np.uint32([0, 2]), np.float32([1e-45, np.inf]), 1.0)
    np.testing.assert_array_equal(dense, np.float32([1e-45, 0, np.inf]))


@pytest.mark.parametrize("bad", [10, 11, 2**32 - 1])
def test_a_position_outside_changes_nothing(bad):
    dense = normal(10, np.float32)
    before = dense.tobytes()
    positions, values = np.uint32([3, bad, 4]), np.ones(3, np.float32)
    message = f"^positions: {bad} at index 1 is outside numel 10$"
    with pytest.raises(InvalidSettingError, match=message):
        _native.scatter_add(dense, positions, values, 2.0)
    with pytest.raises(InvalidSettingError, match=message):
        _native.subtract_at(dense, positions, values)
    with pytest.raises(InvalidSettingError, match=message):
        _native.gather(dense, positions)
    assert dense.tobytes() == before


def test_no_position_fits_an_empty_gradient():
    empty = np.zeros(0, np.float32)
    assert len(_native.gather(empty, np.zeros(0, np.uint32))) == 0
    with pytest.raises(InvalidSettingError, match="0 at index 0 is outside numel 0"):
        _native.gather(empty, np.zeros(1, np.uint32))
