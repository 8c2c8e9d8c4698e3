"""What the stages hand to one another: a tensor's description, a support, and a support with values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hvd_deepreduce import _native
from hvd_deepreduce.errors import InvalidSettingError

Positions = NDArray[np.unsignedinteger[Any]]
Values = NDArray[np.floating[Any]]
Order = NDArray[np.integer[Any]]

MAX_NUMEL: Final = 2**33
DTYPES: Final = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class MatrixView:
    """A layer seen as a matrix: the first dimension times the product of the others; one dimension is one row.

    >>> MatrixView.of_shape((64, 3, 3, 3))
    MatrixView(rows=64, columns=27)
    """

    rows: int
    columns: int

    @classmethod
    def of_shape(cls, shape: tuple[int, ...]) -> MatrixView:
        if len(shape) < 2:
            return cls(1, prod(shape))
        return cls(shape[0], prod(shape[1:]))

    @cached_property
    def numel(self) -> int:
        return self.rows * self.columns

    @cached_property
    def position_dtype(self) -> np.dtype[np.unsignedinteger[Any]]:
        """uint32, or uint64 above 2**32 elements."""
        return np.dtype(np.uint32 if self.numel <= 2**32 else np.uint64)


@dataclass(frozen=True)
class TensorSpec:
    """What both ends of the wire know of a tensor without being told: name, shape and dtype of the gradient.

    Raises `InvalidSettingError` for a dtype outside `DTYPES`, and above 2**33 elements.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise InvalidSettingError(f"tensor {self.name!r}: dtype {self.dtype}; allowed are {', '.join(DTYPES)}")
        if self.numel > MAX_NUMEL:
            raise InvalidSettingError(f"tensor {self.name!r}: {self.numel} elements; at most {MAX_NUMEL} are allowed")

    @cached_property
    def view(self) -> MatrixView:
        return MatrixView.of_shape(self.shape)

    @cached_property
    def numel(self) -> int:
        return prod(self.shape)

    @cached_property
    def value_dtype(self) -> np.dtype[np.floating[Any]]:
        """What the stages compute in and residuals are kept in: float64 for float64 gradients, else float32."""
        return np.dtype(np.float64 if self.dtype == "float64" else np.float32)

    @cached_property
    def itemsize(self) -> int:
        """Bytes of one element of the dense gradient."""
        return {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}[self.dtype]


@dataclass(frozen=True, eq=False)
class Support:
    """The sorted positions of the kept elements within a layer of shape `view`.

    `positions` is one-dimensional, strictly increasing, below `view.numel`, and of `view.position_dtype`. The
    constructor trusts its caller; `Support.checked` does not.
    """

    positions: Positions
    view: MatrixView

    @classmethod
    def checked(cls, positions: Any, view: MatrixView) -> Support:
        """Takes positions from outside; raises `InvalidSettingError` naming the first one that is not allowed."""
        array = np.asarray(positions)
        if array.ndim != 1 or not (array.dtype.kind in "iu" or array.size == 0):
            raise InvalidSettingError(
                f"positions: {array.ndim} dimensions of {array.dtype}; one dimension of integers is needed"
            )
        if array.size and (array.min() < 0 or array.max() >= view.numel):
            outside = array[(array < 0) | (array >= view.numel)][0]
            raise InvalidSettingError(f"positions: {outside} is outside numel {view.numel}")
        support = cls(np.ascontiguousarray(array, dtype=view.position_dtype), view)
        _native.check_positions(support.positions, view.numel)
        return support

    @property
    def kept(self) -> int:
        return len(self.positions)


@dataclass(frozen=True, eq=False)
class SparseGradient:
    """A support and one value for each of its positions.

    `order`, when given, is a permutation of 0 … kept−1: `values[i]` belongs to `support.positions[order[i]]`. It is how
    a value codec that sorts hands its order to an index codec that can ship it for free (FORMAT.md, 4.2); None means in
    the order of positions.
    """

    support: Support
    values: Values
    order: Order | None = None

    def by_position(self) -> SparseGradient:
        """The same gradient with its values in the order of positions."""
        if self.order is None:
            return self
        values = np.empty_like(self.values)
        values[self.order] = self.values
        return SparseGradient(self.support, values)

    def to_dense(self) -> Values:
        """A new dense array of `view.numel` elements."""
        gradient = self.by_position()
        dense = np.zeros(self.support.view.numel, dtype=self.values.dtype)
        _native.scatter_add(dense, self.support.positions, gradient.values, 1.0)
        return dense
