"""Codecs in plain NumPy: two that are right, and around them those that are wrong in one way each.

All write the bytes of id 1 of their kind, so that the reference can read them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from conformance import index_checks, stage_checks, value_checks
from conformance.sorting import SortedOnly, Sorting
from conformance.stage_checks import Check
from hvd_deepreduce.contracts import IndexCodec, OrderedValueCodec, Stage, ValueCodec
from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError, TruncatedPayloadError
from hvd_deepreduce.sparse import Support

WRONG: list[tuple[Check, Stage]] = []
"""Each check with the toys that it must catch."""


def caught_by(*checks: Check) -> Callable[[type[Stage]], type[Stage]]:
    def add(toy: type[Stage]) -> type[Stage]:
        WRONG.extend((check, toy()) for check in checks)
        return toy

    return add


def _require_size(payload: bytes, expected: int) -> None:
    if len(payload) < expected:
        raise TruncatedPayloadError("toy: too short")
    if len(payload) > expected:
        raise CorruptPayloadError("toy: too long")


def _increasing(positions: np.ndarray, numel: int) -> bool:
    return bool((positions[1:] > positions[:-1]).all()) and (not len(positions) or int(positions[-1]) < numel)


# --- index codecs ---


@dataclass(frozen=True)
class RightIndex(IndexCodec):
    name: ClassVar[str] = "toy"
    wire_id: ClassVar[int] = 1
    exact: ClassVar[bool] = True

    def encode(self, support, draw):
        positions = support.positions
        if positions.ndim != 1 or positions.dtype != support.view.position_dtype:
            raise InvalidSettingError("toy: positions of another kind")
        if not _increasing(positions, support.view.numel):
            raise InvalidSettingError("toy: a position is not above the one before it or outside numel")
        return positions.tobytes()

    def decode(self, payload, kept, view, draw):
        _require_size(payload, kept * view.position_dtype.itemsize)
        positions = np.frombuffer(payload, view.position_dtype).copy()
        if not _increasing(positions, view.numel):
            raise CorruptPayloadError("toy: a position is not above the one before it or outside numel")
        return Support(positions, view)

    def max_encoded_size(self, kept, view):
        return kept * view.position_dtype.itemsize


@caught_by(index_checks.round_trip, index_checks.leaves_arrays_alone)
class LosesTheLast(RightIndex):
    def decode(self, payload, kept, view, draw):
        return Support(super().decode(payload, kept, view, draw).positions[:-1], view)


@caught_by(index_checks.round_trip, index_checks.edges_round_trip)
class ShiftsButClaimsExact(RightIndex):
    """Lossy, and does not say so."""

    def decode(self, payload, kept, view, draw):
        positions = super().decode(payload, kept, view, draw).positions
        if kept and positions[-1] + 1 < view.numel:
            positions += 1
        return Support(positions, view)


@caught_by(index_checks.edges_round_trip, index_checks.agrees_with_the_reference)
class ForgetsLargeTensors(RightIndex):
    def encode(self, support, draw):
        return (
            super().encode(support, draw) if support.view.numel <= 2**32 else support.positions.astype("<u4").tobytes()
        )


@caught_by(index_checks.declares_traits)
class TakesTheReservedId(RightIndex):
    wire_id: ClassVar[int] = 0


@caught_by(index_checks.deterministic_as_declared)
class HidesItsDraw(RightIndex):
    def encode(self, support, draw):
        return super().encode(support, draw) + bytes([draw.step])


@caught_by(index_checks.takes_arrays_of_every_kind)
class TakesBytesOfAnyArray(RightIndex):
    def encode(self, support, draw):
        return support.positions.tobytes()


@caught_by(index_checks.refuses_wrong_positions_on_encode)
class SortsOnEncode(RightIndex):
    def encode(self, support, draw):
        return np.unique(support.positions).tobytes()


@caught_by(index_checks.refuses_wrong_positions_on_encode)
class RefusesWithoutAName(RightIndex):
    def encode(self, support, draw):
        try:
            return super().encode(support, draw)
        except InvalidSettingError as error:
            raise ValueError("no") from error


@caught_by(
    index_checks.refuses_wrong_positions_on_decode,
    index_checks.survives_flipped_bits,
    index_checks.rejects_what_the_reference_rejects,
)
class TrustsPositions(RightIndex):
    def decode(self, payload, kept, view, draw):
        _require_size(payload, kept * view.position_dtype.itemsize)
        return Support(np.frombuffer(payload, view.position_dtype).copy(), view)


@caught_by(index_checks.rejects_what_the_reference_rejects)
class SortsOnDecode(RightIndex):
    def decode(self, payload, kept, view, draw):
        _require_size(payload, kept * view.position_dtype.itemsize)
        return super().decode(np.sort(np.frombuffer(payload, view.position_dtype)).tobytes(), kept, view, draw)


@caught_by(index_checks.same_bytes_in_other_processes)
class UsesTheHashSeed(RightIndex):
    def encode(self, support, draw):
        return super().encode(support, draw) + hash("seed").to_bytes(8, "little", signed=True)


@caught_by(index_checks.leaves_arrays_alone)
class HandsOutAView(RightIndex):
    def decode(self, payload, kept, view, draw):
        super().decode(payload, kept, view, draw)
        return Support(np.frombuffer(payload, view.position_dtype), view)


@caught_by(index_checks.leaves_arrays_alone)
class WritesOnItsInput(RightIndex):
    def encode(self, support, draw):
        payload = super().encode(support, draw)
        support.positions[...] -= support.positions[0] if support.kept else 0
        return payload


@caught_by(index_checks.refuses_shortened_payloads)
class FillsUpWithZeros(RightIndex):
    def decode(self, payload, kept, view, draw):
        return super().decode(payload.ljust(kept * view.position_dtype.itemsize, b"\0"), kept, view, draw)


@caught_by(index_checks.refuses_shortened_payloads)
class CallsTruncatedCorrupt(RightIndex):
    def decode(self, payload, kept, view, draw):
        try:
            return super().decode(payload, kept, view, draw)
        except TruncatedPayloadError as error:
            raise CorruptPayloadError(str(error)) from error


@caught_by(index_checks.refuses_lengthened_payloads)
class IgnoresWhatFollows(RightIndex):
    def decode(self, payload, kept, view, draw):
        return super().decode(payload[: kept * view.position_dtype.itemsize], kept, view, draw)


@caught_by(index_checks.survives_flipped_bits, index_checks.refuses_wrong_positions_on_decode)
class FailsWithoutAName(RightIndex):
    def decode(self, payload, kept, view, draw):
        try:
            return super().decode(payload, kept, view, draw)
        except CorruptPayloadError as error:
            raise IndexError("out of range") from error


@caught_by(index_checks.survives_wrong_counts)
class BelievesItsPayload(RightIndex):
    """Goes by the payload's length where kept is the receiver's."""

    def decode(self, payload, kept, view, draw):
        return super().decode(payload, len(payload) // view.position_dtype.itemsize, view, draw)


@caught_by(index_checks.trusts_no_count)
class ReservesFirst(RightIndex):
    def decode(self, payload, kept, view, draw):
        np.empty(kept, view.position_dtype)
        return super().decode(payload, kept, view, draw)


@caught_by(index_checks.keeps_to_its_size)
class UnderstatesItsSize(RightIndex):
    def max_encoded_size(self, kept, view):
        return kept * 4 - 1


@caught_by(index_checks.meets_the_formula)
class Pads(RightIndex):
    def encode(self, support, draw):
        return super().encode(support, draw) + bytes(1)


@caught_by(index_checks.agrees_with_the_reference)
class IsBigEndian(RightIndex):
    def encode(self, support, draw):
        return support.positions.byteswap().tobytes()

    def decode(self, payload, kept, view, draw):
        return super().decode(np.frombuffer(payload, view.position_dtype).byteswap().tobytes(), kept, view, draw)


@caught_by(index_checks.agrees_with_the_reference)
class HasNoReference(RightIndex):
    wire_id: ClassVar[int] = 9


@dataclass(frozen=True)
class PairsIndex(IndexCodec):
    """Lossy and right: a bit for every two positions, so that a neighbour is sent along."""

    name: ClassVar[str] = "pairs"
    wire_id: ClassVar[int] = 9
    exact: ClassVar[bool] = False

    def encode(self, support, draw):
        marks = np.zeros((support.view.numel + 1) // 2, bool)
        marks[support.positions // 2] = True
        return np.packbits(marks, bitorder="little").tobytes()

    def decode(self, payload, kept, view, draw):
        marks = np.unpackbits(np.frombuffer(payload, np.uint8), count=(view.numel + 1) // 2, bitorder="little")
        positions = np.flatnonzero(np.repeat(marks, 2)[: view.numel])
        return Support(positions.astype(view.position_dtype), view)

    def max_encoded_size(self, kept, view):
        return (view.numel + 15) // 16


# --- value codecs ---


@dataclass(frozen=True)
class RightValues(ValueCodec):
    name: ClassVar[str] = "toy"
    wire_id: ClassVar[int] = 1
    exact: ClassVar[bool] = True

    def encode(self, values, support, draw):
        if values.ndim != 1 or values.dtype not in (np.float32, np.float64):
            raise InvalidSettingError("toy: values of another kind")
        return values.tobytes()

    def decode(self, payload, support, dtype, draw):
        _require_size(payload, support.kept * dtype.itemsize)
        return np.frombuffer(payload, dtype).copy()

    def max_encoded_size(self, kept, itemsize):
        return kept * itemsize

    def error_bound(self, values):
        return np.zeros_like(values)


@caught_by(value_checks.round_trip, value_checks.edges_round_trip)
class LosesTheSignOfZero(RightValues):
    def decode(self, payload, support, dtype, draw):
        return super().decode(payload, support, dtype, draw) + dtype.type(0)


@caught_by(value_checks.round_trip, value_checks.edges_round_trip)
class UnderstatesItsError(RightValues):
    exact: ClassVar[bool] = False

    def decode(self, payload, support, dtype, draw):
        decoded = super().decode(payload, support, dtype, draw)
        with np.errstate(all="ignore"):
            return (decoded * dtype.type(1.001)).astype(dtype)

    def error_bound(self, values):
        with np.errstate(all="ignore"):
            return np.where(np.isfinite(values), np.abs(values) * values.dtype.type(1e-4), np.inf).astype(values.dtype)


@caught_by(value_checks.is_useful)
class BoundsNothing(RightValues):
    exact: ClassVar[bool] = False

    def decode(self, payload, support, dtype, draw):
        return np.ones_like(super().decode(payload, support, dtype, draw))

    def error_bound(self, values):
        return np.full_like(values, np.inf)


@caught_by(value_checks.declares_traits)
class HasNoId(RightValues):
    wire_id: ClassVar[int] = "1"


@caught_by(value_checks.deterministic_as_declared)
class HidesItsDrawInValues(RightValues):
    def encode(self, values, support, draw):
        return super().encode(values, support, draw) + bytes([draw.step])


@caught_by(value_checks.random_as_declared)
class IsNotRandomAtAll(RightValues):
    deterministic: ClassVar[bool] = False


@caught_by(value_checks.order_preserving_as_declared)
class Sorts(RightValues):
    def encode(self, values, support, draw):
        return super().encode(np.sort(values), support, draw)


class OffByOne(SortedOnly):
    def encode(self, values, draw):
        payload, order = super().encode(values, draw)
        return payload, np.roll(order, 1)


@caught_by(value_checks.order_preserving_as_declared)
class MisreportsItsOrder(Sorting):
    ordered: ClassVar[OrderedValueCodec | None] = OffByOne()


@caught_by(value_checks.order_preserving_as_declared)
class HidesThatItSorts(Sorting):
    order_preserving: ClassVar[bool] = True


@caught_by(value_checks.takes_arrays_of_every_kind)
class TakesBytesOfAnyValues(RightValues):
    def encode(self, values, support, draw):
        return values.tobytes()


@caught_by(value_checks.same_bytes_in_other_processes)
class UsesTheHashSeedInValues(RightValues):
    def encode(self, values, support, draw):
        return super().encode(values, support, draw) + hash("seed").to_bytes(8, "little", signed=True)


@caught_by(value_checks.leaves_arrays_alone)
class HandsOutAViewOfValues(RightValues):
    def decode(self, payload, support, dtype, draw):
        return np.frombuffer(payload, dtype)


@caught_by(value_checks.leaves_arrays_alone)
class ScalesItsInput(RightValues):
    def encode(self, values, support, draw):
        payload = super().encode(values, support, draw)
        values += 1
        return payload


@caught_by(value_checks.refuses_shortened_payloads)
class FillsUpValuesWithZeros(RightValues):
    def decode(self, payload, support, dtype, draw):
        return super().decode(payload.ljust(support.kept * dtype.itemsize, b"\0"), support, dtype, draw)


@caught_by(value_checks.refuses_lengthened_payloads)
class IgnoresWhatFollowsValues(RightValues):
    def decode(self, payload, support, dtype, draw):
        return super().decode(payload[: support.kept * dtype.itemsize], support, dtype, draw)


@caught_by(value_checks.survives_flipped_bits)
class FailsOnNegativeValues(RightValues):
    def decode(self, payload, support, dtype, draw):
        decoded = super().decode(payload, support, dtype, draw)
        if (decoded < -1.9).any():
            raise ArithmeticError("negative")
        return decoded


@caught_by(value_checks.survives_flipped_bits)
class DropsTinyValues(RightValues):
    def decode(self, payload, support, dtype, draw):
        decoded = super().decode(payload, support, dtype, draw)
        return decoded[(decoded == 0) | ~(np.abs(decoded) < 0.1)]


@caught_by(value_checks.trusts_no_count)
class ReservesValuesFirst(RightValues):
    def decode(self, payload, support, dtype, draw):
        np.empty(support.kept, dtype)
        return super().decode(payload, support, dtype, draw)


@caught_by(value_checks.keeps_to_its_size)
class UnderstatesTheSizeOfValues(RightValues):
    def max_encoded_size(self, kept, itemsize):
        return kept * 4


@caught_by(value_checks.keeps_to_its_size, value_checks.agrees_with_the_reference)
class PadsValues(RightValues):
    def encode(self, values, support, draw):
        return super().encode(values, support, draw) + bytes(1)


@caught_by(value_checks.agrees_with_the_reference, value_checks.reads_flipped_bits_as_the_reference)
class BigEndianValues(RightValues):
    def encode(self, values, support, draw):
        return values.byteswap().tobytes()

    def decode(self, payload, support, dtype, draw):
        return super().decode(payload, support, dtype, draw).byteswap()


@caught_by(value_checks.reads_flipped_bits_as_the_reference)
class RejectsInfinities(RightValues):
    def decode(self, payload, support, dtype, draw):
        decoded = super().decode(payload, support, dtype, draw)
        if (np.abs(decoded) > 1e30).any():
            raise CorruptPayloadError("toy: too large")
        return decoded


# --- settings ---


@caught_by(stage_checks.settings_round_trip)
@dataclass(frozen=True)
class HasASetting(Stage):
    """JSON makes a list of it."""

    name: ClassVar[str] = "toy"
    sizes: tuple[int, ...] = (1, 2)


@caught_by(stage_checks.settings_round_trip)
@dataclass(frozen=True)
class HidesASetting(Stage):
    name: ClassVar[str] = "toy"
    rate: float = field(default=0.5, repr=False, compare=True)

    def __repr__(self):
        return "HidesASetting(rate=0.25)"


@caught_by(stage_checks.is_frozen)
@dataclass(unsafe_hash=True)
class IsNotFrozen(Stage):
    name: ClassVar[str] = "toy"
    rate: float = 0.5


@caught_by(stage_checks.refuses_unknown_settings_when_made)
@dataclass(frozen=True)
class TakesAnything(Stage):
    name: ClassVar[str] = "toy"
    rate: float = 0.5


@caught_by(stage_checks.refuses_unknown_settings_when_made)
@dataclass(frozen=True)
class RefusesWithoutAReason(Stage):
    name: ClassVar[str] = "toy"
    rate: float = 0.5

    def __post_init__(self):
        if self.rate != 0.5:
            raise InvalidSettingError("no")
