"""All tensors of a bucket at once: stage by stage for any settings, or in one native call where all stages have one.

Both give the same bytes; the native one spares small tensors the price of a dozen calls from Python, and works on
several threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.contracts import Sparsifier
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.index_codecs.bitmap import Bitmap
from hvd_deepreduce.index_codecs.raw import Raw
from hvd_deepreduce.index_codecs.rice import Rice
from hvd_deepreduce.memories.none import NoMemory
from hvd_deepreduce.memories.residual import Residual
from hvd_deepreduce.pipeline import EncodedGradient, Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.rows.gradient import RowGradient
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import SparseGradient, TensorSpec, Values
from hvd_deepreduce.sparsifiers.dropping import Dropping
from hvd_deepreduce.sparsifiers.nonzero import KeepNonzero
from hvd_deepreduce.sparsifiers.threshold import Threshold
from hvd_deepreduce.sparsifiers.topk import TopK
from hvd_deepreduce.value_codecs.bf16 import BFloat16
from hvd_deepreduce.value_codecs.fp16 import Float16
from hvd_deepreduce.value_codecs.qsgd import Qsgd
from hvd_deepreduce.value_codecs.raw import RawValues
from hvd_deepreduce.wire.bundle import require_padding
from hvd_deepreduce.wire.frame import Frame, Special
from hvd_deepreduce.wire.reader import ByteReader

_F = TypeVar("_F")


class Elsewhere(Protocol):
    """A gradient that lies on some device; it encodes itself, and is overwritten with a sum later."""

    def encode(self, draw: Draw) -> EncodedGradient: ...

    def clear(self) -> None:
        """Makes it zero."""

    def add(self, gradient: SparseGradient, factor: float) -> None:
        """Adds factor x a sparse gradient, every product rounded before it is added."""

    def spoil(self) -> None:
        """Makes it NaN."""


Gradient = Values | Elsewhere | RowGradient


class EncodeJob(NamedTuple):
    """A gradient with the slots of its memory; what `Pipeline.encode` takes."""

    gradient: Gradient
    spec: TensorSpec
    slots: Mapping[str, Values]
    draw: Draw


class DecodedGradient(NamedTuple):
    """How decoding one tensor of all ranks went."""

    finite: bool
    milliseconds: float


class Batch(Protocol):
    """Encodes and decodes the tensors of a bucket."""

    def encode(self, jobs: Sequence[EncodeJob]) -> Iterator[EncodedGradient]:
        """One frame per job in turn, and every job's slots brought up to date; what is raised is about the next job."""

    def decode(
        self,
        readers: Sequence[ByteReader],
        specs: Sequence[TensorSpec],
        outputs: Sequence[Gradient | None],
        draw_of: Callable[[int, int], Draw],
        factor: float,
    ) -> list[DecodedGradient]:
        """Overwrites each output with factor x the sum over all ranks; NaN where one of them was not finite.

        Each rank's reader stands at the first of the frames, one per spec, which nothing but padding may follow;
        `draw_of` takes a rank and the place of a tensor. An output that is None is skipped. Raises
        `CorruptPayloadError` with tensor and rank.
        """


class StagewiseBatch:
    """For any settings."""

    def __init__(self, pipeline: Pipeline):
        self._pipeline = pipeline

    def encode(self, jobs: Sequence[EncodeJob]) -> Iterator[EncodedGradient]:
        for job in jobs:
            if isinstance(job.gradient, np.ndarray):
                yield self._pipeline.encode(job.gradient, job.spec, job.slots, job.draw)
            else:
                yield job.gradient.encode(job.draw)

    def decode(
        self,
        readers: Sequence[ByteReader],
        specs: Sequence[TensorSpec],
        outputs: Sequence[Gradient | None],
        draw_of: Callable[[int, int], Draw],
        factor: float,
    ) -> list[DecodedGradient]:
        def overwrite(place: int, spec: TensorSpec, output: Gradient, frames: Sequence[Frame | Special]) -> bool:
            assert not isinstance(output, RowGradient), "rows have a batch of their own"
            total = _HostSum(output) if isinstance(output, np.ndarray) else output
            total.clear()
            for rank, frame in enumerate(frames):
                if isinstance(frame, Frame):
                    total.add(self._pipeline.decode(frame, spec, draw_of(rank, place)), factor)
            finite = all(frame is not Special.NOT_FINITE for frame in frames)
            if not finite:
                total.spoil()
            return finite

        return decode_in_turn(readers, specs, outputs, self._pipeline.read, overwrite)


def decode_in_turn(
    readers: Sequence[ByteReader],
    specs: Sequence[TensorSpec],
    outputs: Sequence[Gradient | None],
    read: Callable[[ByteReader, TensorSpec], _F],
    overwrite: Callable[[int, TensorSpec, Gradient, Sequence[_F]], bool],
) -> list[DecodedGradient]:
    """`Batch.decode`, one tensor after the other, once all frames of all ranks are read.

    `overwrite` takes a tensor's place, spec, output and frames, one per rank, and tells whether the sum is finite.
    """
    frames = []
    for reader in readers:
        frames.append([read(reader, spec) for spec in specs])
        require_padding(reader)
    decoded = []
    for place, (spec, output) in enumerate(zip(specs, outputs, strict=True)):
        start = time.perf_counter()
        finite = output is None or overwrite(place, spec, output, [of_rank[place] for of_rank in frames])
        decoded.append(DecodedGradient(finite, 1e3 * (time.perf_counter() - start)))
    return decoded


class _HostSum:
    """A sum in the host's memory; see `Elsewhere`."""

    def __init__(self, dense: Values):
        self._dense = dense

    def clear(self) -> None:
        self._dense.fill(0)

    def add(self, gradient: SparseGradient, factor: float) -> None:
        in_order = gradient.by_position()
        _native.scatter_add(self._dense, in_order.support.positions, in_order.values, factor)

    def spoil(self) -> None:
        self._dense.fill(np.nan)


class NativeBatch:
    """For settings whose every stage has a native kernel and a place in `_native.encode_frames`."""

    def __init__(self, pipeline: Pipeline, threads: int):
        settings = pipeline.settings
        self.stages = _native_stages(settings)
        """What the native call takes."""
        self._residual = isinstance(settings.memory, Residual)
        self._sparsifier = settings.sparsifier
        self._stochastic = not settings.value.deterministic
        self._threads = threads
        self._stagewise = StagewiseBatch(pipeline)

    @staticmethod
    def can(settings: Settings) -> bool:
        """Whether the native call knows all of these stages."""
        return (
            isinstance(settings.sparsifier, KeepNonzero | TopK | Threshold | Dropping)
            and type(settings.index) in _NATIVE_INDEX
            and type(settings.value) in _NATIVE_VALUE
            and isinstance(settings.memory, NoMemory | Residual)
        )

    def encode(self, jobs: Sequence[EncodeJob]) -> Iterator[EncodedGradient]:
        gradients = [job.gradient for job in jobs if isinstance(job.gradient, np.ndarray)]
        if len(gradients) < len(jobs):
            yield from self._stagewise.encode(jobs)
            return
        try:
            body, facts = _native.encode_frames(
                self.stages,
                gradients,
                [job.slots["residual"] for job in jobs] if self._residual else [],
                _choices(self._sparsifier, jobs),
                [job.draw.key() if self._stochastic else 0 for job in jobs],
                self._threads,
            )
        except (InvalidSettingError, LookupError):
            # Refused before anything was touched; the slow way tells which tensor it is about.
            yield from self._stagewise.encode(jobs)
            return
        end = 0
        for length, kept, index_bytes, value_bytes, finite, nanoseconds in facts.tolist():
            frame = body[end : end + length]
            end += length
            yield EncodedGradient(frame, kept, index_bytes, value_bytes, bool(finite), nanoseconds / 1e6)

    def decode(
        self,
        readers: Sequence[ByteReader],
        specs: Sequence[TensorSpec],
        outputs: Sequence[Gradient | None],
        draw_of: Callable[[int, int], Draw],
        factor: float,
    ) -> list[DecodedGradient]:
        on_host = [output for output in outputs if output is None or isinstance(output, np.ndarray)]
        if len(on_host) < len(outputs):
            return self._stagewise.decode(readers, specs, outputs, draw_of, factor)
        facts = _native.decode_frames(
            self.stages,
            [memoryview(reader.data)[reader.offset :] for reader in readers],
            [spec.numel for spec in specs],
            on_host,
            factor,
            self._threads,
        )
        if facts is None:
            # Something is wrong with the bytes, and the slow way says what.
            return self._stagewise.decode(readers, specs, outputs, draw_of, factor)
        return [DecodedGradient(bool(finite), nanoseconds / 1e6) for finite, nanoseconds in facts.tolist()]


def _choices(sparsifier: Sparsifier, jobs: Sequence[EncodeJob]) -> list[_native.Choice]:
    if isinstance(sparsifier, TopK):
        return [(sparsifier.kept(job.spec.numel),) for job in jobs]
    if isinstance(sparsifier, Dropping):
        choices: list[_native.Choice] = []
        for job in jobs:
            threshold = sparsifier.threshold(job.slots)
            sampled = sparsifier.sampled(job.spec.numel)
            choices.append((-1.0 if threshold is None else threshold, *sampled, job.slots.get("sample")))
        return choices
    return []


def make_batch(settings: Settings, threads: int = 1) -> Batch:
    """The fastest batch there is for some settings."""
    pipeline = Pipeline(settings)
    return NativeBatch(pipeline, threads) if NativeBatch.can(settings) else StagewiseBatch(pipeline)


_NATIVE_INDEX = (Raw, Bitmap, Rice)
_NATIVE_VALUE = (RawValues, Float16, BFloat16, Qsgd)


def _native_stages(settings: Settings) -> tuple[str, float, int, int, int, int, bool]:
    qsgd = settings.value if isinstance(settings.value, Qsgd) else Qsgd()
    return (
        settings.sparsifier.name,
        settings.sparsifier.value if isinstance(settings.sparsifier, Threshold) else 0.0,
        settings.index.wire_id,
        settings.value.wire_id,
        qsgd.bits,
        qsgd.bucket,
        isinstance(settings.memory, Residual),
    )
