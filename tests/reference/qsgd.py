"""Stochastic levels of a bucket's norm; FORMAT.md, 5.4."""

from fractions import Fraction
from math import floor, inf, sqrt

from reference.bits import BitReader, BitWriter, CorruptError, TruncatedError
from reference.floats import BINARY32, BINARY64, VALUE_TYPES
from reference.randomness import uniform


def _double(value: Fraction) -> float:
    """A value that binary64 holds exactly."""
    result = float(value)
    assert Fraction(result) == value
    return result


def _norm(bucket: list[int], width: int) -> int:
    """Pattern of the stored norm."""
    kind = VALUE_TYPES[width]
    if not all(kind.is_finite(pattern) for pattern in bucket):
        return BINARY32.quiet_nan
    total = 0.0
    for pattern in bucket:
        value = _double(kind.value(pattern))
        total += value * value
    if total == inf:
        return BINARY32.largest
    return min(BINARY32.rounded(Fraction(sqrt(total))), BINARY32.largest)


def _field(pattern: int, width: int, norm: int, bits: int, u: Fraction) -> int:
    if norm == 0 or BINARY32.is_nan(norm):
        return 0
    kind = VALUE_TYPES[width]
    levels = 2 ** (bits - 1) - 1
    x = _double(abs(kind.value(pattern))) * (levels / _double(BINARY32.value(norm)))
    x = min(x, float(levels))
    level = floor(x) + (1 if u < Fraction(x) - floor(x) else 0)
    return level | (kind.sign(pattern) << (bits - 1))


def encode(values: list[int], width: int, bits: int, bucket: int, key: int) -> bytes:
    norms = []
    out = BitWriter()
    for start in range(0, len(values), bucket):
        members = values[start : start + bucket]
        norm = _norm(members, width)
        norms.append(norm.to_bytes(4, "little"))
        for index, pattern in enumerate(members, start):
            out.field(_field(pattern, width, norm, bits, uniform(key, index)), bits)
    return b"".join(norms) + out.to_bytes()


def decode(payload: bytes, kept: int, width: int, bits: int, bucket: int) -> list[int]:
    buckets = -(-kept // bucket)
    size = 4 * buckets + -(-kept * bits // 8)
    if len(payload) < size:
        raise TruncatedError("qsgd: too short")
    if len(payload) > size:
        raise CorruptError("qsgd: too long")
    levels = 2 ** (bits - 1) - 1
    stream = BitReader(payload[4 * buckets :])
    values = []
    for index in range(kept):
        start = 4 * (index // bucket)
        norm = int.from_bytes(payload[start : start + 4], "little")
        field = stream.field(bits)
        level, negative = field & levels, field >> (bits - 1)
        values.append(_decoded(norm, level, negative, levels, width))
    stream.end()
    return values


def _decoded(norm: int, level: int, negative: int, levels: int, width: int) -> int:
    kind = VALUE_TYPES[width]
    if BINARY32.is_nan(norm) or (BINARY32.is_infinite(norm) and level == 0):
        return kind.quiet_nan
    sign = kind.negative(negative ^ BINARY32.sign(norm))
    if BINARY32.is_infinite(norm):
        return sign | kind.infinity
    magnitude = _double(abs(BINARY32.value(norm))) * level / levels  # two roundings to binary64, one to the value type
    return sign | kind.convert(BINARY64.rounded(Fraction(magnitude)), BINARY64)
