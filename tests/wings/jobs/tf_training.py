"""What the checks of options train: small models under a stock optimizer or tape, and the oracle's training alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import tensorflow as tf
from oracle import Oracle
from tf_common import assert_equal_on_all_ranks, batch, make_model

from hvd_deepreduce import Settings
from hvd_deepreduce.tf import DeepReduce
from hvd_deepreduce.tf.parameters import name_of

TEXT = "topk(density=0.1)+rice+qsgd(bits=6, bucket=64)+residual"
STEPS = 4
MIN_NUMEL = 30

Loss = Callable[[Any, int, int], tf.Tensor]


def make(case: str, text: str = TEXT, **options: Any) -> DeepReduce:
    return DeepReduce.from_string(text, name=case, **{"min_numel": MIN_NUMEL, **options})


def gradients_of(model: Any, loss: Loss, rank: int, step: int) -> list[np.ndarray]:
    with tf.GradientTape() as tape:
        value = loss(model, rank, step)
    found = tape.gradient(value, model.trainable_variables)
    dense = [
        tf.zeros_like(variable) if gradient is None else tf.convert_to_tensor(gradient)
        for gradient, variable in zip(found, model.trainable_variables, strict=True)
    ]
    return [
        tf.reshape(tf.cast(one, tf.float64 if one.dtype == tf.float64 else tf.float32), [-1]).numpy() for one in dense
    ]


def train_alone(
    model: Any,
    loss: Loss,
    ranks: Sequence[int],
    *,
    text: str = TEXT,
    passes: int = 1,
    average: bool = True,
    steps: int = STEPS,
) -> Any:
    """Plain gradient descent on what the oracle makes of all ranks' gradients."""
    oracle = Oracle(Settings.from_string(text), len(ranks))
    factor = 1 / len(ranks) if average else 1.0
    for step in range(steps):
        oracle.step = step
        everyone = []
        for rank in ranks:
            parts = [gradients_of(model, loss, rank, step * passes + micro) for micro in range(passes)]
            everyone.append([np.sum(of_variable, axis=0) for of_variable in zip(*parts, strict=True)])
        for place, variable in enumerate(model.trainable_variables):
            given = [gradients[place] for gradients in everyone]
            if given[0].size < MIN_NUMEL:
                reduced = np.sum(given, axis=0) * factor
            else:
                reduced = oracle.reduce(name_of(place, variable), given, factor)
            step_of = tf.cast(tf.reshape(reduced, variable.shape), variable.dtype)
            variable.assign_sub(tf.cast(0.1, variable.dtype) * step_of)
    return model


def assert_same(case: str, model: Any, alone: Any, process_set: hvd.ProcessSet = hvd.global_process_set) -> None:
    assert_equal_on_all_ranks(model.trainable_variables, case, process_set)
    for mine, expected in zip(model.trainable_variables, alone.trainable_variables, strict=True):
        close = {"rtol": 1e-2, "atol": 1e-2} if mine.dtype.size == 2 else {"rtol": 1e-4, "atol": 1e-6}
        found, right = (tf.cast(one, tf.float64).numpy() for one in (mine, expected))
        np.testing.assert_allclose(found, right, **close, err_msg=f"{case}: {mine.name}")


def everyone() -> list[int]:
    return list(range(hvd.size()))


def data_of_steps(steps: int = STEPS) -> tuple[np.ndarray, np.ndarray]:
    batches = [batch(hvd.rank(), step) for step in range(steps)]
    return np.concatenate([x for x, _ in batches]), np.concatenate([y for _, y in batches])


def fit(
    case: str,
    optimizer: Any,
    *,
    steps: int = STEPS,
    wrap: Any = hvd_keras.DistributedOptimizer,
    loops: int = 1,
    **options: Any,
) -> tuple[Any, DeepReduce]:
    model = make_model()
    compression = make(case)
    distributed = wrap(optimizer, compression=compression, **options)
    model.compile(distributed, loss="mse", steps_per_execution=loops)
    callbacks = [
        hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd_keras.callbacks.MetricAverageCallback(),
    ]
    model.fit(*data_of_steps(steps), batch_size=8, shuffle=False, verbose=0, callbacks=callbacks)
    return model, compression


def with_tape(
    model: Any, loss: Loss, compression: DeepReduce, *, graph: bool, steps: int = STEPS, **options: Any
) -> Any:
    def reduced(step: int) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            value = loss(model, hvd.rank(), step)
        tape = hvd.DistributedGradientTape(tape, compression=compression, **options)
        return tape.gradient(value, model.trainable_variables)

    # Data are constants of the graph, so every step is traced anew: residuals must survive it.
    step_function = tf.function(reduced) if graph else reduced
    for step in range(steps):
        for variable, gradient in zip(model.trainable_variables, step_function(step), strict=True):
            assert gradient.shape == variable.shape
            gradient = tf.convert_to_tensor(gradient)
            variable.assign_sub(tf.cast(0.1, variable.dtype) * gradient)
    return model


class Variables:
    """A model of variables alone."""

    def __init__(self, *values: np.ndarray, dtype: tf.DType = tf.float32):
        self.trainable_variables = [
            tf.Variable(tf.cast(value, dtype), name=f"v{place}_x") for place, value in enumerate(values)
        ]
