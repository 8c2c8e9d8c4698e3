"""Runs every block of PyTorch in the pages on every rank, each with a model of its own; `...` in a block trains a step.

What a block may take for granted is what `new_world` gives it, and what the block before it on its page left behind
in files.
"""

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import horovod.torch as hvd
import torch
from docs.blocks import Block, python_blocks

import hvd_deepreduce
from hvd_deepreduce.torch import DeepReduce


def new_world(number: int, wrapped: bool) -> dict[str, Any]:
    """Names as in anybody's script; `optimizer` is wrapped unless the block does so itself."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 1))
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.01)
    compression = DeepReduce(model.named_parameters(), name=f"block{number}")
    if wrapped:
        optimizer = hvd.DistributedOptimizer(
            optimizer, named_parameters=model.named_parameters(), compression=compression
        )
    world: dict[str, Any] = {
        "hvd": hvd,
        "torch": torch,
        "hvd_deepreduce": hvd_deepreduce,
        "DeepReduce": DeepReduce,
        "model": model,
        "optimizer": optimizer,
        "compression": compression,
        "scaler": torch.amp.GradScaler("cpu"),
        "step": 50,
        "batches": [(torch.ones(8, 64), torch.zeros(8, dtype=torch.int64))],
        "loss": model(torch.ones(8, 64)).square().mean(),
    }

    def train() -> None:
        if hasattr(world["optimizer"], "synchronize"):
            world["optimizer"].zero_grad()
            world["model"](torch.randn(8, 64)).square().mean().backward()
            world["optimizer"].step()
            world["loss"] = world["model"](torch.ones(8, 64)).square().mean()

    world["_train"] = train
    return world


def run(number: int, block: Block) -> None:
    """Errors carry the page's name and line."""
    code = re.sub(r"^(\s*)\.\.\.(\s*#.*)?$", r"\1_train()", block.code, flags=re.MULTILINE)
    # A compiled file of blank lines up to the block has its line numbers.
    compiled = compile("\n" * (block.line - 1) + code, str(block.page), "exec")
    exec(compiled, new_world(number, "DistributedOptimizer(" not in block.code))


def main() -> None:
    hvd.init()
    torch.set_num_threads(1)
    found = python_blocks("torch")
    # Of all ranks, since a page may read on every rank what rank 0 wrote.
    os.chdir(hvd.broadcast_object(tempfile.mkdtemp()))
    for number, block in enumerate(found):
        if hvd.rank() == 0:
            print(f"{block.place} ...", flush=True)
        run(number, block)
        hvd.barrier()
    if hvd.rank() == 0:
        print(f"{len(found)} blocks ran", flush=True)


if __name__ == "__main__":
    main()
