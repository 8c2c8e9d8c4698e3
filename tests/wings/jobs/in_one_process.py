"""The compressed average of several ranks in one process, by the core's pipeline: no bundle, no thread and no Horovod.

For stages that `oracle.py` does not write out; the conformance suite and the golden vectors vouch for these.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hvd_deepreduce import Settings
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.wire.reader import ByteReader


@dataclass
class InOneProcess:
    """Slots of all ranks, by tensor name."""

    settings: Settings
    ranks: int
    shapes: dict[str, tuple[int, ...]]
    step: int = 0
    slots: dict[tuple[str, int], dict[str, np.ndarray]] = field(default_factory=dict)

    def reduce(self, name: str, gradients: list[np.ndarray], factor: float) -> np.ndarray:
        """What every rank's gradient `name` becomes; gradients are flat, float32 or float64."""
        pipeline = Pipeline(self.settings)
        spec = TensorSpec(name, self.shapes[name], gradients[0].dtype.name)
        total = np.zeros_like(gradients[0])
        for rank, gradient in enumerate(gradients):
            slots = self.slots.setdefault((name, rank), pipeline.new_slots(spec))
            draw = Draw(self.settings.seed, name, self.step, rank)
            encoded = pipeline.encode(gradient, spec, slots, draw)
            frame = pipeline.read(ByteReader(encoded.frame, "frame"), spec)
            assert pipeline.add_into(total, frame, spec, draw, factor)
        return total
