"""Forgets what is not sent: no error feedback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hvd_deepreduce import _native
from hvd_deepreduce.contracts import Memory
from hvd_deepreduce.sparse import SparseGradient, Values


@dataclass(frozen=True)
class NoMemory(Memory):
    """For comparison, and for sparsifiers that lose nothing. Training at low density needs `Residual`."""

    name: ClassVar[str] = "none"
    slots: ClassVar[tuple[str, ...]] = ()

    def compensate(self, gradient: Values, slots: Mapping[str, Values]) -> Values | None:
        return gradient if _native.all_finite(gradient) else None

    def update(self, compensated: Values, slots: Mapping[str, Values], sent: SparseGradient) -> None:
        pass

    def restore(self, slots: Mapping[str, Values], sent: SparseGradient) -> None:
        pass
