"""What each kernel costs, as multiples of one copy of the dense gradient into memory already touched; one thread."""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.index_codecs.bloom import Bloom
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.registry import INDEX_CODECS, VALUE_CODECS
from hvd_deepreduce.settings import stage_of
from hvd_deepreduce.sparse import MatrixView, Support

Work = Callable[[], object]
VALUE_CODECS_TIMED = (
    "deflate",
    "deflate(shuffle=False)",
    "onebit",
    "onebit('column')",
    "twobit",
    "twobit('column')",
    "terngrad",
    "natural",
    "fit_poly",
    "fit_dexp",
    "sketch",
)


def gradient(numel: int, seed: int = 0) -> np.ndarray:
    values = np.empty(numel, np.float32)
    np.random.default_rng(seed).standard_normal(out=values, dtype=np.float32)
    return values


class Table:
    """Times rows in turn with the copy, so that both see the same machine."""

    def __init__(self, source: np.ndarray, runs: int):
        self._source, self._target, self._runs = source, np.ones_like(source), runs
        print(f"{'':34}{'copies':>8}{'ms':>9}{'fastest':>9}")

    def row(self, name: str, work: Work, before: Work = lambda: None) -> float:
        copies, times = [], []
        for run in range(self._runs + 1):
            start = time.perf_counter()
            np.copyto(self._target, self._source)
            copied = time.perf_counter() - start
            before()
            start = time.perf_counter()
            work()
            spent = time.perf_counter() - start
            if run:  # the first one warms up
                copies.append(copied)
                times.append(spent)
        ratio = statistics.median(times) / statistics.median(copies)
        print(f"{name:34}{ratio:8.2f}{1e3 * statistics.median(times):9.2f}{1e3 * min(times):9.2f}", flush=True)
        return ratio


def single_kernels(table: Table, values: np.ndarray, kept: int) -> None:
    numel = len(values)
    target = np.zeros_like(values)
    residual, small = np.zeros_like(values), values * np.float32(1e-6)
    positions = _native.select_topk(values, kept)
    sent = _native.gather(values, positions)
    threshold = float(np.abs(sent).min())
    bitmap, rice = _native.bitmap_encode(positions, numel), _native.rice_encode(positions, numel)
    index_codecs = {
        "delta": (_native.delta_encode, _native.delta_decode),
        "rle": (_native.rle_encode, _native.rle_decode),
        "huffman_bytes": (_native.huffman_bytes_encode, _native.huffman_bytes_decode),
        "huffman_gaps": (_native.huffman_gaps_encode, _native.huffman_gaps_decode),
    }
    half, bf16 = _native.fp16_encode(sent), _native.bf16_encode(sent)
    qsgd = _native.qsgd_encode(sent, 7, 512, 1)
    float32 = np.dtype(np.float32)
    rows, columns = matrix(numel)
    table.row("copy", lambda: np.copyto(target, values))
    table.row("all_finite", lambda: _native.all_finite(values))
    table.row("compensate", lambda: _native.compensate(residual, small))
    table.row("select_topk", lambda: _native.select_topk(values, kept))
    table.row("select_above, as many", lambda: _native.select_above(values, threshold))
    table.row("select_above, half of all", lambda: _native.select_above(values, 0.6745))
    table.row("gather", lambda: _native.gather(values, positions))
    table.row("subtract_at", lambda: _native.subtract_at(target, positions, sent))
    table.row("scatter_add", lambda: _native.scatter_add(target, positions, sent, 0.5))
    table.row("check_positions", lambda: _native.check_positions(positions, numel))
    table.row("raw_positions_decode", lambda: _native.raw_positions_decode(positions.tobytes(), kept, numel))
    table.row("bitmap_encode", lambda: _native.bitmap_encode(positions, numel))
    table.row("bitmap_decode", lambda: _native.bitmap_decode(bitmap, kept, numel))
    table.row("rice_encode", lambda: _native.rice_encode(positions, numel))
    table.row("rice_bits", lambda: _native.rice_bits(positions, numel))
    table.row("rice_decode", lambda: _native.rice_decode(rice, kept, numel))
    for name, (encode, decode) in index_codecs.items():
        payload = encode(positions, numel)
        table.row(f"{name}_encode", lambda encode=encode: encode(positions, numel))
        table.row(f"{name}_decode", lambda decode=decode, payload=payload: decode(payload, kept, numel))
    table.row("fp16_encode", lambda: _native.fp16_encode(sent))
    table.row("fp16_decode", lambda: _native.fp16_decode(half, kept, float32))
    table.row("bf16_encode", lambda: _native.bf16_encode(sent))
    table.row("bf16_decode", lambda: _native.bf16_decode(bf16, kept, float32))
    table.row("qsgd_encode, 7 bits", lambda: _native.qsgd_encode(sent, 7, 512, 1))
    table.row("qsgd_decode, 7 bits", lambda: _native.qsgd_decode(qsgd, kept, 7, 512, float32))
    places = (positions, rows, columns)
    for name, error, unbiased in (("5 %", 0.05, False), ("1 %", 0.01, False), ("5 %, unbiased", 0.05, True)):
        quant = _native.quant_encode(sent, *places, error, unbiased, 1)
        table.row(f"quant_encode, {name}", lambda e=error, u=unbiased: _native.quant_encode(sent, *places, e, u, 1))
        table.row(
            f"quant_decode, {name}",
            lambda q=quant, u=unbiased: _native.quant_decode(q, kept, *places, u, 1, float32),
        )


def matrix(numel: int) -> tuple[int, int]:
    """The shape of a layer of so many elements, as near to a square as can be."""
    rows = next(rows for rows in range(int(numel**0.5), 0, -1) if numel % rows == 0)
    return rows, numel // rows


def more_value_codecs(table: Table, values: np.ndarray, kept: int) -> None:
    """The ones that come with no batch kernel, called as the pipeline calls them, with a square layer."""
    side = math.isqrt(len(values))
    positions = _native.select_topk(values[: side * side], kept)
    sent, draw = _native.gather(values, positions), Draw()
    support = Support(positions, MatrixView(side, side))
    for name in VALUE_CODECS_TIMED:
        codec = stage_of("value", VALUE_CODECS, name)
        payload = codec.encode(sent, support, draw)
        assert (np.abs(codec.decode(payload, support, sent.dtype, draw) - sent) <= codec.error_bound(sent)).all()
        table.row(f"{name} encode", lambda codec=codec: codec.encode(sent, support, draw))
        table.row(
            f"{name} decode", lambda codec=codec, payload=payload: codec.decode(payload, support, sent.dtype, draw)
        )


def more_index_codecs(table: Table, values: np.ndarray, kept: int) -> None:
    """Those that go by the matrix, that choose, and the peer."""
    support = Support(_native.select_topk(values, kept), MatrixView(*matrix(len(values))))
    draw = Draw()
    for text in ("matrix", "auto", "pco"):
        codec = stage_of("index", INDEX_CODECS, text)
        payload = codec.encode(support, draw)
        table.row(f"{text} encode", lambda codec=codec: codec.encode(support, draw))
        table.row(f"{text} decode", lambda codec=codec, p=payload: codec.decode(p, kept, support.view, draw))


def bloom_filters(table: Table, values: np.ndarray, kept: int) -> None:
    """Decoding looks at all positions; the sender does both."""
    positions = _native.select_topk(values, kept)
    support, draw = Support(positions, MatrixView(1, len(values))), Draw()
    for policy in ("p0", "p1", "p2"):
        codec = Bloom(policy)
        payload = codec.encode(support, draw)
        found = codec.decode(payload, kept, support.view, draw).positions
        share = np.isin(found, positions).mean()
        print(f"bloom {policy}: {8 * len(payload) / kept:.2f} bits per kept, {100 * share:.2f} % of positions right")
        table.row(f"bloom {policy} encode", lambda codec=codec: codec.encode(support, draw))
        table.row(f"bloom {policy} decode", lambda codec=codec, p=payload: codec.decode(p, kept, support.view, draw))


def whole_steps(table: Table, values: np.ndarray, kept: int) -> None:
    """What a rank does for one tensor; the residual is set back before each run, outside the time."""
    numel = len(values)
    residual = np.zeros_like(values)
    threshold = float(np.abs(values[_native.select_topk(values, kept)]).min())

    def encode(select: Callable[[np.ndarray], np.ndarray]) -> tuple[bytes, bytes]:
        assert _native.compensate(residual, values)
        positions = select(residual)
        index = _native.rice_encode(positions, numel)
        sent = _native.gather(residual, positions)
        _native.subtract_at(residual, positions, sent)
        return index, sent.tobytes()

    def decode() -> None:
        sent = np.frombuffer(payload, np.float32).copy()
        _native.scatter_add(residual, _native.rice_decode(index, kept, numel), sent, 0.5)

    index, payload = encode(lambda dense: _native.select_topk(dense, kept))
    table.row(
        "residual + topk + rice + raw", lambda: encode(lambda v: _native.select_topk(v, kept)), lambda: residual.fill(0)
    )
    table.row(
        "residual + threshold + rice + raw",
        lambda: encode(lambda v: _native.select_above(v, threshold)),
        lambda: residual.fill(0),
    )
    table.row("decode + scatter_add", decode)


def hard_inputs(table: Table, numel: int, kept: int) -> None:
    spike = np.zeros(numel, np.float32)
    spike[numel // 3] = 1e30
    inputs = {
        "zeros": np.zeros(numel, np.float32),
        "equal": np.ones(numel, np.float32),
        "one spike": spike,
        "two values": np.tile(np.float32([1, 2]), numel // 2),
        "sorted": np.sort(np.abs(gradient(numel))),
        "8-bit values": np.round(gradient(numel) * 32),
    }
    for name, values in inputs.items():
        table.row(f"select_topk of {name}", lambda values=values: _native.select_topk(values, kept))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--numel", type=int, default=25_000_000)
    parser.add_argument("--density", type=float, default=0.01)
    parser.add_argument("--runs", type=int, default=9)
    options = parser.parse_args()
    kept = round(options.numel * options.density)
    print(f"{options.numel} float32, {kept} kept, median of {options.runs} runs")
    values = gradient(options.numel)
    table = Table(values, options.runs)
    single_kernels(table, values, kept)
    more_value_codecs(table, values, kept)
    more_index_codecs(table, values, kept)
    bloom_filters(table, values, kept)
    whole_steps(table, values, kept)
    hard_inputs(table, options.numel, kept)


if __name__ == "__main__":
    main()
