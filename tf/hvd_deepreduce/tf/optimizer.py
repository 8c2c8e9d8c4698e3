"""`DistributedOptimizer` and `DistributedGradientTape`: Horovod's own, with `tf.IndexedSlices` merged and coded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import tensorflow as tf

from hvd_deepreduce.checks import require_number
from hvd_deepreduce.errors import InvalidSettingError, UnsupportedOperationError
from hvd_deepreduce.rows.settings import DEFAULT_ROWS, RowSettings
from hvd_deepreduce.settings import DEFAULT_TIMEOUT_S
from hvd_deepreduce.tf import keras3
from hvd_deepreduce.tf.compressor import DeepReduce, is_keras_3
from hvd_deepreduce.tf.row_exchange import RowExchange


def DistributedOptimizer(  # noqa: N802 (as Horovod's)
    optimizer: Any,
    *,
    compression: Any = hvd.Compression.none,
    op: Any = hvd.Average,
    groups: Any = None,
    process_set: Any = hvd.global_process_set,
    rows: str | RowSettings | None = None,
    rows_name: str = "deepreduce",
    timeout: float = DEFAULT_TIMEOUT_S,
    **others: Any,
) -> Any:
    """`horovod.tensorflow.keras.DistributedOptimizer` with `tf.IndexedSlices` merged by row, coded, and gathered.

    All else is Horovod's: dense gradients, `compression` of these, and every argument that is not named here.

    Args:
        optimizer: a Keras optimizer; one of Keras 3 is wrapped as stock Horovod fails to, see `keras3`.
        compression: see Horovod.
        op: `hvd.Average` or `hvd.Sum`.
        groups: refused, as Horovod hands groups over with sparse gradients among them.
        process_set: see Horovod.
        rows: how rows are coded, `rice+qsgd(bits=7, bucket=64)+residual` for instance. By default with the index codec,
            the value codec and the memory of a `DeepReduce`, and else without loss, `rice+raw`.
        rows_name: tells optimizers in one process apart; the same on every rank.
        timeout: seconds to wait for the other ranks before an error.

    The optimizer has an attribute `rows` more, a `RowExchange` with `stats()`, `report()`, `state_dict()`,
    `load_state_dict()` and `rollback()`, which can be given to `tf.train.Checkpoint`, too. With one process there is
    nothing to exchange, and nothing is compressed.
    """
    exchange = _make_exchange(compression, op, groups, process_set, rows, rows_name, timeout, owns_name=True)
    wrap = keras3.wrap if is_keras_3() else hvd_keras.DistributedOptimizer
    wrapped = wrap(optimizer, compression=compression, op=op, process_set=process_set, **others)
    return _take_over(wrapped, exchange, process_set, others)


def DistributedGradientTape(  # noqa: N802 (as Horovod's)
    gradtape: tf.GradientTape,
    *,
    compression: Any = hvd.Compression.none,
    op: Any = hvd.Average,
    groups: Any = None,
    process_set: Any = hvd.global_process_set,
    rows: RowExchange | str | RowSettings | None = None,
    rows_name: str = "deepreduce",
    timeout: float = DEFAULT_TIMEOUT_S,
    **others: Any,
) -> Any:
    """`horovod.tensorflow.DistributedGradientTape` with `tf.IndexedSlices` as in `DistributedOptimizer`.

    Tapes are made anew at every step: give `rows` the `rows` of the first, so that residuals and counters go on.
    """
    exchange = (
        rows
        if isinstance(rows, RowExchange)
        else _make_exchange(compression, op, groups, process_set, rows, rows_name, timeout, owns_name=False)
    )
    wrapped = hvd.DistributedGradientTape(gradtape, compression=compression, op=op, process_set=process_set, **others)
    if is_keras_3():
        keras3.take_variables(wrapped)
    return _take_over(wrapped, exchange, process_set, others)


def _make_exchange(
    compression: Any,
    op: Any,
    groups: Any,
    process_set: Any,
    rows: str | RowSettings | None,
    name: str,
    timeout: float,
    *,
    owns_name: bool,
) -> RowExchange:
    if op not in (hvd.Average, hvd.Sum):
        raise UnsupportedOperationError("gathered rows allow op=Average and op=Sum only")
    if groups is not None:
        raise InvalidSettingError("groups= takes no sparse gradients; use Horovod's own where there are none")
    require_number("DistributedOptimizer", "timeout", timeout, minimum=0.001)
    deep = compression if isinstance(compression, DeepReduce) else None
    if rows is None and deep is not None:
        try:
            rows = RowSettings(deep.settings.index, deep.settings.value, deep.settings.memory, deep.settings.seed)
        except InvalidSettingError as error:
            raise InvalidSettingError(
                f"{error}; say rows= for sparse gradients, {DEFAULT_ROWS!r} for instance"
            ) from error
    if not isinstance(rows, RowSettings):
        rows = RowSettings.from_string(DEFAULT_ROWS if rows is None else rows, deep.settings.seed if deep else 0)
    average = op == hvd.Average
    return RowExchange(name, rows, average=average, process_set=process_set, timeout_s=timeout, owns_name=owns_name)


def _take_over(wrapped: Any, exchange: RowExchange, process_set: Any, others: dict[str, Any]) -> Any:
    """Horovod's objects keep the function that reduces all gradients of a step; this one takes sparse ones out."""
    if not hasattr(wrapped, "_allreduce_grads"):
        raise InvalidSettingError("this Horovod hands over gradients in another way; needed is 0.28")
    stock = wrapped._allreduce_grads

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def reduce(gradients: Sequence[Any], variables: Sequence[Any], *more: Any) -> list[Any]:
        gradients = list(gradients)
        if not process_set.included() or process_set.size() == 1 or others.get("sparse_as_dense"):
            return list(stock(gradients, variables, *more))
        ours = exchange.reduce(gradients, variables)
        dense = [None if isinstance(one, tf.IndexedSlices) else one for one in ours]
        reduced = stock(dense, variables, *more) if any(one is not None for one in dense) else dense
        return [ours[place] if one is None else one for place, one in enumerate(reduced)]

    wrapped._allreduce_grads = reduce
    # Past Keras, which would put it into every checkpoint of the optimizer: residuals are each rank's own.
    object.__setattr__(wrapped, "rows", exchange)
    return wrapped
