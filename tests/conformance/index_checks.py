"""Checks of index codecs; each takes a codec and fails by `AssertionError`."""

import dataclasses
from math import ceil

import numpy as np
from hypothesis import given
from reference import index_codecs as reference
from reference.bits import CorruptError

from conformance import elsewhere, inputs
from conformance.inputs import DRAW, OTHER_DRAW
from conformance.stage_checks import Check, assert_owned, call, collector, expect, flips, outcome, variants
from hvd_deepreduce.contracts import IndexCodec
from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError, TruncatedPayloadError
from hvd_deepreduce.registry import wire_ids
from hvd_deepreduce.sparse import Support

INDEX_CHECKS: list[Check] = []
check = collector(INDEX_CHECKS)


def describe(support: Support) -> str:
    shown = ", ".join(map(str, support.positions[:6])) + (", ..." if support.kept > 6 else "")
    return f"{support.kept} positions [{shown}] of {support.view}"


def encode(codec: IndexCodec, support: Support) -> bytes:
    payload = call(describe(support), codec.encode, support, DRAW)
    assert type(payload) is bytes, f"the payload is a {type(payload).__name__}"
    return payload


def decode(codec: IndexCodec, payload: bytes, support: Support) -> Support:
    """As the receiver of `support` does; the result is well-formed."""
    decoded = call(describe(support), codec.decode, payload, support.kept, support.view, DRAW)
    assert_well_formed(codec, decoded, support)
    return decoded


def assert_well_formed(codec: IndexCodec, decoded: Support, support: Support) -> None:
    positions, view = decoded.positions, support.view
    assert decoded.view == view
    assert positions.ndim == 1
    assert positions.dtype == view.position_dtype, f"positions are {positions.dtype} for numel {view.numel}"
    assert positions.flags.c_contiguous
    assert (positions[1:] > positions[:-1]).all(), f"decoded positions do not increase: {describe(decoded)}"
    assert not len(positions) or positions[-1] < view.numel, f"outside numel: {describe(decoded)}"
    if codec.exact:
        assert decoded.kept == support.kept


def assert_round_trip(codec: IndexCodec, support: Support) -> None:
    decoded = decode(codec, encode(codec, support), support)
    if codec.exact:
        assert np.array_equal(decoded.positions, support.positions), f"decoded to others: {describe(support)}"
    read_at = codec.value_positions(support, decoded)
    assert len(read_at) == decoded.kept, "value_positions: one for each decoded position is needed"
    assert not len(read_at) or read_at.max() < support.view.numel


@check
def round_trip(codec: IndexCodec) -> None:
    """1."""

    @inputs.examples(100)
    @given(inputs.supports(inputs.numel_limit(codec)))
    def run(support: Support) -> None:
        assert_round_trip(codec, support)

    run()


@check
def edges_round_trip(codec: IndexCodec) -> None:
    """3: supports."""
    for support in inputs.edge_supports(codec):
        assert_round_trip(codec, support)


@check
def declares_traits(codec: IndexCodec) -> None:
    """2: the declarations themselves."""
    assert isinstance(codec.name, str)
    assert codec.name.isidentifier()
    assert type(codec.wire_id) is int
    assert codec.wire_id > 0, "wire id 0 belongs to special frames"
    assert codec.wire_id in wire_ids(type(codec)), "an id that the registry does not see"
    assert type(codec.exact) is bool
    assert type(codec.deterministic) is bool
    assert type(codec.portable) is bool


@check
def deterministic_as_declared(codec: IndexCodec) -> None:
    """2: equal bytes whatever the draw, if so declared; else equal bytes for an equal draw."""
    for support in inputs.edge_supports(codec):
        payload = encode(codec, support)
        assert encode(codec, support) == payload, "another payload at the second time"
        if codec.deterministic:
            assert codec.encode(support, OTHER_DRAW) == payload, "declared deterministic, yet the draw matters"


@check
def takes_arrays_of_every_kind(codec: IndexCodec) -> None:
    """3: read-only, non-contiguous and wrong-dtype positions are encoded right or refused by name."""
    support = inputs.support([3, 4, 260, 900], 1000)
    payload = encode(codec, support)
    kinds = [
        *variants(support.positions),
        ("of int64", support.positions.astype(np.int64)),
        ("of uint64", support.positions.astype(np.uint64)),
        ("of uint16", support.positions.astype(np.uint16)),
        ("of float32", support.positions.astype(np.float32)),
        ("of two dimensions", support.positions.reshape(2, 2)),
    ]
    for kind, positions in kinds:
        try:
            found = codec.encode(Support(positions, support.view), DRAW)
        except InvalidSettingError:
            assert kind != "read-only", "read-only positions are refused"
            continue
        except Exception as error:
            raise AssertionError(f"positions {kind}: {type(error).__name__}: {error}") from error
        assert found == payload, f"positions {kind}: other bytes, and no error"


_WRONG = {
    "unsorted": ([3, 260, 4], 1000),
    "unsorted at the end": ([*range(200), 199 + 50, 199 + 49], 1000),
    "repeated": ([3, 4, 4, 260], 1000),
    "repeated first": ([0, 0], 1000),
    "outside": ([3, 1000], 1000),
    "far outside": ([3, 2**32 - 1], 1000),
    "just outside a byte": ([1, 13], 13),
    "more than there are": ([0, 1, 2], 2),
}


@check
def refuses_wrong_positions_on_encode(codec: IndexCodec) -> None:
    """4."""
    for what, (positions, numel) in _WRONG.items():
        with expect(f"encoding positions {what}", InvalidSettingError) as raised:
            codec.encode(inputs.support(positions, numel), DRAW)
        assert "position" in str(raised[0]), f"the message does not name positions: {raised[0]}"


@check
def refuses_wrong_positions_on_decode(codec: IndexCodec) -> None:
    """4: payloads forged with the reference's encoder, which refuses nothing."""
    tried = 0
    for what, (positions, numel) in _WRONG.items():
        if max(positions) > inputs.numel_limit(codec):
            continue  # half a gigabyte of zeros
        payload = reference.ENCODERS[codec.wire_id](positions, numel)
        try:
            reference.DECODERS[codec.wire_id](payload, len(positions), numel)
            continue  # not to be written in this format: it reads as something else
        except CorruptError:
            tried += 1
        view = inputs.support([], numel).view
        with expect(f"decoding positions {what}", CorruptPayloadError):
            codec.decode(payload, len(positions), view, DRAW)
    assert tried, "no wrong position was tried"


@check
def same_bytes_in_other_processes(codec: IndexCodec) -> None:
    """5."""
    supports = [*inputs.small_supports(), inputs.random_support(20_000, 0.05)]
    here = elsewhere.index_digest(codec, supports, DRAW)
    for hash_seed, threads in ((1, 1), (2, 3)):
        there = elsewhere.run(elsewhere.index_digest, codec, supports, DRAW, hash_seed=hash_seed, threads=threads)
        assert there == here, f"other bytes under hash seed {hash_seed} with {threads} threads"


@check
def leaves_arrays_alone(codec: IndexCodec) -> None:
    """6."""
    for support in inputs.small_supports():
        before = support.positions.copy()
        payload = encode(codec, support)
        kept_payload = bytes(bytearray(payload))
        decoded = decode(codec, payload, support)
        assert np.array_equal(before, support.positions), "encode changed the caller's positions"
        assert payload == kept_payload, "decode changed the payload"
        assert_owned(decoded.positions, payload)


@check
def refuses_shortened_payloads(codec: IndexCodec) -> None:
    """7."""
    for support in inputs.small_supports():
        payload = encode(codec, support)
        for size in range(len(payload)):
            with expect(f"{size} of {len(payload)} bytes, {describe(support)}", TruncatedPayloadError):
                codec.decode(payload[:size], support.kept, support.view, DRAW)


@check
def refuses_lengthened_payloads(codec: IndexCodec) -> None:
    """7."""
    for support in inputs.small_supports():
        for tail in (b"\0", b"\xff", b"\0" * 100):
            payload = encode(codec, support) + tail
            with expect(f"{len(tail)} bytes too many, {describe(support)}", CorruptPayloadError) as raised:
                codec.decode(payload, support.kept, support.view, DRAW)
            assert not isinstance(raised[0], TruncatedPayloadError), "a payload too long is called truncated"


@check
def survives_flipped_bits(codec: IndexCodec) -> None:
    """8."""
    for support in inputs.small_supports():
        for bit, payload in flips(encode(codec, support)):
            what = f"bit {bit} turned over, {describe(support)}"
            decoded = outcome(what, lambda p=payload, s=support: codec.decode(p, s.kept, s.view, DRAW))
            if decoded is not None:
                assert_well_formed(codec, decoded, support)


@check
def survives_wrong_counts(codec: IndexCodec) -> None:
    """8: the payload is right, kept or numel are not."""
    for support in inputs.small_supports():
        payload = encode(codec, support)
        for kept in (1, support.kept - 1, support.kept + 1, 8 * len(payload), support.view.numel):
            for numel in (support.view.numel, support.view.numel + 9, int(support.positions[-1])):
                if not 1 <= kept <= numel or (kept, numel) == (support.kept, support.view.numel):
                    continue
                asked = Support(np.zeros(kept, np.uint32), inputs.support([], numel).view)
                what = f"kept {kept}, numel {numel}, {describe(support)}"
                decoded = outcome(what, lambda p=payload, s=asked: codec.decode(p, s.kept, s.view, DRAW))
                if decoded is not None:
                    assert_well_formed(codec, decoded, asked)


@check
def trusts_no_count(codec: IndexCodec) -> None:
    """9."""
    wrong = elsewhere.run(elsewhere.decode_with_little_memory, codec, DRAW)
    assert not wrong, f"decoded in little memory: {'; '.join(wrong)}"


@check
def keeps_to_its_size(codec: IndexCodec) -> None:
    """10: `max_encoded_size`."""

    @inputs.examples(100)
    @given(inputs.supports(inputs.numel_limit(codec)))
    def run(support: Support) -> None:
        assert_size(codec, support)

    run()
    for support in inputs.edge_supports(codec):
        assert_size(codec, support)


def assert_size(codec: IndexCodec, support: Support) -> None:
    size, most = len(encode(codec, support)), codec.max_encoded_size(support.kept, support.view)
    assert type(most) is int
    assert size <= most, f"{size} bytes, max_encoded_size says {most}: {describe(support)}"


@check
def meets_the_formula(codec: IndexCodec) -> None:
    """10: the size that FORMAT.md states, on random supports."""
    formula = reference.bits_per_kept(codec.wire_id, dataclasses.asdict(codec))
    for numel, density in ((1_000_000, 0.001), (1_000_000, 0.01), (300_000, 0.05), (100_000, 0.2), (50_000, 0.5)):
        support = inputs.random_support(numel, density)
        low, high = (ceil(bound * support.kept / 8 - 1e-6) for bound in formula(density, numel))
        size = len(encode(codec, support))
        assert low <= size <= high, f"{size} bytes at density {density}; FORMAT.md says {low} to {high}"


@check
def agrees_with_the_reference(codec: IndexCodec) -> None:
    """12."""
    assert codec.wire_id in reference.ENCODERS, f"tests/reference knows no index id {codec.wire_id}"

    @inputs.examples(60)
    @given(inputs.supports(min(inputs.numel_limit(codec), 2**33), most=40))
    def run(support: Support) -> None:
        assert_agreement(codec, support)

    run()
    for support in inputs.edge_supports(codec):
        assert_agreement(codec, support)
    for support in (inputs.random_support(20_000, 0.02), inputs.random_support(3_000, 0.3)):
        assert_agreement(codec, support)


def assert_agreement(codec: IndexCodec, support: Support) -> None:
    positions, view = support.positions.tolist(), support.view
    payload = encode(codec, support)
    try:
        read = reference.decode(codec.wire_id, payload, support.kept, view.rows, view.columns)
    except CorruptError as error:
        raise AssertionError(f"the reference rejects the payload of {describe(support)}: {error}") from error
    if codec.exact:
        assert read == positions, f"the reference reads other positions: {describe(support)}"
    if codec.deterministic and codec.portable:
        assert payload == reference.encode(codec.wire_id, positions, view.rows, view.columns), (
            f"other bytes: {describe(support)}"
        )


@check
def rejects_what_the_reference_rejects(codec: IndexCodec) -> None:
    """12: for every payload with a bit turned over, both decoders say the same."""
    for support in inputs.small_supports():
        for bit, payload in flips(encode(codec, support)):
            what = f"bit {bit} turned over, {describe(support)}"
            view = support.view
            try:
                theirs = reference.decode(codec.wire_id, payload, support.kept, view.rows, view.columns)
            except CorruptError:
                theirs = None
            decoded = outcome(what, lambda p=payload, s=support: codec.decode(p, s.kept, s.view, DRAW))
            ours = None if decoded is None else decoded.positions.tolist()
            assert ours == theirs, f"{what}: {ours}, the reference: {theirs}"
