"""Saving and going on with TensorFlow: residuals and step counters survive, also into a freshly built model."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import pytest
import tensorflow as tf
from tf_common import batch, digest, make_model

from hvd_deepreduce.errors import DeepReduceError, StateMismatchError
from hvd_deepreduce.tf import DeepReduce, DistributedOptimizer

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
        self.checkpoint = tf.train.Checkpoint(model=self.model, optimizer=self.optimizer, compression=self.compression)

    def run(self, steps: range) -> None:
        for step in steps:
            inputs, targets = batch(hvd.rank(), step)

            def loss(inputs: object = inputs, targets: object = targets) -> tf.Tensor:
                return tf.reduce_mean((self.model(inputs) - targets) ** 2)

            self.optimizer.minimize(loss, self.model.trainable_variables, tape=tf.GradientTape())


class RowTraining:
    """The same of two embeddings whose rows lose something on the way; the second has no gradient in odd steps."""

    def __init__(self, name: str = "rows") -> None:
        rng = np.random.default_rng(3)
        self.model = tf.Module()
        self.model.tables = [tf.Variable(rng.standard_normal((50, 8)), dtype=tf.float32, name="words") for _ in "ab"]
        sgd = tf.keras.optimizers.legacy.SGD(0.1, momentum=0.9)
        self.optimizer = DistributedOptimizer(sgd, rows="rice+qsgd(bits=4, bucket=8)", rows_name=name)
        self.checkpoint = tf.train.Checkpoint(model=self.model, optimizer=self.optimizer, rows=self.optimizer.rows)

    def run(self, steps: range) -> None:
        for step in steps:
            tables = self.model.tables[: 2 - step % 2]
            numbers = np.random.default_rng([step, hvd.rank()]).integers(0, 50, 20)

            def loss(tables: list[tf.Variable] = tables, numbers: np.ndarray = numbers) -> tf.Tensor:
                return tf.add_n([tf.reduce_mean(tf.sin(tf.gather(table, numbers)) ** 2) for table in tables])

            self.optimizer.minimize(loss, tables, tape=tf.GradientTape())


def trainings() -> Iterator[tuple[str, Any]]:
    for name in TEXTS:
        yield name, Training(name)
    yield "rows", RowTraining()


def first(folder: Path, half: int) -> None:
    """Saves half way, goes on to the end, and writes down where that led."""
    for name, training in trainings():
        training.run(range(half))
        training.checkpoint.write(str(folder / f"{name}.{hvd.rank()}"))
        training.run(range(half, 2 * half))
        (folder / f"{name}.{hvd.rank()}.end").write_bytes(digest(training.model.variables))


def second(folder: Path, half: int) -> None:
    """Another process goes on from there, and ends where the first did."""
    for name, training in trainings():
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
        with pytest.raises(tf.errors.OpError, match=message):
            training.run(range(half, half + 1))
    training = RowTraining()
    of_rows = tf.train.Checkpoint(rows=training.optimizer.rows)
    with pytest.raises(StateMismatchError, match=f"the state is of rank {1 - hvd.rank()}, here it is {hvd.rank()}"):
        of_rows.read(str(folder / f"rows.{(hvd.rank() + 1) % hvd.size()}")).expect_partial()
    # Each rank's own, and not of these tables on one rank: the next step says so on both.
    state = training.optimizer.rows.state_dict()
    if hvd.rank() == 1:
        state |= {"steps": {"0.words": 3}, "slots": {"0.words": {"residual": np.zeros(7, np.float32)}}}
    training.optimizer.rows.load_state_dict(state)
    with pytest.raises(DeepReduceError, match=r"rank 1: .*tensor '0.words': residual has shape \(7,\)"):
        training.run(range(1))


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
