"""What compressing and decompressing a model of 60 tensors takes in TensorFlow, against PyTorch, on the same gradients.

One process, which stands for a rank: nobody is waited for. The wings take turns, so that their ratio means something on
a noisy machine; the least of all repeats counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import horovod.tensorflow as hvd_tf
import horovod.torch as hvd_torch
import numpy as np
import tensorflow as tf
import torch

import hvd_deepreduce.tf
import hvd_deepreduce.torch

SHAPES = [(2_000,), (64, 64, 3, 3), (128, 128, 3, 3)] * 20
NAMES = [f"{place}.Variable" for place in range(len(SHAPES))]
SETTINGS = "topk(density=0.01)+rice+qsgd(bits=7)"
REPEATS, STEPS = 15, 4


def with_torch(gradients: list[np.ndarray]) -> Callable[[], Any]:
    parameters = [torch.nn.Parameter(torch.zeros(shape)) for shape in SHAPES]
    named = list(zip(NAMES, parameters, strict=True))
    compression = hvd_deepreduce.torch.DeepReduce.from_string(named, SETTINGS, name="torch", overlap=False)
    given = [torch.from_numpy(gradient) for gradient in gradients]

    def step() -> list[torch.Tensor]:
        # A copy each, as a backward pass makes a gradient each: this one is overwritten. TensorFlow's are not.
        for parameter, gradient in zip(parameters, given, strict=True):
            parameter.grad = gradient.clone()
        start = time.perf_counter()
        contexts = [compression.compress(parameter.grad) for parameter in reversed(parameters)]
        results = [compression.decompress(probe, context) for probe, context in contexts]
        TIMES["torch"].append(time.perf_counter() - start)
        return results[::-1]

    return step


def with_tf(name: str, gradients: list[np.ndarray], *, custom_op: bool) -> Callable[[], Any]:
    variables = [tf.Variable(tf.zeros(shape), name="Variable") for shape in SHAPES]
    compression = hvd_deepreduce.tf.DeepReduce.from_string(SETTINGS, name=name, custom_op=custom_op)
    given = [tf.constant(gradient) for gradient in gradients]

    def allreduce_grads(grads: list[tf.Tensor], vars: list[tf.Variable]) -> list[tf.Tensor]:
        # What `compress` does, but for the case of one process, in which it does nothing.
        results = []
        for gradient in grads:
            exchange = compression._session.exchange_of(gradient, alone=True)
            assert exchange is not None
            probe = exchange.hand_over(gradient)
            results.append(exchange.take_back(gradient, probe))
        return results

    traced = tf.function(lambda grads: allreduce_grads(grads, variables), autograph=False)

    def step() -> list[tf.Tensor]:
        start = time.perf_counter()
        results = traced(given)
        results[-1].numpy()
        TIMES[name].append(time.perf_counter() - start)
        return results

    return step


TIMES: dict[str, list[float]] = {"torch": [], "op": [], "python": []}


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_num_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    hvd_torch.init()
    hvd_tf.init()
    rng = np.random.default_rng(0)
    gradients = [rng.standard_normal(shape, dtype=np.float32) for shape in SHAPES]
    runs = {
        "torch": with_torch(gradients),
        "op": with_tf("op", gradients, custom_op=True),
        "python": with_tf("python", gradients, custom_op=False),
    }
    first, *others = ([np.asarray(one) for one in run()] for run in runs.values())
    kept = [np.count_nonzero(one) for one in first]
    assert all([np.count_nonzero(one) for one in other] == kept for other in others)
    for times in TIMES.values():
        times.clear()
    for _ in range(REPEATS):
        for run in runs.values():
            for _ in range(STEPS):
                run()
    least = {name: 1e3 * min(times) for name, times in TIMES.items()}
    print(f"{len(SHAPES)} tensors, {sum(map(np.size, gradients)):,} elements, {SETTINGS}, one thread")
    for name, title in (("torch", "PyTorch"), ("op", "TensorFlow, ops"), ("python", "TensorFlow, in Python")):
        print(f"{title:22} {least[name]:7.2f} ms per step, {least[name] / least['torch']:.2f} of PyTorch")


if __name__ == "__main__":
    main()
