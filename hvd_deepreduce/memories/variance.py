"""Error feedback with a sum of squares beside it, for the sparsifier `variance` (Tsuzuku et al., arXiv 1802.06058)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hvd_deepreduce import _native
from hvd_deepreduce.checks import require_number
from hvd_deepreduce.contracts import Memory
from hvd_deepreduce.kept_back import give_back, take_off
from hvd_deepreduce.sparse import SparseGradient, Values


@dataclass(frozen=True)
class VarianceMemory(Memory):
    """residual <- residual + gradient, less what was sent; squares <- squares + gradient^2, cleared where sent.

    Squares that were not sent decay by `decay` a step, so that an element which once was noisy is sent after all.
    `rollback()` gives back what was sent, but not the squares cleared with it.
    """

    decay: float = 0.999

    name: ClassVar[str] = "variance"
    slots: ClassVar[tuple[str, ...]] = ("residual", "squares")

    def __post_init__(self) -> None:
        require_number("variance", "decay", self.decay, minimum=0.0, maximum=1.0)
        object.__setattr__(
            self, "decay", float(self.decay) + 0.0
        )  # equal settings are spelled, and fingerprinted, alike

    def compensate(self, gradient: Values, slots: Mapping[str, Values]) -> Values | None:
        residual = slots["residual"]
        return residual if _native.add_squares(slots["squares"], residual, gradient) else None

    def update(self, compensated: Values, slots: Mapping[str, Values], sent: SparseGradient) -> None:
        take_off(slots["residual"], sent)
        squares = slots["squares"]
        squares *= squares.dtype.type(self.decay)
        squares[sent.support.positions] = 0

    def restore(self, slots: Mapping[str, Values], sent: SparseGradient) -> None:
        give_back(slots["residual"], sent)
