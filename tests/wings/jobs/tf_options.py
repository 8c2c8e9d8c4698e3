"""Everything Horovod's optimizers and tape for TensorFlow can be asked for: equal replicas, equal to the oracle."""

from __future__ import annotations

import argparse
import os
import pickle
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import pytest
import tensorflow as tf
from oracle import Oracle
from tf_common import assert_equal_on_all_ranks, batch, batch_loss, make_model

from hvd_deepreduce import Settings
from hvd_deepreduce.tf import DeepReduce, exchange
from hvd_deepreduce.tf.parameters import name_of

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tf" / "examples"))
from callbacks import TakeBack

TEXT = "topk(density=0.1)+rice+qsgd(bits=6, bucket=64)+residual"
STEPS = 4
MIN_NUMEL = 30
SUBSET = (0, 2)  # of three ranks

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


def check_eager() -> None:
    """A loop of one's own, coded in Python too, and with nothing traced at all."""
    expected = train_alone(make_model(), batch_loss, everyone())
    assert_same("loop", with_tape(make_model(), batch_loss, make("loop", custom_op=False), graph=False), expected)
    tf.config.run_functions_eagerly(True)
    try:
        assert_same("eager", with_tape(make_model(), batch_loss, make("eager"), graph=False), expected)
    finally:
        tf.config.run_functions_eagerly(False)


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


def refused(message: str, run: Callable[[], Any]) -> None:
    start = time.monotonic()
    with pytest.raises(Exception, match=re.escape(message)):
        run()
    assert time.monotonic() - start < 30, message


def check_refusals() -> None:
    """Each ends on every rank by a message that names the cause, and Horovod works on."""

    def once(case: str, **options: Any) -> Any:
        return with_tape(make_model(), batch_loss, make(case), graph=False, steps=1, **options)

    for op in ("Min", "Max", "Product"):
        refused(f"op={op} cannot be computed from sparse gradients", lambda op=op: once(op, op=getattr(hvd, op)))
    refused("op=Adasum cannot be computed", lambda: once("adasum", op=hvd.Adasum))
    refused(
        "which variable it belongs to is unknown",
        lambda: hvd.allreduce(tf.zeros(100), compression=make("direct"), name="direct"),
    )

    def compiled() -> None:
        model = make_model()
        optimizer = hvd_keras.DistributedOptimizer(tf.keras.optimizers.SGD(0.1), compression=make("jit"))
        model.compile(optimizer, loss="mse", jit_compile=True)
        model.fit(*data_of_steps(), batch_size=8, verbose=0)

    refused("DeepReduce within jit_compile=True: XLA has no kernel", compiled)

    def another_model() -> None:
        compression = make("another")
        models = [make_model(), Variables(np.zeros((9, 9)), np.zeros((7, 7)))]
        with_tape(models[0], batch_loss, compression, graph=False, steps=1)
        with_tape(
            models[1],
            lambda model, rank, step: sum(tf.reduce_sum(one) for one in model.trainable_variables),
            compression,
            graph=False,
            steps=1,
        )

    refused("that this DeepReduce was first used with", another_model)
    options = {} if hvd.rank() else {"seed": 5}
    refused(
        "seed is 0 on rank 1 and 5 on rank 0",
        lambda: with_tape(make_model(), batch_loss, make("seeds", **options), graph=False, steps=1),
    )

    def damaged() -> None:
        gather = exchange.gather

        def flipping(bundle: tf.Tensor, *to: Any) -> tf.Tensor:
            if hvd.rank() == 1:
                one = tf.constant(1, tf.uint8)
                bundle = tf.concat([bundle[:20], tf.bitwise.bitwise_xor(bundle[20:21], one), bundle[21:]], axis=0)
            return gather(bundle, *to)

        exchange.gather = flipping
        try:
            once("damaged")
        finally:
            exchange.gather = gather

    refused("step 0, rank 1: checksum is", damaged)

    def fails_on_one_rank() -> None:
        compression = make("fails", bucket_bytes=1)
        model = make_model()
        with_tape(model, batch_loss, compression, graph=False, steps=1)
        if hvd.rank() == hvd.size() - 1:
            compression._kept.identity.assign("{}")
        with_tape(model, batch_loss, compression, graph=False, steps=1)

    refused(f"rank {hvd.size() - 1}: the checkpoint that was restored is of", fails_on_one_rank)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*")
    chosen = parser.parse_args().parts
    os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"
    tf.config.threading.set_intra_op_parallelism_threads(1)
    hvd.init()
    subset = hvd.add_process_set(list(SUBSET)) if hvd.size() == 3 else None
    checks = {
        "basics": check_basics,
        "keras": check_keras,
        "eager": check_eager,
        "version_1": check_optimizer_of_version_1,
        "dtypes": check_dtypes,
        "process_set": lambda: check_process_set(subset),
        "words": check_words,
        "not_finite": check_not_finite,
        "mixed_precision": check_mixed_precision,
        "skipped_step": check_skipped_step,
        "rollback": lambda: [check_rollback(custom_op) for custom_op in (True, False)],
        "settings": check_settings_of_every_kind,
        "two_models": check_two_models,
        "load_model": check_load_model,
        "refusals": check_refusals,
    }
    for name in chosen or checks:
        start = time.monotonic()
        checks[name]()
        print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)
    # The first to end would take the others with it.
    hvd.allreduce(tf.zeros(1), name="end")
    print("OPTIONS ok")


if __name__ == "__main__":
    main()
