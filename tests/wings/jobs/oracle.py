"""The compressed average of several ranks in one process, in plain NumPy: no codec, no frame and no Horovod of ours."""

from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import dataclass, field

import numpy as np

from hvd_deepreduce import (
    BFloat16,
    Dropping,
    Float16,
    KeepNonzero,
    NoMemory,
    Qsgd,
    RawValues,
    Residual,
    Settings,
    Threshold,
    TopK,
)


def select(compensated: np.ndarray, sparsifier: object, threshold: float) -> np.ndarray:
    magnitude = np.abs(compensated)
    match sparsifier:
        case Dropping(rate=rate, sample=share):
            if threshold == 0:
                count = min(magnitude.size, max(round(share * magnitude.size), math.ceil(10 / (1 - rate))))
                above = max(1, round((1 - rate) * count))
                largest = np.sort(sampled(magnitude, count))[::-1]
                threshold = largest[above] if above < count else 0
            return np.flatnonzero(magnitude > max(threshold, 0))
        case KeepNonzero():
            return np.flatnonzero(compensated)
        case TopK(density=density):
            kept = max(1, round(density * compensated.size))
            return np.sort(np.argsort(-magnitude, kind="stable")[:kept])
        case Threshold(value=value):
            return np.flatnonzero(magnitude > magnitude.dtype.type(value))
    raise AssertionError(sparsifier)


def quantise(values: np.ndarray, codec: object, key: int) -> np.ndarray:
    match codec:
        case RawValues():
            return values
        case Float16():
            return np.clip(values.astype(np.float32), -65504, 65504).astype(np.float16).astype(values.dtype)
        case BFloat16():
            bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
            rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16
            return rounded.astype(np.uint32).view(np.float32).astype(values.dtype)
        case Qsgd(bits=bits, bucket=bucket):
            return qsgd(values, 2 ** (bits - 1) - 1, bucket, key)
    raise AssertionError(codec)


def qsgd(values: np.ndarray, levels: int, bucket: int, key: int) -> np.ndarray:
    uniform = uniforms(key, values.size)
    decoded = np.zeros_like(values)
    for start in range(0, values.size, bucket):
        part = slice(start, min(start + bucket, values.size))
        exact = values[part].astype(np.float64)
        # A running sum, as the format asks for one order of addition; NumPy's own sum adds in pairs.
        norm = float(np.float32(np.sqrt(np.cumsum(exact * exact)[-1])))
        if norm == 0:
            continue
        scaled = np.abs(exact) * (levels / norm)
        floor = np.floor(scaled)
        level = np.minimum(floor + (uniform[part] < scaled - floor), levels)
        decoded[part] = np.copysign(norm * level / levels, exact)
    return decoded


def sampled(magnitude: np.ndarray, count: int) -> np.ndarray:
    stride = magnitude.size // count
    return magnitude[np.arange(count) * stride + (draws(0, count) % np.uint64(stride)).astype(np.int64)]


def weighted_threshold(samples: list[tuple[np.ndarray, int]], share: float) -> float:
    """The first magnitude, from the largest down, with more than `share` of all elements at or above it."""
    weighted = sorted(((float(m), numel / len(of)) for of, numel in samples for m in of), reverse=True)
    limit = share * sum(weight for _, weight in weighted)
    above = 0.0
    for magnitude, weight in weighted:
        above += weight
        if above > limit:
            return magnitude
    return 0.0


def uniforms(key: int, count: int) -> np.ndarray:
    return (draws(key, count) >> np.uint64(11)).astype(np.float64) / 2.0**53


def draws(key: int, count: int) -> np.ndarray:
    with np.errstate(over="ignore"):
        z = np.uint64(key) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return z ^ z >> np.uint64(31)


@dataclass
class Oracle:
    """Residuals of all ranks, by tensor name."""

    settings: Settings
    ranks: int
    step: int = 0
    residuals: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    samples: dict[int, dict[str, tuple[np.ndarray, int]]] = field(default_factory=dict)
    """By step: what every rank's tensors sampled in it, for the threshold of the next."""

    @staticmethod
    def knows(settings: Settings) -> bool:
        """Whether all stages are written out here."""
        return (
            isinstance(settings.sparsifier, KeepNonzero | TopK | Threshold | Dropping)
            and settings.index.exact
            and isinstance(settings.value, RawValues | Float16 | BFloat16 | Qsgd)
            and isinstance(settings.memory, NoMemory | Residual)
        )

    def reduce(self, name: str, gradients: list[np.ndarray], factor: float) -> np.ndarray:
        """What every rank's gradient `name` becomes; gradients are flat, float32 or float64."""
        total = np.zeros_like(gradients[0])
        for rank, gradient in enumerate(gradients):
            residual = self.residuals.setdefault((name, rank), np.zeros_like(gradient))
            compensated = gradient if isinstance(self.settings.memory, NoMemory) else residual + gradient
            positions = select(compensated, self.settings.sparsifier, self.threshold(name, rank, compensated))
            text = struct.pack("<QQQ", self.settings.seed, self.step, rank) + name.encode()
            key = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
            sent = quantise(compensated[positions], self.settings.value, key)
            kept_back = compensated.copy()
            kept_back[positions] -= sent
            self.residuals[name, rank] = kept_back
            # As the core does, so that no rounding tips a later selection: the product in binary64, then rounded.
            total[positions] += (sent.astype(np.float64) * factor).astype(total.dtype)
        return total

    def threshold(self, name: str, rank: int, compensated: np.ndarray) -> float:
        """That of the whole model, from the step before; 0 where there is none. Takes this step's sample."""
        match self.settings.sparsifier:
            case Dropping(scope="global", rate=rate, sample=share):
                size = min(compensated.size, max(round(share * compensated.size), 32))
                sample = sampled(np.abs(compensated), size), compensated.size
                self.samples.setdefault(self.step, {})[f"{name} {rank}"] = sample
                before = self.samples.get(self.step - 1, {})
                of_rank = [one for key, one in before.items() if key.endswith(f" {rank}")]
                if not any(one.any() for one, _ in of_rank):
                    return 0.0
                return weighted_threshold(of_rank, 1 - rate) or -1.0
        return 0.0
