"""Buckets over several steps, two ranks in one process."""

from __future__ import annotations

import numpy as np
import pytest

from hvd_deepreduce.errors import CorruptPayloadError, DeepReduceError, RemoteRankError
from hvd_deepreduce.exchange import Bucket
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import TensorSpec

SPECS = [TensorSpec("a", (4, 5)), TensorSpec("b", (6,))]


def make_ranks(text: str = "topk(density=0.3)+rice+raw") -> list[Bucket]:
    pipeline = Pipeline(Settings.from_string(text))
    return [Bucket(3, SPECS, pipeline, rank, 2) for rank in range(2)]


def put(bucket: Bucket, member: int, gradient: np.ndarray) -> None:
    bucket.open(member)
    spec = bucket.specs[member]
    slots = bucket.pipeline.new_slots(spec)
    bucket.put(member, bucket.pipeline.encode(gradient, spec, slots, bucket.draw(member)).frame)


def gradients(rank: int, step: int) -> list[np.ndarray]:
    generator = np.random.default_rng([rank, step])
    return [generator.standard_normal(spec.numel).astype(np.float32) for spec in SPECS]


def test_frames_of_all_ranks_are_added_in_rank_order() -> None:
    ranks = make_ranks("none+bitmap+raw+none")
    for step in range(3):
        for rank, bucket in enumerate(ranks):
            for member in (1, 0):
                assert not bucket.full or step
                put(bucket, member, gradients(rank, step)[member])
            assert bucket.full
        gathered = b"".join(bucket.bundle() for bucket in ranks)
        for bucket in ranks:
            assert bucket.sent
            bucket.receive(gathered)
            assert bucket.step == step
            for member, spec in enumerate(SPECS):
                dense = np.zeros(spec.numel, np.float32)
                assert bucket.add_into(dense, member, 0.5)
                expected = gradients(0, step)[member] * np.float32(0.5) + gradients(1, step)[member] * np.float32(0.5)
                np.testing.assert_array_equal(dense, expected)


def test_a_member_that_no_rank_compressed_is_empty() -> None:
    ranks = make_ranks()
    for rank, bucket in enumerate(ranks):
        put(bucket, 1, gradients(rank, 0)[1])
        assert bucket.waiting_to_be_sent
        assert not bucket.full
    gathered = b"".join(bucket.bundle() for bucket in ranks)
    ranks[0].receive(gathered)
    dense = np.zeros(SPECS[0].numel, np.float32)
    assert ranks[0].add_into(dense, 0, 1.0)
    assert not dense.any()


def test_compressing_twice_is_named() -> None:
    bucket = make_ranks()[0]
    put(bucket, 0, gradients(0, 0)[0])
    with pytest.raises(DeepReduceError, match="tensor .a.: compressed twice before its gradient of step 0 was fetched"):
        bucket.open(0)
    bucket.bundle()
    with pytest.raises(DeepReduceError, match="tensor 'b': compressed twice"):
        bucket.open(1)


def test_an_error_bundle_reaches_the_receivers_as_its_text() -> None:
    ranks = make_ranks()
    put(ranks[0], 0, gradients(0, 0)[0])
    gathered = ranks[0].bundle() + ranks[1].error_bundle("tensor 'a': out of luck")
    for bucket in ranks:
        with pytest.raises(RemoteRankError, match="^rank 1: tensor 'a': out of luck$"):
            bucket.receive(gathered)


def test_a_bundle_of_another_step_is_named() -> None:
    ranks = make_ranks()
    for bucket in ranks:
        put(bucket, 0, gradients(0, 0)[0])
    old = b"".join(bucket.bundle() for bucket in ranks)
    ranks[0].receive(old)
    put(ranks[0], 0, gradients(0, 1)[0])
    ranks[0].bundle()
    with pytest.raises(CorruptPayloadError, match="bundle is of step 0; expected was 1"):
        ranks[0].receive(old)


def test_not_finite_on_one_rank_is_seen_by_all() -> None:
    ranks = make_ranks()
    bad = gradients(1, 0)[0]
    bad[3] = np.inf
    put(ranks[0], 0, gradients(0, 0)[0])
    put(ranks[1], 0, bad)
    gathered = b"".join(bucket.bundle() for bucket in ranks)
    for bucket in ranks:
        bucket.receive(gathered)
        assert not bucket.add_into(np.zeros(SPECS[0].numel, np.float32), 0, 1.0)
