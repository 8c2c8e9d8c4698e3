"""Checks of value codecs; each takes a codec and fails by `AssertionError`."""

import dataclasses
from typing import Any

import numpy as np
from hypothesis import given
from reference import value_codecs as reference
from reference.bits import CorruptError
from reference.floats import VALUE_TYPES

from conformance import elsewhere, inputs
from conformance.inputs import DRAW, OTHER_DRAW, VALUE_DTYPES, support_for
from conformance.stage_checks import Check, assert_owned, call, collector, expect, flips, outcome, variants
from hvd_deepreduce.contracts import ValueCodec
from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError, TruncatedPayloadError
from hvd_deepreduce.sparse import Support

VALUE_CHECKS: list[Check] = []
check = collector(VALUE_CHECKS)


def describe(values: np.ndarray) -> str:
    return f"{len(values)} values of {values.dtype} {values[:6].tolist()}"


def bits_of(values: np.ndarray) -> np.ndarray:
    return values.view(np.dtype(f"u{values.dtype.itemsize}"))


def encode(codec: ValueCodec, values: np.ndarray) -> bytes:
    payload = call(describe(values), codec.encode, values, support_for(values), DRAW)
    assert type(payload) is bytes, f"the payload is a {type(payload).__name__}"
    return payload


def decode(codec: ValueCodec, payload: bytes, values: np.ndarray) -> np.ndarray:
    """As the receiver of `values` does; the result is well-formed."""
    decoded = call(describe(values), codec.decode, payload, support_for(values), values.dtype, DRAW)
    assert_well_formed(decoded, values)
    return decoded


def assert_well_formed(decoded: np.ndarray, values: np.ndarray) -> None:
    assert decoded.shape == values.shape
    assert decoded.dtype == values.dtype, f"decoded to {decoded.dtype} instead of {values.dtype}"
    assert decoded.flags.c_contiguous


def settings_of(codec: ValueCodec, support: Support) -> dict[str, Any]:
    """What the reference has to know of codec, tensor and sender."""
    tensor = {"positions": support.positions.tolist(), "rows": support.view.rows, "columns": support.view.columns}
    return dataclasses.asdict(codec) | tensor | {"key": DRAW.key()}


def assert_round_trip(codec: ValueCodec, values: np.ndarray) -> None:
    decoded = decode(codec, encode(codec, values), values)
    bound = call(describe(values), codec.error_bound, values)
    assert bound.shape == values.shape
    assert bound.dtype == values.dtype
    assert not (bound < 0).any()
    assert not np.isnan(bound).any()
    if codec.exact:
        assert np.array_equal(bits_of(decoded), bits_of(values)), f"other bits: {describe(values)}: {decoded[:6]}"
        assert (bound == 0).all(), "an exact codec states an error"
        return
    bounded = np.isfinite(bound)
    assert np.isfinite(values[bounded]).all(), "a bound for a value that is not finite"
    assert np.isfinite(decoded[bounded]).all(), f"not finite: {describe(values)}: {decoded[:6]}"
    wide = np.longdouble
    error = np.abs(decoded[bounded].astype(wide) - values[bounded].astype(wide))
    worst = error - bound[bounded].astype(wide)
    assert not (worst > 0).any(), (
        f"{describe(values)}: error {error[worst.argmax()]} of value {values[bounded][worst.argmax()]!r} "
        f"is beyond the bound {bound[bounded][worst.argmax()]}"
    )


@check
def round_trip(codec: ValueCodec) -> None:
    """1."""
    for dtype in VALUE_DTYPES:

        @inputs.examples(100)
        @given(inputs.values(dtype))
        def run(values: np.ndarray) -> None:
            assert_round_trip(codec, values)

        run()
        assert_round_trip(codec, inputs.gradient_values(dtype, 5000))


@check
def edges_round_trip(codec: ValueCodec) -> None:
    """3: values."""
    for dtype in VALUE_DTYPES:
        for values in inputs.edge_values(dtype):
            assert_round_trip(codec, values)


@check
def is_useful(codec: ValueCodec) -> None:
    """1: the stated bound is below the value itself for most of what a gradient holds, and right on average."""
    for dtype in VALUE_DTYPES:
        values = inputs.gradient_values(dtype, 5000)
        decoded = decode(codec, encode(codec, values), values)
        assert np.median(codec.error_bound(values)) < np.abs(values).max()
        assert np.corrcoef(values, decoded)[0, 1] > 0.1, "the decoded values have nothing to do with the encoded ones"


@check
def declares_traits(codec: ValueCodec) -> None:
    """2: the declarations themselves."""
    assert isinstance(codec.name, str)
    assert codec.name.isidentifier()
    assert type(codec.wire_id) is int
    assert codec.wire_id > 0, "wire id 0 is reserved"
    for trait in ("exact", "deterministic", "portable", "order_preserving"):
        assert type(getattr(codec, trait)) is bool, trait


@check
def deterministic_as_declared(codec: ValueCodec) -> None:
    """2: equal bytes whatever the draw, if so declared; else equal bytes for an equal draw."""
    for dtype in VALUE_DTYPES:
        for values in (*inputs.edge_values(dtype), inputs.gradient_values(dtype, 500)):
            payload = encode(codec, values)
            assert encode(codec, values) == payload, "another payload at the second time"
            if codec.deterministic:
                other = codec.encode(values, support_for(values), OTHER_DRAW)
                assert other == payload, "declared deterministic, yet the draw matters"


@check
def random_as_declared(codec: ValueCodec) -> None:
    """2: a stochastic codec draws anew for every tensor, step, rank and seed."""
    if codec.deterministic or getattr(codec, "bucket", None) == 1:  # nothing to round where each value is the norm
        return
    values = inputs.gradient_values(VALUE_DTYPES[0], 500)
    payload = encode(codec, values)
    for change in ({"seed": 99}, {"tensor": "other"}, {"step": 99}, {"rank": 99}):
        other = codec.encode(values, support_for(values), DRAW._replace(**change))
        assert other != payload, f"declared stochastic, yet {change} makes no difference"


@check
def order_preserving_as_declared(codec: ValueCodec) -> None:
    """2: a codec that keeps the order keeps it, and one that does not has its own permutation, which costs bytes."""
    values = np.arange(1, 65, dtype=np.float32)
    np.random.default_rng(5).shuffle(values)
    decoded = decode(codec, encode(codec, values), values)
    bound = codec.error_bound(values)
    assert (np.abs(decoded - values) <= bound).all(), "values come back in another order"
    if codec.ordered is not None:
        payload, order = codec.ordered.encode(values, DRAW)
        assert sorted(order) == list(range(64)), "the order of the ordered form is no permutation"
        assert not codec.order_preserving, "declared order-preserving, yet there is an ordered form"
        sent = codec.ordered.decode(payload, len(values), values.dtype, DRAW)
        restored = np.empty_like(sent)
        restored[order] = sent
        assert (np.abs(restored - values) <= bound).all(), "the ordered form is off its order"
        assert codec.ordered.wire_id != codec.wire_id


@check
def takes_arrays_of_every_kind(codec: ValueCodec) -> None:
    """3: read-only, non-contiguous and wrong-dtype values are encoded right or refused by name."""
    for dtype in VALUE_DTYPES:
        values = np.array([1.0, -2.0, 0.5, 100.0, -0.25], dtype)
        support = support_for(values)
        payload = encode(codec, values)
        wrong = [np.float16, np.int32, np.int64, np.complex64, np.bool_]
        kinds = [*variants(values), *((f"of {np.dtype(w)}", values.astype(w)) for w in wrong)]
        kinds.append(("of two dimensions", values[:4].reshape(2, 2)))
        for kind, array in kinds:
            try:
                found = codec.encode(array, support, DRAW)
            except InvalidSettingError:
                assert kind != "read-only", "read-only values are refused"
                continue
            except Exception as error:
                raise AssertionError(f"values {kind}: {type(error).__name__}: {error}") from error
            assert found == payload, f"values {kind} for {dtype}: other bytes, and no error"


@check
def same_bytes_in_other_processes(codec: ValueCodec) -> None:
    """5."""
    arrays = []
    for dtype in VALUE_DTYPES:
        arrays.extend([*inputs.edge_values(dtype), inputs.gradient_values(dtype, 5000)])
    pairs = [(values, support_for(values)) for values in arrays]
    here = elsewhere.value_digest(codec, pairs, DRAW)
    for hash_seed, threads in ((1, 1), (2, 3)):
        there = elsewhere.run(elsewhere.value_digest, codec, pairs, DRAW, hash_seed=hash_seed, threads=threads)
        assert there == here, f"other bytes under hash seed {hash_seed} with {threads} threads"


@check
def leaves_arrays_alone(codec: ValueCodec) -> None:
    """6."""
    for dtype in VALUE_DTYPES:
        for values in inputs.edge_values(dtype):
            before, support = values.copy(), support_for(values)
            positions = support.positions.copy()
            payload = call(describe(values), codec.encode, values, support, DRAW)
            kept_payload = bytes(bytearray(payload))
            decoded = codec.decode(payload, support, dtype, DRAW)
            assert np.array_equal(bits_of(before), bits_of(values)), "encode changed the caller's values"
            assert np.array_equal(positions, support.positions), "the caller's positions were changed"
            assert payload == kept_payload, "decode changed the payload"
            assert_owned(decoded, payload)
            assert not np.shares_memory(decoded, values), "the decoded array is the caller's"


def _small_values(dtype: np.dtype[Any]) -> list[np.ndarray]:
    return [np.array(numbers, dtype) for numbers in ([0.0], [1.0, -2.0, 0.25], [3.0, np.nan], [-1.5] * 11)]


@check
def refuses_shortened_payloads(codec: ValueCodec) -> None:
    """7."""
    for dtype in VALUE_DTYPES:
        for values in _small_values(dtype):
            payload = encode(codec, values)
            for size in range(len(payload)):
                with expect(f"{size} of {len(payload)} bytes, {describe(values)}", TruncatedPayloadError):
                    codec.decode(payload[:size], support_for(values), dtype, DRAW)


@check
def refuses_lengthened_payloads(codec: ValueCodec) -> None:
    """7."""
    for dtype in VALUE_DTYPES:
        for values in _small_values(dtype):
            for tail in (b"\0", b"\xff", b"\0" * 100):
                payload = encode(codec, values) + tail
                with expect(f"{len(tail)} bytes too many, {describe(values)}", CorruptPayloadError) as raised:
                    codec.decode(payload, support_for(values), dtype, DRAW)
                assert not isinstance(raised[0], TruncatedPayloadError), "a payload too long is called truncated"


@check
def survives_flipped_bits(codec: ValueCodec) -> None:
    """8."""
    for dtype in VALUE_DTYPES:
        for values in _small_values(dtype):
            for bit, payload in flips(encode(codec, values)):
                what = f"bit {bit} turned over, {describe(values)}"
                decoded = outcome(what, lambda p=payload, v=values: codec.decode(p, support_for(v), v.dtype, DRAW))
                if decoded is not None:
                    assert_well_formed(decoded, values)


@check
def trusts_no_count(codec: ValueCodec) -> None:
    """9."""
    wrong = elsewhere.run(elsewhere.decode_with_little_memory, codec, DRAW)
    assert not wrong, f"decoded in little memory: {'; '.join(wrong)}"


@check
def keeps_to_its_size(codec: ValueCodec) -> None:
    """10: `max_encoded_size`, and the size that FORMAT.md states, or the limit where it depends on the values."""
    fixed = codec.wire_id in reference.SIZES
    formula = (reference.SIZES if fixed else reference.LIMITS)[codec.wire_id]
    for dtype in VALUE_DTYPES:
        for values in (*inputs.edge_values(dtype), inputs.gradient_values(dtype, 5000)):
            size, most = len(encode(codec, values)), codec.max_encoded_size(len(values), dtype.itemsize)
            assert type(most) is int
            assert size <= most, f"{size} bytes, max_encoded_size says {most}: {describe(values)}"
            stated = formula(len(values), 8 * dtype.itemsize, settings_of(codec, support_for(values)))
            assert size == stated if fixed else size <= stated, (
                f"{size} bytes, FORMAT.md says {stated}: {describe(values)}"
            )


@check
def agrees_with_the_reference(codec: ValueCodec) -> None:
    """12."""
    assert codec.wire_id in reference.ENCODERS, f"tests/reference knows no value id {codec.wire_id}"
    for dtype in VALUE_DTYPES:

        @inputs.examples(100)
        @given(inputs.values(dtype))
        def run(values: np.ndarray) -> None:
            assert_agreement(codec, values)

        run()
        for values in (*inputs.edge_values(dtype), inputs.gradient_values(dtype, 1500)):
            assert_agreement(codec, values)


def assert_agreement(codec: ValueCodec, values: np.ndarray) -> None:
    width = 8 * values.dtype.itemsize
    settings = settings_of(codec, support_for(values))
    payload = encode(codec, values)
    # A stochastic codec too: the draw is the same.
    theirs = reference.ENCODERS[codec.wire_id](bits_of(values).tolist(), width, settings, DRAW.key())
    if codec.portable:
        assert payload == theirs, f"other bytes: {describe(values)}: {payload.hex()}, the reference: {theirs.hex()}"
    for written in (payload, theirs):
        assert_same_reading(codec, written, values, describe(values))


def assert_same_reading(codec: ValueCodec, payload: bytes, values: np.ndarray, what: str) -> None:
    """Bit for bit, but for which NaN is meant."""
    width = 8 * values.dtype.itemsize
    settings = settings_of(codec, support_for(values))
    try:
        patterns = reference.DECODERS[codec.wire_id](payload, len(values), width, settings)
    except CorruptError:
        patterns = None
    decoded = outcome(what, lambda: codec.decode(payload, support_for(values), values.dtype, DRAW))
    assert (decoded is None) == (patterns is None), f"{what}: rejected by only one decoder"
    if decoded is not None:
        is_nan = VALUE_TYPES[width].is_nan
        for index, (ours, theirs) in enumerate(zip(bits_of(decoded).tolist(), patterns, strict=True)):
            same = ours == theirs or (is_nan(ours) and is_nan(theirs) and not codec.exact)
            assert same, f"{what}: value {index} is {ours:x}, the reference: {theirs:x}"


@check
def reads_flipped_bits_as_the_reference(codec: ValueCodec) -> None:
    """12: for every payload with a bit turned over, both decoders say the same."""
    for dtype in VALUE_DTYPES:
        for values in _small_values(dtype):
            for bit, payload in flips(encode(codec, values)):
                assert_same_reading(codec, payload, values, f"bit {bit} turned over, {describe(values)}")
