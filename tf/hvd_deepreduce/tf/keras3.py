"""Keras 3, for which stock Horovod 0.28.1 was not made: its optimizers, its variables on a tape, a broadcast callback.

Horovod's `DistributedOptimizer` overrides what Keras 2 calls (`_compute_gradients`, `_aggregate_gradients`); Keras 3
calls neither, and replicas drift apart in silence. All gradients of a step reach its `apply`, so they are reduced
there, by the function by which Horovod's own optimizers and tape do it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import horovod.tensorflow as hvd
import tensorflow as tf

from hvd_deepreduce.checks import quoted
from hvd_deepreduce.errors import InvalidSettingError, UnsupportedOperationError
from hvd_deepreduce.tf.compressor import is_keras_3


class BroadcastCallback(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """Gives all ranks the weights and the optimizer's state of one, before `fit` takes its first step.

    Metrics and the seeds of dropout stay each rank's own.
    """

    def __init__(self, root_rank: int = 0):
        if not is_keras_3():
            raise InvalidSettingError(
                "BroadcastCallback is for Keras 3; for Keras 2 Horovod has callbacks.BroadcastGlobalVariablesCallback"
            )
        super().__init__()
        self._root_rank = root_rank

    def on_train_begin(self, logs: Any = None) -> None:
        optimizer = self.model.optimizer
        if not optimizer.built:
            optimizer.build(self.model.trainable_variables)
        hvd.broadcast_variables(_of_tensorflow([*self.model.weights, *optimizer.variables]), self._root_rank)


def wrap(
    optimizer: Any,
    *,
    compression: Any,
    op: Any,
    process_set: Any,
    name: str | None = None,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
) -> Any:
    """A new optimizer of the same class and settings whose `apply` reduces gradients first.

    It has no state yet, and is saved and loaded as the class it is made from.
    """
    if not isinstance(optimizer, tf.keras.optimizers.Optimizer):
        raise InvalidSettingError(
            f"DistributedOptimizer: {quoted(optimizer)} is no optimizer of Keras 3, which tf.keras is"
        )
    if isinstance(optimizer, tf.keras.optimizers.LossScaleOptimizer):
        raise UnsupportedOperationError(
            "LossScaleOptimizer of Keras 3: what it skips on one rank others would wait for"
        )
    stock = type(optimizer)

    def apply(self: Any, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
        if "Branch" in type(tf.compat.v1.get_default_graph()).__name__:
            raise UnsupportedOperationError(
                "gradients are applied within a condition, as under LossScaleOptimizer (dtype policy mixed_float16): "
                "ranks that skip a step would leave the others waiting"
            )
        variables = self._trainable_variables if trainable_variables is None else list(trainable_variables)
        if grads:
            grads = self._allreduce_grads(list(grads), _of_tensorflow(variables))
        stock.apply(self, grads, variables)

    made: Any = type(
        stock.__name__, (stock,), {"apply": apply, "__module__": stock.__module__, "__doc__": stock.__doc__}
    )
    wrapped = made.from_config(optimizer.get_config())
    wrapped._allreduce_grads = hvd._make_allreduce_grads_fn(
        name or f"Distributed{stock.__name__}",
        "",
        "",
        compression,
        sparse_as_dense,
        op,
        gradient_predivide_factor,
        None,
        process_set,
    )
    return wrapped


def take_variables(tape: Any) -> Any:
    """Lets a tape of Horovod's be asked for the gradients of Keras 3's variables."""
    stock = tape.gradient

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def gradient(target: Any, sources: Sequence[Any], *others: Any, **options: Any) -> Any:
        return stock(target, _of_tensorflow(sources), *others, **options)

    tape.gradient = gradient
    return tape


def _of_tensorflow(variables: Sequence[Any]) -> list[tf.Variable]:
    """Keras 3 wraps TensorFlow's variables into its own, which neither Horovod nor its frames know."""
    return [variable if isinstance(variable, tf.Variable) else variable.value for variable in variables]
