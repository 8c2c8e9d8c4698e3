"""Stages that run where the gradient is: only what is kept crosses to the host, and comes back from it.

The same elements are chosen, and residuals rounded, as by the native kernels, so that frames are equal byte for byte.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import torch

from hvd_deepreduce import _native
from hvd_deepreduce.memories.none import NoMemory
from hvd_deepreduce.memories.residual import Residual
from hvd_deepreduce.pipeline import EncodedGradient, Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import Positions, SparseGradient, Support, TensorSpec, Values
from hvd_deepreduce.sparsifiers.dropping import Dropping
from hvd_deepreduce.sparsifiers.nonzero import KeepNonzero
from hvd_deepreduce.sparsifiers.threshold import Threshold
from hvd_deepreduce.sparsifiers.topk import TopK
from hvd_deepreduce.wire.frame import EMPTY_FRAME, NOT_FINITE_FRAME, Frame
from hvd_deepreduce.wire.reader import ByteReader

Slots = Mapping[str, Any]
"""A memory's slots are tensors beside the gradient, a sparsifier's are NumPy arrays: these are small."""


def handles(parameter: torch.Tensor) -> bool:
    """Whether gradients of this parameter are better worked on where they are."""
    return parameter.is_cuda


class DevicePipeline:
    """`Pipeline` for flat tensors on any device."""

    def __init__(self, settings: Settings):
        self._settings = settings
        self._pipeline = Pipeline(settings)

    @staticmethod
    def can(settings: Settings) -> bool:
        """Whether there are stages for these settings here."""
        return isinstance(settings.sparsifier, KeepNonzero | TopK | Threshold | Dropping) and isinstance(
            settings.memory, NoMemory | Residual
        )

    def encode(self, gradient: torch.Tensor, spec: TensorSpec, slots: Slots, draw: Draw) -> EncodedGradient:
        """See `Pipeline.encode`."""
        start = time.perf_counter()
        encoded = self._encode(gradient, spec, slots, draw)
        return encoded._replace(milliseconds=1e3 * (time.perf_counter() - start))

    def _encode(self, gradient: torch.Tensor, spec: TensorSpec, slots: Slots, draw: Draw) -> EncodedGradient:
        compensated = self._compensate(gradient, slots)
        if compensated is None:
            return EncodedGradient(NOT_FINITE_FRAME, finite=False)
        chosen = self._sparsify(compensated, slots)
        if chosen.numel() == 0:
            return EncodedGradient(EMPTY_FRAME)
        support = Support(_to_positions(chosen, spec), spec.view)

        def values_at(positions: Positions) -> Values:
            at = chosen if positions is support.positions else _to_tensor(positions, compensated.device)
            values: Values = compensated[at].cpu().numpy()
            return values

        frame, sent = self._pipeline.encode_support(support, values_at, spec, draw)
        if "residual" in slots:
            _add_at(slots["residual"], sent, factor=-1.0, limited=True)
        return EncodedGradient(frame.to_bytes(), support.kept, len(frame.index_payload), len(frame.value_payload))

    def restore(self, frame: bytes, spec: TensorSpec, slots: Slots, draw: Draw) -> None:
        """See `Pipeline.restore`."""
        read = self._pipeline.read(ByteReader(frame, "own frame"), spec)
        if isinstance(read, Frame) and "residual" in slots:
            _add_at(slots["residual"], self._pipeline.decode(read, spec, draw), factor=1.0, limited=True)

    def _compensate(self, gradient: torch.Tensor, slots: Slots) -> torch.Tensor | None:
        largest = torch.linalg.vector_norm(gradient, torch.inf)
        if "residual" not in slots:
            return gradient if largest.isfinite() else None
        residual: torch.Tensor = slots["residual"]
        if (largest + torch.linalg.vector_norm(residual, torch.inf)).isfinite():
            return residual.add_(gradient)
        compensated = residual + gradient
        return residual.copy_(compensated) if compensated.isfinite().all() else None

    def _sparsify(self, values: torch.Tensor, slots: Slots) -> torch.Tensor:
        match self._settings.sparsifier:
            case TopK() as topk:
                return _topk(values.abs(), topk.kept(values.numel()))
            case Threshold(value=threshold):
                return _above(values, threshold)
            case Dropping() as dropping:
                return _above(values, _dropping_threshold(values, dropping, slots))
        return values.nonzero().view(-1)


class DeviceGradient:
    """One gradient of a step: encoded by the coding thread, overwritten later by the caller's."""

    def __init__(self, values: torch.Tensor, spec: TensorSpec, slots: Slots, pipeline: DevicePipeline, marker: Any):
        self.values = values
        self._spec, self._slots, self._pipeline, self._marker = spec, slots, pipeline, marker

    def encode(self, draw: Draw) -> EncodedGradient:
        with self._marker.working():
            return self._pipeline.encode(self.values, self._spec, self._slots, draw)

    def clear(self) -> None:
        self.values.zero_()

    def add(self, gradient: SparseGradient, factor: float) -> None:
        _add_at(self.values, gradient, factor)

    def spoil(self) -> None:
        self.values.fill_(torch.nan)


def _topk(magnitudes: torch.Tensor, kept: int) -> torch.Tensor:
    """Sorted positions of the largest, ties by lower position, as `torch.topk` does not promise."""
    cut = magnitudes.topk(kept, sorted=False).values.min()
    found = (magnitudes >= cut).nonzero().view(-1)
    if found.numel() == kept:
        return found
    larger = (magnitudes > cut).nonzero().view(-1)
    ties = (magnitudes == cut).nonzero().view(-1)
    return torch.cat([larger, ties[: kept - larger.numel()]]).sort().values


def _above(values: torch.Tensor, threshold: float) -> torch.Tensor:
    # Rounded to the values' dtype first, as the native kernel does.
    limit = torch.tensor(threshold, dtype=torch.float64).to(values.dtype).item()
    return (values.abs() > limit).nonzero().view(-1)


def _dropping_threshold(values: torch.Tensor, dropping: Dropping, slots: Slots) -> float:
    threshold = dropping.threshold(slots)
    if threshold is None:
        count, above = dropping.sampled(values.numel())
        threshold = _native.sampled_threshold(_sample(values, count), above)
    if "sample" in slots:
        slots["sample"][:] = _sample(values, len(slots["sample"]))
    return threshold


def _sample(values: torch.Tensor, count: int) -> Values:
    sample: Values = values[_sample_positions(values.numel(), count, values.device)].abs().cpu().numpy()
    return sample


@cache
def _sample_positions(numel: int, count: int, device: torch.device) -> torch.Tensor:
    return _to_tensor(_native.sample_positions(numel, count), device)


def _add_at(dense: torch.Tensor, sent: SparseGradient, factor: float, *, limited: bool = False) -> None:
    """dense[positions] += values x factor, the product rounded first; a frame holds no position twice.

    `limited` is for residuals: an overflow ends at the largest finite value, as in `hvd_deepreduce.kept_back`.
    """
    gradient = sent.by_position()
    values = torch.from_numpy(gradient.values)
    if factor not in (1.0, -1.0):
        values = (values.double() * factor).to(values.dtype)
    positions = _to_tensor(gradient.support.positions, dense.device)
    terms = values.to(dense.device)
    here = dense[positions]
    sums = here - terms if factor == -1.0 else here + terms
    if limited:
        largest = torch.finfo(sums.dtype).max
        sums.clamp_(-largest, largest)
    dense[positions] = sums


def _to_tensor(positions: Positions, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(positions.astype(np.int64)).to(device)


def _to_positions(chosen: torch.Tensor, spec: TensorSpec) -> Positions:
    """On the host, in the core's dtype; as 32-bit integers on the way where they fit."""
    narrow = chosen.to(torch.int32) if spec.numel <= 2**31 else chosen
    positions: Positions = narrow.cpu().numpy().astype(spec.view.position_dtype)
    return positions
