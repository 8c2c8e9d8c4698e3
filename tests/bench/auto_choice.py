"""What `auto` chooses, what it saves against `rice`, and what its encoding costs against `rice` and `matrix`."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from hvd_deepreduce import Auto, Matrix, Rice
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MatrixView, Support

RUNS = 30
NAMES = {1: "raw", 3: "bitmap", 4: "rice", 5: "rle", 7: "huffman", 8: "delta", 10: "matrix"}
SHAPES = [
    (64, 576, 0.01),
    (640, 1568, 0.001),
    (640, 1568, 0.01),
    (2048, 1024, 0.01),
    (2048, 1024, 0.1),
    (1000, 1000, 0.5),
]


def support(rows: int, columns: int, density: float, shape: float) -> Support:
    """Densities of rows and columns from gamma laws of that shape: the larger, the more alike."""
    rng = np.random.default_rng(0)
    densities = np.outer(rng.gamma(shape, 1, rows), rng.gamma(shape, 1, columns))
    chosen = np.flatnonzero(rng.random((rows, columns)) < densities * (density / densities.mean()))
    return Support(chosen.astype(np.uint32), MatrixView(rows, columns))


def fastest(work: Callable[[], object]) -> float:
    """In seconds of this thread, so that other processes do not count."""
    times = []
    for _ in range(RUNS):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return min(times)


def main() -> None:
    print("| layer, density | kept | chosen | bytes of rice, matrix, auto | rice, ms | auto / rice | auto / matrix |")
    print("|---|---|---|---|---|---|---|")
    draw = Draw()
    for rows, columns, density in SHAPES:
        for shape, evenness in ((1e6, "even"), (2.0, "uneven")):
            given = support(rows, columns, density, shape)
            codecs = (Rice(), Matrix(), Auto())
            payloads = [codec.encode(given, draw) for codec in codecs]
            rice, matrix, auto = (fastest(lambda c=codec, s=given: c.encode(s, draw)) for codec in codecs)
            name = f"{rows} × {columns}, {density:.1%}, {evenness}"
            sizes = ", ".join(f"{len(payload):,}" for payload in payloads)
            times = f"{1e3 * rice:.3f} | {auto / rice:.2f} | {auto / matrix:.2f}"
            print(f"| {name} | {given.kept:,} | {NAMES[payloads[2][0]]} | {sizes} | {times} |")


if __name__ == "__main__":
    main()
