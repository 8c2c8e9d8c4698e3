"""What a step costs with 160 tensors of 2,000 elements on two ranks over loopback, dense against compressed.

On a fast link the number of collectives decides, not the bytes. Both run in one job, block by block in turn, so that
their ratio means something on a noisy machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time

TENSORS, NUMEL = 160, 2000
BLOCKS, STEPS = 12, 20
SETTINGS = "topk(density=0.01)+rice+qsgd(bits=7)"


def work() -> None:
    import horovod.torch as hvd
    import torch
    from horovod.torch.compression import Compression, Compressor

    from hvd_deepreduce.torch import DeepReduce

    class BareGather(Compressor):
        """Three floats to reduce for every tensor and one gather for all: what no gathering compressor can go below."""

        def __init__(self) -> None:
            self.probes: list[torch.Tensor] = []
            self.handle: int | None = None

        def compress(self, tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            if not self.probes:
                self.probes = list(torch.ones(TENSORS, 3).unbind())
            if len(self.probes) == 1:
                self.handle = hvd.allgather_async(torch.zeros(9000, dtype=torch.uint8), name="bare")
            return self.probes.pop(), tensor

        def decompress(self, tensor: torch.Tensor, ctx: torch.Tensor) -> torch.Tensor:
            if self.handle is not None:
                hvd.synchronize(self.handle)
                self.handle = None
            return ctx

    torch.set_num_threads(1)
    hvd.init()
    runs = {}
    for name in ("dense", "fp16", "bare", "compressed"):
        parameters = [(f"{name}.{i}", torch.nn.Parameter(torch.zeros(NUMEL))) for i in range(TENSORS)]
        compression = {"dense": Compression.none, "fp16": Compression.fp16, "bare": BareGather()}.get(name)
        if compression is None:
            compression = DeepReduce.from_string(parameters, SETTINGS)
        optimizer = torch.optim.SGD([parameter for _, parameter in parameters], lr=0.1)
        runs[name] = (parameters, hvd.DistributedOptimizer(optimizer, parameters, compression=compression), compression)
    gradients = [torch.randn(NUMEL) for _ in range(TENSORS)]

    def step(parameters: list, optimizer: object) -> None:
        optimizer.zero_grad()
        loss = sum((parameter * gradient).sum() for (_, parameter), gradient in zip(parameters, gradients, strict=True))
        loss.backward()
        optimizer.step()

    times: dict[str, list[float]] = {name: [] for name in runs}
    for block in range(BLOCKS + 1):
        for name, (parameters, optimizer, _) in runs.items():
            start = time.perf_counter()
            for _ in range(STEPS):
                step(parameters, optimizer)
            if block:  # the first one warms up
                times[name].append(1e3 * (time.perf_counter() - start) / STEPS)
    if hvd.rank() == 0:
        for name, blocks in times.items():
            ratio = statistics.median(mine / dense for mine, dense in zip(blocks, times["dense"], strict=True))
            print(
                f"{name:10} {statistics.median(blocks):7.2f} ms per step "
                f"({min(blocks):.2f} ... {max(blocks):.2f}), {ratio:.2f} of dense"
            )
        total = runs["compressed"][2].stats()["total"]
        steps = (BLOCKS + 1) * STEPS
        print(
            f"           compressed: encode {total['encode_ms'] / steps:.2f}, decode {total['decode_ms'] / steps:.2f}, "
            f"wait {total['wait_ms'] / steps:.2f} ms per step"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    if parser.parse_args().worker:
        work()
        return
    environment = os.environ | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMP_NUM_THREADS": "1",
    }
    for backend in ("gloo", "mpi"):
        print(f"{TENSORS} tensors of {NUMEL} elements, 2 ranks, {backend}, {SETTINGS}", flush=True)
        command = [sys.executable, "-m", "horovod.runner.launch", "-np", "2", f"--{backend}", sys.executable, __file__]
        subprocess.run([*command, "--worker"], check=True, env=environment)


if __name__ == "__main__":
    main()
