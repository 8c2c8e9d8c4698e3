"""Values in the library pcodec's own code; FORMAT.md, 5.16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hvd_deepreduce.checks import require_integer
from hvd_deepreduce.contracts import ValueCodec
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.pcodec_chunks import HIGHEST_LEVEL, PACKAGE, compress, decompress, most_bytes
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import Support, Values


@dataclass(frozen=True)
class PcoValues(ValueCodec):
    """Every bit pattern kept, in 23 to 27 bits of 32: what is left when the upper bits of a float are coded well.

    Needs the package pcodec. `level` 0 to 12: higher ones search longer for a model.
    """

    level: int = 8

    name: ClassVar[str] = "pco"
    package: ClassVar[str | None] = PACKAGE
    wire_id: ClassVar[int] = 16
    exact: ClassVar[bool] = True
    portable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_integer("pco", "level", self.level, minimum=0, maximum=HIGHEST_LEVEL)

    def encode(self, values: Values, support: Support, draw: Draw) -> bytes:
        if values.ndim != 1 or values.dtype not in (np.float32, np.float64):
            raise InvalidSettingError(
                f"pco: {values.ndim} dimensions of {values.dtype}; one of float32 or float64 is needed"
            )
        return compress(np.require(values, values.dtype.newbyteorder("="), ["C", "A"]), self.level)

    def decode(self, payload: bytes, support: Support, dtype: np.dtype[np.floating[Any]], draw: Draw) -> Values:
        parts = list(decompress(payload, support.kept, dtype))
        return np.concatenate(parts) if parts else np.empty(0, dtype)

    def max_encoded_size(self, kept: int, itemsize: int) -> int:
        return most_bytes(kept, itemsize)

    def error_bound(self, values: Values) -> Values:
        return np.zeros_like(values)
