"""Buckets over several steps, two ranks in one process."""

from __future__ import annotations

import numpy as np
import pytest

from hvd_deepreduce.batch import make_batch
from hvd_deepreduce.errors import CorruptPayloadError, DeepReduceError, RemoteRankError
from hvd_deepreduce.exchange import Bucket
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.settings import Settings
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.wire.bundle import padded_length

SPECS = [TensorSpec("a", (4, 5)), TensorSpec("b", (6,))]
TEXT = "topk(density=0.3)+rice+raw"


def make_ranks(text: str = TEXT) -> list[Bucket]:
    settings = Settings.from_string(text)
    return [Bucket(3, SPECS, settings, make_batch(settings), rank, 2) for rank in range(2)]


def put(bucket: Bucket, member: int, gradient: np.ndarray) -> None:
    bucket.put(member, gradient, Pipeline(Settings.from_string(TEXT)).new_slots(SPECS[member]))


def bundle(bucket: Bucket) -> bytes:
    bucket.encode(bucket.close())
    return bucket.bundle()


def gradients(rank: int, step: int) -> list[np.ndarray]:
    generator = np.random.default_rng([rank, step])
    return [generator.standard_normal(spec.numel).astype(np.float32) for spec in SPECS]


def outputs() -> list[np.ndarray]:
    return [np.full(spec.numel, 9, np.float32) for spec in SPECS]


def test_gradients_of_all_ranks_are_added_in_rank_order() -> None:
    ranks = make_ranks("none+bitmap+raw+none")
    for step in range(3):
        for rank, bucket in enumerate(ranks):
            for member in (1, 0):
                assert not bucket.full
                put(bucket, member, gradients(rank, step)[member])
            assert bucket.full
            assert bucket.step == step
        gathered = b"".join(bundle(bucket) for bucket in ranks)
        for bucket in ranks:
            assert bucket.sent
            dense = outputs()
            assert all(one.finite for one in bucket.decode(gathered, dense, 0.5))
            assert bucket.decoded
            assert bucket.steps_done == step + 1
            for member, sums in enumerate(dense):
                expected = gradients(0, step)[member] * np.float32(0.5) + gradients(1, step)[member] * np.float32(0.5)
                np.testing.assert_array_equal(sums, expected)


def test_it_is_all_the_same_whether_gradients_are_encoded_as_they_come_or_at_once() -> None:
    at_once, as_they_come = (make_ranks()[0] for _ in range(2))
    for member in (1, 0):
        put(at_once, member, gradients(0, 0)[member])
        put(as_they_come, member, gradients(0, 0)[member])
        assert as_they_come.numel_waiting == SPECS[member].numel
        as_they_come.encode(as_they_come.take())
        assert as_they_come.numel_waiting == 0
        assert not as_they_come.sent
    assert bundle(as_they_come) == bundle(at_once)


def test_compressing_twice_is_named_although_the_first_was_encoded() -> None:
    bucket = make_ranks()[0]
    put(bucket, 0, gradients(0, 0)[0])
    bucket.encode(bucket.take())
    with pytest.raises(DeepReduceError, match="tensor 'a': compressed twice"):
        put(bucket, 0, gradients(0, 0)[0])


def test_a_member_that_no_rank_compressed_is_empty() -> None:
    ranks = make_ranks()
    for rank, bucket in enumerate(ranks):
        put(bucket, 1, gradients(rank, 0)[1])
        assert not bucket.full
    gathered = b"".join(bundle(bucket) for bucket in ranks)
    dense = outputs()
    ranks[0].decode(gathered, dense, 1.0)
    assert not dense[0].any()
    assert dense[1].any()
    assert list(ranks[0].encoded) == [1]


def test_compressing_twice_is_named() -> None:
    bucket = make_ranks()[0]
    put(bucket, 0, gradients(0, 0)[0])
    with pytest.raises(DeepReduceError, match="tensor 'a': compressed twice before its gradient of step 0 was fetched"):
        put(bucket, 0, gradients(0, 0)[0])
    bucket.close()
    with pytest.raises(DeepReduceError, match="tensor 'b': compressed twice"):
        put(bucket, 1, gradients(0, 0)[1])


def test_an_error_bundle_reaches_the_receivers_as_its_text() -> None:
    ranks = make_ranks()
    put(ranks[0], 0, gradients(0, 0)[0])
    gathered = bundle(ranks[0]) + ranks[1].error_bundle("tensor 'a': out of luck")
    for bucket in ranks:
        with pytest.raises(RemoteRankError, match="^rank 1: tensor 'a': out of luck$"):
            bucket.decode(gathered, outputs(), 1.0)


def test_an_error_bundle_is_heard_whatever_its_step() -> None:
    """A rank that fails before it opens a bucket still holds the step before."""
    ranks = make_ranks()
    for bucket in ranks:
        put(bucket, 0, gradients(0, 0)[0])
    first = b"".join(bundle(bucket) for bucket in ranks)
    for bucket in ranks:
        bucket.decode(first, outputs(), 1.0)
    put(ranks[0], 0, gradients(0, 1)[0])
    with pytest.raises(RemoteRankError, match="^rank 1: out of luck$"):
        ranks[0].decode(bundle(ranks[0]) + ranks[1].error_bundle("out of luck"), outputs(), 1.0)


def test_a_bundle_of_another_step_is_named() -> None:
    ranks = make_ranks()
    for bucket in ranks:
        put(bucket, 0, gradients(0, 0)[0])
    old = b"".join(bundle(bucket) for bucket in ranks)
    ranks[0].decode(old, outputs(), 1.0)
    put(ranks[0], 0, gradients(0, 1)[0])
    bundle(ranks[0])
    with pytest.raises(CorruptPayloadError, match="bundle is of step 0; expected was 1"):
        ranks[0].decode(old, outputs(), 1.0)


def test_not_finite_on_one_rank_is_seen_by_all() -> None:
    ranks = make_ranks()
    bad = gradients(1, 0)[0]
    bad[3] = np.inf
    put(ranks[0], 0, gradients(0, 0)[0])
    put(ranks[1], 0, bad)
    gathered = b"".join(bundle(bucket) for bucket in ranks)
    for bucket in ranks:
        dense = outputs()
        assert [one.finite for one in bucket.decode(gathered, dense, 1.0)] == [False, True]
        assert np.isnan(dense[0]).all()
        assert not dense[1].any()


def test_the_tensor_that_cannot_be_encoded_is_named() -> None:
    bucket = make_ranks()[0]
    put(bucket, 0, gradients(0, 0)[0])
    bucket.put(1, gradients(0, 0)[1], {})
    with pytest.raises(KeyError, match="residual"):
        bundle(bucket)
    assert bucket.encoding == "b"


def test_bundles_keep_their_length_from_step_to_step() -> None:
    """A gather whose size changes is negotiated anew, so sizes that wander by a percent are padded to one."""
    settings = Settings.from_string("topk(density=0.01)+rice+qsgd(bits=7)")
    spec = TensorSpec("w", (100, 1000))
    bucket = Bucket(0, [spec], settings, make_batch(settings), 0, 1)
    slots = Pipeline(settings).new_slots(spec)
    lengths = set()
    for step in range(30):
        bucket.put(0, np.random.default_rng(step).standard_normal(spec.numel).astype(np.float32), slots)
        sent = bundle(bucket)
        frame = len(bucket.encoded[0].frame)
        assert frame < len(sent) <= 1.06 * (frame + 32)
        lengths.add(len(sent))
        bucket.decode(sent, [None], 1.0)
    assert len(lengths) <= 2


@pytest.mark.parametrize("length", [19, 20, 100, 1000, 12345, 10**6, 10**9])
def test_padding_is_bounded(length: int) -> None:
    padded = padded_length(length, 0)
    assert length <= padded <= max(1.05 * length, length + 16)
    assert padded_length(length, padded) == padded
    assert padded_length(padded - padded // 16, padded) == padded
    assert padded_length(length, 10 * length) == padded
