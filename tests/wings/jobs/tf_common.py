"""What the TensorFlow jobs share: small models, each rank's data, and the comparison of ranks."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf


def make_model(seed: int = 0, dtype: str = "float32") -> tf.keras.Model:
    """20 -> 24 -> 16 -> 4, of weights that depend on the seed alone."""
    rng = np.random.default_rng(seed)
    layers = [tf.keras.layers.Dense(24, activation="tanh"), tf.keras.layers.Dense(16, activation="tanh")]
    model = tf.keras.Sequential([tf.keras.Input((20,)), *layers, tf.keras.layers.Dense(4, dtype=dtype)])
    model.set_weights([0.3 * rng.standard_normal(variable.shape) for variable in model.variables])
    return model


def batch(rank: int, step: int, rows: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets that depend on rank and step alone."""
    rng = np.random.default_rng([step, rank])
    inputs = rng.standard_normal((rows, 20)).astype(np.float32)
    targets = np.sin(inputs[:, :4] * 2) + 0.1 * rng.standard_normal((rows, 4))
    return inputs, targets.astype(np.float32)


def batch_loss(model: tf.keras.Model, rank: int, step: int) -> tf.Tensor:
    inputs, targets = batch(rank, step)
    return tf.reduce_mean((model(inputs) - targets) ** 2)


def digest(variables: Sequence[tf.Variable]) -> bytes:
    sha = hashlib.sha256()
    for variable in variables:
        sha.update(variable.numpy().tobytes())
    return sha.digest()


def assert_equal_on_all_ranks(
    variables: Sequence[tf.Variable], what: str, process_set: hvd.ProcessSet = hvd.global_process_set
) -> None:
    mine = np.frombuffer(digest(variables), np.uint8)
    everyone = hvd.allgather(tf.constant(mine), name=f"digest.{what}", process_set=process_set).numpy()
    rows = everyone.reshape(-1, len(mine))
    assert (rows == rows[0]).all(), f"replicas differ: {what}"
