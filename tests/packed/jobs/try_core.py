"""The core without any framework: a gradient there and back, and files for the command line to read."""

import sys

import numpy as np

import hvd_deepreduce
from hvd_deepreduce import JsonLinesWriter, Settings
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.statistics import Statistics
from hvd_deepreduce.wire.reader import ByteReader

assert hvd_deepreduce.__file__.startswith(sys.prefix), hvd_deepreduce.__file__

spec = TensorSpec("layer", (30, 100))
gradient = np.random.default_rng(0).standard_normal(spec.numel).astype(np.float32)
pipeline = Pipeline(Settings.from_string("topk(density=0.01)+rice+raw"))
slots, draw = pipeline.new_slots(spec), Draw(0, "layer", 0, 0)
statistics = Statistics("topk(density=0.01)+rice+raw", [spec], [])
encoded = pipeline.encode(gradient, spec, slots, draw)
received = np.zeros_like(gradient)
assert pipeline.add_into(received, pipeline.read(ByteReader(encoded.frame, "frame"), spec), spec, draw, 1.0)
assert np.count_nonzero(received) == 30
assert np.array_equal(received + slots["residual"], gradient)

np.save("layer.npy", gradient.reshape(spec.shape))
with JsonLinesWriter("run.jsonl") as writer:
    statistics.tensors[0].add(encoded)
    statistics.steps = 1
    writer.write({**statistics.as_dict(), "rank": 0, "size": 2}, loss=0.5)
assert not {"torch", "tensorflow", "horovod"} & set(sys.modules)
print("the core works")
