"""What every registered sparsifier keeps, against the plain reading of its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import inputs
from conformance.inputs import DRAW, VALUE_DTYPES
from conformance.subjects import SPARSIFIER_SUBJECTS
from hvd_deepreduce.registry import SPARSIFIERS
from hvd_deepreduce.sparse import MatrixView


def _topk(values, density):
    kept = min(len(values), max(1, round(density * len(values))))
    order = sorted(range(len(values)), key=lambda position: (-abs(values[position]), position))
    return sorted(order[:kept])


def _threshold(values, value):
    with np.errstate(over="ignore"):
        limit = np.asarray(value).astype(values.dtype)
    return [position for position, element in enumerate(values) if abs(element) > limit]


EXPECTED = {
    "none": lambda values: [position for position, element in enumerate(values) if element != 0],
    "topk": _topk,
    "threshold": _threshold,
}

sparsifiers = pytest.mark.parametrize("sparsifier", SPARSIFIER_SUBJECTS)
dtypes = pytest.mark.parametrize("dtype", VALUE_DTYPES, ids=str)


def check(sparsifier, values, rows=1):
    view = MatrixView(rows, len(values) // rows)
    before = values.copy()
    values.flags.writeable = False
    support = sparsifier.sparsify(values, view, DRAW)
    assert np.array_equal(values, before)
    assert support.view == view
    assert support.positions.dtype == view.position_dtype
    assert support.positions.ndim == 1
    assert not np.shares_memory(support.positions, values)
    expected = EXPECTED[sparsifier.name](values, **vars(sparsifier))
    assert support.positions.tolist() == expected


def test_every_sparsifier_has_its_definition_here():
    assert set(EXPECTED) == set(SPARSIFIERS)


@dtypes
@sparsifiers
def test_keeps_what_its_definition_says(sparsifier, dtype):
    @given(inputs.values(dtype, most=60, finite=True))
    def run(values):
        check(sparsifier, values)

    run()


@dtypes
@sparsifiers
def test_ties(sparsifier, dtype):
    @given(st.lists(st.sampled_from([0.0, -0.0, 0.5, -0.5, 1.0, -1.0]), min_size=1, max_size=60))
    def run(numbers):
        check(sparsifier, np.array(numbers, dtype))

    run()


@dtypes
@sparsifiers
@pytest.mark.parametrize(
    "numbers",
    [[0.0], [-0.0], [3.0], [0.0] * 100, [1.0] * 100, [-1.0, 1.0] * 50, [1e-45, -1e-45, 0.0], [3.4e38, -3.4e38, 1.0]],
    ids=lambda numbers: f"{len(numbers)}x{numbers[0]}",
)
def test_edges(sparsifier, dtype, numbers):
    check(sparsifier, np.array(numbers).astype(dtype))


@dtypes
@sparsifiers
def test_a_large_gradient(sparsifier, dtype):
    check(sparsifier, inputs.gradient_values(dtype, 60_000), rows=100)


@dtypes
@sparsifiers
def test_no_elements(sparsifier, dtype):
    support = sparsifier.sparsify(np.empty(0, dtype), MatrixView(1, 0), DRAW)
    assert support.kept == 0


@pytest.mark.parametrize(("numel", "density", "kept"), [(1000, 0.01, 10), (10, 0.01, 1), (36864, 0.01, 369), (3, 1, 3)])
def test_topk_keeps_as_many_as_documented(numel, density, kept):
    values = inputs.gradient_values(np.dtype(np.float32), numel)
    assert SPARSIFIERS["topk"](density=density).sparsify(values, MatrixView(1, numel), DRAW).kept == kept


def test_a_threshold_beyond_float32_keeps_nothing():
    values = np.array([3.4e38, -3.4e38], np.float32)
    assert SPARSIFIERS["threshold"](value=1e300).sparsify(values, MatrixView(1, 2), DRAW).kept == 0
