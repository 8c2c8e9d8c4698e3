"""A sign, and one of two magnitudes; FORMAT.md, 5.7."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hvd_deepreduce import centroids
from hvd_deepreduce.contracts import ValueCodec
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import Support, Values


@dataclass(frozen=True)
class TwoBit(ValueCodec):
    """2 bits a value: the sign, and whether its magnitude is above the mean (after Aji and Heafield 2017).

    `centroid` "min" is the smallest magnitude, so that nothing is overstated; "mean" is their mean; "column" a mean for
    each column of the layer, at the price of a float each. Meant for use with error feedback: it is biased.
    """

    centroid: str = "mean"

    name: ClassVar[str] = "twobit"
    wire_id: ClassVar[int] = 7
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        centroids.require_centroid("twobit", self.centroid)

    def encode(self, values: Values, support: Support, draw: Draw) -> bytes:
        return centroids.encode(values, support, self.centroid, 2)

    def decode(self, payload: bytes, support: Support, dtype: np.dtype[np.floating[Any]], draw: Draw) -> Values:
        return centroids.decode(payload, support, dtype, self.centroid, 2)

    def max_encoded_size(self, kept: int, itemsize: int) -> int:
        return centroids.max_size(kept, itemsize, self.centroid, 2)

    def error_bound(self, values: Values) -> Values:
        return centroids.error_bound(values, self.centroid, 2)
