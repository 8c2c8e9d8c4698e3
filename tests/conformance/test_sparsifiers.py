"""What every registered sparsifier keeps, against the plain reading of its definition."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import inputs
from conformance.inputs import DRAW, VALUE_DTYPES
from conformance.subjects import SPARSIFIER_SUBJECTS
from hvd_deepreduce.errors import InvalidSettingError
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


def _draw(place):
    """SplitMix64 with key 0, as FORMAT.md, 6, has it."""
    z = (place + 1) * 0x9E3779B97F4A7C15 % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def _sample(values, count):
    stride = len(values) // count if count else 0
    return [abs(values[place * stride + _draw(place) % stride]) for place in range(count)]


def _dropping(values, rate, sample, scope):
    count = min(len(values), max(round(sample * len(values)), math.ceil(10 / (1 - rate))))
    above = max(1, round((1 - rate) * count))
    largest = sorted(_sample(values, count), reverse=True)
    threshold = largest[above] if above < count else 0
    return [position for position, element in enumerate(values) if abs(element) > threshold]


EXPECTED = {
    "none": lambda values: [position for position, element in enumerate(values) if element != 0],
    "topk": _topk,
    "threshold": _threshold,
    "dropping": _dropping,
}

sparsifiers = pytest.mark.parametrize("sparsifier", SPARSIFIER_SUBJECTS)
dtypes = pytest.mark.parametrize("dtype", VALUE_DTYPES, ids=str)


def new_slots(sparsifier, values):
    return {name: np.zeros(size, values.dtype) for name, size in sparsifier.slot_sizes(len(values)).items()}


def check(sparsifier, values, rows=1):
    view = MatrixView(rows, len(values) // rows)
    before = values.copy()
    values.flags.writeable = False
    support = sparsifier.sparsify(values, view, DRAW, new_slots(sparsifier, values))
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
    nothing = np.empty(0, dtype)
    support = sparsifier.sparsify(nothing, MatrixView(1, 0), DRAW, new_slots(sparsifier, nothing))
    assert support.kept == 0


@pytest.mark.parametrize(("numel", "density", "kept"), [(1000, 0.01, 10), (10, 0.01, 1), (36864, 0.01, 369), (3, 1, 3)])
def test_topk_keeps_as_many_as_documented(numel, density, kept):
    values = inputs.gradient_values(np.dtype(np.float32), numel)
    assert SPARSIFIERS["topk"](density=density).sparsify(values, MatrixView(1, numel), DRAW, {}).kept == kept


def test_a_threshold_beyond_float32_keeps_nothing():
    values = np.array([3.4e38, -3.4e38], np.float32)
    assert SPARSIFIERS["threshold"](value=1e300).sparsify(values, MatrixView(1, 2), DRAW, {}).kept == 0


@pytest.mark.parametrize("numel", [1_000, 36_864, 1_000_000])
@pytest.mark.parametrize("rate", [0.9, 0.99])
def test_dropping_keeps_about_its_share(numel, rate):
    values = np.random.default_rng(numel).standard_normal(numel).astype(np.float32)
    kept = SPARSIFIERS["dropping"](rate=rate).sparsify(values, MatrixView(1, numel), DRAW, {}).kept
    assert kept == pytest.approx((1 - rate) * numel, rel=0.5)


def test_dropping_never_keeps_zeros():
    values = np.zeros(50_000, np.float32)
    values[1234] = 1
    support = SPARSIFIERS["dropping"]().sparsify(values, MatrixView(1, 50_000), DRAW, {})
    assert support.positions.tolist() == [1234]


def test_a_global_threshold_is_that_of_all_elements_of_the_step_before():
    """A layer of ten times the scale keeps nearly all its elements; one of a tenth, nearly none."""
    sparsifier = SPARSIFIERS["dropping"](rate=0.9, sample=0.05, scope="global")
    rng = np.random.default_rng(3)
    layers = [scale * rng.standard_normal(numel) for scale, numel in ((1, 200_000), (10, 10_000), (0.1, 30_000))]
    slots = [new_slots(sparsifier, layer) for layer in layers]
    for step in range(2):
        sparsifier.begin_step([(len(layer), one) for layer, one in zip(layers, slots, strict=True)])
        shares = []
        for layer, one in zip(layers, slots, strict=True):
            support = sparsifier.sparsify(layer, MatrixView(1, len(layer)), DRAW, one)
            shares.append(support.kept / len(layer))
        if step == 0:
            assert shares == pytest.approx([0.1, 0.1, 0.1], rel=0.7)
    everything = np.sort(np.abs(np.concatenate(layers)))[::-1]
    exact = everything[len(everything) // 10]
    for layer, share in zip(layers, shares, strict=True):
        assert share == pytest.approx(np.mean(np.abs(layer) > exact), rel=0.1, abs=0.001)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rate": 1.0}, "dropping: rate=1.0; allowed is 0 to below 1"),
        ({"rate": -0.1}, "dropping: rate=-0.1"),
        ({"sample": 0.0}, "dropping: sample=0.0"),
        ({"scope": "layer"}, "dropping: scope='layer'; allowed are 'tensor', 'global'"),
    ],
)
def test_dropping_refuses(settings, message):
    with pytest.raises(InvalidSettingError, match=re.escape(message)):
        SPARSIFIERS["dropping"](**settings)
