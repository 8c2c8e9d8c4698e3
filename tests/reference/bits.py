"""Bytes, varints and bit streams; FORMAT.md, 1."""


class CorruptError(Exception):
    """Bytes that no encoder makes."""


class TruncatedError(CorruptError):
    """Bytes that end too early."""


class ByteReader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    @property
    def left(self) -> int:
        return len(self.data) - self.place

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise TruncatedError(f"{count} bytes wanted at byte {self.place}, {self.left} left")
        self.place += count
        return self.data[self.place - count : self.place]

    def uint(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def varint(self) -> int:
        value = 0
        for index in range(9):
            byte = self.uint(1)
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if index > 0 and byte == 0:
                    raise CorruptError("varint: not in its shortest form")
                return value
        raise CorruptError("varint: longer than 9 bytes")

    def end(self) -> None:
        if self.left:
            raise CorruptError(f"{self.left} bytes left over")


def varint(value: int) -> bytes:
    groups = []
    while True:
        groups.append(value & 0x7F)
        value >>= 7
        if value == 0:
            break
    return bytes([group | 0x80 for group in groups[:-1]] + [groups[-1]])


class BitWriter:
    """A bit stream, kept as a list of its bits in order."""

    def __init__(self) -> None:
        self.bits: list[int] = []

    def field(self, value: int, count: int) -> None:
        self.bits.extend((value >> place) & 1 for place in range(count))

    def to_bytes(self) -> bytes:
        size = -(-len(self.bits) // 8)
        out = bytearray(size)
        for place, bit in enumerate(self.bits):
            out[place // 8] |= bit << (place % 8)
        return bytes(out)


class BitReader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def bit(self) -> int:
        if self.place >= 8 * len(self.data):
            raise TruncatedError("the bit stream ends early")
        bit = (self.data[self.place // 8] >> (self.place % 8)) & 1
        self.place += 1
        return bit

    def field(self, count: int) -> int:
        return sum(self.bit() << place for place in range(count))

    def end(self) -> None:
        if 8 * len(self.data) - self.place >= 8:
            raise CorruptError("bytes left over after the bit stream")
        while self.place < 8 * len(self.data):
            if self.bit():
                raise CorruptError("padding bits that are not zero")
