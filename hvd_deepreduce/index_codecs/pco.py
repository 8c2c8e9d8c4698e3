"""Gaps in the library pcodec's own code; FORMAT.md, 4.13."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.checks import require_integer
from hvd_deepreduce.contracts import IndexCodec
from hvd_deepreduce.errors import CorruptPayloadError
from hvd_deepreduce.pcodec_chunks import HIGHEST_LEVEL, PACKAGE, compress, decompress, most_bytes
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Positions, Support


@dataclass(frozen=True)
class Pco(IndexCodec):
    """A strong general coder of numbers, to compare with: on gaps between positions it comes near `rice`.

    Needs the package pcodec. `level` 0 to 12: higher ones search longer for a model.
    """

    level: int = 8

    name: ClassVar[str] = "pco"
    package: ClassVar[str | None] = PACKAGE
    wire_id: ClassVar[int] = 13
    exact: ClassVar[bool] = True
    portable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_integer("pco", "level", self.level, minimum=0, maximum=HIGHEST_LEVEL)

    def encode(self, support: Support, draw: Draw) -> bytes:
        positions = support.positions
        _native.check_positions(positions, support.view.numel)
        if not len(positions):
            return b""
        gaps = np.empty_like(positions)
        gaps[0] = positions[0]
        np.subtract(positions[1:], positions[:-1], out=gaps[1:])
        gaps[1:] -= 1
        return compress(gaps, self.level)

    def decode(self, payload: bytes, kept: int, view: MatrixView, draw: Draw) -> Support:
        parts, end = [], 0
        for gaps in decompress(payload, kept, view.position_dtype):
            positions, end = _following(gaps, end, view)
            parts.append(positions)
        return Support(np.concatenate(parts) if parts else np.empty(0, view.position_dtype), view)

    def max_encoded_size(self, kept: int, view: MatrixView) -> int:
        return most_bytes(kept, view.position_dtype.itemsize)


def _following(gaps: Positions, start: int, view: MatrixView) -> tuple[Positions, int]:
    """The positions of a chunk of which the first may be `start`, and where the next one may be."""
    if int(gaps.max()) >= view.numel:
        raise CorruptPayloadError(f"pco: a gap of {gaps.max()} is outside numel {view.numel}")
    # At most 2**18 steps of at most 2**33 each: no sum overflows.
    ends = np.cumsum(gaps, dtype=np.uint64) + np.arange(start + 1, start + 1 + len(gaps), dtype=np.uint64)
    end = int(ends[-1])
    if end > view.numel:
        raise CorruptPayloadError(f"pco: position {end - 1} is outside numel {view.numel}")
    return (ends - np.uint64(1)).astype(view.position_dtype), end
