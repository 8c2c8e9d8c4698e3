"""Gaps in Golomb-Rice code, the divisor chosen anew for every block of 128 gaps; FORMAT.md, 4.4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hvd_deepreduce import _native
from hvd_deepreduce.contracts import IndexCodec
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support

_BLOCK = 128
_LONGEST_UNARY = 24


@dataclass(frozen=True)
class Rice(IndexCodec):
    """Within about 1 % of the entropy of a random support (Golomb 1966), and below it where kept elements cluster.

    The first divisor follows from numel and kept, a later one costs a bit when it stays: small supports pay no table.
    Divisors are four to the octave instead of powers of two, which saves up to 2 % of the bits between them.
    """

    name: ClassVar[str] = "rice"
    wire_id: ClassVar[int] = 4
    exact: ClassVar[bool] = True

    def encode(self, support: Support, draw: Draw) -> bytes:
        return _native.rice_encode(support.positions, support.view.numel)

    def decode(self, payload: bytes, kept: int, view: MatrixView, draw: Draw) -> Support:
        return Support(_native.rice_decode(payload, kept, view.numel), view)

    def max_encoded_size(self, kept: int, view: MatrixView) -> int:
        # Keeping the first divisor of a block costs one bit and at most an escape a gap; the encoder never does worse.
        widest_gap = _LONGEST_UNARY + 3 + max(1, (view.numel - 1).bit_length())
        blocks = (kept + _BLOCK - 1) // _BLOCK
        return (kept * widest_gap + blocks + 7) // 8
