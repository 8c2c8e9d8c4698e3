"""What the optimizers and the tape refuse, or fail at on one rank: every rank ends by a message, and in time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import pytest
import tensorflow as tf
from tf_common import batch_loss, make_model
from tf_training import Variables, data_of_steps, make, with_tape

from hvd_deepreduce.tf import exchange


def refused(message: str, run: Callable[[], Any]) -> None:
    start = time.monotonic()
    with pytest.raises(Exception, match=re.escape(message)):
        run()
    assert time.monotonic() - start < 30, message


def check_refusals() -> None:
    """Each ends on every rank by a message that names the cause, and Horovod works on."""

    def once(case: str, **options: Any) -> Any:
        return with_tape(make_model(), batch_loss, make(case), graph=False, steps=1, **options)

    for op in ("Min", "Max", "Product"):
        refused(f"op={op} cannot be computed from sparse gradients", lambda op=op: once(op, op=getattr(hvd, op)))
    refused("op=Adasum cannot be computed", lambda: once("adasum", op=hvd.Adasum))
    refused(
        "which variable it belongs to is unknown",
        lambda: hvd.allreduce(tf.zeros(100), compression=make("direct"), name="direct"),
    )

    def gradient_of(sources: list[Any]) -> None:
        with tf.GradientTape() as tape:
            tape.watch(sources)
            loss = sum(tf.reduce_sum(one**2) for one in sources)
        hvd.DistributedGradientTape(tape, compression=make("sources")).gradient(loss, sources)

    twice = tf.Variable(tf.ones(100), name="twice")
    for run in (gradient_of, tf.function(gradient_of)):
        refused("variable 'twice:0' is given twice, as sources 0 and 1", lambda run=run: run([twice, twice]))
        refused("source 1 of shape (100,) is no tf.Variable", lambda run=run: run([twice, tf.ones(100)]))

    def compiled() -> None:
        model = make_model()
        optimizer = hvd_keras.DistributedOptimizer(tf.keras.optimizers.SGD(0.1), compression=make("jit"))
        model.compile(optimizer, loss="mse", jit_compile=True)
        model.fit(*data_of_steps(), batch_size=8, verbose=0)

    refused("DeepReduce within jit_compile=True: XLA has no kernel", compiled)

    def another_model() -> None:
        compression = make("another")
        models = [make_model(), Variables(np.zeros((9, 9)), np.zeros((7, 7)))]
        with_tape(models[0], batch_loss, compression, graph=False, steps=1)
        with_tape(
            models[1],
            lambda model, rank, step: sum(tf.reduce_sum(one) for one in model.trainable_variables),
            compression,
            graph=False,
            steps=1,
        )

    refused("that this DeepReduce was first used with", another_model)

    def another_model_of_the_same_shapes(graph: bool) -> None:
        compression = make(f"equal.{graph}")
        models = [make_model(), make_model()]
        for model in models:
            with_tape(model, batch_loss, compression, graph=graph, steps=1)

    refused("that this DeepReduce was first used with", lambda: another_model_of_the_same_shapes(False))
    refused("that this DeepReduce was first used with", lambda: another_model_of_the_same_shapes(True))

    def another_optimizer() -> None:
        compression = make("optimizers")
        models = [make_model(), make_model()]
        for model in models:
            optimizer = hvd_keras.DistributedOptimizer(tf.keras.optimizers.SGD(0.1), compression=compression)
            model.compile(optimizer, loss="mse")
            model.fit(*data_of_steps(), batch_size=8, verbose=0)

    refused("that this DeepReduce was first used with", another_optimizer)
    older, newer = make("same"), make("same")
    model, other = make_model(), make_model()
    with_tape(model, batch_loss, older, graph=False, steps=1)
    with_tape(other, batch_loss, newer, graph=False, steps=1)
    refused(
        "another of this name has begun since",
        lambda: with_tape(model, batch_loss, older, graph=False, steps=1),
    )
    with_tape(other, batch_loss, newer, graph=False, steps=1)

    @tf.function
    def in_one_function() -> None:
        for of, compression in ((model, make("function")), (other, make("function"))):
            with tf.GradientTape() as tape:
                loss = batch_loss(of, hvd.rank(), 0)
            hvd.DistributedGradientTape(tape, compression=compression).gradient(loss, of.trainable_variables)

    refused("another of this name has begun since", in_one_function)
    options = {} if hvd.rank() else {"seed": 5}
    refused(
        "seed is 0 on rank 1 and 5 on rank 0",
        lambda: with_tape(make_model(), batch_loss, make("seeds", **options), graph=False, steps=1),
    )

    def damaged() -> None:
        gather = exchange.gather

        def flipping(bundle: tf.Tensor, *to: Any) -> tf.Tensor:
            if hvd.rank() == 1:
                one = tf.constant(1, tf.uint8)
                bundle = tf.concat([bundle[:20], tf.bitwise.bitwise_xor(bundle[20:21], one), bundle[21:]], axis=0)
            return gather(bundle, *to)

        exchange.gather = flipping
        try:
            once("damaged")
        finally:
            exchange.gather = gather

    refused("step 0, rank 1: checksum is", damaged)

    def fails_on_one_rank() -> None:
        compression = make("fails", bucket_bytes=1)
        model = make_model()
        with_tape(model, batch_loss, compression, graph=False, steps=1)
        if hvd.rank() == hvd.size() - 1:
            compression._kept.identity.assign("{}")
        with_tape(model, batch_loss, compression, graph=False, steps=1)

    refused(f"rank {hvd.size() - 1}: the checkpoint that was restored is of", fails_on_one_rank)
