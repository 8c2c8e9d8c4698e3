"""What lets a `Bucket` carry rows; see `hvd_deepreduce.batch`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from hvd_deepreduce import _native
from hvd_deepreduce.batch import DecodedGradient, EncodeJob, Gradient
from hvd_deepreduce.pipeline import EncodedGradient
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.rows.gradient import RowGradient
from hvd_deepreduce.rows.pipeline import RowPipeline
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.wire.bundle import require_padding
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
        frames = []
        for reader in readers:
            frames.append([pipeline.read(reader, spec) for spec in specs])
            require_padding(reader)
        decoded = []
        for place, (spec, output) in enumerate(zip(specs, outputs, strict=True)):
            start = time.perf_counter()
            finite = True
            if output is not None:
                assert isinstance(output, RowGradient)
                of_ranks = [(rank, frame) for rank, of in enumerate(frames) if (frame := of[place]) is not None]
                output.overwrite(
                    [pipeline.decode(frame, spec, draw_of(rank, place)) for rank, frame in of_ranks], factor
                )
                finite = _native.all_finite(output.rows.values.reshape(-1))
            decoded.append(DecodedGradient(finite, 1e3 * (time.perf_counter() - start)))
        return decoded
