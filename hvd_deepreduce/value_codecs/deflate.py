"""The bytes of values in a zlib stream; FORMAT.md, 5.5."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hvd_deepreduce.checks import require_flag, require_integer
from hvd_deepreduce.contracts import ValueCodec
from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError, TruncatedPayloadError
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import Support, Values

_MOST_OF_A_BYTE = 1032
"""No byte of a DEFLATE stream stands for more: a match of 258 bytes takes two bits at least."""
_STORED = 0xFFFF
"""Bytes of a stored block at most (RFC 1951, 3.2.4)."""


@dataclass(frozen=True)
class Deflate(ValueCodec):
    """Every bit pattern kept, in about 23.5 bits of 32 when `shuffle` brings equal bytes of all values together.

    `level` 0 takes Huffman codes alone; 1 to 9 also search for repetitions, as zlib's levels do, and take four times as
    long and more. Values hardly repeat, so that gains next to nothing.
    """

    level: int = 0
    shuffle: bool = True

    name: ClassVar[str] = "deflate"
    wire_id: ClassVar[int] = 5
    exact: ClassVar[bool] = True
    portable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_integer("deflate", "level", self.level, minimum=0, maximum=9)
        require_flag("deflate", "shuffle", self.shuffle)

    def encode(self, values: Values, support: Support, draw: Draw) -> bytes:
        if values.ndim != 1 or values.dtype not in (np.float32, np.float64):
            raise InvalidSettingError(
                f"deflate: {values.ndim} dimensions of {values.dtype}; one of float32 or float64 is needed"
            )
        little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        data = _shuffled(little) if self.shuffle else little.tobytes()
        strategy = zlib.Z_DEFAULT_STRATEGY if self.level else zlib.Z_HUFFMAN_ONLY
        stream = zlib.compressobj(self.level or 1, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, strategy)
        payload = stream.compress(data) + stream.flush()
        # What a library makes of data that it can't compress is its own affair; the bound is ours.
        return payload if len(payload) <= _stored_size(len(data)) else _stored(data)

    def decode(self, payload: bytes, support: Support, dtype: np.dtype[np.floating[Any]], draw: Draw) -> Values:
        data = _inflate(payload, support.kept * dtype.itemsize)
        little = dtype.newbyteorder("<")
        values = _unshuffled(data, little) if self.shuffle else np.frombuffer(data, little)
        return values.astype(dtype)

    def max_encoded_size(self, kept: int, itemsize: int) -> int:
        return _stored_size(kept * itemsize)

    def error_bound(self, values: Values) -> Values:
        return np.zeros_like(values)


def _shuffled(values: Values) -> bytes:
    """The first bytes of all values, then the second ones, and so on; plane by plane, as transposing is slower."""
    rows = values.view(np.uint8).reshape(len(values), values.itemsize)
    planes = np.empty((values.itemsize, len(values)), np.uint8)
    for plane in range(values.itemsize):
        planes[plane] = rows[:, plane]
    return planes.tobytes()


def _unshuffled(data: bytes, dtype: np.dtype[np.floating[Any]]) -> Values:
    planes = np.frombuffer(data, np.uint8).reshape(dtype.itemsize, -1)
    values = np.empty(planes.shape[1], dtype)
    rows = values.view(np.uint8).reshape(len(values), dtype.itemsize)
    for plane in range(dtype.itemsize):
        rows[:, plane] = planes[plane]
    return values


def _stored_size(size: int) -> int:
    return 6 + 5 * max(1, -(-size // _STORED)) + size


def _stored(data: bytes) -> bytes:
    """The zlib stream of stored blocks."""
    parts = [b"\x78\x01"]
    for start in range(0, max(len(data), 1), _STORED):
        block = data[start : start + _STORED]
        last = start + _STORED >= len(data)
        parts += [bytes([last]), len(block).to_bytes(2, "little"), (len(block) ^ 0xFFFF).to_bytes(2, "little"), block]
    return b"".join([*parts, zlib.adler32(data).to_bytes(4, "big")])


def _inflate(payload: bytes, expected: int) -> bytes:
    """Exactly so many bytes, and never memory for more than one above."""
    if expected > _MOST_OF_A_BYTE * len(payload):
        raise TruncatedPayloadError(f"deflate: payload of {len(payload)} bytes; {expected} are never in so few")
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(payload, expected + 1)
    except zlib.error as error:
        raise CorruptPayloadError(f"deflate: {error}") from error
    if len(data) > expected:
        raise CorruptPayloadError(f"deflate: more than the {expected} bytes of the values are in the stream")
    if not stream.eof:
        raise TruncatedPayloadError(f"deflate: payload of {len(payload)} bytes; the stream goes on")
    if len(data) < expected:
        raise CorruptPayloadError(f"deflate: {len(data)} bytes in the stream; the values have {expected}")
    if stream.unused_data:
        raise CorruptPayloadError(f"deflate: {len(stream.unused_data)} bytes are left over after the stream")
    return data
