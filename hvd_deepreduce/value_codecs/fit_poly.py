"""Polynomials through the sorted values, piece by piece; FORMAT.md, 5.11."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hvd_deepreduce import _native, curves
from hvd_deepreduce.checks import require_integer
from hvd_deepreduce.contracts import OrderedValueCodec, ValueCodec
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import Order, Support, Values

_MOST_DEGREE = 9
_MOST_SEGMENTS = 1024
_MOST_OWN_SEGMENTS = 32
_VARINT = 5


@dataclass(frozen=True)
class FitPolyOrdered(OrderedValueCodec):
    """The curves alone."""

    degree: int
    segments: int

    wire_id: ClassVar[int] = 14

    def encode(self, values: Values, draw: Draw) -> tuple[bytes, Order]:
        payload, order = _native.fit_poly_encode(values, self.degree, self.segments, False)
        assert order is not None
        return payload, order

    def decode(self, payload: bytes, kept: int, dtype: np.dtype[np.floating[Any]], draw: Draw) -> Values:
        return _native.fit_poly_decode(payload, kept, self.degree, dtype, False)


@dataclass(frozen=True)
class FitPoly(ValueCodec):
    """Sorted values as polynomials of `degree`, those of each sign in `segments` pieces (DeepReduce, 5 and C).

    With `segments` 0 there are as many as the bend of the curve asks for, 32 at most. What is left to send is the
    order: ceil(log2 kept) bits a value, or nothing with the index codec `raw`, whose positions then come in it.
    """

    degree: int = 5
    segments: int = 0

    name: ClassVar[str] = "fit_poly"
    wire_id: ClassVar[int] = 11
    exact: ClassVar[bool] = False
    order_preserving: ClassVar[bool] = False

    def __post_init__(self) -> None:
        require_integer("fit_poly", "degree", self.degree, minimum=1, maximum=_MOST_DEGREE)
        require_integer("fit_poly", "segments", self.segments, minimum=0, maximum=_MOST_SEGMENTS)

    @property
    def ordered(self) -> OrderedValueCodec:  # type: ignore[override]
        return FitPolyOrdered(self.degree, self.segments)

    def encode(self, values: Values, support: Support, draw: Draw) -> bytes:
        return _native.fit_poly_encode(values, self.degree, self.segments, True)[0]

    def decode(self, payload: bytes, support: Support, dtype: np.dtype[np.floating[Any]], draw: Draw) -> Values:
        return _native.fit_poly_decode(payload, support.kept, self.degree, dtype, True)

    def max_encoded_size(self, kept: int, itemsize: int) -> int:
        pieces = min(self.segments or _MOST_OWN_SEGMENTS, kept)
        side = 2 * itemsize + _VARINT + pieces * (_VARINT + 4 * (self.degree + 1))
        return 1 + _VARINT + 2 * side + curves.permutation_size(kept)

    def error_bound(self, values: Values) -> Values:
        return curves.error_bound(values)
