"""Keeps magnitudes above a constant (Strom 2015; as total error minimisation: Sahu et al., arXiv 2108.00951)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hvd_deepreduce import _native
from hvd_deepreduce.checks import require_number
from hvd_deepreduce.contracts import Sparsifier
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support, Values


@dataclass(frozen=True)
class Threshold(Sparsifier):
    """Keeps the elements with |element| > value; how many these are differs from step to step, and may be none."""

    value: float = 0.001

    name: ClassVar[str] = "threshold"

    def __post_init__(self) -> None:
        require_number("threshold", "value", self.value, minimum=0.0)
        object.__setattr__(
            self, "value", float(self.value) + 0.0
        )  # equal settings are spelled, and fingerprinted, alike

    def sparsify(self, compensated: Values, view: MatrixView, draw: Draw, slots: Mapping[str, Values]) -> Support:
        return Support(_native.select_above(compensated, self.value), view)
