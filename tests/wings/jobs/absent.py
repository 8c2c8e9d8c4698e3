"""A rank that leaves or stops in mid-step; the others must not wait for it for ever."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time

import horovod.torch as hvd
import torch
from common import batch_loss, make_model
from horovod.common.exceptions import HorovodInternalError
from torch import nn

from hvd_deepreduce.torch import DeepReduce

FAULTY_RANK = 1
STEP = 2


def go_missing(how: str) -> None:
    print(f"FAULT {how}", flush=True)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif how == "stalled":
        time.sleep(10**6)
    elif how == "raised":
        raise ValueError("the user's own")
    elif how == "left":
        sys.exit(0)


def train(model: nn.Sequential, optimizer: torch.optim.Optimizer, how: str, when: str) -> None:
    faulty = hvd.rank() == FAULTY_RANK
    for step in range(STEP + 2):
        optimizer.zero_grad()
        if faulty and when == "first":
            go_missing(how)
        if faulty and step == STEP:
            # Gradients come from the last layer to the first.
            layer = model[0] if when == "midway" else model[-1]
            layer.register_full_backward_pre_hook(lambda *_: go_missing(how))
        batch_loss(model, hvd.rank(), step).backward()
        optimizer.step()
    print("NO ERROR", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("how", choices=["killed", "stopped", "stalled", "raised", "left"])
    parser.add_argument("when", choices=["first", "early", "midway"], help="at first use, or of a step's gradients")
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--shut-down", action="store_true", help="catch Horovod's error and shut it down")
    options = parser.parse_args()
    torch.set_num_threads(1)
    hvd.init()
    model = make_model()
    compression = DeepReduce(model.named_parameters(), min_numel=30, timeout=options.timeout, overlap=True)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), compression=compression
    )
    try:
        train(model, optimizer, options.how, options.when)
    except HorovodInternalError:
        if options.shut_down:
            hvd.shutdown()
        raise


if __name__ == "__main__":
    main()
