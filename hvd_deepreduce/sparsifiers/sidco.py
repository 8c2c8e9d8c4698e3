"""A threshold from a distribution fitted in stages (SIDCo: Abdelmoniem et al., arXiv 2101.10761, sections 2 and 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from hvd_deepreduce import _native
from hvd_deepreduce.checks import require_fraction
from hvd_deepreduce.contracts import Sparsifier
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support, Values

_STAGE_SHARE: Final = 0.25
_TOLERANCE: Final = 0.2
_MAX_STAGES: Final = 12


@dataclass(frozen=True)
class Sidco(Sparsifier):
    """Keeps about density * numel elements, without ever sorting: as many passes over the gradient as stages.

    Magnitudes above a threshold are taken for exponential, so their mean excess tells where the next quarter of them
    begins; the last stage goes for what is left of the density. No tail is quite exponential, and more stages follow
    one better: a step that misses the density by more than 20 % gives the tensor one more for the next.
    """

    density: float = 0.01

    name: ClassVar[str] = "sidco"

    def __post_init__(self) -> None:
        require_fraction("sidco", "density", self.density)
        object.__setattr__(self, "density", float(self.density))  # equal settings are spelled, and fingerprinted, alike

    def slot_sizes(self, numel: int) -> Mapping[str, int]:
        return {"stages": 1}

    def threshold(self, values: Values, stages: int) -> float:
        """Where the stages end."""
        threshold, left = 0.0, self.density
        for stage in range(stages):
            share = left if stage == stages - 1 else max(left, _STAGE_SHARE)
            count, excess = _native.exceedance(values, threshold)
            if count == 0:
                break
            threshold += excess / count * math.log(1 / share)
            left /= share
        return threshold

    def sparsify(self, compensated: Values, view: MatrixView, draw: Draw, slots: Mapping[str, Values]) -> Support:
        stages = max(1, int(slots["stages"][0]))
        positions = _native.select_above(compensated, self.threshold(compensated, stages))
        wanted = self.density * view.numel
        most = min(_MAX_STAGES, 1 + math.floor(math.log(self.density) / math.log(_STAGE_SHARE)))
        if abs(len(positions) - wanted) > _TOLERANCE * wanted:
            stages += 1
        slots["stages"][0] = min(stages, most)
        return Support(positions, view)
