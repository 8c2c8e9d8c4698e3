"""Gradients as training makes them, taken on the spot: of the demo's net, in one process."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy

from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.torch.demo.image_data import load
from hvd_deepreduce.torch.demo.residual_net import ResidualNet

BATCH = 64
LEARNING_RATE = 0.05

Gradients = dict[str, NDArray[np.float32]]


def capture(steps: int, density: float | None, progress: Callable[[int], None], seed: int = 0) -> Gradients:
    """The gradients of step `steps`, by layer and in the layers' own shapes.

    With a density they are what is coded in training: gradient plus residual, after steps in which that share of the
    elements was sent. Without, plain gradients. `progress` is told the steps done.
    """
    images = load()
    torch.manual_seed(seed)
    model = ResidualNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    settings = Settings.of("none" if density is None else f"topk(density={density})", "rice", "raw", "residual")
    pipeline = Pipeline(settings)
    specs = {name: TensorSpec(name, tuple(parameter.shape)) for name, parameter in model.named_parameters()}
    slots = {name: pipeline.new_slots(spec) for name, spec in specs.items()}
    generator = torch.Generator().manual_seed(seed)
    taken: Gradients = {}
    for step in range(steps):
        chosen = torch.randint(len(images.train_labels), (BATCH,), generator=generator)
        model.zero_grad()
        cross_entropy(model(images.train_images[chosen]), images.train_labels[chosen]).backward()  # type: ignore[no-untyped-call]
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None
            flat = parameter.grad.view(-1).numpy()
            residual = slots[name]["residual"]
            taken[name] = (flat + residual).reshape(parameter.shape)
            sent = residual + flat
            pipeline.encode(flat, specs[name], slots[name], Draw(seed, name, step, 0))
            flat[:] = sent - residual
        optimizer.step()
        progress(step + 1)
    return taken
