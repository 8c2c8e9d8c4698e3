"""What needs no second rank: settings, refusals, and that one process exchanges nothing."""

from __future__ import annotations

from typing import Any

import horovod.tensorflow as hvd
import tensorflow as tf

from hvd_deepreduce.errors import (
    DeepReduceError,
    InvalidSettingError,
    StateMismatchError,
    UnsupportedOperationError,
)
from hvd_deepreduce.rows.settings import RowSettings
from hvd_deepreduce.tf import DeepReduce, DistributedGradientTape, DistributedOptimizer


def check_settings() -> None:
    compression = DeepReduce(index="bitmap", value="qsgd(bits=4)", memory="none", seed=3)
    optimizer = DistributedOptimizer(tf.keras.optimizers.SGD(), compression=compression)
    assert optimizer.rows.settings == RowSettings.of("bitmap", "qsgd(bits=4)", "none", 3)
    tape = DistributedGradientTape(tf.GradientTape())
    assert str(tape.rows.settings) == "rows+rice+raw+none"
    assert DistributedGradientTape(tf.GradientTape(), rows=tape.rows).rows is tape.rows


def check_one_process() -> None:
    variable = tf.Variable(tf.ones([5, 2]))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(variable, [1, 1, 3]))
    distributed = DistributedGradientTape(tape)
    [gradient] = distributed.gradient(loss, [variable])
    assert gradient.indices.numpy().tolist() == [1, 1, 3]
    assert distributed.rows.stats()["total"]["sent_bytes"] == 0


def refused(error: type[DeepReduceError], message: str, make: Any, *arguments: Any, **options: Any) -> None:
    try:
        make(*arguments, **options)
    except error as found:
        said = str(found)
    else:
        raise AssertionError(f"no error for {options}")
    assert message in said, said


def check_refusals() -> None:
    for make, of in ((DistributedOptimizer, tf.keras.optimizers.SGD()), (DistributedGradientTape, tf.GradientTape())):
        refused(UnsupportedOperationError, "op=Average and op=Sum only", make, of, op=hvd.Min)
        refused(InvalidSettingError, "groups= takes no sparse gradients", make, of, groups=1)
        refused(InvalidSettingError, "'topk' is unknown", make, of, rows="topk")
        refused(InvalidSettingError, "rows: 0 is of type int", make, of, rows=0)
        refused(InvalidSettingError, "timeout=0", make, of, timeout=0)
        dgc = DeepReduce(memory="dgc")
        refused(InvalidSettingError, "say rows= for sparse gradients", make, of, compression=dgc)
    one, other = (DistributedGradientTape(tf.GradientTape(), rows=text).rows for text in ("rice+raw", "bitmap+raw"))
    message = "the state is of settings 'rows+rice+raw+none', here it is 'rows+bitmap+raw+none'"
    refused(StateMismatchError, message, other.load_state_dict, one.state_dict())


if __name__ == "__main__":
    hvd.init()
    check_settings()
    check_one_process()
    check_refusals()
    print("ALONE ok", flush=True)
