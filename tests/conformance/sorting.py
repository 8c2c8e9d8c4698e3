"""A toy value codec that sorts: with a permutation of its own, and without where the index codec ships the order."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hvd_deepreduce.contracts import OrderedValueCodec, ValueCodec
from hvd_deepreduce.errors import CorruptPayloadError, TruncatedPayloadError


def _require(payload, size):
    if len(payload) != size:
        raise (TruncatedPayloadError if len(payload) < size else CorruptPayloadError)(f"sorting: {len(payload)} bytes")


class SortedOnly(OrderedValueCodec):
    wire_id: ClassVar[int] = 101

    def encode(self, values, draw):
        order = np.argsort(values, kind="stable")
        return values[order].tobytes(), order

    def decode(self, payload, kept, dtype, draw):
        _require(payload, kept * dtype.itemsize)
        return np.frombuffer(payload, dtype).copy()


@dataclass(frozen=True)
class Sorting(ValueCodec):
    """Sorted values, then the permutation as uint32."""

    name: ClassVar[str] = "sorting"
    wire_id: ClassVar[int] = 100
    exact: ClassVar[bool] = True
    order_preserving: ClassVar[bool] = False
    ordered: ClassVar[OrderedValueCodec | None] = SortedOnly()

    def encode(self, values, support, draw):
        payload, order = self.ordered.encode(values, draw)
        return payload + order.astype("<u4").tobytes()

    def decode(self, payload, support, dtype, draw):
        values_size = support.kept * dtype.itemsize
        _require(payload, values_size + 4 * support.kept)
        values = np.empty(support.kept, dtype)
        order = np.frombuffer(payload[values_size:], "<u4")
        if sorted(order) != list(range(support.kept)):
            raise CorruptPayloadError("sorting: no permutation")
        values[order] = np.frombuffer(payload[:values_size], dtype)
        return values

    def max_encoded_size(self, kept, itemsize):
        return kept * (itemsize + 4)

    def error_bound(self, values):
        return np.zeros_like(values)
