"""The range coder of FORMAT.md, 5.10, on unbounded integers."""

from reference.bits import CorruptError, TruncatedError


class BitModel:
    def __init__(self) -> None:
        self.zero = 32768

    def saw(self, bit: int) -> None:
        self.zero += -(self.zero >> 5) if bit else (65536 - self.zero) >> 5
        self.zero = min(max(self.zero, 256), 65280)


class RangeEncoder:
    """All of `low` is kept as one integer, of 4 + `shifted` bytes, so that carries look after themselves."""

    def __init__(self) -> None:
        self.low = 0
        self.size = 2**32 - 1
        self.shifted = 0

    def put(self, start: int, size: int, bits: int) -> None:
        part = self.size >> bits
        self._narrow(part * start, part * size)

    def put_bits(self, value: int, count: int) -> None:
        while count:
            field = min(count, 12)
            self.put(value % 2**field, 1, field)
            value >>= field
            count -= field

    def put_bit(self, model: BitModel, bit: int) -> None:
        zero = (self.size >> 16) * model.zero
        self._narrow(zero if bit else 0, self.size - zero if bit else zero)
        model.saw(bit)

    def _narrow(self, start: int, size: int) -> None:
        self.low, self.size = self.low + start, size
        while self.size < 2**24:
            self.low <<= 8
            self.size <<= 8
            self.shifted += 1

    def to_bytes(self) -> bytes:
        return self.low.to_bytes(4 + self.shifted, "big")


class RangeDecoder:
    """`code` is what the bytes read so far say, less the encoder's `low`."""

    def __init__(self, data: bytes) -> None:
        if len(data) < 4:
            raise TruncatedError("range coder: too short")
        self.data = data
        self.place = 4
        self.code = int.from_bytes(data[:4], "big")
        self.size = 2**32 - 1

    def peek(self, bits: int) -> int:
        place = self.code // (self.size >> bits)
        if place >= 2**bits:
            raise CorruptError("range coder: beyond its range")
        return place

    def take(self, start: int, size: int, bits: int) -> None:
        part = self.size >> bits
        self._narrow(part * start, part * size)

    def take_bits(self, count: int) -> int:
        value = place = 0
        while place < count:
            bits = min(count - place, 12)
            field = self.peek(bits)
            self.take(field, 1, bits)
            value |= field << place
            place += bits
        return value

    def take_bit(self, model: BitModel) -> int:
        zero = (self.size >> 16) * model.zero
        bit = int(self.code >= zero)
        self._narrow(zero if bit else 0, self.size - zero if bit else zero)
        model.saw(bit)
        return bit

    def _narrow(self, start: int, size: int) -> None:
        self.code, self.size = self.code - start, size
        while self.size < 2**24:
            if self.place == len(self.data):
                raise TruncatedError("range coder: ends early")
            self.code = 256 * self.code + self.data[self.place]
            self.size <<= 8
            self.place += 1

    def end(self) -> None:
        if self.place < len(self.data):
            raise CorruptError("range coder: bytes left over")
        if self.code:
            raise CorruptError("range coder: not at the lower end of its range")
