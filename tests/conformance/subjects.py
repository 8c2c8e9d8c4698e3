"""The registered stages that the checks run over."""

from collections.abc import Mapping
from typing import Any

import pytest

from hvd_deepreduce.contracts import Stage
from hvd_deepreduce.registry import INDEX_CODECS, MEMORIES, SPARSIFIERS, VALUE_CODECS

# Settings worth a run of their own, beside the defaults that every stage has.
_MORE: Mapping[str, list[dict[str, Any]]] = {
    "topk": [{"density": 0.25}, {"density": 1.0}],
    "threshold": [{"value": 0.0}, {"value": 0.5}],
    "dropping": [{"rate": 0.5, "sample": 0.3}, {"rate": 0.0}, {"rate": 0.9, "scope": "global"}],
    "randomk": [{"density": 0.3}, {"density": 0.8}],
    "rtopk": [{"density": 0.1, "pool": 0.4}],
    "sidco": [{"density": 0.2}],
    "variance": [{"alpha": 0.0}],
    "sparsifier dgc": [{"density": 0.05, "sample": 0.5, "warmup": 100}],
    "memory dgc": [{"momentum": 0.5, "masking": False, "clip": 0.7}],
    "memory variance": [{"decay": 0.5}],
    "huffman": [{"of": "gaps"}],
    "bloom": [
        {"policy": "naive", "fpr": 0.2},
        {"policy": "p1", "fpr": 0.05},
        {"policy": "p2", "fpr": 0.05},
        {"policy": "leftmost", "fpr": 0.6},
        {"policy": "middle", "fpr": 0.3},
        {"policy": "rightmost", "fpr": 1e-9},
    ],
    "deflate": [{"shuffle": False}, {"level": 6}],
    "onebit": [{"centroid": "min"}, {"centroid": "column"}],
    "twobit": [{"centroid": "min"}, {"centroid": "column"}],
    "qsgd": [{"bits": 2, "bucket": 3}, {"bits": 16, "bucket": 2**20}, {"bits": 5, "bucket": 1}],
    "fit_poly": [{"degree": 1, "segments": 40}],
    "sketch": [{"quantiles": 256, "of": "values"}],
    "quant": [{"error": 0.001}, {"error": 0.5}, {"error": 0.1, "unbiased": True}],
    "value pco": [{"level": 0}],
}


def _stages(kind: str, table: Mapping[str, type[Stage]]) -> list[Any]:
    return [
        pytest.param(stage := cls(**settings), id=repr(stage))
        for name, cls in table.items()
        for settings in [{}, *_MORE.get(f"{kind} {name}", _MORE.get(name, []))]
    ]


SPARSIFIER_SUBJECTS = _stages("sparsifier", SPARSIFIERS)
INDEX_SUBJECTS = _stages("index", INDEX_CODECS)
VALUE_SUBJECTS = _stages("value", VALUE_CODECS)
MEMORY_SUBJECTS = _stages("memory", MEMORIES)
