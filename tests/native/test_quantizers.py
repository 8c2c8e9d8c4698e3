"""The kernels of `onebit`, `twobit`, `terngrad` and `natural`, against the reference and by their statistics."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from reference import centroids, natural, terngrad
from reference.bits import CorruptError

from hvd_deepreduce import _native
from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
DTYPES = st.sampled_from([FLOAT32, FLOAT64])
KEYS = st.integers(0, 2**64 - 1)


def patterns(values):
    return values.view(f"u{values.itemsize}").tolist()


@st.composite
def any_values(draw):
    """Any bits at all, or finite ones, of which there are more interesting ones."""
    dtype = draw(DTYPES)
    count = st.integers(0, 30)
    if draw(st.booleans()):
        return draw(hnp.arrays(f"u{dtype.itemsize}", count)).view(dtype)
    floats = st.floats(width=8 * dtype.itemsize, allow_nan=False, allow_infinity=False)
    return draw(hnp.arrays(dtype, count, elements=floats))


@given(any_values(), KEYS)
def test_terngrad_of_any_values(values, key):
    width = 8 * values.itemsize
    payload = _native.terngrad_encode(values, key)
    assert payload == terngrad.encode(patterns(values), width, key)
    decoded = _native.terngrad_decode(payload, len(values), values.dtype)
    assert patterns(decoded) == terngrad.decode(payload, len(values), width)


@given(any_values(), KEYS)
def test_natural_of_any_values(values, key):
    width = 8 * values.itemsize
    payload = _native.natural_encode(values, key)
    assert payload == natural.encode(patterns(values), width, key)
    decoded = _native.natural_decode(payload, len(values), values.dtype)
    assert patterns(decoded) == natural.decode(payload, len(values), width)


@given(any_values(), st.sampled_from([(1, 900), (3, 300), (30, 30), (450, 2), (900, 1)]), st.data())
def test_centroids_of_any_values(values, shape, data):
    rows, columns = shape
    width, classes, mean = 8 * values.itemsize, data.draw(st.integers(1, 2)), data.draw(st.booleans())
    places = data.draw(st.sets(st.integers(0, 899), min_size=len(values), max_size=len(values)))
    positions = np.array(sorted(places), np.uint32)
    # "column" in the reference is always a mean, and the one row of a vector one group.
    grouped = mean and rows > 1
    settings = {"centroid": "column" if grouped else "mean" if mean else "min", "rows": rows, "columns": columns}
    settings["positions"] = positions.tolist()
    groups = (positions, columns, 900) if grouped else (None, 0, 0)
    payload = _native.centroids_encode(values, *groups, mean, classes)
    assert payload == centroids.encode(patterns(values), width, settings, classes)
    decoded = _native.centroids_decode(payload, len(values), *groups, mean, classes, values.dtype)
    assert patterns(decoded) == centroids.decode(payload, len(values), width, settings, classes)


@given(st.binary(min_size=2, max_size=9), st.integers(0, 20), DTYPES)
def test_natural_of_any_bytes(tail, kept, dtype):
    payload = tail[:1] + b"\0" + tail[1:]
    try:
        expected = natural.decode(payload, kept, 8 * dtype.itemsize)
    except CorruptError:
        with pytest.raises(CorruptPayloadError, match="^natural: "):
            _native.natural_decode(payload, kept, dtype)
    else:
        assert patterns(_native.natural_decode(payload, kept, dtype)) == expected


@given(st.binary(min_size=8, max_size=8), st.integers(16, 20))
def test_terngrad_of_any_bytes(payload, kept):
    try:
        expected = terngrad.decode(payload, kept, 32)
    except CorruptError:
        with pytest.raises(CorruptPayloadError, match="^terngrad: "):
            _native.terngrad_decode(payload, kept, FLOAT32)
    else:
        assert patterns(_native.terngrad_decode(payload, kept, FLOAT32)) == expected


def means(codec, values, trials):
    """Mean over many keys, in float64; every trial has keys of its own."""
    encode, decode = getattr(_native, f"{codec}_encode"), getattr(_native, f"{codec}_decode")
    total = np.zeros(len(values))
    for key in range(trials):
        total += decode(encode(values, key), len(values), values.dtype)
    return total / trials


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
def test_terngrad_is_unbiased(dtype):
    values = np.array([0.3, -0.02, 0.0, 1.0, -0.7, 1e-3, 0.999], dtype)
    trials = 8000
    deviation = np.sqrt(np.abs(values) * (1 - np.abs(values)) / trials)
    assert (np.abs(means("terngrad", values, trials) - values) <= 5 * deviation + 1e-7).all()


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
def test_natural_is_unbiased(dtype):
    values = np.array([1.0, -1.001, 1.5, -1.999, 0.3, 7e-5, -1e10, 0.0], dtype)
    trials = 8000
    step = np.exp2(np.floor(np.log2(np.abs(np.where(values == 0, 1, values.astype(np.float64))))))
    assert (np.abs(means("natural", values, trials) - values) <= 5 * step / 2 / trials**0.5).all()
    assert means("natural", values[:1], 100) == 1.0, "a power of two is exact"


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
def test_natural_is_unbiased_below_the_least_normal_number(dtype):
    tiny = np.finfo(dtype).tiny
    values = np.array([0.25, -0.5, 0.75, 0.001], dtype) * tiny
    found = means("natural", values, 8000) / float(tiny)
    assert (np.abs(found - [0.25, -0.5, 0.75, 0.001]) <= 5 * 0.5 / 8000**0.5).all()


@pytest.mark.parametrize("codec", ["terngrad", "natural"])
def test_values_of_a_tensor_draw_apart(codec):
    values = np.full(20_000, 0.75, np.float32)
    values[0] = 1
    decoded = getattr(_native, f"{codec}_decode")(getattr(_native, f"{codec}_encode")(values, 3), len(values), FLOAT32)
    # Half of 0.5 ... 1 for natural, three quarters of 1 for terngrad.
    assert abs(decoded[1:].astype(np.float64).mean() - 0.75) < 0.02
    assert len(np.unique(decoded[1:])) == 2


def test_a_group_for_each_column_with_a_position():
    values, positions = np.float32([1, -2, 3, 4]), np.uint32([0, 2, 3, 4])
    assert _native.centroids_encode(values, positions, 3, 6, True, 1).hex() == "00000040000080400000004002"


def test_wide_positions_are_grouped_alike():
    values = np.float32([1, 2, 3, 5])
    columns, numel = 2**20 + 1, (2**20 + 1) * 2**12
    narrow = _native.centroids_encode(values, np.uint32([3, 5, columns + 3, 7 * columns + 5]), columns, 2**32, True, 1)
    wide = np.uint64([3, 5, columns + 3, 4095 * columns + 5])
    assert _native.centroids_encode(values, wide, columns, numel, True, 1) == narrow


def test_positions_that_do_not_fit_the_values_are_refused():
    with pytest.raises(InvalidSettingError, match="positions: 3 elements for 2 values"):
        _native.centroids_encode(np.ones(2, np.float32), np.arange(3, dtype=np.uint32), 2, 4, True, 1)
    with pytest.raises(InvalidSettingError, match="positions: 3 elements for 2 values"):
        _native.centroids_decode(bytes(5), 2, np.arange(3, dtype=np.uint32), 2, 4, True, 1, FLOAT32)


@pytest.mark.parametrize("classes", [1, 2])
@pytest.mark.parametrize("mean", [False, True])
def test_centroids_lessen_the_error(mean, classes):
    """With a mean, no other centroid is nearer; with the smallest, nothing is overstated."""
    values = np.random.default_rng(1).laplace(size=5000).astype(np.float32)
    values = values[np.abs(values) > 2]
    payload = _native.centroids_encode(values, None, 0, 0, mean, classes)
    decoded = _native.centroids_decode(payload, len(values), None, 0, 0, mean, classes, FLOAT32)
    assert (np.signbit(decoded) == np.signbit(values)).all()
    sizes, taken = np.abs(values).astype(np.float64), np.abs(decoded)
    for centroid in np.unique(taken):
        members = sizes[taken == centroid]
        assert centroid == pytest.approx(members.mean() if mean else members.min(), rel=1e-6)
