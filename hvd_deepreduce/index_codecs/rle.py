"""Run lengths of zeros and ones of the bitmap as varints; FORMAT.md, 4.5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hvd_deepreduce import _native
from hvd_deepreduce.checks import varint_size
from hvd_deepreduce.contracts import IndexCodec
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support


@dataclass(frozen=True)
class Rle(IndexCodec):
    """Two bytes or more for each run of neighbours that were kept (DeepReduce, A.1): small where runs are long."""

    name: ClassVar[str] = "rle"
    wire_id: ClassVar[int] = 5
    exact: ClassVar[bool] = True

    def encode(self, support: Support, draw: Draw) -> bytes:
        return _native.rle_encode(support.positions, support.view.numel)

    def decode(self, payload: bytes, kept: int, view: MatrixView, draw: Draw) -> Support:
        return Support(_native.rle_decode(payload, kept, view.numel), view)

    def max_encoded_size(self, kept: int, view: MatrixView) -> int:
        if kept == 0:
            return 0
        # Runs of ones have zeros between them, and every byte beyond a run's first stands for 128 elements or more.
        runs = 2 * min(kept, view.numel - kept + 1)
        return min(runs * varint_size(view.numel - 1), runs + view.numel // 128)
