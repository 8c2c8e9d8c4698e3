"""Buckets between quantiles, their numbers in a Huffman code; FORMAT.md, 5.13."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.checks import quoted, require_integer
from hvd_deepreduce.contracts import ValueCodec
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import Support, Values

_LONGEST_WORD = 15


_OF = ("squares", "values")


@dataclass(frozen=True)
class Sketch(ValueCodec):
    """At most log2 `quantiles` bits a value, or little more: the mean of its bucket (SKCompress, after SketchML).

    Quantiles `of` "values" are those papers', as many values in each. Those of "squares" have each the same share of
    the sum of squares, so that the largest values are told apart, and the rest are many in few buckets, which the code
    makes use of. They are exact, and divided between the signs, so that no value changes its own.
    """

    quantiles: int = 64
    of: str = "squares"

    name: ClassVar[str] = "sketch"
    wire_id: ClassVar[int] = 13
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_integer("sketch", "quantiles", self.quantiles, minimum=2, maximum=256)
        if self.of not in _OF:
            raise InvalidSettingError(f"sketch: of={quoted(self.of)}; allowed are {', '.join(_OF)}")

    def encode(self, values: Values, support: Support, draw: Draw) -> bytes:
        return _native.sketch_encode(values, self.quantiles, self.of == "squares")

    def decode(self, payload: bytes, support: Support, dtype: np.dtype[np.floating[Any]], draw: Draw) -> Values:
        return _native.sketch_decode(payload, support.kept, dtype)

    def max_encoded_size(self, kept: int, itemsize: int) -> int:
        buckets = min(self.quantiles, kept)
        word = min(_LONGEST_WORD, buckets - 1) if kept else 0
        return 1 + buckets * itemsize + (4 * buckets + kept * word + 7) // 8

    def error_bound(self, values: Values) -> Values:
        """How far the farther end of a value's bucket is."""
        if not np.isfinite(values).all():
            return np.full_like(values, np.inf)
        payload = _native.sketch_encode(values, self.quantiles, self.of == "squares")
        means, bucket = np.unique(_native.sketch_decode(payload, len(values), values.dtype), return_inverse=True)
        lowest, highest = np.full_like(means, np.inf), np.full_like(means, -np.inf)
        np.minimum.at(lowest, bucket, values)
        np.maximum.at(highest, bucket, values)
        return np.maximum(highest[bucket] - values, values - lowest[bucket])
