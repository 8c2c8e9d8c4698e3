"""Supports and values to try codecs on."""

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from hvd_deepreduce.contracts import IndexCodec
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import MAX_NUMEL, MatrixView, Support

DRAW = Draw(seed=7, tensor="layer.weight", step=3, rank=1)
OTHER_DRAW = Draw(seed=8, tensor="layer.bias", step=4, rank=0)
VALUE_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))

# Codecs whose payload grows with numel are not asked for gigabytes.
_DENSE_NUMEL = 2**16
# Decoders of codecs with false positives look at every position, and so does the slow reference.
_SCANNED_NUMEL = 2**13


def examples(count: int) -> settings:
    """How many a check tries; many more where new cases are looked for."""
    return settings(max_examples=count if settings.default.derandomize else 20 * count)


def numel_limit(codec: IndexCodec) -> int:
    if not codec.exact:
        return _SCANNED_NUMEL
    return MAX_NUMEL if codec.max_encoded_size(1, MatrixView(1, MAX_NUMEL)) < 2**16 else _DENSE_NUMEL


def support(positions: Iterable[int], numel: int, rows: int = 1) -> Support:
    view = MatrixView(rows, numel // rows)
    assert view.numel == numel
    return Support(np.fromiter(positions, view.position_dtype), view)


@st.composite
def supports(draw: Any, limit: int = MAX_NUMEL, most: int = 300) -> Support:
    """Dense, sparse and clustered ones; at most `most` kept of at most `limit` elements."""
    widest = max(1, limit // most - 1)
    scale = draw(st.sampled_from([0, 1, 3, 40, 1000, 10**6, widest]))
    gap = st.integers(0, min(scale, widest))
    if draw(st.booleans()):
        gap = st.one_of(st.just(0), gap, st.integers(0, widest))
    gaps = draw(st.lists(gap, min_size=1, max_size=most))
    positions = [place - 1 for place in accumulate(g + 1 for g in gaps)]
    needed = positions[-1] + 1
    rows = draw(st.sampled_from([1, 1, 2, 3, 64]))
    columns = -(-needed // rows) + draw(st.sampled_from([0, 0, 1, 7, 1000]))
    if rows * columns > limit:
        rows, columns = 1, needed
    return support(positions, rows * columns, rows)


def edge_supports(codec: IndexCodec) -> Iterator[Support]:
    """Nothing, everything, one element, first and last position, and the sizes around a change of layout."""
    limit = numel_limit(codec)
    for numel in (1, 2, 7, 8, 9, 129, 1000):
        yield support([], numel)
        yield support(range(numel), numel)
        for position in {0, numel // 2, numel - 1}:
            yield support([position], numel)
            yield support([p for p in range(numel) if p != position], numel)
        yield support({0, numel - 1}, numel)
    for numel in (2**31 - 1, 2**31 + 10, 2**32 - 1, 2**32, 2**32 + 2, MAX_NUMEL):
        if numel <= limit:
            yield support([], numel)
            yield support([0], numel)
            yield support([numel - 1], numel)
            yield support([0, numel - 1], numel)
            yield support([1, 2, 2**31 - 7, numel - 2], numel)
            yield support(range(numel - 300, numel), numel)
    yield support([3, 4, 260], 1000)
    yield support(range(0, 1000, 7), 1000, rows=10)


def small_supports() -> Iterator[Support]:
    """Few, for checks that decode once for each of their bits."""
    yield support([0], 1)
    yield support([3, 4, 260], 1000)
    yield support([0, 3], 6)
    yield support([0, 5, 6, 7, 8, 63, 64, 99], 100, rows=4)
    yield support([*range(128), 600, 900, 1999], 2000)


def random_support(numel: int, density: float, seed: int = 0) -> Support:
    rng = np.random.default_rng(seed)
    kept = max(1, round(numel * density))
    return support(np.sort(rng.choice(numel, kept, replace=False)), numel)


def support_for(values: np.ndarray) -> Support:
    """Some support of a layer of three rows with as many positions as there are values, two or so in each column."""
    return support(range(1, 2 * len(values), 2), 6 * (len(values) // 3) + 6, rows=3)


def _floats(dtype: np.dtype[Any]) -> st.SearchStrategy[float]:
    width = 8 * dtype.itemsize
    near_one = st.floats(-1.0, 1.0, width=width)
    tiny = st.floats(-(2.0**-123), 2.0**-123, width=width)
    special = st.sampled_from([0.0, -0.0, 1.0, -1.0, 65504.0, 65519.0, 65520.0, -65536.0, 3.3895e38, 1e-45, 2.0**-25])
    return st.one_of(near_one, tiny, special, st.floats(width=width, allow_nan=False, allow_infinity=False))


@st.composite
def values(draw: Any, dtype: np.dtype[Any], most: int = 40, finite: bool = False) -> np.ndarray:
    """Up to `most` values; with `finite` false, NaN of any bits and infinities among them now and then."""
    floats = _floats(dtype)
    if not finite and draw(st.booleans()):
        floats = st.one_of(floats, st.sampled_from([np.inf, -np.inf, np.nan, -np.nan]))
    array = np.array(draw(st.lists(floats, min_size=1, max_size=most))).astype(dtype)
    if not finite and draw(st.booleans()):
        unsigned = np.dtype(f"u{dtype.itemsize}")
        array.view(unsigned)[0] = draw(st.integers(0, 2 ** (8 * dtype.itemsize) - 1))
    return array


def edge_values(dtype: np.dtype[Any]) -> Iterator[np.ndarray]:
    """NaN, infinities, -0.0, subnormals, the largest, all equal, all zero, one, none."""
    info = np.finfo(dtype)
    tiny, largest = info.smallest_subnormal, info.max
    for numbers in (
        [],
        [1.0],
        [-0.0],
        [0.0] * 9,
        [-0.0, 0.0] * 3,
        [2.5] * 700,
        [np.nan, 1.0, -np.nan],
        [np.inf, -np.inf, 1.0],
        [1.0] * 600 + [np.inf],
        [tiny, -tiny, 3 * tiny, 0.0],
        [float(np.finfo(np.float16).smallest_subnormal) * x for x in (0.25, 0.5, 0.5000001, 1.5, 2.5)],
        [1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20],
        [65504.0, 65519.0, 65520.0, 1e5, -1e5, 3.38e38, 3.3895e38, 3.4e38],
        [largest, -largest],
        [largest] * 5 + [1.0],
    ):
        yield np.array(numbers, dtype=np.float64).astype(dtype)
    signalling = np.array([1.0, np.inf, -np.inf], dtype)
    signalling.view(f"u{dtype.itemsize}")[1:] += 1
    yield signalling
    if dtype == np.float64:
        yield np.array([2.0**-149, 1e-73, 1e-320])
        yield np.array([1.1972621413015097e52, 1e40, -1e300])


def gradient_values(dtype: np.dtype[Any], count: int, seed: int = 0) -> np.ndarray:
    """Like what is kept of a gradient: Laplace, some of it heavy."""
    rng = np.random.default_rng(seed)
    return (rng.laplace(size=count) * np.exp(rng.normal(size=count))).astype(dtype)
