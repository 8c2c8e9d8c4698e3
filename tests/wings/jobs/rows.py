"""Sparse gradients through `hvd_deepreduce.torch.DistributedOptimizer`, held against a sum in plain NumPy."""

from __future__ import annotations

import argparse
import hashlib
import os
import struct
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import horovod.torch as hvd
import numpy as np
import torch
from common import assert_equal_on_all_ranks
from oracle import qsgd
from torch import nn

from hvd_deepreduce.torch import DeepReduce, DistributedOptimizer, sparse_parameters

STEPS = 6
WORDS, DIMENSION = 60, 8
LEARNING_RATE = 0.1


class Text(nn.Module):
    """Two tables of rows, the second of which a rank may leave alone, under a linear layer."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, DIMENSION, sparse=True, dtype=dtype)
        self.places = nn.Embedding(WORDS, DIMENSION, sparse=True, dtype=dtype)
        self.linear = nn.Linear(DIMENSION, 4, dtype=dtype)
        generator = torch.Generator().manual_seed(5)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))

    def loss(self, rank: int, step: int, absent: int = -1) -> torch.Tensor:
        """A loss that depends on rank and step alone; row numbers are there many times over."""
        generator = torch.Generator().manual_seed(1000 * step + rank)
        numbers = torch.randint(0, WORDS, (2, 90), generator=generator) ** 2 // WORDS
        hidden = self.words(numbers[0])
        if rank != absent:
            hidden = hidden * self.places(numbers[1])
        return self.linear(torch.tanh(hidden)).pow(2).mean()


def merged(gradient: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers, each once, and their sums in the order given."""
    numbers, values = gradient._indices()[0].numpy(), gradient._values().float().numpy()
    table = np.zeros(gradient.shape, np.float32)
    np.add.at(table, numbers, values)
    unique = np.unique(numbers)
    return unique, table[unique]


class Alone:
    """All ranks' training in one process; residuals by parameter and rank."""

    def __init__(
        self,
        case: str,
        *,
        bits: int = 0,
        residual: bool = False,
        average: bool = True,
        passes: int = 1,
        absent: int = -1,
    ) -> None:
        self.model = Text()
        # Stochastic rounding draws by tensor name.
        self.named = [(f"{case}.{name}", parameter) for name, parameter in self.model.named_parameters()]
        self.bits, self.residual, self.passes, self.absent = bits, residual, passes, absent
        self.factor = 1 / hvd.size() if average else 1.0
        self.kept_back: dict[tuple[str, int], np.ndarray] = {}

    def step(self, step: int) -> None:
        total = {name: np.zeros(tuple(p.shape), np.float32) for name, p in self.named}
        for rank in range(hvd.size()):
            self.model.zero_grad()
            for part in range(self.passes):
                self.model.loss(rank, self.passes * step + part, self.absent).backward()
            for name, parameter in self.named:
                gradient = parameter.grad
                if gradient is None:
                    continue
                if not gradient.is_sparse:
                    total[name] += gradient.numpy() * np.float32(self.factor)
                    continue
                numbers, values = self.sent(name, rank, step, *merged(gradient))
                total[name][numbers] += (values.astype(np.float64) * self.factor).astype(np.float32)
        with torch.no_grad():
            for name, parameter in self.named:
                parameter -= LEARNING_RATE * torch.from_numpy(total[name])

    def sent(self, name: str, rank: int, step: int, numbers: np.ndarray, values: np.ndarray) -> Any:
        if not self.bits:
            return numbers, values
        kept_back = self.kept_back.setdefault((name, rank), np.zeros((WORDS, DIMENSION), np.float32))
        compensated = (values + kept_back[numbers]) if self.residual else values
        text = struct.pack("<QQQ", 0, step, rank) + name.encode()
        key = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
        decoded = qsgd(compensated.reshape(-1), 2 ** (self.bits - 1) - 1, DIMENSION, key).reshape(values.shape)
        kept_back[numbers] = compensated - decoded
        return numbers, decoded


def train(
    name: str, *, absent: int = -1, passes: int = 1, member: bool = True, **options: Any
) -> tuple[nn.Module, Any]:
    model = Text()
    sgd = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    named = [(f"{name}.{of}", parameter) for of, parameter in model.named_parameters()]
    optimizer = DistributedOptimizer(sgd, named, name=name, backward_passes_per_step=passes, **options)
    for step in range(STEPS):
        optimizer.zero_grad()
        for part in range(passes):
            model.loss(hvd.rank(), passes * step + part, absent).backward()
        optimizer.synchronize()
        for parameter in (model.words.weight, model.places.weight):
            assert parameter.grad is not None
            assert parameter.grad.is_sparse
            assert parameter.grad.is_coalesced() or not member
        with optimizer.skip_synchronize():
            optimizer.step()
    return model, optimizer


def assert_same(case: str, model: nn.Module, alone: Alone) -> None:
    assert_equal_on_all_ranks([p.detach() for p in model.parameters()], case)
    for step in range(STEPS):
        alone.step(step)
    for (name, mine), expected in zip(model.named_parameters(), alone.model.parameters(), strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-6, msg=lambda m, n=name: f"{case}: {n}: {m}")


def cases() -> Iterator[str]:
    model, optimizer = train("plain")
    assert_same("plain", model, Alone("plain"))
    total = optimizer.rows.stats()["total"]
    assert total["rows_given"] == 2 * 90 * STEPS
    assert total["given_bytes"] == total["rows_given"] * (4 * DIMENSION + 8)
    assert total["rows_sent"] < total["rows_given"] / 2
    assert total["value_bytes"] == 4 * total["kept"] == 4 * DIMENSION * total["rows_sent"]
    assert total["index_bytes"] < total["rows_sent"]
    assert "words.weight" in optimizer.rows.report()
    yield "plain"

    model, _ = train("sum", op=hvd.Sum, rows="bitmap+raw")
    assert_same("sum", model, Alone("sum", average=False))
    yield "sum"

    for memory in ("none", "residual"):
        name = f"bits.{memory}"
        model, optimizer = train(name, rows=f"rice+qsgd(bits=7, bucket={DIMENSION})+{memory}")
        assert_same(name, model, Alone(name, bits=7, residual=memory == "residual"))
        assert optimizer.rows.stats()["total"]["value_bytes"] < 0.4 * 4 * optimizer.rows.stats()["total"]["kept"]
        yield name

    model, _ = train("passes", passes=2)
    assert_same("passes", model, Alone("passes", passes=2))
    yield "passes"

    model, _ = train("fp16", compression=hvd.Compression.fp16)
    assert_equal_on_all_ranks([p.detach() for p in model.parameters()], "fp16")
    yield "fp16"

    # A rank without a gradient for a table, from the first step on: it must be told.
    known = [f"absent.{name}" for name in sparse_parameters(Text())]
    assert known == ["absent.words.weight", "absent.places.weight"]
    model, _ = train("absent", absent=1, sparse=known)
    assert_same("absent", model, Alone("absent", absent=1))
    yield "absent"

    # Dense gradients go through DeepReduce, which finds its model by itself; exact stages, so the oracle is the same.
    compression = DeepReduce(sparsifier="none", value="raw", memory="none", name="both", min_numel=2)
    known = [f"both.{name}" for name in sparse_parameters(Text())]
    model, optimizer = train("both", compression=compression, sparse=known)
    assert_same("both", model, Alone("both"))
    assert str(optimizer.rows.settings) == "rows+rice+raw+none"
    assert [row["name"] for row in compression.stats()["tensors"]] == ["both.linear.weight", "both.linear.bias"]
    yield "both"

    if hvd.size() == 3:
        some = hvd.add_process_set([0, 2])
        model, optimizer = train("some", process_set=some, member=some.included())
        if some.included():
            assert_equal_on_all_ranks([p.detach() for p in model.parameters()], "some", some)
            assert optimizer.rows.stats()["size"] == 2
        hvd.remove_process_set(some)
        yield "some"

    check_half()
    yield "half"
    check_checkpoint()
    yield "checkpoint"
    check_not_finite()
    yield "not_finite"


def check_half() -> None:
    model = Text(torch.bfloat16)
    for parameter in model.linear.parameters():
        parameter.requires_grad_(False)
    named = [(f"half.{name}", parameter) for name, parameter in model.named_parameters()]
    optimizer = DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), named, name="half", rows="rice+bf16")
    for step in range(STEPS):
        optimizer.zero_grad()
        model.loss(hvd.rank(), step).backward()
        optimizer.step()
    assert_equal_on_all_ranks([p.detach() for p in model.parameters()], "half")


def check_checkpoint() -> None:
    """Goes on from the middle as if nothing had been; then takes a step back."""
    rows = f"rice+qsgd(bits=3, bucket={DIMENSION})+residual"

    def make(name: str, weights: Any = None) -> tuple[Text, Any]:
        model = Text()
        if weights:
            model.load_state_dict(weights)
        sgd = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
        # Equal names, as draws depend on them; one is at rest when the other is made.
        return model, DistributedOptimizer(sgd, list(model.named_parameters()), name=name, rows=rows)

    def run(model: Text, optimizer: Any, steps: range) -> None:
        for step in steps:
            optimizer.zero_grad()
            model.loss(hvd.rank(), step).backward()
            optimizer.step()

    model, optimizer = make("saved")
    run(model, optimizer, range(3))
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    with tempfile.TemporaryDirectory() as folder:
        torch.save(optimizer.rows.state_dict(), Path(folder) / "state")
        state = torch.load(Path(folder) / "state", weights_only=True)
    residual = state["slots"]["words.weight"]["residual"]
    assert residual.abs().sum() > 0
    run(model, optimizer, range(3, 5))

    other, continued = make("saved", weights)
    continued.rows.load_state_dict(state)
    run(other, continued, range(3, 5))
    for mine, expected in zip(other.parameters(), model.parameters(), strict=True):
        assert torch.equal(mine, expected)

    # A step that came to nothing: what it sent is in the residuals again, so these changed by all of the gradient.
    before = continued.rows.state_dict()["slots"]["words.weight"]["residual"]
    continued.zero_grad()
    other.loss(hvd.rank(), 5).backward()
    numbers, values = merged(other.words.weight.grad)
    continued.synchronize()
    continued.rows.rollback()
    after = continued.rows.state_dict()["slots"]["words.weight"]["residual"].view(WORDS, DIMENSION).numpy()
    expected = before.view(WORDS, DIMENSION).numpy().copy()
    expected[numbers] += values
    np.testing.assert_allclose(after, expected, rtol=1e-5, atol=1e-7)
    with continued.skip_synchronize(), torch.no_grad():
        continued.step()


def check_not_finite() -> None:
    """One value is infinite on one rank: all of its rows are NaN on every rank, and its residual is left alone."""
    model = Text()
    named = [(f"nan.{name}", parameter) for name, parameter in model.named_parameters()]
    rows = f"rice+qsgd(bits=7, bucket={DIMENSION})"
    optimizer = DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), named, name="nan", rows=rows)
    optimizer.zero_grad()
    model.loss(hvd.rank(), 0).backward()
    optimizer.step()
    before = optimizer.rows.state_dict()["slots"]["nan.words.weight"]["residual"]
    optimizer.zero_grad()
    loss = model.loss(hvd.rank(), 1)
    (loss * float("inf") if hvd.rank() == 1 else loss).backward()
    numbers = model.words.weight.grad._indices()[0].unique()
    optimizer.synchronize()
    gradient = model.words.weight.grad.to_dense()
    everyones = hvd.allgather_object(numbers, name="nan.numbers")
    assert torch.isnan(gradient[everyones[1]]).all()
    alone = [number for number in everyones[0].tolist() if all(number not in of for of in everyones[1:])]
    assert torch.isfinite(gradient[alone]).all()
    after = optimizer.rows.state_dict()["slots"]["nan.words.weight"]["residual"]
    assert torch.equal(before, after) == (hvd.rank() == 1)
    with optimizer.skip_synchronize():
        optimizer.step()


def main() -> None:
    argparse.ArgumentParser().parse_args()
    warnings.simplefilter("error", UserWarning)
    torch.set_num_threads(1)
    os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"
    hvd.init()
    for case in cases():
        print(f"ROWS {case}", flush=True)
    print("ROWS ok", flush=True)


if __name__ == "__main__":
    main()
