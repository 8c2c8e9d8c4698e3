"""What happens around each step of `model.fit`."""

from collections.abc import Callable
from typing import Any, SupportsFloat

import tensorflow as tf

from hvd_deepreduce import JsonLinesWriter
from hvd_deepreduce.demo.schedule import learning_rate_factor
from hvd_deepreduce.demo.train_options import LOG_EVERY


class WarmUpAndCosine(tf.keras.callbacks.Callback):
    """See `learning_rate_factor`."""

    def __init__(self, highest: float, steps: int) -> None:
        super().__init__()
        self._highest, self._steps = highest, steps

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Sets the step's learning rate."""
        self.model.optimizer.learning_rate.assign(learning_rate_factor(batch, self._steps) * self._highest)


class Show(tf.keras.callbacks.Callback):
    """Tells how far training is."""

    def __init__(self, show: Callable[[int, SupportsFloat], None]) -> None:
        super().__init__()
        self._show = show

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """With the loss, which Keras averages over the epoch."""
        self._show(batch + 1, logs["loss"])


class TakeBack(tf.keras.callbacks.Callback):
    """After a step that loss scaling skipped, on every rank, keeps what it had sent."""

    def __init__(self, compression: Any) -> None:
        super().__init__()
        self._compression = compression
        self._scale = 0.0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Remembers the loss scale."""
        self._scale = float(self.model.optimizer.loss_scale)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """A skipped step begins the count of good ones anew, and does not raise the loss scale."""
        optimizer = self.model.optimizer
        if int(optimizer.dynamic_counter) == 0 and float(optimizer.loss_scale) <= self._scale:
            self._compression.rollback()


class Write(tf.keras.callbacks.Callback):
    """Writes statistics now and then."""

    def __init__(self, log: JsonLinesWriter, compression: Any) -> None:
        super().__init__()
        self._log, self._compression = log, compression

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Every so many steps."""
        if (batch + 1) % LOG_EVERY == 0:
            self._log.write(self._compression.stats(), self._compression.errors(), loss=logs["loss"])
