"""Positions as they are; FORMAT.md, 4.1 and 4.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.checks import require_payload_length
from hvd_deepreduce.contracts import IndexCodec, OrderedIndexCodec
from hvd_deepreduce.errors import CorruptPayloadError
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Order, Support


class RawOrdered(OrderedIndexCodec):
    """Positions in the order of their values."""

    wire_id: ClassVar[int] = 2

    def encode(self, support: Support, order: Order) -> bytes:
        positions = support.positions[order]
        return positions.astype(positions.dtype.newbyteorder("<"), copy=False).tobytes()

    def decode(self, payload: bytes, kept: int, view: MatrixView) -> tuple[Support, Order]:
        dtype = view.position_dtype
        require_payload_length("raw in value order", payload, kept * dtype.itemsize)
        sent = np.frombuffer(payload, dtype.newbyteorder("<")).astype(dtype)
        by_position = np.argsort(sent)
        positions = sent[by_position]
        if kept and int(positions[-1]) >= view.numel:
            raise CorruptPayloadError(f"raw in value order: position {positions[-1]} is outside numel {view.numel}")
        repeated = np.flatnonzero(positions[1:] == positions[:-1])
        if repeated.size:
            raise CorruptPayloadError(f"raw in value order: position {positions[repeated[0]]} is there twice")
        order = np.empty(kept, dtype=np.int64)
        order[by_position] = np.arange(kept)
        return Support(positions, view), order


@dataclass(frozen=True)
class Raw(IndexCodec):
    """32 bits per kept element (64 above 2**32 elements): the <key, value> pairs that papers compare with."""

    name: ClassVar[str] = "raw"
    wire_id: ClassVar[int] = 1
    exact: ClassVar[bool] = True
    ordered: ClassVar[OrderedIndexCodec | None] = RawOrdered()

    def encode(self, support: Support, draw: Draw) -> bytes:
        _native.check_positions(support.positions, support.view.numel)
        return support.positions.astype(support.positions.dtype.newbyteorder("<"), copy=False).tobytes()

    def decode(self, payload: bytes, kept: int, view: MatrixView, draw: Draw) -> Support:
        return Support(_native.raw_positions_decode(payload, kept, view.numel), view)

    def max_encoded_size(self, kept: int, view: MatrixView) -> int:
        return kept * view.position_dtype.itemsize
