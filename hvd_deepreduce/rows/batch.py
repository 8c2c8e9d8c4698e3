"""What lets a `Bucket` carry rows; see `hvd_deepreduce.batch`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hvd_deepreduce import _native
from hvd_deepreduce.batch import DecodedGradient, EncodeJob, Gradient, decode_in_turn
from hvd_deepreduce.pipeline import EncodedGradient
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.rows.gradient import RowGradient
from hvd_deepreduce.rows.pipeline import RowPipeline
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.wire.frame import Frame
from hvd_deepreduce.wire.reader import ByteReader


class RowBatch:
    """A `Batch` whose gradients are `RowGradient`s."""

    def __init__(self, pipeline: RowPipeline):
        self._pipeline = pipeline

    def encode(self, jobs: Sequence[EncodeJob]) -> Iterator[EncodedGradient]:
        for job in jobs:
            assert isinstance(job.gradient, RowGradient)
            yield job.gradient.encode(job.draw)

    def decode(
        self,
        readers: Sequence[ByteReader],
        specs: Sequence[TensorSpec],
        outputs: Sequence[Gradient | None],
        draw_of: Callable[[int, int], Draw],
        factor: float,
    ) -> list[DecodedGradient]:
        pipeline = self._pipeline

        def overwrite(place: int, spec: TensorSpec, output: Gradient, frames: Sequence[Frame | None]) -> bool:
            assert isinstance(output, RowGradient)
            of_ranks = [(draw_of(rank, place), frame) for rank, frame in enumerate(frames) if frame is not None]
            output.overwrite([pipeline.decode(frame, spec, draw) for draw, frame in of_ranks], factor)
            return _native.all_finite(output.rows.values.reshape(-1))

        return decode_in_turn(readers, specs, outputs, pipeline.read, overwrite)
