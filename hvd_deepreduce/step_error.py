"""How far what a rank sent in a step is from what it had to send; needs no gradient, only what the step left behind."""

from __future__ import annotations

import math

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.sparse import SparseGradient, Values


def relative_error(sent: SparseGradient, residual: Values) -> float | None:
    """L2 norm of what was not sent / that of the compensated gradient; None where all of it was zero.

    The compensated gradient is residual + sent, so one pass over the residual and one over what was kept are enough.

    >>> from hvd_deepreduce.sparse import MatrixView, Support
    >>> sent = SparseGradient(Support.checked([1], MatrixView.of_shape((3,))), np.array([12.0], np.float32))
    >>> relative_error(sent, np.array([3.0, 0.0, 4.0], np.float32))
    0.38461538461538464
    """
    in_order = sent.by_position()
    at_sent = _native.gather(residual, in_order.support.positions).astype(np.float64)
    values = in_order.values.astype(np.float64)
    left = _native.sum_of_squares(residual)
    with np.errstate(over="ignore", invalid="ignore"):
        whole = left + float(np.sum(values * (values + 2 * at_sent)))
    if not math.isfinite(whole):
        # Squares of float64 overflow above 1e154; of float32 they don't.
        return _of_large(residual.astype(np.float64), values, at_sent)
    return math.sqrt(left / whole) if whole > 0 else None


def _of_large(residual: Values, values: Values, at_sent: Values) -> float | None:
    largest = max(float(np.abs(part).max(initial=0)) for part in (residual, values))
    if not math.isfinite(largest):
        return None
    residual, values, at_sent = (part / largest for part in (residual, values, at_sent))
    left = float(np.sum(residual**2))
    whole = left + float(np.sum(values * (values + 2 * at_sent)))
    return math.sqrt(left / whole) if whole > 0 else None
