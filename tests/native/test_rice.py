"""The rice kernels, bit by bit against the reference, and against the entropy of random supports."""

from math import lgamma, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import rice as reference
from reference.bits import BitWriter, CorruptError, TruncatedError

from hvd_deepreduce import _native
from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError, TruncatedPayloadError


def as_positions(positions, numel):
    return np.array(positions, np.uint32 if numel <= 2**32 else np.uint64)


def encode(positions, numel):
    return _native.rice_encode(as_positions(positions, numel), numel)


def random_support(numel, kept, seed):
    if kept > numel // 2:
        return np.sort(np.random.default_rng(seed).choice(numel, kept, replace=False))
    found = np.zeros(0, np.int64)
    rng = np.random.default_rng(seed)
    while len(found) < kept:
        found = np.unique(np.append(found, rng.integers(0, numel, kept)))
    return np.sort(rng.permutation(found)[:kept])


@st.composite
def supports(draw):
    """Gaps of very different sizes, so that divisors change and escapes occur."""
    numel = draw(st.one_of(st.integers(1, 3000), st.sampled_from([2**16, 2**31, 2**32, 2**32 + 1, 2**33])))
    scales = st.sampled_from([0, 1, 2, 5, 30, 1000, 2**20, 2**31])
    runs = draw(st.lists(st.tuples(scales, st.integers(1, 140), st.integers(0, 2**32)), min_size=1, max_size=4))
    positions, position = [], -1
    for scale, count, seed in runs:
        for gap in np.random.default_rng(seed).integers(0, scale + 1, count).tolist():
            position += gap + 1
            if position >= numel:
                return positions, numel
            positions.append(position)
    return positions, numel


@given(supports())
def test_the_bytes_are_those_of_the_reference(case):
    positions, numel = case
    payload = encode(positions, numel)
    assert payload == reference.encode(positions, numel)
    assert _native.rice_decode(payload, len(positions), numel).tolist() == positions
    bits = _native.rice_bits(as_positions(positions, numel), numel)
    assert bits == len(reference.stream(positions, numel).bits)


@given(st.sets(st.integers(0, 299), max_size=300))
def test_dense_supports(positions):
    positions = sorted(positions)
    payload = encode(positions, 300)
    assert payload == reference.encode(positions, 300)
    assert _native.rice_decode(payload, len(positions), 300).tolist() == positions


@pytest.mark.parametrize("density", [1e-5, 0.001, 0.03, 0.4, 0.97])
def test_random_supports_of_many_blocks(density):
    numel = min(2**33, round(3000 / density))
    positions = random_support(numel, 3000 if density < 1 else numel, 3)[: numel - 1]
    payload = encode(positions, numel)
    assert payload == reference.encode(positions.tolist(), numel)
    np.testing.assert_array_equal(_native.rice_decode(payload, len(positions), numel), positions)


def test_the_example_of_the_format():
    payload = encode([3, 4, 260], 1000)
    assert payload.hex() == "3000e203"
    assert _native.rice_decode(payload, 3, 1000).tolist() == [3, 4, 260]


@given(supports(), st.data())
def test_any_divisors_are_read(case, data):
    positions, numel = case
    blocks = -(-len(positions) // reference.BLOCK)
    entries = data.draw(st.lists(st.integers(0, 130), min_size=blocks, max_size=blocks))
    payload = reference.stream(positions, numel, entries).to_bytes()
    assert _native.rice_decode(payload, len(positions), numel).tolist() == positions


def agree(payload, kept, numel):
    """Both decode alike, or both refuse alike."""
    try:
        expected = reference.decode(payload, kept, numel)
    except TruncatedError:
        with pytest.raises(TruncatedPayloadError):
            _native.rice_decode(payload, kept, numel)
    except CorruptError:
        with pytest.raises(CorruptPayloadError) as caught:
            _native.rice_decode(payload, kept, numel)
        assert caught.type is CorruptPayloadError
    else:
        assert _native.rice_decode(payload, kept, numel).tolist() == expected


@given(supports())
def test_every_prefix_is_truncated(case):
    positions, numel = case
    payload = encode(positions, numel)
    for size in range(len(payload)):
        with pytest.raises(TruncatedPayloadError):
            _native.rice_decode(payload[:size], len(positions), numel)
    if positions:
        with pytest.raises(CorruptPayloadError, match="1 are left over") as caught:
            _native.rice_decode(payload + b"\0", len(positions), numel)
        assert caught.type is CorruptPayloadError


@given(supports(), st.data())
def test_flipped_bits(case, data):
    positions, numel = case
    payload = encode(positions, numel)
    for bit in data.draw(st.lists(st.integers(0, max(0, 8 * len(payload) - 1)), max_size=10)):
        if payload:
            flipped = bytearray(payload)
            flipped[bit // 8] ^= 1 << bit % 8
            agree(bytes(flipped), len(positions), numel)


@given(st.binary(max_size=60), st.integers(0, 300), st.sampled_from([1, 2, 300, 10**6, 2**33]))
def test_any_bytes(payload, kept, numel):
    if 0 < kept <= min(numel, 8 * len(payload)):
        agree(payload, kept, numel)


@given(st.lists(st.booleans(), max_size=300), st.sampled_from([300, 2**33]))
def test_long_runs_of_ones(bits, numel):
    """Random bytes hardly ever hold escapes and large changes."""
    out = BitWriter()
    for bit in bits:
        out.field(0b1111111 if bit else 0, 7 if bit else 1)
    payload = out.to_bytes()
    if payload:
        agree(payload, 3, numel)


def test_messages():
    cases = [
        (TruncatedPayloadError, "payload of 1 bytes; 9 gaps take a bit each at least", b"\0", 9, 1000),
        (TruncatedPayloadError, "payload of 1 bytes ends within gap 0 of 1", b"\x0c", 1, 1000),
        (CorruptPayloadError, "padding bits of the last byte, 131, are not zero", b"\x30\x00\xe2\x83", 3, 1000),
        (CorruptPayloadError, "the change of divisor before gap 0 leaves the table of 131", b"\xff" * 30, 3, 1000),
        (CorruptPayloadError, "position 1000 at gap 1 is outside numel 1000", None, [5, 1000], 1000),
    ]
    for error, message, payload, kept, numel in cases:
        if payload is None:
            payload, kept = reference.encode(kept, numel), len(kept)
        with pytest.raises(error, match=f"^rice: {message}$") as caught:
            _native.rice_decode(payload, kept, numel)
        assert caught.type is error


def test_an_escape_that_needs_none():
    out = BitWriter()
    reference.put_change(out, 0)
    out.field(2**24 - 1, 24)
    out.field(100, 10)
    with pytest.raises(CorruptPayloadError, match="^rice: gap 0 is an escape for 100, which is below 24 times 640$"):
        _native.rice_decode(out.to_bytes(), 1, 1000)


def test_a_count_alone_reserves_nothing():
    with pytest.raises(TruncatedPayloadError):
        _native.rice_decode(b"\0" * 8, 2**33 - 1, 2**33)


def test_nothing_kept():
    assert encode([], 1000) == b""
    assert len(_native.rice_decode(b"", 0, 1000)) == 0
    assert len(_native.rice_decode(b"", 0, 0)) == 0
    assert _native.rice_bits(np.zeros(0, np.uint32), 0) == 0
    with pytest.raises(CorruptPayloadError):
        _native.rice_decode(b"\0", 0, 1000)


@pytest.mark.parametrize("encoder", [_native.rice_encode, _native.rice_bits, _native.bitmap_encode])
def test_encoders_refuse_what_is_no_support(encoder):
    for positions in ([1, 1], [2, 1], [7, 10]):
        with pytest.raises(InvalidSettingError, match=f"^positions: {positions[1]} at index 1"):
            encoder(np.uint32(positions), 10)


def entropy_bits(numel, kept):
    return (lgamma(numel + 1) - lgamma(kept + 1) - lgamma(numel - kept + 1)) / log(2)


@pytest.mark.parametrize("kept", [1000, 20_000])
@pytest.mark.parametrize(
    ("density", "excess"),
    [(0.001, 2), (0.005, 2), (0.01, 2), (0.02, 2), (0.05, 2), (0.1, 3.5), (0.15, 3.5), (0.2, 3.5)],
)
def test_random_supports_cost_little_more_than_their_entropy(density, excess, kept):
    numel = round(kept / density)
    for seed in range(3):
        bits = _native.rice_bits(as_positions(random_support(numel, kept, seed), numel), numel)
        assert bits <= (1 + excess / 100) * entropy_bits(numel, kept)


@pytest.mark.parametrize("numel", [1, 2, 3, 5, 8, 9, 100, 1000, 4097, 10**6, 2**32 + 1, 2**33])
def test_one_element_costs_at_most_two_bytes_more_than_its_entropy(numel):
    places = {0, 1, 2, numel // 3, numel // 2, numel * 2 // 3, numel - 2, numel - 1} & set(range(min(numel, 3)))
    for position in places | {numel // 3, numel // 2, numel * 2 // 3, numel - 1}:
        assert len(encode([position], numel)) <= entropy_bits(numel, 1) / 8 + 2
