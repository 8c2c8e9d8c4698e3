"""Where the time of a training step goes: computing, coding, communicating."""

import time
from typing import Any

import tensorflow as tf

from hvd_deepreduce.demo.job_result import Times

_WARM_UP, _MEASURED = 5, 20


def milliseconds_of_computing(model: tf.keras.Model, data: tf.data.Dataset) -> float:
    """What forward and backward pass take, measured before training on all ranks at once; changes nothing."""
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def gradients(images: tf.Tensor, labels: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        return tape.gradient(loss, model.trainable_variables)

    for step, batch in enumerate(data.take(_WARM_UP + _MEASURED)):
        if step == _WARM_UP:
            start = time.perf_counter()
        gradients(*batch)[0].numpy()
    return 1e3 * (time.perf_counter() - start) / _MEASURED


class StepClock(tf.keras.callbacks.Callback):
    """Takes the time of the steps but the first, in which the graph is traced.

    Within a graph nobody sees when computing ends and communicating begins. So computing is what `milliseconds_of_
    computing` measured, coding what DeepReduce counts, and communication the rest, waiting for the slowest rank and the
    optimizer's own work included.
    """

    def __init__(self) -> None:
        super().__init__()
        self._steps = 0
        self._start = self._end = 0.0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Counts a step."""
        self._end = time.perf_counter()
        if batch == 0:
            self._start = self._end
        self._steps = batch

    def times(self, compute_ms: float, compression: Any) -> Times:
        """Means per step on this rank. `compression` has `stats()` like DeepReduce's, or its coding is not told."""
        step_ms = 1e3 * (self._end - self._start) / max(1, self._steps)
        coding_ms = 0.0
        if hasattr(compression, "stats"):
            stats = compression.stats()
            coding_ms = (stats["total"]["encode_ms"] + stats["total"]["decode_ms"]) / max(1, stats["steps"])
        return Times(
            step_ms=step_ms,
            compute_ms=min(step_ms, compute_ms),
            coding_ms=coding_ms,
            communication_ms=max(0.0, step_ms - compute_ms - coding_ms),
        )
