"""The PyTorch wing: pass `DeepReduce(model.named_parameters())` as `compression=` to `hvd.DistributedOptimizer`."""

try:
    import torch.nn  # noqa: F401 (a folder called torch on the path is no PyTorch)
except ImportError as error:
    raise ImportError("hvd_deepreduce.torch needs PyTorch: pip install torch") from error
try:
    import horovod.torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        "hvd_deepreduce.torch needs Horovod built for the installed PyTorch: see README.md, or run docker/setup.sh"
    ) from error

from hvd_deepreduce.torch.compressor import DeepReduce
from hvd_deepreduce.torch.optimizer import DistributedOptimizer, sparse_parameters

__all__ = ["DeepReduce", "DistributedOptimizer", "sparse_parameters"]
