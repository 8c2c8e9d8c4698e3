"""Bits a value and the relative L2 error they buy: `quant` for the error asked, beside `qsgd` of several widths.

Gradients are .npy files in layer shape, given by name (a density in a name, as in `_d0.01_`, is that of its training),
or seeded tails without any. Sizes are exact: equal on every machine.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from hvd_deepreduce import _native
from hvd_deepreduce.contracts import ValueCodec
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support
from hvd_deepreduce.value_codecs.qsgd import Qsgd
from hvd_deepreduce.value_codecs.quant import Quant

ERRORS = (0.1, 0.05, 0.02, 0.01)
WIDTHS = (5, 6, 7, 8, 9)


def seeded() -> Iterator[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    yield "Gaussian", rng.standard_normal((1000, 2000))
    yield "Laplace", rng.laplace(size=(1000, 2000))
    yield "Student, 3 degrees", rng.standard_t(3, size=(1000, 2000))
    yield "outer products + noise", rng.laplace(size=(1000, 4)) @ rng.laplace(size=(4, 2000)) + rng.laplace(size=2000)


def measure(codec: ValueCodec, values: np.ndarray, support: Support) -> tuple[float, float]:
    """Bits a value, and the error."""
    payload = codec.encode(values, support, Draw())
    decoded = codec.decode(payload, support, values.dtype, Draw())
    wide = values.astype(np.float64)
    return 8 * len(payload) / len(values), float(np.linalg.norm(decoded - wide) / np.linalg.norm(wide))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--density", type=float, default=0.01, help="where a file's name has none")
    parser.add_argument("--least", type=int, default=1000, help="skip gradients of which fewer elements are kept")
    options = parser.parse_args()
    table = Table(title="bits a value, sign and side data included, and relative error in %; -: unbiased")
    columns = [f"quant {error:.0%}" for error in ERRORS] + [f"{error:.0%}-" for error in ERRORS]
    for column in ("gradient", "kept", *columns, *(f"qsgd {bits}" for bits in WIDTHS)):
        table.add_column(column, justify="right", no_wrap=True)
    codecs = [Quant(error, unbiased) for unbiased in (False, True) for error in ERRORS] + [
        Qsgd(bits) for bits in WIDTHS
    ]
    most = 0.0
    gradients = ((path.stem, np.load(path)) for path in options.files) if options.files else seeded()
    for name, gradient in gradients:
        found = re.search(r"_d([0-9.]+)_", name)
        density = float(found[1]) if found else options.density
        flat = np.ascontiguousarray(gradient, np.float32).ravel()
        kept = max(1, round(density * len(flat)))
        if kept < options.least:
            continue
        support = Support(_native.select_topk(flat, kept), MatrixView.of_shape(gradient.shape))
        rows = [measure(codec, flat[support.positions], support) for codec in codecs]
        for bits, error in rows[-len(WIDTHS) :]:
            most = max(most, measure(Quant(min(error, 0.5)), flat[support.positions], support)[0] / bits)
        table.add_row(name, f"{kept:,}", *(f"{bits:.2f} {100 * error:.2f}" for bits, error in rows))
    Console(width=220).print(table)
    print(f"asked for the error that qsgd makes (50 % at most), quant takes at most {most:.0%} of its bits")


if __name__ == "__main__":
    main()
