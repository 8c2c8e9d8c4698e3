"""An index codec in plain NumPy that is right, and around it those that are wrong in one way each.

All write the bytes of id 1, so that the reference can read them.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from conformance import index_checks
from conformance.wrong import caught_by, increasing, require_size
from hvd_deepreduce.contracts import IndexCodec
from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError, TruncatedPayloadError
from hvd_deepreduce.sparse import Support


@dataclass(frozen=True)
class RightIndex(IndexCodec):
    name: ClassVar[str] = "toy"
    wire_id: ClassVar[int] = 1
    exact: ClassVar[bool] = True

    def encode(self, support, draw):
        positions = support.positions
        if positions.ndim != 1 or positions.dtype != support.view.position_dtype:
            raise InvalidSettingError("toy: positions of another kind")
        if not increasing(positions, support.view.numel):
            raise InvalidSettingError("toy: a position is not above the one before it or outside numel")
        return positions.tobytes()

    def decode(self, payload, kept, view, draw):
        require_size(payload, kept * view.position_dtype.itemsize)
        positions = np.frombuffer(payload, view.position_dtype).copy()
        if not increasing(positions, view.numel):
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


@caught_by(index_checks.declares_traits)
class WritesAnIdItDoesNotDeclare(RightIndex):
    wire_ids: ClassVar[tuple[int, ...]] = (2, 3)


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
        require_size(payload, kept * view.position_dtype.itemsize)
        return Support(np.frombuffer(payload, view.position_dtype).copy(), view)


@caught_by(index_checks.rejects_what_the_reference_rejects)
class SortsOnDecode(RightIndex):
    def decode(self, payload, kept, view, draw):
        require_size(payload, kept * view.position_dtype.itemsize)
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
    wire_id: ClassVar[int] = 126


@dataclass(frozen=True)
class PairsIndex(IndexCodec):
    """Lossy and right: a bit for every two positions, so that a neighbour is sent along."""

    name: ClassVar[str] = "pairs"
    wire_id: ClassVar[int] = 126
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
