"""Dense gradient -> frame -> dense gradient; the only file that knows the order of the stages."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.checks import require_payload_length
from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError, UnknownCodecError
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import Positions, SparseGradient, Support, TensorSpec, Values
from hvd_deepreduce.step_error import relative_error
from hvd_deepreduce.wire.frame import EMPTY_FRAME, NOT_FINITE_FRAME, SHARED_ID, Frame, Special, read_frame
from hvd_deepreduce.wire.reader import ByteReader


class EncodedGradient(NamedTuple):
    """A frame, and what the sender knows of it: sizes in bytes, and what encoding took."""

    frame: bytes
    kept: int = 0
    index_bytes: int = 0
    value_bytes: int = 0
    finite: bool = True
    milliseconds: float = 0.0


class Pipeline:
    """The stages of some settings, put to work on one tensor at a time. Holds no state of its own."""

    def __init__(self, settings: Settings):
        self.settings = settings

    def new_slots(self, spec: TensorSpec) -> dict[str, Values]:
        """The arrays that the stages need for a tensor, for callers that keep them in NumPy."""
        sizes = self.settings.slot_sizes(spec.numel)
        return {name: np.zeros(size, spec.value_dtype) for name, size in sizes.items()}

    def encode(self, gradient: Values, spec: TensorSpec, slots: Mapping[str, Values], draw: Draw) -> EncodedGradient:
        """The frame of a dense gradient, given flat in `spec.value_dtype`; `slots` are brought up to date.

        A gradient with a NaN or an infinity, or one that the memory compensates to such, becomes a frame that says so
        and leaves the slots alone.
        """
        start = time.perf_counter()
        encoded = self._encode(gradient, spec, slots, draw)
        return encoded._replace(milliseconds=1e3 * (time.perf_counter() - start))

    def _encode(self, gradient: Values, spec: TensorSpec, slots: Mapping[str, Values], draw: Draw) -> EncodedGradient:
        settings = self.settings
        if gradient.shape != (spec.numel,) or gradient.dtype != spec.value_dtype:
            raise InvalidSettingError(
                f"tensor {spec.name!r}: gradient of shape {gradient.shape} and dtype {gradient.dtype}; "
                f"needed are ({spec.numel},) and {spec.value_dtype}"
            )
        compensated = settings.memory.compensate(gradient, slots)
        if compensated is None:
            return EncodedGradient(NOT_FINITE_FRAME, finite=False)
        support = settings.sparsifier.sparsify(compensated, spec.view, draw, slots)
        if support.kept == 0:
            nothing = SparseGradient(support, np.empty(0, spec.value_dtype))
            settings.memory.update(compensated, slots, nothing)
            return EncodedGradient(EMPTY_FRAME)
        frame, sent = self.encode_support(support, partial(_native.gather, compensated), spec, draw)
        settings.memory.update(compensated, slots, sent)
        return EncodedGradient(frame.to_bytes(), support.kept, len(frame.index_payload), len(frame.value_payload))

    def encode_support(
        self, support: Support, values_at: Callable[[Positions], Values], spec: TensorSpec, draw: Draw
    ) -> tuple[Frame, SparseGradient]:
        """The frame of what was kept, and what its receivers decode it to.

        `values_at` reads the compensated gradient, wherever it lies: the whole of it need not be at hand.
        """
        index, value = self.settings.index, self.settings.value
        dtype = spec.value_dtype
        if self.settings.sparsifier.shared:
            values = values_at(support.positions)
            payload = value.encode(values, support, draw)
            sent = values if value.exact else value.decode(payload, support, dtype, draw)
            return Frame(SHARED_ID, value.wire_id, support.kept, b"", payload), SparseGradient(support, sent)
        if index.ordered is not None and value.ordered is not None:
            values = values_at(support.positions)
            value_payload, order = value.ordered.encode(values, draw)
            index_payload = index.ordered.encode(support, order)
            decoded_values = value.ordered.decode(value_payload, support.kept, dtype, draw)
            frame = Frame(index.ordered.wire_id, value.ordered.wire_id, support.kept, index_payload, value_payload)
            return frame, SparseGradient(support, decoded_values, order)
        index_payload = index.encode(support, draw)
        decoded = support if index.exact else index.decode(index_payload, support.kept, support.view, draw)
        values = values_at(index.value_positions(support, decoded))
        value_payload = value.encode(values, decoded, draw)
        decoded_values = values if value.exact else value.decode(value_payload, decoded, dtype, draw)
        frame = Frame(index.wire_id, value.wire_id, support.kept, index_payload, value_payload)
        return frame, SparseGradient(decoded, decoded_values)

    def read(self, reader: ByteReader, spec: TensorSpec) -> Frame | Special:
        """Takes the next frame from a bundle, still encoded."""
        try:
            return read_frame(reader, spec.numel)
        except CorruptPayloadError as error:
            raise type(error)(f"tensor {spec.name!r}: {error}") from error

    def decode(self, frame: Frame, spec: TensorSpec, draw: Draw) -> SparseGradient:
        """What a frame holds; `draw` is the sender's. Raises `CorruptPayloadError` with tensor and rank."""
        try:
            return self._decode(frame, spec, draw)
        except CorruptPayloadError as error:
            raise type(error)(f"tensor {spec.name!r}, rank {draw.rank}: {error}") from error

    def _decode(self, frame: Frame, spec: TensorSpec, draw: Draw) -> SparseGradient:
        index, value = self.settings.index, self.settings.value
        if self.settings.sparsifier.shared:
            _require_ids(frame, SHARED_ID, value.wire_id)
            support = self.settings.sparsifier.shared_support(spec.view, draw)
            _require_shared(frame, support.kept)
            return SparseGradient(support, value.decode(frame.value_payload, support, spec.value_dtype, draw))
        if index.ordered is not None and value.ordered is not None:
            _require_ids(frame, index.ordered.wire_id, value.ordered.wire_id)
            support, order = index.ordered.decode(frame.index_payload, frame.kept, spec.view)
            values = value.ordered.decode(frame.value_payload, frame.kept, spec.value_dtype, draw)
            return SparseGradient(support, values, order)
        _require_ids(frame, index.wire_id, value.wire_id)
        support = index.decode(frame.index_payload, frame.kept, spec.view, draw)
        return SparseGradient(support, value.decode(frame.value_payload, support, spec.value_dtype, draw))

    def error_of(self, frame: bytes, spec: TensorSpec, residual: Values, draw: Draw) -> float | None:
        """The relative error of what this rank sent in a frame, given what it left in the residual."""
        read = self.read(ByteReader(frame, "own frame"), spec)
        if read is Special.NOT_FINITE:
            return None
        nothing = SparseGradient(Support.checked([], spec.view), np.empty(0, spec.value_dtype))
        return relative_error(self.decode(read, spec, draw) if isinstance(read, Frame) else nothing, residual)

    def restore(self, frame: bytes, spec: TensorSpec, slots: Mapping[str, Values], draw: Draw) -> None:
        """Gives back to the slots what this rank sent in a frame."""
        read = self.read(ByteReader(frame, "own frame"), spec)
        if isinstance(read, Frame):
            self.settings.memory.restore(slots, self.decode(read, spec, draw))

    def add_into(self, dense: Values, frame: Frame | Special, spec: TensorSpec, draw: Draw, factor: float) -> bool:
        """dense += factor x what the frame holds; False, with `dense` untouched, for a gradient that was not finite.

        Every value is multiplied and rounded before it is added, so that all ranks, which add all frames in rank order,
        round alike.
        """
        if frame is Special.NOT_FINITE:
            return False
        if isinstance(frame, Frame):
            gradient = self.decode(frame, spec, draw).by_position()
            _native.scatter_add(dense, gradient.support.positions, gradient.values, factor)
        return True


def _require_shared(frame: Frame, kept: int) -> None:
    if frame.kept != kept:
        raise CorruptPayloadError(f"shared support: kept is {frame.kept}; these settings keep {kept}")
    require_payload_length("shared support", frame.index_payload, 0)


def _require_ids(frame: Frame, index_id: int, value_id: int) -> None:
    for kind, found, right in (("index", frame.index_id, index_id), ("value", frame.value_id, value_id)):
        if found != right:
            raise UnknownCodecError(f"{kind} codec id {found}; these settings have {right}")
