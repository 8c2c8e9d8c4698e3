"""A sign and one of one or two magnitudes; FORMAT.md, 5.6 and 5.7."""

from collections.abc import Mapping
from fractions import Fraction
from math import inf
from typing import Any

from reference.bits import BitReader, BitWriter, CorruptError, TruncatedError
from reference.floats import BINARY64, VALUE_TYPES


def _groups(kept: int, settings: Mapping[str, Any]) -> list[int]:
    """The group of each value: its column's place among the columns that hold a position."""
    if settings["centroid"] != "column" or settings["rows"] == 1:
        return [0] * kept
    columns = [position % settings["columns"] for position in settings["positions"]]
    present = sorted(set(columns))
    return [present.index(column) for column in columns]


def _count(kept: int, settings: Mapping[str, Any]) -> int:
    if settings["centroid"] != "column" or settings["rows"] == 1:
        return 1
    return len(set(_groups(kept, settings)))


def size(kept: int, width: int, settings: Mapping[str, Any], classes: int) -> int:
    return _count(kept, settings) * classes * width // 8 + -(-kept * classes // 8)


def _mean(members: list[int], width: int) -> float:
    """In binary64, in the order of values; infinite where the sum is."""
    total = 0.0
    for pattern in members:
        total += float(VALUE_TYPES[width].value(pattern))
    return total / len(members)


def _centroid(members: list[int], width: int, centroid: str) -> int:
    """Pattern of the centroid of finite magnitudes."""
    kind = VALUE_TYPES[width]
    if centroid == "min":
        return min((pattern for pattern in members if pattern), default=0)
    mean = _mean(members, width)
    if mean == inf:
        return kind.largest
    return min(kind.rounded(Fraction(mean)), kind.largest)


def encode(values: list[int], width: int, settings: Mapping[str, Any], classes: int) -> bytes:
    kind = VALUE_TYPES[width]
    groups = _groups(len(values), settings)
    head = b""
    fields = [0] * len(values)
    for group in range(_count(len(values), settings)):
        places = [i for i, g in enumerate(groups) if g == group]
        sizes = {i: kind.magnitude(values[i]) for i in places}
        if not all(kind.is_finite(pattern) for pattern in sizes.values()):
            head += kind.quiet_nan.to_bytes(width // 8, "little") * classes
            continue
        upper: set[int] = set()
        if classes == 2 and places:
            threshold = _mean(list(sizes.values()), width)
            upper = {i for i in places if float(kind.value(sizes[i])) > threshold}
        members = [[sizes[i] for i in places if (i in upper) == bool(c)] for c in range(classes)]
        for c in range(classes):
            chosen = members[c] or members[classes - 1 - c]
            pattern = _centroid(chosen, width, settings["centroid"]) if chosen else 0
            head += pattern.to_bytes(width // 8, "little")
        for i in places:
            fields[i] = (kind.sign(values[i]) << (classes - 1)) + (i in upper)
    out = BitWriter()
    for field in fields:
        out.field(field, classes)
    return head + out.to_bytes()


def decode(payload: bytes, kept: int, width: int, settings: Mapping[str, Any], classes: int) -> list[int]:
    kind = VALUE_TYPES[width]
    needed = size(kept, width, settings, classes)
    if len(payload) < needed:
        raise TruncatedError("centroids: too short")
    if len(payload) > needed:
        raise CorruptError("centroids: too long")
    item = width // 8
    head = _count(kept, settings) * classes * item
    table = [int.from_bytes(payload[start : start + item], "little") for start in range(0, head, item)]
    stream = BitReader(payload[head:])
    values = []
    for group in _groups(kept, settings):
        field = stream.field(classes)
        sign, upper = field >> (classes - 1), field & (classes - 1)
        pattern = table[classes * group + upper]
        values.append(kind.quiet_nan if kind.is_nan(pattern) else pattern ^ kind.negative(sign))
    stream.end()
    return values


assert VALUE_TYPES[64] is BINARY64  # a float of Python's holds every value exactly
