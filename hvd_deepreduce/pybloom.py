"""The filters of pybloom-live as the index codec `bloom` uses them; FORMAT.md, 4.12. Not a codec of its own."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hvd_deepreduce.sparse import MatrixView, Positions

_HEAD = "<dQQQQ"


def insert(positions: Positions, fpr: float) -> tuple[int, int, bytes]:
    """Slices, bits of each of them, and the bits of a new filter."""
    from pybloom_live import BloomFilter

    made = BloomFilter(capacity=len(positions), error_rate=fpr)
    for position in positions.tolist():
        made.add(position, skip_check=True)
    return made.num_slices, made.bits_per_slice, made.bitarray.tobytes()


def members(bits: bytes, slices: int, size: int, view: MatrixView) -> Positions:
    """The positions that a filter reports."""
    read = _filter(bits, slices, size)
    return np.fromiter((position for position in range(view.numel) if position in read), view.position_dtype)


def places(positions: Positions, slices: int, size: int) -> NDArray[np.uint64]:
    """The bits of each position in turn, one in each slice."""
    make_hashes = _filter(bytes(-(-slices * size // 8)), slices, size).make_hashes
    found = [list(make_hashes(position)) for position in positions.tolist()]
    starts = size * np.arange(slices, dtype=np.uint64)
    return (np.array(found, np.uint64).reshape(-1, slices) + starts).ravel()


def _filter(bits: bytes, slices: int, size: int) -> Any:
    from pybloom_live import BloomFilter

    # Rate, capacity and count are not looked at by tests of membership.
    head = struct.pack(_HEAD, 0.5, slices, size, 1, 0)
    return BloomFilter.fromfile(io.BytesIO(head + bits))
