"""Sends what is large against its variance (Tsuzuku et al., arXiv 1802.06058, section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hvd_deepreduce.checks import require_number
from hvd_deepreduce.contracts import Sparsifier
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support, Values


@dataclass(frozen=True)
class Variance(Sparsifier):
    """Keeps element i where r_i^2 > alpha * v_i: r sums its gradients, v their squares, since it was last sent.

    Needs `memory="variance"`, which adds these up. A gradient that keeps its sign for more than alpha steps is sent;
    one that is noise waits. The paper has the squares of single samples, here they are those of a rank's batches.
    """

    alpha: float = 1.5

    name: ClassVar[str] = "variance"
    requires: ClassVar[tuple[str, ...]] = ("squares",)

    def __post_init__(self) -> None:
        require_number("variance", "alpha", self.alpha, minimum=0.0)
        object.__setattr__(
            self, "alpha", float(self.alpha) + 0.0
        )  # equal settings are spelled, and fingerprinted, alike

    def sparsify(self, compensated: Values, view: MatrixView, draw: Draw, slots: Mapping[str, Values]) -> Support:
        limits = np.sqrt(slots["squares"], dtype=compensated.dtype)
        limits *= compensated.dtype.type(np.sqrt(self.alpha))
        positions = np.flatnonzero(np.abs(compensated) > limits)
        return Support(positions.astype(view.position_dtype), view)
