"""Error feedback: what was not sent is added to the next gradient.

compensated = gradient + residual; residual <- compensated - decoded (Seide et al. 2014; Aji & Heafield, arXiv
1704.05021, section 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hvd_deepreduce import _native
from hvd_deepreduce.contracts import Memory
from hvd_deepreduce.kept_back import give_back, take_off
from hvd_deepreduce.sparse import SparseGradient, Values


@dataclass(frozen=True)
class Residual(Memory):
    """Keeps the residual in one array, which between `compensate` and `update` holds the compensated gradient.

    So no array of dense size is allocated in a step.
    """

    name: ClassVar[str] = "residual"
    slots: ClassVar[tuple[str, ...]] = ("residual",)

    def compensate(self, gradient: Values, slots: Mapping[str, Values]) -> Values | None:
        residual = slots["residual"]
        return residual if _native.compensate(residual, gradient) else None

    def update(self, compensated: Values, slots: Mapping[str, Values], sent: SparseGradient) -> None:
        take_off(slots["residual"], sent)

    def restore(self, slots: Mapping[str, Values], sent: SparseGradient) -> None:
        give_back(slots["residual"], sent)
