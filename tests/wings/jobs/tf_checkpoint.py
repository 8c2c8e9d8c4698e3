"""Saving and going on with TensorFlow: residuals and step counters survive, also into a freshly built model."""

from __future__ import annotations

import argparse
from pathlib import Path

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import tensorflow as tf
from tf_common import batch, digest, make_model

from hvd_deepreduce.tf import DeepReduce

TEXTS = {
    "topk": "topk(density=0.05)+rice+qsgd(bits=5)",
    "dropping": "dropping(rate=0.9, sample=0.2, scope='global')+rice+qsgd(bits=5)",
}


class Training:
    """A model with all that belongs into its checkpoint."""

    def __init__(self, name: str):
        self.model = make_model()
        self.compression = DeepReduce.from_string(TEXTS[name], min_numel=30, seed=4, name=name)
        sgd = tf.keras.optimizers.legacy.SGD(0.1, momentum=0.9)
        self.optimizer = hvd_keras.DistributedOptimizer(sgd, compression=self.compression)
        self.checkpoint = tf.train.Checkpoint(
            model=self.model, optimizer=self.optimizer, compression=self.compression
        )

    def run(self, steps: range) -> None:
        for step in steps:
            inputs, targets = batch(hvd.rank(), step)

            def loss(inputs: object = inputs, targets: object = targets) -> tf.Tensor:
                return tf.reduce_mean((self.model(inputs) - targets) ** 2)

            self.optimizer.minimize(loss, self.model.trainable_variables, tape=tf.GradientTape())


def first(folder: Path, half: int) -> None:
    """Saves half way, goes on to the end, and writes down where that led."""
    for name in TEXTS:
        training = Training(name)
        training.run(range(half))
        training.checkpoint.write(str(folder / f"{name}.{hvd.rank()}"))
        training.run(range(half, 2 * half))
        (folder / f"{name}.{hvd.rank()}.end").write_bytes(digest(training.model.variables))


def second(folder: Path, half: int) -> None:
    """Another process goes on from there, and ends where the first did."""
    for name in TEXTS:
        training = Training(name)
        restored = training.checkpoint.read(str(folder / f"{name}.{hvd.rank()}"))
        training.run(range(half, 2 * half))
        restored.assert_existing_objects_matched()
        assert digest(training.model.variables) == (folder / f"{name}.{hvd.rank()}.end").read_bytes(), name


def wrong(folder: Path, half: int) -> None:
    """Another rank's state is refused, on every rank, and so is that of other settings."""
    for own, other, message in (
        ("topk", f"topk.{(hvd.rank() + 1) % hvd.size()}", "rank 0: the checkpoint that was restored is of rank 1"),
        ("topk", f"dropping.{hvd.rank()}", "rank 0: the checkpoint that was restored is of name 'dropping'"),
    ):
        training = Training(own)
        tf.train.Checkpoint(compression=training.compression).read(str(folder / other)).expect_partial()
        try:
            training.run(range(half, half + 1))
        except tf.errors.OpError as error:
            assert message in str(error), error
        else:
            raise AssertionError("no error")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--half", type=int, default=8)
    options = parser.parse_args()
    hvd.init()
    for part in options.parts:
        {"first": first, "second": second, "wrong": wrong}[part](options.folder, options.half)
    print("CHECKPOINT ok")


if __name__ == "__main__":
    main()
