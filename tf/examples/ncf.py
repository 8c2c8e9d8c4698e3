"""Neural collaborative filtering with sparse embeddings, trained once for each way to exchange their gradients.

    horovodrun -np 2 python tf/examples/ncf.py

What it compares: stock Horovod, Horovod's `sparse_as_dense`, and `hvd_deepreduce.tf.DistributedGradientTape` without
loss and with 7-bit values.
"""

import argparse
import json
import time
from itertools import islice
from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from sharded import replicas_identical

from hvd_deepreduce.demo import feedback
from hvd_deepreduce.demo.feedback import Feedback
from hvd_deepreduce.demo.ncf_options import feedback_of, parse_options
from hvd_deepreduce.demo.progress import training_progress
from hvd_deepreduce.demo.ways import DENSE, STOCK, Sent, Way, tell
from hvd_deepreduce.tf import DistributedGradientTape

EVALUATION_USERS = 250


class NeuralFilter(tf.keras.Model):
    """Scores pairs by the product of two embeddings and the embeddings themselves, in two layers (He et al. 2017)."""

    def __init__(self, users: int, items: int, dimension: int, seed: int) -> None:
        super().__init__()
        spread = [tf.keras.initializers.RandomNormal(stddev=0.1, seed=seed + place) for place in range(2)]
        self.users = tf.keras.layers.Embedding(users, dimension, embeddings_initializer=spread[0])
        self.items = tf.keras.layers.Embedding(items, dimension, embeddings_initializer=spread[1])
        self.hidden = tf.keras.layers.Dense(64, activation="relu")
        self.scores = tf.keras.layers.Dense(1)

    def call(self, pairs: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        """Scores of the shape of users and items."""
        user, item = self.users(pairs[0]), self.items(pairs[1])
        return self.scores(self.hidden(tf.concat([user * item, user, item], axis=-1)))[..., 0]


class Training:
    """One model on its way; `rows` are None where Horovod has its own way."""

    def __init__(self, way: str, model: NeuralFilter, lr: float) -> None:
        self.way = way
        self.model = model
        self.rows: Any = None
        # Gradients of a row are tiny, as the loss is a mean over all pairs: Keras adds its epsilon to their squares.
        self._optimizer = tf.keras.optimizers.Adagrad(lr, initial_accumulator_value=0.0, epsilon=1e-20)
        self.step = tf.function(self._step)

    def _step(self, users: tf.Tensor, items: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            scores = self.model((users, items))
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, scores))
        tape = self._distributed(tape)
        variables = self.model.trainable_variables
        self._optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    def _distributed(self, tape: tf.GradientTape) -> Any:
        if self.way in (STOCK, DENSE):
            return hvd.DistributedGradientTape(tape, sparse_as_dense=self.way == DENSE)
        tape = DistributedGradientTape(tape, rows=self.rows or self.way, rows_name=self.way)
        self.rows = tape.rows
        return tape


def train(way: str, data: Feedback, options: argparse.Namespace) -> Way:
    """Trains and tests one model."""
    model = NeuralFilter(data.users, data.items, options.dimension, options.seed)
    tf.keras.utils.set_random_seed(options.seed)
    model((tf.zeros([1], tf.int64), tf.zeros([1], tf.int64)))
    hvd.broadcast_variables(model.variables, root_rank=0)
    training = Training(way, model, options.lr)
    rank, size = hvd.rank(), hvd.size()
    batches = feedback.batches(data, options.batch_size, options.negatives, rank, size, options.seed)
    start = time.perf_counter()
    with training_progress(options.progress, way, options.steps, rank == 0) as show:
        for step, batch in enumerate(islice(batches, options.steps), start=1):
            show(step, training.step(*map(tf.constant, batch)))
    step_s = (time.perf_counter() - start) / options.steps
    return Way(
        name=way,
        sent=bytes_sent(training, options),
        hit_rate=hit_rate(model, data),
        step_ms=1e3 * step_s,
        exchange_ms=None,
        replicas_identical=replicas_identical(model),
    )


def bytes_sent(training: Training, options: argparse.Namespace) -> Sent:
    """Per step, on this rank. A lookup's gradient has a row for each number looked up, and an int64 for its number."""
    sizes = [4 * int(np.prod(variable.shape)) for variable in training.model.trainable_variables]
    dense = sum(4 * int(np.prod(table.embeddings.shape)) for table in (training.model.users, training.model.items))
    rest = sum(sizes) - dense
    lookups = 2 * options.batch_size * (1 + options.negatives)
    given = lookups * (4 * options.dimension + 8)
    stats = None if training.rows is None else training.rows.stats()
    return Sent.per_step(training.way, given, dense, rest, stats)


def hit_rate(model: NeuralFilter, data: Feedback) -> float:
    """Share of users whose held-out item is among the best 10 of 100; a rank looks at its part of them."""
    found = 0
    for start in range(hvd.rank() * EVALUATION_USERS, len(data.test_users), hvd.size() * EVALUATION_USERS):
        items = data.test_items[start : start + EVALUATION_USERS]
        users = np.broadcast_to(data.test_users[start : start + EVALUATION_USERS, None], items.shape)
        found += feedback.hits(model((tf.constant(users), tf.constant(items))).numpy())
    return float(hvd.allreduce(tf.constant(float(found)), name="hits", op=hvd.Sum)) / len(data.test_users)


def main() -> None:
    """Trains every way in turn."""
    options = parse_options((__doc__ or "").partition("\n")[0])
    hvd.init()
    if hvd.size() == 1:
        raise SystemExit("ncf: one process has nothing to exchange; start it with horovodrun -np 2")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    data = feedback_of(options)
    if hvd.rank() == 0:
        print(f"{data.name}; {len(data.train_users):,} pairs to train with", flush=True)
    ways = [train(way.format(dimension=options.dimension), data, options) for way in options.ways]
    if hvd.rank() == 0:
        tell(ways, f"{data.name}; {options.steps} steps on {hvd.size()} ranks", "variables")
        if options.json:
            options.json.write_text(json.dumps([way.as_dict() for way in ways], indent=2) + "\n")
    if not all(way.replicas_identical for way in ways):
        raise SystemExit("ncf: the ranks ended with different variables")


if __name__ == "__main__":
    try:
        main()
    except feedback.DataError as problem:
        raise SystemExit(f"ncf: {problem}") from None
