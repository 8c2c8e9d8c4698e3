"""Varints, and a reader that never looks beyond its bytes; FORMAT.md, 1."""

from __future__ import annotations

from hvd_deepreduce.errors import CorruptPayloadError, TruncatedPayloadError

_LONGEST_VARINT = 9


def varint(value: int) -> bytes:
    """Unsigned LEB128 of 0 <= value < 2**63.

    >>> varint(300).hex()
    'ac02'
    """
    if not 0 <= value < 2**63:
        raise ValueError(f"varint: {value} is outside 0 ... 2**63-1")
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


class ByteReader:
    """Takes fields one after the other from bytes; `what` names them in errors."""

    def __init__(self, data: bytes, what: str, offset: int = 0):
        self.data = data
        self.what = what
        self.offset = offset

    def varint(self, field: str) -> int:
        data, start = self.data, self.offset
        value = shift = 0
        for offset in range(start, min(start + _LONGEST_VARINT, len(data))):
            byte = data[offset]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if byte == 0 and offset > start:
                    raise CorruptPayloadError(f"{self.what}: {field} at byte {start} is not in its shortest form")
                self.offset = offset + 1
                return value
            shift += 7
        if len(data) - start < _LONGEST_VARINT:
            raise TruncatedPayloadError(f"{self.what}: {field} at byte {start} runs past the end at byte {len(data)}")
        raise CorruptPayloadError(f"{self.what}: {field} at byte {start} is longer than {_LONGEST_VARINT} bytes")

    def take(self, count: int, field: str) -> bytes:
        start = self.offset
        if count > len(self.data) - start:
            raise TruncatedPayloadError(
                f"{self.what}: {field} of {count} bytes at byte {start} runs past the end at byte {len(self.data)}"
            )
        self.offset = start + count
        return self.data[start : self.offset]

    def rest(self) -> bytes:
        return self.data[self.offset :]
