"""What the loss is multiplied by, as `loss_scale=` tells: asked when a step is traced, and checked in every step."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, Final, NamedTuple

import tensorflow as tf

from hvd_deepreduce.checks import require_number
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.failures import failure_of, without_rank

LEAST: Final = 2.0**-126


class LossScale(NamedTuple):
    """Of one traced step."""

    value: tf.Tensor | None
    """None for 1."""
    trouble: tf.Tensor
    """Why gradients can't be divided by it, to be sent in their place; empty if they can."""


def asked(loss_scale: Callable[[], Any] | None) -> LossScale:
    """What a function returns: a number, or a tensor or variable whose value may be another in every step."""
    fine = tf.constant("")
    if loss_scale is None:
        return LossScale(None, fine)
    try:
        scale = loss_scale()
        if scale is None or isinstance(scale, Real | str):
            _require(scale)
        value = tf.cast(tf.convert_to_tensor(scale), tf.float64)
        if value.shape.rank != 0:
            raise InvalidSettingError(f"DeepReduce: loss_scale() is of shape {value.shape}; needed is one number")
    except Exception as error:  # the wing's edge: an error on one rank must reach all
        return LossScale(None, tf.constant(without_rank(failure_of(error, 0))))

    def said() -> tf.Tensor:
        return tf.ensure_shape(tf.numpy_function(_trouble, [value], tf.string, stateful=False), [])

    good = tf.logical_and(tf.math.is_finite(value), value >= LEAST)
    return LossScale(value, tf.cond(good, lambda: fine, said))


def _require(scale: Any) -> None:
    """Raises `InvalidSettingError`, as the PyTorch wing does, but for numbers that a gradient can be divided by."""
    number = float(scale) if isinstance(scale, Real) and not isinstance(scale, bool) else scale
    require_number("DeepReduce", "loss_scale()", number, minimum=LEAST)


def _trouble(scale: Any) -> bytes:
    try:
        _require(scale.item())
    except ValueError as error:
        return str(error).encode()
    return b""
