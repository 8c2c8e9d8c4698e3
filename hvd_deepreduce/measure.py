"""What a combination of stages costs on a gradient: bits, error and time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.errors import InvalidSettingError
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.settings import Settings, describe
from hvd_deepreduce.sparse import SparseGradient, TensorSpec, Values

_RUNS = 5


@dataclass(frozen=True)
class Measurement:
    """One gradient through one combination. Bits are per kept element, headers of the frame in `frame_bits` alone."""

    sparsifier: str
    index: str
    value: str
    exact_index: bool
    numel: int
    kept: int
    index_bits: float
    value_bits: float
    frame_bits: float
    relative_volume: float
    """Bytes of the frame / bytes of the dense gradient."""
    relative_error: float
    """L2 norm of (decoded - gradient) where it was kept or is decoded to something / that of what was kept."""
    encode_ms: float
    """Both codecs, without selection."""
    decode_ms: float
    """Both codecs and the adding up."""
    recipe: str = ""
    """The name that stands for these settings, where they were given by one."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def measure(gradient: Values, settings: Settings, name: str = "gradient") -> Measurement:
    """Measures on one gradient, float32 or float64 in its layer's own shape; it is taken as compensated already.

    Raises `InvalidSettingError` for a gradient that is not finite, or of which nothing is kept.
    """
    spec = TensorSpec(name, gradient.shape, gradient.dtype.name)
    flat = np.ascontiguousarray(gradient).reshape(-1)
    if not _native.all_finite(flat):
        raise InvalidSettingError(f"{name}: the gradient holds a NaN or an infinity")
    pipeline, draw = Pipeline(settings), Draw(settings.seed, name)
    slots = pipeline.new_slots(spec)
    settings.memory.compensate(flat, slots)
    support = settings.sparsifier.sparsify(flat, spec.view, draw, slots)
    if support.kept == 0:
        raise InvalidSettingError(f"{name}: {describe(settings.sparsifier)} keeps nothing of it")
    sparsified = SparseGradient(support, _native.gather(flat, support.positions)).to_dense()

    def encode() -> Any:
        return pipeline.encode_support(support, lambda at: _native.gather(flat, at), spec, draw)

    (frame, _), encode_ms = _timed(encode)
    dense = np.zeros_like(flat)
    _, decode_ms = _timed(lambda: pipeline.add_into(dense, frame, spec, draw, 1.0), lambda: dense.fill(0))
    # Where a lossy index codec sends more than was kept, it is the gradient that it should send.
    meant = np.where(dense != 0, flat, sparsified)
    length = len(frame.to_bytes())
    return Measurement(
        sparsifier=describe(settings.sparsifier),
        index=describe(settings.index),
        value=describe(settings.value),
        exact_index=settings.index.exact,
        numel=spec.numel,
        kept=support.kept,
        index_bits=8 * len(frame.index_payload) / support.kept,
        value_bits=8 * len(frame.value_payload) / support.kept,
        frame_bits=8 * length / support.kept,
        relative_volume=length / (spec.numel * spec.itemsize),
        relative_error=_relative_error(dense, meant, sparsified),
        encode_ms=encode_ms,
        decode_ms=decode_ms,
    )


def _relative_error(decoded: Values, meant: Values, kept: Values) -> float:
    """L2 norm of (decoded - meant) / that of what was kept, whatever its magnitude: squares of 1e300 would overflow."""
    exponent = max(int(np.frexp(np.abs(values).max())[1]) for values in (decoded, meant, kept))
    # By a power of two, which rounds nothing; a quarter, so that a difference has room.
    decoded, meant, kept = (np.ldexp(values.astype(np.float64), -exponent - 2) for values in (decoded, meant, kept))
    norm = float(np.linalg.norm(kept))
    return float(np.linalg.norm(decoded - meant)) / norm if norm else 0.0


def _timed(work: Callable[[], Any], before: Callable[[], object] = lambda: None) -> tuple[Any, float]:
    """What the work returns, and its median time in milliseconds once it is warm."""
    times, result = [], None
    for run in range(_RUNS + 1):
        before()
        start = time.perf_counter()
        result = work()
        if run:
            times.append(1e3 * (time.perf_counter() - start))
    return result, statistics.median(times)
