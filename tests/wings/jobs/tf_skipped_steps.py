"""Loss scaling over a compressing optimizer, and the residual after a step that was skipped."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import pytest
import tensorflow as tf
from tf_common import assert_equal_on_all_ranks
from tf_training import Variables, make

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tf" / "examples"))
from callbacks import TakeBack


def check_mixed_precision() -> None:
    """Loss scaling over a compressing optimizer: with powers of two it is training without, to the last bit."""
    ends = []
    for scale in (1.0, 1024.0):
        case = f"scaled.{scale}"
        model = Variables(np.zeros((40, 50)))
        holder: list[Any] = []
        compression = make(case, "topk(density=0.1)", loss_scale=lambda holder=holder: holder[0].loss_scale)
        inner = hvd_keras.DistributedOptimizer(tf.keras.optimizers.SGD(0.1), compression=compression)
        optimizer = tf.keras.mixed_precision.LossScaleOptimizer(inner, dynamic=False, initial_scale=scale)
        holder.append(optimizer)
        for step in range(4):
            target = np.random.default_rng([step, hvd.rank()]).standard_normal((40, 50)).astype(np.float32)

            def loss(target: np.ndarray = target, model: Any = model) -> tf.Tensor:
                return tf.reduce_sum((model.trainable_variables[0] - target) ** 2)

            optimizer.minimize(loss, model.trainable_variables, tape=tf.GradientTape())
        assert compression.stats()["steps"] == 4
        assert_equal_on_all_ranks(model.trainable_variables, case)
        ends.append(model.trainable_variables[0].numpy())
    np.testing.assert_array_equal(*ends)


def check_skipped_step() -> None:
    """One tensor overflows on one rank, and Keras skips the step: what was sent of the others goes back."""
    model = Variables(np.zeros((40, 50)), np.zeros((30, 40)))
    holder: list[Any] = []
    compression = make("skipped", "topk(density=0.1)+rice+raw", loss_scale=lambda: holder[0].loss_scale, bucket_bytes=1)
    inner = hvd_keras.DistributedOptimizer(tf.keras.optimizers.SGD(0.1), compression=compression)
    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(inner, initial_scale=1024.0)
    holder.append(optimizer)
    take_back = TakeBack(compression)
    take_back.set_model(SimpleNamespace(optimizer=optimizer))
    first, second = model.trainable_variables
    for step in range(4):
        skipped = step == 2
        bad = np.float32(np.inf if skipped and hvd.rank() == 1 else 1)
        rng = np.random.default_rng([step, hvd.rank()])
        targets = [rng.standard_normal(one.shape).astype(np.float32) for one in model.trainable_variables]

        def loss(targets: list[np.ndarray] = targets, bad: Any = bad) -> tf.Tensor:
            return tf.reduce_sum((first - targets[0]) ** 2) + bad * tf.reduce_sum((second - targets[1]) ** 2)

        before = {name: slot.numpy() for name, slot in compression._kept.slots.items()}
        given, gradient = first.numpy(), 2 * (first.numpy() - targets[0])
        take_back.on_train_batch_begin(step)
        optimizer.minimize(loss, model.trainable_variables, tape=tf.GradientTape())
        take_back.on_train_batch_end(step)
        assert (first.numpy() == given).all() == skipped, step
        assert (compression.errors() == {}) == skipped, step
        if skipped:
            [name] = [one for one in before if one.startswith("0.")]
            found = compression._kept.slots[name].numpy()
            np.testing.assert_allclose(found, before[name] + gradient.ravel(), atol=1e-5)
    assert float(optimizer.loss_scale) == 512


def check_rollback(custom_op: bool) -> None:
    """What a skipped step sent is back in the residual; and how far what was sent was from what had to be."""
    compression = make(f"rollback.{custom_op}", "topk(density=0.1)+rice+raw", custom_op=custom_op)
    assert compression.errors() == {}
    model = Variables(np.zeros((30, 40)))
    before = np.zeros(1200, np.float32)
    for step in range(3):
        gradient = np.random.default_rng([step, hvd.rank()]).standard_normal((30, 40)).astype(np.float32)
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(model.trainable_variables[0] * gradient)
        hvd.DistributedGradientTape(tape, compression=compression).gradient(value, model.trainable_variables)
        [residual] = compression._kept.slots.values()
        left = np.linalg.norm(residual.numpy().astype(np.float64))
        right = left / np.linalg.norm((before + gradient.ravel()).astype(np.float64))
        assert compression.errors() == {"0.v0_x": pytest.approx(right, rel=1e-5)}
        if step == 2:
            for _ in range(2):  # a second one has nothing left to take back
                compression.rollback()
                np.testing.assert_array_equal(residual.numpy(), before + gradient.ravel())
                assert compression.errors() == {}
        before = residual.numpy()
