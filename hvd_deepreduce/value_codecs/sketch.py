"""Buckets between quantiles, their numbers in a Huffman code; FORMAT.md, 5.13."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.checks import require_integer
from hvd_deepreduce.contracts import ValueCodec
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import Support, Values

_LONGEST_WORD = 15


@dataclass(frozen=True)
class Sketch(ValueCodec):
    """log2 `quantiles` bits a value: of as many values each, the mean (SketchML, Jiang et al. 2018; SKCompress).

    The quantiles are exact, and divided between the signs, so that no value changes its own. Few distinct values make
    buckets of unlike sizes, and those a shorter code.
    """

    quantiles: int = 64

    name: ClassVar[str] = "sketch"
    wire_id: ClassVar[int] = 13
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_integer("sketch", "quantiles", self.quantiles, minimum=2, maximum=256)

    def encode(self, values: Values, support: Support, draw: Draw) -> bytes:
        return _native.sketch_encode(values, self.quantiles)

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
        bound = np.zeros_like(values)
        positive, kept = values >= 0, len(values)
        share = int(positive.sum())
        if 0 < share < kept:
            share = min(max((2 * self.quantiles * share + kept) // (2 * kept), 1), self.quantiles - 1)
            quantiles = (share, self.quantiles - share)
        else:
            quantiles = (self.quantiles, self.quantiles)
        for side, count in zip((positive, ~positive), quantiles, strict=True):
            bound[side] = _distance_to_ends(values[side], count)
        return bound


def _distance_to_ends(values: Values, quantiles: int) -> Values:
    falling = np.sort(values)[::-1]
    # Equal values stay together, in the bucket of the first of them.
    first = len(values) - np.searchsorted(falling[::-1], values, side="right")
    cuts = np.arange(1, quantiles + 1) * len(values) // quantiles
    bucket = np.searchsorted(cuts, first, side="right")
    lowest, highest = np.full(quantiles, np.inf, values.dtype), np.full(quantiles, -np.inf, values.dtype)
    np.minimum.at(lowest, bucket, values)
    np.maximum.at(highest, bucket, values)
    return np.maximum(highest[bucket] - values, values - lowest[bucket])
