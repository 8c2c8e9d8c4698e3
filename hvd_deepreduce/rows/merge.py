"""Rows of a table: merging those that are there twice, and adding up those of several ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hvd_deepreduce import _native
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.sparse import MatrixView, Positions, Support, TensorSpec, Values

RowNumbers = NDArray[np.int64]


class Rows(NamedTuple):
    """Some rows of a table: their numbers, and an array of shape (rows, columns) with their values."""

    numbers: RowNumbers
    values: Values


def table_of(spec: TensorSpec) -> MatrixView:
    """The first dimension x the product of the others; one dimension is a single column, unlike `MatrixView.of_shape`.

    >>> table_of(TensorSpec("bias", (5,)))
    MatrixView(rows=5, columns=1)
    """
    columns = int(np.prod(spec.shape[1:], dtype=np.int64))
    return MatrixView(spec.shape[0] if spec.shape else 1, columns)


def merge_rows(rows: Rows, table: MatrixView) -> Rows:
    """Rows by rising number, each once, its values summed in the order they were given in.

    Returns what it was given where there is nothing to do. Raises `InvalidSettingError` for a row outside the table.
    """
    numbers, values = rows
    if not len(numbers):
        return rows
    if numbers.min() < 0 or numbers.max() >= table.rows:
        outside = numbers[(numbers < 0) | (numbers >= table.rows)][0]
        raise InvalidSettingError(f"row {outside} is outside the table of {table.rows} rows")
    if (numbers[1:] > numbers[:-1]).all():
        return rows
    merged, places = np.unique(numbers, return_inverse=True)
    return Rows(merged, _sum_at(places.reshape(-1), values, len(merged)))


def add_rows(parts: Sequence[tuple[Rows, float]], columns: int, dtype: np.dtype[np.floating[Any]]) -> Rows:
    """The sum of factor x rows, in the order of the parts, each of which has its rows merged.

    Every value is multiplied and rounded before it is added, so that all ranks round alike.
    """
    if not parts:
        return Rows(np.empty(0, np.int64), np.empty((0, columns), dtype))
    numbers = np.unique(np.concatenate([rows.numbers for rows, _ in parts]))
    total = np.zeros((len(numbers), columns), dtype)
    for rows, factor in parts:
        places = np.searchsorted(numbers, rows.numbers)
        _native.scatter_add(total.reshape(-1), _elements(places, total.shape), rows.values.reshape(-1), factor)
    return Rows(numbers, total)


def elements_of(numbers: RowNumbers, table: MatrixView) -> Support:
    """The support, in the table, of all elements of these rows."""
    return Support(_elements(numbers, (table.rows, table.columns)), table)


def _sum_at(places: NDArray[np.integer[Any]], values: Values, count: int) -> Values:
    total = np.zeros((count, values.shape[1]), values.dtype)
    _native.scatter_add(total.reshape(-1), _elements(places, total.shape), values.reshape(-1), 1.0)
    return total


def _elements(numbers: NDArray[np.integer[Any]], shape: tuple[int, ...]) -> Positions:
    rows, columns = shape
    dtype = MatrixView(rows, columns).position_dtype
    return np.add.outer(numbers.astype(dtype) * dtype.type(columns), np.arange(columns, dtype=dtype)).reshape(-1)
