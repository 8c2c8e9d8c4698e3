"""The smallest exact codec for each support, its id in front; FORMAT.md, 4.14."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.contracts import IndexCodec
from hvd_deepreduce.errors import TruncatedPayloadError, UnknownCodecError
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Positions, Support

_RAW, _BITMAP, _RICE, _RLE, _HUFFMAN, _DELTA, _MATRIX = 1, 3, 4, 5, 7, 8, 10
_Decoder = Callable[[bytes, int, MatrixView], Positions]
_DECODERS: Final[Mapping[int, _Decoder]] = {
    _RAW: lambda payload, kept, view: _native.raw_positions_decode(payload, kept, view.numel),
    _BITMAP: lambda payload, kept, view: _native.bitmap_decode(payload, kept, view.numel),
    _RICE: lambda payload, kept, view: _native.rice_decode(payload, kept, view.numel),
    _RLE: lambda payload, kept, view: _native.rle_decode(payload, kept, view.numel),
    _HUFFMAN: lambda payload, kept, view: _native.huffman_gaps_decode(payload, kept, view.numel),
    _DELTA: lambda payload, kept, view: _native.delta_decode(payload, kept, view.numel),
    _MATRIX: lambda payload, kept, view: _native.matrix_decode(payload, kept, view.rows, view.columns),
}
_FEW = 512
"""Positions that are coded outright, as long as an estimate would take."""
_WINDOWS, _WINDOW = 4, 1024
_SAMPLE = 2**14
_WORTH = 0.995


@dataclass(frozen=True)
class Auto(IndexCodec):
    """Whichever of `raw`, `bitmap`, `rice`, `rle`, `delta`, `huffman(of='gaps')` and `matrix` is smallest, for each
    tensor and step; never above `rice` by more than a byte.

    Sizes that are cheap are compared as they are. `huffman` and `matrix` are tried where a sample says that they pay.
    """

    name: ClassVar[str] = "auto"
    wire_id: ClassVar[int] = 14
    exact: ClassVar[bool] = True
    portable: ClassVar[bool] = False

    def encode(self, support: Support, draw: Draw) -> bytes:
        positions, view = support.positions, support.view
        best, payload = _RICE, _native.rice_encode(positions, view.numel)
        kept = len(positions)
        if kept == 0:
            return b""
        tries: list[tuple[int, Callable[[], bytes], Callable[[int], bool]]] = [
            (_RLE, lambda: _native.rle_encode(positions, view.numel), lambda size: 2 * _runs(positions) < size),
            (_DELTA, lambda: _native.delta_encode(positions, view.numel), lambda size: kept < size),
            (_HUFFMAN, lambda: _native.huffman_gaps_encode(positions, view.numel), lambda _: _gaps_repeat(positions)),
            (
                _MATRIX,
                lambda: _native.matrix_encode(positions, view.rows, view.columns),
                lambda size: _lines_differ(positions, view, size),
            ),
            (
                _BITMAP,
                lambda: _native.bitmap_encode(positions, view.numel),
                lambda size: (view.numel + 7) // 8 < size,
            ),
            (_RAW, lambda: _raw(positions), lambda size: kept * positions.itemsize < size),
        ]
        for wire_id, encode, is_promising in tries:
            if is_promising(len(payload)):
                other = encode()
                if len(other) < len(payload):
                    best, payload = wire_id, other
        return bytes([best]) + payload

    def decode(self, payload: bytes, kept: int, view: MatrixView, draw: Draw) -> Support:
        if kept == 0:
            return Support(_native.rice_decode(payload, 0, view.numel), view)
        if not payload:
            raise TruncatedPayloadError("auto: no bytes; the id of a codec is needed")
        decoder = _DECODERS.get(payload[0])
        if decoder is None:
            raise UnknownCodecError(f"auto: index codec id {payload[0]}; allowed are {', '.join(map(str, _DECODERS))}")
        return Support(decoder(payload[1:], kept, view), view)

    def max_encoded_size(self, kept: int, view: MatrixView) -> int:
        return min(kept, 1) + min(kept * view.position_dtype.itemsize, (view.numel + 7) // 8)


def _raw(positions: Positions) -> bytes:
    return positions.astype(positions.dtype.newbyteorder("<"), copy=False).tobytes()


def _runs(positions: Positions) -> int:
    """Of neighbours that were kept; each takes two bytes of `rle` or more."""
    return 1 + int(np.count_nonzero(positions[1:] - positions[:-1] > 1))


def _gaps_repeat(positions: Positions) -> bool:
    """Whether `huffman` beats `rice` on some stretches of the support."""
    kept = len(positions)
    if kept < _FEW:
        return False  # the table takes what it could save
    if kept <= _WINDOWS * _WINDOW:
        return True
    starts = np.linspace(1, kept - _WINDOW, _WINDOWS).astype(np.int64)
    steps = np.concatenate([np.diff(positions[start - 1 : start + _WINDOW]) for start in starts])
    sample = (np.cumsum(steps, dtype=positions.dtype) - steps[0]).astype(positions.dtype)
    numel = int(sample[-1]) + 1
    return len(_native.huffman_gaps_encode(sample, numel)) < _WORTH * len(_native.rice_encode(sample, numel))


def _lines_differ(positions: Positions, view: MatrixView, size: int) -> bool:
    """Whether `matrix` promises less than `size` bytes, by how unevenly kept positions lie in rows and columns."""
    kept, most = len(positions), 2**16 + 64 * len(positions)
    if view.rows == 1 or view.rows > most:
        return False
    if kept <= _FEW:
        return True
    step = -(-kept // max(_SAMPLE, 4 * (view.rows + view.columns)))
    row, column = np.divmod(positions[::step], positions.dtype.type(view.columns))
    saved = _saved(row, view.rows, kept)
    if view.columns <= min(most, 2**20):
        saved += _saved(column, view.columns, kept)
    return 8 * size - saved < _WORTH * 8 * size


def _saved(line: Positions, lines: int, kept: int) -> float:
    """Bits that densities of their own for rows or columns save, less what it takes to tell these."""
    counts = np.bincount(line.astype(np.int64), minlength=lines)
    counts = counts[counts > 0].astype(np.float64)
    unevenness = float(counts @ np.log2(counts * (lines / len(line))))
    by_chance = 0.72 * lines  # (lines - 1) / (2 ln 2), where all are alike
    return max(0.0, (unevenness - by_chance) * kept / len(line) - 2.0 * len(counts))
