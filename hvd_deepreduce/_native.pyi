"""The C++ kernels. Arrays must be one-dimensional and C-contiguous.

`Values` are float32 or float64, positions uint32 up to 2**32 elements and uint64 above.

A decoder raises `TruncatedPayloadError` or `CorruptPayloadError`, everything else `InvalidSettingError`. The GIL is
released while a kernel runs. Nothing is read or written outside the arrays given, whatever is in them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hvd_deepreduce.sparse import Positions, Values

def all_finite(values: Values) -> bool: ...
def compensate(residual: Values, gradient: Values) -> bool:
    """residual += gradient; False, and residual untouched, if any sum (or term) is not finite.

    Only a residual that was not finite to begin with may come back changed, by rounding.
    """

def subtract_at(dense: Values, positions: Positions, values: Values) -> None:
    """dense[positions] -= values."""

def gather(dense: Values, positions: Positions) -> Values: ...
def scatter_add(dense: Values, positions: Positions, values: Values, factor: float) -> None:
    """dense[positions] += values * factor, the product rounded to the dtype first; plain values when factor is 1."""

def select_topk(values: Values, kept: int) -> Positions:
    """Sorted positions of the `kept` largest magnitudes, ties by lower position.

    Values are finite, and 0 <= kept <= len(values).
    """

def select_above(values: Values, threshold: float) -> Positions:
    """Sorted positions where abs(value) > threshold, compared in the values' dtype."""

def sample_positions(numel: int, count: int) -> Positions:
    """Sorted positions of a sample: one from each of `count` equal strides, at a place that follows no pattern."""

def sampled_threshold(sample: Values, above: int) -> float:
    """The magnitude that `above` of the sample exceed, fewer where some are equal; 0 where there are no more."""

def check_positions(positions: Positions, numel: int) -> None:
    """Raises `InvalidSettingError` unless strictly increasing and below numel; names the first offender."""

def raw_positions_decode(payload: bytes, kept: int, numel: int) -> Positions: ...
def bitmap_encode(positions: Positions, numel: int) -> bytes: ...
def bitmap_decode(payload: bytes, kept: int, numel: int) -> Positions: ...
def rice_encode(positions: Positions, numel: int) -> bytes: ...
def rice_decode(payload: bytes, kept: int, numel: int) -> Positions: ...
def rice_bits(positions: Positions, numel: int) -> int:
    """The length of rice_encode's bit stream before padding."""

def delta_encode(positions: Positions, numel: int) -> bytes: ...
def delta_decode(payload: bytes, kept: int, numel: int) -> Positions: ...
def rle_encode(positions: Positions, numel: int) -> bytes: ...
def rle_decode(payload: bytes, kept: int, numel: int) -> Positions: ...
def huffman_bytes_encode(positions: Positions, numel: int) -> bytes: ...
def huffman_bytes_decode(payload: bytes, kept: int, numel: int) -> Positions: ...
def huffman_gaps_encode(positions: Positions, numel: int) -> bytes: ...
def huffman_gaps_decode(payload: bytes, kept: int, numel: int) -> Positions: ...
def matrix_encode(positions: Positions, rows: int, columns: int) -> bytes: ...
def matrix_decode(payload: bytes, kept: int, rows: int, columns: int) -> Positions: ...
def fp16_encode(values: Values) -> bytes: ...
def fp16_decode(payload: bytes, kept: int, dtype: np.dtype[Any]) -> Values: ...
def bf16_encode(values: Values) -> bytes: ...
def bf16_decode(payload: bytes, kept: int, dtype: np.dtype[Any]) -> Values: ...
def qsgd_encode(values: Values, bits: int, bucket: int, key: int) -> bytes: ...
def qsgd_decode(payload: bytes, kept: int, bits: int, bucket: int, dtype: np.dtype[Any]) -> Values: ...
def centroids_encode(
    values: Values, positions: Positions | None, columns: int, numel: int, mean: bool, classes: int
) -> bytes:
    """One centroid per class of magnitudes, for each column of the layer that holds a position; for all values together
    where `positions` is None, and then columns and numel are not looked at."""

def centroids_decode(
    payload: bytes,
    kept: int,
    positions: Positions | None,
    columns: int,
    numel: int,
    mean: bool,
    classes: int,
    dtype: np.dtype[Any],
) -> Values: ...
def terngrad_encode(values: Values, key: int) -> bytes: ...
def terngrad_decode(payload: bytes, kept: int, dtype: np.dtype[Any]) -> Values: ...
def natural_encode(values: Values, key: int) -> bytes: ...
def natural_decode(payload: bytes, kept: int, dtype: np.dtype[Any]) -> Values: ...
def quant_encode(
    values: Values, positions: Positions, rows: int, columns: int, error: float, unbiased: bool, key: int
) -> bytes: ...
def quant_decode(
    payload: bytes,
    kept: int,
    positions: Positions,
    rows: int,
    columns: int,
    unbiased: bool,
    key: int,
    dtype: np.dtype[Any],
) -> Values: ...
def random_u64(key: int, count: int) -> NDArray[np.uint64]:
    """The first draws of a key (FORMAT.md, 6)."""

def add_momentum(momentum: Values, residual: Values, gradient: Values, factor: float, scale: float) -> bool:
    """momentum <- factor * momentum + scale * gradient, residual += momentum.

    False, and both untouched, unless all of it is finite.
    """

def add_squares(squares: Values, residual: Values, gradient: Values) -> bool:
    """squares += gradient ** 2, residual += gradient; False, and both untouched, unless all of it is finite."""

def sum_of_squares(values: Values) -> float: ...
def exceedance(values: Values, threshold: float) -> tuple[int, float]:
    """How many magnitudes exceed a threshold, and by how much together."""

def random_support(key: int, numel: int, kept: int) -> Positions:
    """Sorted positions, every set of `kept` below numel as likely as another (FORMAT.md, 4.11)."""

Choice = tuple[int] | tuple[float, int, int, Values | None]
"""For top-k: how many to keep. For dropping: the threshold, or below 0 to estimate it from a sample of so many, which
so many are to exceed; and an array that is overwritten with a sample, if wanted."""

Stages = tuple[str, float, int, int, int, int, bool]
"""Name of the sparsifier, threshold, index id, value id, bits and bucket of qsgd, whether there is a residual."""

def encode_frames(
    stages: Stages,
    gradients: list[Values],
    residuals: list[Values],
    choices: list[Choice],
    keys: list[int],
    threads: int,
) -> tuple[bytes, NDArray[np.int64]]:
    """The frames of all gradients one after the other, and a row for each.

    `choices` has one for each gradient where the sparsifier is top-k or dropping, and is empty for others.
    A row is: bytes of the frame, kept, index bytes, value bytes, finite, nanoseconds. Residuals are brought up to date.
    """

def decode_frames(
    stages: Stages,
    bodies: list[memoryview],
    numels: list[int],
    outputs: list[Values | None],
    factor: float,
    threads: int,
) -> NDArray[np.int64] | None:
    """Overwrites outputs with factor x the sum over the bodies; a row of finite and nanoseconds for each.

    None, with outputs in any state, where a body is not made of one frame per numel and zero padding.
    """

def frame_kernels_address() -> int:
    """Where `FrameKernels` of native/frame_batch.hpp lie in memory."""
