"""Trains small models with residual + top-k and saves the compensated gradients, in the layers' shapes, as .npy files.

One process, no Horovod: what is decoded of a step's own gradient is what the parameters are moved by.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import TensorSpec, Values
from hvd_deepreduce.torch.demo.image_data import load

ROOT = Path(__file__).parents[2]
Losses = Iterator[Callable[[], Tensor]]


def images(batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    data = load()
    while True:
        for chosen in torch.randperm(len(data.train_images)).split(batch):
            yield data.train_images[chosen], data.train_labels[chosen]


def classifier_losses(model: nn.Module, batch: int) -> Losses:
    for inputs, labels in images(batch):
        yield lambda x=inputs, y=labels: functional.cross_entropy(model(x), y)


def mlp(batch: int) -> tuple[nn.Module, Losses]:
    layers = [nn.Flatten(), nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 2048), nn.ReLU(), nn.Linear(2048, 10)]
    model = nn.Sequential(*layers)
    return model, classifier_losses(model, batch)


class Block(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int):
        super().__init__()
        self.first = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width)])
        self.stride, self.more = stride, width - inputs

    def forward(self, x: Tensor) -> Tensor:
        y = self.norms[1](self.second(torch.relu(self.norms[0](self.first(x)))))
        shortcut = functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.more))
        return torch.relu(y + shortcut)


def resnet20(batch: int) -> tuple[nn.Module, Losses]:
    blocks: list[nn.Module] = [nn.Conv2d(1, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    inputs = 16
    for width in (16, 32, 64):
        for number in range(3):
            blocks.append(Block(inputs, width, 2 if width > inputs and number == 0 else 1))
            inputs = width
    model = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return model, classifier_losses(model, batch)


class CharacterModel(nn.Module):
    def __init__(self, hidden: int = 512):
        super().__init__()
        self.embedding = nn.Embedding(128, 64)
        self.lstm = nn.LSTM(64, hidden, num_layers=2, batch_first=True)
        self.output = nn.Linear(hidden, 128)

    def forward(self, text: Tensor) -> Tensor:
        result: Tensor = self.output(self.lstm(self.embedding(text))[0])
        return result


def lstm(batch: int) -> tuple[nn.Module, Losses]:
    model = CharacterModel()
    sources = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("hvd_deepreduce/**/*.py"), *ROOT.glob("*.md")])
    text = torch.tensor(list(b"".join(path.read_bytes() for path in sources))).clamp(max=127)

    def losses() -> Losses:
        while True:
            starts = torch.randint(len(text) - 33, (batch,))
            lines = torch.stack([text[start : start + 33] for start in starts])
            yield lambda x=lines: functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())

    return model, losses()


class CollaborativeFilter(nn.Module):
    """Neural collaborative filtering (He et al. 2017), its multi-layer half."""

    def __init__(self, users: int, items: int, width: int = 32):
        super().__init__()
        self.users, self.items = nn.Embedding(users, width), nn.Embedding(items, width)
        self.layers = nn.Sequential(nn.Linear(2 * width, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        scores: Tensor = self.layers(torch.cat([self.users(user), self.items(item)], 1)).squeeze(1)
        return scores


def ncf(batch: int) -> tuple[nn.Module, Losses]:
    users, items = 16384, 8192
    model = CollaborativeFilter(users, items)
    rng = np.random.default_rng(1)
    taste, kind = rng.integers(8, size=users), rng.integers(8, size=items)
    user_place, item_place = rng.permutation(users), rng.permutation(items)

    def losses() -> Losses:
        while True:
            user = user_place[rng.zipf(1.2, batch) % users]
            item = np.where(
                rng.random(batch) < 0.5, item_place[rng.zipf(1.2, batch) % items], rng.integers(items, size=batch)
            )
            liked = (taste[user] == kind[item]) ^ (rng.random(batch) < 0.1)
            u, i, y = (torch.from_numpy(a) for a in (user, item, liked.astype(np.float32)))
            yield lambda u=u, i=i, y=y: functional.binary_cross_entropy_with_logits(model(u, i), y)

    return model, losses()


MODELS = {"mlp": (mlp, 64), "resnet20": (resnet20, 64), "lstm": (lstm, 32), "ncf": (ncf, 1024)}
"""By name, with the usual batch."""


def captured(
    name: str, rate: float, density: float, steps: list[int], batch: int | None = None
) -> Iterator[tuple[int, int, Values]]:
    """Step, number of the layer, and what is coded then: gradient plus residual, in the layer's own shape."""
    torch.manual_seed(0)
    make, usual_batch = MODELS[name]
    model, losses = make(batch or usual_batch)
    pipeline = Pipeline(Settings.of(f"topk(density={density})", "raw", "raw", "residual"))
    layers = list(model.named_parameters())
    specs = [TensorSpec(layer, tuple(parameter.shape)) for layer, parameter in layers]
    slots = [pipeline.new_slots(spec) for spec in specs]
    for step in range(max(steps) + 1):
        loss = next(losses)()
        model.zero_grad()
        loss.backward()
        for place, (spec, own, (_, parameter)) in enumerate(zip(specs, slots, layers, strict=True)):
            gradient = parameter.grad.detach().numpy().ravel()
            if step in steps and spec.numel >= 1000:
                yield step, place, (own["residual"] + gradient).reshape(spec.shape)
            before = own["residual"] + gradient
            pipeline.encode(gradient, spec, own, Draw())
            with torch.no_grad():
                parameter -= rate * torch.from_numpy((before - own["residual"]).reshape(spec.shape))
        if step % 50 == 0:
            what = f"{name}, batch {batch or usual_batch}, rate {rate}, density {density}"
            print(f"{what}, step {step}: loss {loss.item():.3f}", file=sys.stderr, flush=True)


def capture(name: str, batch: int | None, rate: float, density: float, steps: list[int], folder: Path) -> None:
    for step, place, compensated in captured(name, rate, density, steps, batch):
        np.save(folder / f"{name}_lr{rate}_d{density}_step{step}_layer{place}.npy", compensated)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "build" / "gradients")
    parser.add_argument("--model", choices=list(MODELS), nargs="+", default=list(MODELS))
    parser.add_argument("--batch", type=int, help="examples a step (default: 64, lstm 32, ncf 1,024)")
    parser.add_argument("--rate", type=float, nargs="+", default=[0.05])
    parser.add_argument("--density", type=float, nargs="+", default=[0.01, 0.001, 0.1])
    parser.add_argument("--steps", type=int, nargs="+", default=[100])
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name, density, rate in product(arguments.model, arguments.density, arguments.rate):
        capture(name, arguments.batch, rate, density, arguments.steps, arguments.folder)


if __name__ == "__main__":
    main()
