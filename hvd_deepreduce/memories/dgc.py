"""Momentum correction: what is kept back has the momentum it would have had (Lin et al., arXiv 1712.01887, 3.1-3.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hvd_deepreduce import _native
from hvd_deepreduce.checks import require_flag, require_number
from hvd_deepreduce.contracts import Memory
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.kept_back import give_back, take_off
from hvd_deepreduce.sparse import SparseGradient, Values


@dataclass(frozen=True)
class DgcMemory(Memory):
    """u <- momentum * u + gradient; v <- v + u; v is what the sparsifier chooses from, less what was sent.

    Where something was sent u is cleared too, if `masking`, so that stale momentum does not carry on. `clip`, when not
    0, is the largest L2 norm of a tensor's gradient; a larger one is scaled down first. Give the optimizer no momentum
    of its own. `rollback()` gives back what was sent, but not the momentum cleared with it.
    """

    momentum: float = 0.9
    masking: bool = True
    clip: float = 0.0

    name: ClassVar[str] = "dgc"
    slots: ClassVar[tuple[str, ...]] = ("momentum", "residual")

    def __post_init__(self) -> None:
        require_number("dgc", "momentum", self.momentum, minimum=0.0, maximum=1.0)
        if self.momentum == 1:
            raise InvalidSettingError(f"dgc: momentum={self.momentum!r}; allowed is 0 to below 1")
        require_flag("dgc", "masking", self.masking)
        require_number("dgc", "clip", self.clip, minimum=0.0)
        # Equal settings are spelled, and fingerprinted, alike.
        object.__setattr__(self, "momentum", float(self.momentum) + 0.0)
        object.__setattr__(self, "clip", float(self.clip) + 0.0)

    def compensate(self, gradient: Values, slots: Mapping[str, Values]) -> Values | None:
        scale = 1.0
        if self.clip:
            norm = math.sqrt(_native.sum_of_squares(gradient))
            scale = self.clip / norm if norm > self.clip else 1.0
        residual = slots["residual"]
        added = _native.add_momentum(slots["momentum"], residual, gradient, self.momentum, scale)
        return residual if added else None

    def update(self, compensated: Values, slots: Mapping[str, Values], sent: SparseGradient) -> None:
        take_off(slots["residual"], sent)
        if self.masking:
            slots["momentum"][sent.support.positions] = 0

    def restore(self, slots: Mapping[str, Values], sent: SparseGradient) -> None:
        give_back(slots["residual"], sent)
