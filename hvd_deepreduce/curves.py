"""What `fit_poly` and `fit_dexp` have in common: how far a curve through sorted values may be off."""

from __future__ import annotations

import numpy as np

from hvd_deepreduce.sparse import Values

# Of the largest magnitude: what coefficients lose as binary32.
_ROUNDING = 2.0**-16


def error_bound(values: Values) -> Values:
    """Of the same shape and dtype; infinite where a value is a NaN or an infinity.

    A decoded magnitude lies between the lowest and the highest of its sign. And the sum of squared errors is at most
    that of the straight line from the highest to the lowest, which both codecs could have taken, but for roundings.
    """
    if not np.isfinite(values).all():
        return np.full_like(values, np.inf)
    bound = np.zeros_like(values)
    for side in (values >= 0, values < 0):
        if side.any():
            bound[side] = _side_bound(np.abs(values[side]))
    return bound


def _side_bound(magnitudes: Values) -> Values:
    highest, lowest = np.longdouble(magnitudes.max()), np.longdouble(magnitudes.min())
    if highest == lowest:
        return np.zeros_like(magnitudes)
    wide = magnitudes.astype(np.longdouble)
    line = np.linspace(highest, lowest, len(wide))
    line_error = np.sqrt(np.sum(((np.sort(wide)[::-1] - line) / highest) ** 2)) * highest
    within = np.minimum(np.maximum(highest - wide, wide - lowest), line_error + _ROUNDING * highest)
    # Upwards, since a bound that was rounded down would be none.
    with np.errstate(over="ignore", under="ignore"):
        above = np.nextafter(within.astype(magnitudes.dtype), magnitudes.dtype.type(np.inf))
    return np.minimum(above, np.finfo(magnitudes.dtype).max)


def permutation_size(kept: int) -> int:
    """Bytes of the order of so many values."""
    return (kept * max(0, kept - 1).bit_length() + 7) // 8
