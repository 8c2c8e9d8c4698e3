"""bfloat16, saturating; FORMAT.md, 5.3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.contracts import ValueCodec
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import Support, Values

_LARGEST = float.fromhex("0x1.fep127")
_HALF_STEP = 2.0**-8
_HALF_SMALLEST = 2.0**-134


@dataclass(frozen=True)
class BFloat16(ValueCodec):
    """16 bits a value: the range of float32 with 8 bits of precision. Horovod itself can't carry this dtype."""

    name: ClassVar[str] = "bf16"
    wire_id: ClassVar[int] = 3
    exact: ClassVar[bool] = False

    def encode(self, values: Values, support: Support, draw: Draw) -> bytes:
        return _native.bf16_encode(values)

    def decode(self, payload: bytes, support: Support, dtype: np.dtype[np.floating[Any]], draw: Draw) -> Values:
        return _native.bf16_decode(payload, support.kept, dtype)

    def max_encoded_size(self, kept: int, itemsize: int) -> int:
        return kept * 2

    def error_bound(self, values: Values) -> Values:
        magnitude = np.abs(values)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            bound = magnitude * (_HALF_STEP * (1 + 2.0**-12)) + np.asarray(_HALF_SMALLEST, values.dtype)
            beyond = (magnitude - np.asarray(_LARGEST, values.dtype)) * (1 + 2 * np.finfo(values.dtype).eps)
            bound = np.maximum(bound, np.minimum(beyond, magnitude))
        return np.where(np.isfinite(values), bound, np.inf).astype(values.dtype)
