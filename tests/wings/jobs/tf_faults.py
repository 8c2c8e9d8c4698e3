"""Faults of rank 1 with TensorFlow: what ranks catch they print, and go on to the next; a rank that is gone ends it."""

from __future__ import annotations

import argparse
import os
import signal
import time
from typing import Any
from unittest import mock

import horovod.tensorflow as hvd
import tensorflow as tf
from tf_common import batch_loss, digest, make_model

from hvd_deepreduce import agreement
from hvd_deepreduce.errors import DeepReduceError
from hvd_deepreduce.tf import DeepReduce, DistributedGradientTape, exchange

FAULTY_RANK = 1
STEP = 2
GONE = ("joined", "stalled", "killed")
UNUSED = ("tf_none", "tf_table")


def go_missing(how: str) -> None:
    if how == "joined":
        hvd.join()
    elif how == "stalled":
        time.sleep(10**6)
    else:
        os.kill(os.getpid(), signal.SIGKILL)


def damaging(bits: tf.Variable) -> Any:
    """A gather that turns bits of a byte of what it is given."""
    genuine = exchange.gather

    def gather(bundle: tf.Tensor, *to: Any) -> tf.Tensor:
        turned = tf.bitwise.bitwise_xor(bundle[20:21], bits.read_value())
        return genuine(tf.concat([bundle[:20], turned, bundle[21:]], axis=0), *to)

    return gather


def train(fault: str) -> None:
    faulty = hvd.rank() == FAULTY_RANK
    model = make_model()
    scale = tf.Variable(1.0)
    options: dict[str, Any] = {"name": fault, "min_numel": 30, "timeout": 30, "loss_scale": lambda: scale}
    if faulty and fault == "tf_settings":
        options["sparsifier"] = "topk(density=0.02)"
    compression = DeepReduce(**options)
    # Else the time limit would count what one rank takes longer to start.
    hvd.allreduce(tf.zeros(1), name=f"{fault}.ready")
    version = "0.0.9" if faulty and fault == "tf_package_version" else agreement.package_version()
    damage = tf.Variable(0, dtype=tf.uint8)
    gather = damaging(damage)
    for step in range(STEP + 2):
        with tf.GradientTape() as tape:
            loss = batch_loss(model, hvd.rank(), step)
        if step == STEP and fault == "stalled":
            # Not before: on a busy machine ranks trace the first steps at very different paces.
            coder = compression._session._coder
            getattr(coder, "_host", coder).timeout_s = 5
        at_fault = faulty and step == (0 if fault in ("tf_settings", "tf_package_version") else STEP)
        if at_fault:
            print(f"FAULT {fault}", flush=True)
        if at_fault and fault in GONE:
            go_missing(fault)
            return
        if at_fault and fault == "tf_damaged":
            damage.assign(0x10)
        if at_fault and fault == "tf_scale":
            scale.assign(0.0)
        before = digest(model.trainable_variables)
        tape = hvd.DistributedGradientTape(tape, compression=compression)
        with (
            mock.patch.object(exchange, "gather", gather),
            mock.patch.object(agreement, "package_version", return_value=version),
        ):
            try:
                gradients = tape.gradient(loss, model.trainable_variables)
            except (DeepReduceError, tf.errors.OpError):
                assert digest(model.trainable_variables) == before, f"{fault}: variables changed"
                raise
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
            variable.assign_sub(0.1 * gradient)
    print(f"NO ERROR {fault}", flush=True)


def leave_one_unused(fault: str) -> None:
    """The faulty rank's loss does not use a variable in a step: one with a dense gradient, or a table."""
    faulty = hvd.rank() == FAULTY_RANK
    used, other = tf.Variable(tf.ones(40), name="used"), tf.Variable(tf.ones([10, 4]), name="other")
    compression = DeepReduce(name=fault, min_numel=30)
    rows: Any = None
    for step in range(STEP + 1):
        at_fault = faulty and step == STEP
        if at_fault:
            print(f"FAULT {fault}", flush=True)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(used**2)
            if not at_fault:
                loss += tf.reduce_sum((tf.gather(other, [1, 2]) if fault == "tf_table" else other) ** 2)
        if fault == "tf_table":
            tape = DistributedGradientTape(tape, rows=rows, rows_name=fault)
            rows = tape.rows
        else:
            tape = hvd.DistributedGradientTape(tape, compression=compression)
        tape.gradient(loss, [used, other])
    print(f"NO ERROR {fault}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("faults", nargs="+")
    faults = parser.parse_args().faults
    tf.config.threading.set_intra_op_parallelism_threads(1)
    hvd.init()
    if faults[0] in GONE:
        train(faults[0])
        return
    for fault in faults:
        try:
            (leave_one_unused if fault in UNUSED else train)(fault)
        except (DeepReduceError, tf.errors.OpError) as error:
            # TensorFlow puts many lines of its own around the one that counts.
            said = [line for line in str(error).splitlines() if "rank" in line and "raise " not in line]
            print(f"CAUGHT {fault} {type(error).__name__}: {' '.join(said)}", flush=True)
    # The first to end would take the others with it.
    hvd.allreduce(tf.zeros(1), name="end")


if __name__ == "__main__":
    main()
