"""TensorFlow tensors <-> flat ones in row-major order, of the dtype that residuals are kept in."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hvd_deepreduce.sparse import TensorSpec

_DTYPE_NAMES = {
    tf.float16: "float16",
    tf.bfloat16: "bfloat16",
    tf.float32: "float32",
    tf.float64: "float64",
}


def dtype_name(tensor: Any) -> str | None:
    """The core's name of a tensor's dtype; None for dtypes that are not compressed."""
    return _DTYPE_NAMES.get(tf.as_dtype(tensor.dtype).base_dtype)


def value_dtype(spec: TensorSpec) -> tf.DType:
    """What residuals of this tensor are kept in."""
    return tf.as_dtype(spec.value_dtype)


def to_flat(gradient: tf.Tensor, spec: TensorSpec, scale: tf.Tensor | None) -> tf.Tensor:
    """gradient / scale as a flat tensor in row-major order and a value dtype."""
    flat = tf.cast(tf.reshape(gradient, [spec.numel]), value_dtype(spec))
    return flat if scale is None else flat / tf.cast(scale, flat.dtype)


def from_flat(flat: tf.Tensor, spec: TensorSpec, dtype: tf.DType, scale: tf.Tensor | None) -> tf.Tensor:
    """flat x scale in the gradient's dtype and shape, which is static; see `to_flat`."""
    if scale is not None:
        flat = flat * tf.cast(scale, flat.dtype)
    return tf.cast(tf.reshape(flat, spec.shape), dtype)
