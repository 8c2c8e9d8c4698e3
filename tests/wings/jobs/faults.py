"""Faults: every rank must raise an error that names tensor, rank and cause.

With one fault and `--die` the job ends by it, as a user's would. Otherwise each rank prints what it caught and goes on
to the next.
"""

from __future__ import annotations

import argparse

import horovod.torch as hvd
import torch
from common import batch_loss, make_model, run_faults

from hvd_deepreduce.torch import DeepReduce

FAULTY_RANK = 1
STEP = 2
LATER = ("exception", "unknown_on_one_rank")
OPERATIONS = {"min": hvd.Min, "max": hvd.Max, "product": hvd.Product, "adasum": hvd.Adasum}


def train(fault: str) -> None:
    faulty = hvd.rank() == FAULTY_RANK
    model = make_model()
    named = [(f"{fault}.{name}", parameter) for name, parameter in model.named_parameters()]
    compressed = [(name, p) for name, p in named if not (fault == "unknown" and name.endswith("2.weight"))]
    options: dict[str, object] = {"min_numel": 30, "timeout": 30, "name": fault, "overlap": True}
    if faulty and fault == "settings":
        options["sparsifier"] = "topk(density=0.02)"
    if faulty and fault == "min_numel":
        options["min_numel"] = 10
    if faulty and fault == "nothing_on_one_rank":
        options["min_numel"] = 10**9
    if fault == "name":
        options |= {"name": f"name.{hvd.rank()}", "timeout": 3}
    compression = DeepReduce(compressed, **options)  # type: ignore[arg-type]
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1),
        named,
        compression=compression,
        op=OPERATIONS.get(fault, hvd.Average),
    )
    for step in range(4):
        optimizer.zero_grad()
        if step == STEP and faulty and fault == "exception":
            # Stands for whatever may go wrong while a gradient is encoded.
            compression._session.tensors.at(2).slots.clear()
        if step == STEP and faulty and fault == "unknown_on_one_rank":
            compression._parameters.parameters[2] = torch.zeros(1)
            compression._parameters._place_of.clear()
        if faulty and step == (STEP if fault in LATER else 0):
            print(f"FAULT {fault}", flush=True)
        batch_loss(model, hvd.rank(), step).backward()
        if fault == "clipped":
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("faults", nargs="+")
    parser.add_argument("--die", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    hvd.init()
    run_faults(train, options.faults, die=options.die)


if __name__ == "__main__":
    main()
