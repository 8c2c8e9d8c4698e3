"""Faults among sparse gradients: every rank must raise an error that names tensor, rank and cause, and learn nothing.

Each rank prints what it caught and goes on to the next fault.
"""

from __future__ import annotations

import argparse
from unittest import mock

import horovod.torch as hvd
import torch
from common import digest, run_faults
from hostile import FAULTS as BYTES
from rows import DIMENSION, Text

from hvd_deepreduce.errors import DeepReduceError
from hvd_deepreduce.torch import DeepReduce, DistributedOptimizer, arrays, outbox

FAULTY_RANK = 1
STEP = 2


def train(fault: str) -> None:
    faulty = hvd.rank() == FAULTY_RANK
    model = Text()
    named = [(f"{fault}.{name}", parameter) for name, parameter in model.named_parameters()]
    rows = f"rice+qsgd(bits=7, bucket={DIMENSION})" if not (faulty and fault == "settings") else "rice+raw"
    options: dict[str, object] = {"rows": rows, "name": fault, "timeout": 30}
    if fault == "beside_dense":
        # The tables are among its tensors, so its bucket waits for the first gradient that Horovod asks for.
        options["compression"] = DeepReduce(named, name=fault, min_numel=2, timeout=30)
    optimizer = DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), named, **options)  # type: ignore[arg-type]
    target = f"{fault}.rows.bucket.{[spec.name for spec in optimizer.rows.specs].index(f'{fault}.words.weight')}"
    before = b""
    step = 0

    def start_gather(data: bytes, name: str, process_set: object) -> int:
        nonlocal before
        if name == target and fault in BYTES:
            sent, before = (BYTES[fault](data, before) if step == STEP else data), data
            data = sent
        return genuine_gather(data, name, process_set)

    def merged_rows(gradient: torch.Tensor, spec: object, scale: float) -> object:
        if step == STEP and fault in ("exception", "beside_dense"):
            raise MemoryError("no room for rows")
        return genuine_merge(gradient, spec, scale)  # type: ignore[arg-type]

    genuine_gather, genuine_merge = outbox.start_gather, arrays.merged_rows
    with (
        mock.patch.object(outbox, "start_gather", start_gather if faulty else genuine_gather),
        mock.patch.object(arrays, "merged_rows", merged_rows if faulty else genuine_merge),
    ):
        for step in range(STEP + 2):
            parameters = digest(list(model.parameters()))
            try:
                optimizer.zero_grad()
                if faulty and step == STEP and fault == "while_coding":
                    # Stands for whatever may go wrong while rows are coded.
                    optimizer.rows.table(f"{fault}.words.weight").slots["other"] = torch.zeros(1).numpy()
                loss_of(fault, model, step).backward()
                optimizer.step()
            except DeepReduceError:
                assert digest(list(model.parameters())) == parameters, f"{fault}: parameters changed"
                raise


def loss_of(fault: str, model: Text, step: int) -> torch.Tensor:
    if fault != "beside_dense":
        return model.loss(hvd.rank(), step)

    def dense() -> torch.Tensor:
        return model.linear(torch.ones(3, DIMENSION)).pow(2).mean()

    def rows() -> torch.Tensor:
        return model.words(torch.arange(20)).pow(2).mean() + model.places(torch.arange(20)).pow(2).mean()

    # What was computed last comes first in the backward pass: the faulty rank leaves by its rows, before it was asked
    # for dense gradients, and the others wait for these.
    return dense() + rows() if hvd.rank() == FAULTY_RANK else rows() + dense()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("faults", nargs="+")
    torch.set_num_threads(1)
    hvd.init()
    run_faults(train, parser.parse_args().faults)


if __name__ == "__main__":
    main()
