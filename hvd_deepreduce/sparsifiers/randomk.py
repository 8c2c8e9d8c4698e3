"""Keeps elements at random, the same ones on every rank (Stich et al. 2018, definition 2.1)."""

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
class RandomK(Sparsifier):
    """Keeps exactly max(1, round(density * numel)) elements.

    They follow from seed, tensor and step, so positions are not sent and the index codec has nothing to do. Values are
    sent as they are: what is not kept waits in the residual, and there is nothing to make up for.
    """

    density: float = 0.01

    name: ClassVar[str] = "randomk"
    shared: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_fraction("randomk", "density", self.density)
        object.__setattr__(self, "density", float(self.density))  # equal settings are spelled, and fingerprinted, alike

    def shared_support(self, view: MatrixView, draw: Draw) -> Support:
        kept = min(view.numel, max(1, round(self.density * view.numel)))
        return Support(_native.random_support(draw.shared_key(), view.numel, kept), view)

    def sparsify(self, compensated: Values, view: MatrixView, draw: Draw, slots: Mapping[str, Values]) -> Support:
        return self.shared_support(view, draw)
