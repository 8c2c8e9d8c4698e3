"""Natural compression: a sign and a power of two next to the value, at random; FORMAT.md, 5.9."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.contracts import ValueCodec
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import Support, Values


@dataclass(frozen=True)
class Natural(ValueCodec):
    """9 bits a value at most (12 of float64), fewer the closer together magnitudes are; unbiased (Horvath et al. 2019).

    The largest 1 % of normal values take 3 bits each.
    """

    name: ClassVar[str] = "natural"
    wire_id: ClassVar[int] = 9
    exact: ClassVar[bool] = False
    deterministic: ClassVar[bool] = False

    def encode(self, values: Values, support: Support, draw: Draw) -> bytes:
        return _native.natural_encode(values, draw.key())

    def decode(self, payload: bytes, support: Support, dtype: np.dtype[np.floating[Any]], draw: Draw) -> Values:
        return _native.natural_decode(payload, support.kept, dtype)

    def max_encoded_size(self, kept: int, itemsize: int) -> int:
        return 3 + (kept * {4: 9, 8: 12}[itemsize] + 7) // 8

    def error_bound(self, values: Values) -> Values:
        """How far the farther of the two powers is, the least normal number and zero being such."""
        if not np.isfinite(values).all():
            return np.full_like(values, np.inf)
        info = np.finfo(values.dtype)
        fraction, _ = np.frexp(np.abs(values))  # 0.5 ... 1
        size = np.abs(values)
        below = np.where(size < info.tiny, 0, size / np.where(fraction > 0, 2 * fraction, 1))
        with np.errstate(over="ignore"):
            above = np.minimum(np.where(size < info.tiny, info.tiny, 2 * below), info.max)
        exact = (size == below) | (size == 0)
        return np.where(exact, 0, np.maximum(size - below, above - size)).astype(values.dtype)
