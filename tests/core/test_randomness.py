"""Keys and draws are those of FORMAT.md, 6, and touch no generator of the user's."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import randomness as reference

from hvd_deepreduce import Settings, _native
from hvd_deepreduce.pipeline import Pipeline
from hvd_deepreduce.randomness import Draw
from hvd_deepreduce.sparse import TensorSpec
from hvd_deepreduce.wire.reader import ByteReader

uint64 = st.integers(0, 2**64 - 1)


@given(uint64, uint64, uint64, st.text(max_size=20))
def test_keys(seed, step, rank, tensor):
    draw = Draw(seed, tensor, step, rank)
    assert draw.key() == reference.key(seed, step, rank, tensor)
    assert draw.shared_key() == reference.key(seed, step, reference.ALL_RANKS, tensor)


@given(uint64)
def test_draws(key):
    assert _native.random_u64(key, 20).tolist() == [reference.draw(key, index) for index in range(20)]


def test_a_draw_does_not_depend_on_how_many_there_are():
    assert _native.random_u64(5, 7).tolist() == _native.random_u64(5, 1000)[:7].tolist()
    assert _native.random_u64(5, 0).tolist() == []


def test_draws_are_even():
    draws = _native.random_u64(Draw(seed=1).key(), 200_000) / 2.0**64
    counts, _ = np.histogram(draws, bins=100, range=(0, 1))
    assert ((counts - 2000) ** 2 / 2000).sum() < 150  # chi-square, 99 degrees of freedom
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.01


def test_keys_of_neighbours_differ():
    keys = {
        Draw(seed, tensor, step, rank).key() for seed in (0, 1) for tensor in "ab" for step in (0, 1) for rank in (0, 1)
    }
    assert len(keys) == 16


@pytest.mark.parametrize("bits", [2, 5, 7])
def test_qsgd_is_unbiased(bits):
    """The mean of many decoded gradients comes to the gradient (Alistarh et al. 2017, lemma 3.1)."""
    pipeline = Pipeline(Settings.of("none", "raw", f"qsgd(bits={bits}, bucket=64)", "none"))
    spec = TensorSpec("layer", (64,))
    gradient = np.random.default_rng(0).normal(size=64).astype(np.float32)
    total = np.zeros(64)
    steps = 2000
    for step in range(steps):
        draw = Draw(0, spec.name, step, 0)
        received = np.zeros(64, np.float32)
        pipeline.add_into(received, frame_of(pipeline, gradient, spec, draw), spec, draw, 1.0)
        total += received
    levels = 2 ** (bits - 1) - 1
    deviation = np.linalg.norm(gradient) / levels / 2 / np.sqrt(steps)
    assert np.abs(total / steps - gradient).max() < 5 * deviation


def frame_of(pipeline, gradient, spec, draw):
    encoded = pipeline.encode(gradient, spec, pipeline.new_slots(spec), draw)
    return pipeline.read(ByteReader(encoded.frame, "test"), spec)


def test_the_users_generators_are_left_alone():
    np.random.seed(3)
    random.seed(3)
    before = np.random.get_state()[1].tolist(), random.getstate()
    pipeline = Pipeline(Settings.of(value="qsgd"))
    spec = TensorSpec("layer", (1000,))
    frame_of(pipeline, np.ones(1000, np.float32), spec, Draw())
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before
