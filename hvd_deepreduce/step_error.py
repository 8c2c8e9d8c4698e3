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
    whole = left + float(np.sum(values * (values + 2 * at_sent)))
    return math.sqrt(left / whole) if whole > 0 else None
