"""Survival, range code and classes of the index codec `matrix`; FORMAT.md, 4.10."""

from collections.abc import Callable, Iterator
from math import log2

from reference.bits import CorruptError

TOTAL = 2**32
OCTAVE = 2**36
REACH, STEEPEST = 4 * OCTAVE, 6 * OCTAVE
HIGHEST_CLASS = 50
FALLS = [TOTAL - round(2 ** (32 - i / 2048)) for i in range(2049)]
LOGARITHMS = [0] + [round(2**16 * log2(i)) for i in range(1, 513)]


def survival(hazard: int) -> int:
    octaves, fraction = divmod(hazard >> 16, 2**20)
    entry, rest = divmod(fraction, 512)
    return (TOTAL - FALLS[entry] - ((FALLS[entry + 1] - FALLS[entry]) * rest >> 9)) >> octaves


def scale_of(code: int) -> int:
    return (2048 + code % 2048) << (5 + code // 2048)


class RangeWriter:
    """The code as one long number, so that carries take care of themselves."""

    def __init__(self) -> None:
        self.low, self.bits, self.range = 0, 64, 2**64 - 1

    def put(self, before: int, share: int) -> None:
        part = self.range // TOTAL
        self.low += part * before
        self.range = part * share
        while self.range < 2**48:
            self.low <<= 16
            self.range <<= 16
            self.bits += 16

    def to_bytes(self) -> bytes:
        for cut in (56, 48):
            rounded = -(-self.low >> cut) << cut
            if rounded < self.low + self.range:
                break
        return rounded.to_bytes(self.bits // 8, "big")[: (self.bits - cut) // 8]


class RangeReader:
    def __init__(self, code: bytes) -> None:
        self.code, self.read = code, 0
        self.offset, self.range = 0, 2**64 - 1
        for _ in range(8):
            self._byte()

    def _byte(self) -> None:
        self.offset = self.offset << 8 | (self.code[self.read] if self.read < len(self.code) else 0)
        self.read += 1

    def value(self) -> int:
        return self.offset // (self.range // TOTAL)

    def take(self, before: int, share: int) -> None:
        part = self.range // TOTAL
        self.offset -= part * before
        self.range = part * share
        while self.range < 2**48:
            self._byte()
            self._byte()
            self.range <<= 16
        if self.read > len(self.code) + 7:
            raise CorruptError("matrix: the code ends early")


class ClassModel:
    def __init__(self, context: bool) -> None:
        self.context, self.before = context, 0
        self.seen: dict[tuple[int, int], list[int]] = {}

    def walk(self, bit: Callable[[list[int]], int]) -> int:
        line_class = 0
        while line_class < HIGHEST_CLASS:
            model = (min(self.before, 7) if self.context else 0, min(line_class, 15))
            seen = self.seen.setdefault(model, [0, 0])
            found = bit(seen)
            seen[found] += 1
            if sum(seen) == 255:
                seen[:] = [seen[0] // 2, seen[1] // 2]
            if not found:
                break
            line_class += 1
        self.before = line_class
        return line_class


def share_of_one(seen: list[int]) -> int:
    return (2 * seen[1] + 1) * TOTAL // (2 * (sum(seen) + 1))


def put_classes(coder: RangeWriter, classes: list[int], context: bool) -> None:
    model = ClassModel(context)
    for line_class in classes:
        bits = iter([1] * line_class + [0])

        def put(seen: list[int], bits: Iterator[int] = bits) -> int:
            bit, share = next(bits), share_of_one(seen)
            coder.put(*((0, share) if bit else (share, TOTAL - share)))
            return bit

        model.walk(put)


def take_classes(coder: RangeReader, count: int, context: bool) -> list[int]:
    def take(seen: list[int]) -> int:
        share = share_of_one(seen)
        bit = int(coder.value() < share)
        coder.take(*((0, share) if bit else (share, TOTAL - share)))
        return bit

    model = ClassModel(context)
    return [model.walk(take) for _ in range(count)]
