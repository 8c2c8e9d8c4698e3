"""The kernels of `rle`, `huffman` and `delta` against the reference, on what they write and on what nobody does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import huffman, index_codecs
from reference.bits import BitWriter, CorruptError, TruncatedError, varint

from hvd_deepreduce import _native
from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError, TruncatedPayloadError

IDS = {"rle": 5, "huffman_bytes": 6, "huffman_gaps": 7, "delta": 8}
all_codecs = pytest.mark.parametrize("codec", IDS)


def as_positions(positions, numel):
    return np.array(positions, np.uint32 if numel <= 2**32 else np.uint64)


def encode(codec, positions, numel):
    return getattr(_native, f"{codec}_encode")(as_positions(positions, numel), numel)


def decode(codec, payload, kept, numel):
    return getattr(_native, f"{codec}_decode")(payload, kept, numel)


@st.composite
def supports(draw):
    """Gaps of very different sizes, so that varints and classes of every size occur."""
    numel = draw(st.one_of(st.integers(1, 3000), st.sampled_from([2**16, 2**31, 2**32, 2**32 + 1, 2**33])))
    scales = st.sampled_from([0, 0, 1, 2, 5, 30, 1000, 2**20, 2**31])
    runs = draw(st.lists(st.tuples(scales, st.integers(1, 140), st.integers(0, 2**32)), min_size=1, max_size=4))
    positions, position = [], -1
    for scale, count, seed in runs:
        for gap in np.random.default_rng(seed).integers(0, scale + 1, count).tolist():
            position += gap + 1
            if position >= numel:
                return positions, numel
            positions.append(position)
    return positions, numel


@all_codecs
@given(case=supports())
def test_the_bytes_are_those_of_the_reference(codec, case):
    positions, numel = case
    payload = encode(codec, positions, numel)
    assert payload == index_codecs.ENCODERS[IDS[codec]](positions, numel)
    assert decode(codec, payload, len(positions), numel).tolist() == positions


def agree(codec, payload, kept, numel):
    """Both decode alike, or both refuse alike."""
    try:
        expected = index_codecs.DECODERS[IDS[codec]](payload, kept, numel)
    except TruncatedError:
        with pytest.raises(TruncatedPayloadError):
            decode(codec, payload, kept, numel)
    except CorruptError:
        with pytest.raises(CorruptPayloadError):
            decode(codec, payload, kept, numel)
    else:
        assert decode(codec, payload, kept, numel).tolist() == expected


@all_codecs
@given(case=supports())
def test_every_prefix_is_truncated(codec, case):
    positions, numel = case
    payload = encode(codec, positions, numel)
    for size in range(len(payload)):
        with pytest.raises(TruncatedPayloadError):
            decode(codec, payload[:size], len(positions), numel)
    with pytest.raises(CorruptPayloadError, match="1 are left over") as caught:
        decode(codec, payload + b"\0", len(positions), numel)
    assert caught.type is CorruptPayloadError


@all_codecs
@given(case=supports(), data=st.data())
def test_flipped_bits(codec, case, data):
    positions, numel = case
    payload = encode(codec, positions, numel)
    for bit in data.draw(st.lists(st.integers(0, max(0, 8 * len(payload) - 1)), max_size=10)):
        if payload:
            flipped = bytearray(payload)
            flipped[bit // 8] ^= 1 << bit % 8
            agree(codec, bytes(flipped), len(positions), numel)


@all_codecs
@given(payload=st.binary(max_size=60), kept=st.integers(0, 300), numel=st.sampled_from([1, 2, 300, 10**6, 2**33]))
def test_any_bytes(codec, payload, kept, numel):
    if kept <= numel:
        agree(codec, payload, kept, numel)


@given(st.lists(st.sampled_from([0, 1, 127, 128, 2**14, 2**33]), max_size=20), st.integers(1, 300), st.booleans())
def test_any_varints(values, kept, spoilt):
    payload = b"".join(map(varint, values)) + (b"\x80\x00" if spoilt else b"")
    for numel in (300, 2**33):
        if kept <= numel:
            agree("rle", payload, kept, numel)
            agree("delta", payload, kept, numel)


@given(st.integers(0, 3), st.lists(st.integers(0, 15), min_size=1, max_size=40), st.integers(1, 20), st.binary())
def test_any_lengths(a, lengths, kept, rest):
    """Few random lengths are those of a code."""
    out = BitWriter()
    for value, count in ((1, 1), (a, 2), (len(lengths) - 1, 8), *((length, 4) for length in lengths)):
        out.field(value, count)
    out.field(int.from_bytes(rest, "little"), 8 * len(rest))
    for numel in (20, 2**33):
        agree("huffman_gaps", out.to_bytes(), kept, numel)


@given(supports(), st.integers(0, 3), st.randoms(use_true_random=False))
def test_any_code_is_read(case, a, random):
    positions, numel = case
    if not positions:
        return
    gaps = huffman.gaps_of(positions)
    classes = {huffman.class_of(gap, a)[0] for gap in gaps}
    lengths = huffman.lengths_of({symbol: 2 ** random.randrange(30) for symbol in classes})
    payload = huffman.coded_stream(gaps, a, lengths).to_bytes()
    assert decode("huffman_gaps", payload, len(positions), numel).tolist() == positions


@pytest.mark.parametrize("numel", [1, 2, 3, 255, 256, 257, 300, 511, 512, 36_864, 65_535, 65_537, 2**24 + 1, 2**31 + 7])
def test_the_code_of_bytes_at_the_edges_of_places(numel):
    rng = np.random.default_rng(numel)
    positions = sorted({0, numel - 1, numel // 2, *rng.integers(0, numel, 300).tolist()})
    payload = encode("huffman_bytes", positions, numel)
    assert payload == huffman.bytes_encode(positions, numel)
    assert decode("huffman_bytes", payload, len(positions), numel).tolist() == positions


@pytest.mark.parametrize("numel", [1, 6, 255, 300, 1000])
def test_weights_of_bytes_in_closed_form(numel):
    counted = [0] * 256
    for position in range(numel):
        for byte in position.to_bytes(4, "little"):
            counted[byte] += 1
    assert list(huffman.weights_of(numel).values()) == counted


def test_words_of_bytes_have_15_bits_at_most():
    numels = {2**p + d for p in range(1, 33) for d in (-1, 0, 1)} | {*range(1, 1100, 7), 2**33}
    assert max(len(word) for numel in numels for word in huffman.words_of_bytes(numel).values()) <= 15


def test_code_lengths_of_gaps_are_limited():
    """Fibonacci numbers of gaps give the deepest trees: 20 classes would take 19 bits."""
    counts = [1, 1]
    while len(counts) < 20:
        counts.append(counts[-1] + counts[-2])
    gaps = np.repeat(np.arange(20), counts)
    positions = np.cumsum(gaps + 1) - 1
    numel = int(positions[-1]) + 1
    payload = encode("huffman_gaps", positions, numel)
    assert payload == huffman.gaps_encode(positions.tolist(), numel)
    assert max(huffman.lengths_of(dict(enumerate(counts))).values()) <= 15
    np.testing.assert_array_equal(decode("huffman_gaps", payload, len(positions), numel), positions)


@all_codecs
def test_nothing_kept(codec):
    assert encode(codec, [], 1000) == b""
    assert len(decode(codec, b"", 0, 1000)) == 0
    assert len(decode(codec, b"", 0, 0)) == 0
    with pytest.raises(CorruptPayloadError):
        decode(codec, b"\0", 0, 1000)


@all_codecs
def test_encoders_refuse_what_is_no_support(codec):
    for positions in ([1, 1], [2, 1], [7, 10]):
        with pytest.raises(InvalidSettingError, match=f"^positions: {positions[1]} at index 1"):
            encode(codec, positions, 10)


@all_codecs
def test_a_count_alone_reserves_nothing(codec):
    with pytest.raises(TruncatedPayloadError):
        decode(codec, b"\0" * 8, 2**33 - 1, 2**33)


def test_messages():
    cases = [
        ("delta", "payload of 1 bytes; 9 gaps take a byte each at least", "00", 9, 1000),
        ("delta", "payload of 2 bytes ends within the varint at byte 0", "8080", 1, 1000),
        ("delta", "varint at byte 1 is not in its shortest form", "008000", 2, 1000),
        ("delta", "varint at byte 0 is longer than 5 bytes", "808080808001", 1, 1000),
        ("delta", "position 1000 at gap 1 is outside numel 1000", "03e407", 2, 1000),
        ("rle", "payload of 1 bytes ends within the varint at byte 1", "03", 1, 1000),
        ("rle", "a run of 4 ones from position 3 on ends outside numel 6", "0303", 4, 6),
        ("rle", "a run of 2 ones after 1 others; kept is 2", "03000001", 2, 1000),
        ("huffman_bytes", "payload of 1 bytes; 3 positions take 4 bits each at least", "00", 3, 1000),
        ("huffman_bytes", "payload of 1 bytes ends within position 1 of 2", "10", 2, 6),
        ("huffman_bytes", "position 0 has a word that is none", "04", 1, 1),
        ("huffman_gaps", "payload of 1 bytes; 9 gaps take a bit each at least", "00", 9, 1000),
        ("huffman_gaps", "payload of 2 bytes ends within the lengths of the code", "ff07", 1, 1000),
        ("huffman_gaps", "256 classes; gaps below numel 2 have 2", "f907" + "00" * 128, 1, 2),
        ("huffman_gaps", "the last of 1 classes has no word", "0100", 1, 2),
        ("huffman_gaps", "the lengths of 1 classes are those of no code", "0110", 1, 2),
        ("huffman_gaps", "gap 0 has a word that is none", "0188", 1, 2),
    ]
    for codec, message, payload, kept, numel in cases:
        with pytest.raises(CorruptPayloadError, match=f"^{codec.replace('_', ' of ')}: {message}$"):
            decode(codec, bytes.fromhex(payload), kept, numel)
