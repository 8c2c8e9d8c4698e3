"""The end of Horovod for PyTorch, with a time limit; see `hvd_deepreduce.shutdown`."""

from horovod.torch import mpi_ops

from hvd_deepreduce.shutdown import Shutdown

shutdown = Shutdown(mpi_ops._basics)
