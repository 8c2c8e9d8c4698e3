"""A sign and a power of two; FORMAT.md, 5.9."""

from fractions import Fraction

from reference.bits import BitReader, BitWriter, CorruptError, TruncatedError
from reference.floats import VALUE_TYPES
from reference.randomness import uniform

NOT_FINITE = 0xFFFF
MOST_BITS = {32: 8, 64: 11}


def _exponent(pattern: int, width: int, u: Fraction) -> int:
    kind = VALUE_TYPES[width]
    exponent, fraction = divmod(kind.magnitude(pattern), 2**kind.fraction_bits)
    return exponent + (u < Fraction(fraction, 2**kind.fraction_bits))


def encode(values: list[int], width: int, key: int) -> bytes:
    kind = VALUE_TYPES[width]
    exponents = [_exponent(pattern, width, uniform(key, i)) for i, pattern in enumerate(values)]
    nonzero = [exponent for exponent in exponents if exponent]
    bits = lowest = 0
    signs = [kind.sign(pattern) for pattern in values]
    if not all(map(kind.is_finite, values)):
        exponents = signs = [0] * len(values)
        lowest = NOT_FINITE
    elif nonzero:
        lowest = min(nonzero)
        bits = (max(nonzero) - lowest + 1).bit_length()
    out = BitWriter()
    for exponent, sign in zip(exponents, signs, strict=True):
        out.field(exponent - lowest + 1 if exponent else 0, bits)
        out.field(sign, 1)
    return bytes([bits]) + lowest.to_bytes(2, "little") + out.to_bytes()


def decode(payload: bytes, kept: int, width: int) -> list[int]:
    kind = VALUE_TYPES[width]
    if len(payload) < 3:
        raise TruncatedError("natural: no head")
    bits, lowest = payload[0], int.from_bytes(payload[1:3], "little")
    top = 2**kind.exponent_bits - 1
    if bits > MOST_BITS[width]:
        raise CorruptError("natural: too many bits")
    if not (1 <= lowest <= top if bits else lowest in (0, NOT_FINITE)):
        raise CorruptError("natural: lowest exponent")
    needed = 3 + -(-kept * (bits + 1) // 8)
    if len(payload) < needed:
        raise TruncatedError("natural: too short")
    if len(payload) > needed:
        raise CorruptError("natural: too long")
    stream = BitReader(payload[3:])
    values = []
    for _ in range(kept):
        field, sign = stream.field(bits), stream.field(1)
        exponent = lowest + field - 1 if field else 0
        if exponent > top:
            raise CorruptError("natural: exponent")
        magnitude = kind.largest if exponent == top else exponent << kind.fraction_bits
        values.append(kind.negative(sign) | magnitude)
    stream.end()
    return [kind.quiet_nan] * kept if lowest == NOT_FINITE else values
