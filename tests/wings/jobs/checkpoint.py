"""Saving and going on, loss scaling, rollback: what must survive from step to step and from process to process."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import horovod.torch as hvd
import numpy as np
import pytest
import torch
from common import assert_equal_on_all_ranks, batch_loss, digest, make_model
from torch import nn

from hvd_deepreduce.errors import StateMismatchError
from hvd_deepreduce.torch import DeepReduce, tensors

TEXTS = {
    "topk": "topk(density=0.05)+rice+qsgd(bits=5)",
    "dropping": "dropping(rate=0.9, sample=0.2, scope='global')+rice+qsgd(bits=5)",
}
HALF = 25


def make(settings: str) -> tuple[nn.Module, DeepReduce, torch.optim.Optimizer]:
    model = make_model()
    compression = DeepReduce.from_string(model.named_parameters(), TEXTS[settings], min_numel=30, seed=4, overlap=True)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return model, compression, hvd.DistributedOptimizer(sgd, model.named_parameters(), compression=compression)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        optimizer.zero_grad()
        batch_loss(model, hvd.rank(), step).backward()
        optimizer.step()


def first(folder: Path, settings: str) -> None:
    """Saves half way, goes on to the end, and writes down where that led."""
    model, compression, optimizer = make(settings)
    train(model, optimizer, range(HALF))
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "deepreduce": compression.state_dict()}
    torch.save(state, folder / f"state{hvd.rank()}.pt")
    train(model, optimizer, range(HALF, 2 * HALF))
    (folder / f"end{hvd.rank()}").write_bytes(everything(model, compression))


def second(folder: Path, settings: str) -> None:
    """Goes on in new processes and must end in the same bits."""
    model, compression, optimizer = make(settings)
    state = torch.load(folder / f"state{hvd.rank()}.pt", weights_only=True)
    refuse(compression, torch.load(folder / f"state{1 - hvd.rank()}.pt", weights_only=True)["deepreduce"])
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    compression.load_state_dict(state["deepreduce"])
    train(model, optimizer, range(HALF, 2 * HALF))
    assert everything(model, compression) == (folder / f"end{hvd.rank()}").read_bytes()


def everything(model: nn.Module, compression: DeepReduce) -> bytes:
    slots = compression.state_dict()["slots"]
    return digest([*model.parameters(), *(slot["residual"] for slot in slots.values())])


def refuse(compression: DeepReduce, other_rank: dict[str, object]) -> None:
    rank = hvd.rank()
    own = compression.state_dict()

    def with_residual(residual: torch.Tensor) -> dict[str, object]:
        return {**own, "slots": {**own["slots"], "0.weight": {"residual": residual}}}

    for state, message in (
        (other_rank, f"the state is of rank {1 - rank}, here it is {rank}; each rank saves and loads its own state"),
        ({"version": 9}, "this is no state of DeepReduce"),
        ({"version": 1}, "the state has no 'identity'"),
        ({**own, "steps": ["x"]}, r"steps \['x'\]; needed is one number for each bucket"),
        ({**own, "slots": {}}, "residual is missing"),
        (with_residual(torch.ones(1)), r"tensor '0.weight': residual has shape \(1,\)"),
        (with_residual(torch.ones(480, dtype=torch.float64)), "dtype torch.float64; needed are"),
        (with_residual(torch.full((480,), torch.nan)), "tensor '0.weight': residual holds a NaN"),
    ):
        with pytest.raises(StateMismatchError, match=message):
            compression.load_state_dict(state)
        after = compression.state_dict()
        assert after["steps"] == own["steps"]
        for name, slots in after["slots"].items():
            assert torch.equal(slots["residual"], own["slots"][name]["residual"])


def scaled() -> None:
    """With powers of two as scales, scaled training is unscaled training to the last bit."""
    ends = []
    for scales in ([1.0], [1024.0, 2.0, 65536.0]):
        parameter = nn.Parameter(torch.zeros(40, 50))
        scale = [1.0]
        compression = DeepReduce(
            [("w", parameter)], "topk(density=0.1)", name=f"scaled{len(ends)}", loss_scale=lambda scale=scale: scale[0]
        )
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD([parameter], lr=0.1), [(f"w{len(ends)}", parameter)], compression=compression
        )
        for step in range(12):
            parameter.grad = None
            scale[0] = scales[step % len(scales)]
            target = torch.randn(40, 50, generator=torch.Generator().manual_seed(10 * step + hvd.rank()))
            ((parameter - target).pow(2).sum() * scale[0]).backward()
            optimizer.synchronize()
            parameter.grad /= scale[0]
            with optimizer.skip_synchronize():
                optimizer.step()
        assert_equal_on_all_ranks([parameter.detach()], f"scaled{len(ends)}")
        ends.append(parameter.detach().clone())
    assert torch.equal(*ends)


def rolled_back() -> None:
    """What a skipped step sent is back in the residual; the tensor that was not finite keeps its own."""
    parameters = [(name, nn.Parameter(torch.zeros(30, 40))) for name in ("good", "bad")]
    compression = DeepReduce(parameters, "topk(density=0.1)", "rice", "raw", name="rollback")
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD([p for _, p in parameters], lr=1.0), parameters, compression=compression
    )
    for step in range(4):
        overflow = step == 2
        before = residuals(compression) if step else {}
        for place, (name, parameter) in enumerate(parameters):
            gradient = torch.randn(
                30, 40, generator=torch.Generator().manual_seed(100 * step + 10 * place + hvd.rank())
            )
            if overflow and name == "bad" and hvd.rank() == 0:
                gradient[3, 4] = float("inf")
            parameter.grad = None
            (parameter * gradient).sum().backward()
        optimizer.synchronize()
        if overflow:
            assert parameters[1][1].grad.isnan().all()
            compression.rollback()
            if hvd.rank() == 0:
                np.testing.assert_array_equal(residuals(compression)["bad"], before["bad"])
            gradient = torch.randn(30, 40, generator=torch.Generator().manual_seed(100 * step + hvd.rank()))
            np.testing.assert_array_equal(residuals(compression)["good"], before["good"] + gradient.flatten().numpy())
            compression.rollback()  # a second one has nothing left to take back
            np.testing.assert_array_equal(residuals(compression)["good"], before["good"] + gradient.flatten().numpy())
            continue
        with optimizer.skip_synchronize():
            optimizer.step()
        for slot in residuals(compression).values():
            assert np.isfinite(slot).all()


def rested() -> None:
    """A rollback takes back the last step alone, not what a bucket that rested in it had sent before."""
    parameters = [(name, nn.Parameter(torch.zeros(30, 40))) for name in ("rested.a", "rested.b")]
    compression = DeepReduce(parameters, "topk(density=0.1)", "rice", "raw", name="rested", bucket_bytes=1)
    after = {}
    for name, parameter in parameters:
        optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD([parameter], lr=1.0), [(name, parameter)], compression=compression
        )
        (parameter * torch.randn(30, 40, generator=torch.Generator().manual_seed(hvd.rank()))).sum().backward()
        optimizer.step()
        after[name] = residuals(compression)[name].copy()
    compression.rollback()
    np.testing.assert_array_equal(residuals(compression)["rested.a"], after["rested.a"])
    assert np.count_nonzero(residuals(compression)["rested.b"]) > np.count_nonzero(after["rested.b"])


def residuals(compression: DeepReduce) -> dict[str, np.ndarray]:
    return {name: slot["residual"].numpy() for name, slot in compression.state_dict()["slots"].items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--settings", choices=TEXTS, default="topk")
    parser.add_argument("--device-stages", action="store_true", help="work on gradients where a GPU's would be")
    options = parser.parse_args()
    torch.set_num_threads(1)
    hvd.init()
    parts = {
        "first": partial(first, options.folder, options.settings),
        "second": partial(second, options.folder, options.settings),
        "scaled": scaled,
        "rolled_back": rolled_back,
        "rested": rested,
    }
    if options.device_stages:
        tensors.handles = lambda parameter: True
    for part in options.parts:
        parts[part]()
    print("CHECKPOINT ok")


if __name__ == "__main__":
    main()
