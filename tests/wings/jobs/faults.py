"""One fault each: every rank must end with an error that names tensor, rank and cause."""

from __future__ import annotations

import sys

import horovod.torch as hvd
import torch
from common import batch_loss, make_model

from hvd_deepreduce.torch import DeepReduce


def main() -> None:
    fault = sys.argv[1]
    torch.set_num_threads(1)
    hvd.init()
    faulty_rank = 1
    model = make_model()
    options: dict[str, object] = {"min_numel": 30, "timeout": 30}
    if fault == "settings" and hvd.rank() == faulty_rank:
        options["sparsifier"] = "topk(density=0.02)"
    if fault == "min_numel" and hvd.rank() == faulty_rank:
        options["min_numel"] = 10
    if fault == "name" and hvd.rank() == faulty_rank:
        options |= {"name": "another", "timeout": 5}
    elif fault == "name":
        options["timeout"] = 5
    named = list(model.named_parameters())
    if fault == "unknown":
        named = [(name, parameter) for name, parameter in named if name != "2.weight"]
    if fault == "unknown_on_one_rank":
        options["name"] = "unknown"
    compression = DeepReduce(named, **options)  # type: ignore[arg-type]
    op = {"min": hvd.Min, "max": hvd.Max, "product": hvd.Product, "adasum": hvd.Adasum}.get(fault, hvd.Average)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), compression=compression, op=op
    )
    for step in range(5):
        optimizer.zero_grad()
        if step == 2 and hvd.rank() == faulty_rank and fault == "exception":
            # Whatever goes wrong while a gradient is encoded.
            compression._session.state_at(2).slots.clear()
        if step == 2 and hvd.rank() == faulty_rank and fault == "unknown_on_one_rank":
            compression._parameters.parameters[2] = torch.zeros(1)
        batch_loss(model, hvd.rank(), step).backward()
        optimizer.step()
    print("NO ERROR")


if __name__ == "__main__":
    main()
