"""TernGrad: -1, 0 or 1 times the largest magnitude, at random; FORMAT.md, 5.8."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.contracts import ValueCodec
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import Support, Values


@dataclass(frozen=True)
class TernGrad(ValueCodec):
    """1.6 bits a value; unbiased (Wen et al. 2017, equation 2), and noisy where magnitudes differ widely."""

    name: ClassVar[str] = "terngrad"
    wire_id: ClassVar[int] = 8
    exact: ClassVar[bool] = False
    deterministic: ClassVar[bool] = False

    def encode(self, values: Values, support: Support, draw: Draw) -> bytes:
        return _native.terngrad_encode(values, draw.key())

    def decode(self, payload: bytes, support: Support, dtype: np.dtype[np.floating[Any]], draw: Draw) -> Values:
        return _native.terngrad_decode(payload, support.kept, dtype)

    def max_encoded_size(self, kept: int, itemsize: int) -> int:
        return itemsize + -(-kept // 5)

    def error_bound(self, values: Values) -> Values:
        if not np.isfinite(values).all() or len(values) == 0:
            return np.full_like(values, np.inf)
        size = np.abs(values)
        with np.errstate(over="ignore"):
            missed = np.where(size > 0, size.max() - size, 0) * (1 + 2 * np.finfo(values.dtype).eps)
            return np.minimum(np.maximum(size, missed), np.finfo(values.dtype).max).astype(values.dtype)
