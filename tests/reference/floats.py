"""IEEE 754 formats and bfloat16 as bit patterns, converted by exact rational arithmetic; FORMAT.md, 1."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    exponent_bits: int
    fraction_bits: int

    @property
    def width(self) -> int:
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def bias(self) -> int:
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def infinity(self) -> int:
        return (2**self.exponent_bits - 1) << self.fraction_bits

    @property
    def largest(self) -> int:
        return self.infinity - 1

    @property
    def quiet_nan(self) -> int:
        return self.infinity | (1 << (self.fraction_bits - 1))

    def sign(self, pattern: int) -> int:
        return pattern >> (self.width - 1)

    def magnitude(self, pattern: int) -> int:
        return pattern & ((1 << (self.width - 1)) - 1)

    def negative(self, sign: int) -> int:
        return sign << (self.width - 1)

    def is_nan(self, pattern: int) -> bool:
        return self.magnitude(pattern) > self.infinity

    def is_infinite(self, pattern: int) -> bool:
        return self.magnitude(pattern) == self.infinity

    def is_finite(self, pattern: int) -> bool:
        return self.magnitude(pattern) < self.infinity

    def value(self, pattern: int) -> Fraction:
        """Of a finite pattern; the sign of zero is lost."""
        magnitude = self.magnitude(pattern)
        exponent, fraction = magnitude >> self.fraction_bits, magnitude & ((1 << self.fraction_bits) - 1)
        if exponent:
            fraction |= 1 << self.fraction_bits
        else:
            exponent = 1
        result = fraction * Fraction(2) ** (exponent - self.bias - self.fraction_bits)
        return -result if self.sign(pattern) else result

    def rounded(self, value: Fraction) -> int:
        """The magnitude pattern nearest to a value not below zero, ties to even; infinity when beyond the largest."""
        if value == 0:
            return 0
        exponent = value.numerator.bit_length() - value.denominator.bit_length()
        if value < Fraction(2) ** exponent:
            exponent -= 1
        exponent = max(exponent, 1 - self.bias)
        units = round(value / Fraction(2) ** (exponent - self.fraction_bits))  # Fraction rounds ties to even
        # A carry out of the fraction moves the exponent up by one all by itself.
        pattern = ((exponent + self.bias - 1) << self.fraction_bits) + units
        return min(pattern, self.infinity)

    def convert(self, pattern: int, source: "Format", *, saturate: bool = False) -> int:
        """`pattern` of `source` in this format; NaN becomes the quiet NaN, `saturate` keeps what is finite finite."""
        sign = self.negative(source.sign(pattern))
        if source.is_nan(pattern):
            return sign | self.quiet_nan
        if source.is_infinite(pattern):
            return sign | self.infinity
        magnitude = self.rounded(abs(source.value(pattern)))
        return sign | (min(magnitude, self.largest) if saturate else magnitude)


BINARY16 = Format(5, 10)
BFLOAT16 = Format(8, 7)
BINARY32 = Format(8, 23)
BINARY64 = Format(11, 52)

VALUE_TYPES = {32: BINARY32, 64: BINARY64}
