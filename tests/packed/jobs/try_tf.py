"""A few steps on every rank, as the README has it; ends with equal replicas that have learned something."""

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

from hvd_deepreduce.tf import DeepReduce

hvd.init()
tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential([tf.keras.layers.Dense(100, input_shape=(100,)), tf.keras.layers.Dense(1)])
compression = DeepReduce()
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.01), compression=compression)
model.compile(optimizer, loss="mse")
inputs = np.random.default_rng(hvd.rank()).standard_normal((60 * 32, 100)).astype(np.float32)
first = hvd.callbacks.BroadcastGlobalVariablesCallback(0)
history = model.fit(inputs, inputs.sum(1, keepdims=True) / 10, 32, epochs=2, callbacks=[first], verbose=0).history
weights = np.concatenate([weight.ravel() for weight in model.get_weights()])
everywhere = hvd.allgather(weights[None])
assert all(np.array_equal(everywhere[0], one) for one in everywhere)
assert history["loss"][-1] < history["loss"][0], history
assert compression.stats()["steps"] == 120
print(f"rank {hvd.rank()}: replicas are equal")
