"""One bit per position; FORMAT.md, 4.3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hvd_deepreduce import _native
from hvd_deepreduce.contracts import IndexCodec
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support


@dataclass(frozen=True)
class Bitmap(IndexCodec):
    """The same size whatever was kept; worth it above a density near 1/4, below which `Rice` is smaller."""

    name: ClassVar[str] = "bitmap"
    wire_id: ClassVar[int] = 3
    exact: ClassVar[bool] = True

    def encode(self, support: Support, draw: Draw) -> bytes:
        return _native.bitmap_encode(support.positions, support.view.numel)

    def decode(self, payload: bytes, kept: int, view: MatrixView, draw: Draw) -> Support:
        return Support(_native.bitmap_decode(payload, kept, view.numel), view)

    def max_encoded_size(self, kept: int, view: MatrixView) -> int:
        return (view.numel + 7) // 8
