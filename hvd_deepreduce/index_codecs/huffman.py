"""Huffman codes of the bytes of positions, or of the gaps between them; FORMAT.md, 4.6 and 4.7."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from hvd_deepreduce import _native
from hvd_deepreduce.checks import quoted
from hvd_deepreduce.contracts import IndexCodec
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support

_WIRE_IDS: Final = {"bytes": 6, "gaps": 7}
_LONGEST_WORD = 15


@dataclass(frozen=True)
class Huffman(IndexCodec):
    """With `of="bytes"`, DeepReduce's (F.2): the bytes of positions, in a code made for all positions below numel.

    That code needs no table but sees no support: its size hardly depends on density. With `of="gaps"` the payload
    begins with a code made for its own gaps, which pays from some hundred kept elements on; it is never larger than all
    gaps at their full width.
    """

    of: str = "bytes"

    name: ClassVar[str] = "huffman"
    wire_ids: ClassVar[tuple[int, ...]] = tuple(_WIRE_IDS.values())
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.of not in tuple(_WIRE_IDS):
            raise InvalidSettingError(f"huffman: of={quoted(self.of)}; allowed are {', '.join(map(repr, _WIRE_IDS))}")

    @property
    def wire_id(self) -> int:
        return _WIRE_IDS[self.of]

    def encode(self, support: Support, draw: Draw) -> bytes:
        kernel = _native.huffman_gaps_encode if self.of == "gaps" else _native.huffman_bytes_encode
        return kernel(support.positions, support.view.numel)

    def decode(self, payload: bytes, kept: int, view: MatrixView, draw: Draw) -> Support:
        kernel = _native.huffman_gaps_decode if self.of == "gaps" else _native.huffman_bytes_decode
        return Support(kernel(payload, kept, view.numel), view)

    def max_encoded_size(self, kept: int, view: MatrixView) -> int:
        if kept == 0:
            return 0
        if self.of == "gaps":
            return (1 + kept * max(1, (view.numel - 1).bit_length()) + 7) // 8
        return (kept * view.position_dtype.itemsize * _LONGEST_WORD + 7) // 8
