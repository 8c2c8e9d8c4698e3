"""Everything stock `hvd.DistributedOptimizer` can be asked for: equal replicas, equal to the oracle."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any

import horovod.torch as hvd
import numpy as np
import torch
from common import assert_equal_on_all_ranks, batch_loss, make_model
from oracle import Oracle
from torch import nn

from hvd_deepreduce import Settings
from hvd_deepreduce.torch import DeepReduce, tensors

Loss = Callable[[nn.Module, int, int], torch.Tensor]
TEXT = "topk(density=0.1)+rice+qsgd(bits=6, bucket=64)+residual"
STEPS = 6
SUBSET = (0, 2)  # of three ranks
VALUE_DTYPE = {torch.float64: np.float64}


def flat(gradient: torch.Tensor) -> np.ndarray:
    """Row-major, in the value dtype; a copy."""
    if gradient.is_sparse:
        gradient = gradient.to_dense()
    return gradient.reshape(-1).to(torch.float64 if gradient.dtype == torch.float64 else torch.float32).numpy().copy()


def train(
    case: str,
    make: Callable[[], nn.Module],
    loss: Loss,
    *,
    text: str = TEXT,
    passes: int = 1,
    set_to_none: bool = True,
    optimizer_options: dict[str, Any] | None = None,
    **options: Any,
) -> tuple[nn.Module, DeepReduce]:
    model = make()
    compression = DeepReduce.from_string(
        model.named_parameters(), text, name=case, **{"min_numel": 30, "overlap": True, **options}
    )
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        model.named_parameters(),
        compression=compression,
        backward_passes_per_step=passes,
        **(optimizer_options or {}),
    )
    for step in range(STEPS):
        # Stock Horovod's zero_grad takes no argument; the model's does.
        model.zero_grad(set_to_none=set_to_none)
        for micro in range(passes):
            loss(model, hvd.rank(), step * passes + micro).backward()
        optimizer.step()
    return model, compression


def train_alone(
    make: Callable[[], nn.Module],
    loss: Loss,
    ranks: Sequence[int],
    *,
    text: str = TEXT,
    passes: int = 1,
    average: bool = True,
    min_numel: int = 30,
) -> nn.Module:
    model = make()
    oracle = Oracle(Settings.from_string(text), len(ranks))
    factor = 1 / len(ranks) if average else 1.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        oracle.step = step
        everyone = []
        for rank in ranks:
            model.zero_grad()
            for micro in range(passes):
                loss(model, rank, step * passes + micro).backward()
            zeros = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
            everyone.append([flat(gradient) for gradient in zeros])
        for place, (name, parameter) in enumerate(model.named_parameters()):
            gradients = [gradient[place] for gradient in everyone]
            if parameter.numel() < min_numel:
                reduced = np.sum(gradients, axis=0) * factor
            else:
                reduced = oracle.reduce(name, gradients, factor)
            parameter.grad = torch.from_numpy(reduced).view(parameter.shape).to(parameter.dtype)
        optimizer.step()
    return model


def assert_same(case: str, model: nn.Module, alone: nn.Module, process_set: object = hvd.global_process_set) -> None:
    assert_equal_on_all_ranks([p.detach() for p in model.parameters()], case, process_set)
    for (name, mine), expected in zip(model.named_parameters(), alone.parameters(), strict=True):
        tolerance = (
            {"rtol": 1e-2, "atol": 1e-2}
            if mine.dtype in (torch.float16, torch.bfloat16)
            else {"rtol": 1e-4, "atol": 1e-6}
        )
        torch.testing.assert_close(mine, expected, **tolerance, msg=lambda m, n=name: f"{case}: {n}: {m}")


def everyone() -> list[int]:
    return list(range(hvd.size()))


class Branches(nn.Module):
    """Odd ranks never use the second branch."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = make_model(1), make_model(2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.first(inputs) + self.second(inputs)


def branch_loss(model: nn.Module, rank: int, step: int) -> torch.Tensor:
    return batch_loss(model if rank % 2 == 0 else model.first, rank, step)


class Words(nn.Module):
    """A sparse embedding under a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 8, sparse=True)
        self.linear = nn.Linear(8, 8)
        generator = torch.Generator().manual_seed(5)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))


def word_loss(model: nn.Module, rank: int, step: int) -> torch.Tensor:
    words = torch.randint(0, 50, (6,), generator=torch.Generator().manual_seed(100 * step + rank))
    return model.linear(model.embedding(words)).pow(2).mean()


def make_convolution() -> nn.Module:
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.Tanh(), nn.Flatten(), nn.Linear(6 * 36, 4))
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2)
    return model.to(memory_format=torch.channels_last)


def image_loss(model: nn.Module, rank: int, step: int) -> torch.Tensor:
    images = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(100 * step + rank))
    return model(images.contiguous(memory_format=torch.channels_last)).pow(2).mean()


def check_reductions() -> None:
    model, _ = train("sum", make_model, batch_loss, optimizer_options={"op": hvd.Sum})
    assert_same("sum", model, train_alone(make_model, batch_loss, everyone(), average=False))
    expected = train_alone(make_model, batch_loss, everyone())
    model, _ = train("predivide", make_model, batch_loss, optimizer_options={"gradient_predivide_factor": 3.0})
    assert_same("predivide", model, expected)
    model, _ = train("groups", make_model, batch_loss, optimizer_options={"groups": 2})
    assert_same("groups", model, expected)
    model, _ = train("small_buckets", make_model, batch_loss, bucket_bytes=1)
    assert_same("small_buckets", model, expected)
    model, _ = train("keep_gradients", make_model, batch_loss, set_to_none=False)
    assert_same("keep_gradients", model, expected)
    model, _ = train("accumulation", make_model, batch_loss, passes=3)
    assert_same("accumulation", model, train_alone(make_model, batch_loss, everyone(), passes=3))


def check_process_set(subset: hvd.ProcessSet | None) -> None:
    if subset is None:
        return
    if subset.included():
        model, _ = train(
            "subset", make_model, batch_loss, process_set=subset, optimizer_options={"process_set": subset}
        )
        assert_same("subset", model, train_alone(make_model, batch_loss, SUBSET), subset)


def check_models() -> None:
    model, _ = train("branches", Branches, branch_loss)
    assert_same("branches", model, train_alone(Branches, branch_loss, everyone()))
    model, _ = train("words", Words, word_loss, optimizer_options={"sparse_as_dense": True})
    assert_same("words", model, train_alone(Words, word_loss, everyone()))
    model, _ = train("channels_last", make_convolution, image_loss)
    assert_same("channels_last", model, train_alone(make_convolution, image_loss, everyone()))


def check_dtypes() -> None:
    for dtype in (torch.float64, torch.bfloat16, torch.float16):

        def make(dtype: torch.dtype = dtype) -> nn.Module:
            layer = make_model(3)[0]
            return nn.ParameterList([layer.weight.detach().to(dtype), layer.bias.detach().to(dtype)])

        def loss(model: nn.Module, rank: int, step: int) -> torch.Tensor:
            target = torch.randn(24, 20, generator=torch.Generator().manual_seed(100 * step + rank))
            return (model[0] - target.to(model[0].dtype)).pow(2).sum() + (model[1] * rank).sum()

        model, _ = train(f"{dtype}", make, loss)
        assert_same(f"{dtype}", model, train_alone(make, loss, everyone()))


def check_two_models() -> None:
    models = [make_model(4), make_model(5)]
    optimizers = [
        hvd.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=0.1),
            [(f"{number}.{name}", parameter) for name, parameter in model.named_parameters()],
            compression=DeepReduce.from_string(model.named_parameters(), TEXT, name=f"two.{number}", min_numel=30),
        )
        for number, model in enumerate(models)
    ]
    for step in range(STEPS):
        for model in models:
            model.zero_grad()
        # Ranks visit the two in different orders, and both have gradients under way at once.
        for model in models if hvd.rank() % 2 else models[::-1]:
            batch_loss(model, hvd.rank(), step).backward()
        for optimizer in optimizers:
            optimizer.step()
    for number, model in enumerate(models):
        alone = train_alone(lambda number=number: make_model(4 + number), batch_loss, everyone())
        assert_same(f"two.{number}", model, alone)


def check_not_finite() -> None:
    """One rank's NaN or infinity makes the tensor NaN on all ranks, once; no residual remembers it."""
    for number, bad in enumerate((float("nan"), float("inf"), float("-inf"))):
        case = f"bad.{number}"
        parameter = nn.Parameter(torch.zeros(8, 10))
        compression = DeepReduce([("w", parameter)], "topk(density=0.1)", "rice", "raw", name=case, min_numel=30)
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD([parameter], lr=1.0), [("w", parameter)], compression=compression
        )
        gradients = torch.randn(3, 8, 10, generator=torch.Generator().manual_seed(hvd.rank()))
        for step in range(3):
            parameter.grad = None
            gradient = gradients[step].clone()
            if step == 1 and hvd.rank() == 1:
                gradient[2, 3] = bad
            (parameter * gradient).sum().backward()
            optimizer.synchronize()
            if step == 1:
                assert parameter.grad.isnan().all(), case
            else:
                assert parameter.grad.isfinite().all(), case
            after = compression._session.tensors.at(0).slots["residual"]
            assert np.isfinite(after).all(), case
            if step == 1 and hvd.rank() == 1:
                before = gradients[0].flatten().numpy().copy()
                before[np.argsort(-np.abs(before), kind="stable")[:8]] = 0
                np.testing.assert_array_equal(after, before)
            with optimizer.skip_synchronize():
                optimizer.step()
        assert compression.stats()["total"]["not_finite"] == (hvd.rank() == 1)


def check_empty_selection() -> None:
    model, compression = train("empty", make_model, batch_loss, text="threshold(value=1e9)+rice+qsgd(bits=6)+residual")
    assert compression.stats()["total"]["kept"] == 0
    start = make_model()
    for (name, mine), before in zip(model.named_parameters(), start.parameters(), strict=True):
        assert name.endswith("bias") or torch.equal(mine, before)
    assert_equal_on_all_ranks([p.detach() for p in model.parameters()], "empty")


def check_overlap() -> None:
    """The bytes are the same on either thread; by default the number of cores decides."""
    spare = len(os.sched_getaffinity(0)) > hvd.local_size()
    models = []
    for overlap in (True, False, None):
        # Nothing passes through to Horovod, whose sums over three ranks depend on what it happened to fuse.
        case = f"overlap.{overlap}"
        model, compression = train(case, make_model, batch_loss, overlap=overlap, threads=2, min_numel=1)
        by_default = spare or bool(compression._session.tensors.devices)
        assert compression._session._outbox.overlaps == (by_default if overlap is None else overlap)
        models.append(list(model.parameters()))
    for others in models[1:]:
        assert all(torch.equal(*pair) for pair in zip(models[0], others, strict=True))


def check_random_state() -> None:
    torch.manual_seed(11)
    np.random.seed(11)
    state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()
    train("random", make_model, batch_loss)
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)


class Tied(nn.Module):
    """One weight under two names; ranks come upon their parameters in different orders."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = make_model(1)[2], make_model(2)[2]
        self.third = make_model(3)[2]
        self.third.weight = self.first.weight

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        layers = (self.first, self.second, self.third)
        order = layers if hvd.rank() % 2 else layers[::-1]
        return sum((layer(inputs) for layer in order), torch.zeros(()))


def tied_loss(model: nn.Module, rank: int, step: int) -> torch.Tensor:
    inputs = torch.randn(8, 24, generator=torch.Generator().manual_seed(100 * step + rank))
    return model(inputs).pow(2).mean()


def check_tied_and_frozen_parameters() -> None:
    model = Tied()
    model.second.requires_grad_(False)
    named = list(model.named_parameters(remove_duplicate=False))
    compression = DeepReduce(named, "none", "rice", "raw", "none", name="tied", min_numel=30)
    assert [tensor["name"] for tensor in compression.stats()["tensors"]] == ["first.weight"]
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD([p for _, p in trained], lr=0.1), trained, compression=compression
    )
    for step in range(STEPS):
        model.zero_grad()
        tied_loss(model, hvd.rank(), step).backward()
        optimizer.step()
    alone = Tied()
    dense = torch.optim.SGD([alone.first.weight, alone.first.bias, alone.third.bias], lr=0.1)
    for step in range(STEPS):
        dense.zero_grad()
        (sum(tied_loss(alone, rank, step) for rank in everyone()) / hvd.size()).backward()
        dense.step()
    assert_equal_on_all_ranks([p.detach() for p in model.parameters()], "tied")
    for mine, expected in zip(model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-6)


def check_strides() -> None:
    """Gradients set by hand may be expanded or strided; they are decoded all the same."""
    for case, make in (
        ("expanded", lambda value: torch.full((1,), value).expand(8, 10)),
        ("column", lambda value: torch.full((80, 2), value)[:, :1].view(80)),
    ):
        parameter = nn.Parameter(torch.zeros(make(0.0).shape))
        compression = DeepReduce([("w", parameter)], "none", "rice", "raw", name=case, min_numel=30)
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD([parameter], lr=1.0), [(case, parameter)], compression=compression
        )
        parameter.grad = make(float(hvd.rank() + 1))
        optimizer.synchronize()
        mean = sum(rank + 1 for rank in everyone()) / hvd.size()
        torch.testing.assert_close(parameter.grad, torch.full_like(parameter, mean))
        with optimizer.skip_synchronize():
            optimizer.step()


def check_same_name_twice() -> None:
    """One after the other is fine, and so is one that was made and never used."""
    unused = DeepReduce.from_string(make_model().named_parameters(), "topk(density=0.5)", name="again")
    train("again", make_model, batch_loss)
    model, _ = train("again", make_model, batch_loss)
    assert_same("again", model, train_alone(make_model, batch_loss, everyone()))
    assert unused.stats()["steps"] == 0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device-stages", action="store_true", help="work on gradients where a GPU's would be")
    if parser.parse_args().device_stages:
        tensors.handles = lambda parameter: True
    torch.set_num_threads(1)
    os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"
    hvd.init()
    subset = hvd.add_process_set(list(SUBSET)) if hvd.size() == 3 else None
    check_reductions()
    check_process_set(subset)
    check_models()
    check_dtypes()
    check_two_models()
    check_not_finite()
    check_empty_selection()
    check_random_state()
    check_overlap()
    check_same_name_twice()
    check_tied_and_frozen_parameters()
    check_strides()
    print("OPTIONS ok")


if __name__ == "__main__":
    main()
