"""Buckets between quantiles; FORMAT.md, 5.13."""

import math

from reference import curves, huffman
from reference.bits import BitReader, BitWriter, ByteReader, CorruptError
from reference.floats import VALUE_TYPES


def weights_of(side: list[float], of: str) -> list[float]:
    largest = max(map(abs, side))
    if of == "values":
        return [1.0] * len(side)
    return [(value / largest) * (value / largest) if largest else 0.0 for value in side]


def total(numbers: list[float]) -> float:
    out = 0.0
    for number in numbers:
        out += number
    return out


def positive_share(sides: list[list[float]], quantiles: int, of: str) -> int:
    if not all(sides):
        return quantiles if sides[0] else 0
    sums = [total(weights_of(side, of)) for side in sides]
    if of == "squares":
        largest = [max(map(abs, side)) for side in sides]
        units = [one / max(largest) for one in largest]
        sums = [weight * (unit * unit) for weight, unit in zip(sums, units, strict=True)]
    return min(max(math.floor(quantiles * (sums[0] / (sums[0] + sums[1])) + 0.5), 1), quantiles - 1)


def buckets_of(side: list[float], quantiles: int, of: str) -> list[list[float]]:
    """Of falling values; equal ones stay together."""
    if not side:
        return []
    weights = weights_of(side, of)
    whole, before = total(weights), 0.0
    buckets: dict[int, list[float]] = {}
    number_of: dict[float, int] = {}
    for value, weight in zip(side, weights, strict=True):
        middle = (before + weight / 2) / whole if whole else 0.0
        number = number_of.setdefault(value, min(math.floor(quantiles * middle), quantiles - 1))
        buckets.setdefault(number, []).append(value)
        before += weight
    return list(buckets.values())


def mean(bucket: list[float]) -> float:
    total = 0.0
    for value in bucket:
        total += (value - bucket[0]) / len(bucket)
    return max(min(bucket[0] + total, bucket[0]), bucket[-1])


def encode(values: list[int], width: int, quantiles: int, of: str) -> bytes:
    kind = VALUE_TYPES[width]
    if not values:
        return b""
    if not all(map(kind.is_finite, values)):
        return b"\0" + kind.quiet_nan.to_bytes(width // 8, "little")
    numbers = [curves.number(value, width) + 0.0 for value in values]  # -0.0 + 0.0 is +0.0
    order = curves.falling(numbers)
    sides = [[numbers[i] for i in order if numbers[i] >= 0], [numbers[i] for i in order if numbers[i] < 0]]
    share = positive_share(sides, quantiles, of)
    buckets = buckets_of(sides[0], share, of) + buckets_of(sides[1], quantiles - share, of)
    out = bytes([len(buckets) - 1])
    out += b"".join(curves.pattern(mean(bucket), width).to_bytes(width // 8, "little") for bucket in buckets)
    if len(buckets) == 1:
        return out
    lengths = huffman.lengths_of({bucket: len(members) for bucket, members in enumerate(buckets)})
    words = huffman.words_of(lengths)
    number_of = {value: bucket for bucket, members in enumerate(buckets) for value in members}
    stream = BitWriter()
    for bucket in range(len(buckets)):
        stream.field(lengths[bucket], 4)
    for value in numbers:
        huffman.put_word(stream, words[number_of[value]])
    return out + stream.to_bytes()


def decode(payload: bytes, kept: int, width: int) -> list[int]:
    kind = VALUE_TYPES[width]
    reader = ByteReader(payload)
    if kept == 0:
        reader.end()
        return []
    count = reader.uint(1) + 1
    means = [reader.uint(width // 8) for _ in range(count)]
    means = [kind.quiet_nan if kind.is_nan(mean) else mean for mean in means]
    if count == 1:
        reader.end()
        return means * kept
    if count > kept:
        raise CorruptError("sketch: more buckets than values")
    stream = BitReader(reader.take(reader.left))
    lengths = {bucket: stream.field(4) for bucket in range(count)}
    used = [length for length in lengths.values() if length]
    if sum(2 ** (huffman.LONGEST - length) for length in used) != 2**huffman.LONGEST and used != [1]:
        raise CorruptError("sketch: lengths of no code")
    symbols = {word: bucket for bucket, word in huffman.words_of(lengths).items()}
    values = [means[huffman.take_symbol(stream, symbols)] for _ in range(kept)]
    stream.end()
    return values
