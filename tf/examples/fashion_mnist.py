"""Trains a small residual net on Fashion-MNIST with Keras under stock Horovod, with the compression of your choice.

    horovodrun -np 2 python tf/examples/fashion_mnist.py --compression "topk(density=0.01)+rice+qsgd(bits=7)"

What DeepReduce adds to it: an import, the object from `make_compression`, and the argument `compression=`.
"""

import argparse
from typing import Any

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import tensorflow as tf
from callbacks import Show, TakeBack, WarmUpAndCosine, Write
from residual_net import make_residual_net
from sharded import batches, load, replicas_identical
from step_clock import StepClock, milliseconds_of_computing

from hvd_deepreduce import JsonLinesWriter
from hvd_deepreduce.demo.idx import DataError
from hvd_deepreduce.demo.job_result import JobResult, Volume, tell
from hvd_deepreduce.demo.progress import training_progress
from hvd_deepreduce.demo.train_options import parse_options
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.tf import DeepReduce


def make_compression(wanted: str, seed: int, loss_scale: Any) -> Any:
    """What goes to `hvd.DistributedOptimizer` as `compression=`."""
    if wanted == "dense":
        return hvd.Compression.none
    if wanted == "fp16":
        return hvd.Compression.fp16
    return DeepReduce.from_string(wanted, seed=seed, loss_scale=loss_scale)


def train(options: argparse.Namespace) -> None:
    """Trains, tests, and tells on rank 0 what it cost."""
    hvd.init()
    if hvd.size() == 1:
        raise SystemExit("fashion_mnist: one process has nothing to exchange; start it with horovodrun -np 2")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    tf.keras.utils.set_random_seed(options.seed)
    if options.amp:
        tf.keras.mixed_precision.set_global_policy("mixed_float16")
    images = load(options.data)
    model = make_residual_net()
    data = batches(images, options.batch_size, options.seed)
    compute_ms = milliseconds_of_computing(model, data)

    optimizer: Any = tf.keras.optimizers.SGD(options.lr, options.momentum, nesterov=True)
    compression = make_compression(
        options.compression, options.seed, (lambda: model.optimizer.loss_scale) if options.amp else None
    )
    optimizer = hvd_keras.DistributedOptimizer(optimizer, compression=compression)
    if options.amp:
        # In this order: Horovod's optimizer cannot be made around one that scales the loss.
        optimizer = tf.keras.mixed_precision.LossScaleOptimizer(optimizer)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss=loss, metrics=["accuracy"])

    if hvd.rank() == 0:
        print(f"{options.compression}: {images.name}, {options.steps} steps on {hvd.size()} ranks", flush=True)
    log = JsonLinesWriter(options.statistics) if options.statistics and hvd.rank() == 0 else None
    clock = StepClock()
    with training_progress(options.progress, options.compression, options.steps, hvd.rank() == 0) as show:
        callbacks = [
            hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0),
            hvd_keras.callbacks.MetricAverageCallback(),
            WarmUpAndCosine(options.lr, options.steps),
            Show(show),
            clock,
            *([TakeBack(compression)] if options.amp and isinstance(compression, DeepReduce) else []),
            *([Write(log, compression)] if log else []),
        ]
        model.fit(data, steps_per_epoch=options.steps, verbose=0, callbacks=callbacks)
    times = clock.times(compute_ms, compression)

    part = slice(hvd.rank(), None, hvd.size())
    _, accuracy = model.evaluate(images.test_images[part], images.test_labels[part], batch_size=500, verbose=0)
    ours = compression if isinstance(compression, DeepReduce) else None
    dense_bytes = 4 * model.count_params()
    result = JobResult(
        compression=options.compression,
        data=images.name,
        ranks=hvd.size(),
        steps=options.steps,
        batch_size=options.batch_size,
        seed=options.seed,
        parameters=model.count_params(),
        accuracy=float(hvd.allreduce(tf.constant(accuracy), name="accuracy")),
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
