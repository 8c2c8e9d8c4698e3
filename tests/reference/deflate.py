"""Bytes of values in a zlib stream; FORMAT.md, 5.5. The stream itself is RFC 1950's, read by the standard library."""

import zlib

from reference.bits import CorruptError, TruncatedError


def limit(size: int) -> int:
    """A zlib stream of stored blocks."""
    return 6 + 5 * max(1, -(-size // 65535)) + size


def encode(values: list[int], width: int, shuffle: bool) -> bytes:
    """One encoder of many: stored blocks alone."""
    rows = [pattern.to_bytes(width // 8, "little") for pattern in values]
    data = b"".join(bytes(row[plane] for row in rows) for plane in range(width // 8)) if shuffle else b"".join(rows)
    stream = zlib.compressobj(0)
    return stream.compress(data) + stream.flush()


def decode(payload: bytes, kept: int, width: int, shuffle: bool) -> list[int]:
    size = width // 8
    if kept * size > 1032 * len(payload):
        raise TruncatedError("deflate: too short")
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(payload)
    except zlib.error as error:
        raise CorruptError("deflate: no zlib stream") from error
    if len(data) > kept * size:
        raise CorruptError("deflate: too many bytes")
    if not stream.eof:
        raise TruncatedError("deflate: the stream goes on")
    if len(data) < kept * size or stream.unused_data:
        raise CorruptError("deflate: too few bytes, or more behind the stream")
    rows = [data[i::kept] if shuffle else data[size * i : size * (i + 1)] for i in range(kept)]
    return [int.from_bytes(row, "little") for row in rows]
