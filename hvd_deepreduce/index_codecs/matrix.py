"""Rows and columns of the layer's matrix, each with a density of its own, in a range code; FORMAT.md, 4.10."""

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
class Matrix(IndexCodec):
    """Below the entropy of a random support where kept elements crowd into some rows or columns; never above `rice`
    by more than a byte.

    Densities travel as a coarse class for each row and column, or for groups of them, where that pays. Time and memory
    go with kept, plus rows and columns; a coded position takes several times as long as in `rice`.
    """

    name: ClassVar[str] = "matrix"
    wire_id: ClassVar[int] = 10
    exact: ClassVar[bool] = True

    def encode(self, support: Support, draw: Draw) -> bytes:
        return _native.matrix_encode(support.positions, support.view.rows, support.view.columns)

    def decode(self, payload: bytes, kept: int, view: MatrixView, draw: Draw) -> Support:
        return Support(_native.matrix_decode(payload, kept, view.rows, view.columns), view)

    def max_encoded_size(self, kept: int, view: MatrixView) -> int:
        # A byte and the payload of `rice`, which is taken when the model is no shorter.
        widest_gap = _LONGEST_UNARY + 3 + max(1, (view.numel - 1).bit_length())
        blocks = (kept + _BLOCK - 1) // _BLOCK
        return 1 + (kept * widest_gap + blocks + 7) // 8
