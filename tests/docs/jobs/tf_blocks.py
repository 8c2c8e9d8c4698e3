"""Runs every block of TensorFlow in the pages on every rank, each with a Keras model of its own."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import horovod.tensorflow.keras as hvd
import tensorflow as tf
from docs.blocks import Block, python_blocks

from hvd_deepreduce.tf import DeepReduce


def new_world() -> dict[str, Any]:
    """Names as in anybody's script; nothing is wrapped yet."""
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Dense(64, input_shape=(64,)), tf.keras.layers.Dense(1)])
    images, labels = tf.random.normal((16, 64)), tf.random.normal((16, 1))
    optimizer = tf.keras.optimizers.SGD(0.01)
    return {
        "hvd": hvd,
        "tf": tf,
        "DeepReduce": DeepReduce,
        "model": model,
        "optimizer": optimizer,
        "compression": DeepReduce(),
        "data": tf.data.Dataset.from_tensor_slices((images, labels)).batch(8),
        "images": images,
        "labels": labels,
        "loss_of": lambda found, wanted: tf.reduce_mean(tf.square(found - wanted)),
    }


def run(block: Block) -> None:
    """Errors carry the page's name and line."""
    exec(compile("\n" * (block.line - 1) + block.code, str(block.page), "exec"), new_world())


def main() -> None:
    hvd.init()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    os.chdir(tempfile.mkdtemp())
    found = python_blocks("tf")
    for block in found:
        if hvd.rank() == 0:
            print(f"{block.place} ...", flush=True)
        run(block)
    if hvd.rank() == 0:
        print(f"{len(found)} blocks ran", flush=True)


if __name__ == "__main__":
    main()
