"""What one call of `compress` takes for small tensors, coding and the start of the gather included.

One process, which stands for a rank: nobody is waited for. 160 tensors share a bucket; the last call codes them all.
"""

from __future__ import annotations

import argparse
import statistics
import time

import horovod.torch as hvd
import torch

from hvd_deepreduce.torch import DeepReduce

TENSORS, STEPS = 160, 200
SETTINGS = "topk(density=0.01)+rice+qsgd(bits=7)"


def measure(numel: int) -> None:
    parameters = [(f"{numel}.{i}", torch.nn.Parameter(torch.zeros(numel))) for i in range(TENSORS)]
    compression = DeepReduce.from_string(parameters, SETTINGS, name=f"{numel}", min_numel=1, overlap=False)
    gradients = [torch.randn(numel) for _ in range(TENSORS)]
    compress, whole, decompress = [], [], []
    for _ in range(STEPS):
        for (_, parameter), gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient.clone()
        contexts = []
        start = last = time.perf_counter()
        for _, parameter in reversed(parameters):
            contexts.append(compression.compress(parameter.grad))
            now = time.perf_counter()
            compress.append(now - last)
            last = now
        whole.append((last - start) / TENSORS)
        start = time.perf_counter()
        for probe, context in contexts:
            compression.decompress(probe, context)
        decompress.append((time.perf_counter() - start) / TENSORS)
    encode = compression.stats()["total"]["encode_ms"] / STEPS / TENSORS
    print(
        f"{numel:7,} elements: {1e6 * statistics.median(whole):6.1f} us per tensor, coding {1e3 * encode:.1f} of it; "
        f"{1e6 * statistics.median(compress):5.1f} for one that codes nothing; "
        f"decompress {1e6 * statistics.median(decompress):5.1f}"
    )


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_num_threads(1)
    hvd.init()
    for numel in (1_000, 2_000, 36_864):
        measure(numel)


if __name__ == "__main__":
    main()
