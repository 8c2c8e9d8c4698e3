"""Varints and the bounded reader, against the reference."""

import pytest
import reference.bits as reference
from hypothesis import example, given
from hypothesis import strategies as st

from hvd_deepreduce.errors import CorruptPayloadError, TruncatedPayloadError
from hvd_deepreduce.wire.reader import ByteReader, varint


@given(st.integers(0, 2**63 - 1))
@example(0)
@example(127)
@example(128)
@example(2**63 - 1)
def test_round_trip(value):
    encoded = varint(value)
    assert encoded == reference.varint(value)
    reader = ByteReader(encoded + b"\x07", "frame")
    assert reader.varint("kept") == value
    assert reader.rest() == b"\x07"


@pytest.mark.parametrize("value", [-1, 2**63])
def test_what_does_not_fit(value):
    with pytest.raises(ValueError, match=str(value)):
        varint(value)


@given(st.binary(max_size=12))
@example(b"\x80" * 9)
@example(b"\xff" * 8 + b"\x7f")
@example(b"\x80\x00")
@example(b"\x00")
@example(b"")
def test_any_bytes_are_read_as_the_reference_reads_them(data):
    theirs = reference.ByteReader(data)
    try:
        value, error = theirs.varint(), None
    except reference.TruncatedError:
        value, error = None, TruncatedPayloadError
    except reference.CorruptError:
        value, error = None, CorruptPayloadError
    ours = ByteReader(data, "frame")
    if error is None:
        assert ours.varint("kept") == value
        assert ours.offset == theirs.place
    else:
        with pytest.raises(error, match="frame: kept at byte 0") as raised:
            ours.varint("kept")
        assert type(raised.value) is error
        assert ours.offset == 0, "the reader moved over what it refused"


def test_taking_more_than_there_is():
    reader = ByteReader(b"abcdef", "frame", 2)
    assert reader.take(3, "payload") == b"cde"
    with pytest.raises(TruncatedPayloadError, match=r"frame: payload of 2 bytes at byte 5 .* byte 6"):
        reader.take(2, "payload")
    with pytest.raises(TruncatedPayloadError):
        reader.take(2**62, "payload")
    assert reader.take(1, "payload") == b"f"
    assert reader.take(0, "payload") == b""
