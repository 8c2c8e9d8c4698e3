"""What the jobs share: a small model, each rank's data, and the comparison of ranks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import horovod.torch as hvd
import torch
from torch import nn

from hvd_deepreduce.errors import DeepReduceError


def make_model(seed: int = 0) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        model = nn.Sequential(nn.Linear(20, 24), nn.Tanh(), nn.Linear(24, 16), nn.Tanh(), nn.Linear(16, 4))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return model


def batch_loss(model: nn.Module, rank: int, step: int) -> torch.Tensor:
    """A loss that depends on rank and step alone."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    inputs = torch.randn(8, 20, generator=generator)
    targets = torch.sin(inputs[:, :4] * 2) + 0.1 * torch.randn(8, 4, generator=generator)
    return nn.functional.mse_loss(model(inputs), targets)


def digest(tensors: list[torch.Tensor]) -> bytes:
    sha = hashlib.sha256()
    for tensor in tensors:
        sha.update(tensor.detach().contiguous().view(torch.uint8).numpy().tobytes())
    return sha.digest()


def assert_equal_on_all_ranks(
    tensors: list[torch.Tensor], what: str, process_set: object = hvd.global_process_set
) -> None:
    mine = torch.frombuffer(bytearray(digest(tensors)), dtype=torch.uint8)
    everyone = hvd.allgather(mine, name=f"digest.{what}", process_set=process_set).view(-1, len(mine))
    assert all(torch.equal(row, everyone[0]) for row in everyone), f"replicas differ: {what}"


def run_faults(train: Callable[[str], None], faults: Iterable[str], *, die: bool = False) -> None:
    """Prints what each fault raises and goes on to the next, or ends by it."""
    for fault in faults:
        try:
            train(fault)
        except DeepReduceError as error:
            if die:
                raise
            notes = " ".join(getattr(error, "__notes__", []))
            print(f"CAUGHT {fault} {type(error).__name__}: {error} {notes}", flush=True)
        else:
            print(f"NO ERROR {fault}", flush=True)
