"""The end of Horovod for TensorFlow, with a time limit; see `hvd_deepreduce.shutdown`."""

from horovod.tensorflow import mpi_ops

from hvd_deepreduce.shutdown import Shutdown

shutdown = Shutdown(mpi_ops._basics)
