"""What `onebit` and `twobit` have in common: the centroids they may go by; FORMAT.md, 5.6."""

from __future__ import annotations

from typing import Any

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.checks import quoted
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.sparse import Positions, Support, Values

_CENTROIDS = ("min", "mean", "column")


def require_centroid(stage: str, centroid: object) -> None:
    """Raises unless `centroid` is one of the three."""
    if centroid not in _CENTROIDS:
        raise InvalidSettingError(
            f"{stage}: centroid={quoted(centroid)}; allowed are {', '.join(map(repr, _CENTROIDS))}"
        )


def encode(values: Values, support: Support, centroid: str, classes: int) -> bytes:
    """The payload with so many classes of magnitudes."""
    mean = centroid != "min"
    return _native.centroids_encode(values, *_columns(support, centroid), mean, classes)


def decode(payload: bytes, support: Support, dtype: np.dtype[np.floating[Any]], centroid: str, classes: int) -> Values:
    """What a payload of so many classes holds."""
    mean = centroid != "min"
    return _native.centroids_decode(payload, support.kept, *_columns(support, centroid), mean, classes, dtype)


def max_size(kept: int, itemsize: int, centroid: str, classes: int) -> int:
    """Upper bound of the payload in bytes."""
    groups = max(kept, 1) if centroid == "column" else 1
    return groups * classes * itemsize + (kept * classes + 7) // 8


def error_bound(values: Values, centroid: str, classes: int) -> Values:
    """How far each magnitude lies from its centroid, or from the farthest that a column could have."""
    info = np.finfo(values.dtype)
    if not np.isfinite(values).all() or len(values) == 0:
        return np.full_like(values, np.inf)
    sizes = np.abs(values)
    if centroid == "column":
        bound = np.maximum(sizes.max() - sizes, sizes - sizes.min())
        # Sums of float64 that overflow make the largest value a centroid.
        if _sum(sizes) == np.inf:
            bound = np.maximum(bound, info.max - sizes)
        # A mean as computed may lie beyond what it is the mean of.
        with np.errstate(over="ignore"):
            bound = bound + sizes.max() * (len(sizes) * 2.0**-52)
    else:
        upper = sizes.astype(np.float64) > (_sum(sizes) / len(sizes) if classes == 2 else np.inf)
        bound = np.empty_like(values)
        for members in (upper, ~upper):
            if members.any():
                bound[members] = np.abs(sizes[members] - _centroid(sizes[members], centroid))
    with np.errstate(under="ignore", over="ignore"):
        bound = np.minimum(bound * (1 + 2 * info.eps) + info.smallest_subnormal, info.max)
    rounded: Values = bound.astype(values.dtype)
    return rounded


def _sum(sizes: Values) -> float:
    """In binary64 and in their order, as the kernel adds."""
    with np.errstate(over="ignore"):
        return float(np.cumsum(sizes, dtype=np.float64)[-1])


def _centroid(sizes: Values, centroid: str) -> Any:
    if centroid == "min":
        nonzero = sizes[sizes > 0]
        return nonzero.min() if len(nonzero) else sizes.dtype.type(0)
    mean = _sum(sizes) / len(sizes)
    return sizes.dtype.type(min(mean, float(np.finfo(sizes.dtype).max)))


def _columns(support: Support, centroid: str) -> tuple[Positions | None, int, int]:
    """Positions, columns and numel where every column has centroids of its own; the one row of a vector has one set."""
    view = support.view
    if centroid != "column" or view.rows == 1:
        return None, 0, 0
    return support.positions, view.columns, view.numel
