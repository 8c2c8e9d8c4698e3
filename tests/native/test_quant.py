"""The quant kernels against the reference where conformance has no matrix, and what is promised of error and size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from reference import quant as reference
from reference.bits import CorruptError

from hvd_deepreduce import Quant, _native
from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError, TruncatedPayloadError
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
ERRORS = (0.001, 0.01, 0.02, 0.05, 0.1, 0.5)


def patterns(values):
    return values.view(f"u{values.itemsize}").tolist()


def support_in(rows, columns, kept, seed=0):
    positions = np.random.default_rng(seed).choice(rows * columns, kept, replace=False)
    view = MatrixView(rows, columns)
    return Support(np.sort(positions).astype(view.position_dtype), view)


def layer_values(support, seed=0, dtype=np.float32):
    """Signs and sizes of an outer product, some of them turned over, above a threshold."""
    rng = np.random.default_rng(seed)
    rows, columns = np.divmod(support.positions.astype(np.int64), support.view.columns)
    product = rng.normal(size=support.view.rows)[rows] * rng.normal(size=support.view.columns)[columns]
    product += 0.3 * rng.normal(size=support.kept)
    return (np.sign(product) * (0.2 + np.abs(product))).astype(dtype)


def relative_error(decoded, values):
    wide = values.astype(np.longdouble)
    return float(np.sqrt(np.sum((decoded - wide) ** 2) / np.sum(wide**2)))


def agree(codec, values, support, draw):
    """Our payload and the reference's, and what both decode it to."""
    view, width = support.view, 8 * values.itemsize
    place = reference.Place(support.positions.tolist(), view.columns)
    if view.rows == 1 or view.columns > 8 * support.kept:
        place = None
    payload = codec.encode(values, support, draw)
    theirs = reference.encode(patterns(values), width, codec.error, codec.unbiased, draw.key(), place)
    assert payload == theirs
    decoded = codec.decode(payload, support, values.dtype, draw)
    assert patterns(decoded) == reference.decode(payload, support.kept, width, codec.unbiased, draw.key(), place)
    return payload, decoded


@given(
    hnp.arrays(np.float32, st.integers(1, 60), elements=st.floats(-4, 4, width=32)),
    st.integers(1, 9),
    st.sampled_from([0.02, 0.1, 0.4]),
    st.booleans(),
)
def test_signs_by_place_agree_with_the_reference(values, rows, error, unbiased):
    support = support_in(rows, -(-3 * len(values) // rows), len(values), seed=len(values))
    agree(Quant(error, unbiased), values, support, Draw(step=len(values)))


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
@pytest.mark.parametrize(("rows", "columns"), [(60, 90), (2, 3000), (3000, 2), (1, 6000), (5400, 1)])
def test_a_layer_agrees_with_the_reference(rows, columns, dtype):
    support = support_in(rows, columns, 2500)
    agree(Quant(0.05), layer_values(support, dtype=dtype), support, Draw())


def test_positions_of_64_bits():
    support = support_in(2**31, 4, 500)
    assert support.positions.dtype == np.uint64
    agree(Quant(0.05), layer_values(support_in(50, 4 * 50, 500)), support, Draw())


@given(st.binary(max_size=40), st.sampled_from([3, 4]), st.sampled_from([FLOAT32, FLOAT64]), st.integers(0, 20))
def test_any_bytes(tail, mode, dtype, kept):
    """Both decoders accept the same, and read it alike."""
    head = np.array([0.5, 0.25], dtype).tobytes()
    payload = bytes([mode]) + tail[:1] + head + tail[1:]
    support = support_in(4, 10, kept)
    place = reference.Place(support.positions.tolist(), 10) if 8 * kept >= 10 else None
    try:
        expected = reference.decode(payload, kept, 8 * dtype.itemsize, True, 7, place)
    except CorruptError:
        with pytest.raises(CorruptPayloadError):
            _native.quant_decode(payload, kept, support.positions, 4, 10, True, 7, dtype)
    else:
        decoded = _native.quant_decode(payload, kept, support.positions, 4, 10, True, 7, dtype)
        assert patterns(decoded) == expected


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
@pytest.mark.parametrize("error", ERRORS)
def test_the_error_is_met_and_no_more(error, dtype):
    support = support_in(100, 500, 5000)
    gaussian = np.random.default_rng(3).standard_normal(5000).astype(dtype)
    for values in (layer_values(support, dtype=dtype), gaussian, gaussian**3):
        decoded = Quant(error).decode(Quant(error).encode(values, support, Draw()), support, dtype, Draw())
        assert 0.95 * error <= relative_error(decoded, values) <= error


@given(hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_the_error_is_never_exceeded(values):
    codec, support = Quant(0.1), support_in(1, 100, len(values))
    for array in (values, np.clip(values, -3e38, 3e38).astype(np.float32)):
        decoded = codec.decode(codec.encode(array, support, Draw()), support, array.dtype, Draw())
        if array.any():
            assert relative_error(decoded, array) <= 0.1


@pytest.mark.parametrize("exponent", [-149, -145, -140, -130, -126, 100, 126])
def test_the_error_is_met_where_floats_end(exponent):
    values = np.ldexp(np.random.default_rng(1).uniform(0.5, 2, 3000), exponent).astype(np.float32)
    support = support_in(1, 4000, 3000)
    decoded = Quant(0.02).decode(Quant(0.02).encode(values, support, Draw()), support, FLOAT32, Draw())
    assert relative_error(decoded, values) <= 0.02


def test_unbiased_means_are_right_and_errors_too():
    support, codec = support_in(10, 100, 400), Quant(0.2, unbiased=True)
    values = layer_values(support)
    trials, total = 600, np.zeros(400)
    for step in range(trials):
        draw = Draw(step=step)
        decoded = codec.decode(codec.encode(values, support, draw), support, FLOAT32, draw)
        assert relative_error(decoded, values) <= 0.2
        total += decoded
    # The dither's deviation is a step / sqrt(12); five of them.
    step_width = 0.2 * np.linalg.norm(values) * np.sqrt(12 / 400)
    np.testing.assert_allclose(total / trials, values, atol=5 * step_width / (12 * trials) ** 0.5)


def test_the_unbiased_error_does_not_depend_on_values():
    """Subtractive dither: noise is uniform in a step and uncorrelated with the values."""
    support, codec = support_in(100, 500, 20_000), Quant(0.1, unbiased=True)
    values = layer_values(support)
    noise = codec.decode(codec.encode(values, support, Draw()), support, FLOAT32, Draw()) - values
    assert abs(np.corrcoef(np.abs(values), noise * np.sign(values))[0, 1]) < 0.03
    assert abs(np.corrcoef(np.abs(values), np.abs(noise))[0, 1]) < 0.03


@pytest.mark.parametrize(("error", "bits"), [(0.1, 7), (0.05, 8), (0.02, 10)])
def test_fewer_bits_than_qsgd_at_a_smaller_error(error, bits):
    support = support_in(1, 10**6, 10_000)
    values = np.random.default_rng(0).laplace(size=10**6).astype(np.float32)
    values = values[_native.select_topk(values, 10_000)]
    payload = Quant(error).encode(values, support, Draw())
    qsgd = _native.qsgd_encode(values, bits, 512, 1)
    found = relative_error(_native.qsgd_decode(qsgd, 10_000, bits, 512, FLOAT32), values)
    assert found > error * 0.7
    assert len(payload) < 0.5 * len(qsgd)


def test_signs_of_a_product_cost_little_and_those_of_noise_a_bit():
    support = support_in(200, 500, 20_000)
    signs = np.sign(layer_values(support))
    assert 8 * len(Quant().encode(signs, support, Draw())) / 20_000 < 0.75
    noise = np.sign(np.random.default_rng(0).standard_normal(20_000)).astype(np.float32)
    assert 8 * len(Quant().encode(noise, support, Draw())) / 20_000 < 1.03


def test_head_and_stream_are_told_apart_in_errors():
    support = support_in(1, 1000, 50)
    values = np.random.default_rng(0).standard_normal(50).astype(np.float32)
    payload = Quant().encode(values, support, Draw())
    for size in range(len(payload)):
        with pytest.raises(TruncatedPayloadError, match="^quant: "):
            Quant().decode(payload[:size], support, FLOAT32, Draw())
    with pytest.raises(CorruptPayloadError, match="3 are left over"):
        Quant().decode(payload + b"abc", support, FLOAT32, Draw())


def test_arguments_are_refused_by_name():
    positions = np.arange(4, dtype=np.uint32)
    values = np.float32([1, 2, 3])
    with pytest.raises(InvalidSettingError, match="^positions: 4 for 3 values"):
        _native.quant_encode(values, positions, 2, 2, 0.1, False, 0)
    with pytest.raises(InvalidSettingError, match="^error: "):
        _native.quant_encode(values, positions[:3], 1, 4, 0.0, False, 0)
    with pytest.raises(InvalidSettingError, match="^columns: "):
        _native.quant_encode(values, positions[:3], 2**33, 2, 0.1, False, 0)
    with pytest.raises(InvalidSettingError, match="^positions: dtype"):
        _native.quant_encode(values, positions[:3].astype(np.uint64), 2, 2, 0.1, False, 0)
