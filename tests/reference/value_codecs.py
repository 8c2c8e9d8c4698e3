"""Values <-> bytes; FORMAT.md, 5. Values are bit patterns of `width` 32 or 64.

An encoder is (values, width, settings, key) -> payload, a decoder (payload, kept, width, settings) -> values;
`settings` is a dict with every setting of the codec and, where the codec has to know, the "positions" of the values,
"rows" and "columns" of the matrix view, and the sender's "key".
"""

from collections.abc import Callable, Mapping
from typing import Any

from reference import centroids, curves, deflate, fit_dexp, fit_poly, natural, pco, qsgd, quant, sketch, terngrad
from reference.bits import CorruptError, TruncatedError
from reference.floats import BFLOAT16, BINARY16, BINARY32, VALUE_TYPES, Format

RAW, FP16, BF16, QSGD, DEFLATE, ONEBIT, TWOBIT, TERNGRAD, NATURAL, QUANT = range(1, 11)
FIT_POLY, FIT_DEXP, SKETCH, FIT_POLY_ALONE, FIT_DEXP_ALONE = range(11, 16)
# Beside raw positions, which come in the order of values: the id without a permutation.
ORDERED = {FIT_POLY: FIT_POLY_ALONE, FIT_DEXP: FIT_DEXP_ALONE}
PCO = 16
Settings = Mapping[str, Any]


def _split(payload: bytes, kept: int, size: int) -> list[int]:
    if len(payload) < size * kept:
        raise TruncatedError("values: too short")
    if len(payload) > size * kept:
        raise CorruptError("values: too long")
    return [int.from_bytes(payload[size * i : size * (i + 1)], "little") for i in range(kept)]


def _join(patterns: list[int], size: int) -> bytes:
    return b"".join(pattern.to_bytes(size, "little") for pattern in patterns)


def raw_encode(values: list[int], width: int, settings: Settings, key: int) -> bytes:
    return _join(values, width // 8)


def raw_decode(payload: bytes, kept: int, width: int, settings: Settings) -> list[int]:
    return _split(payload, kept, width // 8)


def _narrowed(values: list[int], width: int, kind: Format) -> bytes:
    # By way of binary32, where a finite binary64 value must not become an infinity: that one would stay.
    singles = [BINARY32.convert(pattern, VALUE_TYPES[width], saturate=True) for pattern in values]
    return _join([kind.convert(pattern, BINARY32, saturate=True) for pattern in singles], 2)


def _widened(payload: bytes, kept: int, width: int, kind: Format) -> list[int]:
    return [VALUE_TYPES[width].convert(pattern, kind) for pattern in _split(payload, kept, 2)]


def fp16_encode(values: list[int], width: int, settings: Settings, key: int) -> bytes:
    return _narrowed(values, width, BINARY16)


def fp16_decode(payload: bytes, kept: int, width: int, settings: Settings) -> list[int]:
    return _widened(payload, kept, width, BINARY16)


def bf16_encode(values: list[int], width: int, settings: Settings, key: int) -> bytes:
    return _narrowed(values, width, BFLOAT16)


def bf16_decode(payload: bytes, kept: int, width: int, settings: Settings) -> list[int]:
    return _widened(payload, kept, width, BFLOAT16)


def qsgd_encode(values: list[int], width: int, settings: Settings, key: int) -> bytes:
    return qsgd.encode(values, width, settings["bits"], settings["bucket"], key)


def qsgd_decode(payload: bytes, kept: int, width: int, settings: Settings) -> list[int]:
    return qsgd.decode(payload, kept, width, settings["bits"], settings["bucket"])


def _place(kept: int, settings: Settings) -> quant.Place | None:
    if settings["rows"] == 1 or settings["columns"] > 8 * kept:
        return None
    return quant.Place(settings["positions"], settings["columns"])


def quant_encode(values: list[int], width: int, settings: Settings, key: int) -> bytes:
    place = _place(len(values), settings)
    return quant.encode(values, width, settings["error"], settings["unbiased"], key, place)


def quant_decode(payload: bytes, kept: int, width: int, settings: Settings) -> list[int]:
    return quant.decode(payload, kept, width, settings["unbiased"], settings["key"], _place(kept, settings))


ENCODERS: dict[int, Callable[[list[int], int, Settings, int], bytes]] = {
    RAW: raw_encode,
    FP16: fp16_encode,
    BF16: bf16_encode,
    QSGD: qsgd_encode,
    DEFLATE: lambda values, width, settings, key: deflate.encode(values, width, settings["shuffle"]),
    ONEBIT: lambda values, width, settings, key: centroids.encode(values, width, settings, 1),
    TWOBIT: lambda values, width, settings, key: centroids.encode(values, width, settings, 2),
    TERNGRAD: lambda values, width, settings, key: terngrad.encode(values, width, key),
    NATURAL: lambda values, width, settings, key: natural.encode(values, width, key),
    QUANT: quant_encode,
    FIT_POLY: lambda values, width, settings, key: fit_poly.encode(
        values, width, settings["degree"], settings["segments"]
    ),
    FIT_DEXP: lambda values, width, settings, key: fit_dexp.encode(values, width),
    SKETCH: lambda values, width, settings, key: sketch.encode(values, width, settings["quantiles"], settings["of"]),
    FIT_POLY_ALONE: lambda values, width, settings, key: fit_poly.encode(
        values, width, settings["degree"], settings["segments"], permuted=False
    ),
    FIT_DEXP_ALONE: lambda values, width, settings, key: fit_dexp.encode(values, width, permuted=False),
    PCO: lambda values, width, settings, key: pco.encode_numbers(values, width, floats=True),
}
DECODERS: dict[int, Callable[[bytes, int, int, Settings], list[int]]] = {
    RAW: raw_decode,
    FP16: fp16_decode,
    BF16: bf16_decode,
    QSGD: qsgd_decode,
    DEFLATE: lambda payload, kept, width, settings: deflate.decode(payload, kept, width, settings["shuffle"]),
    ONEBIT: lambda payload, kept, width, settings: centroids.decode(payload, kept, width, settings, 1),
    TWOBIT: lambda payload, kept, width, settings: centroids.decode(payload, kept, width, settings, 2),
    TERNGRAD: lambda payload, kept, width, settings: terngrad.decode(payload, kept, width),
    NATURAL: lambda payload, kept, width, settings: natural.decode(payload, kept, width),
    QUANT: quant_decode,
    FIT_POLY: lambda payload, kept, width, settings: fit_poly.decode(payload, kept, width, settings["degree"]),
    FIT_DEXP: lambda payload, kept, width, settings: fit_dexp.decode(payload, kept, width),
    SKETCH: lambda payload, kept, width, settings: sketch.decode(payload, kept, width),
    FIT_POLY_ALONE: lambda payload, kept, width, settings: fit_poly.decode(
        payload, kept, width, settings["degree"], permuted=False
    ),
    FIT_DEXP_ALONE: lambda payload, kept, width, settings: fit_dexp.decode(payload, kept, width, permuted=False),
    PCO: lambda payload, kept, width, settings: pco.decode_numbers(payload, kept, width, floats=True),
}

# Bytes of a payload, where values do not matter: (kept, width, settings) -> size.
SIZES: dict[int, Callable[[int, int, Settings], int]] = {
    RAW: lambda kept, width, settings: kept * width // 8,
    FP16: lambda kept, width, settings: 2 * kept,
    BF16: lambda kept, width, settings: 2 * kept,
    QSGD: lambda kept, width, settings: 4 * -(-kept // settings["bucket"]) + -(-kept * settings["bits"] // 8),
    ONEBIT: lambda kept, width, settings: centroids.size(kept, width, settings, 1),
    TWOBIT: lambda kept, width, settings: centroids.size(kept, width, settings, 2),
    TERNGRAD: lambda kept, width, settings: width // 8 + -(-kept // 5),
}


def fit_poly_limit(kept: int, width: int, settings: Settings) -> int:
    pieces = min(settings["segments"] or fit_poly.MOST_OWN_SEGMENTS, kept)
    side = 2 * width // 8 + 5 + pieces * (9 + 4 * settings["degree"])
    return 6 + 2 * side + -(-kept * curves.place_bits(kept) // 8)


def sketch_limit(kept: int, width: int, settings: Settings) -> int:
    buckets = min(kept, settings["quantiles"])
    return 1 + buckets * width // 8 + -(-(4 * buckets + 15 * kept) // 8)


# Where the size depends on the values, the most it can be.
LIMITS: dict[int, Callable[[int, int, Settings], int]] = {
    DEFLATE: lambda kept, width, settings: deflate.limit(kept * width // 8),
    NATURAL: lambda kept, width, settings: 3 + -(-kept * {32: 9, 64: 12}[width] // 8),
    PCO: lambda kept, width, settings: pco.limit(kept, width // 8),
    QUANT: lambda kept, width, settings: 7 + 2 * width // 8 + 8 * kept,
    FIT_POLY: fit_poly_limit,
    FIT_DEXP: lambda kept, width, settings: 40 + 4 * width // 8 + -(-kept * curves.place_bits(kept) // 8),
    SKETCH: sketch_limit,
}
