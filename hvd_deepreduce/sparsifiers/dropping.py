"""Gradient dropping: magnitudes above a threshold that a sample estimates (Aji & Heafield, arXiv 1704.05021, 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.checks import quoted, require_fraction, require_number
from hvd_deepreduce.contracts import Sparsifier
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support, Values

SCOPES: Final = ("tensor", "global")
# The paper's 0.1 % of a small layer would hold less than one element above the threshold.
_LEAST_ABOVE: Final = 10
_LEAST_SHARED: Final = 32


@dataclass(frozen=True)
class Dropping(Sparsifier):
    """Drops about `rate` of the elements, those of the smallest magnitudes; how many are kept varies.

    A threshold is the magnitude that 1 - rate of a sample exceed. With `scope="tensor"` it is of the tensor at hand,
    and the sample holds the share `sample` of it, or as many elements as are expected to hold ten above the threshold.
    With "global" there is one for the whole model, from samples that all tensors took in the step before (the first
    step has none, and does as "tensor"): for models whose layers are of one scale. Tensors without a gradient count
    too.

    >>> Dropping(rate=0.99).sampled(1_000_000), Dropping(rate=0.99).sampled(20_000_000)
    ((1000, 10), (20000, 200))
    """

    rate: float = 0.99
    sample: float = 0.001
    scope: str = "tensor"

    name: ClassVar[str] = "dropping"

    def __post_init__(self) -> None:
        require_number("dropping", "rate", self.rate, minimum=0.0, maximum=1.0)
        if self.rate == 1:
            raise InvalidSettingError(f"dropping: rate={self.rate!r}; allowed is 0 to below 1")
        require_fraction("dropping", "sample", self.sample)
        if self.scope not in SCOPES:
            raise InvalidSettingError(
                f"dropping: scope={quoted(self.scope)}; allowed are {', '.join(map(repr, SCOPES))}"
            )
        # Equal settings are spelled, and fingerprinted, alike.
        object.__setattr__(self, "rate", float(self.rate) + 0.0)
        object.__setattr__(self, "sample", float(self.sample))

    def sampled(self, numel: int) -> tuple[int, int]:
        """How many elements of a tensor are sampled for its own threshold, and how many of these are to exceed it."""
        least = math.ceil(_LEAST_ABOVE / (1 - self.rate))
        count = min(numel, max(round(self.sample * numel), least))
        return count, max(1, round((1 - self.rate) * count))

    def slot_sizes(self, numel: int) -> Mapping[str, int]:
        if self.scope == "tensor":
            return {}
        return {"sample": min(numel, max(round(self.sample * numel), _LEAST_SHARED)), "threshold": 1}

    def begin_step(self, tensors: Sequence[tuple[int, Mapping[str, Values]]]) -> None:
        """Sets every tensor's threshold to that of the whole model: 0 stands for none yet, -1 for a threshold of 0."""
        if self.scope == "tensor":
            return
        sample = np.concatenate([slots["sample"].astype(np.float64) for _, slots in tensors])
        weights = np.concatenate([np.full(size := len(slots["sample"]), numel / size) for numel, slots in tensors])
        threshold = _weighted_threshold(sample, weights, 1 - self.rate)
        for _, slots in tensors:
            slots["threshold"][0] = threshold or (-1.0 if sample.any() else 0.0)

    def threshold(self, slots: Mapping[str, Values]) -> float | None:
        """That of the whole model, where there is one."""
        if self.scope == "tensor" or slots["threshold"][0] == 0:
            return None
        return max(0.0, float(slots["threshold"][0]))

    def sparsify(self, compensated: Values, view: MatrixView, draw: Draw, slots: Mapping[str, Values]) -> Support:
        numel = view.numel
        if numel == 0:
            return Support(np.empty(0, view.position_dtype), view)
        threshold = self.threshold(slots)
        if threshold is None:
            count, above = self.sampled(numel)
            threshold = _native.sampled_threshold(_sample(compensated, count), above)
        if self.scope == "global":
            slots["sample"][:] = np.abs(_sample(compensated, len(slots["sample"])))
        return Support(_native.select_above(compensated, threshold), view)


def _sample(values: Values, count: int) -> Values:
    return _native.gather(values, _native.sample_positions(len(values), count))


def _weighted_threshold(sample: Values, weights: Values, share: float) -> float:
    """The magnitude above which lies `share` of all weight."""
    order = np.argsort(-sample, kind="stable")
    above = np.cumsum(weights[order])
    place = int(np.searchsorted(above, share * above[-1], side="right"))
    return float(sample[order[min(place, len(order) - 1)]])
