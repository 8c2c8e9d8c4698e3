"""Values as they are; FORMAT.md, 5.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hvd_deepreduce.checks import require_payload_length
from hvd_deepreduce.contracts import ValueCodec
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import Support, Values


@dataclass(frozen=True)
class RawValues(ValueCodec):
    """32 bits a value (64 for float64 gradients), every bit pattern kept."""

    name: ClassVar[str] = "raw"
    wire_id: ClassVar[int] = 1
    exact: ClassVar[bool] = True

    def encode(self, values: Values, support: Support, draw: Draw) -> bytes:
        if values.ndim != 1 or values.dtype not in (np.float32, np.float64):
            raise InvalidSettingError(
                f"raw values: {values.ndim} dimensions of {values.dtype}; one of float32 or float64 is needed"
            )
        return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()

    def decode(self, payload: bytes, support: Support, dtype: np.dtype[np.floating[Any]], draw: Draw) -> Values:
        require_payload_length("raw values", payload, support.kept * dtype.itemsize)
        return np.frombuffer(payload, dtype.newbyteorder("<")).astype(dtype)

    def max_encoded_size(self, kept: int, itemsize: int) -> int:
        return kept * itemsize

    def error_bound(self, values: Values) -> Values:
        return np.zeros_like(values)
