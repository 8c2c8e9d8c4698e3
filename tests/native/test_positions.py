"""check_positions, and the two index codecs of fixed size, against the reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import index_codecs as reference
from reference.bits import CorruptError, TruncatedError

from hvd_deepreduce import _native
from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError, TruncatedPayloadError


def dtype_for(numel):
    return np.uint32 if numel <= 2**32 else np.uint64


def as_positions(positions, numel):
    return np.array(positions, dtype_for(numel))


LARGE = st.sampled_from([2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**33])


@st.composite
def supports(draw, large=False):
    numel = draw(LARGE if large else st.integers(1, 200))
    positions = draw(st.sets(st.integers(0, numel - 1), max_size=60))
    return sorted(positions), numel


@pytest.mark.parametrize("numel", [1000, 2**32, 2**33])
@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([5, 5], "5 at index 1 is not above 5 before it"),
        ([1, 2, 9, 7, 3], "7 at index 3 is not above 9 before it"),
        ([999, 0], "0 at index 1 is not above 999 before it"),
    ],
)
def test_the_first_offender_is_named(positions, message, numel):
    with pytest.raises(InvalidSettingError, match=f"^positions: {message}$"):
        _native.check_positions(as_positions(positions, numel), numel)


@pytest.mark.parametrize("numel", [1, 999, 2**32 - 5, 2**33])
def test_positions_at_numel_are_outside(numel):
    _native.check_positions(as_positions([numel - 1], numel), numel)
    with pytest.raises(InvalidSettingError, match=f"^positions: {numel} at index 1 is outside numel {numel}$"):
        _native.check_positions(as_positions([0, numel], numel), numel)
    with pytest.raises(InvalidSettingError, match="at index 0 is outside numel 0$"):
        _native.check_positions(np.zeros(1, np.uint32), 0)


@given(supports() | supports(large=True))
def test_supports_pass(case):
    positions, numel = case
    _native.check_positions(as_positions(positions, numel), numel)


@given(supports() | supports(large=True))
def test_raw_reads_what_the_reference_writes(case):
    positions, numel = case
    decoded = _native.raw_positions_decode(reference.raw_encode(positions, numel), len(positions), numel)
    assert decoded.dtype == dtype_for(numel)
    assert decoded.tolist() == positions


@given(supports())
def test_bitmap_is_the_reference(case):
    positions, numel = case
    payload = _native.bitmap_encode(as_positions(positions, numel), numel)
    assert payload == reference.bitmap_encode(positions, numel)
    assert _native.bitmap_decode(payload, len(positions), numel).tolist() == positions


def test_the_examples_of_the_format():
    assert _native.raw_positions_decode(bytes.fromhex("0300000004010000"), 2, 1000).tolist() == [3, 260]
    assert _native.bitmap_encode(np.uint32([0, 3]), 6) == b"\x09"


def test_nothing_kept():
    none = np.zeros(0, np.uint32)
    assert _native.bitmap_encode(none, 0) == b""
    assert _native.bitmap_encode(none, 9) == b"\0\0"
    assert len(_native.bitmap_decode(b"\0\0", 0, 9)) == 0
    assert len(_native.raw_positions_decode(b"", 0, 9)) == 0


def agree(native, slow, payload, kept, numel):
    """Both decode alike, or both refuse alike."""
    try:
        expected = slow(payload, kept, numel)
    except TruncatedError:
        with pytest.raises(TruncatedPayloadError):
            native(payload, kept, numel)
    except CorruptError:
        with pytest.raises(CorruptPayloadError) as caught:
            native(payload, kept, numel)
        assert caught.type is CorruptPayloadError
    else:
        assert native(payload, kept, numel).tolist() == expected


@given(st.binary(max_size=40), st.integers(0, 10), st.integers(1, 300))
def test_any_bytes_as_raw(payload, kept, numel):
    if kept <= numel:
        agree(_native.raw_positions_decode, reference.raw_decode, payload, kept, numel)


@given(st.data(), st.integers(1, 100))
def test_any_bytes_as_bitmap(data, numel):
    size = (numel + 7) // 8
    payload = data.draw(st.binary(min_size=max(0, size - 1), max_size=size + 1))
    kept = data.draw(st.sampled_from([min(numel, sum(byte.bit_count() for byte in payload)), 0, 1, numel]))
    agree(_native.bitmap_decode, reference.bitmap_decode, payload, kept, numel)


@pytest.mark.parametrize("decode", [_native.raw_positions_decode, _native.bitmap_decode, _native.rice_decode])
def test_more_kept_than_there_are(decode):
    with pytest.raises(CorruptPayloadError, match="kept 8589934592 is above numel 100$"):
        decode(b"", 2**33, 100)


def test_messages_of_malformed_payloads():
    with pytest.raises(TruncatedPayloadError, match="^raw positions: payload of 7 bytes; 8 are needed$"):
        _native.raw_positions_decode(bytes(7), 2, 1000)
    with pytest.raises(CorruptPayloadError, match="^raw positions: payload of 17 bytes; 1 are left over$"):
        _native.raw_positions_decode(bytes(17), 2, 2**33)
    with pytest.raises(CorruptPayloadError, match="^raw positions: 1000 at index 0 is outside numel 1000$"):
        _native.raw_positions_decode(reference.raw_encode([1000], 1000), 1, 1000)
    with pytest.raises(CorruptPayloadError, match="^raw positions: 3 at index 1 is not above 3 before it$"):
        _native.raw_positions_decode(reference.raw_encode([3, 3], 1000), 2, 1000)
    with pytest.raises(CorruptPayloadError, match="^bitmap: 3 bits are set; kept is 2$"):
        _native.bitmap_decode(b"\x07", 2, 8)
    with pytest.raises(CorruptPayloadError, match="^bitmap: 1 bits are set; kept is 2$"):
        _native.bitmap_decode(b"\x04", 2, 8)
    with pytest.raises(
        CorruptPayloadError, match="^bitmap: the last byte is 64; bits at and beyond numel 6 must be zero$"
    ):
        _native.bitmap_decode(b"\x40", 1, 6)
