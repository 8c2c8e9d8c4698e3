"""Levels for a given error, coded by size and place; FORMAT.md, 5.10. Values are bit patterns of `width` 32 or 64."""

import struct
from dataclasses import dataclass, field
from math import frexp, inf, sqrt

from reference.bits import CorruptError, TruncatedError
from reference.floats import VALUE_TYPES
from reference.randomness import uniform
from reference.range_coder import BitModel, RangeDecoder, RangeEncoder

NOT_FINITE, ZERO, PLAIN, BY_PLACE = 1, 2, 3, 4
BASES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 28, 36, 52)
EXTRA_BITS = (0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4)
FIRST_COUNTS = (8, 6, 5, 4, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1)
LIMITS = (32, 64, 112, 176, 272, 400, 560)


def _pattern(value: float, width: int) -> int:
    code = "<f" if width == 32 else "<d"
    return int.from_bytes(struct.pack(code, value), "little")


def _number(pattern: int, width: int) -> float:
    return struct.unpack("<f" if width == 32 else "<d", pattern.to_bytes(width // 8, "little"))[0]


def _largest(width: int) -> float:
    return _number(VALUE_TYPES[width].largest, width)


def _to_type(value: float, width: int) -> float:
    return _number(_pattern(min(value, _largest(width)), width), width)


@dataclass
class Place:
    """Position and matrix of values; signs go by it where there is one."""

    positions: list[int]
    columns: int


@dataclass
class Tokens:
    count: int
    counts: list[int] = field(init=False)
    sizes: list[int] = field(init=False)
    seen: int = 0
    due: int = 8

    def __post_init__(self) -> None:
        self.counts = list(FIRST_COUNTS[: self.count])
        self._rebuild()

    def _rebuild(self) -> None:
        total = sum(self.counts)
        self.sizes = [1 + count * (4096 - self.count) // total for count in self.counts]
        self.sizes[0] += 4096 - sum(self.sizes)

    def start(self, token: int) -> int:
        return sum(self.sizes[:token])

    def at(self, place: int) -> int:
        return next(token for token in range(self.count) if place < self.start(token + 1))

    def saw(self, token: int) -> None:
        self.counts[token] += 1
        self.seen += 1
        if self.seen == self.due:
            self.seen, self.due = 0, min(2 * self.due, 256)
            if sum(self.counts) > 8192:
                self.counts = [(count + 1) // 2 for count in self.counts]
            self._rebuild()


class Levels:
    def __init__(self, tokens: int, shift: int, kept: int) -> None:
        self.tokens, self.shift, self.several = tokens, shift, kept >= 2048
        self.models = [Tokens(tokens) for _ in range(8)]
        self.history = 0

    def model(self) -> Tokens:
        return self.models[sum(limit <= self.history for limit in LIMITS) if self.several else 0]

    def saw(self, token: int) -> None:
        self.model().saw(token)
        self.history += 4 * token - self.history // 16

    def put(self, out: RangeEncoder, level: int, sign: int, signs: int) -> None:
        """`signs` is 1 where the sign goes below the bits of the level, else 0."""
        if self.tokens == 1:
            out.put_bits(sign, signs)
            return
        shifted = level >> self.shift
        token = max(token for token in range(16) if BASES[token] <= shifted)
        model = self.model()
        out.put(model.start(token), model.sizes[token], 12)
        self.saw(token)
        base = BASES[token]
        if token == 15:
            extra = (shifted - 51).bit_length() - 1
            out.put_bits(extra, 5)
            base += 2**extra - 1
        else:
            extra = EXTRA_BITS[token]
        rest = level - (base << self.shift)
        out.put_bits(rest << signs | sign, extra + self.shift + signs)

    def take(self, stream: RangeDecoder, signs: int) -> tuple[int, int]:
        if self.tokens == 1:
            return 0, stream.take_bits(signs)
        model = self.model()
        token = model.at(stream.peek(12))
        stream.take(model.start(token), model.sizes[token], 12)
        self.saw(token)
        base = BASES[token]
        if token == 15:
            extra = stream.take_bits(5)
            base += 2**extra - 1
        else:
            extra = EXTRA_BITS[token]
        bits = stream.take_bits(extra + self.shift + signs)
        return (base << self.shift) + (bits >> signs), bits % 2**signs


class Signs:
    """By row and column; +1 and -1."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.models = [BitModel() for _ in range(80)]
        self.row = 0
        self.by_row = self.majority = 0
        self.by_column = [0] * place.columns

    def _prepare(self, index: int) -> tuple[int, BitModel]:
        row, self.column = divmod(self.place.positions[index], self.place.columns)
        if row != self.row:
            self.row, self.by_row, self.majority = row, 0, 0
        column = self.by_column[self.column]
        expected = (-1 if self.by_row < 0 else 1) * (-1 if column < 0 else 1)
        agreement = min(max(self.majority * expected, -2), 2) + 2
        return expected, self.models[(min(abs(self.by_row), 3) * 4 + min(abs(column), 3)) * 5 + agreement]

    def _saw(self, sign: int) -> None:
        column = self.by_column[self.column]
        by_row = self.by_row
        self.by_row = min(max(by_row + (-sign if column < 0 else sign), -15), 15)
        self.by_column[self.column] = min(max(column + (-sign if by_row < 0 else sign), -15), 15)
        self.majority = min(max(self.majority + sign, -15), 15)

    def put(self, out: RangeEncoder, index: int, sign: int) -> None:
        expected, model = self._prepare(index)
        out.put_bit(model, int(sign != expected))
        self._saw(sign)

    def take(self, stream: RangeDecoder, index: int) -> int:
        expected, model = self._prepare(index)
        sign = -expected if stream.take_bit(model) else expected
        self._saw(sign)
        return sign


@dataclass
class Quantiser:
    lowest: float
    step: float
    offset: int
    unit: float

    def place(self, value: float) -> float:
        scale = 1 / (self.step * self.unit) if self.step else 0.0
        return (abs(value) - self.lowest) * self.unit * scale


def _search(values: list[float], width: int, error: float, unbiased: bool) -> Quantiser:
    magnitudes = [abs(value) for value in values]
    lowest, largest, kept = min(magnitudes), max(magnitudes), len(values)
    unit = 1.0
    if width == 64:
        unit = 2.0 ** -min(max(frexp(largest)[1] - 1, -1000), 1000)
    if lowest == largest:
        return Quantiser(lowest, 0.0, 0, unit)
    squares = 0.0
    for value in values:
        squares += (value * unit) * (value * unit)
    target = error * sqrt(squares)
    even = target * sqrt(12 / kept)
    widest = (largest - lowest) * 1.0009765625
    tiny = _number(1, width)

    def representable(wanted: float) -> float:
        step = _to_type(min(wanted, widest), width)
        return tiny if step < 32 * tiny else step

    if unbiased:
        margin = max(0.5773, 1 - 2 / sqrt(kept))
        return Quantiser(lowest, representable(even * margin / unit), 128, unit)
    aim = target * 0.99609375
    wanted = even * 0.9921875 / unit
    best = Quantiser(lowest, 0.0, 0, unit)
    for tried in range(9):
        if tried == 8:
            if best.step:
                return best
            wanted = aim / sqrt(kept) / unit
        now = Quantiser(lowest, representable(wanted), 0, unit)
        places = [now.place(value) for value in values]
        parts = [int((place - int(place)) * 4096) for place in places]
        total, total_squares = sum(parts), sum(part * part for part in parts)
        now.offset = min(255, (total + 8 * kept) // (16 * kept))
        deviation = total_squares - 32 * now.offset * total + 256 * now.offset * now.offset * kept
        found = now.step * unit * (sqrt(float(deviation)) / 4096)
        if found <= aim and now.step > best.step:
            best = now
            if found >= aim * 0.9921875 or found == 0 or wanted >= widest:
                return best
        wanted = now.step * (aim * 0.99609375 / found) if found else now.step * 2
    return best if best.step else now


def encode(
    patterns: list[int], width: int, error: float, unbiased: bool, key: int, place: Place | None = None
) -> bytes:
    kind = VALUE_TYPES[width]
    if not all(kind.is_finite(pattern) for pattern in patterns):
        return bytes([NOT_FINITE])
    values = [_number(pattern, width) for pattern in patterns]
    if not any(values):
        return bytes([ZERO])
    quantiser = _search(values, width, error, unbiased)
    dithered = unbiased and quantiser.step > 0
    levels = [
        int(quantiser.place(value) + (float(uniform(key, index)) if dithered else 0.0))
        for index, value in enumerate(values)
    ]
    mean = sum(levels) // len(levels)
    shift = min(15, max(0, mean.bit_length() - 3))
    tokens = 1 + max(token for token in range(16) if BASES[token] <= max(levels) >> shift)
    out = RangeEncoder()
    model = Levels(tokens, shift, len(values))
    signs = Signs(place) if place else None
    for index, (pattern, level) in enumerate(zip(patterns, levels, strict=True)):
        if signs:
            model.put(out, level, 0, 0)
            signs.put(out, index, -1 if kind.sign(pattern) else 1)
        else:
            model.put(out, level, kind.sign(pattern), 1)
    ends = [_pattern(number, width).to_bytes(width // 8, "little") for number in (quantiser.lowest, quantiser.step)]
    mode = BY_PLACE if place else PLAIN
    return bytes([mode, (tokens - 1) << 4 | shift, *ends[0], *ends[1], quantiser.offset]) + out.to_bytes()


def decode(payload: bytes, kept: int, width: int, unbiased: bool, key: int, place: Place | None = None) -> list[int]:
    if not payload:
        raise TruncatedError("quant: no bytes")
    mode, size = payload[0], width // 8
    if mode in (NOT_FINITE, ZERO):
        if len(payload) > 1:
            raise CorruptError("quant: bytes left over")
        return [VALUE_TYPES[width].quiet_nan if mode == NOT_FINITE else 0] * kept
    if mode not in (PLAIN, BY_PLACE):
        raise CorruptError("quant: unknown mode")
    if len(payload) < 7 + 2 * size:
        raise TruncatedError("quant: too short")
    tokens, shift = 1 + (payload[1] >> 4), payload[1] & 15
    ends = [int.from_bytes(payload[2 + size * i : 2 + size * (i + 1)], "little") for i in range(2)]
    if not all(end < VALUE_TYPES[width].infinity for end in ends):
        raise CorruptError("quant: lowest or step negative or not finite")
    if tokens == 1 and shift:
        raise CorruptError("quant: a shift of nothing")
    if mode == BY_PLACE and place is None:
        raise CorruptError("quant: signs by place where there is none")
    lowest, step = (_number(end, width) for end in ends)
    offset = payload[2 + 2 * size] / 256
    stream = RangeDecoder(payload[3 + 2 * size :])
    model = Levels(tokens, shift, kept)
    signs = Signs(place) if mode == BY_PLACE and place else None
    decoded = []
    for index in range(kept):
        level, sign = model.take(stream, 0 if signs else 1)
        negative = signs.take(stream, index) < 0 if signs else sign == 1
        places = level + offset - (float(uniform(key, index)) if unbiased else 0.0)
        product = places * step
        magnitude = _to_type(lowest + product if product < inf else inf, width)
        decoded.append(_pattern(-magnitude if negative else magnitude, width))
    stream.end()
    return decoded
