"""Training in half precision: autocast, and a loss scale that follows the overflows."""

from typing import Any

import torch

from hvd_deepreduce.torch import DeepReduce


class MixedPrecision:
    """Does nothing unless `enabled`: the same loop then trains in full precision.

    On a GPU it is float16, whose narrow range needs the scale. On a CPU it is bfloat16, for which CPUs have
    instructions and which hardly ever overflows.
    """

    def __init__(self, device_type: str, enabled: bool) -> None:
        dtype = torch.float16 if device_type == "cuda" else torch.bfloat16
        self.autocast = torch.autocast(device_type, dtype, enabled=enabled)
        self.scaler = torch.amp.GradScaler(device_type, enabled=enabled)

    def step(self, optimizer: Any, compression: Any) -> None:
        """Stands for `optimizer.step()`, when `optimizer.synchronize()` is done: skips a step that overflowed."""
        scale = self.scaler.get_scale()
        with optimizer.skip_synchronize():
            self.scaler.step(optimizer)
        self.scaler.update()
        if self.scaler.get_scale() < scale and isinstance(compression, DeepReduce):
            compression.rollback()
