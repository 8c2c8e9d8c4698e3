"""Which tensors share a collective: fixed by the parameter list, never by arrival or payload size, else ranks stall."""

from __future__ import annotations

from collections.abc import Sequence

from hvd_deepreduce.sparse import TensorSpec


def plan_buckets(specs: Sequence[TensorSpec], bucket_bytes: int) -> list[list[int]]:
    """Groups the places of `specs` so that the dense gradients of a bucket have at most `bucket_bytes` bytes.

    A larger tensor gets a bucket of its own. Buckets go from the last parameter to the first, as backward passes do, so
    that early buckets are complete while gradients are still being computed.
    """
    buckets: list[list[int]] = []
    room = 0
    for place in reversed(range(len(specs))):
        size = specs[place].numel * specs[place].itemsize
        if not buckets or size > room:
            buckets.append([])
            room = bucket_bytes
        buckets[-1].append(place)
        room -= size
    return buckets
