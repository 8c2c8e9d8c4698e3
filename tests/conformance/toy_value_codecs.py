"""A value codec in plain NumPy that is right, and around it those that are wrong in one way each.

All write the bytes of id 1, so that the reference can read them.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from conformance import value_checks
from conformance.sorting import SortedOnly, Sorting
from conformance.wrong import caught_by, require_size
from hvd_deepreduce.contracts import OrderedValueCodec, ValueCodec
from hvd_deepreduce.errors import CorruptPayloadError, InvalidSettingError


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
        require_size(payload, support.kept * dtype.itemsize)
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
