"""Two exponentials through the sorted values; FORMAT.md, 5.12."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hvd_deepreduce import _native, curves
from hvd_deepreduce.contracts import OrderedValueCodec, ValueCodec
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import Order, Support, Values


class FitDexpOrdered(OrderedValueCodec):
    """The curves alone."""

    wire_id: ClassVar[int] = 15

    def encode(self, values: Values, draw: Draw) -> tuple[bytes, Order]:
        payload, order = _native.fit_dexp_encode(values, False)
        assert order is not None
        return payload, order

    def decode(self, payload: bytes, kept: int, dtype: np.dtype[np.floating[Any]], draw: Draw) -> Values:
        return _native.fit_dexp_decode(payload, kept, dtype, False)


@dataclass(frozen=True)
class FitDexp(ValueCodec):
    """Sorted values as a·e^(bx) + c·e^(dx), those of each sign apart: at most 56 bytes (DeepReduce, 5 and E).

    What is left to send is the order: ceil(log2 kept) bits a value, or nothing with the index codec `raw`, whose
    positions then come in it.
    """

    name: ClassVar[str] = "fit_dexp"
    wire_id: ClassVar[int] = 12
    exact: ClassVar[bool] = False
    order_preserving: ClassVar[bool] = False
    ordered: ClassVar[OrderedValueCodec | None] = FitDexpOrdered()

    def encode(self, values: Values, support: Support, draw: Draw) -> bytes:
        return _native.fit_dexp_encode(values, True)[0]

    def decode(self, payload: bytes, support: Support, dtype: np.dtype[np.floating[Any]], draw: Draw) -> Values:
        return _native.fit_dexp_decode(payload, support.kept, dtype, True)

    def max_encoded_size(self, kept: int, itemsize: int) -> int:
        return 6 + 2 * (2 * itemsize + 17) + curves.permutation_size(kept)

    def error_bound(self, values: Values) -> Values:
        return curves.error_bound(values)
