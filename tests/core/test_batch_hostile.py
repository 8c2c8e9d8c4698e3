"""The native batch reads bytes for itself: it must refuse what the stagewise one refuses, and read the same else."""

import itertools

import numpy as np
import pytest

from hvd_deepreduce.batch import EncodeJob, NativeBatch, StagewiseBatch
from hvd_deepreduce.errors import CorruptPayloadError
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.registry import INDEX_CODECS, VALUE_CODECS
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.wire.reader import ByteReader

SPECS = [TensorSpec("a", (6, 7)), TensorSpec("b", (9,), "float64"), TensorSpec("c", (5,))]
DRAWS = [Draw(9, spec.name, 0, 0) for spec in SPECS]
ALL_PAIRS = ["+".join(pair) for pair in itertools.product(INDEX_CODECS, VALUE_CODECS)]
PAIRS = [pair for pair in ALL_PAIRS if NativeBatch.can(Settings.from_string(f"none+{pair}"))]


def gradients():
    rng = np.random.default_rng(0)
    return [rng.normal(size=spec.numel).astype(spec.value_dtype) for spec in SPECS]


def body_of(settings):
    slots = [Pipeline(settings).new_slots(spec) for spec in SPECS]
    jobs = [EncodeJob(*job) for job in zip(gradients(), SPECS, slots, DRAWS, strict=True)]
    return b"".join(encoded.frame for encoded in NativeBatch(Pipeline(settings), 1).encode(jobs))


def read(batch, body):
    """The outputs as bytes, or the class of the error."""
    outputs = [np.full(spec.numel, 7, spec.value_dtype) for spec in SPECS]
    try:
        decoded = batch.decode([ByteReader(body, "rank 0")], SPECS, outputs, lambda rank, place: DRAWS[place], 1.0)
    except CorruptPayloadError as error:
        return type(error)
    return [(one.finite, np.nan_to_num(output, nan=-1).tobytes()) for one, output in zip(decoded, outputs, strict=True)]


class NativeOnly(NativeBatch):
    """Without the way back to the stagewise batch."""

    def __init__(self, pipeline):
        super().__init__(pipeline, 1)
        self._stagewise = self

    def decode(self, readers, specs, outputs, draw_of, factor):
        if self._refused:
            raise CorruptPayloadError("refused")
        self._refused = True
        try:
            return super().decode(readers, specs, outputs, draw_of, factor)
        finally:
            self._refused = False

    _refused = False


def changes(body):
    for bit in range(8 * len(body)):
        damaged = bytearray(body)
        damaged[bit // 8] ^= 1 << (bit % 8)
        yield f"bit {bit}", bytes(damaged)
    for size in range(len(body)):
        yield f"{size} bytes", body[:size]
    for tail in (b"\0", b"\0" * 9, b"\1", b"\0\1", body):
        yield f"{len(tail)} more", body + tail
    for size in range(len(body)):
        yield f"varint at {size}", body[:size] + b"\xff" * 8 + b"\x7f" + body[size + 1 :]
        yield f"no varint at {size}", body[:size] + b"\xff" * 9 + body[size + 1 :]


@pytest.mark.parametrize("pair", PAIRS)
def test_both_refuse_the_same_and_read_the_same(pair):
    settings = Settings.from_string(f"topk(density=0.2)+{pair}+none")
    stagewise, native = StagewiseBatch(Pipeline(settings)), NativeOnly(Pipeline(settings))
    body = body_of(settings)
    assert isinstance(read(native, body), list)
    for what, changed in [("whole", body), *changes(body)]:
        expected = read(stagewise, changed)
        found = read(native, changed)
        if isinstance(expected, type):
            assert found is CorruptPayloadError, f"{what}: only the native batch takes it"
        else:
            assert found == expected, what


@pytest.mark.parametrize("special", ["0000", "0001", "000000010000", "000200000000", "0080000000"])
def test_special_frames(special):
    settings = Settings.from_string("none+raw+raw+none")
    stagewise, native = StagewiseBatch(Pipeline(settings)), NativeOnly(Pipeline(settings))
    for body in (bytes.fromhex(special), bytes.fromhex(special) + body_of(settings)):
        expected = read(stagewise, body)
        assert read(native, body) == (CorruptPayloadError if isinstance(expected, type) else expected)
