"""How many bits a kept element costs, by density and codec, against the limit log2 C(numel, kept) of a random support.

Sizes are exact: equal on every machine. The round trip is checked before anything is printed.
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np
from rich.console import Console
from rich.table import Table

from hvd_deepreduce import _native
from hvd_deepreduce.contracts import IndexCodec
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.registry import INDEX_CODECS
from hvd_deepreduce.settings import Settings, stage_of
from hvd_deepreduce.sparse import MatrixView, Support, TensorSpec
from hvd_deepreduce.wire.frame import Frame
from hvd_deepreduce.wire.reader import ByteReader

NUMELS = (36_864, 2_000_000)
DENSITIES = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2)
INDEX = ("rice", "huffman(of='gaps')", "delta", "rle", "huffman", "bitmap", "raw")
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


def index_bits(codec: IndexCodec, support: Support) -> float:
    """Bits of the index payload for each kept element."""
    payload = codec.encode(support, Draw())
    decoded = codec.decode(payload, support.kept, support.view, Draw())
    np.testing.assert_array_equal(decoded.positions, support.positions)
    return 8 * len(payload) / support.kept


def print_index_codecs(gradient: np.ndarray) -> None:
    numel = len(gradient)
    table = Table(title=f"bits per kept element of the index payload alone; {numel:,} elements")
    for column in ("density", "limit", *INDEX):
        table.add_column(column, justify="right")
    codecs = [stage_of("index", INDEX_CODECS, text) for text in INDEX]
    for density in DENSITIES:
        positions = _native.select_topk(gradient, max(1, round(density * numel)))
        support = Support(positions, MatrixView(1, numel))
        bits = (index_bits(codec, support) for codec in codecs)
        table.add_row(f"{density:.1%}", f"{limit(numel, support.kept):.2f}", *(f"{count:.2f}" for count in bits))
    Console(width=140).print(table)


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
        print_index_codecs(gradient)


if __name__ == "__main__":
    main()
