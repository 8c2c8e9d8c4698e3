"""Keeps every element that is not zero, for gradients that are sparse by nature (embeddings; DeepReduce, 6.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hvd_deepreduce import _native
from hvd_deepreduce.contracts import Sparsifier
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support, Values


@dataclass(frozen=True)
class KeepNonzero(Sparsifier):
    """Loses nothing by itself; the codecs after it may."""

    name: ClassVar[str] = "none"

    def sparsify(self, compensated: Values, view: MatrixView, draw: Draw, slots: Mapping[str, Values]) -> Support:
        return Support(_native.select_above(compensated, 0.0), view)
