"""Cases of the value codecs of FORMAT.md, 5.5 to 5.9, that must be written and read."""

import zlib

import numpy as np

from golden.vectors import Fields, spaced

_PLACE = {"kind": "value", "seed": "7", "tensor": "layer.weight", "step": "3", "rank": "1"}
_VALUE = {"kind": "value"}


def floats(*values: float, dtype: str = "<f4") -> str:
    return spaced(np.array(values, dtype).tobytes(), np.dtype(dtype).itemsize)


def gradient(count: int, dtype: str = "<f4") -> str:
    """Distinct numbers of both signs in no order, none of them small."""
    values = [((37 * i) % 101 - 50 + 0.5) / 64 for i in range(count)]
    return floats(*values, dtype=dtype)


def stored(data: str, header: str = "7801") -> str:
    """A zlib stream of one stored block."""
    block = bytes.fromhex(data)
    size = len(block)
    lengths = size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little")
    return header + "01" + lengths.hex() + data + zlib.adler32(block).to_bytes(4, "big").hex()


_ANY_BITS = "0000807f 0100807f 000080ff 00000080"
DEFLATE_EXAMPLE = stored("0000000080003fc0")

VALUE_ACCEPTS: dict[str, Fields] = {
    # --- 5.5: what is written depends on the library, so it is not pinned ---
    "value_deflate_example": {
        "why": "The example of FORMAT.md, 5.5.",
        **_VALUE,
        "settings": "deflate(level=0, shuffle=True)",
        "written": "no",
        "input": floats(1, -2),
        "payload": DEFLATE_EXAMPLE,
    },
    "value_deflate_any_bits": {
        "why": "Infinities, a signalling NaN and -0.0, not shuffled, by a Huffman code of RFC 1951, 3.2.6.",
        **_VALUE,
        "settings": "deflate(level=1, shuffle=False)",
        "written": "no",
        "input": _ANY_BITS,
        "payload": "7801636068a8676468a8676068f8cfc0c0d000001f8103ff",
    },
    "value_deflate_small_window": {
        "why": "A header that says a window of 256 bytes is as good as any.",
        **_VALUE,
        "settings": "deflate(level=0, shuffle=False)",
        "written": "no",
        "input": floats(1),
        "payload": stored("0000803f", "081d"),
    },
    # --- 5.6 ---
    "value_onebit_example": {
        "why": "The first example of FORMAT.md, 5.6.",
        **_VALUE,
        "settings": "onebit(centroid='mean')",
        "input": floats(1, -3, 2),
    },
    "value_onebit_column": {
        "why": "The second example of FORMAT.md, 5.6.",
        **_VALUE,
        "settings": "onebit(centroid='column')",
        "shape": "2x3",
        "positions": "0 2 3 4",
        "input": floats(1, -2, 3, 4),
    },
    "value_onebit_column_of_a_vector": {
        "why": "A shape of one dimension is one row, whose values share a centroid.",
        **_VALUE,
        "settings": "onebit(centroid='column')",
        "shape": "9",
        "positions": "1 2 8",
        "input": floats(1, -3, 2),
    },
    "value_onebit_min": {
        "why": "The smallest magnitude above zero; zeros take it too, with their signs.",
        **_VALUE,
        "settings": "onebit(centroid='min')",
        "input": floats(1, -3, 0.0, -0.0, 0.5, -0.75, 2, 8, -9),
    },
    "value_onebit_not_finite": {
        "why": "A column with a NaN decodes to NaN, the others do not.",
        **_VALUE,
        "settings": "onebit(centroid='column')",
        "shape": "2x2",
        "positions": "0 1 2 3",
        "input": "0000c0ff 0000803f 000080bf 000040c0",
    },
    "value_onebit_huge_float64": {
        "why": "A sum that overflows makes the largest value the mean.",
        **_VALUE,
        "settings": "onebit(centroid='mean')",
        "dtype": "float64",
        "input": floats(1.5e308, -1e308, dtype="<f8"),
    },
    "frame_onebit_column": {
        "why": "Centroids by the columns of the tensor, at positions that the index payload gives.",
        "kind": "frame",
        "settings": "threshold(value=0.5)+bitmap+onebit(centroid='column')+none",
        "shape": "3x2x2",
        "input": floats(1, 0, 3, 0.25, -2, 0, 0, 0, -3, 0, 0, 8),
    },
    # --- 5.7 ---
    "value_twobit_example": {
        "why": "The example of FORMAT.md, 5.7.",
        **_VALUE,
        "settings": "twobit(centroid='mean')",
        "input": floats(1, -2, 3, 6),
    },
    "value_twobit_min": {
        "why": "The smallest of each class, classes split at the mean of all.",
        **_VALUE,
        "settings": "twobit(centroid='min')",
        "input": floats(1, -2, 3, 6, -0.0),
    },
    "value_twobit_column": {
        "why": "Column 0 has two classes; one value alone, and two that are equal, have but a lower one.",
        **_VALUE,
        "settings": "twobit(centroid='column')",
        "shape": "3x4",
        "positions": "0 1 3 4 7 8",
        "input": floats(1, -2, 3, 2, -3, -9),
    },
    "value_twobit_rounded_mean": {
        "why": "The mean of equal values lies above or below them by rounding; one class is empty all the same.",
        **_VALUE,
        "settings": "twobit(centroid='mean')",
        "dtype": "float64",
        "input": floats(*[0.1] * 10, dtype="<f8"),
    },
    # --- 5.8 ---
    "value_terngrad_example": {
        "why": "The example of FORMAT.md, 5.8.",
        **_VALUE,
        "settings": "terngrad",
        "input": floats(2, -2, 0),
    },
    "value_terngrad_draws": {
        "why": "Rounded by the draws of this place; the second byte has two digits.",
        **_PLACE,
        "settings": "terngrad",
        "input": floats(1, -2, 3, -3.5, 4, 2, -1),
    },
    "value_terngrad_not_finite": {
        "why": "An infinity makes all values NaN.",
        **_VALUE,
        "settings": "terngrad",
        "input": floats(1, -np.inf, 2),
    },
    "value_terngrad_float64": {
        "why": "Subnormal values of float64.",
        **_PLACE,
        "settings": "terngrad",
        "dtype": "float64",
        "input": floats(5e-324, -1e-323, 2e-323, -2e-323, 0, dtype="<f8"),
    },
    # --- 5.9 ---
    "value_natural_example": {
        "why": "The example of FORMAT.md, 5.9.",
        **_VALUE,
        "settings": "natural",
        "input": floats(1, -2, 0, 0.5),
    },
    "value_natural_draws": {
        "why": "Rounded by the draws of this place.",
        **_PLACE,
        "settings": "natural",
        "input": floats(1.5, -1.5, 1.25, -1.75, 3, 0.3, -0.1),
    },
    "value_natural_whole_range": {
        "why": "From subnormals, which become the least normal number or zero, to beyond the largest power of two.",
        **_PLACE,
        "settings": "natural",
        "input": "01000000 ffff7f80 00004000 ffff7f7f ffff7fff 0000007f",
    },
    "value_natural_float64": {
        "why": "The widest fields, 12 bits.",
        **_PLACE,
        "settings": "natural",
        "dtype": "float64",
        "input": floats(1.7e308, -2.3e-308, 1e-310, 1 / 3, dtype="<f8"),
    },
    "value_natural_zeros": {
        "why": "Nothing but signs.",
        **_VALUE,
        "settings": "natural",
        "input": floats(0.0, -0.0, -0.0),
    },
    "value_natural_not_finite": {
        "why": "A NaN makes all values NaN.",
        **_VALUE,
        "settings": "natural",
        "input": floats(-1, np.nan),
    },
    "value_natural_wider_than_needed": {
        "why": "No encoder of ours makes it, but it is allowed: 8 bits where 1 is enough.",
        **_VALUE,
        "settings": "natural",
        "written": "no",
        "input": floats(1, -1),
        "payload": "087f00010202",
    },
}
