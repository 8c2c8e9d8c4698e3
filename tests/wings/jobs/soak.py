"""Many steps in a row: memory, open files and threads must not grow once all is warm."""

from __future__ import annotations

import argparse
import gc
import re
import threading
from pathlib import Path
from typing import NamedTuple

import horovod.torch as hvd
import torch
from common import assert_equal_on_all_ranks, batch_loss, make_model

from hvd_deepreduce.torch import DeepReduce

WARM = 500
# Freed pages are handed back late, and by the allocator's own rules.
SLACK_KIB = 2048


class Use(NamedTuple):
    """What a process has at the moment."""

    resident_kib: int
    files: int
    threads: int
    python_threads: int


def use() -> Use:
    gc.collect()
    status = Path("/proc/self/status").read_text()
    resident, threads = (int(re.search(rf"{key}:\s+(\d+)", status)[1]) for key in ("VmRSS", "Threads"))
    return Use(resident, len(list(Path("/proc/self/fd").iterdir())), threads, threading.active_count())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    hvd.init()
    model = make_model()
    compression = DeepReduce(
        model.named_parameters(),
        "dropping(rate=0.9)",
        min_numel=1,
        bucket_bytes=1500,
        threads=2,
        overlap=True,
        timeout=60,
    )
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.01), model.named_parameters(), compression=compression
    )
    before = None
    for step in range(options.steps):
        if step == WARM:
            before = use()
        optimizer.zero_grad()
        batch_loss(model, hvd.rank(), step % 100).backward()
        optimizer.step()
        if hvd.rank() == 0 and (step + 1) % 500 == 0:
            print(f"step {step + 1}: {use()}", flush=True)
    after = use()
    assert_equal_on_all_ranks(list(model.parameters()), "soak")
    print(f"SOAK {before} -> {after}")
    assert before is not None
    assert after.resident_kib <= before.resident_kib + SLACK_KIB
    assert after[1:] <= before[1:]
    print("SOAK ok")


if __name__ == "__main__":
    main()
