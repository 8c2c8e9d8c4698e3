"""What `fit_poly` and `fit_dexp` share: signs apart, curves, a permutation; FORMAT.md, 5.11."""

import math
import struct
from collections.abc import Callable

from reference.bits import BitReader, BitWriter, ByteReader, CorruptError, varint
from reference.floats import VALUE_TYPES

# What writes a curve: (heights, lowest height) -> bytes. What reads one: (reader, count, lowest height) -> heights.
Writer = Callable[[list[float], float], bytes]
Reader = Callable[[ByteReader, int, float], list[float]]

CODES = {32: "<f", 64: "<d"}


def number(pattern: int, width: int) -> float:
    return struct.unpack(CODES[width], pattern.to_bytes(width // 8, "little"))[0]


def pattern(value: float, width: int) -> int:
    """Rounded; what is too large for a binary32 is infinite."""
    try:
        return int.from_bytes(struct.pack(CODES[width], value), "little")
    except OverflowError:
        return VALUE_TYPES[width].infinity


def single(value: float) -> float:
    return number(pattern(value, 32), 32)


def coefficient(reader: ByteReader) -> float:
    value = number(reader.uint(4), 32)
    if not math.isfinite(value):
        raise CorruptError("fit: a coefficient that is not finite")
    return value


def falling(numbers: list[float]) -> list[int]:
    """The places of values by their size; equal ones stay in order, and zeros of both signs are equal."""
    return sorted(range(len(numbers)), key=lambda place: -numbers[place])


def place_bits(kept: int) -> int:
    return max(0, kept - 1).bit_length()


def encode(values: list[int], width: int, write: Writer, *, permuted: bool = True) -> bytes:
    if not all(map(VALUE_TYPES[width].is_finite, values)):
        return b"\1"
    numbers = [number(value, width) for value in values]
    order = falling(numbers)
    sides = [[numbers[i] for i in order if numbers[i] >= 0], [-numbers[i] for i in reversed(order) if numbers[i] < 0]]
    out = b"\0" + varint(len(sides[0]))
    for side in filter(None, sides):
        highest, lowest = abs(side[0]), abs(side[-1])
        out += struct.pack(CODES[width], highest) + struct.pack(CODES[width], lowest)
        if highest > lowest:
            out += write([size / highest for size in side], lowest / highest)
    if permuted:
        stream = BitWriter()
        for place in order:
            stream.field(place, place_bits(len(order)))
        out += stream.to_bytes()
    return out


def _side(reader: ByteReader, count: int, width: int, read: Reader) -> list[int]:
    """Magnitudes from the highest down."""
    kind = VALUE_TYPES[width]
    ends = [reader.uint(width // 8) for _ in range(2)]
    if ends[1] > ends[0] or ends[0] >= kind.infinity:  # a sign bit makes a pattern larger than any infinity
        raise CorruptError("fit: magnitudes from a lowest to a highest")
    if count == 1 and ends[0] != ends[1]:
        raise CorruptError("fit: two magnitudes of one value")
    if ends[0] == ends[1]:
        return [ends[0]] * count
    highest, lowest = (number(end, width) for end in ends)
    heights = read(reader, count, lowest / highest)
    return [pattern(max(lowest, min(height * highest, highest)), width) for height in heights]


def decode(payload: bytes, kept: int, width: int, read: Reader, *, permuted: bool = True) -> list[int]:
    kind = VALUE_TYPES[width]
    reader = ByteReader(payload)
    form = reader.uint(1)
    if form == 1:
        reader.end()
        return [kind.quiet_nan] * kept
    if form != 0:
        raise CorruptError("fit: form")
    count = reader.varint()
    if count > kept:
        raise CorruptError("fit: more positive values than there are")
    falling_values = _side(reader, count, width, read) if count else []
    if count < kept:
        falling_values += [kind.negative(1) | size for size in reversed(_side(reader, kept - count, width, read))]
    if not permuted:
        reader.end()
        return falling_values
    stream = BitReader(reader.take(-(-kept * place_bits(kept) // 8)))
    reader.end()
    values: list[int | None] = [None] * kept
    for value in falling_values:
        place = stream.field(place_bits(kept))
        if place >= kept or values[place] is not None:
            raise CorruptError("fit: a place that is none, or another's")
        values[place] = value
    stream.end()
    return values
