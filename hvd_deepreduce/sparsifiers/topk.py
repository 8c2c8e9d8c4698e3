"""Keeps the largest magnitudes (Aji & Heafield, arXiv 1704.05021; Stich et al. 2018, definition 2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hvd_deepreduce import _native
from hvd_deepreduce.checks import require_fraction
from hvd_deepreduce.contracts import Sparsifier
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support, Values


@dataclass(frozen=True)
class TopK(Sparsifier):
    """Keeps exactly max(1, round(density * numel)) elements, ties by lower position.

    >>> TopK(density=0.01).kept(36864)
    369
    """

    density: float = 0.01

    name: ClassVar[str] = "topk"

    def __post_init__(self) -> None:
        require_fraction("topk", "density", self.density)
        object.__setattr__(self, "density", float(self.density))  # equal settings are spelled, and fingerprinted, alike

    def kept(self, numel: int) -> int:
        """How many of `numel` elements are kept."""
        return min(numel, max(1, round(self.density * numel)))

    def sparsify(self, compensated: Values, view: MatrixView, draw: Draw, slots: Mapping[str, Values]) -> Support:
        return Support(_native.select_topk(compensated, self.kept(view.numel)), view)
