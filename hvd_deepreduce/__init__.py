"""Gradient compression for stock Horovod: the framework-neutral core.

`hvd_deepreduce.torch` and `hvd_deepreduce.tf` hold what users pass as `compression=`.
"""

from hvd_deepreduce.errors import DeepReduceError
from hvd_deepreduce.index_codecs.bitmap import Bitmap
from hvd_deepreduce.index_codecs.matrix import Matrix
from hvd_deepreduce.index_codecs.raw import Raw
from hvd_deepreduce.index_codecs.rice import Rice
from hvd_deepreduce.memories.none import NoMemory
from hvd_deepreduce.memories.residual import Residual
from hvd_deepreduce.records import LoggedRun, read_json_lines
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparsifiers.dropping import Dropping
from hvd_deepreduce.sparsifiers.nonzero import KeepNonzero
from hvd_deepreduce.sparsifiers.threshold import Threshold
from hvd_deepreduce.sparsifiers.topk import TopK
from hvd_deepreduce.timeline import Timeline
from hvd_deepreduce.value_codecs.bf16 import BFloat16
from hvd_deepreduce.value_codecs.fp16 import Float16
from hvd_deepreduce.value_codecs.qsgd import Qsgd
from hvd_deepreduce.value_codecs.raw import RawValues
from hvd_deepreduce.writers import JsonLinesWriter, TensorBoardWriter

__all__ = [
    "BFloat16",
    "Bitmap",
    "DeepReduceError",
    "Dropping",
    "Float16",
    "JsonLinesWriter",
    "KeepNonzero",
    "LoggedRun",
    "Matrix",
    "NoMemory",
    "Qsgd",
    "Raw",
    "RawValues",
    "Residual",
    "Rice",
    "Settings",
    "TensorBoardWriter",
    "Threshold",
    "Timeline",
    "TopK",
    "read_json_lines",
]
