"""The plan of buckets: fixed by the parameter list, last parameter first."""

from __future__ import annotations

import pytest

from hvd_deepreduce.buckets import plan_buckets
from hvd_deepreduce.sparse import TensorSpec


@pytest.mark.parametrize(
    ("numels", "bucket_bytes", "plan"),
    [
        ([], 100, []),
        ([10], 1, [[0]]),
        ([10, 10, 10], 80, [[2, 1], [0]]),
        ([10, 10, 10], 79, [[2], [1], [0]]),
        ([10, 1000, 10, 10], 100, [[3, 2], [1], [0]]),
        ([5, 5, 5, 5], 10**9, [[3, 2, 1, 0]]),
    ],
)
def test_plan(numels: list[int], bucket_bytes: int, plan: list[list[int]]) -> None:
    specs = [TensorSpec(f"t{i}", (numel,)) for i, numel in enumerate(numels)]
    assert plan_buckets(specs, bucket_bytes) == plan


def test_sizes_are_of_the_gradients_dtype() -> None:
    specs = [TensorSpec(f"t{i}", (10,), "bfloat16") for i in range(4)]
    assert plan_buckets(specs, 40) == [[3, 2], [1, 0]]
