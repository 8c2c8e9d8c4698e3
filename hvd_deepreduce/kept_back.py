"""What was sent, taken off what is kept back, and given back to it; an overflow ends at the largest finite value.

Sums of a gradient and a residual that overflow are refused before anything is chosen. These can overflow only where a
receiver decodes something of the opposite sign, as with `bloom(policy="naive")`, which gives positions the values of
others: largest - (-largest) would stay in the residual as an infinity for ever.
"""

from __future__ import annotations

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.sparse import Positions, SparseGradient, Values


def take_off(residual: Values, sent: SparseGradient) -> None:
    """residual -= sent."""
    in_order = sent.by_position()
    _native.subtract_at(residual, in_order.support.positions, in_order.values)
    _limit(residual, in_order.support.positions)


def give_back(residual: Values, sent: SparseGradient) -> None:
    """residual += sent."""
    in_order = sent.by_position()
    _native.scatter_add(residual, in_order.support.positions, in_order.values, 1.0)
    _limit(residual, in_order.support.positions)


def _limit(residual: Values, positions: Positions) -> None:
    here = _native.gather(residual, positions)
    if not _native.all_finite(here):
        largest = np.finfo(residual.dtype).max
        residual[positions] = np.clip(here, -largest, largest)
