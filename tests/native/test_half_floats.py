"""fp16 and bf16 kernels: against NumPy's float16, against exact rational arithmetic, and over all 65536 patterns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from reference.floats import BFLOAT16, BINARY16, BINARY32, BINARY64

from hvd_deepreduce import _native
from hvd_deepreduce.errors import CorruptPayloadError, TruncatedPayloadError

CODECS = {
    "fp16": (_native.fp16_encode, _native.fp16_decode, BINARY16),
    "bf16": (_native.bf16_encode, _native.bf16_decode, BFLOAT16),
}
by_codec = pytest.mark.parametrize(("encode", "decode", "kind"), CODECS.values(), ids=CODECS)
EVERY_HALF = np.arange(2**16, dtype="<u2").tobytes()


def narrowed(pattern, source, kind):
    """The oracle: to binary32 and on, finite values staying finite at both."""
    single = BINARY32.convert(pattern, source, saturate=True)
    return kind.convert(single, BINARY32, saturate=True)


@by_codec
@given(bits=hnp.arrays(np.uint32, st.integers(0, 50)))
def test_any_float32(bits, encode, decode, kind):
    expected = [narrowed(pattern, BINARY32, kind) for pattern in bits.tolist()]
    assert np.frombuffer(encode(bits.view(np.float32)), "<u2").tolist() == expected


@by_codec
@given(bits=hnp.arrays(np.uint64, st.integers(0, 50)))
def test_any_float64(bits, encode, decode, kind):
    expected = [narrowed(pattern, BINARY64, kind) for pattern in bits.tolist()]
    assert np.frombuffer(encode(bits.view(np.float64)), "<u2").tolist() == expected


@by_codec
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_around_every_half_way_case(dtype, encode, decode, kind):
    """Every finite pattern, the middle to the next one, and the neighbours of that middle."""
    halves = np.arange(kind.infinity, dtype="<u2")
    exact = decode(halves.tobytes(), len(halves), np.dtype(np.float32))
    middles = ((exact[:-1].astype(np.float64) + exact[1:]) / 2).astype(np.float32)
    down = np.nextafter(middles, np.float32(0))
    up = np.nextafter(middles, np.float32(np.inf))
    even = halves[:-1] + (halves[:-1] & 1)
    for values, expected in ((exact[:-1], halves[:-1]), (middles, even), (down, halves[:-1]), (up, halves[1:])):
        for sign, bit in ((1, 0), (-1, 0x8000)):
            encoded = np.frombuffer(encode((values * np.float32(sign)).astype(dtype)), "<u2")
            np.testing.assert_array_equal(encoded, expected | bit)


def test_fp16_is_that_of_numpy_below_its_largest():
    bits = np.random.default_rng(0).integers(0, 2**32, 200_000, dtype=np.uint32)
    values = bits.view(np.float32)
    values = values[np.abs(values) < 65504]
    assert _native.fp16_encode(values) == values.astype("<f2").tobytes()


@by_codec
def test_every_pattern_decodes(encode, decode, kind):
    decoded = decode(EVERY_HALF, 2**16, np.dtype(np.float32))
    assert decoded.view(np.uint32).tolist() == [BINARY32.convert(pattern, kind) for pattern in range(2**16)]
    halves = np.frombuffer(EVERY_HALF, "<u2")
    nan = (halves & 0x7FFF) > kind.infinity
    quiet = np.where(nan, halves & 0x8000 | kind.quiet_nan, halves)
    np.testing.assert_array_equal(np.frombuffer(encode(decoded), "<u2"), quiet)
    wide = decode(EVERY_HALF, 2**16, np.dtype(np.float64))
    assert wide.tobytes() == decoded.astype(np.float64).tobytes()
    np.testing.assert_array_equal(np.frombuffer(encode(wide), "<u2"), quiet)


def halves_of(payload):
    return np.frombuffer(payload, "<u2").tolist()


def test_saturation_infinities_and_nan():
    values = np.array([1e5, -1e5, 65519.9, 65520, np.inf, -np.inf, 1e300, -1e300])
    assert halves_of(_native.fp16_encode(values)) == [0x7BFF, 0xFBFF, 0x7BFF, 0x7BFF, 0x7C00, 0xFC00, 0x7BFF, 0xFBFF]
    values = np.array([np.inf, -np.inf, 1e300, -1e300, np.finfo(np.float32).max])
    assert halves_of(_native.bf16_encode(values)) == [0x7F80, 0xFF80, 0x7F7F, 0xFF7F, 0x7F7F]
    nans = np.uint32([0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFC00000]).view(np.float32)
    assert halves_of(_native.fp16_encode(nans)) == [0x7E00, 0xFE00, 0x7E00, 0xFE00]
    assert halves_of(_native.bf16_encode(nans)) == [0x7FC0, 0xFFC0, 0x7FC0, 0xFFC0]


def test_the_examples_of_the_format():
    assert _native.fp16_encode(np.float32([1, -2, 100000])).hex(" ", 2) == "003c 00c0 ff7b"
    assert _native.bf16_encode(np.float32([1, -2])).hex(" ", 2) == "803f 00c0"


@by_codec
def test_wrong_lengths(encode, decode, kind):
    payload = encode(np.ones(3, np.float32))
    for size in range(6):
        with pytest.raises(TruncatedPayloadError, match=f"payload of {size} bytes; 6 are needed$"):
            decode(payload[:size], 3, np.dtype(np.float32))
    with pytest.raises(CorruptPayloadError, match="payload of 7 bytes; 1 are left over$") as caught:
        decode(payload + b"\0", 3, np.dtype(np.float32))
    assert caught.type is CorruptPayloadError
