"""Dense -> frame -> dense: what the stages make together. That nothing is lost is shown in tests/conformance."""

import dataclasses
import itertools

import numpy as np
import pytest
from conformance.sorting import Sorting
from conformance.test_error_feedback import as_dtype, check_error_feedback
from reference import frame as reference
from reference.bits import ByteReader as ReferenceReader

from hvd_deepreduce import Bitmap, KeepNonzero, NoMemory, Raw, RawValues, Residual, Rice, Settings, TopK
from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError, TruncatedPayloadError, UnknownCodecError
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.registry import INDEX_CODECS, MEMORIES, SPARSIFIERS, VALUE_CODECS
from hvd_deepreduce.sparse import DTYPES, TensorSpec
from hvd_deepreduce.wire.frame import EMPTY_FRAME, NOT_FINITE_FRAME, SHARED_ID, Frame, Special
from hvd_deepreduce.wire.reader import ByteReader

DRAW = Draw(seed=0, tensor="layer", step=3, rank=1)
EXAMPLE = bytes.fromhex("0301020108090000803f000000c0")  # FORMAT.md, 3


def spec_of(numel, dtype="float32"):
    return TensorSpec("layer", (numel,), dtype)


def gradient_of(spec, seed=0):
    return as_dtype(np.random.default_rng(seed).normal(size=spec.numel), spec.dtype)


def parse(pipeline, frame, spec):
    reader = ByteReader(frame, "bundle")
    parsed = pipeline.read(reader, spec)
    assert not reader.rest()
    return parsed


def received(pipeline, frame, spec, draw=DRAW, factor=1.0):
    dense = np.zeros(spec.numel, spec.value_dtype)
    assert pipeline.add_into(dense, parse(pipeline, frame, spec), spec, draw, factor)
    return dense


def test_the_example_of_the_format():
    pipeline = Pipeline(Settings.of("none", "bitmap", "raw", "none"))
    encoded = pipeline.encode(np.array([1, 0, 0, -2, 0, 0], np.float32), spec_of(6), {}, DRAW)
    assert encoded.frame == EXAMPLE
    assert (encoded.kept, encoded.index_bytes, encoded.value_bytes, encoded.finite) == (2, 1, 8, True)
    assert received(pipeline, EXAMPLE, spec_of(6)).tolist() == [1, 0, 0, -2, 0, 0]


def reference_codecs(settings, view):
    index = settings.index
    sender = {"key": DRAW.key(), "rows": view.rows, "columns": view.columns}
    value = settings.value.wire_id, dataclasses.asdict(settings.value) | sender
    if settings.sparsifier.shared:
        return reference.Codecs((SHARED_ID,), *value, (DRAW.shared_key(), 7))
    ids = (index.wire_id,) if index.ordered is None else (index.wire_id, index.ordered.wire_id)
    return reference.Codecs(ids, *value)


# A frame shows of its sparsifier the support alone, and of a dtype the value type; all others with one pair of codecs.
FRAMES = [
    *itertools.product(("topk", "none", "randomk"), INDEX_CODECS, VALUE_CODECS, ("float32", "float64")),
    *itertools.product(SPARSIFIERS, ("rice",), ("qsgd",), DTYPES),
]


@pytest.mark.parametrize(("sparsifier", "index", "value", "dtype"), sorted(set(FRAMES)))
def test_frames_are_those_of_the_reference(sparsifier, index, value, dtype):
    settings = Settings.of(sparsifier, index, value, "variance" if sparsifier == "variance" else "none")
    pipeline, spec = Pipeline(settings), spec_of(700, dtype)
    width = 8 * spec.value_dtype.itemsize
    unsigned = np.dtype(f"u{spec.value_dtype.itemsize}")
    gradient = gradient_of(spec)
    gradient[::3] = 0
    encoded = pipeline.encode(gradient, spec, pipeline.new_slots(spec), DRAW)
    slots = pipeline.new_slots(spec)
    settings.memory.compensate(gradient, slots)
    support = settings.sparsifier.sparsify(gradient, spec.view, DRAW, slots)
    dense = gradient.view(unsigned).tolist()
    codecs = reference_codecs(settings, spec.view)
    theirs = reference.encode(support.positions.tolist(), dense, codecs, 700, width, DRAW.key())
    assert encoded.frame == theirs or not (settings.value.portable and settings.index.portable)
    for frame in (encoded.frame, theirs):
        dense = np.array(reference.decode(ReferenceReader(frame), codecs, 700, width), unsigned)
        assert np.array_equal(received(pipeline, frame, spec), dense.view(spec.value_dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("memory", MEMORIES)
def test_what_is_not_finite_is_told_to_all_and_kept_from_the_residual(memory, wrong, dtype):
    pipeline, spec = Pipeline(Settings.of(memory=memory)), spec_of(100, dtype)
    slots = pipeline.new_slots(spec)
    pipeline.encode(gradient_of(spec), spec, slots, DRAW)
    before = {name: slot.tobytes() for name, slot in slots.items()}
    gradient = gradient_of(spec, 1)
    gradient[70] = wrong
    encoded = pipeline.encode(gradient, spec, slots, DRAW)
    assert encoded.frame == NOT_FINITE_FRAME == b"\x00\x01"
    assert not encoded.finite
    assert {name: slot.tobytes() for name, slot in slots.items()} == before
    dense = np.full(spec.numel, 3, spec.value_dtype)
    assert pipeline.add_into(dense, parse(pipeline, encoded.frame, spec), spec, DRAW, 1.0) is False
    assert (dense == 3).all()


def test_a_gradient_that_overflows_with_its_residual_is_not_finite():
    pipeline, spec = Pipeline(Settings.of("topk(density=0.5)", "raw", "raw")), spec_of(4)
    slots = {"residual": np.full(4, 3e38, np.float32)}
    assert not pipeline.encode(np.full(4, 3e38, np.float32), spec, slots, DRAW).finite
    assert (slots["residual"] == np.float32(3e38)).all()


@pytest.mark.parametrize("value", VALUE_CODECS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_residuals_stay_finite_where_codecs_saturate(value, dtype):
    """The largest numbers a dtype holds: nothing that is decoded from them, or left over, is infinite."""
    largest = {"float16": 65504.0, "bfloat16": 3.3895e38, "float32": 3.4028234663852886e38, "float64": 1.79e308}
    pipeline, spec = Pipeline(Settings.of("topk(density=0.5)", "raw", value)), spec_of(8, dtype)
    slots = pipeline.new_slots(spec)
    gradient = as_dtype(np.array([1, -1] * 4) * largest[dtype], dtype)
    frame = pipeline.encode(gradient.copy(), spec, slots, DRAW).frame
    assert np.isfinite(received(pipeline, frame, spec)).all()
    assert np.isfinite(slots["residual"]).all()


@pytest.mark.parametrize("index", INDEX_CODECS)
@pytest.mark.parametrize("value", VALUE_CODECS)
@pytest.mark.parametrize(
    ("sparsifier", "shape", "scale"),
    [("threshold(value=9)", (20,), 1.0), ("none", (20,), 0.0), ("topk", (0,), 1.0), ("none", (3, 0), 1.0)],
    ids=["none above", "all zero", "no elements", "no columns"],
)
def test_an_empty_selection(index, value, sparsifier, shape, scale):
    pipeline, spec = Pipeline(Settings.of(sparsifier, index, value)), TensorSpec("layer", shape)
    slots = pipeline.new_slots(spec)
    gradient = (np.linspace(-1, 1, spec.numel) * scale).astype(np.float32)
    encoded = pipeline.encode(gradient, spec, slots, DRAW)
    assert encoded.frame == EMPTY_FRAME == b"\x00\x00"
    assert (encoded.kept, encoded.index_bytes, encoded.value_bytes, encoded.finite) == (0, 0, 0, True)
    assert np.array_equal(slots["residual"], gradient)
    dense = np.full(spec.numel, 3, np.float32)
    assert pipeline.add_into(dense, parse(pipeline, encoded.frame, spec), spec, DRAW, 0.5)
    assert (dense == 3).all()


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1)])
def test_one_element(shape):
    pipeline, spec = Pipeline(Settings.of("topk", "rice", "raw")), TensorSpec("scale", shape)
    slots = pipeline.new_slots(spec)
    frame = pipeline.encode(np.array([2.5], np.float32), spec, slots, DRAW).frame
    assert received(pipeline, frame, spec).tolist() == [2.5]
    assert slots["residual"].tolist() == [0.0]


def test_over_many_steps_what_was_sent_and_what_is_left_make_up_the_gradients():
    """With dyadic values no addition rounds, so the books balance to the bit."""
    pipeline, spec = Pipeline(Settings.of("topk(density=0.05)", "rice", "raw")), spec_of(200)
    slots = pipeline.new_slots(spec)
    rng = np.random.default_rng(0)
    given = np.zeros(200, np.float32)
    sent = np.zeros(200, np.float32)
    for step in range(100):
        gradient = (rng.integers(-1000, 1000, 200) / 1024).astype(np.float32)
        given += gradient
        draw = Draw(0, "layer", step, 0)
        sent += received(pipeline, pipeline.encode(gradient, spec, slots, draw).frame, spec, draw)
    assert np.array_equal(sent + slots["residual"], given)
    assert np.abs(slots["residual"]).max() < np.abs(given).max() + 100


# --- values in another order ---


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", [Raw(), Bitmap(), Rice()], ids=lambda index: index.name)
@pytest.mark.parametrize("sparsifier", [TopK(0.1), KeepNonzero()], ids=repr)
def test_a_codec_that_sorts_loses_nothing(sparsifier, index, dtype):
    check_error_feedback(Settings(sparsifier, index, Sorting(), Residual()), dtype)


def test_a_codec_that_sorts_ships_its_order_with_raw_positions():
    settings = Settings(KeepNonzero(), Raw(), Sorting(), NoMemory())
    pipeline, spec = Pipeline(settings), spec_of(6)
    gradient = np.array([3, 0, 1, 0, 0, 2], np.float32)
    encoded = pipeline.encode(gradient, spec, {}, DRAW)
    frame = parse(pipeline, encoded.frame, spec)
    assert (frame.index_id, frame.value_id) == (Raw.ordered.wire_id, Sorting.ordered.wire_id)
    assert np.frombuffer(frame.index_payload, "<u4").tolist() == [2, 5, 0]
    assert np.frombuffer(frame.value_payload, "<f4").tolist() == [1, 2, 3]
    assert np.array_equal(received(pipeline, encoded.frame, spec), gradient)
    sparse = pipeline.decode(frame, spec, DRAW)
    assert sparse.support.positions.tolist() == [0, 2, 5]
    assert sparse.values.tolist() == [1, 2, 3]
    assert sparse.by_position().values.tolist() == [3, 1, 2]


@pytest.mark.parametrize("index", [Bitmap(), Rice()], ids=lambda index: index.name)
def test_a_codec_that_sorts_ships_its_own_permutation_with_others(index):
    pipeline, spec = Pipeline(Settings(KeepNonzero(), index, Sorting(), NoMemory())), spec_of(6)
    gradient = np.array([3, 0, 1, 0, 0, 2], np.float32)
    encoded = pipeline.encode(gradient, spec, {}, DRAW)
    frame = parse(pipeline, encoded.frame, spec)
    assert (frame.index_id, frame.value_id) == (index.wire_id, Sorting.wire_id)
    assert len(frame.value_payload) == 3 * (4 + 4)
    assert np.array_equal(received(pipeline, encoded.frame, spec), gradient)


def test_raw_positions_stay_sorted_for_codecs_that_keep_the_order():
    pipeline, spec = Pipeline(Settings.of("none", "raw", "raw", "none")), spec_of(6)
    frame = parse(pipeline, pipeline.encode(np.array([3, 0, 1, 0, 0, 2], np.float32), spec, {}, DRAW).frame, spec)
    assert (frame.index_id, frame.value_id) == (1, 1)


# --- what is added ---


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("factor", [1.0, 0.5, 1 / 3, 2.0, 0.1])
def test_a_value_is_scaled_and_rounded_before_it_is_added(dtype, factor):
    pipeline, spec = Pipeline(Settings.of("none", "rice", "raw", "none")), spec_of(500, dtype)
    gradient, dense = gradient_of(spec), gradient_of(spec, 1)
    frame = parse(pipeline, pipeline.encode(gradient, spec, {}, DRAW).frame, spec)
    expected = dense + (gradient.astype(np.float64) * factor).astype(spec.value_dtype)
    assert pipeline.add_into(dense, frame, spec, DRAW, factor)
    assert dense.dtype == expected.dtype == spec.value_dtype
    assert np.array_equal(dense, expected)


def test_ranks_and_steps_draw_apart_and_receivers_need_the_senders_draw():
    pipeline, spec = Pipeline(Settings.of("none", "raw", "qsgd(bits=4)", "none")), spec_of(300)
    frames = {
        pipeline.encode(gradient_of(spec), spec, {}, Draw(0, "layer", step, rank)).frame
        for step in (0, 1)
        for rank in (0, 1)
    }
    assert len(frames) == 4


# --- what is refused ---


@pytest.mark.parametrize(
    "gradient",
    [np.zeros(7, np.float32), np.zeros((2, 3), np.float32), np.zeros(6, np.float64), np.zeros(6, np.float16)],
    ids=lambda gradient: f"{gradient.shape} {gradient.dtype}",
)
def test_a_gradient_that_is_not_what_was_announced(gradient):
    pipeline = Pipeline(Settings.of())
    with pytest.raises(InvalidSettingError, match=r"'layer'.*gradient of shape.*\(6,\) and float32"):
        pipeline.encode(gradient, spec_of(6), pipeline.new_slots(spec_of(6)), DRAW)


def test_frames_of_other_codecs_are_named():
    pipeline, spec = Pipeline(Settings.of("none", "rice", "raw", "none")), spec_of(6)
    with pytest.raises(UnknownCodecError, match="'layer', rank 1: index codec id 3; these settings have 4"):
        pipeline.decode(parse(pipeline, EXAMPLE, spec), spec, DRAW)
    pipeline = Pipeline(Settings.of("none", "bitmap", "fp16", "none"))
    with pytest.raises(UnknownCodecError, match="'layer', rank 1: value codec id 1; these settings have 2"):
        pipeline.decode(parse(pipeline, EXAMPLE, spec), spec, DRAW)


def test_errors_of_codecs_are_told_with_tensor_and_rank():
    pipeline, spec = Pipeline(Settings.of("none", "bitmap", "raw", "none")), spec_of(3)
    with pytest.raises(CorruptPayloadError, match="tensor 'layer', rank 1: bitmap") as raised:
        pipeline.decode(parse(pipeline, EXAMPLE, spec), spec, DRAW)
    assert type(raised.value) is CorruptPayloadError
    assert raised.value.__cause__ is not None
    with pytest.raises(TruncatedPayloadError, match="tensor 'layer', rank 1: raw"):
        pipeline.decode(Frame(3, 1, 2, b"\x09", bytes(7)), spec_of(6), DRAW)


@pytest.mark.parametrize(
    ("frame", "error", "words"),
    [
        ("0002", CorruptPayloadError, "special frame of kind 2"),
        ("030100010000", CorruptPayloadError, "kept is 0; allowed is 1 to numel 6"),
        ("030107010009", CorruptPayloadError, "kept is 7; allowed is 1 to numel 6"),
        ("0301ffffffffffffffff7f0108", CorruptPayloadError, "kept is 9223372036854775807"),
        ("83000102010809", CorruptPayloadError, "index id at byte 0 is not in its shortest form"),
        ("03ffffffffffffffffff01", CorruptPayloadError, "value id at byte 1 is longer than 9 bytes"),
        ("0301020908090000803f000000c0", TruncatedPayloadError, "value payload"),
        ("03010280808080800808", TruncatedPayloadError, "index payload of"),
        ("00", TruncatedPayloadError, "kind of special frame"),
        ("", TruncatedPayloadError, "index id"),
    ],
)
def test_malformed_frames(frame, error, words):
    pipeline = Pipeline(Settings.of("none", "bitmap", "raw", "none"))
    with pytest.raises(error, match=f"'layer'.*{words}") as raised:
        pipeline.read(ByteReader(bytes.fromhex(frame), "rank 1"), spec_of(6))
    assert type(raised.value) is error


@pytest.mark.parametrize("settings", ["none+bitmap+raw", "none+rice+qsgd", "none+raw+fp16"])
def test_every_strict_prefix_of_a_frame_is_truncated(settings):
    pipeline, spec = Pipeline(Settings.from_string(settings)), spec_of(60)
    frame = pipeline.encode(gradient_of(spec), spec, pipeline.new_slots(spec), DRAW).frame
    for size in range(len(frame)):
        with pytest.raises(TruncatedPayloadError):
            pipeline.read(ByteReader(frame[:size], "rank 1"), spec)


@pytest.mark.parametrize("settings", ["none+bitmap+raw", "none+rice+qsgd", "none+raw+fp16"])
def test_every_bit_flip_of_a_frame_is_named_or_well_formed(settings):
    pipeline, spec = Pipeline(Settings.from_string(settings)), spec_of(30)
    frame = pipeline.encode(gradient_of(spec), spec, pipeline.new_slots(spec), DRAW).frame
    for bit in range(8 * len(frame)):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << (bit % 8)
        dense = np.zeros(30, np.float32)
        try:
            parsed = pipeline.read(ByteReader(bytes(damaged), "rank 1"), spec)
            added = pipeline.add_into(dense, parsed, spec, DRAW, 1.0)
        except CorruptPayloadError as error:
            assert "'layer'" in str(error)  # noqa: PT017
            assert not dense.any(), "a frame that is refused was added in part"
        else:
            assert added is (parsed is not Special.NOT_FINITE)


def test_numel_is_the_receivers_and_not_the_wires():
    """A frame for a larger tensor is refused, not written beyond the end."""
    frame = Pipeline(Settings.of("none", "rice", "raw", "none")).encode(
        np.ones(1000, np.float32), spec_of(1000), {}, DRAW
    )
    for numel in (1, 10, 999):
        with pytest.raises(CorruptPayloadError):
            received(Pipeline(Settings.of("none", "rice", "raw", "none")), frame.frame, spec_of(numel))


def test_a_gradient_whose_encoding_fails_is_not_lost():
    """The residual then holds the whole of it."""

    class Fails(RawValues):
        def encode(self, values, support, draw):
            raise InvalidSettingError("no")

    pipeline, spec = Pipeline(Settings(TopK(0.5), Raw(), Fails(), Residual())), spec_of(10)
    slots = pipeline.new_slots(spec)
    gradient = gradient_of(spec)
    with pytest.raises(InvalidSettingError):
        pipeline.encode(gradient, spec, slots, DRAW)
    assert np.array_equal(slots["residual"], gradient)
