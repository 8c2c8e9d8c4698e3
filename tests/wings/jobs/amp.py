"""Mixed precision with forced overflows on one rank: skipped steps must cost nothing but their time.

Every skipped batch is tried again, so that a run with overflows sees the batches that a run without them does.
"""

from __future__ import annotations

from collections.abc import Callable

import horovod.torch as hvd
import torch
from common import assert_equal_on_all_ranks
from torch import nn
from torch.nn.functional import cross_entropy

from hvd_deepreduce.torch import DeepReduce

STEPS = 300
BATCH = 64
SCALE = 16.0
FEATURES, CLASSES = 20, 6
FORCED = tuple(range(5, STEPS, 30))
OVERFLOWING_RANK = 1

Overflow = Callable[[nn.Module, torch.Tensor], torch.Tensor]


def examples(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs, and what a net with fixed random weights makes of them: nothing that a linear model could learn."""
    teacher = torch.Generator().manual_seed(0)
    first = torch.randn(FEATURES, 12, generator=teacher)
    second = torch.randn(12, CLASSES, generator=teacher)
    inputs = torch.randn(count, FEATURES, generator=torch.Generator().manual_seed(seed))
    return inputs, ((inputs @ first).abs() @ second).argmax(1)


class Run:
    """One training, with or without forced overflows."""

    def __init__(self, name: str, text: str, dtype: torch.dtype, growth_interval: int) -> None:
        self.name = name
        self.dtype = dtype
        torch.manual_seed(1)
        self.model = nn.Sequential(
            nn.Linear(FEATURES, 96), nn.ReLU(), nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, CLASSES)
        )
        named = [(f"{name}.{key}", parameter) for key, parameter in self.model.named_parameters()]
        self.scaler = torch.amp.GradScaler("cpu", init_scale=SCALE, growth_interval=growth_interval)
        self.compression = DeepReduce.from_string(
            named, text, name=name, min_numel=65, loss_scale=self.scaler.get_scale
        )
        sgd = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.optimizer = hvd.DistributedOptimizer(sgd, named, compression=self.compression)
        self.skipped: list[int] = []
        self.scales: list[float] = []

    def train(self, overflow: Overflow | None = None) -> Run:
        """`overflow` makes the loss of the first attempt at a forced step overflow."""
        inputs, labels = examples(4096, seed=10 + hvd.rank())
        for step in range(STEPS):
            batch = torch.randint(len(inputs), (BATCH,), generator=torch.Generator().manual_seed(step))
            self.optimizer.param_groups[0]["lr"] = 0.1 * (1 - step / STEPS)
            forcing = overflow if step in FORCED else None
            while not self.attempt(inputs[batch], labels[batch], forcing):
                self.skipped.append(step)
                forcing = None
            self.require_finite_residuals()
        assert self.skipped == (list(FORCED) if overflow else []), f"{self.name}: skipped {self.skipped}"
        assert_equal_on_all_ranks([*self.model.parameters(), torch.tensor(self.scales)], self.name)
        return self

    def attempt(self, inputs: torch.Tensor, labels: torch.Tensor, overflow: Overflow | None) -> bool:
        """As docs/options.md has it; tells whether the step was taken."""
        self.optimizer.zero_grad()
        with torch.autocast("cpu", self.dtype):
            loss = cross_entropy(self.model(inputs), labels)
        if overflow is not None:
            loss = overflow(self.model, loss)
        self.scaler.scale(loss).backward()
        self.optimizer.synchronize()
        self.scaler.unscale_(self.optimizer)
        with self.optimizer.skip_synchronize():
            self.scaler.step(self.optimizer)
        before = self.scaler.get_scale()
        self.scaler.update()
        self.scales.append(before)
        if self.scaler.get_scale() >= before:
            return True
        self.compression.rollback()
        self.require_finite_residuals()
        return False

    def require_finite_residuals(self) -> None:
        for name, slots in self.compression.state_dict()["slots"].items():
            assert slots["residual"].isfinite().all(), f"{self.name}: residual of {name}"

    @torch.no_grad()
    def accuracy(self) -> float:
        inputs, labels = examples(4000, seed=2)
        return float((self.model(inputs).argmax(1) == labels).float().mean())


def loss_overflows(model: nn.Module, loss: torch.Tensor) -> torch.Tensor:
    """All gradients of one rank."""
    return loss * torch.inf if hvd.rank() == OVERFLOWING_RANK else loss


def one_element_overflows(model: nn.Module, loss: torch.Tensor) -> torch.Tensor:
    """One element of one gradient of one rank, in a pass whose other gradients are zero."""
    loss = loss * 0
    if hvd.rank() == OVERFLOWING_RANK:
        element = model[2].weight[3, 4]
        loss = loss + (element - element.detach()) * torch.inf
    return loss


def train_twice(name: str, text: str, dtype: torch.dtype, overflow: Overflow) -> tuple[Run, Run]:
    """Without overflows at one scale, and with them at scales that fall by each and rise by more in between."""
    smooth = Run(f"{name}.smooth", text, dtype, growth_interval=10 * STEPS).train()
    rough = Run(f"{name}.rough", text, dtype, growth_interval=12).train(overflow)
    assert set(smooth.scales) == {SCALE}
    assert min(rough.scales) == SCALE / 2
    assert max(rough.scales) >= 64 * SCALE
    print(f"{name}: test accuracy {smooth.accuracy():.4f} without overflows, {rough.accuracy():.4f} with them")
    assert smooth.accuracy() > 0.7
    return smooth, rough


def same_accuracy() -> None:
    """All gradients of one rank overflow in float16: what the other rank sent comes later, the net learns as well."""
    smooth, rough = train_twice("accuracy", "topk(density=0.05)+rice+qsgd(bits=7)", torch.float16, loss_overflows)
    assert abs(smooth.accuracy() - rough.accuracy()) < 0.02


def same_bits() -> None:
    """Powers of two change no rounding of bfloat16, and nothing is left to come later: the parameters are the same."""
    smooth, rough = train_twice("bits", "topk(density=0.05)+rice+fp16", torch.bfloat16, one_element_overflows)
    for (name, parameter), other in zip(smooth.model.named_parameters(), rough.model.parameters(), strict=True):
        assert torch.equal(parameter, other), name


def main() -> None:
    torch.set_num_threads(1)
    hvd.init()
    same_accuracy()
    same_bits()
    print("AMP ok")


if __name__ == "__main__":
    main()
