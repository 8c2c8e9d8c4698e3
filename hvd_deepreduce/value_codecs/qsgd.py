"""QSGD: an L2 norm per bucket, a sign and a stochastic level per value; FORMAT.md, 5.4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.checks import require_integer
from hvd_deepreduce.contracts import ValueCodec
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import Support, Values

_LARGEST_NORM = float(np.finfo(np.float32).max)
_ROUNDING = 2.0**-23


@dataclass(frozen=True)
class Qsgd(ValueCodec):
    """Exactly `bits` bits a value and 32 a bucket; unbiased (Alistarh et al. 2017, section 3).

    Rounding draws from a key of seed, tensor, step and rank, so equal training gives equal bytes.
    """

    bits: int = 7
    bucket: int = 512

    name: ClassVar[str] = "qsgd"
    wire_id: ClassVar[int] = 4
    exact: ClassVar[bool] = False
    deterministic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_integer("qsgd", "bits", self.bits, minimum=2, maximum=16)
        require_integer("qsgd", "bucket", self.bucket, minimum=1, maximum=2**20)

    @property
    def levels(self) -> int:
        """s of the paper: levels above zero."""
        return (1 << (self.bits - 1)) - 1

    def encode(self, values: Values, support: Support, draw: Draw) -> bytes:
        return _native.qsgd_encode(values, self.bits, self.bucket, draw.key())

    def decode(self, payload: bytes, support: Support, dtype: np.dtype[np.floating[Any]], draw: Draw) -> Values:
        return _native.qsgd_decode(payload, support.kept, self.bits, self.bucket, dtype)

    def max_encoded_size(self, kept: int, itemsize: int) -> int:
        buckets = -(-kept // self.bucket)
        return 4 * buckets + (kept * self.bits + 7) // 8

    def error_bound(self, values: Values) -> Values:
        """One level of the value's bucket, what a norm of binary32 leaves out, and the roundings."""
        bound = np.empty(len(values), dtype=np.float64)
        for start in range(0, len(values), self.bucket):
            with np.errstate(over="ignore", invalid="ignore"):
                bucket = values[start : start + self.bucket].astype(np.float64)
                norm = min(float(np.sqrt(np.sum(bucket * bucket))), _LARGEST_NORM)
                stored = float(np.float32(norm))
                step = stored / self.levels + stored * _ROUNDING + float(np.finfo(values.dtype).smallest_subnormal)
                within = np.maximum(np.abs(bucket) - stored, 0) * (1 + 2.0**-51) + step
            bound[start : start + self.bucket] = within if np.isfinite(bucket).all() else np.inf
        with np.errstate(over="ignore"):
            return bound.astype(values.dtype)
