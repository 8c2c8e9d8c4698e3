"""IEEE binary16, saturating; FORMAT.md, 5.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.contracts import ValueCodec
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import Support, Values

_LARGEST = 65504.0
_HALF_STEP = 2.0**-11
_HALF_SMALLEST = 2.0**-25


@dataclass(frozen=True)
class Float16(ValueCodec):
    """16 bits a value; what lies beyond +-65504 is sent as that, and error feedback sends the rest later."""

    name: ClassVar[str] = "fp16"
    wire_id: ClassVar[int] = 2
    exact: ClassVar[bool] = False

    def encode(self, values: Values, support: Support, draw: Draw) -> bytes:
        return _native.fp16_encode(values)

    def decode(self, payload: bytes, support: Support, dtype: np.dtype[np.floating[Any]], draw: Draw) -> Values:
        return _native.fp16_decode(payload, support.kept, dtype)

    def max_encoded_size(self, kept: int, itemsize: int) -> int:
        return kept * 2

    def error_bound(self, values: Values) -> Values:
        magnitude = np.abs(values)
        # Twice the half step where a binary64 value is rounded on the way through binary32.
        with np.errstate(over="ignore", invalid="ignore"):
            bound = magnitude * (_HALF_STEP * (1 + 2.0**-12)) + _HALF_SMALLEST
            beyond = (magnitude - _LARGEST) * (1 + 2 * np.finfo(values.dtype).eps)
            bound = np.maximum(bound, np.minimum(beyond, magnitude))
        return np.where(np.isfinite(values), bound, np.inf).astype(values.dtype)
