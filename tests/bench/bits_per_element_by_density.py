"""How many bits a kept element costs, by density and codec, against the limit log2 C(numel, kept) of a random support.

Sizes are exact: equal on every machine. The round trip is checked before anything is printed.
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np
from rich.console import Console
from rich.table import Table

from hvd_deepreduce import _native
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.wire.frame import Frame
from hvd_deepreduce.wire.reader import ByteReader

NUMELS = (36_864, 2_000_000)
DENSITIES = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2)
SETTINGS = ("rice+raw", "rice+fp16", "rice+qsgd(bits=7)", "bitmap+raw", "raw+raw")


def limit(numel: int, kept: int) -> float:
    """log2 C(numel, kept) / kept."""
    return (lgamma(numel + 1) - lgamma(kept + 1) - lgamma(numel - kept + 1)) / log(2) / kept


def frame_bits(pipeline: Pipeline, gradient: np.ndarray, spec: TensorSpec) -> float:
    """Bits of the whole frame for each kept element."""
    encoded = pipeline.encode(gradient, spec, pipeline.new_slots(spec), Draw())
    frame = pipeline.read(ByteReader(encoded.frame, "frame"), spec)
    assert isinstance(frame, Frame)
    decoded = pipeline.decode(frame, spec, Draw())
    assert decoded.support.kept == encoded.kept
    if pipeline.settings.value.exact:
        np.testing.assert_array_equal(decoded.values, gradient[decoded.support.positions])
    return 8 * len(encoded.frame) / encoded.kept


def main() -> None:
    for numel in NUMELS:
        spec = TensorSpec("gradient", (numel,))
        gradient = np.random.default_rng(1).standard_normal(numel).astype(np.float32)
        table = Table(title=f"bits per kept element, headers included; Gaussian gradient of {numel:,} elements")
        for column in ("density", "kept", "limit", "rice alone", "above the limit", *SETTINGS):
            table.add_column(column, justify="right")
        for density in DENSITIES:
            pipelines = [Pipeline(Settings.from_string(f"topk(density={density})+{text}+none")) for text in SETTINGS]
            positions = _native.select_topk(gradient, max(1, round(density * numel)))
            kept = len(positions)
            rice = _native.rice_bits(positions, numel) / kept
            bound = limit(numel, kept)
            row = [f"{density:.1%}", f"{kept:,}", f"{bound:.2f}", f"{rice:.2f}", f"{rice / bound - 1:+.2%}"]
            table.add_row(*row, *(f"{frame_bits(pipeline, gradient, spec):.2f}" for pipeline in pipelines))
        Console(width=140).print(table)


if __name__ == "__main__":
    main()
