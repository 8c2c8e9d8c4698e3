"""A rank that does not take part: it stalls, or has joined, before a step of the others."""

from __future__ import annotations

import sys
import time

import horovod.tensorflow as hvd
import tensorflow as tf
from tf_common import batch_loss, make_model

from hvd_deepreduce.tf import DeepReduce

STEP = 2


def main() -> None:
    fault = sys.argv[1]
    hvd.init()
    model = make_model()
    compression = DeepReduce(min_numel=30, timeout=5)
    for step in range(4):
        if step == STEP and hvd.rank() == 1:
            if fault == "joined":
                hvd.join()
                return
            time.sleep(100)
        with tf.GradientTape() as tape:
            loss = batch_loss(model, hvd.rank(), step)
        tape = hvd.DistributedGradientTape(tape, compression=compression)
        tape.gradient(loss, model.trainable_variables)
    print("JOB went on")


if __name__ == "__main__":
    main()
