"""Bits a value and relative L2 error of `fit_poly`, `fit_dexp` and `sketch`, with the order of values and without.

Gradients are .npy files in layer shape, or seeded tails without any. Sizes are exact: equal on every machine.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from value_bits_by_error import measure, seeded

from hvd_deepreduce import _native
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support
from hvd_deepreduce.value_codecs.fit_dexp import FitDexp
from hvd_deepreduce.value_codecs.fit_poly import FitPoly
from hvd_deepreduce.value_codecs.qsgd import Qsgd
from hvd_deepreduce.value_codecs.sketch import Sketch

CODECS = (
    FitPoly(),
    FitPoly(5, 1),
    FitPoly(5, 8),
    FitPoly(1, 32),
    FitDexp(),
    Sketch(16),
    Sketch(64),
    Sketch(256),
    Sketch(64, "values"),
    Qsgd(),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--density", type=float, default=0.01)
    options = parser.parse_args()
    table = Table()
    for column in ("gradient", "kept", "codec", "bits a value", "with raw positions", "error, %"):
        table.add_column(column, justify="right", no_wrap=True)
    gradients = ((path.stem, np.load(path)) for path in options.files) if options.files else seeded()
    for name, gradient in gradients:
        flat = np.ascontiguousarray(gradient, np.float32).ravel()
        support = Support(
            _native.select_topk(flat, max(1, round(options.density * len(flat)))), MatrixView.of_shape(gradient.shape)
        )
        values = flat[support.positions]
        for codec in CODECS:
            bits, error = measure(codec, values, support)
            free = (
                "" if codec.ordered is None else f"{8 * len(codec.ordered.encode(values, Draw())[0]) / len(values):.3f}"
            )
            table.add_row(name, f"{len(values):,}", str(codec), f"{bits:.2f}", free, f"{100 * error:.3f}")
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
