"""Rows -> frame -> rows; FORMAT.md, 3.1."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from hvd_deepreduce import _native
from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError, UnknownCodecError
from hvd_deepreduce.pipeline import EncodedGradient
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.rows.merge import RowNumbers, Rows, elements_of, merge_rows, table_of
from hvd_deepreduce.rows.settings import RowSettings
from hvd_deepreduce.sparse import MatrixView, SparseGradient, Support, TensorSpec, Values
from hvd_deepreduce.wire.frame import EMPTY_FRAME, Frame, Special, read_frame
from hvd_deepreduce.wire.reader import ByteReader


class RowPipeline:
    """The stages of some settings, put to work on one table at a time. Holds no state of its own.

    Residuals are kept by row: what was not sent of a row is added when that row has a gradient again.
    """

    def __init__(self, settings: RowSettings):
        self.settings = settings

    def new_slots(self, spec: TensorSpec) -> dict[str, Values]:
        """The arrays that the memory needs for a table; their pages take no memory before a row of them is used."""
        return {name: np.zeros(spec.numel, spec.value_dtype) for name in self.settings.memory.slots}

    def encode(self, rows: Rows, spec: TensorSpec, slots: Mapping[str, Values], draw: Draw) -> EncodedGradient:
        """The frame of some rows, which may be there twice and in any order; `slots` are brought up to date.

        Where a value is NaN or infinite, or is compensated to such, all values go as NaN and the slots stay as they
        are.
        """
        start = time.perf_counter()
        encoded = self._encode(rows, spec, slots, draw)
        return encoded._replace(milliseconds=1e3 * (time.perf_counter() - start))

    def _encode(self, rows: Rows, spec: TensorSpec, slots: Mapping[str, Values], draw: Draw) -> EncodedGradient:
        table = table_of(spec)
        if rows.values.shape != (len(rows.numbers), table.columns) or rows.values.dtype != spec.value_dtype:
            raise InvalidSettingError(
                f"tensor {spec.name!r}: rows of shape {rows.values.shape} and dtype {rows.values.dtype}; "
                f"needed are ({len(rows.numbers)}, {table.columns}) and {spec.value_dtype}"
            )
        numbers, values = merge_rows(rows, table)
        if not values.size:
            return EncodedGradient(EMPTY_FRAME)
        settings = self.settings
        own = _take(slots, numbers, table)
        compensated = settings.memory.compensate(np.ascontiguousarray(values).reshape(-1), own)
        finite = compensated is not None
        if compensated is None:
            compensated = np.full(values.size, np.nan, spec.value_dtype)
        support, elements = _support(numbers, table), elements_of(numbers, table)
        index_payload = settings.index.encode(support, draw)
        value_payload = settings.value.encode(compensated, elements, draw)
        if slots and finite:
            sent = settings.value.decode(value_payload, elements, spec.value_dtype, draw)
            settings.memory.update(compensated, own, SparseGradient(_all_of(sent), sent))
            _store(slots, numbers, own, table)
        frame = Frame(settings.index.wire_id, settings.value.wire_id, len(numbers), index_payload, value_payload)
        sizes = len(index_payload), len(value_payload)
        return EncodedGradient(frame.to_bytes(), values.size, *sizes, finite=finite)

    def read(self, reader: ByteReader, spec: TensorSpec) -> Frame | None:
        """Takes the next frame from a bundle, still encoded; None for one without rows."""
        try:
            frame = read_frame(reader, table_of(spec).rows)
            if frame is Special.NOT_FINITE:
                raise CorruptPayloadError(f"{reader.what}: special frame of kind 1, which rows don't have")
        except CorruptPayloadError as error:
            raise type(error)(f"tensor {spec.name!r}: {error}") from error
        return frame if isinstance(frame, Frame) else None

    def decode(self, frame: Frame, spec: TensorSpec, draw: Draw) -> Rows:
        """What a frame holds; `draw` is the sender's. Raises `CorruptPayloadError` with tensor and rank."""
        try:
            return self._decode(frame, spec, draw)
        except CorruptPayloadError as error:
            raise type(error)(f"tensor {spec.name!r}, rank {draw.rank}: {error}") from error

    def _decode(self, frame: Frame, spec: TensorSpec, draw: Draw) -> Rows:
        index, value = self.settings.index, self.settings.value
        if (frame.index_id, frame.value_id) != (index.wire_id, value.wire_id):
            raise UnknownCodecError(
                f"frame of rows with index codec {frame.index_id} and value codec {frame.value_id}; these settings "
                f"have {index.wire_id} ({index.name}) and {value.wire_id} ({value.name})"
            )
        table = table_of(spec)
        support = index.decode(frame.index_payload, frame.kept, MatrixView(1, table.rows), draw)
        numbers = support.positions.astype(np.int64)
        values = value.decode(frame.value_payload, elements_of(numbers, table), spec.value_dtype, draw)
        return Rows(numbers, values.reshape(len(numbers), table.columns))

    def restore(self, frame: bytes, spec: TensorSpec, slots: Mapping[str, Values], draw: Draw) -> None:
        """Gives back to the slots what this rank sent in a frame."""
        read = self.read(ByteReader(frame, "own frame"), spec)
        if read is None or not slots:
            return
        numbers, values = self.decode(read, spec, draw)
        table = table_of(spec)
        own = _take(slots, numbers, table)
        if _native.all_finite(values.reshape(-1)):  # else the slots were left alone
            self.settings.memory.restore(own, SparseGradient(_all_of(values), values.reshape(-1)))
            _store(slots, numbers, own, table)


def _take(slots: Mapping[str, Values], numbers: RowNumbers, table: MatrixView) -> dict[str, Values]:
    """Copies of some rows of the slots, flat."""
    return {name: slot.reshape(table.rows, table.columns)[numbers].reshape(-1) for name, slot in slots.items()}


def _store(slots: Mapping[str, Values], numbers: RowNumbers, own: Mapping[str, Values], table: MatrixView) -> None:
    for name, slot in slots.items():
        slot.reshape(table.rows, table.columns)[numbers] = own[name].reshape(-1, table.columns)


def _support(numbers: RowNumbers, table: MatrixView) -> Support:
    view = MatrixView(1, table.rows)
    return Support(numbers.astype(view.position_dtype), view)


def _all_of(values: Values) -> Support:
    view = MatrixView(1, values.size)
    return Support(np.arange(values.size, dtype=view.position_dtype), view)
