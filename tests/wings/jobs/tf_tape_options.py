"""What stock Horovod's tape can be asked for; no Keras optimizer takes part, so Keras 3 can be held against it too."""

from __future__ import annotations

from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from tf_common import assert_equal_on_all_ranks, batch_loss, make_model
from tf_training import Variables, assert_same, everyone, make, train_alone, with_tape

SUBSET = (0, 2)  # of three ranks


def check_eager() -> None:
    """A loop of one's own, coded in Python too, and with nothing traced at all."""
    expected = train_alone(make_model(), batch_loss, everyone())
    assert_same("loop", with_tape(make_model(), batch_loss, make("loop", custom_op=False), graph=False), expected)
    tf.config.run_functions_eagerly(True)
    try:
        assert_same("eager", with_tape(make_model(), batch_loss, make("eager"), graph=False), expected)
    finally:
        tf.config.run_functions_eagerly(False)


def check_dtypes() -> None:
    def loss(model: Any, rank: int, step: int) -> tf.Tensor:
        first, second = model.trainable_variables
        target = np.random.default_rng([step, rank]).standard_normal((24, 20))
        return tf.reduce_sum((first - tf.cast(target, first.dtype)) ** 2) + tf.reduce_sum(second * rank)

    values = [np.random.default_rng(3).standard_normal(shape) for shape in ((24, 20), (24,))]
    for dtype in (tf.float64, tf.bfloat16, tf.float16):
        model, alone = (Variables(*values, dtype=dtype) for _ in range(2))
        with_tape(model, loss, make(dtype.name), graph=False)
        assert_same(dtype.name, model, train_alone(alone, loss, everyone()))


def check_process_set(subset: hvd.ProcessSet | None) -> None:
    if subset is not None and subset.included():
        model = with_tape(make_model(), batch_loss, make("subset"), graph=False, process_set=subset)
        assert_same("subset", model, train_alone(make_model(), batch_loss, SUBSET), subset)
    elif subset is not None:
        # As on the others: without DeepReduce these gradients would stay what they are, too.
        with_tape(make_model(), batch_loss, make("subset"), graph=False, process_set=subset)


def check_words() -> None:
    """An embedding's gradient has rows alone; with sparse_as_dense=True it is compressed."""

    def loss(model: Any, rank: int, step: int) -> tf.Tensor:
        table, weight = model.trainable_variables
        words = np.random.default_rng([step, rank]).integers(0, 50, 6)
        return tf.reduce_mean((tf.gather(table, words) @ weight) ** 2)

    values = [np.random.default_rng(5).standard_normal(shape) for shape in ((50, 8), (8, 8))]
    model, alone = Variables(*values), Variables(*values)
    with_tape(model, loss, make("words"), graph=False, sparse_as_dense=True)
    assert_same("words", model, train_alone(alone, loss, everyone()))


def check_not_finite() -> None:
    """One rank's NaN or infinity makes the tensor NaN on all ranks, once; no residual remembers it."""
    for number, bad in enumerate((np.nan, np.inf)):
        case = f"bad.{number}"
        compression = make(case, "topk(density=0.1)+rice+raw")
        model = Variables(np.zeros((8, 10)))
        gradients = np.random.default_rng(hvd.rank()).standard_normal((3, 8, 10)).astype(np.float32)
        if hvd.rank() == 1:
            gradients[1, 2, 3] = bad
        for step in range(3):
            with tf.GradientTape() as tape:
                value = tf.reduce_sum(model.trainable_variables[0] * gradients[step])
            tape = hvd.DistributedGradientTape(tape, compression=compression)
            [reduced] = tape.gradient(value, model.trainable_variables)
            finite = np.isfinite(reduced.numpy())
            assert (not finite.any()) if step == 1 else finite.all(), case
            [residual] = compression._kept.slots.values()
            assert np.isfinite(residual.numpy()).all(), case
        assert compression.stats()["total"]["not_finite"] == (hvd.rank() == 1)


def check_settings_of_every_kind() -> None:
    """Stages without a native batch, and those that keep arrays of their own."""
    for text in (
        "dropping(rate=0.9, sample=0.2, scope='global')+rice+qsgd(bits=5)",
        "threshold(value=1e9)+rice+qsgd(bits=6)",
        "none+bitmap+raw+none",
    ):
        model = with_tape(make_model(), batch_loss, make(f"kind.{text}", text), graph=False)
        assert_same(f"kind.{text}", model, train_alone(make_model(), batch_loss, everyone(), text=text))
    for text in ("dgc(density=0.05)+huffman+natural+dgc", "randomk(density=0.1)+raw+raw"):
        model = with_tape(make_model(), batch_loss, make(f"kind.{text}", text), graph=False)
        assert_equal_on_all_ranks(model.trainable_variables, f"kind.{text}")


def check_two_models() -> None:
    """Each its own DeepReduce; and a model that is built anew takes over from one that is gone."""
    for number in (4, 5):
        model = with_tape(make_model(number), batch_loss, make(f"two.{number}"), graph=False)
        assert_same(f"two.{number}", model, train_alone(make_model(number), batch_loss, everyone()))


def check_two_gradients_in_one_function() -> None:
    """A function may compute gradients twice: the second exchange comes after the first."""
    mean_rank = (hvd.size() - 1) / 2
    for custom_op in (True, False):
        compression = make(f"twice.{custom_op}", "none+raw+raw+none", custom_op=custom_op)
        variables = Variables(np.zeros((20, 10)), np.zeros(3)).trainable_variables

        @tf.function
        def both(factors: tf.Tensor, variables: Any = variables, compression: Any = compression) -> list[Any]:
            found = []
            for factor in tf.unstack(factors):
                with tf.GradientTape() as tape:
                    loss = sum(tf.reduce_sum(variable * factor) for variable in variables)
                found.append(hvd.DistributedGradientTape(tape, compression=compression).gradient(loss, variables))
            return found

        for step in range(10):
            found = both(tf.constant([hvd.rank() + 1.0 + step, -10.0 * (hvd.rank() + 2)]))
            for gradients, expected in zip(found, (mean_rank + 1 + step, -10 * (mean_rank + 2)), strict=True):
                for gradient in gradients:
                    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-6)
        assert compression.stats()["steps"] == 20
