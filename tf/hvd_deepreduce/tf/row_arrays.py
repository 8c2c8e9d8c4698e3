"""`tf.IndexedSlices` <-> merged rows within a graph, and what keeps exchanges of one graph one after the other."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from hvd_deepreduce.rows.merge import table_of
from hvd_deepreduce.sparse import TensorSpec

_LAST = "_hvd_deepreduce_last_rows"


def last_in(graph: Any) -> dict[str, list[tf.Tensor]]:
    """What the next exchange of rows in a graph has to wait for, by name; nothing outside of one."""
    if not hasattr(graph, _LAST):
        if graph is None:
            return {}
        setattr(graph, _LAST, {})
    last: dict[str, list[tf.Tensor]] = getattr(graph, _LAST)
    return last


def merged(slices: tf.IndexedSlices, spec: TensorSpec) -> list[tf.Tensor]:
    """Numbers of the rows, each once and rising, their sums in the value dtype, and how many rows there were before."""
    values = tf.cast(tf.reshape(slices.values, [-1, table_of(spec).columns]), spec.value_dtype)
    numbers, places = tf.unique(tf.cast(slices.indices, tf.int64))
    order = tf.argsort(numbers)
    places = tf.gather(tf.math.invert_permutation(order), places)
    sums = tf.math.unsorted_segment_sum(values, places, tf.size(numbers))
    return [tf.gather(numbers, order), sums, tf.size(slices.indices)]


def slices_like(given: tf.IndexedSlices, numbers: tf.Tensor, values: tf.Tensor, spec: TensorSpec) -> tf.IndexedSlices:
    """Merged rows, flat, in the dtypes of those that were given."""
    numbers.set_shape([None])
    values = tf.cast(tf.reshape(values, [-1, *spec.shape[1:]]), given.values.dtype)
    return tf.IndexedSlices(values, tf.cast(numbers, given.indices.dtype), given.dense_shape)
