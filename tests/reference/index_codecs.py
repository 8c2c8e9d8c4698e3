"""Positions <-> bytes; FORMAT.md, 4.

An encoder is (positions, numel) -> payload, a decoder (payload, kept, numel) -> positions. Decoders return positions in
the order they were sent; only id 2 sends another than the sorted one. Id 10 depends on the matrix view: `encode` and
`decode` take it, and in the tables it has one row.
"""

from collections.abc import Callable, Mapping
from math import ceil, log2
from typing import Any

from reference import bloom, huffman, matrix, pco, rice, varint_codecs
from reference.bits import BitReader, BitWriter, ByteReader, CorruptError, TruncatedError

RAW, ORDERED, BITMAP, RICE, RLE, HUFFMAN_BYTES, HUFFMAN_GAPS, DELTA = 1, 2, 3, 4, 5, 6, 7, 8
BLOOM, MATRIX, PYBLOOM, PCO, AUTO = 9, 10, 12, 13, 14
CHOICE = (RAW, BITMAP, RICE, RLE, HUFFMAN_GAPS, DELTA, MATRIX)


def position_size(numel: int) -> int:
    return 4 if numel <= 2**32 else 8


def raw_encode(positions: list[int], numel: int) -> bytes:
    return b"".join(position.to_bytes(position_size(numel), "little") for position in positions)


def ordered_decode(payload: bytes, kept: int, numel: int) -> list[int]:
    size = position_size(numel)
    if len(payload) < size * kept:
        raise TruncatedError("raw: too short")
    reader = ByteReader(payload)
    positions = [reader.uint(size) for _ in range(kept)]
    reader.end()
    if any(position >= numel for position in positions):
        raise CorruptError("raw: a position outside numel")
    if len(set(positions)) != kept:
        raise CorruptError("raw: a repeated position")
    return positions


def raw_decode(payload: bytes, kept: int, numel: int) -> list[int]:
    positions = ordered_decode(payload, kept, numel)
    if positions != sorted(positions):
        raise CorruptError("raw: a position below the one before it")
    return positions


def bitmap_encode(positions: list[int], numel: int) -> bytes:
    out = BitWriter()
    for position in range(max([numel - 1, *positions]) + 1):
        out.field(1 if position in positions else 0, 1)
    return out.to_bytes()


def bitmap_decode(payload: bytes, kept: int, numel: int) -> list[int]:
    size = -(-numel // 8)
    if len(payload) < size:
        raise TruncatedError("bitmap: too short")
    if len(payload) > size:
        raise CorruptError("bitmap: too long")
    bits = BitReader(payload)
    positions = [position for position in range(numel) if bits.bit()]
    bits.end()
    if len(positions) != kept:
        raise CorruptError("bitmap: another number of set bits than kept")
    return positions


def bloom_encode(positions: list[int], numel: int) -> bytes:
    """With the codec's default settings."""
    size = max(8, ceil(bloom.bits_per_kept(0.001) * len(positions) / 8))
    return bloom.encode(positions, bloom.ALL, 10, size)


ENCODERS: dict[int, Callable[[list[int], int], bytes]] = {
    RAW: raw_encode,
    ORDERED: raw_encode,
    BITMAP: bitmap_encode,
    RICE: rice.encode,
    RLE: varint_codecs.rle_encode,
    HUFFMAN_BYTES: huffman.bytes_encode,
    HUFFMAN_GAPS: huffman.gaps_encode,
    DELTA: varint_codecs.delta_encode,
    MATRIX: lambda positions, numel: matrix.encode(positions, 1, numel),
    PCO: pco.encode,
    AUTO: lambda positions, numel: encode(AUTO, positions, 1, numel),
    BLOOM: bloom_encode,
}
DECODERS: dict[int, Callable[[bytes, int, int], list[int]]] = {
    RAW: raw_decode,
    ORDERED: ordered_decode,
    BITMAP: bitmap_decode,
    RICE: rice.decode,
    RLE: varint_codecs.rle_decode,
    HUFFMAN_BYTES: huffman.bytes_decode,
    HUFFMAN_GAPS: huffman.gaps_decode,
    DELTA: varint_codecs.delta_decode,
    MATRIX: lambda payload, kept, numel: matrix.decode(payload, kept, 1, numel),
    PCO: pco.decode,
    AUTO: lambda payload, kept, numel: decode(AUTO, payload, kept, 1, numel),
    BLOOM: bloom.decode,
    PYBLOOM: lambda payload, kept, numel: bloom.decode(payload, kept, numel, sliced=True),
}


def encode(wire_id: int, positions: list[int], rows: int, columns: int) -> bytes:
    if wire_id == AUTO:  # one encoder of many: always the same choice
        return bytes([DELTA]) + varint_codecs.delta_encode(positions, rows * columns) if positions else b""
    if wire_id == MATRIX:
        return matrix.encode(positions, rows, columns)
    return ENCODERS[wire_id](positions, rows * columns)


def decode(wire_id: int, payload: bytes, kept: int, rows: int, columns: int) -> list[int]:
    if wire_id == AUTO and kept > 0:
        if not payload:
            raise TruncatedError("auto: no bytes")
        if payload[0] not in CHOICE:
            raise CorruptError("auto: no id to choose from")
        return decode(payload[0], payload[1:], kept, rows, columns)
    if wire_id == AUTO:
        return raw_decode(payload, 0, rows * columns)
    if wire_id == MATRIX:
        return matrix.decode(payload, kept, rows, columns)
    return DECODERS[wire_id](payload, kept, rows * columns)


def _entropy(density: float) -> float:
    return -density * log2(density) - (1 - density) * log2(1 - density)


def _about(bits: float) -> tuple[float, float]:
    """Of a thousand random gaps or more."""
    return 0.98 * bits, 1.02 * bits


def _rle_bits(density: float) -> float:
    u = 1 - density
    return 8 * u * (2 + u**128 + u**16384 + density**128)


def _delta_bits(density: float) -> float:
    u = 1 - density
    return 8 * (1 + u**128 + u**16384)


def bits_per_kept(wire_id: int, settings: Mapping[str, Any]) -> Callable[[float, int], tuple[float, float]]:
    """The row of BITS_PER_KEPT, or for an id whose size follows from settings what they make of it."""
    if wire_id == BLOOM:
        bits = bloom.bits_per_kept(settings["fpr"])
        return lambda density, numel: (bits, bits + 8 * 14 / (density * numel))
    return BITS_PER_KEPT[wire_id]


# Bits per kept element on a random support of numel elements: (lower bound, upper bound).
BITS_PER_KEPT: dict[int, Callable[[float, int], tuple[float, float]]] = {
    RAW: lambda density, numel: (8.0 * position_size(numel),) * 2,
    ORDERED: lambda density, numel: (8.0 * position_size(numel),) * 2,
    BITMAP: lambda density, numel: (1 / density,) * 2,
    RICE: lambda density, numel: (0.0, 1.01 * _entropy(density) / density + 0.01),
    RLE: lambda density, numel: _about(_rle_bits(density)),
    HUFFMAN_BYTES: lambda density, numel: _about(huffman.bits_per_position(numel)),
    HUFFMAN_GAPS: lambda density, numel: (0.0, 1.01 * _entropy(density) / density + 200 / (density * numel)),
    DELTA: lambda density, numel: _about(_delta_bits(density)),
    AUTO: lambda density, numel: (0.0, 1.01 * _entropy(density) / density + 0.01 + 8 / (density * numel)),
    PCO: lambda density, numel: (0.0, 1.01 * _entropy(density) / density + 0.02 + 500 / (density * numel)),
    MATRIX: lambda density, numel: (0.0, 1.01 * _entropy(density) / density + 0.01 + 8 / (density * numel)),
}
