"""Keras 2 on a TensorFlow that comes with Keras 3: tests/wings/jobs/tf_options.py, after a word to Horovod's callbacks.

They ask the package `keras` for its backend, and that is Keras 3's, which lacks what they need. `stock` as the first
argument leaves them as they are, and shows it.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "wings" / "jobs"))

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import tensorflow as tf
import tf_options
from tf_common import make_model
from tf_training import STEPS, data_of_steps

from hvd_deepreduce.tf.compressor import is_keras_3


def show_stock() -> None:
    hvd.init()
    sgd = tf.keras.optimizers.SGD
    for callback in (
        hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd_keras.callbacks.MetricAverageCallback(),
        hvd_keras.callbacks.LearningRateWarmupCallback(0.1, steps_per_epoch=STEPS),
    ):
        model = make_model()
        model.compile(hvd_keras.DistributedOptimizer(sgd(0.1)), loss="mse")
        try:
            model.fit(*data_of_steps(), batch_size=8, verbose=0, callbacks=[callback])
            said = "works"
        except AttributeError as error:
            said = f"AttributeError: {error}"
        print(f"stock {type(callback).__name__}: {said}", flush=True)
    hvd.allreduce(tf.zeros(1), name="end")
    print("OPTIONS ok")


if __name__ == "__main__":
    assert not is_keras_3()
    if sys.argv[1:] == ["stock"]:
        show_stock()
    else:
        hvd_keras.callbacks.K = tf.keras.backend
        tf_options.main()
