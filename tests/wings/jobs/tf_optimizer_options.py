"""What stock Horovod's optimizers for Keras 2 and for TensorFlow 1 can be asked for, and their models saved."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import tensorflow as tf
from tf_common import assert_equal_on_all_ranks, batch_loss, make_model
from tf_training import STEPS, assert_same, data_of_steps, everyone, fit, make, train_alone, with_tape


def check_basics() -> None:
    expected = train_alone(make_model(), batch_loss, everyone())
    compression = make("tape", bucket_bytes=1)
    assert_same("tape", with_tape(make_model(), batch_loss, compression, graph=True), expected)
    assert compression.stats()["collectives"] == 3 * STEPS
    model, compression = fit("fit", tf.keras.optimizers.SGD(0.1))
    assert_same("fit", model, expected)
    stats = compression.stats()
    assert stats["steps"] == STEPS
    assert stats["total"]["kept"] == STEPS * (48 + 38 + 6)
    assert [row["name"] for row in stats["tensors"]] == ["0.dense/kernel", "2.dense/kernel", "4.dense/kernel"]
    assert "0.dense/kernel" in compression.report()


def check_keras() -> None:
    expected = train_alone(make_model(), batch_loss, everyone())
    sgd, legacy = tf.keras.optimizers.SGD, tf.keras.optimizers.legacy.SGD
    model, _ = fit("plain", sgd(0.1), wrap=hvd.DistributedOptimizer)
    assert_same("plain", model, expected)
    model, _ = fit("legacy", legacy(0.1))
    assert_same("legacy", model, expected)
    model, _ = fit("loops", sgd(0.1), loops=2)
    assert_same("loops", model, expected)
    model, _ = fit("sum", sgd(0.1), op=hvd.Sum)
    assert_same("sum", model, train_alone(make_model(), batch_loss, everyone(), average=False))
    model, _ = fit("predivide", sgd(0.1), gradient_predivide_factor=3.0)
    assert_same("predivide", model, expected)
    model, _ = fit("groups", sgd(0.1), groups=2)
    assert_same("groups", model, expected)
    model, _ = fit("accumulation", sgd(0.1), steps=2 * STEPS, backward_passes_per_step=2)
    assert_same("accumulation", model, train_alone(make_model(), batch_loss, everyone(), passes=2))


def check_optimizer_of_version_1() -> None:
    model, compression = make_model(), make("version_1")
    optimizer = hvd.DistributedOptimizer(
        tf.compat.v1.train.GradientDescentOptimizer(0.1), compression=compression, op=hvd.Sum
    )
    for step in range(STEPS):
        pairs = optimizer.compute_gradients(
            lambda step=step: batch_loss(model, hvd.rank(), step), model.trainable_variables
        )
        optimizer.apply_gradients(pairs)
    assert_same("version_1", model, train_alone(make_model(), batch_loss, everyone(), average=False))


def check_load_model() -> None:
    """Stock Horovod loads what was saved as HDF5; settings survive pickling."""
    model, _ = fit("saved", tf.keras.optimizers.legacy.SGD(0.1))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.h5")
        model.save(path)
        compression = pickle.loads(pickle.dumps(make("loaded")))
        loaded = hvd_keras.load_model(path, compression=compression, legacy_opts=True)
    loaded.fit(*data_of_steps(), batch_size=8, shuffle=False, verbose=0)
    assert compression.stats()["steps"] == STEPS
    assert_equal_on_all_ranks(loaded.trainable_variables, "loaded")
