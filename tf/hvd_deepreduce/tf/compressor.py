"""What users pass as `compression=` to Horovod's optimizers and tape for TensorFlow and Keras."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import horovod.tensorflow as hvd
import tensorflow as tf
from horovod.tensorflow.compression import Compressor
from tensorflow.python.ops import control_flow_util

from hvd_deepreduce.checks import quoted, require_flag
from hvd_deepreduce.contracts import IndexCodec, Memory, Sparsifier, ValueCodec
from hvd_deepreduce.errors import DeepReduceError, InvalidSettingError, UnsupportedOperationError
from hvd_deepreduce.settings import (
    DEFAULT_BUCKET_BYTES,
    DEFAULT_INDEX,
    DEFAULT_MEMORY,
    DEFAULT_MIN_NUMEL,
    DEFAULT_SPARSIFIER,
    DEFAULT_TIMEOUT_S,
    DEFAULT_VALUE,
    Settings,
    require_options,
)
from hvd_deepreduce.tf.exchange import Exchange
from hvd_deepreduce.tf.session import Session
from hvd_deepreduce.tf.tensors import Kept

_KERAS_3 = (
    "this TensorFlow comes with Keras 3, whose optimizers stock Horovod 0.28.1 silently never synchronises: replicas "
    "drift apart, with or without DeepReduce. What works is hvd_deepreduce.tf.DistributedOptimizer, or "
    "hvd.DistributedGradientTape in a loop of your own, or Keras 2: pip install tf_keras, and set "
    "TF_USE_LEGACY_KERAS=1 before TensorFlow is imported"
)


class _Context(NamedTuple):
    """What `decompress` gets back from `compress`."""

    exchange: Exchange
    gradient: tf.Tensor


class DeepReduce(Compressor, tf.Module):  # type: ignore[misc]
    """Sparsifies gradients with error feedback and codes support and values apart (DeepReduce, arXiv 2102.03112).

    Args:
        sparsifier: which elements to keep, `topk(density=0.01)` for instance.
        index: how their positions are coded, `rice` for instance.
        value: how their values are coded, `qsgd(bits=7)` for instance.
        memory: what becomes of the rest: `residual` (error feedback), `none`, or what a sparsifier needs.
        name: tells compressors in one process apart; the same on every rank. One compressor serves one model.
        seed: of the stochastic codecs; the same on every rank. The user's generators are never touched.
        min_numel: tensors of fewer elements are left to Horovod, and so are those that are not floating-point.
        bucket_bytes: tensors of at most so many dense bytes together share one collective.
        process_set: the optimizer's; by default it is read from there.
        timeout: seconds to wait for the other ranks before an error.
        threads: how many threads code the tensors of a bucket; the bytes are the same for any number.
        loss_scale: what the loss is multiplied by at the moment, `lambda: optimizer.loss_scale` for instance, asked
            when a step is traced: residuals are then kept unscaled. See also `rollback`.

    Each stage is text or the settings object it names, `topk(density=0.01)` or `TopK(density=0.01)`;
    `InvalidSettingError` lists what is allowed, and so does `hvd-deepreduce codecs`. Gradients may be float16,
    bfloat16, float32 or float64; residuals are float32, float64 for the last.

    Give it to `tf.train.Checkpoint` to save residuals and step counters, one checkpoint for each rank. Pickling carries
    settings only.

    Errors are collective: when one rank fails, every rank raises, with tensor, rank and cause. TensorFlow makes errors
    of its own of those raised while a graph runs, which hold the message.
    """

    def __init__(
        self,
        sparsifier: str | Sparsifier = DEFAULT_SPARSIFIER,
        index: str | IndexCodec = DEFAULT_INDEX,
        value: str | ValueCodec = DEFAULT_VALUE,
        memory: str | Memory = DEFAULT_MEMORY,
        *,
        name: str = "deepreduce",
        seed: int = 0,
        min_numel: int = DEFAULT_MIN_NUMEL,
        bucket_bytes: int = DEFAULT_BUCKET_BYTES,
        process_set: Any = None,
        timeout: float = DEFAULT_TIMEOUT_S,
        threads: int = 1,
        loss_scale: Callable[[], Any] | None = None,
        custom_op: bool = True,
    ):
        super().__init__()
        require_options(name, min_numel=min_numel, bucket_bytes=bucket_bytes, timeout=timeout, threads=threads)
        require_flag("DeepReduce", "custom_op", custom_op)
        if process_set is not None and not isinstance(process_set, hvd.ProcessSet):
            raise InvalidSettingError(
                f"DeepReduce: process_set={quoted(process_set)}; needed is a horovod.tensorflow.ProcessSet"
            )
        if is_keras_3():
            warnings.warn(f"DeepReduce: {_KERAS_3}", stacklevel=2)
        self.settings = Settings.of(sparsifier, index, value, memory, seed)
        self._given = _Given(name, min_numel, bucket_bytes, timeout, threads, custom_op)
        self._kept = Kept()
        self._session = Session(
            name,
            self.settings,
            self._kept,
            min_numel=min_numel,
            bucket_bytes=bucket_bytes,
            process_set=process_set,
            timeout_s=timeout,
            threads=threads,
            ask_scale=loss_scale,
            custom_op=custom_op,
        )
        # TensorFlow may trace, and run functions eagerly, on threads of its own.
        self._lock = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles settings only: residuals are a rank's own, and neither a process set nor a function is carried."""
        return _from_settings, (self.settings.to_dict(), self._given._asdict())

    def __deepcopy__(self, memo: dict[int, Any]) -> DeepReduce:
        """The same object: Keras copies what optimizers are made of, and this one holds their residuals."""
        return self

    @classmethod
    def from_string(cls, text: str, *, seed: int = 0, **options: Any) -> DeepReduce:
        """From the one-string form, `topk(density=0.01)+rice+qsgd(bits=7)`; `options` are the constructor's other ones.

        Parts left out at the end take their defaults; a fourth part names the memory.
        """
        return cls(*Settings.from_string(text).stages, seed=seed, **options)

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def compress(self, tensor: tf.Tensor) -> tuple[tf.Tensor, _Context | None]:
        """Hands Horovod a probe to reduce in a gradient's place, and what is not compressed as it is."""
        _require_horovod()
        if hvd.size() == 1:
            return tensor, None  # traced, and never run
        if control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()):
            raise UnsupportedOperationError(
                "DeepReduce within jit_compile=True: XLA has no kernel for Horovod's allgather; compile the model, or "
                "the tf.function, with jit_compile=False"
            )
        with self._lock:
            exchange = self._session.exchange_of(tensor)
            if exchange is None:
                return tensor, None
            return exchange.hand_over(tensor), _Context(exchange, tensor)

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def decompress(self, tensor: tf.Tensor, ctx: _Context | None) -> tf.Tensor:
        """The sum or average over all ranks of the gradient that `compress` was given."""
        return tensor if ctx is None else ctx.exchange.take_back(ctx.gradient, tensor)

    def stats(self) -> dict[str, Any]:
        """What this rank sent so far: `settings`, `steps`, `collectives`, a list `tensors`, `total` and `pass_through`.

        Every tensor and the total have `numel`, `kept`, `dense_bytes`, `index_bytes`, `value_bytes`, `sent_bytes`,
        `relative_volume` (sent / dense bytes), `bits_per_kept`, `encode_ms`, `decode_ms`, `wait_ms`, summed over the
        steps. `sent_bytes` of a tensor are those of its frames; of the total they are those of the bundles, headers
        included (`bundle_bytes`), and of the probes (`probe_bytes`). `wait_ms` is the time from a bundle's sending to
        the arrival of all ranks', booked on the first tensor of a bucket. `pass_through` counts the tensors left to
        Horovod, in bytes per step. `rank` and `size` are those of the process set, None where it has none; `since` is
        when counting began, in seconds since the epoch. There are no tensors before the first step.
        """
        with self._lock:
            return {**self._place(), **self._session.counted().as_dict()}

    def errors(self) -> dict[str, float | None]:
        """How far what this rank sent in the last step was from what it had to send, by tensor; call it between steps.

        L2 norm of what was not sent / that of gradient and residual together; None for a tensor that was all zero or
        not finite. Empty without error feedback, and after `rollback()`. Costs a pass over the residuals.
        """
        with self._lock:
            return self._session.errors()

    def report(self) -> str:
        """The statistics as a table, per step."""
        with self._lock:
            return self._session.counted().as_table()

    def rollback(self) -> None:
        """Takes the last step's sending back: for a step that the optimizer skipped, on every rank.

        When one gradient overflows under loss scaling, the step is skipped for all tensors, and what the others had
        sent would be lost; now it stays in their residuals. Call it between steps.
        """
        with self._lock:
            self._session.take_back()

    def _place(self) -> dict[str, int | None]:
        process_set = self._session.process_set or hvd.global_process_set
        if not hvd.is_initialized() or not process_set.included():
            return {"rank": None, "size": None}
        return {"rank": process_set.rank(), "size": process_set.size()}


class _Given(NamedTuple):
    """The arguments that pickling carries, but for the stages."""

    name: str
    min_numel: int
    bucket_bytes: int
    timeout: float
    threads: int
    custom_op: bool


def is_keras_3() -> bool:
    """Whether `tf.keras` is Keras 3."""
    major, minor = (int(part) for part in tf.__version__.split(".")[:2])
    return (major, minor) >= (2, 16) and os.environ.get("TF_USE_LEGACY_KERAS", "").lower() not in ("1", "true")


def _from_settings(settings: dict[str, Any], options: dict[str, Any]) -> DeepReduce:
    """Unpickles."""
    return DeepReduce(**settings, **options)


def _require_horovod() -> None:
    if not hvd.is_initialized():
        raise DeepReduceError("hvd.init() must be called first")
