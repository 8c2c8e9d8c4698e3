"""`tf.IndexedSlices` through `hvd_deepreduce.tf`, held against a sum in plain NumPy."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import pytest
import tensorflow as tf
from oracle import qsgd
from tf_common import assert_equal_on_all_ranks

from hvd_deepreduce.tf import DeepReduce, DistributedGradientTape, DistributedOptimizer
from hvd_deepreduce.tf import row_exchange as row_exchange_module
from hvd_deepreduce.tf.parameters import name_of

STEPS, WORDS, DIMENSION, LEARNING_RATE = 4, 60, 8, 0.1


def make_model() -> tf.keras.Model:
    rng = np.random.default_rng(5)
    inputs = tf.keras.Input((2,), dtype=tf.int32)
    words = tf.keras.layers.Embedding(WORDS, DIMENSION)(inputs[:, 0])
    places = tf.keras.layers.Embedding(WORDS, DIMENSION)(inputs[:, 1])
    outputs = tf.keras.layers.Dense(4)(tf.keras.layers.Activation("tanh")(words * places))
    model = tf.keras.Model(inputs, outputs)
    model.set_weights([rng.standard_normal(variable.shape).astype(np.float32) for variable in model.variables])
    return model


def numbers_of(rank: int, step: int) -> np.ndarray:
    """Row numbers that are there many times over."""
    return (np.random.default_rng([step, rank]).integers(0, WORDS, (90, 2)) ** 2 // WORDS).astype(np.int32)


def loss_of(model: tf.keras.Model, numbers: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(model(numbers) ** 2)


def train_alone(model: tf.keras.Model, bits: int = 0, average: bool = True) -> None:
    """All ranks' training in one process, with error feedback by row where values are lossy."""
    kept_back: dict[tuple[int, int], np.ndarray] = {}
    factor = 1 / hvd.size() if average else 1.0
    for step in range(STEPS):
        total = [np.zeros(variable.shape, np.float32) for variable in model.trainable_variables]
        for rank in range(hvd.size()):
            with tf.GradientTape() as tape:
                loss = loss_of(model, numbers_of(rank, step))
            for place, gradient in enumerate(tape.gradient(loss, model.trainable_variables)):
                if not isinstance(gradient, tf.IndexedSlices):
                    total[place] += gradient.numpy() * np.float32(factor)
                    continue
                merged = np.zeros((WORDS, DIMENSION), np.float32)
                np.add.at(merged, gradient.indices.numpy(), gradient.values.numpy())
                numbers = np.unique(gradient.indices.numpy())
                sent = merged[numbers]
                if bits:
                    residual = kept_back.setdefault((place, rank), np.zeros((WORDS, DIMENSION), np.float32))
                    compensated = sent + residual[numbers]
                    variable = model.trainable_variables[place]
                    name = name_of(place, variable if isinstance(variable, tf.Variable) else variable.value)
                    text = struct.pack("<QQQ", 0, step, rank) + name.encode()
                    key = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
                    sent = qsgd(compensated.reshape(-1), 2 ** (bits - 1) - 1, DIMENSION, key).reshape(sent.shape)
                    residual[numbers] = compensated - sent
                total[place][numbers] += (sent.astype(np.float64) * factor).astype(np.float32)
        for variable, gradient in zip(model.trainable_variables, total, strict=True):
            variable.assign_sub(LEARNING_RATE * gradient)


def assert_same(case: str, model: tf.keras.Model, **options: Any) -> None:
    assert_equal_on_all_ranks(model.trainable_variables, case)
    alone = make_model()
    train_alone(alone, **options)
    for mine, expected in zip(model.trainable_variables, alone.trainable_variables, strict=True):
        np.testing.assert_allclose(mine.numpy(), expected.numpy(), rtol=1e-4, atol=1e-6, err_msg=case)


def fit(case: str, *, eagerly: bool = False, **options: Any) -> tuple[tf.keras.Model, Any]:
    model = make_model()
    sgd = tf.keras.optimizers.SGD(LEARNING_RATE)
    optimizer = DistributedOptimizer(sgd, rows_name=case, **options)
    # Keras 3 would compile with XLA, which has no allgather.
    model.compile(optimizer, loss=lambda _, outputs: outputs**2, run_eagerly=eagerly, jit_compile=False)
    numbers = np.concatenate([numbers_of(hvd.rank(), step) for step in range(STEPS)])
    model.fit(numbers, np.zeros((len(numbers), 4), np.float32), batch_size=90, shuffle=False, verbose=0)
    return model, optimizer.rows


def cases() -> Iterator[str]:
    model, rows = fit("plain")
    assert_same("plain", model)
    total = rows.stats()["total"]
    assert total["rows_given"] == 2 * 90 * STEPS
    assert total["given_bytes"] == total["rows_given"] * (4 * DIMENSION + 8)
    assert total["rows_sent"] < total["rows_given"] / 2
    assert total["value_bytes"] == 4 * DIMENSION * total["rows_sent"]
    assert "embedding" in rows.report()
    yield "plain"

    model, _ = fit("eagerly", eagerly=True, op=hvd.Sum)
    assert_same("eagerly", model, average=False)
    yield "eagerly"

    model, rows = fit("bits", rows=f"rice+qsgd(bits=7, bucket={DIMENSION})")
    assert_same("bits", model, bits=7)
    state = rows.state_dict()
    assert all(of["residual"].any() for of in state["slots"].values())
    rows.load_state_dict(state)
    yield "bits"

    compression = DeepReduce(sparsifier="none", value="raw", memory="none", name="both", min_numel=2)
    model, rows = fit("both.rows", compression=compression)
    assert_same("both", model)
    assert str(rows.settings) == "rows+rice+raw+none"
    assert [row["steps"] for row in compression.stats()["tensors"]] == [0, 0, STEPS, STEPS]
    yield "both"

    for graph in (True, False):
        check_tape(f"tape.{graph}", graph)
        yield f"tape {graph}"
    check_two_in_one_function()
    yield "two in one function"
    check_two_of_a_name()
    yield "two of a name"
    check_rollback()
    yield "rollback"
    check_failure()
    yield "failure"


def check_tape(case: str, graph: bool) -> None:
    model = make_model()
    rows: Any = None

    def step(numbers: tf.Tensor) -> None:
        nonlocal rows
        with tf.GradientTape() as tape:
            loss = loss_of(model, numbers)
        tape = DistributedGradientTape(tape, rows=rows, rows_name=case)
        rows = tape.rows
        for variable, gradient in zip(
            model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
        ):
            variable.assign_sub(LEARNING_RATE * tf.convert_to_tensor(gradient))

    run = tf.function(step) if graph else step
    for number in range(STEPS):
        run(tf.constant(numbers_of(hvd.rank(), number)))
    assert_same(case, model)
    assert rows.stats()["steps"] == STEPS


def check_two_in_one_function() -> None:
    """A function may reduce twice: the second exchange comes after the first."""
    table = tf.Variable(tf.zeros([10, DIMENSION]))

    @tf.function
    def both(factors: tf.Tensor) -> list[tf.Tensor]:
        found, rows = [], None
        for factor in tf.unstack(factors):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.gather(table, [1, 1, 3]) * factor)
            tape = DistributedGradientTape(tape, rows=rows, rows_name="twice")
            rows = tape.rows
            found.append(tf.convert_to_tensor(tape.gradient(loss, [table])[0]))
        return found

    for step in range(5):
        found = both(tf.constant([hvd.rank() + 1.0 + step, -10.0 * (hvd.rank() + 2)]))
        mean_rank = (hvd.size() - 1) / 2
        for gradient, expected in zip(found, (mean_rank + 1 + step, -10 * (mean_rank + 2)), strict=True):
            np.testing.assert_allclose(gradient[1:4, 0], [2 * expected, 0, expected], rtol=1e-6)


def check_two_of_a_name() -> None:
    """Two optimizers of one `rows_name=`: the older is refused once the newer has begun; so is another model."""
    table = tf.Variable(tf.zeros([10, DIMENSION]))
    one = tf.IndexedSlices(tf.ones([1, DIMENSION]), tf.constant([1]), tf.constant([10, DIMENSION]))
    older, newer = (DistributedOptimizer(tf.keras.optimizers.SGD(0.1), rows_name="same") for _ in range(2))
    older._allreduce_grads([one], [table])
    newer._allreduce_grads([one], [table])
    with pytest.raises(Exception, match="another of this name has begun since"):
        older._allreduce_grads([one], [table])
    with pytest.raises(Exception, match="none of the 1 that this DeepReduce was first used with"):
        newer._allreduce_grads([one], [tf.Variable(tf.zeros([10, DIMENSION]))])


def check_rollback() -> None:
    """What a skipped step sent is back in the residuals of its rows, and of no others."""
    table = tf.Variable(tf.zeros([10, DIMENSION]))
    rows: Any = None
    for step, numbers in enumerate(([1, 3, 3], [3, 5])):
        factors = np.random.default_rng([step, hvd.rank()]).standard_normal((len(numbers), DIMENSION))
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, numbers) * factors.astype(np.float32))
        tape = DistributedGradientTape(
            tape, rows=rows or f"rice+qsgd(bits=3, bucket={DIMENSION})", rows_name="rollback"
        )
        if rows is None:
            rows, expected = tape.rows, np.zeros((10, DIMENSION), np.float32)
        else:
            expected = rows.state_dict()["slots"]["0.Variable"]["residual"].reshape(10, DIMENSION).copy()
        np.add.at(expected, numbers, factors.astype(np.float32))
        tape.gradient(loss, [table])
    for _ in range(2):  # a second one has nothing left to take back
        rows.rollback()
        np.testing.assert_allclose(rows.state_dict()["slots"]["0.Variable"]["residual"], expected.ravel(), atol=1e-6)


def check_failure() -> None:
    """One rank fails: every rank says which, where and why, and no variable changes."""
    genuine = row_exchange_module.RowGradient

    def no_room(*given: Any) -> Any:
        raise MemoryError("no room for rows")

    row_exchange_module.RowGradient = no_room if hvd.rank() == 1 else genuine
    model = make_model()
    before = [variable.numpy() for variable in model.trainable_variables]
    model.compile(
        DistributedOptimizer(tf.keras.optimizers.SGD(LEARNING_RATE), rows_name="failure", timeout=30),
        loss=lambda _, outputs: outputs**2,
        jit_compile=False,
    )
    said = ""
    try:
        model.fit(numbers_of(hvd.rank(), 0), np.zeros((90, 4), np.float32), batch_size=90, verbose=0)
    except Exception as error:
        said = str(error)
    assert "rank 1: tensor '0.embedding" in said, said
    assert "MemoryError: no room for rows" in said, said
    assert "not every rank answered" not in said, said
    for variable, expected in zip(model.trainable_variables, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), expected)


def main() -> None:
    hvd.init()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    for case in cases():
        print(f"ROWS {case}", flush=True)
    print("ROWS ok", flush=True)


if __name__ == "__main__":
    main()
