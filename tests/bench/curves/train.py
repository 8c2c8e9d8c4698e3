"""One training of the demo's net, in one process that plays every rank: the frames, residuals and sums of a job."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import torch
from curves.methods import optimizer_momentum
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.torch.demo.image_data import Images, load
from hvd_deepreduce.torch.demo.residual_net import ResidualNet
from hvd_deepreduce.wire.reader import ByteReader

RANKS, BATCH, RATE, MIN_NUMEL = 2, 128, 0.12, 1024
LOOK_EVERY, LOOK_AT = 50, 2000

images = cache(load)


@dataclass
class Curve:
    """Points of one run: after `steps` steps a rank had sent `sent_bytes`, and `accuracy` of test images were right."""

    steps: list[int] = field(default_factory=list)
    sent_bytes: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    final_accuracy: float = 0.0


class Exchange:
    """The ranks' pipelines for all tensors that are compressed; the rest is averaged as Horovod would."""

    def __init__(self, model: nn.Module, settings: str | None, seed: int):
        self.seed, self.sent_bytes = seed, 0.0
        self.pipeline = None if settings is None else Pipeline(Settings.from_string(settings))
        named = list(model.named_parameters())
        self.specs = [TensorSpec(name, tuple(parameter.shape)) for name, parameter in named]
        self.slots = [
            [self.pipeline.new_slots(spec) if self.pipeline else {} for spec in self.specs] for _ in range(RANKS)
        ]

    def average(self, gradients: list[list[np.ndarray]], step: int) -> list[np.ndarray]:
        """`gradients[rank][tensor]`, flat; counts what a rank sends."""
        if self.pipeline:
            for slots in self.slots:
                big = [(s.numel, own) for s, own in zip(self.specs, slots, strict=True) if s.numel >= MIN_NUMEL]
                self.pipeline.settings.sparsifier.begin_step(big)
        return [self._average_of(place, [own[place] for own in gradients], step) for place in range(len(self.specs))]

    def _average_of(self, place: int, gradients: list[np.ndarray], step: int) -> np.ndarray:
        spec = self.specs[place]
        if self.pipeline is None or spec.numel < MIN_NUMEL:
            self.sent_bytes += 4 * spec.numel
            return sum(gradients) / np.float32(RANKS)
        dense = np.zeros(spec.numel, np.float32)
        for rank, gradient in enumerate(gradients):
            draw = Draw(self.seed, spec.name, step, rank)
            frame = self.pipeline.encode(gradient, spec, self.slots[rank][place], draw).frame
            self.sent_bytes += len(frame) / RANKS
            read = self.pipeline.read(ByteReader(frame, "frame"), spec)
            if not self.pipeline.add_into(dense, read, spec, draw, 1 / RANKS):
                # What a job gets of a gradient that overflowed; a model that diverged guesses one class from then on.
                return np.full(spec.numel, np.nan, np.float32)
        return dense


def train(settings: str | None, seed: int, steps: int, told: Callable[[int], None] = lambda step: None) -> Curve:
    """`told` hears of every step done."""
    torch.manual_seed(seed)
    model = ResidualNet()
    momentum = optimizer_momentum(settings)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=momentum, nesterov=momentum > 0)
    exchange = Exchange(model, settings, seed)
    curve = Curve()
    for step, batches in zip(range(steps), batches_of_ranks(images(), seed), strict=False):
        for group in optimizer.param_groups:
            group["lr"] = RATE * rate_factor(step, steps)
        averages = exchange.average([gradients(model, *batch) for batch in batches], step)
        for parameter, average in zip(model.parameters(), averages, strict=True):
            parameter.grad = torch.from_numpy(average).view(parameter.shape)
        optimizer.step()
        if (step + 1) % LOOK_EVERY == 0 or step + 1 == steps:
            curve.steps.append(step + 1)
            curve.sent_bytes.append(exchange.sent_bytes)
            curve.accuracy.append(accuracy(model, LOOK_AT))
        told(step + 1)
    curve.final_accuracy = accuracy(model, len(images().test_labels))
    return curve


def gradients(model: nn.Module, inputs: Tensor, labels: Tensor) -> list[np.ndarray]:
    model.zero_grad()
    cross_entropy(model(inputs), labels).backward()
    return [p.grad.reshape(-1).numpy().copy() for p in model.parameters() if p.grad is not None]


def batches_of_ranks(data: Images, seed: int) -> Iterator[list[tuple[Tensor, Tensor]]]:
    generator = torch.Generator().manual_seed(seed)
    while True:
        shuffled = torch.randperm(len(data.train_labels), generator=generator)
        for chosen in shuffled[: len(shuffled) // (RANKS * BATCH) * RANKS * BATCH].split(RANKS * BATCH):
            yield [(data.train_images[part], data.train_labels[part]) for part in chosen.split(BATCH)]


def rate_factor(step: int, steps: int) -> float:
    """As in the demo: linear warm-up over the first tenth, then half a cosine."""
    warm_up = max(1, steps // 10)
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up)))


@torch.no_grad()
def accuracy(model: nn.Module, count: int) -> float:
    data = images()
    right = 0
    for first in range(0, count, 500):
        part = slice(first, min(first + 500, count))
        right += int((model(data.test_images[part]).argmax(1) == data.test_labels[part]).sum())
    return right / count
