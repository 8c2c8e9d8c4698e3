"""Gaps as varints; FORMAT.md, 4.8."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hvd_deepreduce import _native
from hvd_deepreduce.checks import varint_size
from hvd_deepreduce.contracts import IndexCodec
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support


@dataclass(frozen=True)
class Delta(IndexCodec):
    """A byte for a gap below 128, two below 16,384: fast and plain, and never less than 8 bits per kept element."""

    name: ClassVar[str] = "delta"
    wire_id: ClassVar[int] = 8
    exact: ClassVar[bool] = True

    def encode(self, support: Support, draw: Draw) -> bytes:
        return _native.delta_encode(support.positions, support.view.numel)

    def decode(self, payload: bytes, kept: int, view: MatrixView, draw: Draw) -> Support:
        return Support(_native.delta_decode(payload, kept, view.numel), view)

    def max_encoded_size(self, kept: int, view: MatrixView) -> int:
        # Every byte beyond a gap's first stands for 128 elements or more that were not kept.
        dropped = view.numel - kept
        return min(kept * varint_size(dropped), kept + dropped // 128)
