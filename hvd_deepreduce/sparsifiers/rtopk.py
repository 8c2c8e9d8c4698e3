"""Keeps some of the largest magnitudes, drawn at random (Barnes et al., rTop-k, arXiv 2005.10761, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hvd_deepreduce import _native
from hvd_deepreduce.checks import require_fraction
from hvd_deepreduce.contracts import Sparsifier
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support, Values


@dataclass(frozen=True)
class RTopK(Sparsifier):
    """Keeps max(1, round(density * numel)) elements, drawn from the `pool` * numel largest magnitudes.

    Every rank draws for itself.
    """

    density: float = 0.01
    pool: float = 0.05

    name: ClassVar[str] = "rtopk"

    def __post_init__(self) -> None:
        require_fraction("rtopk", "density", self.density)
        require_fraction("rtopk", "pool", self.pool)
        if self.pool < self.density:
            raise InvalidSettingError(f"rtopk: pool={self.pool!r}; allowed is density={self.density!r} or more")
        # Equal settings are spelled, and fingerprinted, alike.
        object.__setattr__(self, "density", float(self.density))
        object.__setattr__(self, "pool", float(self.pool))

    def sparsify(self, compensated: Values, view: MatrixView, draw: Draw, slots: Mapping[str, Values]) -> Support:
        kept, pool = (min(view.numel, max(1, round(share * view.numel))) for share in (self.density, self.pool))
        largest = _native.select_topk(compensated, pool)
        return Support(largest[_native.random_support(draw.key(), len(largest), min(kept, len(largest)))], view)
