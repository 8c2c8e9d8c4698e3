"""Bundles: what one rank contributes, told apart from damage, other settings and other versions; FORMAT.md, 2."""

import itertools
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import bundle as reference

from hvd_deepreduce.errors import (
    CorruptPayloadError,
    DeepReduceError,
    RemoteRankError,
    TruncatedPayloadError,
    UnsupportedVersionError,
)
from hvd_deepreduce.wire.bundle import BundleHeader, padded_length, require_padding, split_bundles

HEADER = BundleHeader(fingerprint=0x11223344, rank=0, bucket=5, step=300)
BODY = bytes.fromhex("0301020108090000803f000000c0")


def header(rank=0, **changes):
    return BundleHeader(**({"fingerprint": 0x11223344, "rank": rank, "bucket": 5, "step": 300} | changes))


def of(header):
    return reference.Expected(header.fingerprint, header.rank, header.bucket, header.step)


def read(gathered, ranks=1):
    """The bodies of all ranks, padding checked."""
    bodies = []
    for reader in split_bundles(gathered, HEADER, ranks):
        bodies.append(reader.take(len(BODY), "body"))
        require_padding(reader)
    return bodies


def test_the_bytes_are_those_of_the_reference_but_for_how_much_is_padded():
    for rank, size in itertools.product((0, 1, 200), (0, 1, 13, 1000)):
        body, sender = bytes(range(1, 14)) * size, of(header(rank))
        ours = header(rank).frames(body)
        padding = len(ours) - len(reference.encode(reference.FRAMES, body, sender))
        assert ours == reference.encode(reference.FRAMES, body, sender, padding)
        text = "no \N{SNOWMAN}" * min(size, 100)
        ours = header(rank).error(text)
        padding = len(ours) - len(reference.encode_error(text, sender))
        assert ours == reference.encode_error(text, sender, padding)


@given(st.integers(19, 2**30))
def test_padding_costs_little(length):
    assert length <= padded_length(length, 0) <= max(length + 10, 1.05 * length)


@given(st.integers(19, 2**30), st.floats(0.95, 1.0))
def test_a_size_stays_while_it_is_about_right(length, part):
    previous = padded_length(length, 0)
    smaller = max(19, round(previous * part))
    assert padded_length(smaller, previous) == previous
    assert padded_length(previous + 1, previous) > previous
    assert padded_length(max(19, previous // 2), previous) < max(previous, 30)


def test_a_bundle_keeps_the_previous_size():
    first = HEADER.frames(bytes(1000))
    assert len(HEADER.frames(bytes(990), len(first))) == len(first)
    (reader,) = split_bundles(HEADER.frames(BODY, 40), HEADER, 1)
    assert reader.take(len(BODY), "body") == BODY
    require_padding(reader)


def test_bundles_of_all_ranks_in_rank_order():
    bodies = [bytes([rank]) * len(BODY) for rank in range(130)]
    gathered = b"".join(header(rank).frames(body) for rank, body in enumerate(bodies))
    assert read(gathered, 130) == bodies
    start = 0
    for rank, body in enumerate(bodies):
        kind, reader, start = reference.decode(gathered, start, of(header(rank)))
        assert kind == reference.FRAMES
        assert reader.take(len(body)) == body
    assert start == len(gathered)


@pytest.mark.parametrize("padding", [0, 1, 7, 1000])
def test_padding_up_to_the_length(padding):
    gathered = reference.encode(0, BODY, of(HEADER), padding) + header(1).frames(BODY)
    assert read(gathered, 2) == [BODY, BODY]


def test_padding_must_be_zero():
    gathered = reference.encode(0, BODY + b"\0\0\1\0", of(HEADER))
    (reader,) = split_bundles(gathered, HEADER, 1)
    reader.take(len(BODY), "body")
    with pytest.raises(CorruptPayloadError, match="padding"):
        require_padding(reader)


def test_every_truncation_is_named():
    whole = HEADER.frames(BODY)
    for size in range(len(whole)):
        with pytest.raises(TruncatedPayloadError, match="rank 0"):
            read(whole[:size])
    both = whole + header(1).frames(BODY)
    for size in range(len(whole), len(both)):
        with pytest.raises(TruncatedPayloadError, match="rank 1"):
            read(both[:size], 2)


def test_bytes_left_over_are_named():
    with pytest.raises(CorruptPayloadError, match="3 bytes after the last"):
        read(HEADER.frames(BODY) + b"\0\0\0")
    with pytest.raises(CorruptPayloadError, match="after the last"):
        read(HEADER.frames(BODY) + header(1).frames(BODY), ranks=1)


@pytest.mark.parametrize("whole", [HEADER.frames(BODY), HEADER.error("no"), HEADER.frames(b"")], ids=["0", "1", "none"])
def test_every_bit_flip_is_a_named_error(whole):
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << (bit % 8)
        with pytest.raises(CorruptPayloadError) as raised:
            read(bytes(damaged))
        assert "rank 0" in str(raised.value)
        if bit // 8 == 2:
            assert isinstance(raised.value, UnsupportedVersionError)


def test_a_flip_in_any_ranks_bundle_names_that_rank():
    bundles = [header(rank).frames(BODY) for rank in range(3)]
    for rank in range(3):
        damaged = bundles.copy()
        damaged[rank] = damaged[rank][:-1] + bytes([damaged[rank][-1] ^ 4])
        with pytest.raises(CorruptPayloadError, match=f"rank {rank}: checksum"):
            read(b"".join(damaged), 3)


def resealed(whole):
    return whole[:12] + zlib.crc32(whole[:12] + whole[16:]).to_bytes(4, "little") + whole[16:]


def test_a_wrong_header_under_a_right_checksum_is_named():
    """What a checksum can't tell: a sender that makes mistakes."""
    whole = HEADER.frames(BODY)
    fields = [*range(12), *range(16, 16 + 1 + 1 + 2)]
    for bit in (8 * byte + place for byte in fields for place in range(8)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << (bit % 8)
        with pytest.raises(DeepReduceError, match="rank 0"):
            read(resealed(bytes(damaged)))


@pytest.mark.parametrize("version", [0, 2, 255])
def test_another_version_is_named_before_anything_else(version):
    whole = b"DR" + bytes([version]) + b"anything at all, with no length and no checksum"
    with pytest.raises(UnsupportedVersionError, match=f"rank 0.*version {version}.*version 1"):
        read(whole)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fingerprint": 0x11223345}, "11223345.*11223344.*same settings"),
        ({"rank": 1}, "rank 0.*rank 1; expected was 0"),
        ({"bucket": 6}, "bucket 6; expected was 5"),
        ({"step": 301}, "step 301; expected was 300"),
    ],
    ids=str,
)
def test_a_bundle_of_another_place(changes, words):
    with pytest.raises(CorruptPayloadError, match=words):
        read(header(**changes).frames(BODY))


def test_a_kind_that_is_not_known():
    with pytest.raises(CorruptPayloadError, match="kind 2"):
        read(reference.encode(2, BODY, of(HEADER)))


@pytest.mark.parametrize("length", [0, 16, 18])
def test_a_length_too_small(length):
    whole = HEADER.frames(BODY)
    with pytest.raises(CorruptPayloadError, match=f"length is {length}"):
        read(resealed(whole[:4] + length.to_bytes(4, "little") + whole[8:]))


def test_the_error_of_another_rank():
    gathered = HEADER.frames(BODY) + header(1).error("tensor 'a': \N{SNOWMAN}") + header(2).frames(BODY)
    with pytest.raises(RemoteRankError, match=r"^rank 1: tensor .a.: \N{SNOWMAN}$"):
        read(gathered, 3)


def test_the_errors_of_several_ranks():
    gathered = header(0).error("one") + header(1).error("two")
    with pytest.raises(RemoteRankError, match="rank 0: one; rank 1: two"):
        read(gathered, 2)


def test_an_error_counts_under_any_fingerprint():
    with pytest.raises(RemoteRankError, match="no"):
        read(header(fingerprint=0).error("no"))


def test_an_error_counts_at_any_step_but_not_from_any_place():
    with pytest.raises(RemoteRankError, match="no"):
        read(header(step=7).error("no"))
    with pytest.raises(CorruptPayloadError, match="bucket 6"):
        read(header(bucket=6).error("no"))
    with pytest.raises(CorruptPayloadError, match="rank 1"):
        read(header(rank=1).error("no"))


def test_an_error_may_be_padded_and_must_be_text():
    with pytest.raises(RemoteRankError, match=r"^rank 0: no$"):
        read(reference.encode_error("no", of(HEADER), padding=5))
    with pytest.raises(CorruptPayloadError, match="UTF-8"):
        read(reference.encode(1, b"\x02\xc3\x28", of(HEADER)))
    with pytest.raises(TruncatedPayloadError, match="message"):
        read(reference.encode(1, b"\x09text", of(HEADER)))
    with pytest.raises(CorruptPayloadError, match="padding"):
        read(reference.encode(1, b"\x02no!", of(HEADER)))


@given(st.text(max_size=5000))
def test_any_message_arrives_whole_or_cut_at_a_character(message):
    with pytest.raises(RemoteRankError) as raised:
        read(HEADER.error(message))
    found = str(raised.value).removeprefix("rank 0: ")
    assert message.startswith(found) or "?" in found
    assert len(found.encode()) >= min(len(message.encode("utf-8", "replace")), 4090)


def test_a_message_that_is_no_text_still_arrives():
    with pytest.raises(RemoteRankError, match=r"bad \? name"):
        read(HEADER.error("bad \udcff name"))
