"""Trains a small residual net on Fashion-MNIST under stock Horovod, with the compression of your choice.

    horovodrun -np 2 python torch/examples/fashion_mnist.py --compression "topk(density=0.01)+rice+qsgd(bits=7)"

What DeepReduce adds to it: an import, the object from `make_compression`, and the argument `compression=`.
"""

import argparse
from itertools import islice
from typing import Any

import horovod.torch as hvd
import torch
from mixed_precision import MixedPrecision
from sharded import accuracy_on_test_images, endless_batches, replicas_identical
from step_clock import StepClock, TimedCast
from torch import nn
from torch.nn.functional import cross_entropy

from hvd_deepreduce import JsonLinesWriter
from hvd_deepreduce.demo.idx import DataError
from hvd_deepreduce.demo.job_result import JobResult, Volume, tell
from hvd_deepreduce.demo.progress import training_progress
from hvd_deepreduce.demo.schedule import learning_rate_factor
from hvd_deepreduce.demo.train_options import LOG_EVERY, parse_options
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.torch import DeepReduce
from hvd_deepreduce.torch.demo import image_data
from hvd_deepreduce.torch.demo.residual_net import ResidualNet


def make_compression(wanted: str, model: nn.Module, seed: int, precision: MixedPrecision) -> Any:
    """What goes to `hvd.DistributedOptimizer` as `compression=`."""
    if wanted == "dense":
        return hvd.Compression.none
    if wanted == "fp16":
        return TimedCast(hvd.Compression.fp16)
    return DeepReduce.from_string(model.named_parameters(), wanted, seed=seed, loss_scale=precision.scaler.get_scale)


def train(options: argparse.Namespace) -> None:
    """Trains, tests, and tells on rank 0 what it cost."""
    hvd.init()
    if hvd.size() == 1:
        raise SystemExit("fashion_mnist: one process has nothing to exchange; start it with horovodrun -np 2")
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    images = image_data.load(options.data)
    model = ResidualNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=options.momentum, nesterov=True)

    precision = MixedPrecision(next(model.parameters()).device.type, options.amp)
    compression = make_compression(options.compression, model, options.seed, precision)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), compression=compression)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: learning_rate_factor(step, options.steps))
    batches = islice(endless_batches(images, options.batch_size, options.seed), options.steps)
    if hvd.rank() == 0:
        print(f"{options.compression}: {images.name}, {options.steps} steps on {hvd.size()} ranks", flush=True)
    log = JsonLinesWriter(options.statistics) if options.statistics and hvd.rank() == 0 else None
    clock = StepClock()
    with training_progress(options.progress, options.compression, options.steps, hvd.rank() == 0) as show:
        for step, (inputs, labels) in enumerate(batches, start=1):
            optimizer.zero_grad()
            with precision.autocast:
                loss = cross_entropy(model(inputs), labels)
            precision.scaler.scale(loss).backward()
            # `optimizer.step()` alone would do both; apart, the time spent on the exchange can be told.
            with clock.synchronizing():
                optimizer.synchronize()
            precision.step(optimizer, compression)
            schedule.step()
            show(step, loss.detach())
            if log and step % LOG_EVERY == 0:
                log.write(compression.stats(), compression.errors(), loss=loss.item())
    times = clock.stop(options.steps, compression)

    ours = compression if isinstance(compression, DeepReduce) else None
    dense_bytes = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    result = JobResult(
        compression=options.compression,
        data=images.name,
        ranks=hvd.size(),
        steps=options.steps,
        batch_size=options.batch_size,
        seed=options.seed,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        accuracy=accuracy_on_test_images(model, images),
        replicas_identical=replicas_identical(model),
        volume=Volume.per_step(options.compression, dense_bytes, ours.stats() if ours else None),
        times=times,
    )
    if hvd.rank() == 0:
        tell(result, ours.report() if ours else None)
        if log:
            log.write(compression.stats(), accuracy=result.accuracy)
            log.close()
        if options.json:
            options.json.write_text(result.to_json())
    if not result.replicas_identical:
        raise SystemExit("fashion_mnist: the ranks ended with different parameters")


if __name__ == "__main__":
    try:
        train(parse_options(__doc__.partition("\n")[0]))
    except (DataError, InvalidSettingError) as problem:
        raise SystemExit(f"fashion_mnist: {problem}") from None
