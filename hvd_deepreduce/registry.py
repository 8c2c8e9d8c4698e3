"""Which stages there are: one table per kind, written out by hand and checked at import."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from hvd_deepreduce.contracts import IndexCodec, Memory, OrderedIndexCodec, OrderedValueCodec, Sparsifier, ValueCodec
from hvd_deepreduce.index_codecs.bitmap import Bitmap
from hvd_deepreduce.index_codecs.matrix import Matrix
from hvd_deepreduce.index_codecs.raw import Raw
from hvd_deepreduce.index_codecs.rice import Rice
from hvd_deepreduce.memories.none import NoMemory
from hvd_deepreduce.memories.residual import Residual
from hvd_deepreduce.sparsifiers.dropping import Dropping
from hvd_deepreduce.sparsifiers.nonzero import KeepNonzero
from hvd_deepreduce.sparsifiers.threshold import Threshold
from hvd_deepreduce.sparsifiers.topk import TopK
from hvd_deepreduce.value_codecs.bf16 import BFloat16
from hvd_deepreduce.value_codecs.fp16 import Float16
from hvd_deepreduce.value_codecs.qsgd import Qsgd
from hvd_deepreduce.value_codecs.raw import RawValues

SPARSIFIERS: Final[Mapping[str, type[Sparsifier]]] = MappingProxyType(
    {"none": KeepNonzero, "topk": TopK, "threshold": Threshold, "dropping": Dropping}
)
INDEX_CODECS: Final[Mapping[str, type[IndexCodec]]] = MappingProxyType(
    {"raw": Raw, "bitmap": Bitmap, "rice": Rice, "matrix": Matrix}
)
VALUE_CODECS: Final[Mapping[str, type[ValueCodec]]] = MappingProxyType(
    {"raw": RawValues, "fp16": Float16, "bf16": BFloat16, "qsgd": Qsgd}
)
MEMORIES: Final[Mapping[str, type[Memory]]] = MappingProxyType({"none": NoMemory, "residual": Residual})


def _check(kind: str, table: Mapping[str, type], forms: Iterable[type]) -> None:
    for name, stage in table.items():
        if stage.name != name:  # type: ignore[attr-defined]
            raise AssertionError(f"{kind} {stage.__name__} is registered as {name!r}")
    ids = [form.wire_id for form in forms]  # type: ignore[attr-defined]
    if len(set(ids)) != len(ids) or 0 in ids:
        raise AssertionError(f"{kind}: wire ids {ids} are not unique, or one is the reserved 0")


def _index_forms() -> list[type[IndexCodec] | type[OrderedIndexCodec]]:
    codecs = INDEX_CODECS.values()
    return [*codecs, *(type(codec.ordered) for codec in codecs if codec.ordered is not None)]


def _value_forms() -> list[type[ValueCodec] | type[OrderedValueCodec]]:
    codecs = VALUE_CODECS.values()
    return [*codecs, *(type(codec.ordered) for codec in codecs if codec.ordered is not None)]


_check("sparsifiers", SPARSIFIERS, ())
_check("memories", MEMORIES, ())
_check("index codecs", INDEX_CODECS, _index_forms())
_check("value codecs", VALUE_CODECS, _value_forms())
