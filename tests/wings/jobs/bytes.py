"""Writes down what a wing sends of given gradients, and what it makes of them, for a comparison of the wings."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hvd_deepreduce.exchange import Bucket

STEPS = 3
CASES = {
    "default": ("topk(density=0.01)", "float32", {}),
    "dense": ("topk(density=0.5)+bitmap+fp16", "float32", {"bucket_bytes": 20_000}),
    "raw": ("threshold(value=1.5)+raw+raw+none", "float32", {}),
    "dropping": ("dropping(rate=0.95)+rice+qsgd(bits=4, bucket=100)", "float32", {"seed": 2**64 - 5}),
    "global": ("dropping(rate=0.95, scope='global')+rice+bf16", "float32", {}),
    "stagewise": ("dgc(density=0.02)+huffman+natural+dgc", "float32", {}),
    "float64": ("topk(density=0.01)", "float64", {}),
    "float16": ("topk(density=0.02)+rice+raw", "float16", {}),
    "bfloat16": ("topk(density=0.02)+rice+raw", "bfloat16", {}),
}
SHAPES = [(300, 40), (2000,), (16, 3, 3, 30), (7, 11)]
# The key of a draw is a hash of blocks of 128 bytes, the name among them: one, two, three blocks.
NAMES = ["0.a", f"1.{'b' * 104}", f"2.{'c' * 240}", "3.d"]

Reduce = Callable[[str, str, str, dict[str, Any]], Iterator[list[np.ndarray]]]


def gradients(case: str, rank: int, step: int) -> list[np.ndarray]:
    """Of float32, and exact in the smaller dtypes too."""
    rng = np.random.default_rng([sum(case.encode()), rank, step])
    return [np.float32(np.float16(rng.standard_normal(shape))) // np.float32(2**-5) / 32 for shape in SHAPES]


def with_torch(name: str, text: str, dtype: str, options: dict[str, Any]) -> Iterator[list[np.ndarray]]:
    import horovod.torch as hvd
    import torch

    from hvd_deepreduce.torch import DeepReduce

    of = getattr(torch, dtype)
    parameters = [torch.nn.Parameter(torch.zeros(shape, dtype=of)) for shape in SHAPES]
    named = list(zip(NAMES, parameters, strict=True))
    compression = DeepReduce.from_string(named, text, name=name, **options)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(parameters, lr=1.0), [(f"{name}.{one}", p) for one, p in named], compression=compression
    )
    for step in range(STEPS):
        optimizer.zero_grad()
        for parameter, gradient in zip(parameters, gradients(name, hvd.rank(), step), strict=True):
            (parameter * torch.from_numpy(gradient).to(of)).sum().backward()
        optimizer.synchronize()
        ERRORS.append(compression.errors())
        yield [one.grad.to(torch.float64).numpy() for one in parameters]
        with optimizer.skip_synchronize():
            optimizer.step()


def with_tf(
    name: str, text: str, dtype: str, options: dict[str, Any], custom_op: bool = True
) -> Iterator[list[np.ndarray]]:
    import horovod.tensorflow as hvd
    import tensorflow as tf

    from hvd_deepreduce.tf import DeepReduce

    variables = [
        tf.Variable(tf.zeros(shape, dtype), name=of.partition(".")[2]) for of, shape in zip(NAMES, SHAPES, strict=True)
    ]
    compression = DeepReduce.from_string(text, name=name, custom_op=custom_op, **options)
    for step in range(STEPS):
        with tf.GradientTape() as tape:
            terms = [
                tf.reduce_sum(variable * tf.cast(gradient, dtype))
                for variable, gradient in zip(variables, gradients(name, hvd.rank(), step), strict=True)
            ]
            loss = tf.add_n(terms)
        tape = hvd.DistributedGradientTape(tape, compression=compression)
        reduced = tape.gradient(loss, variables)
        coder = compression._session._coder
        if type(coder).__name__ == "NativeCoder":
            assert custom_op
            BUNDLES.extend(last.numpy().tobytes() for last in coder._last)
        ERRORS.append(compression.errors())
        yield [tf.cast(one, tf.float64).numpy() for one in reduced]


BUNDLES: list[bytes] = []
ERRORS: list[dict[str, float | None]] = []
"""By step."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("wing", choices=("torch", "tf"))
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    bundle = Bucket.bundle

    def recorded(bucket: Bucket) -> bytes:
        BUNDLES.append(bundle(bucket))
        return BUNDLES[-1]

    Bucket.bundle = recorded  # type: ignore[method-assign]
    runs: dict[str, Any] = {}
    if options.wing == "torch":
        import horovod.torch as hvd

        runs["torch"] = with_torch
    else:
        import horovod.tensorflow as hvd

        runs |= {"tf": with_tf, "tf in Python": lambda *of: with_tf(*of, custom_op=False)}
    hvd.init()
    for run, reduce in runs.items():
        said: dict[str, Any] = {}
        for name, (text, dtype, given) in CASES.items():
            BUNDLES.clear()
            ERRORS.clear()
            results = list(reduce(name, text, dtype, {"min_numel": 100, **given}))
            digests = [hashlib.sha256(b"".join(one.tobytes() for one in step)).hexdigest() for step in results]
            # Buckets of a step may be coded in any order.
            said[name] = {"results": digests, "bundles": sorted(one.hex() for one in BUNDLES), "errors": list(ERRORS)}
        path = options.folder / f"{run}.{hvd.rank()}.json"
        path.write_text(json.dumps(said))
    print("BYTES ok")


if __name__ == "__main__":
    main()
