"""Buckets between quantiles; FORMAT.md, 5.13."""

from reference import curves, huffman
from reference.bits import BitReader, BitWriter, ByteReader, CorruptError
from reference.floats import VALUE_TYPES


def buckets_of(side: list[float], quantiles: int) -> list[list[float]]:
    """Of falling values; equal ones stay together."""
    buckets = []
    start = 0
    for quantile in range(1, quantiles + 1):
        end = len(side) * quantile // quantiles
        while 0 < end < len(side) and side[end] == side[end - 1]:
            end += 1
        if end > start:
            buckets.append(side[start:end])
            start = end
    return buckets


def mean(bucket: list[float]) -> float:
    total = 0.0
    for value in bucket:
        total += (value - bucket[0]) / len(bucket)
    return max(min(bucket[0] + total, bucket[0]), bucket[-1])


def encode(values: list[int], width: int, quantiles: int) -> bytes:
    kind = VALUE_TYPES[width]
    if not values:
        return b""
    if not all(map(kind.is_finite, values)):
        return b"\0" + kind.quiet_nan.to_bytes(width // 8, "little")
    numbers = [curves.number(value, width) + 0.0 for value in values]  # -0.0 + 0.0 is +0.0
    order = curves.falling(numbers)
    sides = [[numbers[i] for i in order if numbers[i] >= 0], [numbers[i] for i in order if numbers[i] < 0]]
    share, kept = len(sides[0]), len(values)
    if 0 < share < kept:
        share = min(max((2 * quantiles * share + kept) // (2 * kept), 1), quantiles - 1)
    else:
        share = quantiles if share else 0
    buckets = buckets_of(sides[0], share) + buckets_of(sides[1], quantiles - share)
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
