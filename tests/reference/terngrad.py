"""-1, 0 or 1 times the largest magnitude; FORMAT.md, 5.8."""

from reference.bits import CorruptError, TruncatedError
from reference.floats import VALUE_TYPES
from reference.randomness import uniform


def encode(values: list[int], width: int, key: int) -> bytes:
    kind = VALUE_TYPES[width]
    scale = max(map(kind.magnitude, values), default=0)
    digits = [0] * len(values)
    if not kind.is_finite(scale):
        scale = kind.quiet_nan
    elif scale:
        for i, pattern in enumerate(values):
            chance = float(kind.value(kind.magnitude(pattern))) / float(kind.value(scale))
            if uniform(key, i) < chance:
                digits[i] = 1 + kind.sign(pattern)
    groups = [digits[i : i + 5] for i in range(0, len(digits), 5)]
    packed = bytes(sum(digit * 3**place for place, digit in enumerate(group)) for group in groups)
    return scale.to_bytes(width // 8, "little") + packed


def decode(payload: bytes, kept: int, width: int) -> list[int]:
    kind, head = VALUE_TYPES[width], width // 8
    needed = head + -(-kept // 5)
    if len(payload) < needed:
        raise TruncatedError("terngrad: too short")
    if len(payload) > needed:
        raise CorruptError("terngrad: too long")
    scale = int.from_bytes(payload[:head], "little")
    digits = []
    for byte in payload[head:]:
        if byte >= 243:
            raise CorruptError("terngrad: no five digits")
        digits += [byte // 3**place % 3 for place in range(5)]
    if any(digits[kept:]):
        raise CorruptError("terngrad: padding digits that are not zero")
    if kind.is_nan(scale):
        return [kind.quiet_nan] * kept
    meanings = (0, scale, scale ^ kind.negative(1))
    return [meanings[digit] for digit in digits[:kept]]
