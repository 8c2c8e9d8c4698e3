"""Which stages there are: one table per kind, written out by hand and checked at import."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from hvd_deepreduce.contracts import IndexCodec, Memory, OrderedIndexCodec, OrderedValueCodec, Sparsifier, ValueCodec
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
from hvd_deepreduce.sparsifiers.dgc import Dgc
from hvd_deepreduce.sparsifiers.dropping import Dropping
from hvd_deepreduce.sparsifiers.nonzero import KeepNonzero
from hvd_deepreduce.sparsifiers.randomk import RandomK
from hvd_deepreduce.sparsifiers.rtopk import RTopK
from hvd_deepreduce.sparsifiers.sidco import Sidco
from hvd_deepreduce.sparsifiers.threshold import Threshold
from hvd_deepreduce.sparsifiers.topk import TopK
from hvd_deepreduce.sparsifiers.variance import Variance
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

SPARSIFIERS: Final[Mapping[str, type[Sparsifier]]] = MappingProxyType(
    {
        "none": KeepNonzero,
        "topk": TopK,
        "threshold": Threshold,
        "dropping": Dropping,
        "randomk": RandomK,
        "rtopk": RTopK,
        "sidco": Sidco,
        "dgc": Dgc,
        "variance": Variance,
    }
)
INDEX_CODECS: Final[Mapping[str, type[IndexCodec]]] = MappingProxyType(
    {
        "raw": Raw,
        "bitmap": Bitmap,
        "rice": Rice,
        "rle": Rle,
        "huffman": Huffman,
        "delta": Delta,
        "matrix": Matrix,
        "bloom": Bloom,
        "pco": Pco,
        "auto": Auto,
    }
)
VALUE_CODECS: Final[Mapping[str, type[ValueCodec]]] = MappingProxyType(
    {
        "raw": RawValues,
        "fp16": Float16,
        "bf16": BFloat16,
        "qsgd": Qsgd,
        "deflate": Deflate,
        "onebit": OneBit,
        "twobit": TwoBit,
        "terngrad": TernGrad,
        "natural": Natural,
        "quant": Quant,
        "fit_poly": FitPoly,
        "fit_dexp": FitDexp,
        "sketch": Sketch,
        "pco": PcoValues,
    }
)
MEMORIES: Final[Mapping[str, type[Memory]]] = MappingProxyType(
    {"none": NoMemory, "residual": Residual, "dgc": DgcMemory, "variance": VarianceMemory}
)


def wire_ids(form: type) -> tuple[int, ...]:
    """Every id that some settings of a codec, or of its ordered form, give."""
    return getattr(form, "wire_ids", ()) or (form.wire_id,)  # type: ignore[attr-defined]


def _check(kind: str, table: Mapping[str, type], forms: Iterable[type]) -> None:
    for name, stage in table.items():
        if stage.name != name:  # type: ignore[attr-defined]
            raise AssertionError(f"{kind} {stage.__name__} is registered as {name!r}")
    ids = [wire_id for form in forms for wire_id in wire_ids(form)]
    if len(set(ids)) != len(ids) or 0 in ids:
        raise AssertionError(f"{kind}: wire ids {ids} are not unique, or one is the reserved 0")


def _index_forms() -> list[type[IndexCodec] | type[OrderedIndexCodec]]:
    codecs = INDEX_CODECS.values()
    return [*codecs, *(type(codec.ordered) for codec in codecs if codec.ordered is not None)]


def _value_forms() -> list[type[ValueCodec] | type[OrderedValueCodec]]:
    # Settings may shape an ordered form, so that only an instance has it.
    ordered = (codec().ordered for codec in VALUE_CODECS.values())
    return [*VALUE_CODECS.values(), *(type(form) for form in ordered if form is not None)]


_check("sparsifiers", SPARSIFIERS, ())
_check("memories", MEMORIES, ())
_check("index codecs", INDEX_CODECS, _index_forms())
_check("value codecs", VALUE_CODECS, _value_forms())
