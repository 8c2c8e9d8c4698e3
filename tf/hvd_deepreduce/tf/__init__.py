"""The TensorFlow wing: pass `DeepReduce()` as `compression=` to Horovod's optimizers and tape."""

try:
    import tensorflow as tf

    _ = tf.Variable
except (ImportError, AttributeError) as error:  # a folder called tensorflow on the path is no TensorFlow
    raise ImportError("hvd_deepreduce.tf needs TensorFlow: pip install tensorflow") from error
try:
    import horovod.tensorflow  # noqa: F401
except ImportError as error:
    raise ImportError(
        "hvd_deepreduce.tf needs Horovod built for the installed TensorFlow: see README.md, or run docker/setup.sh"
    ) from error

from hvd_deepreduce.tf.compressor import DeepReduce
from hvd_deepreduce.tf.optimizer import DistributedGradientTape, DistributedOptimizer

__all__ = ["DeepReduce", "DistributedGradientTape", "DistributedOptimizer"]
