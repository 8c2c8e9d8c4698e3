"""Index codecs on captured gradients: bits per kept element, whole payloads; and what `matrix` costs in time.

The gradients are those of `capture_gradients.py`. With pcodec installed, also its best on the same gaps.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from math import lgamma, log
from pathlib import Path

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.sparse import MatrixView, Positions

try:  # not needed, only compared with
    from pcodec import ChunkConfig, standalone
except ImportError:
    standalone = None


def entropy_bits(numel: int, kept: int) -> float:
    return (lgamma(numel + 1) - lgamma(kept + 1) - lgamma(numel - kept + 1)) / log(2)


def pcodec_bits(positions: Positions) -> float:
    if standalone is None:
        return float("nan")
    gaps = (np.diff(positions.astype(np.int64), prepend=-1) - 1).astype(np.uint32)
    return 8 * min(len(standalone.simple_compress(gaps, ChunkConfig(compression_level=level))) for level in (8, 12))


def support(path: Path) -> tuple[MatrixView, Positions]:
    """The largest magnitudes, at the density that the file was captured with."""
    dense = np.load(path)
    found = re.search(r"_d([0-9.]+)_", path.name)
    assert found, f"{path.name}: no density in the name"
    view = MatrixView.of_shape(dense.shape)
    return view, _native.select_topk(np.ascontiguousarray(dense.ravel()), max(1, round(view.numel * float(found[1]))))


def sizes(folder: Path, least: int) -> None:
    print(f"{'':40}{'rows':>7}{'columns':>8}{'kept':>8}{'limit':>7}{'pcodec':>8}{'rice':>7}{'matrix':>8}  below pcodec")
    worst = -(10**9)
    for path in sorted(folder.glob("*.npy")):
        view, positions = support(path)
        payload = _native.matrix_encode(positions, view.rows, view.columns)
        decoded = _native.matrix_decode(payload, len(positions), view.rows, view.columns)
        assert np.array_equal(decoded, positions)
        bits, rice = 8 * len(payload), 8 * len(_native.rice_encode(positions, view.numel))
        worst = max(worst, bits - rice)
        if view.numel < least:
            continue
        pcodec = pcodec_bits(positions)
        columns = [entropy_bits(view.numel, len(positions)), pcodec, rice, bits]
        limit, other, plain, model = (value / len(positions) for value in columns)
        print(
            f"{path.stem:40}{view.rows:7}{view.columns:8}{len(positions):8}{limit:7.2f}{other:8.2f}{plain:7.2f}"
            f"{model:8.2f}{1 - bits / pcodec:10.1%}"
        )
    print(f"most above rice: {worst} bits")


def fastest(work: Callable[[], object], runs: int) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def times(runs: int) -> None:
    rng = np.random.default_rng(0)
    print(f"\n{'':30}{'kept':>9}{'encode':>16}{'decode':>16}   ns per kept (ms), fastest of {runs}")
    for rows, columns, density in ((1000, 1000, 0.01), (2048, 1024, 0.01), (1000, 1000, 0.1), (5000, 5000, 0.01)):
        for evenness in (1000.0, 2.0):
            densities = np.outer(rng.gamma(evenness, 1, rows), rng.gamma(evenness, 1, columns))
            chosen = rng.random((rows, columns)) < densities * (density / densities.mean())
            positions = np.flatnonzero(chosen).astype(np.uint32)
            kept = len(positions)
            payload = _native.matrix_encode(positions, rows, columns)
            encode = fastest(lambda p=positions, r=rows, c=columns: _native.matrix_encode(p, r, c), runs)
            decode = fastest(lambda p=payload, k=kept, r=rows, c=columns: _native.matrix_decode(p, k, r, c), runs)
            name = f"{rows} x {columns}, {density:.0%}, {'even' if evenness > 2 else 'uneven'}"
            shown = "".join(f"{1e9 * spent / kept:8.1f} ({1e3 * spent:5.2f})" for spent in (encode, decode))
            print(f"{name:30}{kept:9}{shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("build/gradients"))
    parser.add_argument("--least", type=int, default=20_000, help="elements of a tensor that is listed")
    parser.add_argument("--runs", type=int, default=100)
    arguments = parser.parse_args()
    sizes(arguments.folder, arguments.least)
    times(arguments.runs)


if __name__ == "__main__":
    main()
