"""Deep Gradient Compression's selection: sampled top-k with a warm-up (Lin et al., arXiv 1712.01887, section 3)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from hvd_deepreduce import _native
from hvd_deepreduce.checks import require_fraction, require_integer
from hvd_deepreduce.contracts import Sparsifier
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support, Values

_WARM_UP_STAGES: Final = 4
_LEAST_ABOVE: Final = 10


@dataclass(frozen=True)
class Dgc(Sparsifier):
    """Keeps at most max(1, round(density * numel)) elements: those above a threshold that a sample estimates, and of
    them the largest, if there are more.

    For the first `warmup` steps the density falls from 25 % by a quarter each time, four times, down to `density`.
    Made for `memory="dgc"`; the gradients then carry momentum, and the optimizer should have none of its own.

    >>> [Dgc(density=0.001, warmup=400).density_at(step) for step in (0, 100, 399, 400)]
    [0.25, 0.0625, 0.00390625, 0.001]
    """

    density: float = 0.001
    sample: float = 0.01
    warmup: int = 0

    name: ClassVar[str] = "dgc"

    def __post_init__(self) -> None:
        require_fraction("dgc", "density", self.density)
        require_fraction("dgc", "sample", self.sample)
        require_integer("dgc", "warmup", self.warmup, minimum=0, maximum=2**63 - 1)
        # Equal settings are spelled, and fingerprinted, alike.
        object.__setattr__(self, "density", float(self.density))
        object.__setattr__(self, "sample", float(self.sample))

    def density_at(self, step: int) -> float:
        """The density of a step."""
        if step >= self.warmup:
            return self.density
        stage = _WARM_UP_STAGES * step // self.warmup
        return max(self.density, 0.25 ** (stage + 1))

    def sparsify(self, compensated: Values, view: MatrixView, draw: Draw, slots: Mapping[str, Values]) -> Support:
        numel, density = view.numel, self.density_at(draw.step)
        kept = min(numel, max(1, round(density * numel)))
        count = min(numel, max(round(self.sample * numel), math.ceil(_LEAST_ABOVE / density)))
        sample = _native.gather(compensated, _native.sample_positions(numel, count))
        threshold = _native.sampled_threshold(sample, max(1, round(density * count)))
        positions = _native.select_above(compensated, threshold)
        if len(positions) > kept:
            positions = positions[_native.select_topk(_native.gather(compensated, positions), kept)]
        return Support(positions, view)
