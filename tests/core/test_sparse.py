"""Descriptions of tensors, supports from outside, values in another order."""

import numpy as np
import pytest

from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.sparse import MAX_NUMEL, MatrixView, SparseGradient, Support, TensorSpec


@pytest.mark.parametrize(
    ("shape", "rows", "columns"),
    [((), 1, 1), ((7,), 1, 7), ((3, 4), 3, 4), ((64, 3, 3, 3), 64, 27), ((0,), 1, 0), ((5, 0), 5, 0)],
)
def test_matrix_view(shape, rows, columns):
    view = MatrixView.of_shape(shape)
    assert (view.rows, view.columns, view.numel) == (rows, columns, rows * columns)


@pytest.mark.parametrize(("numel", "dtype"), [(1, "u4"), (2**32, "u4"), (2**32 + 1, "u8"), (MAX_NUMEL, "u8")])
def test_positions_are_as_wide_as_needed(numel, dtype):
    assert MatrixView(1, numel).position_dtype == np.dtype(dtype)


@pytest.mark.parametrize(
    ("dtype", "computed_in", "itemsize"),
    [("float16", "f4", 2), ("bfloat16", "f4", 2), ("float32", "f4", 4), ("float64", "f8", 8)],
)
def test_specs(dtype, computed_in, itemsize):
    spec = TensorSpec("layer", (3, 4), dtype)
    assert spec.value_dtype == np.dtype(computed_in)
    assert spec.itemsize == itemsize
    assert spec.numel == 12


def test_specs_refused():
    with pytest.raises(InvalidSettingError, match=r"'layer'.*int32.*float16, bfloat16, float32, float64"):
        TensorSpec("layer", (3,), "int32")
    with pytest.raises(InvalidSettingError, match=f"'layer'.*{MAX_NUMEL + 1}.*{MAX_NUMEL}"):
        TensorSpec("layer", (MAX_NUMEL + 1,))
    assert TensorSpec("layer", (MAX_NUMEL,)).numel == MAX_NUMEL


VIEW = MatrixView(1, 1000)


@pytest.mark.parametrize(
    "positions",
    [[], [3], [3, 4, 260], range(1000), np.array([3, 4], np.int64), np.array([3, 0, 4, 0], np.uint32)[::2]],
    ids=str,
)
def test_a_support_from_outside(positions):
    support = Support.checked(positions, VIEW)
    assert support.positions.tolist() == list(positions)
    assert support.positions.dtype == np.uint32
    assert support.positions.flags.c_contiguous
    assert support.kept == len(positions)


@pytest.mark.parametrize(
    ("positions", "words"),
    [
        ([3, 1000], "1000 is outside numel 1000"),
        ([-1, 3], "-1 is outside numel 1000"),
        ([3, 2**32 + 4], "is outside numel 1000"),
        ([4, 3], "positions: 3 at index 1 is not above 4"),
        ([3, 3], "positions: 3 at index 1 is not above 3"),
        ([[3, 4]], "2 dimensions"),
        ([3.0, 4.0], "float64"),
        (3, "0 dimensions"),
        (["3"], "integers"),
    ],
    ids=str,
)
def test_a_wrong_support_from_outside(positions, words):
    with pytest.raises(InvalidSettingError, match=words):
        Support.checked(positions, VIEW)


def test_values_in_another_order():
    support = Support.checked([10, 20, 30], VIEW)
    gradient = SparseGradient(support, np.array([3.0, 1.0, 2.0], np.float32), np.array([2, 0, 1]))
    assert gradient.by_position().values.tolist() == [1.0, 2.0, 3.0]
    assert gradient.by_position().order is None
    dense = gradient.to_dense()
    assert dense.shape == (1000,)
    assert dense[[10, 20, 30]].tolist() == [1.0, 2.0, 3.0]
    assert np.count_nonzero(dense) == 3
    in_order = gradient.by_position()
    assert in_order.by_position() is in_order
