"""The qsgd kernels and their random numbers, against the reference and by their statistics."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from reference import qsgd as reference
from reference import randomness

from hvd_deepreduce import _native
from hvd_deepreduce.errors import CorruptPayloadError, TruncatedPayloadError

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
KEYS = st.integers(0, 2**64 - 1)
BITS, BUCKETS = st.integers(2, 16), st.sampled_from([1, 2, 3, 7, 64, 2**20])


def patterns(values):
    return values.view(f"u{values.itemsize}").tolist()


@given(KEYS, st.integers(0, 50))
def test_draws_are_splitmix64(key, count):
    draws = _native.random_u64(key, count)
    assert draws.dtype == np.uint64
    assert draws.tolist() == [randomness.draw(key, index) for index in range(count)]


def test_draws_of_the_published_generator():
    """The first outputs of SplitMix64 seeded with 1234567, as its authors' test vectors have them."""
    assert _native.random_u64(1234567, 3).tolist() == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@given(hnp.arrays(np.uint32, st.integers(0, 40)), BITS, BUCKETS, KEYS)
def test_any_float32(bits_of, bits, bucket, key):
    values = bits_of.view(np.float32)
    payload = _native.qsgd_encode(values, bits, bucket, key)
    assert payload == reference.encode(patterns(values), 32, bits, bucket, key)
    decoded = _native.qsgd_decode(payload, len(values), bits, bucket, FLOAT32)
    assert patterns(decoded) == reference.decode(payload, len(values), 32, bits, bucket)


@given(hnp.arrays(np.float64, st.integers(0, 40), elements=st.floats()), BITS, BUCKETS, KEYS)
def test_any_float64(values, bits, bucket, key):
    payload = _native.qsgd_encode(values, bits, bucket, key)
    assert payload == reference.encode(patterns(values), 64, bits, bucket, key)
    decoded = _native.qsgd_decode(payload, len(values), bits, bucket, FLOAT64)
    assert patterns(decoded) == reference.decode(payload, len(values), 64, bits, bucket)


@given(st.binary(min_size=16, max_size=16), st.sampled_from([FLOAT32, FLOAT64]))
def test_any_bytes(payload, dtype):
    """Two buckets of three values of 10 bits: 8 bytes of norms, 8 of fields."""
    try:
        expected = reference.decode(payload, 6, 8 * dtype.itemsize, 10, 3)
    except reference.CorruptError:
        with pytest.raises(CorruptPayloadError, match="padding"):
            _native.qsgd_decode(payload, 6, 10, 3, dtype)
    else:
        assert patterns(_native.qsgd_decode(payload, 6, 10, 3, dtype)) == expected


def test_the_example_of_the_format():
    assert _native.qsgd_encode(np.float32([0, 3, 0, 0]), 2, 4, 0).hex() == "0000404004"


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
@pytest.mark.parametrize(("bits", "bucket"), [(2, 64), (4, 512), (7, 512), (16, 1000)])
def test_a_value_lands_on_a_level_next_to_it(bits, bucket, dtype):
    values = np.random.default_rng(1).standard_normal(5000).astype(dtype)
    decoded = _native.qsgd_decode(_native.qsgd_encode(values, bits, bucket, 5), 5000, bits, bucket, dtype)
    levels = 2 ** (bits - 1) - 1
    for start in range(0, 5000, bucket):
        part = slice(start, start + bucket)
        norm = np.linalg.norm(values[part].astype(np.float64))
        assert np.abs(decoded[part].astype(np.float64) - values[part]).max() <= norm / levels * (1 + 1e-6)


def test_the_mean_over_many_keys_is_the_value():
    values = np.float32([0.3, -0.02, 0.0, 1.0, -0.7, 1e-3])
    bits, trials = 3, 4000
    sums = np.zeros(6)
    for key in range(trials):
        sums += _native.qsgd_decode(_native.qsgd_encode(values, bits, 6, key), 6, bits, 6, FLOAT32)
    step = np.linalg.norm(values) / 3
    # A level is off by half a step in standard deviation at most; five of them.
    np.testing.assert_allclose(sums / trials, values, atol=5 * step / 2 / trials**0.5)


def test_values_of_a_tensor_draw_apart():
    """Value i takes draw i whatever the buckets are: equal values don't round alike."""
    values = np.full(10_000, 0.5, np.float32)
    fields = np.frombuffer(_native.qsgd_encode(values, 8, 100, 3)[400:], np.uint8) & 127
    norm = np.float32(5.0)
    up = np.mean(fields == np.ceil(0.5 * 127 / norm))
    assert abs(up - 0.7) < 0.03
    assert set(fields.tolist()) == {12, 13}


def test_faulty_buckets_decode_to_nan_and_others_do_not():
    values = np.float32([1, np.inf, 2, 2, 0, 0, np.nan, 1])
    decoded = _native.qsgd_decode(_native.qsgd_encode(values, 4, 2, 0), 8, 4, 2, FLOAT32)
    assert np.isnan(decoded).tolist() == [True, True, False, False, False, False, True, True]


def test_wrong_lengths_and_padding():
    payload = _native.qsgd_encode(np.ones(3, np.float32), 7, 2, 0)
    assert len(payload) == 2 * 4 + 3
    for size in range(len(payload)):
        with pytest.raises(TruncatedPayloadError, match=f"^qsgd: payload of {size} bytes; 11 are needed$"):
            _native.qsgd_decode(payload[:size], 3, 7, 2, FLOAT32)
    with pytest.raises(CorruptPayloadError, match="^qsgd: payload of 12 bytes; 1 are left over$") as caught:
        _native.qsgd_decode(payload + b"\0", 3, 7, 2, FLOAT32)
    assert caught.type is CorruptPayloadError
    padded = payload[:-1] + bytes([payload[-1] | 0x80])
    with pytest.raises(CorruptPayloadError, match="^qsgd: padding bits of the last byte, [0-9]+, are not zero$"):
        _native.qsgd_decode(padded, 3, 7, 2, FLOAT32)
