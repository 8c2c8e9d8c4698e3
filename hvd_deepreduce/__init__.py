"""Gradient compression for stock Horovod: the framework-neutral core.

`hvd_deepreduce.torch` and `hvd_deepreduce.tf` hold what users pass as `compression=`.
"""

from hvd_deepreduce.errors import DeepReduceError
from hvd_deepreduce.index_codecs.auto import Auto
from hvd_deepreduce.index_codecs.bitmap import Bitmap
from hvd_deepreduce.index_codecs.bloom import Bloom
from hvd_deepreduce.index_codecs.delta import Delta
from hvd_deepreduce.index_codecs.huffman import Huffman
from hvd_deepreduce.index_codecs.matrix import Matrix
from hvd_deepreduce.index_codecs.pco import Pco
from hvd_deepreduce.index_codecs.raw import Raw
from hvd_deepreduce.index_codecs.rice import Rice
from hvd_deepreduce.index_codecs.rle import Rle
from hvd_deepreduce.memories.dgc import DgcMemory
from hvd_deepreduce.memories.none import NoMemory
from hvd_deepreduce.memories.residual import Residual
from hvd_deepreduce.memories.variance import VarianceMemory
from hvd_deepreduce.records import LoggedRun, read_json_lines
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparsifiers.dgc import Dgc
from hvd_deepreduce.sparsifiers.dropping import Dropping
from hvd_deepreduce.sparsifiers.nonzero import KeepNonzero
from hvd_deepreduce.sparsifiers.randomk import RandomK
from hvd_deepreduce.sparsifiers.rtopk import RTopK
from hvd_deepreduce.sparsifiers.sidco import Sidco
from hvd_deepreduce.sparsifiers.threshold import Threshold
from hvd_deepreduce.sparsifiers.topk import TopK
from hvd_deepreduce.sparsifiers.variance import Variance
from hvd_deepreduce.timeline import Timeline
from hvd_deepreduce.value_codecs.bf16 import BFloat16
from hvd_deepreduce.value_codecs.deflate import Deflate
from hvd_deepreduce.value_codecs.fit_dexp import FitDexp
from hvd_deepreduce.value_codecs.fit_poly import FitPoly
from hvd_deepreduce.value_codecs.fp16 import Float16
from hvd_deepreduce.value_codecs.natural import Natural
from hvd_deepreduce.value_codecs.onebit import OneBit
from hvd_deepreduce.value_codecs.pco import PcoValues
from hvd_deepreduce.value_codecs.qsgd import Qsgd
from hvd_deepreduce.value_codecs.quant import Quant
from hvd_deepreduce.value_codecs.raw import RawValues
from hvd_deepreduce.value_codecs.sketch import Sketch
from hvd_deepreduce.value_codecs.terngrad import TernGrad
from hvd_deepreduce.value_codecs.twobit import TwoBit
from hvd_deepreduce.writers import JsonLinesWriter, TensorBoardWriter

__all__ = [
    "Auto",
    "BFloat16",
    "Bitmap",
    "Bloom",
    "DeepReduceError",
    "Deflate",
    "Delta",
    "Dgc",
    "DgcMemory",
    "Dropping",
    "FitDexp",
    "FitPoly",
    "Float16",
    "Huffman",
    "JsonLinesWriter",
    "KeepNonzero",
    "LoggedRun",
    "Matrix",
    "Natural",
    "NoMemory",
    "OneBit",
    "Pco",
    "PcoValues",
    "Qsgd",
    "Quant",
    "RTopK",
    "RandomK",
    "Raw",
    "RawValues",
    "Residual",
    "Rice",
    "Rle",
    "Settings",
    "Sidco",
    "Sketch",
    "TensorBoardWriter",
    "TernGrad",
    "Threshold",
    "Timeline",
    "TopK",
    "TwoBit",
    "Variance",
    "VarianceMemory",
    "read_json_lines",
]
