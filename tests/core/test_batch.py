"""The native batch gives the bytes, residuals and sums of the stagewise one: every triple, any number of threads."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import pytest

from hvd_deepreduce.batch import EncodeJob, NativeBatch, StagewiseBatch, make_batch
from hvd_deepreduce.errors import CorruptPayloadError, TruncatedPayloadError
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.registry import INDEX_CODECS, MEMORIES, VALUE_CODECS
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.wire.reader import ByteReader

SPARSIFIERS = (
    "none",
    "topk(density=0.07)",
    "threshold(value=1.5)",
    "threshold(value=1e9)",
    "dropping(rate=0.9, sample=0.1)",
    "dropping(rate=0.9, scope='global')",
)
VALUES = [{"qsgd": "qsgd(bits=5, bucket=32)"}.get(name, name) for name in VALUE_CODECS]
SPECS = [
    TensorSpec("a", (40, 50)),
    TensorSpec("b", (1,)),
    TensorSpec("c", (7, 11, 3), "float64"),
    TensorSpec("d", (3000,), "bfloat16"),
]
ALL = ["+".join(stages) for stages in itertools.product(SPARSIFIERS, INDEX_CODECS, VALUES, MEMORIES)]
NATIVE = [text for text in ALL if NativeBatch.can(Settings.from_string(text))]


def gradients(rank: int, step: int) -> list[np.ndarray]:
    generator = np.random.default_rng([rank, step])
    drawn = []
    for spec in SPECS:
        gradient = generator.standard_normal(spec.numel)
        gradient[generator.random(spec.numel) < 0.5] = 0
        drawn.append(gradient.astype(spec.value_dtype))
    if (rank, step) == (1, 1):
        drawn[2][5] = np.nan
    return drawn


def draws(rank: int, step: int) -> list[Draw]:
    return [Draw(9, spec.name, step, rank) for spec in SPECS]


def test_what_the_native_batch_knows() -> None:
    for text in ALL:
        settings = Settings.from_string(text)
        known = (
            settings.index.name in ("raw", "bitmap", "rice")
            and settings.value.name in ("raw", "fp16", "bf16", "qsgd")
            and settings.memory.name in ("none", "residual")
        )
        assert NativeBatch.can(settings) == known, text
        assert isinstance(make_batch(settings), NativeBatch if known else StagewiseBatch), text


@pytest.mark.parametrize("text", NATIVE)
@pytest.mark.parametrize("threads", [1, 3])
def test_native_equals_stagewise(text: str, threads: int) -> None:
    settings = Settings.from_string(text)
    pipeline = Pipeline(settings)
    batches = [StagewiseBatch(pipeline), NativeBatch(pipeline, threads)]
    slots = [[[pipeline.new_slots(spec) for spec in SPECS] for _ in range(2)] for _ in batches]
    for step in range(3):
        bodies: list[list[bytes]] = []
        for number, batch in enumerate(batches):
            of_ranks = []
            for rank in range(2):
                settings.sparsifier.begin_step(
                    [(spec.numel, one) for spec, one in zip(SPECS, slots[number][rank], strict=True)]
                )
                jobs = map(EncodeJob, gradients(rank, step), SPECS, slots[number][rank], draws(rank, step))
                encoded = list(batch.encode(list(jobs)))
                of_ranks.append(
                    (
                        b"".join(one.frame for one in encoded),
                        [(e.kept, e.index_bytes, e.value_bytes, e.finite) for e in encoded],
                    )
                )
            bodies.append(of_ranks)
        assert bodies[0] == bodies[1]
        sums = []
        for batch in batches:
            outputs = [np.full(spec.numel, 7, spec.value_dtype) for spec in SPECS]
            readers = [ByteReader(body + bytes(rank), f"rank {rank}") for rank, (body, _) in enumerate(bodies[0])]
            decoded = batch.decode(
                readers, SPECS, outputs, lambda rank, place, step=step: draws(rank, step)[place], 1 / 3
            )
            assert [one.finite for one in decoded] == [True, True, step != 1, True]
            sums.append(outputs)
        for left, right in zip(*sums, strict=True):
            np.testing.assert_array_equal(left, right)
        for of_rank in zip(*slots, strict=True):
            for mine, theirs in zip(*of_rank, strict=True):
                assert mine.keys() == theirs.keys()
                for name in mine:
                    np.testing.assert_array_equal(mine[name], theirs[name])


def test_the_default_settings_are_native() -> None:
    assert isinstance(make_batch(Settings.of()), NativeBatch)


def test_an_output_that_is_none_is_skipped() -> None:
    for batch in (make_batch(Settings.of()), StagewiseBatch(Pipeline(Settings.of()))):
        body = b"".join(
            one.frame for one in batch.encode(list(map(EncodeJob, gradients(0, 0), SPECS, slots_of(), draws(0, 0))))
        )
        outputs = [None, None, np.ones(SPECS[2].numel), None]
        decoded = batch.decode(
            [ByteReader(body, "rank 0")], SPECS, outputs, lambda rank, place: draws(0, 0)[place], 1.0
        )
        assert all(one.finite for one in decoded)
        assert 0 < np.count_nonzero(outputs[2]) < SPECS[2].numel


def slots_of() -> list[dict[str, np.ndarray]]:
    return [Pipeline(Settings.of()).new_slots(spec) for spec in SPECS]


def test_damaged_bytes_are_named_with_tensor() -> None:
    batch = make_batch(Settings.of())
    body = b"".join(
        one.frame for one in batch.encode(list(map(EncodeJob, gradients(0, 0), SPECS, slots_of(), draws(0, 0))))
    )

    def decode(damaged: bytes) -> None:
        outputs = [np.zeros(spec.numel, spec.value_dtype) for spec in SPECS]
        batch.decode(
            [ByteReader(damaged, "bucket 4, rank 0")], SPECS, outputs, lambda rank, place: draws(0, 0)[place], 1.0
        )

    decode(body)
    for length in range(len(body)):
        with pytest.raises(TruncatedPayloadError, match="tensor '[abcd]'.*rank 0"):
            decode(body[:length])
    with pytest.raises(CorruptPayloadError, match="bucket 4, rank 0: padding from byte .* is not zero"):
        decode(body + b"\1")
    for place in range(0, 8 * len(body), 7):
        damaged = bytearray(body)
        damaged[place // 8] ^= 1 << place % 8
        with contextlib.suppress(CorruptPayloadError):
            decode(bytes(damaged))
