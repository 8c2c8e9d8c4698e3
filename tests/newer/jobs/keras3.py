"""Keras 3 under stock Horovod: what works with DeepReduce, held against the oracle, and what Horovod fails at."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "wings" / "jobs"))

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import pytest
import tensorflow as tf
import tf_skipped_steps
import tf_tape_options
from tf_common import assert_equal_on_all_ranks, batch, batch_loss, digest, make_model
from tf_training import MIN_NUMEL, STEPS, TEXT, assert_same, data_of_steps, everyone, train_alone, with_tape

from hvd_deepreduce.tf import DeepReduce, DistributedGradientTape, DistributedOptimizer
from hvd_deepreduce.tf.keras3 import BroadcastCallback

sgd = tf.keras.optimizers.SGD


class Plain:
    """A model whose variables are TensorFlow's own, as stock Horovod needs them."""

    def __init__(self, model: Any):
        self._model = model
        self.trainable_variables = [variable.value for variable in model.trainable_variables]

    def __call__(self, inputs: Any) -> Any:
        return self._model(inputs)


def plain_model(*given: Any) -> Plain:
    return Plain(make_model(*given))


def make(case: str, **options: Any) -> DeepReduce:
    with pytest.warns(UserWarning, match="this TensorFlow comes with Keras 3, whose optimizers stock Horovod"):
        return DeepReduce.from_string(TEXT, name=case, min_numel=MIN_NUMEL, **options)


def fit(optimizer: Any, *, seed: int = 0, callbacks: tuple[Any, ...] = (), steps: int = STEPS, **options: Any) -> Any:
    model = make_model(seed)
    model.compile(optimizer, loss="mse", **{"jit_compile": False, **options})
    model.fit(*data_of_steps(steps), batch_size=8, shuffle=False, verbose=0, callbacks=list(callbacks))
    return model


def differ_between_ranks(model: Any) -> bool:
    mine = tf.constant(np.frombuffer(digest(model.trainable_variables), np.uint8))
    rows = hvd.allgather(mine, name="drift").numpy().reshape(hvd.size(), -1)
    return bool((rows != rows[0]).any())


def refused(message: str, run: Callable[[], Any]) -> None:
    with pytest.raises(Exception, match=re.escape(message)):
        run()


def check_tape() -> None:
    """Stock Horovod's, traced and in a loop of one's own; by the ops in C++ and in Python."""
    expected = train_alone(plain_model(), batch_loss, everyone())
    for custom_op in (True, False):
        for graph in (True, False):
            case = f"tape.{graph}.{custom_op}"
            compression = make(case, custom_op=custom_op)
            assert_same(case, with_tape(plain_model(), batch_loss, compression, graph=graph), expected)
            coder = type(compression._session._coder).__name__
            assert coder == ("NativeCoder" if custom_op else "HostCoder"), coder


def check_own_tape() -> None:
    """`hvd_deepreduce.tf.DistributedGradientTape` takes Keras 3's variables."""
    expected = train_alone(plain_model(), batch_loss, everyone())
    for graph in (True, False):
        case = f"own_tape.{graph}"
        model, optimizer, compression = make_model(), sgd(0.1), make(case)
        optimizer.build(model.trainable_variables)

        def step(
            inputs: Any, targets: Any, model: Any = model, optimizer: Any = optimizer, compression: Any = compression
        ) -> None:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(inputs) - targets) ** 2)
            tape = DistributedGradientTape(tape, compression=compression)
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

        run = tf.function(step) if graph else step
        for number in range(STEPS):
            inputs, targets = batch(hvd.rank(), number)
            run(tf.constant(inputs), tf.constant(targets))
        assert_same(case, Plain(model), expected)


def check_tape_options() -> None:
    """What the tests on TensorFlow 2.15 ask of the stock tape."""
    tf_tape_options.make_model = plain_model
    for check in (
        tf_tape_options.check_eager,
        tf_tape_options.check_dtypes,
        tf_tape_options.check_words,
        tf_tape_options.check_not_finite,
        tf_tape_options.check_settings_of_every_kind,
        tf_tape_options.check_two_models,
    ):
        check()
    for custom_op in (True, False):
        tf_skipped_steps.check_rollback(custom_op)


def check_process_set() -> None:
    tf_tape_options.make_model = plain_model
    tf_tape_options.check_process_set(hvd.add_process_set(list(tf_tape_options.SUBSET)))


def check_fit() -> None:
    """Our `DistributedOptimizer`; every rank begins with other weights, and gets those of rank 0."""
    expected = train_alone(plain_model(), batch_loss, everyone())
    for case, options in (("fit", {}), ("fit.eagerly", {"run_eagerly": True}), ("loops", {"steps_per_execution": 2})):
        compression = make(case)
        optimizer = DistributedOptimizer(sgd(0.1), compression=compression)
        model = fit(optimizer, seed=hvd.rank(), callbacks=(BroadcastCallback(0),), **options)
        assert_same(case, Plain(model), expected)
        assert compression.stats()["steps"] == STEPS, case
    model = fit(DistributedOptimizer(sgd(0.1), compression=make("sum"), op=hvd.Sum))
    assert_same("sum", Plain(model), train_alone(plain_model(), batch_loss, everyone(), average=False))
    model = fit(DistributedOptimizer(sgd(0.1), compression=make("predivide"), gradient_predivide_factor=3.0))
    assert_same("predivide", Plain(model), expected)
    dense = fit(DistributedOptimizer(sgd(0.1)))
    assert_same("dense", Plain(dense), train_alone(plain_model(), batch_loss, everyone(), text="none+raw+raw+none"))


def check_other_optimizers() -> None:
    for case, optimizer in (
        ("adam", tf.keras.optimizers.Adam(0.01)),
        ("accumulation", sgd(0.1, momentum=0.9, gradient_accumulation_steps=2)),
    ):
        wrapped = DistributedOptimizer(optimizer, compression=make(case))
        model = fit(wrapped, seed=hvd.rank(), callbacks=(BroadcastCallback(0),))
        assert_equal_on_all_ranks([*model.trainable_variables, *wrapped.variables], case)


def check_saving() -> None:
    """What was saved is loaded without Horovod, and is wrapped again to go on."""
    model = fit(DistributedOptimizer(sgd(0.1), compression=make("saved")))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.keras")
        model.save(path)
        loaded = tf.keras.models.load_model(path)
    assert type(loaded.optimizer) is sgd
    again = DistributedOptimizer(loaded.optimizer, compression=make("again"))
    loaded.compile(again, loss="mse", jit_compile=False)
    loaded.fit(*data_of_steps(), batch_size=8, shuffle=False, verbose=0)
    assert_equal_on_all_ranks(loaded.trainable_variables, "again")


def check_refusals() -> None:
    refused(
        "XLA has no kernel for Horovod's allgather",
        lambda: fit(DistributedOptimizer(sgd(0.1), compression=make("jit")), jit_compile=True),
    )
    scaled = tf.keras.optimizers.LossScaleOptimizer
    refused("what it skips on one rank others would wait for", lambda: DistributedOptimizer(scaled(sgd(0.1))))
    refused(
        "gradients are applied within a condition",
        lambda: fit(scaled(DistributedOptimizer(sgd(0.1), compression=make("scaled")))),
    )
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        refused(
            "gradients are applied within a condition",
            lambda: fit(DistributedOptimizer(sgd(0.1), compression=make("mixed"))),
        )
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
    refused("is no optimizer of Keras 3", lambda: DistributedOptimizer(object()))


def check_stock() -> None:
    """Where Horovod 0.28.1 fails by itself: should one of these stop failing, docs/tensorflow.md is out of date."""
    for compression in (hvd.Compression.none, make("stock")):
        model = fit(hvd_keras.DistributedOptimizer(sgd(0.1), compression=compression))
        assert differ_between_ranks(model), "stock Horovod synchronised a Keras 3 optimizer"
    for callback in (
        hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd_keras.callbacks.MetricAverageCallback(),
        hvd_keras.callbacks.LearningRateWarmupCallback(0.1, steps_per_epoch=STEPS),
    ):
        try:
            fit(sgd(0.1), callbacks=(callback,))
            said = "works"
        except Exception as error:
            said = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        print(f"stock {type(callback).__name__}: {said}", flush=True)
    refused(
        "'Variable' object has no attribute 'ref'",
        lambda: with_tape(make_model(), batch_loss, make("ref"), graph=False),
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="+")
    warnings.simplefilter("ignore")
    os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"
    tf.config.threading.set_intra_op_parallelism_threads(1)
    hvd.init()
    for part in parser.parse_args().parts:
        globals()[f"check_{part}"]()
        print(f"{part} ok", flush=True)
    hvd.allreduce(tf.zeros(1), name="end")
    print("KERAS 3 ok")


if __name__ == "__main__":
    main()
